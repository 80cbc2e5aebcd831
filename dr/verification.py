"""`verify`: a report's checks repeated from its files alone, without network and model; what its sources are now.

Reads the run folder and, where they still exist, the local sources; writes nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

from dr import conflicts, files, findings, report
from dr.citations import CONTRADICTED, NOT_CHECKED, SUPPORTED
from dr.contract import Passage
from dr.errors import FormatError, UsageError
from dr.layout import RunFolder
from dr.words import say

SAME, CHANGED, MISSING = "same", "changed", "missing"


def verify(folder: RunFolder) -> dict[str, Any]:
    """counts of checks, every reference with its check and reason, the state of every local source, and whether the
    report on disk says the same. UsageError when there is no report yet."""
    if not folder.result.exists():
        raise UsageError(
            f"verify task {folder.task}", "there is no report yet", f"python dr_runner.py resume {folder.task}"
        )
    found = findings.collect(folder)
    made = report.build(found, None, conflicts.find(found.statements()))
    counts = Counter(r.check for r in made.references)
    sources = _sources(folder)
    recorded = files.read_json(folder.result)
    return {
        "task": folder.task,
        "supported": counts[SUPPORTED],
        "contradicted": counts[CONTRADICTED],
        "not_checked": counts[NOT_CHECKED],
        "references": [{"n": r.n, "check": r.check, "reason": r.reason, "place": r.place} for r in made.references],
        "sources": sources,
        "conflicts": len(made.conflicts),
        "report_agrees": _checks(recorded) == [[r.n, r.check] for r in made.references],
        "report": str(folder.report),
    }


def _checks(result: Any) -> list[list[Any]]:
    listed = result.get("references") if isinstance(result, dict) else None
    return [[r.get("n"), r.get("check")] for r in listed or () if isinstance(r, dict)]


def _sources(folder: RunFolder) -> dict[str, str]:
    """Local files that nodes cite -> same, changed or missing since they were read."""
    expected: dict[str, str] = {}
    for evidence in sorted(folder.path.glob("*/evidence.jsonl")):
        for record in files.read_lines(evidence):
            try:
                passage = Passage.from_dict(record)
            except (KeyError, TypeError, ValueError, FormatError):
                continue
            if passage.sha256 and "://" not in passage.place:
                expected[passage.place] = passage.sha256
    return {place: _state(Path(place), digest) for place, digest in expected.items()}


def _state(path: Path, digest: str) -> str:
    try:
        return SAME if hashlib.sha256(path.read_bytes()).hexdigest() == digest else CHANGED
    except OSError:
        return MISSING


def text(data: dict[str, Any], lang: str) -> str:
    """What a person reads: counts, then what is not supported, then sources that are no longer what was read."""
    counts = {"count": len(data["references"]), "supported": data["supported"], "contradicted": data["contradicted"]}
    lines = [say(lang, "reference_counts", **counts, unchecked=data["not_checked"])]
    for reference in data["references"]:
        if reference["check"] != SUPPORTED:
            check = say(lang, f"check_{reference['check']}")
            lines.append(f"[{reference['n']}] {check}: {reference['reason']} ({reference['place']})")
    lines += [say(lang, f"source_{state}", place=p) for p, state in data["sources"].items() if state != SAME]
    if not data["report_agrees"]:
        lines.append(say(lang, "verify_differs"))
    return "\n".join([*lines, data["report"]])
