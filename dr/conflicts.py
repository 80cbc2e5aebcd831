"""Cited statements in; pairs that give the same quantity different values out. Pure.

Two sentences clash when they say the same but for exactly one number of the same unit, and rest on different sources.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from dr.language import STOP_WORDS, detect, fold, names, similar, tokens
from dr.quantities import Quantity, quantities, same

ALIKE = 0.7  # share of words, numbers aside, from which two sentences may speak of the same thing
# What was meant to be and what came about may differ without a contradiction.
_MEANT = re.compile(
    r"(?i)\b(?:expect|plan|design|target|forecast|estimat|project|budget|assum|should|would|aim)\w*|预期|预计|计划|设计|目标|估计|应"
)
_TELLING, _TOPIC_CHARS = 4, 90  # terms and characters of the label of a conflict
_MEASURE = (
    "小时|分钟|公里|千米|厘米|毫米|平方|立方|千瓦|兆瓦|公斤|千克|公顷|美元|欧元|世纪|星期|个月"
    "|[天日年月周次个名位人家倍岁条项座届级层台辆架艘只本页米吨度元秒分克升亩户件期季亿万]"
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
    if _of_other_conditions(one, other):
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


# Words of one line exclude each other: what is so in summer says nothing of winter.
_APART = [
    re.compile(rf"(?i){line}")
    for line in (
        r"\b(?:spring|summer|autumn|winter)\b|[春夏秋冬](?=[季天日])",
        r"\b(?:January|February|March|April|June|July|August|September|October|November|December)\b",
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\bweek(?:day|end)\b|工作日|周末|[周期][一二三四五六日]",
        r"\b(?:above|below)\b|[高低]于|以[上下](?!各|述|是)",
        r"\b(?:before|after)\b|[之以][前后]",
        r"\b(?:day|night)(?:time)?\b|白天|夜[间里晚]|晚上",
        r"\b(?:morning|afternoon|evening)\b|[上下]午",
        r"\b(?:north|south|east|west)(?:ern)?\b|[东南西北][部侧岸面区]",
        r"\b(?:upper|lower)\b|[上下]游|[上下]层",
        r"\b(?:inner|outer)\b|\b(?:in|out)door\b|室[内外]|[内外]侧",
        r"\b(?:left|right)\b|[左右][侧岸]",
        r"\b(?:minimum|maximum|lowest|highest|smallest|largest)\b|最[高低大小多少]",
        r"\b(?:import|export)\w*\b|[进出]口",
        r"\b(?:men|women|boys|girls|male|female)\b|[男女][性生子]",
        r"\b(?:first|second|third|fourth|last)\b|第[一二三四五六]",
        r"\b(?:old|new)\b|[新旧老]",
        r"\b(?:wet|dry|warm|cold|hot)\b|[旺淡]季|[丰枯]水",
    )
]


def _of_other_conditions(one: str, other: str) -> bool:
    """Each names a condition, and not the same: every 30 days in summer, every 90 in winter."""
    for line in _APART:
        ours, theirs = ({m.lower() for m in line.findall(s)} for s in (one, other))
        if ours and theirs and not ours & theirs:
            return True
    return False


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
            found.append({"quantity": topic(*zip((one.text, other.text), numbers, strict=True)), "values": values})
        else:
            known["values"] += [v for v in values if v not in known["values"]]
    return found


def _value(statement: Statement, quantity: Quantity) -> dict[str, str]:
    return {
        "value": shown(quantity),
        "node": statement.node,
        "citation": statement.citation,
        "sentence": statement.text,
    }


def shown(quantity: Quantity) -> str:
    """The number and its unit as a reader would write them; of a Chinese unit what is one."""
    raw, unit = quantity.raw.strip(), quantity.unit
    if re.match(r"[\u3400-\u9fff]", unit):
        measure = re.match(_MEASURE, unit)
        return f"{raw} {measure[0] if measure else unit}"
    return f"{raw} {unit}".strip() if unit not in STOP_WORDS else raw


def topic(*sides: tuple[str, Quantity]) -> str:
    """What the quantity is of: the shortest clause in which one of the sentences gives it, with `…` for the number."""
    found = []
    for sentence, quantity in sides:
        number = rf"(?<![\d.,]){re.escape(quantity.raw.strip())}(?![\d])"
        clauses = [c.strip(" .。！!") for c in _clauses(sentence) if re.search(number, c)]
        telling = [c for c in clauses if len(tokens(c)) >= _TELLING] or [sentence.strip(" .。！!")]
        found += [re.sub(number, "…", clause, count=1) for clause in telling]
    return _short(min(found, key=len))


def _short(text: str) -> str:
    """At most so many characters, ending at a word."""
    most = _TOPIC_CHARS // 2 if detect(text) == "zh" else _TOPIC_CHARS
    if len(text) <= most:
        return text
    at = text.rfind(" ", most // 2, most)
    return text[: at if at > 0 else most].rstrip(" ,，、") + "…"
