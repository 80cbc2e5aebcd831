"""sop/<name>.<language>.md and facts -> the text of a prompt; source text -> the same, fenced as data. Reads sop/."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from string import Template

from dr.errors import UsageError
from dr.layout import HOME

# What is ours to write: a citation id, the marks of a conclusion and of a transcript.
_OURS = re.compile(
    r"[\[【［]\s*((?:rag|web|code|local|mem)-\d+|结论|ROUND END)\s*[\]】］]|<<<+|>>>+|</?tool_(?:call|use|result)s?>",
    re.I,
)


def prompt(name: str, lang: str, **facts: object) -> str:
    """The page `name` with every `$fact` filled in. What a fact holds is never looked at for further ones."""
    return Template(page(name, lang)).substitute({key: str(value) for key, value in facts.items()}).strip()


@cache
def page(name: str, lang: str) -> str:
    path = HOME / "sop" / f"{name}.{lang}.md"
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"read the prompt {path}", str(error), "restore the sop/ folder of this program") from error


def fence(texts: Sequence[str]) -> str:
    """A word that stands in none of `texts`, since it is made from all of them; the same for the same texts."""
    return "DATA-" + hashlib.sha256("\x00".join(texts).encode("utf-8", "replace")).hexdigest()[:10]


def fenced(text: str, word: str) -> str:
    """`text` between two lines that it cannot write itself."""
    return f"<<<{word}\n{text}\n{word}>>>"


def material(parts: Sequence[tuple[str, str]], word: str) -> str:
    """(heading, text) of each part: the heading as it is, the text inside a fence of that word."""
    return "\n\n".join(f"{heading}\n{fenced(text, word)}".lstrip() for heading, text in parts)


def harmless(text: str) -> str:
    """Source text in which nothing looks like a citation id, a mark or a tool call of ours; else word by word."""
    return _OURS.sub(lambda m: f"({m[1]})" if m[1] else "·", text)
