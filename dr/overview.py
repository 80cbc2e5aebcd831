"""What a run is doing, from its files alone and light: `status`, `list` and `trace`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dr import events, files, node_folder, run_folder
from dr.contract import State
from dr.dag import Dag
from dr.layout import RunFolder
from dr.run_folder import RunRecord
from dr.words import has, say


def plan(folder: RunFolder) -> Dag:
    """The plan; the last valid one while an edit by hand is under way."""
    from dr.errors import DagError

    try:
        return Dag.parse(files.read_text(folder.dag), str(folder.dag))
    except (DagError, OSError):
        if not folder.seen.exists():
            raise
        return Dag.parse(files.read_text(folder.seen), str(folder.seen))


def effective_status(record: RunRecord) -> str:
    """run.json's status, but for a run whose runner works on it, its report included, or died over it."""
    if record.runner is not None:
        from dr.restore import is_driven

        return "running" if is_driven(record) else "interrupted"
    return record.status


def status(folder: RunFolder) -> dict[str, Any]:
    """Counts, the nodes with their states, and what to do next."""
    record = run_folder.read_record(folder)
    dag = plan(folder)
    nodes = []
    for node in dag.work_nodes:
        state, error = node.state, None
        if state in (State.FAILED, State.SKIPPED):
            found = node_folder.read_record(folder.node(node.id))
            error = found.error if found else None
        nodes.append({"id": node.id, "type": node.type.value, "state": state.value, "question": node.sub_question})
        if error:
            nodes[-1]["error"] = error
    counts = Counter(n["state"] for n in nodes)
    now = effective_status(record)
    return {
        "task": folder.task,
        "status": now,
        "reason": record.reason,
        "question": record.question,
        "language": record.language,
        "counts": {s.value: counts.get(s.value, 0) for s in State},
        "rounds": len(record.rounds),
        "revisions": len(record.revisions),
        "seconds": record.seconds,
        "nodes": nodes,
        "folder": str(folder.path),
        "report": str(folder.report) if folder.report.exists() else None,
        "next": next_step(folder, now),
    }


def next_step(folder: RunFolder, status_now: str) -> str:
    """The command, or the path, that a reader of the status needs next."""
    if status_now == "running":
        return f"python dr_runner.py status {folder.task}"
    if status_now in ("planned", "interrupted"):
        return f"python dr_runner.py resume {folder.task}"
    return str(folder.report)


def next_call(folder: RunFolder, data: dict[str, Any]) -> str:
    """What an outer agent calls next after start or poll."""
    counts = data["counts"]
    if counts["pending"] or counts["running"]:
        return f"python dr_runner.py poll {folder.task}"
    return (
        str(folder.report) if data["status"] in ("completed", "failed") else f"python dr_runner.py synth {folder.task}"
    )


def status_text(data: dict[str, Any]) -> str:
    lang = data["language"]
    lines = [f"{data['task']}: {data['status']} {data['reason']}".rstrip(), data["question"], ""]
    for node in data["nodes"]:
        mark = State(node["state"]).mark
        lines.append(f"[{mark}] {node['id']:<10} {node['type']:<6} {node['question']}")
        if "error" in node:
            key = f"why_{node['error']}"
            lines.append("      " + (say(lang, key) if has(key) else node["error"]))
    counts = ", ".join(f"{say(lang, 'state_' + s)} {n}" for s, n in data["counts"].items() if n)
    return "\n".join([*lines, "", f"{counts}; {data['seconds']:.0f} s", data["next"]])


def row(folder: RunFolder) -> dict[str, Any]:
    """One line of `list`; a run that cannot be read is one too, with the reason."""
    from dr.errors import DrError

    try:
        record = run_folder.read_record(folder)
    except DrError as error:
        return {"task": folder.task, "status": "unreadable", "reason": error.wrong, "question": ""}
    return {
        "task": folder.task,
        "status": effective_status(record),
        "reason": record.reason,
        "question": record.question,
        "started": record.started,
    }


def rows_text(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return 'no runs yet\npython dr_runner.py "QUESTION" --source FOLDER'
    lines = [f"{r['task']:<42} {r['status']:<12} {r['question'][:80]}" for r in rows]
    return "\n".join([*lines, f"python dr_runner.py status {rows[-1]['task']}"])


def trace(folder: RunFolder, language: str) -> list[str]:
    """The story of a run: its events, one a line, with the plan's revisions."""
    lines: list[str] = []
    start: float | None = None
    for event in events.read(folder.events):
        start = float(event["ts"]) if start is None else start
        facts = ", ".join(f"{k}={_short(v)}" for k, v in event.items() if k not in ("ts", "type"))
        lines.append(f"{float(event['ts']) - start:8.2f} s  {event['type']:<17} {facts}")
    return [*lines, next_step(folder, effective_status(run_folder.read_record(folder)))]


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 120 else text[:119] + "…"
