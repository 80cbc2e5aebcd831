"""What a plan is made of: steps, the difference between two revisions, and the events a session emits. Pure records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

StepId = Any  # int or str; one plan uses one kind


@dataclass
class Step:
    """One unit of work. args: for a node {"sub_question", "source", "depends_on": [ids]}.

    Without `depends_on` a step depends on the step before it, so a plain list is a line.
    `expected_outcome` is shown to the replanner and in traces, never enforced.
    """

    id: StepId
    tool_name: str
    args: dict[str, Any] = field(default_factory=dict)
    expected_outcome: str = ""
    result: Any = None
    error: str | None = None

    @property
    def signature(self) -> tuple[str, str]:
        """What makes two steps the same work."""
        return self.tool_name, json.dumps(self.args, sort_keys=True, ensure_ascii=False, default=str)

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "tool": self.tool_name, "args": self.args, "result": self.result, "error": self.error}


@dataclass(frozen=True)
class PlanDiff:
    """How revision N differs from what was left of the plan before it. All three are lists of step ids."""

    revision: int
    removed: list[StepId]
    added: list[StepId]
    revised: list[StepId]

    def to_dict(self) -> dict[str, Any]:
        return {"revision": self.revision, "removed": self.removed, "added": self.added, "revised": self.revised}


def plan_diff(revision: int, remaining: Sequence[Step], new: Sequence[Step]) -> PlanDiff:
    """`remaining`: the old plan from the cursor on, the failed step included. Order and expectations do not count."""
    old, now = {s.id: s for s in remaining}, {s.id: s for s in new}
    return PlanDiff(
        revision,
        removed=_ordered(old.keys() - now.keys()),
        added=_ordered(now.keys() - old.keys()),
        revised=[i for i in now if i in old and now[i].signature != old[i].signature],
    )


def _ordered(ids: Iterable[StepId]) -> list[StepId]:
    return sorted(ids, key=lambda i: (isinstance(i, str), i))


class Event(NamedTuple):
    """One thing that happened; `ts` in epoch seconds."""

    type: str
    payload: dict[str, Any]
    ts: float

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type, "payload": self.payload, "ts": self.ts}
