"""Whether a claim is what a passage says with another value: a changed number, name or negation. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from dr import language, quantities
from dr.quantities import PLAIN, Quantity


@dataclass(frozen=True)
class Difference:
    """What the passage and the claim say instead of each other. contradicts: False when only the wording is another."""

    theirs: str
    ours: str
    contradicts: bool = True
    negated: bool = False


_TOKEN = r"\d+(?:[.,]\d+)*%?|[^\W\d_]+(?:n['’]t)?|[\u3400-\u9fff]"
CJK = "[\u3400-\u9fff]"
_NEGATIONS = frozenset("not no never without neither nor cannot none 不 没 未 无 非 沒 無".split())
_AUXILIARY = frozenset(
    "do does did is are was were be been has have had can could will would should 有 曾 并 是".split()
)
_STOP = frozenset(
    "the a an of and to in on at for by with from as is are was were be been it its this that these those which who "
    "he she they his her their has have had also than then there "
    "的 了 在 是 和 与 及 也 有 为 于 被 把 这 那 其 该".split()
)
_DERIVED = (
    r"\b(?:total|sum|average|mean|combined|altogether|together|difference|twice|double|half|rose by|fell by|grew by)\b"
    r"|合计|总计|总共|共计|平均|相差|之和|翻倍|一半|增加了|减少了"
)
# A claim is a sentence of the passage, altered, when this share of its tokens stands there in order: with several
# changes, and with a single one.
_NEAR, _ONE_CHANGE = 0.8, 0.5


def _tokens(text: str) -> list[str]:
    text = re.sub(r"(?i)n['’]t\b", " not", unicodedata.normalize("NFKC", text).replace("cannot", "can not"))
    tokens: list[str] = []
    for match in re.finditer(_TOKEN, text):
        token = match[0]
        tokens += list(token) if re.match(CJK, token) else [token]
    return tokens


def altered(claim: str, passage: str) -> Difference | None:
    """Whether `claim` is a sentence of `passage` in which a number, a name or a negation was changed."""
    ours = _tokens(claim)
    if len(ours) < 4:
        return None
    folded = [token.casefold() for token in ours]
    single = language.sentences(passage)
    for candidates in (single, [f"{a} {b}" for a, b in pairwise(single)]):  # a claim may join two sentences
        best: tuple[float, int, list[str], list[_Change]] | None = None
        for sentence in candidates:
            theirs = _tokens(sentence)
            matcher = SequenceMatcher(None, folded, [token.casefold() for token in theirs], autojunk=False)
            if matcher.real_quick_ratio() * (len(ours) + len(theirs)) < 2 * _ONE_CHANGE * len(ours):
                continue
            same = sum(block.size for block in matcher.get_matching_blocks()) / len(ours)
            if best is None or (same, -len(theirs)) > best[:2]:
                best = (same, -len(theirs), theirs, [o for o in matcher.get_opcodes() if o[0] != "equal"])
        if best and (best[0] >= _NEAR or (best[0] >= _ONE_CHANGE and len(_inner(best[3], ours)) == 1)):
            return _judged(ours, best[2], _inner(best[3], ours), passage)
    return None


_Change = tuple[str, int, int, int, int]


def _inner(changes: list[_Change], ours: list[str]) -> list[_Change]:
    """Without the words of their sentence that stand before or after the whole claim."""
    return [c for c in changes if not (c[0] == "insert" and c[1] in (0, len(ours)))]


def _judged(ours: list[str], theirs: list[str], changes: list[_Change], passage: str) -> Difference | None:
    doubtful: Difference | None = None
    for tag, i1, i2, j1, j2 in changes:
        mine, other = ours[i1:i2], theirs[j1:j2]
        words = {token.casefold() for token in (*mine, *other)}
        if words & _NEGATIONS and words <= _NEGATIONS | _AUXILIARY and (not mine or not other):
            if "".join(words) in ("不", "非") and _part_of_word(ours, theirs, i1, i2, j1, j2):
                continue
            return Difference(_joined(theirs), _joined(mine), negated=True)
        if tag != "replace" or (i1 == 0 and j1 > 0):  # at its start a claim may say what it is about
            continue
        if not quantities.missing(_joined(mine), _joined(other)):
            if any(c.isdigit() for c in _joined(mine)):
                continue  # the same number, written in another way
        elif _rival_numbers(mine, other[: len(mine) + 2] if i2 == len(ours) else other):
            return Difference(_joined(other), _joined(mine))
        if _names(mine) and _names(other) and not _names(mine) & _names(_tokens(passage)):
            return Difference(_joined(other), _joined(mine))
        if not {token.casefold() for token in other} <= _STOP | _AUXILIARY:  # he -> Ken: who is meant was written out
            doubtful = doubtful or Difference(_joined(other), _joined(mine), contradicts=False)
    return doubtful


def _rival_numbers(mine: list[str], other: list[str]) -> bool:
    """Whether the two put one number in the place of another of its kind, with few words around it."""
    if max(len(mine), len(other)) > 5:
        return False
    ours = [q for q in quantities.quantities(_joined(mine)) if q.certain]
    theirs = [q for q in quantities.quantities(_joined(other)) if any(c.isdigit() for c in q.raw)]
    return any(a.kind == b.kind and a.is_year == b.is_year for a in ours for b in theirs)


def _part_of_word(ours: list[str], theirs: list[str], i1: int, i2: int, j1: int, j2: int) -> bool:
    """不仅, 不断, 非常: the character negates nothing."""
    after = ours[i2 : i2 + 1] if i2 > i1 else theirs[j2 : j2 + 1]
    return bool(after) and after[0] in "仅但断同过管久少常"


def _joined(tokens: list[str]) -> str:
    text = " ".join(tokens)
    return re.sub(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])", "", text)


def _names(tokens: list[str]) -> set[str]:
    return {token for token in tokens if token[:1].isupper() and token.casefold() not in _STOP}


def other_value(claim: str, wanted: Quantity, passage: str) -> Quantity | None:
    """The value that `passage` gives for what `claim` says is `wanted`; None unless it is clearly the same thing."""
    if wanted.kind == quantities.NAME or re.search(_DERIVED, claim):
        return None
    words = content(claim)
    if len(words) < 3:
        return None
    stated = quantities.quantities(claim)
    best: tuple[float, Quantity] | None = None
    for sentence in language.sentences(passage):
        share = len(words & content(sentence)) / len(words)
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


def content(text: str) -> set[str]:
    """Words and pairs of CJK characters, without numbers and function words."""
    tokens = [token.casefold() for token in _tokens(text)]
    words = {t for t in tokens if not t[0].isdigit() and t not in _STOP and not re.match(CJK, t)}
    pairs = {a + b for a, b in pairwise(tokens) if re.match(CJK, a) and re.match(CJK, b)}
    return {w for w in words if len(w) > 2} | pairs
