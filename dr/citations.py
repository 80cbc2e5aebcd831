"""Citation numbers, and the offline check of a citing sentence or quote against its stored passage. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dr import alterations, quantities
from dr.alterations import Difference
from dr.quantities import PLAIN, Quantity

SUPPORTED, CONTRADICTED, NOT_CHECKED = "supported", "contradicted", "not checked"


class CitationManager:
    """The numbers of all citations of this process: every CitationManager() is the same one."""

    _only: CitationManager | None = None
    _ids: dict[str, str]
    _all: list[dict[str, str]]

    def __new__(cls) -> CitationManager:
        if cls._only is None:
            cls._only = super().__new__(cls)
            cls._only.reset()
        return cls._only

    def reset(self) -> None:
        """Forget every citation; numbering starts at 1 again."""
        self._ids, self._all = {}, []

    def add_citation(self, content: str, source: str, prefix: str = "rag") -> str:
        """The id of `content`, e.g. "[rag-1]": the one it has already, else the next number of its prefix."""
        key = squeezed(content)
        if key not in self._ids:
            number = 1 + sum(1 for citation in self._all if citation["id"].startswith(f"[{prefix}-"))
            self._ids[key] = f"[{prefix}-{number}]"
            self._all.append({"id": self._ids[key], "content": content, "source": source})
        return self._ids[key]

    def get_all_citations(self) -> list[dict[str, str]]:
        """[{"id", "content", "source"}] in order of first use."""
        return [dict(citation) for citation in self._all]


@dataclass(frozen=True)
class Check:
    """verdict: SUPPORTED, CONTRADICTED or NOT_CHECKED; reason: a key of REASONS, with its facts."""

    verdict: str
    reason: str = ""
    facts: tuple[tuple[str, str], ...] = ()

    def why(self, lang: str) -> str:
        """The reason in Chinese or English; empty when there is none."""
        facts: dict[str, Any] = dict(self.facts)
        return REASONS[self.reason][("zh", "en").index(lang)].format(**facts) if self.reason else ""


REASONS: dict[str, tuple[str, str]] = {
    "no_passage": ("没有保存原文", "no passage is stored"),
    "mostly_missing": ("该句的大部分内容不在原文中", "most of the sentence does not stand in the passage"),
    "nothing": ("既没有引句也没有数字", "there is neither a quote nor a number"),
    "quote_missing": ("引句不在原文中", "the quote does not stand in the passage"),
    "numbers_missing": ("原文中没有 {numbers}", "the passage does not hold {numbers}"),
    "differs": ("原文写的是“{theirs}”，不是“{ours}”", "the passage reads {theirs!r}, not {ours!r}"),
    "negated": ("原文的说法相反：“{theirs}”", "the passage says the opposite: {theirs!r}"),
    "words": ("措辞与原文不同：“{ours}”/“{theirs}”", "the wording differs: {ours!r} / {theirs!r}"),
}

_DROPPED = r"[\s\u00ad\u200b\ufeff\"'`“”‘’„«»「」『』《》〈〉_*\-\u2010-\u2015−~]+"
_CLOSING = r"[.,;:!?。，；：！？、…]+"
_ELLIPSIS = r"\s*(?:\[\s*)?(?:\.\s?\.\s?\.|…+)(?:\s*\])?\s*"


def squeezed(text: str) -> str:
    """Without white space, quotation marks, hyphens and differences of width and case."""
    return re.sub(_DROPPED, "", unicodedata.normalize("NFKC", text)).casefold()


def quote_stands(quote: str, passage: str) -> bool:
    """Whether `quote` stands in `passage` word by word. White space, width, quotation marks, hyphenation, case and the
    punctuation at both ends do not count; "…" may leave words out. An empty quote stands nowhere."""
    text = squeezed(passage)
    parts = [squeezed(part) for part in re.split(_ELLIPSIS, quantities.without_citations(quote))]
    at, found = 0, False
    for part in parts:
        core = _trimmed(part)
        if not core:
            continue
        start = _whole(text, core, at)
        if start < 0:
            return False
        at, found = start + len(core), True
    return found


def _trimmed(text: str) -> str:
    start = re.match(_CLOSING, text)
    text = text[start.end() :] if start else text
    return re.sub(r"[.,;:!?。，；：！？、…]+$", "", text)


def _whole(text: str, part: str, at: int) -> int:
    """Where `part` stands in `text` from `at` on; a number at its edge must be the whole number there."""
    while (start := text.find(part, at)) >= 0:
        end = start + len(part)
        before = text[start - 1 : start] + part[0]
        after = part[-1] + text[end : end + 1]
        cut_before = before.isdigit() and len(before) == 2
        cut_after = (after.isdigit() and len(after) == 2) or bool(re.match(r"\d[.,]\d", part[-1] + text[end : end + 2]))
        if not cut_before and not cut_after:
            return start
        at = start + 1
    return -1


def numbers_stand(sentence: str, passage: str) -> bool:
    """Whether every number of `sentence` occurs in `passage`, however it is written."""
    return not quantities.missing(sentence, passage)


def check_citation(sentence: str, quote: str, passage: str, also: Sequence[str] = ()) -> Check:
    """The check of one citation, with no model: does `passage` hold what `sentence` and its `quote` say?

    quote: "" when the source line has none. also: the other passages that the same sentence cites; its numbers may
    stand in any of them.
    """
    claim = quantities.without_citations(sentence).strip()
    if not passage.strip():
        return Check(NOT_CHECKED, "no_passage")
    if quote.strip() and not quote_stands(quote, passage):
        difference = alterations.altered(quote, passage)
        return _told(difference) if difference else Check(NOT_CHECKED, "quote_missing")
    if quote_stands(claim, passage):
        return Check(SUPPORTED)
    difference = alterations.altered(claim, passage)
    if difference and not (also and _said_by(difference, also)):
        return _told(difference)
    absent = quantities.missing(claim, passage)
    missing_everywhere = [q for q in absent if not any(numbers_stand(_alone(q), other) for other in also)]
    if missing_everywhere:
        for wanted in missing_everywhere:
            if other := alterations.other_value(claim, wanted, passage):
                return Check(CONTRADICTED, "differs", (("theirs", _shown(other)), ("ours", _shown(wanted))))
        shown = ", ".join(dict.fromkeys(_shown(q) for q in missing_everywhere))
        return Check(NOT_CHECKED, "numbers_missing", (("numbers", shown),))
    stated = [q for q in quantities.quantities(claim) if q.certain]
    if quote.strip():
        return Check(SUPPORTED)
    if len(stated) <= len(absent):
        return Check(NOT_CHECKED, "nothing")
    return Check(SUPPORTED) if _akin(claim, passage) else Check(NOT_CHECKED, "mostly_missing")


def _said_by(difference: Difference, also: Sequence[str]) -> bool:
    """Whether what the claim says otherwise than this passage may be due to another passage that it cites."""
    return not difference.contradicts or any(quote_stands(difference.ours, other) for other in also)


def _told(difference: Difference) -> Check:
    facts = (("theirs", difference.theirs), ("ours", difference.ours))
    if difference.negated:
        return Check(CONTRADICTED, "negated", facts)
    return Check(CONTRADICTED, "differs", facts) if difference.contradicts else Check(NOT_CHECKED, "words", facts)


def _akin(claim: str, passage: str) -> bool:
    """Whether half of the claim's words, numbers aside, stand in the passage; across scripts that cannot be told."""
    if bool(re.search(alterations.CJK, claim)) != bool(re.search(alterations.CJK, passage)):
        return True
    words, text = alterations.content(claim), squeezed(passage)
    return not words or sum(word[:5] in text for word in words) * 2 >= len(words)


def _alone(wanted: Quantity) -> str:
    return wanted.raw + ("%" if wanted.kind == quantities.PERCENT else "")


def _shown(wanted: Quantity) -> str:
    return (
        f"{_alone(wanted)} {wanted.unit}".strip() if wanted.kind == PLAIN and wanted.unit.isalpha() else _alone(wanted)
    )
