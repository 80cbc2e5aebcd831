"""Citation numbers, and the offline check of a citing sentence or quote against its stored passage. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from dr import quantities
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
    "nothing": ("既没有引句也没有数字", "there is neither a quote nor a number"),
    "quote_missing": ("引句不在原文中", "the quote does not stand in the passage"),
    "numbers_missing": ("原文中没有 {numbers}", "the passage does not hold {numbers}"),
    "differs": ("原文写的是“{theirs}”，不是“{ours}”", "the passage reads {theirs!r}, not {ours!r}"),
    "negated": ("原文的说法相反：“{theirs}”", "the passage says the opposite: {theirs!r}"),
    "words": ("措辞与原文不同：“{ours}”/“{theirs}”", "the wording differs: {ours!r} / {theirs!r}"),
}

_DROPPED = re.compile(r"[\s\u00ad\u200b\ufeff\"'`“”‘’„«»「」『』《》〈〉_*\-\u2010-\u2015−~]+")
_CLOSING = re.compile(r"[.,;:!?。，；：！？、…]+")
_ELLIPSIS = re.compile(r"\s*(?:\[\s*)?(?:\.\s?\.\s?\.|…+)(?:\s*\])?\s*")


def squeezed(text: str) -> str:
    """Without white space, quotation marks, hyphens and differences of width and case."""
    return _DROPPED.sub("", unicodedata.normalize("NFKC", text)).casefold()


def quote_stands(quote: str, passage: str) -> bool:
    """Whether `quote` stands in `passage` word by word. White space, width, quotation marks, hyphenation, case and the
    punctuation at both ends do not count; "…" may leave words out. An empty quote stands nowhere."""
    text = squeezed(passage)
    parts = [squeezed(part) for part in _ELLIPSIS.split(quantities.without_citations(quote))]
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
    start = _CLOSING.match(text)
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
        return _altered(quote, passage) or Check(NOT_CHECKED, "quote_missing")
    if quote_stands(claim, passage):
        return Check(SUPPORTED)
    if difference := _altered(claim, passage):
        return difference
    absent = quantities.missing(claim, passage)
    missing_everywhere = [q for q in absent if not any(numbers_stand(_alone(q), other) for other in also)]
    if missing_everywhere:
        for wanted in missing_everywhere:
            if other := _other_value(claim, wanted, passage):
                return Check(CONTRADICTED, "differs", (("theirs", _shown(other)), ("ours", _shown(wanted))))
        shown = ", ".join(dict.fromkeys(_shown(q) for q in missing_everywhere))
        return Check(NOT_CHECKED, "numbers_missing", (("numbers", shown),))
    stated = [q for q in quantities.quantities(claim) if q.certain]
    if quote.strip() or len(stated) > len(absent):
        return Check(SUPPORTED)
    return Check(NOT_CHECKED, "nothing")


def _alone(wanted: Quantity) -> str:
    return wanted.raw + ("%" if wanted.kind == quantities.PERCENT else "")


def _shown(wanted: Quantity) -> str:
    return (
        f"{_alone(wanted)} {wanted.unit}".strip() if wanted.kind == PLAIN and wanted.unit.isalpha() else _alone(wanted)
    )


# --- the same thing with another value -------------------------------------------------------------------------------

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*%?|[^\W\d_]+(?:n['’]t)?|[\u3400-\u9fff]", re.UNICODE)
_CJK = re.compile("[\u3400-\u9fff]")
_NEGATIONS = frozenset("not no never without neither nor cannot none 不 没 未 无 非 沒 無".split())
_AUXILIARY = frozenset(
    "do does did is are was were be been has have had can could will would should 有 曾 并 是".split()
)
_STOP = frozenset(
    "the a an of and to in on at for by with from as is are was were be been it its this that these those which who "
    "he she they his her their has have had also than then there "
    "的 了 在 是 和 与 及 也 有 为 于 被 把 这 那 其 该".split()
)
_DERIVED = re.compile(
    r"\b(?:total|sum|average|mean|combined|altogether|together|difference|twice|double|half|rose by|fell by|grew by)\b"
    r"|合计|总计|总共|共计|平均|相差|之和|翻倍|一半|增加了|减少了"
)
_NEAR = (
    0.8  # share of a claim's tokens that stand, in order, in a sentence of the passage: it is that sentence, altered
)


def _tokens(text: str) -> list[str]:
    text = re.sub(r"(?i)n['’]t\b", " not", unicodedata.normalize("NFKC", text).replace("cannot", "can not"))
    tokens: list[str] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        tokens += list(token) if _CJK.match(token) else [token]
    return tokens


def _sentences(passage: str) -> list[str]:
    """Sentences and pairs of neighbours: a claim may join two."""
    single = [s for s in re.split(r"(?<=[。！？；])|(?<=[.!?;])\s+|\n+", passage) if s.strip()]
    return single + [f"{a} {b}" for a, b in pairwise(single)]


def _altered(claim: str, passage: str) -> Check | None:
    """Whether `claim` is a sentence of `passage` in which a number, a name or a negation was changed."""
    ours = _tokens(claim)
    if len(ours) < 4:
        return None
    folded = [token.casefold() for token in ours]
    best: tuple[float, list[str], SequenceMatcher[str]] | None = None
    for sentence in _sentences(passage):
        theirs = _tokens(sentence)
        matcher = SequenceMatcher(None, folded, [token.casefold() for token in theirs], autojunk=False)
        if matcher.real_quick_ratio() * (len(ours) + len(theirs)) < 2 * _NEAR * len(ours) - 2:
            continue
        share = sum(block.size for block in matcher.get_matching_blocks()) / len(ours)
        if best is None or share > best[0] or (share == best[0] and len(theirs) < len(best[1])):
            best = (share, theirs, matcher)
    if best is None or best[0] < min(_NEAR, 1 - 1.5 / len(ours)):
        return None
    return _judged(ours, best[1], best[2], passage)


def _judged(ours: list[str], theirs: list[str], matcher: SequenceMatcher[str], passage: str) -> Check | None:
    doubtful: Check | None = None
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        mine, other = ours[i1:i2], theirs[j1:j2]
        if tag == "equal" or (tag == "insert" and (i1 in (0, len(ours)))):
            continue  # words before and after the claim in its sentence
        facts = (("theirs", _joined(other)), ("ours", _joined(mine)))
        words = {token.casefold() for token in (*mine, *other)}
        if words & _NEGATIONS and words <= _NEGATIONS | _AUXILIARY and (not mine or not other):
            if "".join(words) in ("不", "非") and _part_of_word(ours, theirs, i1, i2, j1, j2):
                continue
            return Check(CONTRADICTED, "negated", (("theirs", _joined(theirs)),))
        if tag != "replace":
            continue
        if not quantities.missing(_joined(mine), _joined(other)):
            if any(c.isdigit() for c in _joined(mine)):
                continue  # the same number, written in another way
        elif quantities.quantities(_joined(other)) and any(c.isdigit() for c in _joined(other)):
            return Check(CONTRADICTED, "differs", facts)
        if _names(mine) and _names(other):
            if not _names(mine) & _names([*_tokens(passage)]):
                return Check(CONTRADICTED, "differs", facts)
            doubtful = doubtful or Check(NOT_CHECKED, "words", facts)
        elif _CJK.match(mine[0]) and _CJK.match(other[0]):
            doubtful = doubtful or Check(NOT_CHECKED, "words", facts)
    return doubtful


def _part_of_word(ours: list[str], theirs: list[str], i1: int, i2: int, j1: int, j2: int) -> bool:
    """不仅, 不断, 非常: the character negates nothing."""
    after = ours[i2 : i2 + 1] if i2 > i1 else theirs[j2 : j2 + 1]
    return bool(after) and after[0] in "仅但断同过管久少常"


def _joined(tokens: list[str]) -> str:
    text = " ".join(tokens)
    return re.sub(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])", "", text)


def _names(tokens: list[str]) -> set[str]:
    return {token for token in tokens if token[:1].isupper() and token.casefold() not in _STOP}


def _other_value(claim: str, wanted: Quantity, passage: str) -> Quantity | None:
    """The value that `passage` gives for what `claim` says is `wanted`; None unless it is clearly the same thing."""
    if wanted.kind == quantities.NAME or _DERIVED.search(claim):
        return None
    words = _content(claim)
    if len(words) < 3:
        return None
    stated = quantities.quantities(claim)
    best: tuple[float, Quantity] | None = None
    for sentence in _sentences(passage):
        share = len(words & _content(sentence)) / len(words)
        if share < 0.6 or (best and share <= best[0]):
            continue
        given = quantities.quantities(sentence)
        rivals = [q for q in given if _comparable(wanted, q) and not any(quantities.same(s, q) for s in stated)]
        values = {q.value for q in given}
        derived = any(a + b == wanted.value or abs(a - b) == wanted.value for a in values for b in values if a != b)
        if len({q.value for q in rivals}) == 1 and not derived:
            best = (share, rivals[0])
    return best[1] if best else None


def _comparable(one: Quantity, other: Quantity) -> bool:
    if one.kind != other.kind or one.is_year != other.is_year or not other.certain:
        return False
    if one.kind == PLAIN and not one.is_year and one.step != other.step and one.unit != other.unit:
        return False
    return one.kind != PLAIN or one.is_year or (one.unit not in _STOP and one.unit == other.unit)


def _content(text: str) -> set[str]:
    """Words and pairs of CJK characters, without numbers and function words."""
    tokens = [token.casefold() for token in _tokens(text)]
    words = {t for t in tokens if not t[0].isdigit() and t not in _STOP and not _CJK.match(t)}
    pairs = {a + b for a, b in pairwise(tokens) if _CJK.match(a) and _CJK.match(b)}
    return {w for w in words if len(w) > 2} | pairs
