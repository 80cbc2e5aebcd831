"""Plan, findings and events of a run -> its plan as a picture shows it, and how the plan changed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dr.contract import NodeType, State
from dr.dag import Dag
from dr.findings import Findings
from dr.markdown import plain
from dr.picture import PictureNode


@dataclass(frozen=True)
class Change:
    """One change of the plan. kind: first, deepening, revision, by_hand or no_deepening."""

    kind: str
    number: int = 0
    why: str = ""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    revised: tuple[str, ...] = ()


def element(node_id: str) -> str:
    """The id of the page's element that speaks of a node."""
    return f"node-{node_id}"


def changes(findings: Findings, events: Iterable[Mapping[str, Any]]) -> list[Change]:
    """The first plan, deepenings, replans, edits by hand, and why it was not deepened further."""
    found = []
    for nth, entry in enumerate(findings.rounds):
        why, nodes = _text(entry.get("why")), _ids(entry.get("nodes"))
        found.append(Change("deepening" if nth else "first", nth, why, nodes))
    for position, entry in enumerate(findings.revisions, 1):
        number = entry.get("revision")
        found.append(Change("revision", number if isinstance(number, int) else position, "", *_lists(entry)))
    last = ""
    for event in events:
        if event.get("type") == "edit":
            if any(lists := _lists(event)):
                found.append(Change("by_hand", 0, "", *lists))
        elif event.get("type") == "deepen.end":
            last = _text(event.get("why"))
    return [*found, Change("no_deepening", why=last)] if last else found


def picture_nodes(
    findings: Findings, dag: Dag | None, listed: Sequence[Change], events: Iterable[Mapping[str, Any]]
) -> list[PictureNode]:
    """Every node of the plan, SYNTH included, dependencies first, and those that left it."""
    if dag is None:
        return []
    known = {node.id: node for node in findings.nodes}
    rounds = {i: c.number for c in listed if c.kind == "deepening" for i in c.added}
    revisions = {i: c.number for c in listed if c.kind == "revision" for i in c.added}
    revised = {i for c in listed for i in c.revised}
    removed = _removed(dag, listed, events)
    nodes = []
    for node_id in dag.topological():
        node = dag.node(node_id)
        nodes += [gone for gone in removed if gone.beside == node_id]
        finding = known.get(node_id)
        nodes.append(
            PictureNode(
                id=node_id,
                type=node.type.value,
                question=finding.sub_question if finding else plain(node.sub_question),
                state=node.state,
                depends_on=tuple(node.depends_on),
                link="answer" if node.type is NodeType.SYNTH else element(node_id),
                round=rounds.get(node_id, 1 if finding and finding.deepening else 0),
                revision=revisions.get(node_id, 0),
                revised=node_id in revised,
            )
        )
    return [gone for gone in removed if not gone.beside] + nodes


def _removed(dag: Dag, listed: Sequence[Change], events: Iterable[Mapping[str, Any]]) -> list[PictureNode]:
    """Nodes that a revision or an edit took out; what they asked is known when they were started once."""
    beside: dict[str, str] = {}
    for change in listed:
        instead = next((i for i in change.added if i in dag.by_id), "")
        beside.update({i: instead for i in change.removed if i not in dag.by_id})
    types: dict[str, str] = {}
    questions: dict[str, str] = {}
    for event in events if beside else ():
        if event.get("type") == "attempt.start":
            questions[str(event.get("node"))] = _text(event.get("question"))
        steps = event.get("steps")
        for step in steps if isinstance(steps, list) else ():
            if isinstance(step, dict):
                types[str(step.get("id"))] = _text(step.get("tool"))
    return [
        PictureNode(
            id=i,
            type=types.get(i, ""),
            question=questions.get(i, ""),
            state=State.SKIPPED,
            link=element(i),
            removed=True,
            beside=instead,
        )
        for i, instead in beside.items()
    ]


def _lists(entry: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    return _ids(entry.get("added")), _ids(entry.get("removed")), _ids(entry.get("revised"))


def _ids(value: Any) -> tuple[str, ...]:
    return tuple(_text(i) for i in value) if isinstance(value, (list, tuple)) else ()


def _text(value: Any) -> str:
    return plain(str(value)).strip() if value not in (None, "") else ""
