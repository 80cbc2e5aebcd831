"""A run folder -> the machine as its files tell it, and the attempts that still run. For resume, poll, and every verb
that works on a run which another process drove before."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dr import files, node_folder, process
from dr.contract import State
from dr.dag import Dag
from dr.errors import FormatError
from dr.launch import Launched, Launcher
from dr.layout import NodeFolder, RunFolder
from dr.machine import PlanMachine
from dr.node_folder import ProcessRecord
from dr.plan import PlanDiff, Step
from dr.planning import step_of
from dr.process import Identity
from dr.run_folder import Run, RunRecord
from dr.trees import Tree

_NOBODY = Identity(2**30, 0.0, "")  # above every system's highest pid


@dataclass
class Restored:
    """live: attempts that run or have ended unseen; unhandled: failed nodes whose failure was not dealt with.

    leftover: settled attempts of which something still runs; their runner was killed while it ended them.
    """

    machine: PlanMachine
    live: list[Launched]
    unhandled: list[str]
    leftover: list[Launched]


def restore(folder: RunFolder, dag: Dag, record: RunRecord, machine: PlanMachine, launcher: Launcher) -> Restored:
    """Node folders own what happened; dag.md owns which nodes there are, and what was skipped by hand."""
    steps: list[Step] = []
    states: dict[str, State] = {}
    live: list[Launched] = []
    leftover = _of_removed_nodes(folder, set(dag.ids))
    _sweep(folder.path)
    taken = 0
    for node in dag.work_nodes:
        step, node_files = step_of(node), folder.node(node.id)
        _sweep(node_files.path)
        found = node_folder.read_record(node_files) or _intended(node_files, launcher)
        taken += node_folder.attempts(node_files)
        state = _state(node.state, found)
        if state is State.DONE and not node_files.conclusion.exists():
            state = State.RUNNING  # lost since: what the attempt wrote is judged once more
        if found is not None and state is State.RUNNING:
            running = _running(node_files, found, launcher)
            if running is None:
                state = State.PENDING  # it was about to start, and never did
            else:
                live.append(running)
        elif found is not None:
            leftover += _still_there(node_files, found)
        if state is State.DONE:
            step.result = files.read_text(node_files.conclusion).strip()
        elif state is State.FAILED and found is not None:
            step.error = found.error
        steps.append(step)
        states[node.id] = state
    unhandled = [i for i, s in states.items() if s is State.FAILED and i not in record.handled]
    machine.restore(
        steps,
        dict(states),
        steps_taken=taken,
        replans_used=record.replans_used,
        revisions=[PlanDiff(**r) for r in record.revisions],
        undecided=unhandled,
    )
    return Restored(machine, live, unhandled, leftover)


def complete_intent(run: Run, known: set[str]) -> None:
    """A change of plan that a kill cut in two, in run.json and dag.md: it holds when one of its nodes got into dag.md
    (`known`: ids there), else it was never made and the planner is asked again."""
    intent = run.record.intent
    if intent is not None:
        facts = intent["facts"] if known.intersection(intent["nodes"]) else {}
        run.change(**facts, intent=None)


def _sweep(folder: Path) -> None:
    """Half-written files of programs that were killed while they wrote; see files.write_text."""
    for path in folder.glob(".*.tmp"):
        number = path.name.split(".")[-2]
        if number.isdigit() and process.identify(int(number)) is None:
            path.unlink(missing_ok=True)


def _of_removed_nodes(folder: RunFolder, known: set[str]) -> list[Launched]:
    """Of nodes taken out of dag.md while no runner lived."""
    found: list[Launched] = []
    for entry in folder.path.iterdir():
        node_files = folder.node(entry.name)
        if entry.name not in known and node_files.process.exists():
            with suppress(FormatError):
                record = node_folder.read_record(node_files)
                found += _still_there(node_files, record) if record else []
    return found


def _still_there(folder: NodeFolder, record: ProcessRecord) -> list[Launched]:
    if record.pid is None or record.create_time is None:
        return []
    identity = Identity(record.pid, record.create_time, record.boot)
    return [Launched(folder, record, identity)] if Tree.of(identity, record.group).exists() else []


def _state(mark: State, found: ProcessRecord | None) -> State:
    if found is None:
        return State.SKIPPED if mark is State.SKIPPED else State.PENDING
    return found.state


def _intended(folder: NodeFolder, launcher: Launcher) -> ProcessRecord | None:
    record = node_folder.intent(folder)
    return None if record is None else replace(record, argv=launcher.argv(folder))


def _running(folder: NodeFolder, record: ProcessRecord, launcher: Launcher) -> Launched | None:
    """The attempt of a record without an outcome: it runs, or it ended while nobody looked."""
    record = replace(record, outcome=None)
    if record.pid is not None and record.create_time is not None:
        return Launched(folder, record, Identity(record.pid, record.create_time, record.boot))
    found = launcher.find(folder, record)
    if found is None:
        started = folder.stdout.exists() or bool(folder.outputs())
        if not started:
            return None
        # It was started, never recorded, and is gone: an identity that no process has lets its files be judged.
        return Launched(folder, record, _NOBODY)
    node_folder.write_record(folder, found)
    assert found.pid is not None and found.create_time is not None
    return Launched(folder, found, Identity(found.pid, found.create_time, found.boot))


def is_driven(record: RunRecord) -> bool:
    """Whether the runner that run.json names still lives."""
    try:
        return record.runner is not None and process.alive(Identity.from_dict(record.runner))
    except (KeyError, TypeError, ValueError):
        return False
