"""Run folders for tests, written from dicts of files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dr.layout import RunFolder

MARKS = {"done": "✓", "failed": "✗", "skipped": "-", "running": "~", "pending": " "}


def passage(n: int, place: str, text: str, *, kind: str = "local", title: str = "", **locator: Any) -> dict[str, Any]:
    """One line of evidence.jsonl."""
    where = "url" if place.startswith("http") else "path"
    record = {"id": f"[{kind}-{n}]", "kind": kind, where: place, "sha256": "0" * 64, "title": title}
    return {**record, "locator": locator, "text": text}


def node(
    question: str = "What happened?",
    conclusion: str | None = None,
    evidence: Sequence[Mapping[str, Any]] = (),
    *,
    state: str = "done",
    type: str = "LOCAL",
    depends: str = "none",
    process: Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A node for run_folder()."""
    return {
        **{"question": question, "conclusion": conclusion, "evidence": evidence, "state": state, "type": type},
        **{"depends": depends, "process": process, "files": files or {}},
    }


def run_folder(
    temp: Path, nodes: Mapping[str, Mapping[str, Any]], question: str = "What happened in Port Ellery?", **run: Any
) -> RunFolder:
    """temp/dr_t with dag.md, run.json and a folder for each node; `run` are keys of run.json."""
    folder = RunFolder(temp / "temp" / "dr_t")
    folder.path.mkdir(parents=True)
    lines = [f"# DR: {question}", f"ROOT: {question}", "", "## Nodes"]
    lines += [f"- [{i}] {n['type']} | question: {n['question']} | depends: {n['depends']}" for i, n in nodes.items()]
    lines += [f"- [S] SYNTH | question: Everything | depends: {','.join(nodes)}", "", "## Status"]
    lines += [f"{i}: [{MARKS[n['state']]}]" for i, n in nodes.items()]
    folder.dag.write_text("\n".join(lines) + "\n", encoding="utf-8")
    record = {
        **{"format": 1, "task": "t", "question": question, "language": "en", "mind": "offline", "agent": "own"},
        **{"status": "completed", "reason": "goal_met", "settings": {}, "revisions": [], "usage": {}},
        **{"rounds": [{"round": 1, "nodes": list(nodes), "why": ""}], "started": 1000.0, "ended": 1012.5},
    }
    folder.run.write_text(json.dumps({**record, **run}), encoding="utf-8")
    for node_id, facts in nodes.items():
        of_node = folder.node(node_id)
        of_node.path.mkdir()
        outcome = facts["state"] if facts["state"] in ("done", "failed", "skipped") else None
        process = {"argv": [], "attempt": 1, "start": 1000.0, "end": 1002.0, "exit_code": 0, "outcome": outcome}
        of_node.process.write_text(json.dumps({**process, **(facts["process"] or {})}), encoding="utf-8")
        if facts["conclusion"] is not None:
            of_node.conclusion.write_text(facts["conclusion"], encoding="utf-8")
        if facts["evidence"]:
            rows = [json.dumps(dict(record), ensure_ascii=False) for record in facts["evidence"]]
            of_node.evidence.write_text("\n".join(rows) + "\n", encoding="utf-8")
        for name, text in facts["files"].items():
            (of_node.path / name).write_text(text, encoding="utf-8")
    return folder
