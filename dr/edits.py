"""An edit of dag.md by hand -> the machine and the running attempts. Kinds and effects: docs/format-dag.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dr import node_folder
from dr.contract import NodeType, State
from dr.dag import DagDiff
from dr.dag_file import Edit
from dr.planning import step_of

if TYPE_CHECKING:
    from dr.runner import Runner

_REMOVED, _BY_HAND = "removed_by_hand", "by_hand"


def apply(runner: Runner, edit: Edit) -> None:
    """Carry out one edit and log it as a plan diff; an invalid one is reported and changes nothing."""
    if edit.error is not None:
        runner.log.log("edit.invalid", errors=[{"line": e.line, "message": e.message} for e in edit.error.errors])
        return
    if not edit.edits or edit.dag is None:
        return
    dag, edits = edit.dag, edit.edits
    added = [i for i in edits.added if dag.by_id[i].type is not NodeType.SYNTH]
    runner.log.log(
        "edit", added=added, removed=list(edits.removed), revised=list(edits.changed), marks=_marks_of(edits)
    )
    _remove(runner, edits)
    changed = [i for i in edits.changed if i in runner.machine.steps and edits.changed[i] != ("expected_outcome",)]
    runner.end([i for i in changed if runner.machine.states[i] is State.RUNNING], _BY_HAND)
    if added:
        runner.machine.append([step_of(dag.by_id[i]) for i in added], _BY_HAND)
    for node_id in changed:
        _run_again(runner, runner.machine.change(step_of(dag.by_id[node_id])))
    for node_id, (_, mark) in edits.marks.items():
        if node_id in runner.machine.steps and node_id not in changed:
            set_mark(runner, node_id, mark)
    # Now it is carried out: a kill from here on must not have it done again, one before must.
    runner.dag_file.flush(force=True)


def set_mark(runner: Runner, node_id: str, mark: State) -> None:
    """A mark set by hand: `[ ]` runs a settled node again, `[-]` skips or ends it; any other is put right again."""
    state = runner.machine.states[node_id]
    if mark is State.PENDING and state.settled:
        _run_again(runner, runner.machine.reopen(node_id))
    elif mark is State.SKIPPED and state is State.RUNNING:
        runner.end([node_id], _BY_HAND)
    elif mark is State.SKIPPED and state is not State.SKIPPED:
        if state.settled:
            _run_again(runner, runner.machine.reopen(node_id))
        runner.machine.skip(node_id, _BY_HAND)
    else:
        runner.dag_file.mark(node_id, state)


def _run_again(runner: Runner, node_ids: list[str]) -> None:
    """Their earlier attempts are put away, running ones ended first. The node that was edited comes last, so that after
    a kill on the way it still shows that there is something to do."""
    for node_id in reversed(node_ids):
        runner.drop(node_id)
        node_folder.put_away(runner.folder.node(node_id))
        runner.dag_file.mark(node_id, State.PENDING)
    handled = [i for i in runner.run.record.handled if i not in node_ids]
    runner.run.change(handled=handled)


def _remove(runner: Runner, edits: DagDiff) -> None:
    gone = [i for i in edits.removed if i in runner.machine.steps]
    runner.end([i for i in gone if runner.machine.states[i] is State.RUNNING], _REMOVED)
    for node_id in gone:
        runner.machine.remove(node_id)
        runner.dag_file.forget(node_id)


def _marks_of(edits: DagDiff) -> dict[str, str]:
    return {i: f"[{old.mark}] -> [{new.mark}]" for i, (old, new) in edits.marks.items()}
