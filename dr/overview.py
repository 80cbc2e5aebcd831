"""What a run is doing, from its files alone and light: `status`, `list` and `trace`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from dr import events, files, node_folder, run_folder
from dr.contract import State
from dr.dag import Dag
from dr.layout import RunFolder
from dr.run_folder import RunRecord
from dr.words import has, say

SHOWN = 40  # nodes in the text of `status`; an outer agent's tool cuts the middle out of longer answers


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
        "partial": _is_partial(record, counts),
        "next": next_step(folder, record, counts),
    }


def _is_partial(record: RunRecord, counts: Mapping[str, int]) -> bool:
    """A completed run with a gap: its report says so in its title, and the exit code was 3."""
    gaps = any(counts.get(s.value, 0) for s in State if s is not State.DONE)
    return record.status == "completed" and (gaps or record.reason != "goal_met")


def next_step(folder: RunFolder, record: RunRecord, counts: Mapping[str, int]) -> str:
    """The command, or the report's path, that comes next."""
    now = effective_status(record)
    if now in ("planned", "interrupted"):
        return f"python dr_runner.py resume {folder.task}"
    if now != "running":
        return str(folder.report)
    unsettled = counts.get(State.PENDING.value, 0) + counts.get(State.RUNNING.value, 0)
    verb = "poll" if unsettled or record.runner is not None else "synth"
    return f"python dr_runner.py {verb} {folder.task}"


def status_text(data: dict[str, Any]) -> str:
    lang = data["language"]
    partial = f" ({say(lang, 'partial')})" if data["partial"] else ""
    lines = [f"{data['task']}: {data['status']} {data['reason']}".rstrip() + partial, data["question"], ""]
    # Of many nodes those that are settled well are the ones a reader can do without.
    order = sorted(data["nodes"], key=lambda n: n["state"] == State.DONE.value)
    shown = {n["id"] for n in order[:SHOWN]}
    for node in (n for n in data["nodes"] if n["id"] in shown):
        mark = State(node["state"]).mark
        lines.append(f"[{mark}] {node['id']:<10} {node['type']:<6} {_short(node['question'])}")
        if "error" in node:
            key = f"why_{node['error']}"
            lines.append("      " + (say(lang, key) if has(key) else _short(node["error"])))
    if len(order) > len(shown):
        lines.append(f"… {len(order) - len(shown)}")
    counts = ", ".join(f"{say(lang, 'state_' + s)} {n}" for s, n in data["counts"].items() if n)
    return "\n".join([*lines, "", f"{counts}; {data['seconds']:.0f} s", data["next"]])


def row(folder: RunFolder) -> dict[str, Any]:
    """One line of `list`; a run that cannot be read is one too, with the reason."""
    from dr.errors import DrError

    try:
        record = run_folder.read_record(folder)
    except (DrError, OSError) as error:
        why = error.wrong if isinstance(error, DrError) else error.strerror or str(error)
        return {"task": folder.task, "status": "unreadable", "reason": why, "question": ""}
    return {
        "task": folder.task,
        "status": effective_status(record),
        "reason": record.reason,
        "question": record.question,
        "started": record.started,
        "partial": _is_partial(record, _counts(folder)),
    }


def _counts(folder: RunFolder) -> Counter[str]:
    from dr.errors import DagError

    try:
        return Counter(n.state.value for n in plan(folder).work_nodes)
    except (DagError, OSError):
        return Counter()


def rows_text(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return 'no runs yet\npython dr_runner.py "QUESTION" --source FOLDER'
    lines = []
    for row in rows:
        status = row["status"] + (" (partial)" if row.get("partial") else "")
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.get("started") or 0)) if row.get("started") else "-"
        lines.append(f"{when:<16} {status:<20} {row['task']:<42} {row['question'][:70]}")
    return "\n".join([*lines, f"python dr_runner.py status {rows[-1]['task']}"])


def trace(folder: RunFolder, language: str) -> list[str]:
    """The story of a run: its events, one a line, with the plan's revisions."""
    lines: list[str] = []
    start: float | None = None
    for event in events.read(folder.events):
        at, kind = event.get("ts"), event.get("type")
        if isinstance(at, bool) or not isinstance(at, (int, float)) or not isinstance(kind, str):
            continue  # no event of ours
        start = at if start is None else start
        facts = ", ".join(f"{k} {_short(_told(v))}" for k, v in event.items() if k not in ("ts", "type") and v != "")
        lines.append(f"{at - start:8.2f} s  {kind:<17} {facts}")
    return [*lines, next_step(folder, run_folder.read_record(folder), _counts(folder))]


def _told(value: Any) -> str:
    """A fact of an event as a person writes it: steps by their ids, lists with commas."""
    if isinstance(value, dict):
        return str(value["id"]) if "id" in value else ", ".join(f"{k}: {_told(v)}" for k, v in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(_told(v) for v in value) or "-"
    return str(value)


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 120 else text[:119] + "…"
