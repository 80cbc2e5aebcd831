"""The runner's loop over scripted attempts: a kill, a budget, an edit or a planner between two of its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_lab import RunLab, step

from dr import node_folder
from dr.contract import State
from dr.dag_file import DagFile
from dr.errors import UsageError
from dr.run_folder import Run, read_record


def begin(lab: RunLab) -> list[str]:
    """Launch what is ready; the nodes that began."""
    before = len(lab.attempts.began)
    lab.runner.launch_ready()
    return [node for node, _, _ in lab.attempts.began[before:]]


def test_an_attempt_that_was_to_be_repeated_is_repeated_after_a_kill(tmp_path: Path) -> None:
    lab = RunLab(tmp_path, step("A"), node_attempts=3)
    begin(lab)
    lab.crash("A")
    lab.restart()
    assert lab.states() == {"A": "pending"}
    begin(lab)
    assert lab.attempts.began[0][:2] == ("A", 2)
    assert "it fell over" in lab.attempts.began[0][2]
    lab.crash("A")
    begin(lab)
    lab.crash("A")
    lab.restart()
    assert lab.states() == {"A": "failed"}


def test_an_interruption_takes_no_attempt_away(tmp_path: Path) -> None:
    lab = RunLab(tmp_path, step("A"), node_attempts=2, max_steps=2)
    begin(lab)
    lab.crash("A")
    begin(lab)
    lab.runner.put_back()
    lab.restart()
    assert begin(lab) == ["A"]
    assert lab.attempts.began[0][:2] == ("A", 2)


def test_a_node_that_waits_for_another_attempt_is_interrupted_like_one_that_runs(tmp_path: Path) -> None:
    lab = RunLab(tmp_path, step("A"))
    begin(lab)
    lab.crash("A")
    lab.runner.put_back()
    assert lab.states() == {"A": "pending"}
    lab.restart()
    assert begin(lab) == ["A"]


@pytest.mark.parametrize("spent_before", [None, "replan_budget"])
def test_the_time_budget_settles_what_waits_for_another_attempt(tmp_path: Path, spent_before: str | None) -> None:
    """Whatever smaller budget was spent before."""
    lab = RunLab(tmp_path, step("A"), step("B"), step("C", "A"), max_seconds=0.0)
    begin(lab)
    lab.crash("A")
    lab.machine.spent = spent_before
    lab.runner.check_budgets()
    assert lab.attempts.ended == ["B"]
    assert lab.states() == {"A": "skipped", "B": "skipped", "C": "skipped"}
    assert begin(lab) == []


def test_abort_settles_what_waits_for_another_attempt(tmp_path: Path) -> None:
    lab = RunLab(tmp_path, step("A"), step("B"), on_failure="abort", node_attempts=2)
    begin(lab)
    lab.crash("A")
    lab.crash("B")
    begin(lab)
    lab.crash("A")
    assert lab.states() == {"A": "failed", "B": "skipped"}


def test_a_node_whose_last_attempt_is_still_being_ended_is_waited_for(tmp_path: Path) -> None:
    lab = RunLab(tmp_path, step("A"), max_rounds=1)
    begin(lab)
    lab.answer("A")
    lab.attempts.still_ending.add("A")
    lab.dag_file.flush(force=True)
    text = lab.folder.dag.read_text(encoding="utf-8")
    lab.folder.dag.write_text(text.replace("A: [✓]", "A: [ ]"), encoding="utf-8")
    assert lab.runner.take_edit(at_once=True)
    looks = iter(range(3))

    def until() -> bool:
        if next(looks, None) is None:
            lab.attempts.still_ending.clear()
        return lab.states()["A"] == "running"

    lab.runner.drive(until)
    assert lab.states() == {"A": "running"}


def test_no_further_node_is_started_once_the_agent_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = RunLab(tmp_path, step("A"), step("B"))
    tried = []

    def launch(*arguments: Any, **options: Any) -> None:
        tried.append(arguments[0].node_id)
        arguments[0].path.mkdir()
        raise UsageError("start x", "no such program")

    monkeypatch.setattr(lab.attempts, "launch", launch)
    begin(lab)
    assert tried == ["A"]
    assert lab.machine.ended == ("failed", "aborted")


def test_two_failures_that_nobody_dealt_with_are_dealt_with_once_each(tmp_path: Path) -> None:
    """C waits for both its parents, whatever became of A and B."""
    lab = RunLab(tmp_path, step("A"), step("B"), step("P"), step("Q"), step("C", "A", "B", "P", "Q"), node_attempts=1)
    begin(lab)
    lab.crash("A")
    lab.crash("B")
    lab.run.change(handled=[], replans_used=0)  # the runner was killed before it had noted either
    lab.answer("P")
    lab.restart()
    assert lab.machine.ready() == []
    lab.machine.succeed("Q", "an answer")
    assert [s.id for s in lab.machine.ready()] == ["C"]
    lab.machine.start("C")
    lab.machine.succeed("C", "an answer")
    assert lab.machine.idle
    assert set(lab.run.record.handled) == {"A", "B"}


class Killed(BaseException):
    pass


def killed_at(monkeypatch: pytest.MonkeyPatch, owner: type, method: str, number: int) -> None:
    """Not before its number-th call is over."""
    real, count = getattr(owner, method), 0

    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        found = real(*arguments, **options)
        count += 1
        if count == number:
            raise Killed
        return found

    monkeypatch.setattr(owner, method, call)


@pytest.mark.parametrize(
    ("owner", "method", "number"), [(Run, "change", 1), (DagFile, "replace", 1), (Run, "change", 2)]
)
def test_a_deepening_cut_by_a_kill_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, method: str, number: int
) -> None:
    lab = RunLab(tmp_path, step("A"))
    begin(lab)
    lab.answer("A")
    lab.planner.rounds = [[step("D", "A", question="deeper")], [step("D", "A", question="deeper")]]
    with monkeypatch.context() as patch:
        killed_at(patch, owner, method, number)
        with pytest.raises(Killed):
            lab.runner.next_round()
    lab.restart()
    if "D" not in lab.machine.steps:
        assert lab.runner.next_round()
    assert begin(lab) == ["D"]
    rounds = read_record(lab.folder).rounds
    assert [r["nodes"] for r in rounds] == [["A"], ["D"]]
    assert set(lab.written()) == {"A", "D"}
    assert read_record(lab.folder).intent is None


@pytest.mark.parametrize(
    ("owner", "method", "number"), [(Run, "change", 1), (DagFile, "replace", 1), (Run, "change", 2)]
)
def test_a_replan_cut_by_a_kill_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, method: str, number: int
) -> None:
    lab = RunLab(tmp_path, step("A"), step("B", "A"), node_attempts=1)
    begin(lab)
    lab.planner.plans = [[step("X"), step("B", "X")], [step("X"), step("B", "X")]]
    with monkeypatch.context() as patch:
        killed_at(patch, owner, method, number)
        with pytest.raises(Killed):
            lab.crash("A")
    lab.restart()
    record = read_record(lab.folder)
    assert (record.handled, record.replans_used, len(record.revisions)) == (["A"], 1, 1)
    assert begin(lab) == ["X"]
    assert set(lab.written()) == {"A", "B", "X"}


def test_a_running_node_that_a_replan_revises_runs_anew(tmp_path: Path) -> None:
    lab = RunLab(tmp_path, step("A"), step("B"), node_attempts=1)
    begin(lab)
    lab.planner.plans = [[step("B", question="another")]]
    lab.crash("A")
    assert lab.attempts.ended == ["B"]
    assert lab.states() == {"A": "failed", "B": "pending"}
    assert begin(lab) == ["B"]


def test_an_edit_during_a_retry_takes_the_node_out(tmp_path: Path) -> None:
    lab = RunLab(tmp_path, step("A"), step("B"))
    begin(lab)
    lab.crash("A")
    lab.dag_file.flush(force=True)
    lines = lab.folder.dag.read_text(encoding="utf-8").replace("A: [~] ", "").replace("A, B", "B").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("- [A]"))
    lab.folder.dag.write_text(text + "\n", encoding="utf-8")
    assert lab.runner.take_edit(at_once=True)
    begin(lab)
    assert lab.states() == {"B": "running"}
    assert set(lab.written()) == {"B"}


def test_a_mark_taken_back_survives_a_kill_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A and its descendants run again, all or, after the next look at dag.md, all."""
    put_away = node_folder.put_away
    for cut in (1, 2, 3):
        lab = RunLab(tmp_path / str(cut), step("A"), step("B", "A"), step("C", "B"), max_rounds=1)
        for node in "ABC":
            assert begin(lab) == [node]
            lab.answer(node)
        lab.dag_file.flush(force=True)
        text = lab.folder.dag.read_text(encoding="utf-8")
        lab.folder.dag.write_text(text.replace("A: [✓]", "A: [ ]"), encoding="utf-8")
        left = iter(range(cut - 1))

        def cut_off(folder: Any, left: Any = left) -> None:
            if next(left, None) is None:
                raise Killed
            put_away(folder)

        monkeypatch.setattr(node_folder, "put_away", cut_off)
        with pytest.raises(Killed):
            lab.runner.take_edit(at_once=True)
        monkeypatch.setattr(node_folder, "put_away", put_away)
        lab.restart()
        assert lab.states() == {"A": "pending", "B": "pending", "C": "pending"}, f"killed at {cut}"
        assert begin(lab) == ["A"]


def test_an_edit_that_was_carried_out_is_not_carried_out_again_after_a_kill(tmp_path: Path) -> None:
    lab = RunLab(tmp_path, step("A"), max_rounds=1)
    begin(lab)
    lab.answer("A")
    lab.dag_file.flush(force=True)
    text = lab.folder.dag.read_text(encoding="utf-8")
    lab.folder.dag.write_text(text.replace("question: what", "question: what else"), encoding="utf-8")
    assert lab.runner.take_edit(at_once=True)
    begin(lab)
    lab.answer("A")  # killed before any mark of that is written
    lab.restart()
    assert lab.states() == {"A": "done"}


def test_tokens_of_earlier_runners_count(tmp_path: Path) -> None:
    lab = RunLab(tmp_path, step("A"), step("B"), max_tokens=100)
    begin(lab)
    lab.folder.node("A").usage.write_text('{"total_tokens": 90}', encoding="utf-8")
    lab.answer("A")
    lab.restart()
    lab.runner.count_tokens()
    lab.runner.check_budgets()
    assert lab.machine.spent == "token_budget"
    assert lab.machine.states["A"] is State.DONE
