"""docs/format-run.md and docs/format-result.md say what is written, key by key."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from dr.contract import Passage
from dr.findings import collect
from dr.layout import NodeFolder
from dr.node_folder import ProcessRecord
from dr.report import write
from dr.run_folder import RunRecord
from tests.run_folders import node, passage, run_folder

PROJECT = Path(__file__).resolve().parent.parent
EITHER = {"url", "path"}  # a place is one of the two


def documented(page: str, heading: str) -> list[str]:
    """First column of the table under a heading."""
    text = (PROJECT / "docs" / page).read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return re.findall(r"^\| `([^`]+)` \|", parts[parts.index(heading) + 1], re.MULTILINE)


def test_run_json() -> None:
    assert set(documented("format-run.md", "run.json")) == {f.name for f in fields(RunRecord)}


def test_process_json() -> None:
    assert set(documented("format-run.md", "process.json")) == {f.name for f in fields(ProcessRecord)}


def test_evidence() -> None:
    keys = set(Passage("[local-1]", "local", "/a", "", "").to_dict()) | EITHER
    assert set(documented("format-run.md", "evidence.jsonl")) == keys


def test_node_files_are_those_of_the_layout() -> None:
    folder = NodeFolder(Path("N1"))
    names = {n for n, value in vars(NodeFolder).items() if isinstance(value, property)} - {"node_id", "task_argument"}
    paths = {getattr(folder, name).name for name in names} - {"reply.txt"}
    assert set(documented("format-run.md", "The node folder")) == paths


def _logged() -> set[str]:
    """Event types that the code logs or emits, read from its text."""
    found = set()
    for path in (PROJECT / "dr").glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
                continue
            first = call.args[0]
            if call.func.attr in ("log", "_emit") and isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.add(first.value)
    return found


def test_events() -> None:
    assert set(documented("format-run.md", "events.jsonl")) == _logged()


def _keys(value: Any, prefix: str = "") -> set[str]:
    """All keys below, as `nodes[].id` and `coverage.nodes`; what is inside a locator or usage is free."""
    if isinstance(value, list):
        return {k for entry in value for k in _keys(entry, prefix + "[]")}
    if not isinstance(value, dict) or re.search(r"locator$|usage$|conflicts\[\]$", prefix):
        return set()
    names = {f"{prefix}.{k}" if prefix else k for k in value}
    return names | {k for key, v in value.items() for k in _keys(v, f"{prefix}.{key}" if prefix else key)}


def test_result_and_conflicts(tmp_path: Path) -> None:
    text = 'It was so. [local-1] Or so. [web-2]\n\n来源：/a.pdf, p. 1 — "so" [local-1]\n'
    text += '来源：https://e.org — "so" [web-2]\n'
    evidence = [passage(1, "/a.pdf", "so", page=1), passage(2, "https://e.org", "so", kind="web")]
    nodes = {"N1": node(conclusion=text, evidence=evidence), "N2": node("Later?", state="failed")}
    values = [{"value": v, "node": "N1", "citation": "local-1", "sentence": "So."} for v in ("1", "2")]
    made = write(collect(run_folder(tmp_path, nodes)), conflicts=[{"quantity": "q", "values": values}])
    assert set(documented("format-result.md", "result.json")) == _keys(made.result)
    assert set(documented("format-result.md", "conflicts.json")) == _keys(made.conflicts[0])
