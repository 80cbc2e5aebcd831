"""Cited statements in; pairs that give the same quantity different values out. Pure.

Two sentences clash when they say the same but for exactly one number of the same unit, and rest on different sources.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from dr.language import STOP_WORDS, content_words, detect, fold, names, similar, tokens
from dr.quantities import Quantity, quantities, same

ALIKE = 0.7  # share of words, numbers aside, from which two sentences may speak of the same thing
# What was meant to be and what came about may differ without a contradiction.
_MEANT = re.compile(
    r"(?i)\b(?:expect|plan|design|target|forecast|estimat|project|budget|assum|should|would|aim)\w*|预期|预计|计划|设计|目标|估计|应"
)
MOST = 40  # statements compared per unit; beyond that the runner would compare, not report


@dataclass(frozen=True)
class Statement:
    """One sentence of a conclusion and where it rests. citation: the node's id of the passage; place: path or URL."""

    text: str
    node: str
    citation: str
    place: str


def clash(one: str, other: str) -> tuple[Quantity, Quantity] | None:
    """The two numbers that stand in each other's place, or None when the sentences do not contradict each other."""
    if fold(one) == fold(other) or _about_others(one, other) or not _same_years(one, other):
        return None
    for ours in _clauses(one):
        for theirs in _clauses(other):
            same_mood = bool(_MEANT.search(ours)) is bool(_MEANT.search(theirs))
            if same_mood and alike(ours, theirs) >= ALIKE and (found := _odd_ones(ours, theirs)):
                return found
    return None


def _clauses(sentence: str) -> list[str]:
    return [c for c in re.split(r"[,:](?!\d)\s*|[;，；：（）()]\s*|\bthat\b", sentence) if any(k.isalnum() for k in c)]


def _odd_ones(one: str, other: str) -> tuple[Quantity, Quantity] | None:
    """The only number of a unit on each side, when the two differ; years tell when, not how much."""
    left, right = ([q for q in quantities(c) if not _is_year(q)] for c in (one, other))
    for unit in dict.fromkeys(q.unit for q in left):
        ours, theirs = [q for q in left if q.unit == unit], [q for q in right if q.unit == unit]
        if len(ours) == len(theirs) == 1 and ours[0].kind == theirs[0].kind and not same(ours[0], theirs[0]):
            certain = ours[0].certain and theirs[0].certain and "name" not in (ours[0].kind, theirs[0].kind)
            if certain and unit != "month":
                return ours[0], theirs[0]
    return None


def _is_year(quantity: Quantity) -> bool:
    """1300 metres is none."""
    return quantity.is_year and (not quantity.unit or quantity.unit in STOP_WORDS or quantity.unit == "年")


def _same_years(one: str, other: str) -> bool:
    a, b = ({q.value for q in quantities(s) if _is_year(q)} for s in (one, other))
    return not (a and b) or bool(a & b)


def alike(one: str, other: str) -> float:
    """How much two sentences say the same, numbers aside; 0..1."""
    a, b = ({t for t in tokens(s) if not t.isdigit()} for s in (one, other))
    return max(len(a & b) / max(1, min(len(a), len(b))) - 0.1, similar(one, other) - 0.1)


def _about_others(one: str, other: str) -> bool:
    """Each names something that the other does not: two plants may well have two values."""
    a, b = ({fold(n) for n in names(s)} for s in (one, other))
    return bool(a - b) and bool(b - a)


def find(statements: Sequence[Statement]) -> list[dict[str, Any]]:
    """[{"quantity", "values": [{"value", "node", "citation", "sentence"}, ...]}], as conflicts.json holds them."""
    numbered = [s for s in statements if any(c.isdigit() or c in "一二三四五六七八九十百千万亿两" for c in s.text)]
    found: list[dict[str, Any]] = []
    for one, other in combinations(numbered[:MOST], 2):
        if one.place == other.place:
            continue
        numbers = clash(one.text, other.text)
        if numbers is None:
            continue
        values = [_value(s, q) for s, q in zip((one, other), numbers, strict=True)]
        known = next((c for c in found if any(v in c["values"] for v in values)), None)
        if known is None:
            found.append({"quantity": _topic(one.text), "values": values})
        else:
            known["values"] += [v for v in values if v not in known["values"]]
    return found


def _value(statement: Statement, quantity: Quantity) -> dict[str, str]:
    value = f"{quantity.raw.strip()} {quantity.unit}".strip()
    return {
        "value": value,
        "node": statement.node,
        "citation": statement.citation,
        "sentence": statement.text,
    }


def _topic(sentence: str) -> str:
    """What the quantity is of, in a few words of the sentence itself."""
    words = [w for w in content_words(sentence) if not w[:1].isdigit()]
    return "、".join(words[:6]) if detect(sentence) == "zh" else " ".join(words[:8])
