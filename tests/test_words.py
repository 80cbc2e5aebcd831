"""dr/words.py: both languages say the same things with the same facts."""

from __future__ import annotations

import re
import string

import pytest

from dr import words


def _facts(text: str) -> list[str]:
    return sorted({name for _, name, _, _ in string.Formatter().parse(text) if name is not None})


@pytest.mark.parametrize("key", list(words.WORDS))
def test_both_languages_have_the_same_facts(key: str) -> None:
    chinese, english = words.WORDS[key]
    assert _facts(chinese) == _facts(english)
    assert all(re.fullmatch(r"[a-z_]+", name) for name in _facts(english))


@pytest.mark.parametrize("key", list(words.WORDS))
def test_both_languages_say_something_in_their_script(key: str) -> None:
    chinese, english = words.WORDS[key]
    assert chinese.strip() and english.strip()
    assert not re.search(r"[\u3400-\u9fff]", english), "the English side holds Chinese"
    letters = re.sub(r"\{[a-z_]+\}", "", english)
    if re.search(r"[A-Za-z]{3}", letters):
        assert re.search(r"[\u3400-\u9fff]", chinese), "the Chinese side was not translated"


def test_says_in_the_language_asked_for() -> None:
    facts = {"nodes": 12, "answered": 9, "failed": 2, "skipped": 1}
    assert words.say("en", "coverage", **facts) == "9 of 12 nodes answered, 2 failed, 1 skipped."
    assert words.say("zh", "coverage", **facts) == "12 个节点中 9 个有结论，2 个失败，1 个被跳过。"


def test_unknown_key_missing_fact_and_unknown_language_are_errors() -> None:
    with pytest.raises(KeyError):
        words.say("en", "no_such_key")
    with pytest.raises(KeyError):
        words.say("en", "coverage", nodes=1)
    with pytest.raises(ValueError):
        words.say("fr", "none")


def test_a_fact_with_braces_is_not_read_as_a_format() -> None:
    assert words.say("en", "title_completed", question="what is {x}?") == "what is {x}?"


def test_table_is_known_by_key() -> None:
    assert words.has("coverage") and not words.has("no_such_key")
