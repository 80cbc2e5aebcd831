"""dr/agent/tools.py: ranked passages, numbered things, a log entry for each use."""

from __future__ import annotations

import pytest

from dr.agent import tools
from dr.agent.tools import Toolbox, find_item, items_in
from dr.contract import Passage


def passage(text: str, section: str = "") -> Passage:
    return Passage("", "local", "/a.txt", "00", "A", {"section": section} if section else {}, text)


def keys(text: str) -> list[tuple[str, str]]:
    return [key for key, _, _ in items_in(text)]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("see Table 3", ("table", "3")),
        ("Fig. 2.1 shows", ("figure", "2.1")),
        ("by Eq. (12)", ("equation", "12")),
        ("第3章", ("chapter", "3")),
        ("第三章", ("chapter", "3")),
        ("第十二条规定", ("article", "12")),
        ("表３", ("table", "3")),
        ("如图（4）所示", ("figure", "4")),
        ("公式(5)", ("equation", "5")),
        ("Chapter 3", ("chapter", "3")),
    ],
)
def test_numbered_things_are_recognised(text: str, key: tuple[str, str]) -> None:
    assert keys(text) == [key]


def test_words_that_only_look_alike_are_not() -> None:
    assert keys("a stable 3 and vegetables 4, 代表3个人") == [] or keys("a stable 3 and vegetables 4") == []


def test_captions_come_before_mentions() -> None:
    mention = passage("As Table 3 shows, prices rose.")
    caption = passage("Table 3: Prices by year\n1990 | 5")
    chapter = passage("text of the chapter", "第三章 价格")
    other = passage("Table 33: Others")
    assert find_item("Table 3", [mention, other, caption]) == [caption, mention]
    assert find_item("Chapter 3", [mention, chapter]) == [chapter]
    assert find_item("Table 9", [mention, caption]) == []


def test_every_use_is_logged_with_its_time() -> None:
    ticks = iter([1.0, 1.25, 2.0, 2.001])
    box = Toolbox([passage("The harbour was opened in 1904.")], clock=lambda: next(ticks))
    assert box.rag_search("When was the harbour opened?")[0].text.startswith("The harbour")
    box.query_item("Table 1")
    assert box.take_logs() == [
        {"tool": "rag_search", "status": "success", "elapsed_ms": 250, "query": "When was the harbour opened?"},
        {"tool": "query_item", "status": "success", "elapsed_ms": 1, "query": "Table 1"},
    ]
    assert box.take_logs() == []


def test_a_failing_tool_is_logged_and_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(identifier: str, passages: list[Passage]) -> list[Passage]:
        raise ValueError(identifier)

    monkeypatch.setattr(tools, "find_item", broken)
    box = Toolbox([])
    with pytest.raises(ValueError, match="Table 1"):
        box.query_item("Table 1")
    assert box.take_logs()[0]["status"] == "error"
