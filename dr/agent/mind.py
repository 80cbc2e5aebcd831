"""The protocol of a mind: who thinks inside the Solve Loop. The agents hold the form, a mind has the content."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from dr.agent.memory import InvestigateMemory, SolveBlock, SolveMemory, SolveStep
from dr.contract import NodeType


@dataclass(frozen=True)
class Task:
    """What the node was given. kind: prefix of its citations; notes: what of its sources could not be read."""

    question: str
    node_type: NodeType
    kind: str
    language: str
    root_question: str = ""
    parent_conclusions: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Draft:
    """The result of one step. raw: the model's reply, "" without one."""

    content: str
    citations: list[str]
    tool_logs: list[dict[str, Any]]
    raw: str = ""


@dataclass(frozen=True)
class Opinion:
    """What a mind says about a draft, besides the checks of code. comment: specific suggestions when not passed."""

    passed: bool
    comment: str = ""
    integrated_content: str | None = None
    raw: str = ""


class Mind(Protocol):
    """Every method may be called again after a restart and must then go on from the memories alone."""

    @property
    def name(self) -> str: ...

    @property
    def verbatim(self) -> bool:
        """Whether every cited sentence must be a quotation."""
        ...

    def plan(self, investigate_memory: InvestigateMemory, solve_memory: SolveMemory) -> list[str]:
        """The goals of the blocks."""
        ...

    def steps(self, block: SolveBlock, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> list[str]:
        """What to do for one block, 3 to 5 steps where the goal gives so much."""
        ...

    def solve(self, step: SolveStep, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> Draft:
        """The content of one step. Remarks of earlier checks are in step.tool_logs."""
        ...

    def check(self, draft: Draft, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> Opinion: ...

    def conclude(self, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> str:
        """The conclusion in the form of the node's contract. SourceError when there is nothing to conclude from."""
        ...

    def precise(self, answer: str) -> str:
        """One or two short paragraphs."""
        ...

    def usage(self) -> dict[str, int]:
        """calls, prompt_tokens, completion_tokens so far."""
        ...
