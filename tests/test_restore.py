"""From the files of a run that was killed: what runs, what had ended, what was never dealt with."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from lab import Lab, until, wait
from run_lab import ANSWER, RunLab, step

from dr import node_folder, process
from dr.contract import Context, NodeType
from dr.dag import Dag
from dr.launch import Launcher
from dr.layout import NodeFolder
from dr.machine import PlanMachine
from dr.node_folder import ProcessRecord
from dr.process import Identity
from dr.restore import Restored, restore
from dr.run_folder import RunRecord
from dr.settings import Settings
from dr.subagent import Agent
from dr.trees import Tree

STAYS = "import time; print('on', flush=True); time.sleep(600)"


def restored(lab: Lab, *nodes: str, agent: Agent | None = None) -> Restored:
    """Of the run that the lab's nodes are in."""
    folder = lab.root.run("x")
    lines = "\n".join(f"- [{n}] CODE | question: what | depends: -" for n in nodes)
    dag = Dag.parse(f"# DR: Why?\nROOT: Why?\n\n## Nodes\n{lines}\n")
    launcher = Launcher(lab.root, agent or Agent((sys.executable,), frozenset()), Settings(), "en")
    record = RunRecord("x", "Why?", "en", "model", "auto")
    return restore(folder, dag, record, PlanMachine(), launcher)


def record_of(identity: Identity, outcome: str | None, argv: list[str] | None = None) -> ProcessRecord:
    return ProcessRecord(
        argv or ["x"],
        1,
        pid=identity.pid,
        create_time=identity.create_time,
        boot=identity.boot,
        group=identity.pid,
        start=1.0,
        outcome=outcome,
    )


def running(lab: Lab, name: str, outcome: str | None) -> tuple[NodeFolder, Identity]:
    """A process, and the node's record of it."""
    node = lab.node(name=name)
    child = lab.python(STAYS, name=name)
    node_folder.write_record(node, record_of(child.identity, outcome))
    until(lambda: node.stdout.read_text(encoding="utf-8") != "", "the process is up")
    return node, child.identity


def end(lab: Lab) -> None:
    for child in lab.children:
        process.send(child.identity, process.HARD)
        wait(child)


def test_a_running_attempt_is_live_and_a_settled_one_that_still_runs_is_left_over(lab: Lab) -> None:
    running(lab, "A", None)
    node, _ = running(lab, "B", "done")
    node.conclusion.write_text("It is.\n", encoding="utf-8")
    running(lab, "C", "retry")
    found = restored(lab, "A", "B", "C")
    assert [x.folder.node_id for x in found.live] == ["A"]
    assert [x.folder.node_id for x in found.leftover] == ["B", "C"]
    assert {i: s.value for i, s in found.machine.states.items()} == {"A": "running", "B": "done", "C": "pending"}
    end(lab)


def test_a_node_removed_while_no_runner_lived_leaves_no_process(lab: Lab) -> None:
    running(lab, "A", None)
    found = restored(lab, "B")
    assert [x.folder.node_id for x in found.leftover] == ["A"]
    end(lab)


def test_a_number_of_an_earlier_boot_names_nobody(lab: Lab) -> None:
    """Also when a process with that very number, and its own group, runs now."""
    node, identity = running(lab, "A", "failed")
    other = Identity(identity.pid, identity.create_time, "another-boot")
    node_folder.write_record(node, record_of(other, "failed"))
    assert restored(lab, "A").leftover == []
    assert not Tree.of(other).exists()
    assert Tree.of(identity).exists()
    end(lab)


@pytest.mark.skipif(sys.platform == "win32", reason="scripts with a first line")
def test_a_start_that_was_never_recorded_is_found_though_its_command_line_is_another(lab: Lab) -> None:
    """A script's command line begins with its interpreter."""
    script = lab.root.path / "agent.sh"
    script.write_text("#!/bin/sh\nexec sleep 600\n", encoding="utf-8")
    script.chmod(0o755)
    node = lab.node(name="A")
    node_folder.prepare(node, Context("Why?", {}, "what", "", ""), NodeType.CODE, "en", keep_work=True)
    child = lab.start_argv([str(script)], node)
    found = restored(lab, "A", agent=Agent((str(script),), frozenset()))
    assert [x.process for x in found.live] == [child.identity]
    record = node_folder.read_record(node)
    assert record and (record.pid, record.group) == (child.pid, child.pid)
    end(lab)


def test_a_start_that_never_came_about_is_pending_and_no_attempt(lab: Lab) -> None:
    node_folder.prepare(lab.node(name="A"), Context("Why?", {}, "what", "", ""), NodeType.CODE, "en", keep_work=True)
    found = restored(lab, "A")
    assert (found.live, found.machine.states["A"].value, found.machine.steps_taken) == ([], "pending", 0)


def test_a_conclusion_that_is_lost_is_taken_from_the_output_again(tmp_path: Path) -> None:
    lab = RunLab(tmp_path, step("A"), step("B", "A"))
    lab.runner.launch_ready()
    lab.answer("A")
    lab.folder.node("A").conclusion.unlink()
    found = restore(
        lab.folder, lab.dag_file.dag, lab.run.record, PlanMachine(), Launcher(lab.root, AGENT, Settings(), "en")
    )
    assert [x.folder.node_id for x in found.live] == ["A"]
    assert found.live[0].record.outcome is None
    assert lab.folder.node("A").output.read_text(encoding="utf-8") == ANSWER


def test_half_written_files_of_the_dead_are_removed_and_those_of_the_living_stay(tmp_path: Path) -> None:
    lab = RunLab(tmp_path, step("A"))
    lab.runner.launch_ready()
    folders = (lab.folder.path, lab.folder.node("A").path)
    for folder in folders:
        (folder / f".x.json.{2**30}.tmp").touch()
        (folder / f".x.json.{os.getpid()}.tmp").touch()
    restore(lab.folder, lab.dag_file.dag, lab.run.record, PlanMachine(), lab.attempts.launcher)
    for folder in folders:
        assert [p.name for p in folder.glob(".*.tmp")] == [f".x.json.{os.getpid()}.tmp"]


AGENT = Agent(("x",), frozenset())
