"""dr/agent/memory.py: the seed's solve memory, resumable after a kill at any moment; the evidence and its numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import agent_makers as make
import pytest

from dr.agent.memory import InvestigateMemory, SolveMemory
from dr.citations import CitationManager
from dr.contract import Passage
from dr.errors import FormatError


def passage(text: str, place: str = "/a.txt") -> Passage:
    return Passage("", "local", place, "00", "A", {"line": 1}, text)


def stored(folder: Path) -> dict[str, object]:
    data: dict[str, object] = json.loads((folder / "solve_memory.json").read_text(encoding="utf-8"))
    return data


def test_structure_is_the_seeds(tmp_path: Path) -> None:
    memory = SolveMemory.load_or_create(output_dir=str(tmp_path), user_question="What is X?")
    assert memory.progress.status == "not_started" and memory.get_current_step() is None
    memory.set_blocks(["one", "two"])
    memory.set_steps("b001", ["p", "q"])
    step = memory.get_current_step()
    assert step is not None and (step.step_id, step.status) == ("s001", "in_progress")
    memory.complete_step(step_id="s001", content="C [local-1]", citations=["[local-1]"], tool_logs=[{"tool": "t"}])
    assert stored(tmp_path) == {
        "user_question": "What is X?",
        "plan": {
            "blocks": [
                {
                    "block_id": "b001",
                    "goal": "one",
                    "steps": [
                        {
                            "step_id": "s001",
                            "plan": "p",
                            "status": "completed",
                            "content": "C [local-1]",
                            "citations": ["[local-1]"],
                            "tool_logs": [{"tool": "t"}],
                        },
                        {
                            **{"step_id": "s002", "plan": "q", "status": "pending", "content": ""},
                            **{"citations": [], "tool_logs": []},
                        },
                    ],
                },
                {"block_id": "b002", "goal": "two", "steps": []},
            ]
        },
        "progress": {
            "status": "in_progress",
            "current_block": "b001",
            "current_step": "s001",
            "completed_blocks": [],
            "completed_steps": ["s001"],
        },
        "metadata": {"total_blocks": 2, "total_steps": 2, "completed_steps": 1},
        "version": 1,
    }


def test_step_numbers_go_on_over_blocks_and_the_last_step_completes_all(tmp_path: Path) -> None:
    memory = SolveMemory.load_or_create(tmp_path, "q")
    memory.set_blocks(["one", "two"])
    memory.set_steps("b001", ["a"])
    memory.complete_step("s001", "x", [], [])
    block = memory.next_block()
    assert block is not None and block.block_id == "b002"
    memory.set_steps("b002", ["b", "c"])
    assert [s.step_id for s in memory.steps()] == ["s001", "s002", "s003"]
    memory.complete_step("s002", "x", [], [])
    assert memory.progress.status == "in_progress" and memory.progress.completed_blocks == ["b001"]
    memory.complete_step("s003", "x", [], [])
    assert memory.progress.status == "completed" and memory.next_block() is None
    assert memory.metadata == {"total_blocks": 2, "total_steps": 3, "completed_steps": 3}


def test_a_reloaded_memory_goes_on_at_the_first_unfinished_step(tmp_path: Path) -> None:
    memory = SolveMemory.load_or_create(tmp_path, "q")
    memory.set_blocks(["one"])
    memory.set_steps("b001", ["a", "b"])
    memory.complete_step("s001", "x", [], [])
    memory.get_current_step()
    again = SolveMemory.load_or_create(tmp_path, "q")
    step = again.get_current_step()
    assert step is not None and step.step_id == "s002" and again.to_dict() == memory.to_dict()


def test_another_question_begins_anew(tmp_path: Path) -> None:
    SolveMemory.load_or_create(tmp_path, "q").set_blocks(["one"])
    assert SolveMemory.load_or_create(tmp_path, "other").plan.blocks == []
    assert stored(tmp_path)["user_question"] == "other"


@pytest.mark.parametrize("content", ["{", "[]", '{"user_question": "q"}', '{"version": 2}'])
def test_foreign_and_newer_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "solve_memory.json").write_text(content, encoding="utf-8")
    with pytest.raises(FormatError):
        SolveMemory.load_or_create(tmp_path, "q")


def test_evidence_keeps_its_numbers_over_a_restart(tmp_path: Path) -> None:
    memory = InvestigateMemory.empty(tmp_path)
    assert [memory.cite(passage(t)).id for t in ("a", "b", "a")] == ["[local-1]", "[local-2]", "[local-1]"]
    assert [e["id"] for e in make.evidence(tmp_path)] == ["[local-1]", "[local-2]"]
    CitationManager().reset()
    again = InvestigateMemory.load(tmp_path)
    assert again.passages == memory.passages
    assert again.cite(passage("b")).id == "[local-2]" and again.cite(passage("c")).id == "[local-3]"


def test_evidence_with_doubtful_numbers_is_dropped(tmp_path: Path) -> None:
    memory = InvestigateMemory.empty(tmp_path)
    memory.cite(passage("a"))
    memory.cite(passage("b"))
    lines = (tmp_path / "evidence.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "evidence.jsonl").write_text(lines[1], encoding="utf-8")
    assert InvestigateMemory.load(tmp_path).passages == []
    assert InvestigateMemory.load(tmp_path / "none").passages == []


def test_the_documented_formats_are_the_real_ones(tmp_path: Path) -> None:
    page = (make.PROJECT / "docs" / "format-solve-memory.md").read_text(encoding="utf-8")
    solve, line = re.findall(r"```json\n(.*?)```", page, re.S)
    (tmp_path / "solve_memory.json").write_text(solve, encoding="utf-8")
    memory = SolveMemory.load_or_create(tmp_path, json.loads(solve)["user_question"])
    assert memory.to_dict() == json.loads(solve)
    documented = set(re.findall(r"`([a-z_0-9]+)`", page.split("## evidence.jsonl")[1].split("```")[0]))
    assert set(json.loads(line)) == set(passage("x").to_dict()) <= documented
    assert Passage.from_dict(json.loads(line)).to_dict() == json.loads(line)
    for key in ("user_question", "metadata", "version", "progress.status", "plan.blocks[].steps[].tool_logs"):
        assert f"`{key}`" in page
