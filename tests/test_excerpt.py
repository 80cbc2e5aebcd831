"""dr/excerpt.py: the quoted words are found and marked in their passage."""

from __future__ import annotations

import pytest

from dr.excerpt import excerpt, flowing

BEFORE, AFTER = "Earlier it was mild. " * 60, " Later it was not." * 60


def marked(passage: str, quote: str) -> list[str]:
    return [part.text for part in excerpt(passage, quote).near if part.marked]


def test_a_quote_is_marked_in_its_surroundings() -> None:
    found = excerpt(BEFORE + "The plant delivered 58.6 GWh." + AFTER, "The plant delivered 58.6 GWh.")
    assert [p.text for p in found.near if p.marked] == ["The plant delivered 58.6 GWh."]
    near, wide = ("".join(p.text for p in parts) for parts in (found.near, found.wide))
    assert near.startswith("… ") and near.endswith(" …") and 300 < len(near) < 700 < len(wide)


@pytest.mark.parametrize(
    ("passage", "quote", "wanted"),
    [
        ("It was\n58 GWh of heat.", "It was 58 GWh of heat.", ["It was 58 GWh of heat."]),
        ("热泵站共供热\n58.6吉瓦时。", "热泵站共供热58.6吉瓦时。", ["热泵站共供热 58.6吉瓦时。"]),
        ("the “heat pumps” ran", 'The "heat pumps" ran', ["the “heat pumps” ran"]),
        ("a deliv-\nered b", "delivered", ["deliv- ered"]),
        (
            "One is first. Two follows. Three is last.",
            "One is first. … Three is last.",
            ["One is first.", "Three is last."],
        ),
        ("Nothing of it.", "Something else.", []),
        ("Nothing of it.", "", []),
    ],
)
def test_what_is_marked(passage: str, quote: str, wanted: list[str]) -> None:
    assert marked(passage, quote) == wanted


def test_a_quote_that_is_not_there_leaves_the_beginning() -> None:
    found = excerpt(BEFORE, "Quite another thing.")
    assert not found.found and "".join(p.text for p in found.near).startswith("Earlier it was mild.")


def test_a_short_passage_is_shown_whole_and_no_passage_not_at_all() -> None:
    found = excerpt("Short. It was 5.", "It was 5.")
    assert "".join(p.text for p in found.near) == "Short. It was 5." and found.wide == ()
    assert excerpt(" ", "x").near == ()


def test_broken_lines_flow_and_empty_lines_stay() -> None:
    assert flowing("a\nb\n\n \nc") == "a b\n\nc"
    assert flowing("热泵\n站") == "热泵站"
