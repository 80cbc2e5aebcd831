"""Events of a run -> its attempts as rows on one axis of time. Pure: events.jsonl was read before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from dr.markdown import plain

_IDLE = 0.08  # share of the busy time from which on a gap, in which nothing ran, is drawn shorter
_GAP = 0.03  # share of the axis that such a gap takes


@dataclass(frozen=True)
class Attempt:
    """outcome: done, retry, failed, ended, interrupted; "" while it runs. Times in epoch seconds."""

    node: str
    number: int
    start: float
    end: float | None = None
    outcome: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Bar:
    """An attempt and where it lies on the axis, in per cent of it."""

    attempt: Attempt
    left: float
    width: float


@dataclass(frozen=True)
class Timeline:
    """gaps: where, in per cent, idle time was drawn shorter."""

    bars: tuple[Bar, ...] = ()
    gaps: tuple[float, ...] = ()
    start: float | None = None
    end: float | None = None


def attempts(
    events: Iterable[Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Attempt]:
    """In the order in which they started. records: node -> its process.json, for what a killed runner did not log."""
    found: dict[tuple[str, int], Attempt] = {}
    newest: dict[str, int] = {}
    for event in events:
        node, number, ts = str(event.get("node") or ""), event.get("attempt"), event.get("ts")
        if not node or not isinstance(ts, (int, float)):
            continue
        if event.get("type") == "attempt.start" and isinstance(number, int):
            found[node, number], newest[node] = Attempt(node, number, float(ts)), number
        elif event.get("type") == "attempt.end":
            number = number if isinstance(number, int) else newest.get(node, 1)
            seconds = event.get("seconds")
            took = float(seconds) if isinstance(seconds, (int, float)) else 0.0
            began = found.get((node, number)) or Attempt(node, number, float(ts) - took)
            found[node, number] = replace(
                began,
                end=began.start + took if took else float(ts),
                outcome=plain(str(event.get("outcome") or "")),
                reason=plain(str(event.get("reason") or "")),
            )
    for node, record in (records or {}).items():
        found.update(_recorded(node, record, found))
    return sorted(found.values(), key=lambda a: a.start)


def _recorded(
    node: str, record: Mapping[str, Any], found: Mapping[tuple[str, int], Attempt]
) -> dict[tuple[str, int], Attempt]:
    """What process.json says of an attempt whose start or end was never logged."""
    number, start, end = record.get("attempt"), record.get("start"), record.get("end")
    if not isinstance(number, int) or number < 1 or not isinstance(start, (int, float)):
        return {}
    known = found.get((node, number))
    if known is not None and (known.outcome or not record.get("outcome")):
        return {}
    return {
        (node, number): Attempt(
            node,
            number,
            float(start),
            float(end) if isinstance(end, (int, float)) else None,
            plain(str(record.get("outcome") or "")),
            plain(str(record.get("error") or "")),
        )
    }


def arrange(rows: Sequence[Attempt], now: float | None = None) -> Timeline:
    """The rows on one axis. now: until when an attempt without an end has run; None: until the last known moment."""
    if not rows:
        return Timeline()
    known = [t for a in rows for t in (a.start, a.end) if t is not None]
    latest = max(known) if now is None else max(*known, now)
    spans = [(a.start, max(a.start, a.end if a.end is not None else latest)) for a in rows]
    busy = _merged(spans)
    total = sum(end - start for start, end in busy) or 1.0
    pieces: list[tuple[float, float, float]] = []  # start, end, length on the axis
    gaps: list[tuple[float, float]] = []
    for number, (start, end) in enumerate(busy):
        if number:
            before = busy[number - 1][1]
            idle = start - before
            short = idle > _IDLE * total
            if short:
                gaps.append((before, start))
            pieces.append((before, start, _GAP * total if short else idle))
        pieces.append((start, end, end - start))
    length = sum(piece[2] for piece in pieces) or 1.0
    ends = [end for _, end, _ in pieces]
    before_piece = [0.0, *accumulate(shown for _, _, shown in pieces)]

    def place(moment: float) -> float:
        number = bisect_left(ends, moment)
        if number == len(pieces):
            return 100.0
        start, end, shown = pieces[number]
        part = shown * (moment - start) / (end - start) if end > start else 0.0
        return 100 * (before_piece[number] + part) / length

    bars = tuple(
        Bar(a, round(place(start), 2), round(max(place(end) - place(start), 0.0), 2))
        for a, (start, end) in zip(rows, spans, strict=True)
    )
    marks = tuple(round((place(start) + place(end)) / 2, 2) for start, end in gaps)
    return Timeline(bars, marks, busy[0][0], busy[-1][1])


def _merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
