"""dr/timeline.py: attempts from events and records, and where they lie on the axis."""

from __future__ import annotations

from typing import Any

from dr.timeline import Attempt, arrange, attempts


def start(ts: float, node: str, number: int = 1) -> dict[str, Any]:
    return {"ts": ts, "type": "attempt.start", "node": node, "attempt": number}


def end(ts: float, node: str, outcome: str, number: int = 1, seconds: float = 0.0, reason: str = "") -> dict[str, Any]:
    facts = {"node": node, "attempt": number, "outcome": outcome, "seconds": seconds, "reason": reason}
    return {"ts": ts, "type": "attempt.end", **facts}


def test_each_attempt_is_a_row_in_the_order_of_starts() -> None:
    events = [
        start(2, "B"),
        start(1, "A"),
        end(3, "A", "retry", reason="empty"),
        start(4, "A", 2),
        end(6, "A", "done", 2),
    ]
    assert attempts(events) == [
        Attempt("A", 1, 1, 3, "retry", "empty"),
        Attempt("B", 1, 2),
        Attempt("A", 2, 4, 6, "done"),
    ]


def test_an_end_that_was_noticed_late_counts_from_the_record() -> None:
    assert attempts([start(1, "A"), end(900, "A", "done", seconds=2.5)]) == [Attempt("A", 1, 1, 3.5, "done")]


def test_what_was_not_logged_comes_from_the_record() -> None:
    record = {"attempt": 1, "start": 5.0, "end": 7.0, "outcome": "failed", "error": "gone"}
    skipped = {"attempt": 0, "start": None, "end": None, "outcome": "skipped"}
    events = [start(5, "A")]
    assert attempts(events, {"A": record, "B": skipped}) == [Attempt("A", 1, 5, 7, "failed", "gone")]


def test_damaged_events_are_passed_over() -> None:
    assert attempts([{"type": "attempt.start"}, {"ts": "x", "node": "A"}, {"ts": 1, "type": "edit", "node": "A"}]) == []
    assert arrange([]).bars == ()


def test_bars_lie_on_one_axis() -> None:
    line = arrange([Attempt("A", 1, 0, 5, "done"), Attempt("B", 1, 5, 10, "done")])
    assert [(b.left, b.width) for b in line.bars] == [(0, 50), (50, 50)]
    assert line.gaps == () and (line.start, line.end) == (0, 10)


def test_idle_time_is_drawn_shorter() -> None:
    day = 86_400
    line = arrange([Attempt("A", 1, 0, 50, "done"), Attempt("B", 1, day, day + 50, "done")])
    first, second = line.bars
    assert first.width == second.width and first.width > 45
    assert len(line.gaps) == 1 and first.width < line.gaps[0] < second.left


def test_an_attempt_that_runs_reaches_until_now() -> None:
    rows = [Attempt("A", 1, 0, 4, "done"), Attempt("B", 1, 2)]
    assert arrange(rows, now=8).bars[1].width == 75
    assert arrange(rows).bars[1].width == 50
