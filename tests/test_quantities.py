"""dr/quantities.py: the same number in any writing is the same; another number never is."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dr.quantities import missing, quantities


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("It cost 1,000 euros.", "It cost 1000 euros."),
        ("It is 3.20 m.", "It is 3.2 m."),
        ("12 345 people".replace(" ", "\u00a0", 1), "12345 people"),
        ("about 3 million", "2,987,654 people"),
        ("3.2 km", "3.1987 km"),
        ("15 %", "15 percent"),
        ("25%", "a share of 0.25"),
        ("百分之五", "5%"),
        ("三个人", "3个人"),
        ("第三章", "第3章"),
        ("二十三岁", "23岁"),
        ("二〇〇四年", "2004年"),
        ("3万人", "30000人"),
        ("三千万元", "30,000,000元"),
        ("1.4亿", "140 million"),
        ("2004年3月5日", "March 5, 2004"),
        ("5 March 2004", "2004-03-05"),
        ("１９９８年", "1998年"),
        ("the 21st century", "21世纪"),
        ("1990s", "1990年代"),
        ("GPT-4", "the model GPT 4"),
        ("twenty-three ships", "23 ships"),
        ("five million", "5,000,000"),
        ("大约300万", "2,987,654"),
        ("no numbers here", "none"),
        ("一些人一起统一了", "没有数字"),
        ("1. First item", "no number"),
        ("It says so [local-3].", "no number"),
    ],
)
def test_stands(sentence: str, text: str) -> None:
    assert missing(sentence, text) == []


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("1,000 euros", "10,000 euros"),
        ("3.5 million", "3.5 billion"),
        ("15 %", "12 percent"),
        ("三个人", "五个人"),
        ("3万人", "3000人"),
        ("35亿元", "53亿元"),
        ("1998年", "1999年"),
        ("March 5", "April 5"),
        ("GPT-4", "GPT-3 and 4.5 others"),
        ("-5 degrees", "5 degrees"),
        ("about 300", "450"),
        ("12", "1.2"),
    ],
)
def test_does_not_stand(sentence: str, text: str) -> None:
    assert missing(sentence, text)


@given(st.integers(0, 10**12))
def test_separators_never_matter(number: int) -> None:
    assert missing(f"They count {number:,} of them", f"There are {number} there") == []
    if number > 20:
        assert missing(f"They count {number + 1} of them", f"There are {number:,} there")


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert all(isinstance(q.value, Decimal) for q in quantities(text))
