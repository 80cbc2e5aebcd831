"""Findings of a run -> the head of its page: how far it came, in a word, a mark, a sentence and a bar. Pure."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from dr import report_parts
from dr.contract import State
from dr.findings import Findings
from dr.words import has, say

_BUDGETS = ("step_budget", "replan_budget", "time_budget", "token_budget")
MARKS = {
    **{"completed": "✓", "partial": "◐", "exhausted": "⧗", "failed": "✕"},
    **{"interrupted": "❚❚", "running": "▸", "planned": "○"},
}


def kind(findings: Findings) -> str:
    """What a reader has to know first: completed, partial, exhausted, failed, interrupted, running or planned."""
    if findings.status in ("running", "planned"):
        return findings.status
    extent = report_parts.extent(findings)
    if extent == "unfinished":
        return "interrupted"
    return "exhausted" if extent == "partial" and findings.reason in _BUDGETS else extent


def why(findings: Findings) -> str:
    """One sentence under the banner's word."""
    lang, of_kind, reason = findings.language, kind(findings), findings.reason
    key = f"reason_{reason}"
    words = say(lang, key) if has(key) else reason or say(lang, "why_unknown")
    if of_kind in ("exhausted", "failed"):
        return say(lang, f"page_why_{of_kind}", reason=words)
    settled = sum(node.state.settled for node in findings.nodes)
    return say(lang, f"page_why_{of_kind}", settled=settled, **findings.coverage)


def states(findings: Findings) -> list[dict[str, Any]]:
    """Counts of nodes for the bar of progress: the order is that of a look from left to right."""
    order = (State.DONE, State.FAILED, State.SKIPPED, State.RUNNING, State.PENDING)
    counts = {s: sum(node.state is s for node in findings.nodes) for s in order}
    words = {s: say(findings.language, f"state_{s.value}") for s in order}
    return [{"name": s.value, "count": count, "words": words[s]} for s, count in counts.items() if count]


def facts(findings: Findings, now: float) -> list[tuple[str, str]]:
    """Name and value of what a reader may want to know next. now: epoch seconds, for a run that is on."""
    lang, found = findings.language, []
    if findings.started is not None:
        found.append((say(lang, "page_started"), clock_time(findings.started)))
    seconds = findings.seconds
    if kind(findings) == "running" and findings.started is not None and now > findings.started:
        seconds = now - findings.started
    if seconds is not None:
        found.append((say(lang, "page_took"), duration(lang, seconds)))
    if findings.mind:
        key = f"page_mind_{findings.mind}"
        found.append((say(lang, "page_mind"), say(lang, key) if has(key) else findings.mind))
    if len(findings.rounds) > 1:
        found.append((say(lang, "page_deepenings"), str(len(findings.rounds) - 1)))
    if findings.revisions:
        found.append((say(lang, "page_revisions"), str(len(findings.revisions))))
    if tokens := report_parts.token_count(findings.usage):
        found.append((say(lang, "page_tokens"), f"{tokens:,}"))
    return found


def duration(lang: str, seconds: float) -> str:
    if seconds < 60:
        return say(lang, "page_seconds", seconds=f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}")
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return say(lang, "page_hours", hours=hours, minutes=minutes)
    return say(lang, "page_minutes", minutes=minutes, seconds=rest)


def clock_time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return ""
