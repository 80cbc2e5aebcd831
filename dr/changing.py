"""`add`, `retry`, `skip`, `reply`: what a person does by hand in dag.md or a node folder, done by a command.

They change files only; a runner that drives the run notices, and without one the next poll or resume does.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dr import dag_file, files, overview
from dr.contract import NodeType, State, check_name
from dr.dag import Dag, Node
from dr.errors import UsageError
from dr.layout import RunFolder


def _change(folder: RunFolder, change: Callable[[Dag], Dag]) -> Dag:
    with dag_file.writing(folder):
        path = folder.dag if folder.dag.exists() else folder.seen  # lost, which is no edit: it is written again
        dag = change(Dag.parse(files.read_given(path), str(path)))
        files.write_text(folder.dag, dag.render())
    return dag


def add(
    folder: RunFolder, node_type: str, question: str, depends: str | None, source: str | None, node_id: str | None
) -> Node:
    """Append a node. UsageError or DagError when it does not fit the plan; then nothing is changed."""
    try:
        kind = NodeType(node_type.upper())
    except ValueError:
        known = ", ".join(t.value for t in NodeType)
        raise UsageError(f"add a node of type {node_type!r}", "there is no such type", f"use one of {known}") from None
    if kind is NodeType.SYNTH:
        raise UsageError("add a SYNTH node", "the main agent makes the report itself", "use: dr_runner.py synth TASK")
    if not question.strip():
        raise UsageError("add a node", "its question is empty", "give one with --question")
    parents = tuple(p for p in re.split(r"[\s,，、]+", depends or "") if p)
    made: list[Node] = []

    def change(dag: Dag) -> Dag:
        for parent in parents:
            dag.node(parent)
        name = check_name(node_id, "node id") if node_id else _next_id(dag)
        made.append(Node(name, kind, question.strip(), parents, State.PENDING, source or ""))
        return dag.with_nodes(made)

    _change(folder, change)
    return made[0]


def _next_id(dag: Dag) -> str:
    numbers = [int(m[1]) for n in dag.nodes if (m := re.fullmatch(r"N(\d+)", n.id))]
    return dag.free_id(f"N{max(numbers, default=0) + 1}")


def set_state(folder: RunFolder, node_id: str, state: State) -> None:
    """retry: pending; skip: skipped."""
    node = overview.plan(folder).node(node_id)
    if node.type is NodeType.SYNTH:
        raise UsageError(f"change {node_id}", "it is the SYNTH node", "use: dr_runner.py synth TASK")
    if state is State.PENDING and not node.state.settled:
        raise UsageError(f"run {node_id} again", f"it is {node.state.value}", "wait until it has ended, or skip it")
    _change(folder, lambda dag: dag.with_states({node_id: state}))


def reply(folder: RunFolder, node_id: str, text: str) -> None:
    """Answer a node that asks: through reply.txt where its agent waits, else it runs again with the answer."""
    state = overview.plan(folder).node(node_id).state
    node = folder.node(node_id)
    if not text.strip():
        raise UsageError(f"reply to {node_id}", "the text is empty", "give one")
    if not node.path.is_dir():
        raise UsageError(f"reply to {node_id}", "it has not started", "wait until it asks")
    files.write_text(node.reply, text.strip() + "\n")
    if state.settled:
        set_state(folder, node_id, State.PENDING)
