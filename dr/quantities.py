"""Numbers in Chinese and English text as comparable values: 1,000 = 1000, 3.20 = 3.2, 三 = 3, 5 million. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

PLAIN, PERCENT, NAME = "plain", "percent", "name"


@dataclass(frozen=True)
class Quantity:
    """A number of a text. kind NAME: part of a name (GPT-4), compared as written. unit: the word it counts, or ""."""

    raw: str
    value: Decimal
    kind: str = PLAIN
    unit: str = ""
    step: Decimal = Decimal(1)  # what one unit of its last digit is worth: 3.5 million -> 100,000
    about: bool = False
    certain: bool = True  # False: a number word that may be none (一, "one"); never demanded, only accepted

    @property
    def is_year(self) -> bool:
        return self.kind == PLAIN and len(self.raw) == 4 and self.raw.isdigit() and 1000 <= self.value <= 2199


# Patterns are strings: re compiles and keeps one when it is first used, and a subagent without a model uses none here.
_SCALES = {
    **{"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12},
    **{"mn": 10**6, "bn": 10**9, "千": 10**3, "百": 10**2, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8},
    **{"万亿": 10**12, "千万": 10**7, "百万": 10**6, "千亿": 10**11, "百亿": 10**10, "十亿": 10**9},
}
_SCALE = "|".join(sorted(_SCALES, key=len, reverse=True))
_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_NUMBER = (
    rf"(?:(?<![A-Za-z])(?P<name>[A-Za-z]{{1,40}}(?:-|\u2010)?))?(?P<digits>{_DIGITS})(?:(?:st|nd|rd|th)\b)?"
    rf"(?P<scale>\s?-?(?:{_SCALE})(?![a-z]))?(?P<percent>\s?(?:%|percent\b|per cent\b|pct\b))?"
)
_UNIT = r"\s*(?:-\s?)?([a-zA-Z°µ$€£¥]+(?:/[a-z]+)?|[\u4e00-\u9fff]{1,2})"
_ABOUT = (
    r"(?i)(?:about|around|approximately|approx\.?|roughly|nearly|almost|over|under|some|more than|less than|at least"
    r"|up to|~|≈|大约|大概|将近|接近|超过|不到|至少|约|近|逾|超|达)\s*$"
)
_ABOUT_AFTER = r"\s*(?:左右|上下|多|余|以上|以下|or so|or more)"

_ZH_DIGITS = dict(zip("零〇一二两兩三四五六七八九", (0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
_ZH_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_ZH = r"(百分之)?(第)?([零〇一二两兩三四五六七八九十百千万萬亿億]+)(?:点([零〇一二三四五六七八九]+))?"
_ZH_MEASURE = (
    r"[个個名位年月日天次种種章节節人家倍岁歲件条條项項座届屆级級层層台辆架艘只隻头篇本册页頁元块]"
    r"|小时|分钟|公里|千米|世纪|周|星期|季"
)
_EN_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_EN = {word: i for i, word in enumerate(_EN_SMALL)} | {
    **{"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90},
}
_EN_ORDINAL = {
    **{"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8},
    **{"ninth": 9, "tenth": 10, "once": 1, "twice": 2, "dozen": 12, "single": 1, "both": 2, "half": 0},
}
_EN_WORDS = (
    r"(?i)\b(?:(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[- ])?("
    + "|".join(sorted([*_EN, *_EN_ORDINAL], key=len, reverse=True))
    + r")\b(?:[ -](hundred|thousand|million|billion|trillion)\b)?"
)
_MONTHS = {
    name: number
    for number, names in enumerate(
        "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug september/sept/sep "
        "october/oct november/nov december/dec".split(),
        1,
    )
    for name in names.split("/")
}
_MONTH = r"(?i)\b(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_CITATION = r"\[(?:rag|web|code|local|mem|\d{1,3})(?:-\d+)?\]"
_THIN_GAP = r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))"
_LIST_MARK = r"^\s*(?:\(?\d{1,2}[.)、]\s|[-*•]\s)"


def without_citations(text: str) -> str:
    return re.sub(_CITATION, "", text)


def quantities(text: str) -> list[Quantity]:
    """Every number of `text`, in no particular order; months of dates count as numbers."""
    text = re.sub(_THIN_GAP, "", without_citations(text))  # before NFKC makes a plain space of it
    text = re.sub(_LIST_MARK, "", unicodedata.normalize("NFKC", text))
    found = [*_arabic(text), *_chinese(text), *_english(text)]
    return found + [
        Quantity(m[1], Decimal(_MONTHS[m[1].casefold()]), unit="month", certain=_dated(text, m))
        for m in re.finditer(_MONTH, text)
    ]


def _dated(text: str, month: re.Match[str]) -> bool:
    """May is a verb and March a walk: a month is one when a number stands beside it."""
    return bool(
        re.search(r"\d(?:st|nd|rd|th)?(?: of)?\s*$", text[: month.start()]) or re.match(r"\s*\d", text[month.end() :])
    )


def _arabic(text: str) -> Iterator[Quantity]:
    for match in re.finditer(_NUMBER, text):
        raw, name = match["digits"], match["name"]
        value = Decimal(re.sub(r"[,\s]", "", raw))
        before, after = text[max(0, match.start() - 24) : match.start()], text[match.end() : match.end() + 40]
        if name and name.casefold().rstrip("-") not in ("us", "usd", "rmb", "eur", "no", "p", "pp", "v", "to"):
            yield Quantity(match[0].strip(), value, NAME)
            continue
        scale = _SCALES.get((match["scale"] or "").strip(" -"), 1)
        decimals = len(raw.partition(".")[2])
        if re.search(r"(?:^|[\s(（:：])[-−]$", before):
            value = -value
        unit = re.match(_UNIT, after)
        yield Quantity(
            raw,
            value * scale,
            PERCENT if match["percent"] else PLAIN,
            "" if match["percent"] or unit is None else unit[1].casefold(),
            Decimal(scale) / 10**decimals,
            bool(re.search(_ABOUT, before) or re.match(_ABOUT_AFTER, after)),
        )


def _chinese(text: str) -> Iterator[Quantity]:
    for match in re.finditer(_ZH, text):
        value = _zh_value(match[3])
        if value is None or (match.start() and text[match.start() - 1].isdigit()):
            continue  # 3万 was read with its digits
        if match[4]:
            value += Decimal("0." + "".join(str(_ZH_DIGITS[c]) for c in match[4]))
        after = text[match.end() :]
        measured = re.match(_ZH_MEASURE, after) is not None or bool(match[2])
        sure = bool(match[1]) or (match[3] not in ("一", "万", "千", "百") and (measured or len(match[3]) > 2))
        before = text[max(0, match.start() - 24) : match.start()]
        about = bool(re.search(_ABOUT, before) or re.match(_ABOUT_AFTER, after))
        kind = PERCENT if match[1] else PLAIN
        yield Quantity(match[0], value, kind, after[:1] if measured else "", about=about, certain=sure)


def _zh_value(text: str) -> Decimal | None:
    """二十三 -> 23, 三千万 -> 30,000,000, 二〇〇四 -> 2004."""
    if len(text) > 1 and all(c in _ZH_DIGITS for c in text):
        return Decimal("".join(str(_ZH_DIGITS[c]) for c in text))
    total = section = digit = 0
    for character in text:
        if character in _ZH_DIGITS:
            digit = _ZH_DIGITS[character]
        elif (unit := _ZH_UNITS[character]) < 10**4:
            section += (digit or 1) * unit
            digit = 0
        else:
            total = (total + section + digit) * unit if total + section + digit else unit
            section = digit = 0
    return Decimal(total + section + digit)


def _english(text: str) -> Iterator[Quantity]:
    for match in re.finditer(_EN_WORDS, text):
        word = match[2].casefold()
        value = _EN.get(word, _EN_ORDINAL.get(word, 0)) + (_EN[match[1].casefold()] if match[1] else 0)
        scale = _SCALES.get((match[3] or "").casefold(), 1)
        unit = re.match(_UNIT, text[match.end() : match.end() + 40])
        yield Quantity(
            match[0],
            Decimal(value * scale),
            unit="" if unit is None else unit[1].casefold(),
            step=Decimal(scale),
            about=bool(re.search(_ABOUT, text[max(0, match.start() - 24) : match.start()])),
            certain=word in _EN and (value > 12 or scale > 1),
        )


def same(wanted: Quantity, given: Quantity) -> bool:
    """Whether a text that holds `given` says `wanted`: equal, or rounded as `wanted` is written."""
    if NAME in (wanted.kind, given.kind):
        if wanted.kind == given.kind:
            return _as_name(wanted.raw) == _as_name(given.raw)
        return given.kind == NAME and wanted.value == given.value
    one, other = wanted.value, given.value
    if wanted.kind != given.kind and PERCENT in (wanted.kind, given.kind) and one != other:
        one, other = (one / 100, other) if wanted.kind == PERCENT else (one, other / 100)
    if one == other:
        return True
    if wanted.about and other and abs(one - other) <= abs(other) / 10:
        return True
    rounded = wanted.step > 1 or wanted.step < 1
    return rounded and given.step < wanted.step and abs(one - other) * 2 <= wanted.step


def _as_name(raw: str) -> str:
    return re.sub(r"[-\u2010\s]", "", raw).casefold()


def missing(sentence: str, text: str) -> list[Quantity]:
    """The numbers of `sentence` that `text` does not hold."""
    given, names = quantities(text), _as_name(unicodedata.normalize("NFKC", text))
    return [
        wanted
        for wanted in quantities(sentence)
        if wanted.certain
        and not any(same(wanted, g) for g in given)
        and not (wanted.kind == NAME and _as_name(wanted.raw) in names)
    ]
