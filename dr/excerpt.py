"""A stored passage and the words quoted from it -> the stretch around them, the quoted words marked. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dr.citations import squeezed

NEAR, FAR = 240, 1_600  # characters shown on each side at once, and when the reader asks for more
_LITTLE = 320  # characters that are not worth a click of their own
_ELLIPSIS = re.compile(r"\s*(?:…+|\.{3,})\s*")
_ENDS = " .,;:!?。，；：！？、…"
_CJK = "[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"


@dataclass(frozen=True)
class Stretch:
    """A piece of text; marked: it was quoted."""

    text: str
    marked: bool = False


@dataclass(frozen=True)
class Excerpt:
    """near: around the quote. wide: more of the passage, empty when near is all. found: the quote stands there."""

    near: tuple[Stretch, ...] = ()
    wide: tuple[Stretch, ...] = ()
    found: bool = False


def excerpt(passage: str, quote: str, near: int = NEAR, far: int = FAR) -> Excerpt:
    """Without a quote, or when it is not found, near is the beginning of the passage."""
    if not passage.strip():
        return Excerpt()
    spans = _spans(passage, quote)
    around = spans or [(0, 0)]
    close = _windows(passage, around, near if spans else 2 * near)
    if len(passage) - sum(end - start for start, end in close) < _LITTLE and far > near:
        close = [(0, len(passage))]
    open_ = _windows(passage, around, far if spans else 2 * far)
    whole = close == [(0, len(passage))] or far <= near
    return Excerpt(
        tuple(_stretches(passage, close, spans)),
        () if whole else tuple(_stretches(passage, open_, spans)),
        bool(spans),
    )


def _spans(passage: str, quote: str) -> list[tuple[int, int]]:
    """Where the parts of the quote stand, in order; none unless all of them are found."""
    found, at = [], 0
    squeezed_passage: tuple[str, list[int]] | None = None
    for part in (p.strip() for p in _ELLIPSIS.split(quote)):
        if not part.strip(_ENDS):
            continue
        match = re.compile(r"\s*".join(map(re.escape, part.split()))).search(passage, at)
        if match:
            span = match.span()
        else:
            squeezed_passage = squeezed_passage or _squeezed(passage)
            loose = _loose(passage, part, at, *squeezed_passage)
            if loose is None:
                return []
            span = loose
        found.append(span)
        at = span[1]
    return found


def _squeezed(passage: str) -> tuple[str, list[int]]:
    """The passage as the check compares it, and where each of its characters comes from."""
    text, origin = [], []
    for i, char in enumerate(passage):
        for kept in squeezed(char):
            text.append(kept)
            origin.append(i)
    return "".join(text), origin


def _loose(passage: str, part: str, at: int, text: str, origin: list[int]) -> tuple[int, int] | None:
    wanted = squeezed(part.strip(_ENDS))
    start = next((i for i, o in enumerate(origin) if o >= at), len(text))
    where = text.find(wanted, start) if wanted else -1
    if where < 0:
        return None
    end = origin[where + len(wanted) - 1] + 1
    return origin[where], end + (passage[end : end + 1] in part[-1:])


def _windows(passage: str, spans: Sequence[tuple[int, int]], around: int) -> list[tuple[int, int]]:
    """What is shown: the spans and `around` characters on both sides, begun and ended between words."""
    windows: list[tuple[int, int]] = []
    for start, end in spans:
        left, right = max(0, start - around), min(len(passage), end + around)
        if left and (space := re.search(r"\s|(?<=[。！？；，])", passage[left:start])):
            left += space.end()
        if right < len(passage) and (cut := max(passage.rfind(c, end, right) for c in " \n。，；")) > end:
            right = cut + (passage[cut] not in " \n")
        if windows and left <= windows[-1][1] + 40:
            windows[-1] = (windows[-1][0], max(right, windows[-1][1]))
        else:
            windows.append((left, right))
    return windows


def _stretches(passage: str, windows: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]) -> list[Stretch]:
    parts: list[Stretch] = []
    for number, (left, right) in enumerate(windows):
        if number or left:
            parts.append(Stretch(" … " if number else "… "))
        at = left
        for start, end in spans:
            if left <= start < right:
                parts += [Stretch(flowing(passage[at:start])), Stretch(flowing(passage[start:end]), True)]
                at = end
        parts.append(Stretch(flowing(passage[at:right])))
    if windows and windows[-1][1] < len(passage):
        parts.append(Stretch(" …"))
    return [part for part in parts if part.text]


def flowing(text: str) -> str:
    """Line breaks of a page are no line breaks of the text; empty lines stay."""
    text = re.sub(r"[ \t]*\n[ \t]*(?:\n[ \t]*)+", "\n\n", text)
    text = re.sub(rf"(?<={_CJK})[ \t]*(?<!\n)\n(?!\n)[ \t]*(?={_CJK})", "", text)
    return re.sub(r"[ \t]*(?<!\n)\n(?!\n)[ \t]*", " ", text)
