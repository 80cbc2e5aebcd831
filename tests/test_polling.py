"""start, poll and stop from processes of their own: none undoes what another has done."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from command import dr, plan, start
from lab import AGENTS, Lab, marked, until

MIXED = str(AGENTS / "mixed.py")


def run_json(root: Path) -> dict[str, Any]:
    data = json.loads((root / "temp/dr_t/run.json").read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data


def test_poll_and_stop_leave_a_completed_run_completed(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | ok | -"])
    assert dr(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED, "--max-rounds", "1").code == 0
    for verb in (("poll", "t", "--wait", "1"), ("stop", "t")):
        assert dr(root, *verb).code == 0
        assert (run_json(root)["status"], run_json(root)["reason"]) == ("completed", "goal_met")
    assert dr(root, "stop", "t", "--json").json()["ended"] == "nothing"


def test_a_detached_runner_holds_the_run_before_start_returns(lab: Lab) -> None:
    """A poll right behind it looks on; else the runner would find the run taken, and give up."""
    root = lab.root.path
    plan(root / "p.md", ["A | pause=1 | -", "B | ok | A"])
    started = dr(root, "start", "t", "--dag", "p.md", "--detach", "--agent", MIXED, "--json")
    assert started.code == 0, started.err
    assert run_json(root)["runner"]["pid"] == started.json()["runner"]
    dr(root, "poll", "t", "--wait", "0.1")
    until(lambda: (root / "temp/dr_t/report.md").exists() and run_json(root)["runner"] is None, "its report")
    assert run_json(root)["status"] == "completed"


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process is suspended here")
def test_a_suspended_runner_is_stopped_too(lab: Lab) -> None:
    """Ctrl-Z, then `stop`: a suspended process would hear nothing of it."""
    root = lab.root.path
    plan(root / "p.md", ["A | hang | -"])
    runner = start(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED)
    until(lambda: bool(marked(root)), "A runs")
    runner.send_signal(signal.SIGSTOP)
    assert dr(root, "stop", "t", "--json").json()["ended"] == "runner"
    assert runner.wait(60) == 130
    assert not marked(root)
    assert run_json(root)["status"] == "interrupted"


def test_a_second_background_runner_is_an_error_of_start(lab: Lab) -> None:
    root = lab.root.path
    plan(root / "p.md", ["A | hang | -"])
    runner = start(root, "run", "--dag", "p.md", "--task", "t", "--agent", MIXED)
    try:
        until(lambda: bool(marked(root)), "A runs")
        second = dr(root, "start", "t", "--detach")
        assert second.code == 2
        assert "runner.log" in second.err
    finally:
        runner.terminate()
        runner.wait(60)
