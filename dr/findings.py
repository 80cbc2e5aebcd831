"""A run folder -> Findings: everything the report says, read once from dag.md, run.json and the node folders.

Reads only; a damaged or missing file makes a gap, never an error, so that any run can be reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dr import cited, files
from dr.cited import Cited
from dr.conflicts import Statement
from dr.contract import NodeType, State
from dr.dag import Dag
from dr.errors import DagError, DrError
from dr.language import detect
from dr.layout import NodeFolder, Root, RunFolder
from dr.markdown import plain
from dr.references import pieces
from dr.sentences import sentences

_ERROR_LINES = 3  # of stderr.log, when nothing else says why a node failed


@dataclass(frozen=True)
class NodeFinding:
    """One node, SYNTH excepted. cited: its conclusion, None when it has none. seconds: over all attempts."""

    id: str
    type: str
    sub_question: str
    source: str
    depends_on: tuple[str, ...]
    state: State
    attempts: int = 0
    seconds: float | None = None
    cited: Cited | None = None
    reservation: tuple[str, ...] = ()
    error: str | None = None
    deepening: bool = False

    @property
    def answered(self) -> bool:
        return self.state is State.DONE and self.cited is not None


@dataclass(frozen=True)
class Findings:
    """What was read. nodes: in topological order. answer: the text that a SYNTH node left, its ids not yet numbered."""

    folder: RunFolder
    task: str
    question: str
    language: str
    nodes: tuple[NodeFinding, ...] = ()
    status: str = ""
    reason: str = ""
    mind: str = ""
    agent: str = ""
    own_agent: bool = True  # False: the tools of a node's type were asked for by its prompt, not enforced
    answer: str | None = None
    rounds: tuple[Mapping[str, Any], ...] = ()
    revisions: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    usage: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    started: float | None = None
    ended: float | None = None

    @property
    def answered(self) -> list[NodeFinding]:
        return [node for node in self.nodes if node.answered]

    def statements(self) -> list[Statement]:
        """Every cited sentence of the conclusions and where it rests, for the comparison of what sources say."""
        found = []
        for node in self.answered:
            for piece in pieces(node.cited.body) if node.cited else ():
                by_id = node.cited.by_id if node.cited else {}
                for citation in piece.ids[:1]:
                    place = next((s.place for s in by_id.get(citation, ())), "")
                    found += [Statement(s, node.id, citation, place) for s in sentences(piece.text)]
        return found

    @property
    def coverage(self) -> dict[str, int]:
        """Counts of nodes; SYNTH is none of them."""
        return {
            "nodes": len(self.nodes),
            "answered": len(self.answered),
            "failed": sum(node.state is State.FAILED for node in self.nodes),
            "skipped": sum(node.state is State.SKIPPED for node in self.nodes),
        }


def collect(folder: RunFolder) -> Findings:
    """Everything known about a run, finished or not."""
    run = _object(folder.run)
    dag = _dag(folder)
    question = _text(run.get("question")) or (plain(dag.root) if dag else "") or folder.task
    language = str(run.get("language") or "")
    rounds = tuple(_objects(run.get("rounds")))
    nodes, answer = _nodes(folder, dag, rounds) if dag else ((), None)
    started, ended = _number(run.get("started")), _number(run.get("ended"))
    seconds = _number(run.get("seconds"))
    if not seconds and started is not None and ended is not None:
        seconds = max(0.0, ended - started)
    return Findings(
        folder=folder,
        task=str(run.get("task") or folder.task),
        question=question,
        language=language if language in ("zh", "en") else detect(question),
        nodes=nodes,
        status=_text(run.get("status")),
        reason=_text(run.get("reason")),
        mind=_text(run.get("mind")),
        agent=_text(run.get("agent")),
        own_agent=_is_own(run, Root(folder.path.parent.parent)),
        answer=answer,
        rounds=rounds,
        revisions=tuple(_objects(run.get("revisions"))),
        notes=_texts(run.get("notes")),
        usage=_usage(run, folder, nodes),
        seconds=seconds,
        started=started,
        ended=ended,
    )


def _nodes(
    folder: RunFolder, dag: Dag, rounds: tuple[Mapping[str, Any], ...]
) -> tuple[tuple[NodeFinding, ...], str | None]:
    snapshots = cited.find_snapshots(folder)
    base = folder.path.parent.parent
    later = _deepening(dag, rounds)
    nodes: list[NodeFinding] = []
    answer = None
    for node in map(dag.node, dag.topological()):
        of_node = folder.node(node.id)
        if node.type is NodeType.SYNTH:
            answer = _read(of_node.conclusion) or answer
            continue
        process = _object(of_node.process)
        conclusion = cited.read_node(of_node, base, snapshots) if node.state is State.DONE else None
        nodes.append(
            NodeFinding(
                id=node.id,
                type=node.type.value,
                sub_question=plain(node.sub_question),
                source=plain(node.source),
                depends_on=tuple(node.depends_on),
                state=node.state,
                attempts=_attempts(of_node, process),
                seconds=_seconds(of_node, process),
                cited=conclusion,
                reservation=_texts(process.get("reservation")),
                error=_error(of_node, process) if node.state in (State.FAILED, State.SKIPPED) else None,
                deepening=node.id in later,
            )
        )
    return tuple(nodes), answer


def _is_own(run: Mapping[str, Any], root: Root) -> bool:
    """Whether the subagents were ours; `auto` is GenericAgent's in its root, unless the mind is offline."""
    agent = run.get("agent") or "own"
    return agent == "own" or (agent == "auto" and (run.get("mind") == "offline" or not root.is_genericagent))


def _deepening(dag: Dag, rounds: tuple[Mapping[str, Any], ...]) -> set[str]:
    """Nodes appended after the first round. Without a record of rounds their ids tell: `<node>_<word>`."""
    if rounds:
        return {str(i) for entry in rounds[1:] for i in entry.get("nodes") or ()}
    ids = {node.id for node in dag.nodes}
    parts = {node.id: node.id.split("_") for node in dag.nodes}
    return {i for i in ids if any("_".join(parts[i][:n]) in ids for n in range(1, len(parts[i])))}


def _dag(folder: RunFolder) -> Dag | None:
    """The plan; after an invalid edit the last valid one."""
    for path in (folder.dag, folder.seen):
        try:
            return Dag.parse(files.read_text(path))
        except (DagError, OSError):
            continue
    return None


def _attempt_folders(folder: NodeFolder) -> list[NodeFolder]:
    return [NodeFolder(path) for path in sorted(folder.path.glob("attempt*")) if path.is_dir()]


def _attempts(folder: NodeFolder, process: Mapping[str, Any]) -> int:
    """How many were made; the record of a node that was skipped before it ran has attempt 0."""
    earlier = sum(1 for attempt in _attempt_folders(folder) if attempt.process.is_file())
    return earlier + (1 if process and process.get("attempt") != 0 else 0)


def _seconds(folder: NodeFolder, process: Mapping[str, Any]) -> float | None:
    records = [process, *(_object(attempt.process) for attempt in _attempt_folders(folder))]
    spans = [
        max(0.0, end - start)
        for record in records
        if (start := _number(record.get("start"))) is not None and (end := _number(record.get("end"))) is not None
    ]
    return round(sum(spans), 3) if spans else None


def _error(folder: NodeFolder, process: Mapping[str, Any]) -> str | None:
    """Why it failed: what the runner recorded, else the end of what the subagent complained."""
    if said := _text(process.get("error")):
        return said
    lines = [line.strip() for line in _read(folder.stderr).split("\n") if line.strip()]
    return " / ".join(lines[-_ERROR_LINES:]) or None


def _usage(run: Mapping[str, Any], folder: RunFolder, nodes: tuple[NodeFinding, ...]) -> dict[str, Any]:
    """run.json's, else the sum of what the subagents noted in usage.json."""
    usage = run.get("usage")
    if isinstance(usage, dict) and usage:
        return usage
    total: dict[str, Any] = {}
    for node in nodes:
        for key, value in _object(folder.node(node.id).usage).items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                total[key] = total.get(key, 0) + value
    return total


def _object(path: Path) -> dict[str, Any]:
    try:
        data = files.read_json(path)
    except (DrError, OSError):
        return {}
    return data if isinstance(data, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _read(path: Path) -> str:
    try:
        return plain(files.read_text(path)).strip()
    except OSError:
        return ""


def _text(value: Any) -> str:
    return plain(str(value)).strip() if value not in (None, "") else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(_text(entry) for entry in value) if isinstance(value, list) else ()


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
