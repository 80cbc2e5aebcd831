"""A run folder -> the machine as its files tell it, and the attempts that still run. For resume, poll, and every verb
that works on a run which another process drove before."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dr import files, node_folder, process
from dr.contract import State
from dr.dag import Dag
from dr.launch import Launched, Launcher
from dr.layout import NodeFolder, RunFolder
from dr.machine import PlanMachine
from dr.node_folder import ProcessRecord
from dr.plan import PlanDiff, Step
from dr.planning import step_of
from dr.process import Identity
from dr.run_folder import RunRecord


_NOBODY = Identity(2**30, 0.0, "")  # above every system's highest pid


@dataclass
class Restored:
    """live: attempts that run or have ended unseen; unhandled: failed nodes whose failure was not dealt with."""

    machine: PlanMachine
    live: list[Launched]
    unhandled: list[str]


def restore(folder: RunFolder, dag: Dag, record: RunRecord, machine: PlanMachine, launcher: Launcher) -> Restored:
    """Node folders own what happened; dag.md owns which nodes there are, and what was skipped by hand."""
    steps: list[Step] = []
    states: dict[str, State] = {}
    live: list[Launched] = []
    taken = 0
    for node in dag.work_nodes:
        step, node_files = step_of(node), folder.node(node.id)
        found = node_folder.read_record(node_files)
        taken += node_folder.attempts(node_files)
        state = _state(node.state, found)
        if found is not None and state is State.RUNNING:
            running = _running(node_files, found, launcher)
            if running is None:
                state = State.PENDING  # the intent was recorded, the process never started
            else:
                live.append(running)
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
    return Restored(machine, live, unhandled)


def _state(mark: State, found: ProcessRecord | None) -> State:
    if found is None:
        return State.SKIPPED if mark is State.SKIPPED else State.PENDING
    return found.state


def _running(folder: NodeFolder, record: ProcessRecord, launcher: Launcher) -> Launched | None:
    """The attempt of a record without an outcome: it runs, or it ended while nobody looked."""
    if record.pid is not None and record.create_time is not None:
        return Launched(folder, record, Identity(record.pid, record.create_time, record.boot))
    found = launcher.find(folder)
    if found is None:
        started = folder.stdout.exists() or bool(folder.outputs())
        if not started:
            return None
        # It was started, never recorded, and is gone: an identity that no process has lets its files be judged.
        return Launched(folder, record, _NOBODY)
    record = replace(
        record, pid=found.pid, create_time=found.create_time, boot=found.boot, group=record.group or found.pid
    )
    node_folder.write_record(folder, record)
    return Launched(folder, record, found)


def is_driven(record: RunRecord) -> bool:
    """Whether the runner that run.json names still lives."""
    try:
        return record.runner is not None and process.alive(Identity.from_dict(record.runner))
    except (KeyError, TypeError, ValueError):
        return False
