"""What a script printed -> passages with line numbers, and the lines of them to quote. Pure but for one text file."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from dr import citations, files, retrieval
from dr.agent import artefacts, checks
from dr.agent.conclusion import one_line
from dr.contract import Passage

KIND = "code"
_CHARS = 900  # of a passage
_LINE_CHARS = 240  # of what is quoted of one line
_ALL_LINES, _MOST_LINES, _LAST_LINES = 6, 5, 3
_QUOTED_CHARS = {"zh": 240, "en": 700}  # in a conclusion of at most 500 characters or 300 words
_MOST_PASSAGES = 200
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def cleaned(text: str) -> str:
    """As a terminal would show it in the end: no colours, of a line that was overwritten the last state."""
    lines = _ESCAPE.sub("", text).replace("\r\n", "\n").split("\n")
    shown = (next((part for part in reversed(line.split("\r")) if part.strip()), "") for line in lines)
    return "\n".join(_CONTROL.sub("", line).rstrip() for line in shown)


def keep(text: str, path: Path, title: str) -> list[Passage]:
    """The passages of an output, which is written to `path` (or the next free name) for readers; none for an empty one.

    Their locator is the number of their first line in that file.
    """
    text = cleaned(text)
    if not text.strip():
        return []
    path.parent.mkdir(parents=True, exist_ok=True)
    path = artefacts.free(path)
    files.write_text(path, text)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    found = [Passage("", KIND, str(path), digest, title, {"line": line}, part) for line, part in _parts(text)]
    half = _MOST_PASSAGES // 2
    return found if len(found) <= _MOST_PASSAGES else found[:half] + found[-half:]


def _parts(text: str) -> list[tuple[int, str]]:
    """(number of the first line, lines) of about _CHARS characters each; a longer line is divided."""
    found: list[tuple[int, str]] = []
    held: list[str] = []
    first = size = 0
    for number, line in enumerate(text.split("\n"), 1):
        for piece in _pieces(line, _CHARS):
            if held and size + len(piece) > _CHARS:
                found.append((first, "\n".join(held)))
                held, size = [], 0
            if held or piece.strip():
                first = first if held else number
                held.append(piece)
                size += len(piece) + 1
    if "".join(held).strip():
        found.append((first, "\n".join(held).rstrip()))
    return found


def _pieces(line: str, most: int) -> list[str]:
    """A line in parts of at most `most` characters, divided at a space where there is one, never inside a number."""
    parts = []
    while len(line) > most:
        cut = line.rfind(" ", most // 2, most)
        if cut < 0:
            cut = next((i for i in range(most, most // 2, -1) if not line[i - 1 : i + 1].isalnum()), most)
        parts.append(line[:cut])
        line = line[cut:].lstrip(" ")
    return [*parts, line]


def lines_to_quote(question: str, passages: list[Passage], lang: str) -> list[tuple[Passage, str]]:
    """(passage, line) in their order: all of a short output, else the lines that fit the question best or, where
    none does, the last ones: a script prints its result at the end."""
    every = [
        (passage, piece)
        for passage in passages
        for line in passage.text.split("\n")
        for piece in _pieces(one_line(line), _LINE_CHARS)
        if citations.quote_stands(piece, passage.text) and not checks.speaks_protocol(piece)
    ]
    if len(every) <= _ALL_LINES:
        wanted = list(range(len(every)))
    else:
        numbered = [passage._replace(id=str(i), title="", text=piece) for i, (passage, piece) in enumerate(every)]
        wanted = [int(hit.passage.id) for hit in retrieval.rank(question, numbered, _MOST_LINES)]
        wanted = wanted or list(range(len(every) - _LAST_LINES, len(every)))
    room, chosen = _QUOTED_CHARS[lang], list[int]()
    for index in wanted:
        room -= len(every[index][1])
        if chosen and room < 0:
            break
        chosen.append(index)
    return [every[index] for index in sorted(chosen)]
