"""What every reader returns: blocks of text with their place in the document. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dr.agent.unreadable import Unreadable


@dataclass(frozen=True)
class Block:
    """A paragraph, list item, table row or stretch of code. group: blocks of different groups share no passage."""

    text: str
    locator: dict[str, Any] = field(default_factory=dict)
    group: object = None


@dataclass(frozen=True)
class Parsed:
    """title: empty when the document names none. notes: parts that could not be read."""

    title: str
    blocks: list[Block]
    notes: list[Unreadable] = field(default_factory=list)


_CJK = "\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
_WIDE_GAP = rf"(?<=[{_CJK}])\n(?=[{_CJK}])"  # a string: its compilation takes 5 ms, which most texts need not pay
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u2010]\n(?=[a-zà-ÿ])")


def join_lines(text: str, hyphens: bool = False) -> str:
    """The lines of one paragraph as one: nothing between CJK characters, else a space; hyphens: undo line-end ones."""
    text = "\n".join(line.strip() for line in text.split("\n"))
    if hyphens:
        text = _HYPHEN.sub("", text)
    if "\n" in text and not text.isascii():
        text = re.sub(_WIDE_GAP, "", text)
    return re.sub(r"[ \t\u00a0]*\n[ \t]*", " ", text).strip()


_ITEM = re.compile(r"\s*(?:[-*•·+]\s+|\(?\d{1,3}[.)、]\s*(?=\D)|[一二三四五六七八九十]+[、．])")
_ENDS = tuple('。！？!?.；;：:…”"』」）)')
_WRAP = 40  # a line shorter than this that ends like a sentence is a line of its own


def paragraphs(lines: list[str], first: int = 1) -> Iterator[tuple[str, int]]:
    """(paragraph, number of its first line) of plain text lines; blank lines, list items and whole lines divide."""
    held: list[str] = []
    start = first
    for number, line in enumerate(lines, first):
        if held and (not line.strip() or _ITEM.match(line) or _is_whole(held[-1], line)):
            yield join_lines("\n".join(held)), start
            held = []
        if line.strip():
            start = start if held else number
            held.append(line)
    if held:
        yield join_lines("\n".join(held)), start


def _is_whole(line: str, following: str) -> bool:
    """Whether `line` ends a paragraph though no blank line follows: one paragraph a line, or a short last line."""
    ended = line.rstrip().endswith(_ENDS)
    return ended and (len(line) < _WRAP or len(line) > 130 or following.startswith(("  ", "\t", "\u3000")))
