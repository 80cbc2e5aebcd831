"""Which sentences contradict each other, and which only differ."""

from __future__ import annotations

import pytest

from dr.conflicts import Statement, clash, find

CLOSED = "The sea-water intake was closed for 37 days in 2024, in three periods between 5 August and 24 September."
RECALLED = (
    "He recalled that in 2024 the sea-water intake was closed for 52 days, and that the boilers had to be started."
)


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        (CLOSED, RECALLED, ("37", "52")),
        ("大坝高52米。", "大坝高58米，由长河院设计。", ("52", "58")),
        ("It has 3 floors and 20 rooms.", "It has 4 floors and 20 rooms.", ("3", "4")),
        ("The bridge is 1,200 metres long.", "The bridge is 1300 metres long.", ("1,200", "1300")),
    ],
)
def test_the_same_thing_with_another_value(one: str, other: str, values: tuple[str, str]) -> None:
    found = clash(one, other)
    assert found is not None
    assert tuple(q.raw.strip() for q in found) == values
    back = clash(other, one)
    assert back is not None
    assert tuple(q.raw.strip() for q in back) == values[::-1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CLOSED, CLOSED),
        (CLOSED, "The sea-water intake of Port Elmsay was closed for 4 days in 2024, all of them in November."),
        ("The plant delivered 58.6 GWh of heat in 2024.", "In a normal year the plant is expected to deliver 74 GWh."),
        ("The bridge is 1,200 metres long.", "The bridge is 1200 metres long."),
        ("The intake was closed for 37 days in 2024.", "The intake was closed for 12 days in 2023."),
        ("Rome has 3 airports.", "Paris has 2 airports."),
        ("The dam is 52 metres high.", "The reservoir holds 32 million cubic metres."),
        ("水库1987年建成。", "大坝高52米。"),
        ("", "It has 3 floors."),
    ],
)
def test_no_contradiction(one: str, other: str) -> None:
    assert clash(one, other) is None


def test_both_sides_are_kept_with_their_sources() -> None:
    statements = [
        Statement(CLOSED, "N1", "local-1", "/a.pdf"),
        Statement(RECALLED, "N2", "local-3", "/b.md"),
        Statement("The intake was closed for 37 days in 2024.", "N2", "local-4", "/c.md"),
    ]
    found = find(statements)
    assert len(found) == 1
    assert [(v["value"], v["node"], v["citation"]) for v in found[0]["values"]] == [
        ("37 days", "N1", "local-1"),
        ("52 days", "N2", "local-3"),
        ("37 days", "N2", "local-4"),
    ]
    assert "intake" in found[0]["quantity"]


def test_one_source_does_not_contradict_itself() -> None:
    assert find([Statement(CLOSED, "N1", "local-1", "/a.pdf"), Statement(RECALLED, "N2", "local-1", "/a.pdf")]) == []
