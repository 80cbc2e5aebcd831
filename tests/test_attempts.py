"""Attempts over real processes: nothing that was started is lost sight of."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

import pytest
from lab import Lab, marked, until

from dr import node_folder, process
from dr.attempts import Attempts, Ended
from dr.contract import Context, NodeType
from dr.errors import FatalError
from dr.launch import Launched, Launcher
from dr.node_folder import ProcessRecord
from dr.settings import Settings
from dr.subagent import choose_agent
from dr.watch import FINISHED


def attempts(lab: Lab, name: str, **settings: Any) -> Attempts:
    chosen = Settings(**{"grace_s": 0.0, **settings})
    return Attempts(Launcher(lab.root, lab.agent(name), chosen, "en"), chosen)


def context(lab: Lab, question: str = "What?", name: str = "N1") -> Context:
    return Context("Why?", {}, question, "", str(lab.root.run("x").node(name).output))


def launch(lab: Lab, made: Attempts, name: str = "N1") -> ProcessRecord:
    return made.launch(lab.root.run("x").node(name), NodeType.CODE, context(lab, name=name))


def next_end(made: Attempts) -> Ended:
    found: list[Ended] = []
    until(lambda: bool(found.extend(made.wait()) or found), "an attempt's end")
    return found[0]


def test_what_cannot_be_recorded_does_not_run_on(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def full(*arguments: Any) -> None:
        calls.append(arguments)
        raise FatalError("write process.json", "the disk is full")

    monkeypatch.setattr(node_folder, "write_record", full)
    made = attempts(lab, "hang")
    with pytest.raises(FatalError):
        launch(lab, made)
    made.close()
    assert not marked(lab.root.path)


def test_an_adopted_attempt_is_as_old_as_its_process_whatever_its_record_says(lab: Lab) -> None:
    """The clock was set back a day, and forward again, since it was written."""
    made = attempts(lab, "pause", node_timeout_s=60.0)
    record = launch(lab, made)
    made.close(leave=True)
    after = attempts(lab, "pause", node_timeout_s=60.0)
    identity = process.identify(record.pid or 0)
    assert identity
    shifted = replace(record, start=time.time() - 86400)
    after.adopt(Launched(lab.root.run("x").node("N1"), shifted, identity))
    assert next_end(after).outcome.kind == FINISHED
    after.close()


def test_what_a_killed_runner_was_ending_is_ended(lab: Lab) -> None:
    made = attempts(lab, "stubborn")
    record = launch(lab, made)
    node = lab.root.run("x").node("N1")
    until((node.path / "pids.json").exists, "it is up")
    made.close(leave=True)
    identity = process.identify(record.pid or 0)
    assert identity
    after = attempts(lab, "stubborn")
    after.end_leftover(Launched(node, replace(record, outcome="done"), identity))
    assert after.busy("N1")
    assert after.ending
    after.close()
    assert not marked(lab.root.path)


def test_one_that_had_answered_when_it_was_ended_is_finished(lab: Lab) -> None:
    made = attempts(lab, "linger")
    launch(lab, made)
    output = lab.root.run("x").node("N1").output
    until(lambda: output.exists() and output.read_text(encoding="utf-8").rstrip().endswith("[ROUND END]"), "the answer")
    assert [e.outcome.kind for e in made.end(["N1"])] == [FINISHED]
    made.close()


LATE = """
import pathlib, signal, sys, time
folder = pathlib.Path("temp") / sys.argv[sys.argv.index("--task") + 1]
def answer(*_):
    (folder / "output.txt").write_text("[结论] It is.\\n\\n[ROUND END]\\n", encoding="utf-8")
    sys.exit()
signal.signal(signal.SIGTERM, answer)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_one_that_answers_while_it_is_ended_for_its_time_is_finished(lab: Lab) -> None:
    """Else it would be started once more, after its answer."""
    script = lab.root.path / "late.py"
    script.write_text(LATE, encoding="utf-8")
    limits = Settings(node_timeout_s=0.0, grace_s=30.0)
    made = Attempts(Launcher(lab.root, choose_agent(lab.root, str(script), "offline"), limits, "en"), limits)
    launch(lab, made)
    until(lambda: lab.root.run("x").node("N1").stdout.read_text(encoding="utf-8") != "", "it is up")
    assert next_end(made).outcome.kind == FINISHED
    made.close()


def test_one_that_had_not_is_ended(lab: Lab) -> None:
    made = attempts(lab, "hang")
    launch(lab, made)
    assert [e.outcome.kind for e in made.end(["N1"])] == ["ended"]
    made.close()
