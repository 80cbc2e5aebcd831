"""Parts of the report that hold no running text: what is open, references, how it was made, result.json, README.md."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dr.citations import CONTRADICTED, NOT_CHECKED, SUPPORTED
from dr.contract import State
from dr.findings import Findings, NodeFinding
from dr.gaps import open_terms
from dr.markdown import bullets, code, inline, plain, quote
from dr.references import Reference
from dr.words import has, say

_BUDGETS = ("step_budget", "replan_budget", "time_budget", "token_budget")


def extent(findings: Findings) -> str:
    """How far the run came, as its title tells: completed, partial, failed or unfinished."""
    if findings.status == "failed" or (findings.status == "completed" and not findings.answered):
        return "failed"
    if findings.status != "completed":
        unsettled = not all(node.state.settled for node in findings.nodes)
        if findings.status or unsettled:
            return "unfinished"
        if not findings.answered:
            return "failed"
    whole = len(findings.answered) == len(findings.nodes) and findings.reason not in _BUDGETS
    return "completed" if whole else "partial"


def place(text: str, root: Path | None = None) -> str:
    """The one way a source's place is written: a URL, or an absolute path, under `root` as `<root>/...`."""
    if root is None or "://" in text:
        return text
    for base in dict.fromkeys((str(root), str(root.resolve()))):
        base = base.rstrip("\\/")
        if text == base or text.startswith((f"{base}/", f"{base}\\")):
            return "<root>" + text[len(base) :].replace("\\", "/")
    return text


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, ending at a paragraph if one ends there, never inside a citation mark."""
    short = text[:limit]
    at = short.rfind("\n\n")
    short = short[:at] if at > 0 else short
    return re.sub("\ue000\\d*\\Z", "", short).rstrip()


def reservation(lang: str, reservation_code: str) -> str:
    key = f"reservation_{reservation_code}"
    return say(lang, key) if has(key) else say(lang, "reservation_unknown", code=reservation_code)


# -- what is open -----------------------------------------------------------------------------------------------------


def what_is_open(findings: Findings) -> str:
    """Coverage, every node without an answer and why, terms of the question that no conclusion mentions."""
    lang, coverage = findings.language, findings.coverage
    lines = [say(lang, "coverage", **coverage)]
    unfinished = sum(not node.state.settled for node in findings.nodes)
    if unfinished:
        lines[0] += " " + say(lang, "coverage_unfinished", count=unfinished)
    items = [_open_node(findings, node) for node in findings.nodes if not node.answered]
    if terms := missing_terms(findings):
        items.append(say(lang, "open_terms", terms=terms))
    if findings.reason and findings.reason != "goal_met":
        items.append(say(lang, "open_why_ended", reason=_coded(lang, "reason", findings.reason)))
    if not items:
        items.append(say(lang, "open_nothing"))
    return "\n\n".join([*lines, bullets(items)])


def missing_terms(findings: Findings, passages: bool = False) -> str:
    """The question's terms that no conclusion mentions; passages: nor any passage that was cited."""
    cited = [node.cited for node in findings.answered if node.cited]
    said = [text for node in cited for text in node.texts]
    if passages:
        said += [source.passage for node in cited for source in node.listed]
    terms = open_terms(findings.question, said) if said else []
    return inline(say(findings.language, "comma_list").join(terms))


def _open_node(findings: Findings, node: NodeFinding) -> str:
    lang = findings.language
    return say(
        lang,
        "open_node",
        node=inline(node.id),
        state=say(lang, f"state_{node.state.value}"),
        attempts=node.attempts,
        question=inline(node.sub_question),
        reason=inline(why(findings, node)),
    )


def why(findings: Findings, node: NodeFinding) -> str:
    """Why a node has no answer."""
    lang, error = findings.language, node.error or ""
    states = {other.id: other for other in findings.nodes}
    parents = [p for p in node.depends_on if p in states and not states[p].answered]
    no_parent = parents and len(parents) == len([p for p in node.depends_on if p in states])
    if node.state is State.SKIPPED and (error == "no_parent_answered" or (not error and no_parent)):
        return say(lang, "why_parents", nodes=", ".join(parents))
    if error:
        return _coded(lang, "why", error, _coded(lang, "reason", error))
    if node.state is State.SKIPPED:
        return say(lang, "why_skipped")
    return say(lang, "why_unknown" if node.state.settled else "why_not_reached")


def _coded(lang: str, family: str, text: str, otherwise: str | None = None) -> str:
    """The words for a code; a text that is no code, as it is."""
    key = f"{family}_{text}"
    if has(key):
        return say(lang, key)
    return text if otherwise is None else otherwise


# -- references -------------------------------------------------------------------------------------------------------


def counts(lang: str, references: Sequence[Reference], dropped: Collection[str]) -> str:
    """How many references passed the check, and how many citations led nowhere."""
    if not references:
        lines = [say(lang, "reference_none")]
    else:
        number = {check: sum(r.check == check for r in references) for check in (SUPPORTED, CONTRADICTED, NOT_CHECKED)}
        facts = {"supported": number[SUPPORTED], "contradicted": number[CONTRADICTED]}
        lines = [say(lang, "reference_counts", count=len(references), **facts, unchecked=number[NOT_CHECKED])]
    if dropped:
        lines.append(say(lang, "reference_dropped", count=len(dropped)))
    return "\n\n".join(lines)


def where(lang: str, locator: Mapping[str, str]) -> str:
    """A locator in words: `p. 3`."""
    known = {"page", "line", "section"}
    return ", ".join(
        say(lang, f"reference_{k}", value=v) if k in known else say(lang, "reference_other", name=k, value=v)
        for k, v in locator.items()
    )


def reference(lang: str, found: Reference, root: Path | None) -> str:
    """One reference: title, place and where in it, the quoted passage, its check."""
    shown = place(found.place, root)
    is_url = re.fullmatch(r"https?://[^\s<>]+", shown)
    head = f"**[{found.n}]** {inline(plain(found.title))}".rstrip()
    if shown:
        head += " — " + (f"<{shown}>" if is_url else code(shown))
    if found.locator:
        head += ", " + inline(plain(where(lang, found.locator)))
    check, reason = say(lang, f"check_{found.check}"), inline(plain(found.reason))
    said = say(lang, "reference_check_why", check=check, reason=reason) if reason else ""
    tail = [said or say(lang, "reference_check", check=check)]
    if found.nodes:
        tail.append(say(lang, "reference_nodes", nodes=inline(", ".join(found.nodes))))
    return "\n\n".join(part for part in (head, quote(found.quote or found.passage), " · ".join(tail)) if part)


# -- how it was made --------------------------------------------------------------------------------------------------


def how_made(findings: Findings) -> str:
    """Mind, agent, rounds, revisions, seconds, tokens."""
    lang, none = findings.language, say(findings.language, "none")
    offline = findings.mind == "offline"
    lines = [say(lang, "made_mind_offline") if offline else say(lang, "made_mind", mind=inline(findings.mind) or none)]
    lines.append(say(lang, "made_agent", agent=code(findings.agent) if findings.agent else none))
    if not findings.own_agent:
        lines.append(say(lang, "made_foreign_agent"))
    lines.append(say(lang, "made_rounds", count=len(findings.rounds)))
    lines.append(say(lang, "made_revisions", count=len(findings.revisions)))
    for revision in findings.revisions:
        named = {k: ", ".join(map(str, revision.get(k) or ())) or none for k in ("removed", "added", "revised")}
        text = say(lang, "made_revision", revision=revision.get("revision", "?"), **named)
        lines.append(inline(plain(text)))
    if findings.seconds is not None:
        lines.append(say(lang, "made_seconds", seconds=f"{findings.seconds:.1f}"))
    tokens = token_count(findings.usage)
    if tokens is not None:
        lines.append(say(lang, "made_tokens", tokens=f"{tokens:,}"))
    else:
        lines.append(say(lang, "made_no_tokens" if offline else "made_unknown_tokens"))
    if findings.started is not None and findings.ended is not None:
        lines.append(say(lang, "made_times", started=_time(findings.started), ended=_time(findings.ended)))
    lines += [inline(note) for note in findings.notes]
    return bullets(lines)


def token_count(usage: Mapping[str, Any]) -> int | None:
    """Tokens of all model calls, whatever the provider calls them; None when nobody counted."""
    for names in (("total_tokens",), ("tokens",), ("prompt_tokens", "completion_tokens"), ("input", "output")):
        found = [usage[name] for name in names if isinstance(usage.get(name), (int, float))]
        if found:
            return int(sum(found)) or None
    return None


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


# -- for programs, and for who opens the folder -----------------------------------------------------------------------


def result(
    findings: Findings,
    answer: str | None,
    conclusions: Mapping[str, str],
    references: Sequence[Reference],
    conflicts: Sequence[Mapping[str, Any]],
    root: Path | None,
) -> dict[str, Any]:
    """result.json; docs/format-result.md says what each key is."""
    return {
        "task": findings.task,
        "status": findings.status,
        "reason": findings.reason,
        "question": findings.question,
        "language": findings.language,
        "mind": findings.mind,
        "answer": answer,
        "coverage": findings.coverage,
        "nodes": [
            {
                "id": node.id,
                "type": node.type,
                "sub_question": node.sub_question,
                "state": node.state.value,
                "attempts": node.attempts,
                "seconds": node.seconds,
                "conclusion": conclusions.get(node.id),
                "reservation": list(node.reservation),
                "error": None if node.answered else plain(why(findings, node)),
            }
            for node in findings.nodes
        ],
        "references": [
            {
                "n": found.n,
                "title": found.title,
                ("url" if "://" in found.place else "path"): place(found.place, root),
                "locator": dict(found.locator),
                "quote": found.quote,
                "check": found.check,
            }
            for found in references
        ],
        "conflicts": list(conflicts),
        "usage": dict(findings.usage),
        "report": place(str(findings.folder.report), root),
    }
