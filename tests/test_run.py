"""Whole runs by the real command, over stand-in agents that misbehave in every way."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from command import dr, events, plan, result, start
from lab import AGENTS, Lab, marked, until

from dr.dag import Dag

MIXED = str(AGENTS / "mixed.py")


def states(root: Path, task: str) -> dict[str, str]:
    text = (root / "temp" / f"dr_{task}" / "dag.md").read_text(encoding="utf-8")
    return {n.id: n.state.value for n in Dag.parse(text).work_nodes}


def test_a_small_dag_runs_to_a_report(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | ok one | -", "B | ok two | -", "C | ok three | A,B"])
    done = dr(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED, "--max-rounds", "1")
    assert done.code == 0, done.err
    assert done.out.rstrip().splitlines()[-1] == str(root / "temp" / "dr_t" / "report.md")
    assert states(root, "t") == {"A": "done", "B": "done", "C": "done"}
    context = json.loads((root / "temp" / "dr_t" / "C" / "context.json").read_text(encoding="utf-8"))
    assert set(context["parent_conclusions"]) == {"A", "B"}
    assert list(context) == ["root_question", "parent_conclusions", "sub_question", "source", "output_file"]
    order = [(e["type"], e["node"]) for e in events(root, "t") if e["type"].startswith("attempt")]
    assert order.index(("attempt.start", "C")) > order.index(("attempt.end", "A"))


def test_thirty_nodes_at_once_some_broken(lab: Lab) -> None:
    """A partial report, exit 3, no process left (the lab checks that)."""
    root = lab.root.path
    kinds = ["ok"] * 20 + ["crash"] * 4 + ["hang"] + ["garbage"] + ["model_error"] + ["no_round_end"] + ["linger"] * 2
    plan(root / "p.md", [f"N{i} | {kind} | -" for i, kind in enumerate(kinds)])
    options = ["--agent", MIXED, "--max-rounds", "1", "--max-parallel", "30", "--on-failure", "skip"]
    done = dr(
        root, "run", "--dag", "p.md", "--task", "t", *options, "--node-timeout", "8", DR_NODE_ATTEMPTS="1",
        DR_GRACE_S="0.5",
    )  # fmt: skip
    assert done.code == 3, done.err
    found = states(root, "t")
    assert [found[f"N{i}"] for i, kind in enumerate(kinds) if kind in ("ok", "linger")] == ["done"] * 22
    assert {found[f"N{i}"] for i, kind in enumerate(kinds) if kind not in ("ok", "linger")} == {"failed"}
    data = result(root, "t")
    assert (data["status"], data["coverage"]) == (
        "completed",
        {"nodes": 30, "answered": 22, "failed": 8, "skipped": 0},
    )
    report = (root / "temp" / "dr_t" / "report.md").read_text(encoding="utf-8")
    assert report.startswith("# [Partial]")
    assert "Traceback" not in report.split("## What is open")[0]


def test_a_node_that_fails_is_tried_again_and_counts(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | flaky | -"])
    done = dr(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED, "--max-rounds", "1")
    assert done.code == 0, done.err
    assert result(root, "t")["nodes"][0]["attempts"] == 2
    assert (root / "temp" / "dr_t" / "A" / "attempt1" / "stderr.log").exists()
    text = (root / "temp" / "dr_t" / "A" / "input.txt").read_text(encoding="utf-8")
    assert "did not succeed" in text
    assert len(text) < 1500


def test_dependants_of_a_failed_node(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | crash | -", "B | ok | -", "C | ok | A", "D | ok | A,B", "E | ok | C"])
    done = dr(
        root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED, "--max-rounds", "1", "--on-failure", "skip"
    )
    assert done.code == 3
    assert states(root, "t") == {"A": "failed", "B": "done", "C": "skipped", "D": "done", "E": "skipped"}


def test_nothing_found_is_a_failed_run_that_says_what_was_tried(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | crash | -"])
    done = dr(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED, DR_NODE_ATTEMPTS="1")
    assert done.code == 1
    data = result(root, "t")
    assert (data["status"], data["reason"]) == ("failed", "no_findings")
    assert "exit code 3" in data["nodes"][0]["error"]


def test_abort(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | crash | -", "B | hang | -", "C | ok | B"])
    done = dr(
        root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED, "--on-failure", "abort", DR_NODE_ATTEMPTS="1"
    )
    assert done.code == 1
    assert result(root, "t")["reason"] == "aborted"


def test_the_step_budget_is_hard_and_leaves_a_partial_report(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | ok | -", "B | ok | A", "C | ok | B"])
    done = dr(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED, "--max-steps", "2")
    assert done.code == 3
    assert result(root, "t")["reason"] == "step_budget"
    assert states(root, "t") == {"A": "done", "B": "done", "C": "skipped"}


def test_the_time_budget_goes_to_the_report_with_what_there_is(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | ok | -", "B | hang | -", "C | ok | B"])
    done = dr(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED, "--max-seconds", "4", DR_GRACE_S="0.5")
    assert done.code == 3
    assert result(root, "t")["reason"] == "time_budget"
    assert states(root, "t") == {"A": "done", "B": "skipped", "C": "skipped"}


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interrupted_run_leaves_no_process_and_resumes(lab: Lab, name: str) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | ok | -", "B | pause=8 | -", "C | ok | A,B"])
    runner = start(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED, "--max-rounds", "1")
    try:
        until(lambda: (root / "temp/dr_t/A/conclusion.md").exists() and bool(marked(root)), "A done, B running")
        runner.send_signal(signal.Signals[name])
        assert runner.wait(60) == 130
    finally:
        runner.kill()
        runner.wait()
    assert not marked(root)
    assert json.loads((root / "temp/dr_t/run.json").read_text(encoding="utf-8"))["status"] == "interrupted"
    assert states(root, "t")["B"] == "pending"
    done = dr(root, "resume", "t")
    assert done.code == 0, done.err
    starts = [e["node"] for e in events(root, "t") if e["type"] == "attempt.start"]
    assert sorted(starts) == ["A", "B", "B", "C"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_killed_runner_is_resumed_without_running_anything_twice(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | ok | -", "B | pause=8 | -", "C | ok | A,B"])
    runner = start(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED, "--max-rounds", "1")
    until(lambda: (root / "temp/dr_t/A/conclusion.md").exists() and bool(marked(root)), "A done, B running")
    runner.kill()
    runner.wait()
    assert dr(root, "status", "t", "--json").json()["status"] == "interrupted"
    done = dr(root, "resume", "t")
    assert done.code == 0, done.err
    starts = [e["node"] for e in events(root, "t") if e["type"] == "attempt.start"]
    assert sorted(starts) == ["A", "B", "C"]  # B was adopted


def test_start_and_poll_from_separate_processes(lab: Lab) -> None:
    root = lab.root.path
    folder = root / "temp" / "dr_t"
    folder.mkdir()
    plan(folder / "dag.md", ["A | ok | -", "B | ok | A"])
    started = dr(root, "start", "t", "--agent", MIXED, "--json")
    assert started.code == 0, started.err
    assert started.json()["counts"]["running"] == 1
    assert started.err == ""
    answered: dict[str, str] = {}
    for _ in range(10):
        polled = dr(root, "poll", "t", "--wait", "30", "--json").json()
        answered |= polled["new"]
        if not polled["counts"]["pending"] + polled["counts"]["running"]:
            break
    assert set(answered) == {"A", "B"}
    assert polled["next"].endswith("synth t --json")
    added = dr(root, "add", "t", "--type", "code", "--question", "ok more", "--depends", "A", "--json").json()
    assert dr(root, "synth", "t").code == 2  # not settled yet
    polled = dr(root, "poll", "t", "--wait", "30", "--json").json()
    assert set(polled["new"]) == {added["node"]}
    own = root / "answer.md"
    own.write_text("It is as A says [A/local-1].\n", encoding="utf-8")
    done = dr(root, "synth", "t", "--from", str(own))
    assert done.code == 0, done.err
    assert "It is as A says" in done.out


def test_stop_from_another_process(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | hang | -"])
    runner = start(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED)
    until(lambda: bool(marked(root)), "A runs")
    stopped = dr(root, "stop", "t", "--json")
    assert stopped.code == 0, stopped.err
    assert runner.wait(60) == 130
    assert not marked(root)
    assert dr(root, "status", "t", "--json").json()["next"].endswith("resume t --json")


def test_a_second_runner_is_told_who_holds_the_task(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | hang | -"])
    runner = start(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED)
    try:
        until(lambda: bool(marked(root)), "A runs")
        second = dr(root, "resume", "t")
        assert second.code == 2
        assert str(runner.pid) in second.err
    finally:
        runner.terminate()
        runner.wait(60)


def test_edits_by_hand_during_a_run(lab: Lab) -> None:
    """A node added, a pending one removed, one skipped; an invalid edit is reported and passed over."""
    root = lab.root.path
    plan(root / "p.md", ["A | pause=12 | -", "B | ok | A", "C | ok | A", "D | ok | A"])
    runner = start(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED, "--max-rounds", "1")
    dag = root / "temp/dr_t/dag.md"
    until(lambda: bool(marked(root)) and "[~]" in dag.read_text(encoding="utf-8"), "A runs")
    text = dag.read_text(encoding="utf-8")
    dag.write_text(text.replace("CODE | question: ok | depends: A", "WRONG | question: ok | depends: A", 1), "utf-8")
    until(lambda: any(e["type"] == "edit.invalid" for e in events(root, "t")), "the invalid edit reported")
    lines = [line for line in text.splitlines() if not line.startswith("- [C]")]
    at = next(i for i, line in enumerate(lines) if line.startswith("- [D]"))
    lines.insert(at + 1, "- [X] CODE | question: ok new | depends: B")
    edited = "\n".join(lines).replace(" C: [ ]", "").replace("D: [ ]", "D: [-]").replace("A, B, C, D", "A, B, D")
    dag.write_text(edited + "\n", encoding="utf-8")
    assert runner.wait(100) == 3
    assert states(root, "t") == {"A": "done", "B": "done", "D": "skipped", "X": "done"}
    edit = next(e for e in events(root, "t") if e["type"] == "edit")
    assert (edit["added"], edit["removed"], edit["marks"]) == (["X"], ["C"], {"D": "[ ] -> [-]"})


def test_a_mark_taken_back_runs_the_node_and_its_descendants_again(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | ok | -", "B | ok | A", "C | ok | -"])
    assert dr(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED, "--max-rounds", "1").code == 0
    dag = root / "temp/dr_t/dag.md"
    dag.write_text(dag.read_text(encoding="utf-8").replace("A: [✓]", "A: [ ]"), encoding="utf-8")
    assert dr(root, "resume", "t").code == 0
    starts = [e["node"] for e in events(root, "t") if e["type"] == "attempt.start"]
    assert sorted(starts) == ["A", "A", "B", "B", "C"]
    assert (root / "temp/dr_t/A/attempt1/conclusion.md").exists()


def test_the_folder_says_at_its_top_how_far_the_run_came(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | ok | -", "B | crash | -"])
    options = ["--agent", MIXED, "--max-rounds", "1", "--on-failure", "skip"]
    assert dr(root, "run", "--dag", "p.md", "--task", "t", *options, DR_NODE_ATTEMPTS="1").code == 3
    readme = (root / "temp/dr_t/README.md").read_text(encoding="utf-8")
    assert "Partial" in readme.splitlines()[2]
    assert "`report.md`" in readme
