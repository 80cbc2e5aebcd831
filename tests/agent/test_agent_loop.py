"""dr/agent/loop.py and the agents, with a scripted mind: order, attempts, reservations, resuming, passing over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dr import files
from dr.agent import loop
from dr.agent.agents.check_agent import CheckAgent
from dr.agent.agents.manager_agent import ManagerAgent
from dr.agent.agents.plan_agent import PlanAgent
from dr.agent.agents.precision_answer_agent import PrecisionAnswerAgent
from dr.agent.agents.solve_agent import SolveAgent
from dr.agent.memory import InvestigateMemory, SolveBlock, SolveMemory, SolveStep
from dr.agent.mind import Draft, Opinion, Task
from dr.contract import NodeType, Passage
from dr.settings import Agents, ModelAgent, Settings, System

TASK = Task("What is X?", NodeType.LOCAL, "local", "en")
PASSAGE = Passage("", "local", "/a.txt", "00", "A", {"line": 1}, "X is a letter. It was carved in 1066.")


class Killed(BaseException):
    """Stands for the end of the process."""


class ScriptedMind:
    """Two blocks of two steps; `drafts` are given out in order, then the good one for ever."""

    name = "scripted"
    verbatim = False

    def __init__(self, drafts: list[str] | None = None, kill_at: int | None = None) -> None:
        self.drafts, self.kill_at = list(drafts or []), kill_at
        self.solved: list[str] = []
        self.opinion = Opinion(passed=True)

    def plan(self, investigate_memory: InvestigateMemory, solve_memory: SolveMemory) -> list[str]:
        return ["first", "second"]

    def steps(self, block: SolveBlock, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> list[str]:
        return [f"{block.goal} a", f"{block.goal} b"]

    def solve(self, step: SolveStep, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> Draft:
        if self.kill_at is not None and len(self.solved) == self.kill_at:
            raise Killed
        self.solved.append(step.step_id)
        cited = investigate_memory.cite(PASSAGE)
        content = self.drafts.pop(0) if self.drafts else f"X was carved in 1066 {cited.id}"
        return Draft(content, [cited.id], [{"tool": "rag_search", "status": "success", "elapsed_ms": 1}], "raw")

    def check(self, draft: Draft, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> Opinion:
        return self.opinion

    def conclude(self, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> str:
        return "[结论] " + " ".join(step.content for step in solve_memory.steps())

    def precise(self, answer: str) -> str:
        return "short"

    def usage(self) -> dict[str, int]:
        return {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0}


def solve(folder: Path, mind: ScriptedMind, settings: Settings | None = None) -> tuple[str, SolveMemory, list[str]]:
    memory = SolveMemory.load_or_create(folder, TASK.question)
    lines: list[str] = []

    def log(line: str, detail: bool = False) -> None:
        lines.append(line)

    evidence = InvestigateMemory.load(folder)
    return loop.solve(TASK, mind, memory, evidence, settings or Settings(), log), memory, lines


def test_all_steps_pass_in_order_with_the_seeds_log_lines(tmp_path: Path) -> None:
    text, memory, lines = solve(tmp_path, ScriptedMind())
    assert text.startswith("[结论] X was carved in 1066 [local-1]")
    assert memory.progress.completed_steps == ["s001", "s002", "s003", "s004"]
    assert memory.progress.status == "completed"
    assert lines[2:8] == [
        "--- Step 1: s001 ---",
        "  Plan: first a",
        "  [Solve] Generating content...",
        "    [rag_search] success, 1 ms: ",
        "  [Check] Verdict: pass",
        "  ✓ Step s001 completed",
    ]


def test_three_attempts_in_all_then_the_step_completes_with_its_reservation(tmp_path: Path) -> None:
    mind = ScriptedMind(drafts=["X was carved in 1999 [local-1]"] * 3)
    _, memory, lines = solve(tmp_path, mind)
    assert mind.solved == ["s001"] * 3 + ["s002", "s003", "s004"]
    step = next(memory.steps())
    checks = [entry for entry in step.tool_logs if entry["tool"] == "check"]
    assert [c["status"] for c in checks] == ["needs_revision"] * 3
    assert [c.get("unresolved", False) for c in checks] == [False, False, True]
    assert "1999" in checks[0]["comment"] and step.status == "completed"
    assert any("Reservation after 3 attempt(s)" in line for line in lines)


def test_a_revision_that_passes_ends_the_attempts(tmp_path: Path) -> None:
    mind = ScriptedMind(drafts=["", "No citation for 12."])
    _, memory, _ = solve(tmp_path, mind)
    assert mind.solved[:4] == ["s001", "s001", "s001", "s002"]
    assert next(memory.steps()).content == "X was carved in 1066 [local-1]"


def test_attempts_follow_the_setting_and_are_counted_over_a_restart(tmp_path: Path) -> None:
    one = Settings(system=System(max_solve_correction_iterations=1))
    mind = ScriptedMind(drafts=["bad [local-9]"])
    (tmp_path / "a").mkdir()
    solve(tmp_path / "a", mind, one)
    assert mind.solved == ["s001", "s002", "s003", "s004"]
    (tmp_path / "b").mkdir()
    with pytest.raises(Killed):
        solve(tmp_path / "b", ScriptedMind(drafts=["bad [local-9]"] * 2, kill_at=2))
    again = ScriptedMind(drafts=["bad [local-9]"] * 3)
    solve(tmp_path / "b", again)
    assert again.solved.count("s001") == 1


@pytest.mark.parametrize("killed_at", range(5))
def test_killed_before_any_step_it_goes_on_and_ends_the_same(tmp_path: Path, killed_at: int) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    expected, whole, _ = solve(tmp_path / "whole", ScriptedMind())
    first = ScriptedMind(kill_at=killed_at if killed_at < 4 else None)
    try:
        solve(tmp_path / "cut", first)
    except Killed:
        assert killed_at < 4
    second = ScriptedMind()
    text, memory, _ = solve(tmp_path / "cut", second)
    assert text == expected and memory.to_dict() == whole.to_dict()
    assert [*first.solved, *second.solved] == ["s001", "s002", "s003", "s004"]


def test_manager_keeps_the_steps_of_an_unfinished_block(tmp_path: Path) -> None:
    mind = ScriptedMind()
    memory, evidence = SolveMemory.load_or_create(tmp_path, "q"), InvestigateMemory.empty(tmp_path)
    planned = PlanAgent(Settings(), mind).process("q", evidence, memory)
    assert planned["num_blocks"] == 2 and planned["num_steps"] == 0
    assert planned["blocks"][0] == {"block_id": "b001", "goal": "first", "steps": []}
    manager = ManagerAgent(Settings(), mind)
    first = manager.process("q", memory, evidence)
    assert first["steps"][0] == {"step_id": "s001", "plan": "first a", "status": "pending"}
    assert (first["has_block"], first["block_id"], first["steps_generated"]) == (True, "b001", 2)
    assert manager.process("q", memory, evidence)["steps_generated"] == 0
    for step_id in ("s001", "s002"):
        memory.complete_step(step_id, "x", [], [])
    assert manager.process("q", memory, evidence)["block_id"] == "b002"
    for step_id in ("s003", "s004"):
        memory.complete_step(step_id, "x", [], [])
    assert manager.process("q", memory, evidence)["has_block"] is False


def test_agents_can_be_disabled(tmp_path: Path) -> None:
    off = ModelAgent(enabled=False)
    agents = replace(Agents(), plan_agent=off, manager_agent=off, check_agent=off)
    mind = ScriptedMind(drafts=["unchecked [local-9]"])
    text, memory, _ = solve(tmp_path, mind, Settings(agents=agents))
    assert [b.goal for b in memory.plan.blocks] == ["What is X?"] and mind.solved == ["s001"]
    assert text == "[结论] unchecked [local-9]"
    quiet = SolveAgent(Settings(agents=replace(Agents(), solve_agent=off)), mind)
    step, evidence = SolveStep("s001", "p"), InvestigateMemory.empty(tmp_path)
    result = quiet.process("q", step, memory, evidence, "local", tmp_path)
    assert result == {"step_content": "", "citations": [], "tool_logs": [], "raw_llm_response": ""}


def test_solve_and_check_results_have_the_seeds_keys(tmp_path: Path) -> None:
    mind = ScriptedMind()
    memory, evidence = SolveMemory.load_or_create(tmp_path, "q"), InvestigateMemory.empty(tmp_path)
    result = SolveAgent(Settings(), mind).process("q", SolveStep("s001", "p"), memory, evidence, "local", tmp_path)
    assert set(result) == {"step_content", "citations", "tool_logs", "raw_llm_response"}
    checker = CheckAgent(Settings(), mind, "en")
    assert set(checker.process("q", result, memory, evidence)) == {"verdict", "comment", "raw_response"}
    mind.opinion = Opinion(True, "better so", "X is a letter of 1066 [local-1]")
    assert checker.process("q", result, memory, evidence)["integrated_content"] == "X is a letter of 1066 [local-1]"
    mind.opinion = Opinion(True, "worse so", "X is a letter of 1999 [local-1]")
    assert "integrated_content" not in checker.process("q", result, memory, evidence)
    mind.opinion = Opinion(False, "say who carved it")
    refused = checker.process("q", result, memory, evidence)
    assert (refused["verdict"], refused["comment"]) == ("needs_revision", "say who carved it")


def test_precision_answer_is_off_unless_enabled() -> None:
    mind = ScriptedMind()
    assert PrecisionAnswerAgent(Settings(), mind).process("q", "long") == {
        **{"needs_precision": False, "precision_answer": "", "final_answer": "long"}
    }
    on = Settings(agents=replace(Agents(), precision_answer_agent=ModelAgent(enabled=True)))
    result: dict[str, Any] = PrecisionAnswerAgent(on, mind).process("q", "long")
    assert result == {"needs_precision": True, "precision_answer": "short", "final_answer": "long"}


def test_killed_after_any_write_it_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "whole").mkdir()
    expected, whole, _ = solve(tmp_path / "whole", ScriptedMind())
    write_text, cut = files.write_text, 0
    while True:
        folder = tmp_path / str(cut)
        folder.mkdir()
        left = iter(range(cut))

        def write(path: Path, text: str, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise Killed
            write_text(path, text)

        monkeypatch.setattr(files, "write_text", write)
        try:
            solve(folder, ScriptedMind())
            break
        except Killed:
            cut += 1
        monkeypatch.setattr(files, "write_text", write_text)
        text, memory, _ = solve(folder, ScriptedMind())
        assert text == expected and memory.to_dict() == whole.to_dict(), f"killed before write {cut}"
    assert cut > 12
