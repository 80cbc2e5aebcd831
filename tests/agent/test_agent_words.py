"""dr/agent/words.py: both languages say the same things with the same facts, and every key is used."""

from __future__ import annotations

import re
import string

import agent_makers as make
import pytest

from dr.agent import words


def facts(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("key", list(words.WORDS))
def test_both_languages_have_the_same_facts(key: str) -> None:
    chinese, english = words.WORDS[key]
    assert facts(chinese) == facts(english) and chinese and english
    assert not re.search(r"[\u3400-\u9fff]", english)


def test_every_key_is_used() -> None:
    package = make.PROJECT / "dr" / "agent"
    code = "\n".join(p.read_text(encoding="utf-8") for p in package.rglob("*.py") if p.name != "words.py")
    assert not [key for key in words.WORDS if not re.search(rf"[\"']{key}[\"']", code)]
