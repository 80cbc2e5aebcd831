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
        ("The filter is cleaned every 30 days in summer.", "The filter is cleaned every 90 days in winter."),
        ("水温高于12度时，滤网每90天清洗一次。", "水温低于12度时，滤网每180天清洗一次。"),
        ("水温在12度以上时滤网每90天清洗一次。", "水温在12度以下时滤网每180天清洗一次。"),
        ("The pump runs 5 hours a day in May and June.", "The pump runs 9 hours a day in July."),
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
    assert found[0]["quantity"] == "The sea-water intake was closed for … days in 2024"


def test_a_conflict_is_named_in_words_of_its_sentences() -> None:
    (found,) = find(
        [Statement("大坝高52天。", "N1", "a", "/a"), Statement("大坝高58天，由长河院设计。", "N2", "b", "/b")]
    )
    assert found["quantity"] == "大坝高…天"
    assert [v["value"] for v in found["values"]] == ["52 天", "58 天"]
    long = "The old mill at the far end of the lane " + "by the river and the wood " * 5 + "ground {} sacks of rye."
    (found,) = find([Statement(long.format(n), f"N{n}", "a", f"/{n}") for n in (41, 44)])
    assert found["quantity"].startswith("The old mill at the far end") and found["quantity"].endswith("…")
    assert len(found["quantity"]) <= 91


def test_the_unit_of_a_chinese_value_is_one() -> None:
    one, other = "锅炉每41天清洗一次。", "锅炉每44天清洗一次。"
    (found,) = find([Statement(one, "N1", "a", "/a"), Statement(other, "N2", "b", "/b")])
    assert [v["value"] for v in found["values"]] == ["41 天", "44 天"]


def test_one_source_does_not_contradict_itself() -> None:
    assert find([Statement(CLOSED, "N1", "local-1", "/a.pdf"), Statement(RECALLED, "N2", "local-1", "/a.pdf")]) == []
