"""What one subagent has done and found: SolveMemory (solve_memory.json) and InvestigateMemory (evidence.jsonl)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dr import files
from dr.citations import CitationManager
from dr.contract import Passage
from dr.errors import FormatError
from dr.layout import NodeFolder

VERSION = 1
PENDING, IN_PROGRESS, COMPLETED, NOT_STARTED = "pending", "in_progress", "completed", "not_started"


@dataclass
class SolveStep:
    step_id: str
    plan: str
    status: str = PENDING
    content: str = ""
    citations: list[str] = field(default_factory=list)
    tool_logs: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class SolveBlock:
    block_id: str
    goal: str
    steps: list[SolveStep] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return bool(self.steps) and all(step.status == COMPLETED for step in self.steps)


@dataclass
class SolvePlan:
    blocks: list[SolveBlock] = field(default_factory=list)


@dataclass
class Progress:
    status: str = NOT_STARTED
    current_block: str | None = None
    current_step: str | None = None
    completed_blocks: list[str] = field(default_factory=list)
    completed_steps: list[str] = field(default_factory=list)


@dataclass
class SolveMemory:
    """The whole Solve Loop of one node. Every change is on disk before the method returns."""

    output_dir: Path
    user_question: str
    plan: SolvePlan = field(default_factory=SolvePlan)
    progress: Progress = field(default_factory=Progress)

    @classmethod
    def load_or_create(cls, output_dir: str | Path, user_question: str) -> SolveMemory:
        """The memory in `output_dir` if it is of the same question, else a new one. FormatError: a newer version."""
        path = NodeFolder(Path(output_dir)).solve_memory
        if path.exists():
            memory = cls._read(path)
            if memory.user_question == user_question:
                return memory
        memory = cls(Path(output_dir), user_question)
        memory.save()
        return memory

    @classmethod
    def _read(cls, path: Path) -> SolveMemory:
        data = files.read_json(path)
        if isinstance(data, dict) and isinstance(data.get("version"), int) and data["version"] > VERSION:
            raise FormatError(
                f"read {path}", f"format version {data['version']} is newer than {VERSION}", "use a newer program"
            )
        try:
            blocks = [
                SolveBlock(b["block_id"], b["goal"], [SolveStep(**s) for s in b["steps"]])
                for b in data["plan"]["blocks"]
            ]
            return cls(path.parent, data["user_question"], SolvePlan(blocks), Progress(**data["progress"]))
        except (KeyError, TypeError) as error:
            raise FormatError(f"read {path}", f"not a solve memory ({error})", "remove the file") from error

    def save(self) -> None:
        files.write_json(NodeFolder(self.output_dir).solve_memory, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        return {
            "user_question": self.user_question,
            "plan": asdict(self.plan),
            "progress": asdict(self.progress),
            "metadata": self.metadata,
            "version": VERSION,
        }

    @property
    def metadata(self) -> dict[str, int]:
        steps = list(self.steps())
        done = sum(step.status == COMPLETED for step in steps)
        return {"total_blocks": len(self.plan.blocks), "total_steps": len(steps), "completed_steps": done}

    def steps(self) -> Iterator[SolveStep]:
        for block in self.plan.blocks:
            yield from block.steps

    def set_blocks(self, goals: list[str]) -> None:
        """The plan: a block per goal, b001 onwards."""
        self.plan.blocks = [SolveBlock(f"b{i:03}", goal) for i, goal in enumerate(goals, 1)]
        self.progress = Progress(status=IN_PROGRESS if goals else COMPLETED)
        self.save()

    def next_block(self) -> SolveBlock | None:
        """The first block that is not done."""
        return next((block for block in self.plan.blocks if not block.done), None)

    def set_steps(self, block_id: str, plans: list[str]) -> None:
        """The steps of a block; their numbers go on over all blocks."""
        block = next(b for b in self.plan.blocks if b.block_id == block_id)
        first = 1 + sum(1 for _ in self.steps())
        block.steps = [SolveStep(f"s{first + i:03}", plan) for i, plan in enumerate(plans)]
        self.progress.current_block = block_id
        self.save()

    def get_current_step(self) -> SolveStep | None:
        """The first unfinished step, marked as in progress; None when every planned step is done."""
        for block in self.plan.blocks:
            for step in block.steps:
                if step.status != COMPLETED:
                    if step.status != IN_PROGRESS or self.progress.current_step != step.step_id:
                        step.status = IN_PROGRESS
                        self.progress.current_block, self.progress.current_step = block.block_id, step.step_id
                        self.save()
                    return step
        return None

    def complete_step(self, step_id: str, content: str, citations: list[str], tool_logs: list[dict[str, Any]]) -> None:
        """The step's result; `tool_logs` are all of its logs. The last step of the last block completes the whole."""
        step = self._step(step_id)
        step.content, step.citations, step.tool_logs = content, list(citations), list(tool_logs)
        step.status = COMPLETED
        self._update()

    def _update(self) -> None:
        self.progress.completed_steps = [s.step_id for s in self.steps() if s.status == COMPLETED]
        self.progress.completed_blocks = [b.block_id for b in self.plan.blocks if b.done]
        if self.next_block() is None:
            self.progress.status = COMPLETED
        self.save()

    def _step(self, step_id: str) -> SolveStep:
        for step in self.steps():
            if step.step_id == step_id:
                return step
        raise KeyError(step_id)


@dataclass
class InvestigateMemory:
    """The evidence: exactly the passages that the node may cite, each with its id."""

    output_dir: Path
    passages: list[Passage] = field(default_factory=list)

    @classmethod
    def load(cls, output_dir: str | Path) -> InvestigateMemory:
        """The evidence in `output_dir`, none when there is no file; CitationManager starts anew and knows their ids."""
        memory = cls(Path(output_dir))
        manager = CitationManager()
        manager.reset()
        for record in files.read_lines(NodeFolder(memory.output_dir).evidence):
            try:
                passage = Passage.from_dict(record)
            except (KeyError, TypeError):
                continue  # a line that is not ours
            if manager.add_citation(passage.text, passage.place, passage.kind) != passage.id:
                return cls.empty(output_dir)  # edited or mixed up: its numbers can no longer be trusted
            memory.passages.append(passage)
        return memory

    @classmethod
    def empty(cls, output_dir: str | Path) -> InvestigateMemory:
        CitationManager().reset()
        memory = cls(Path(output_dir))
        memory.save()
        return memory

    def save(self) -> None:
        lines = [json.dumps(p.to_dict(), ensure_ascii=False) + "\n" for p in self.passages]
        files.write_text(NodeFolder(self.output_dir).evidence, "".join(lines))

    def cite(self, passage: Passage) -> Passage:
        """`passage` with its id; it is in evidence.jsonl before anything can cite it."""
        cited = passage._replace(id=CitationManager().add_citation(passage.text, passage.place, passage.kind))
        known = self.get(cited.id)
        if known is None:
            self.passages.append(cited)
            self.save()
        return known or cited

    def get(self, citation_id: str) -> Passage | None:
        return next((p for p in self.passages if p.id == citation_id), None)
