"""Who plans: the protocol every planner meets, and the way between a plan's steps and dag.md's nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from dr.contract import NodeType, State
from dr.dag import Dag, Node
from dr.plan import Step


class Deepening(NamedTuple):
    """steps: nodes to append. reason: why they are needed, or why none is; in the question's language."""

    steps: list[Step]
    reason: str


class Planner(Protocol):
    """Pure: knows no process, retry or timeout, and sees conclusions, never source text.

    slow: it takes as long as a model does, so the runner asks it in a thread.
    """

    @property
    def slow(self) -> bool: ...

    def replan(self, goal: str, history: Sequence[Step], last_error: str, remaining: Sequence[Step] = ()) -> list[Step]:
        """The plan from the cursor on, after a failure; [] when there is no better one.

        remaining: what is left of the old plan, the failed step included.
        """

    def deepen(self, question: str, dag: Dag, findings: Mapping[str, str], number: int, room: int) -> Deepening:
        """Round `number` (from 2), at most `room` nodes. findings: node id -> conclusion."""


def step_of(node: Node) -> Step:
    args = {"sub_question": node.sub_question, "source": node.source, "depends_on": list(node.depends_on)}
    return Step(node.id, node.type.value, args, node.expected_outcome)


def node_of(step: Step, state: State = State.PENDING) -> Node:
    return Node(
        id=str(step.id),
        type=NodeType(step.tool_name),
        sub_question=str(step.args["sub_question"]),
        depends_on=tuple(step.args.get("depends_on", ())),
        state=state,
        source=str(step.args.get("source", "")),
        expected_outcome=step.expected_outcome,
    )
