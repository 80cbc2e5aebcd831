"""Source lines of a conclusion <-> SourceLine: `来源：<URL or path>, p. 3 — "<verbatim quote>" [local-1]`. Pure.

Written in one form, read in the many that models write: other labels, dashes, quotation marks, several in a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dr.contract import SOURCE_LABEL

_ID_NAME = r"(?:rag|web|code|local|mem)-\d+"
CITATION = rf"[\[【]\s*{_ID_NAME}(?:\s*[,，、;；]\s*{_ID_NAME})*\s*[\]】]"
_BRACKET_ESCAPE = r'[\\>"]'
_BRACKETED = r'<((?:\\[\\>"]|\\(?![\\>"])|[^\\>])*)>'
_BRACKETED_SECTION = rf"(?:, p\. [^,]*)?(?:, L[^,]*)?, § {_BRACKETED}"
_ID = rf"[\[【]\s*({_ID_NAME})\s*[\]】]"


@dataclass(frozen=True)
class SourceLine:
    """place: URL or path. locator: any of {"page": 3 or "3-4", "line": 12, "section": "Results"}. quote: verbatim, one
    line, "" when there is none. citation_id: "[local-1]" or None."""

    place: str
    locator: dict[str, int | str] = field(default_factory=dict)
    quote: str = ""
    citation_id: str | None = None


# -- writing ----------------------------------------------------------------------------------------------------------


def source_line(
    place: str, locator: dict[str, int | str] | None = None, quote: str = "", citation_id: str | None = None
) -> str:
    """The canonical line. White space becomes single spaces; `\\` and `"` are escaped only where they would end the
    quote; place and section are put in <…> when they could be misread. parse_sources() gives back what went in."""
    wanted = SourceLine(_one_line(place), _normal(locator or {}), _one_line(quote), citation_id)
    line = _written(wanted, _escaped)
    return line if parse_sources(line) == [wanted] else _written(wanted, _bracketed)


def _written(source: SourceLine, form: Callable[[str], str]) -> str:
    parts = [f"{SOURCE_LABEL}：{form(source.place)}"]
    for key, before in (("page", ", p. "), ("line", ", L"), ("section", ", § ")):
        if key in source.locator:
            value = str(source.locator[key])
            parts.append(before + (form(value) if key == "section" else value))
    if source.quote:
        parts.append(f' — "{_escaped(source.quote, last=True)}"')
    return "".join(parts) + (f" {source.citation_id}" if source.citation_id else "")


def _bracketed(text: str) -> str:
    return f"<{re.sub(_BRACKET_ESCAPE, _backslash, text)}>"


def _unbracketed(text: str) -> str:
    return _one_line(re.sub(r'\\([\\>"])', r"\1", text))


def _backslash(match: re.Match[str]) -> str:
    return "\\" + match[0]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _normal(locator: dict[str, int | str]) -> dict[str, int | str]:
    texts = {key: _one_line(str(locator[key])) for key in ("page", "line", "section") if key in locator}
    return {k: int(v) if k != "section" and _is_number(v) else v for k, v in texts.items() if v}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and str(int(text[:18])) == text


def _escaped(text: str, *, last: bool = False) -> str:
    r"""`"` as `\"`, and backslashes before it doubled; elsewhere they are as they are, as in C:\dir\file."""
    return re.sub(r'(?<!\\)(\\*)"', r'\1\1\\"', text) + ("\\" * (len(text) - len(text.rstrip("\\"))) if last else "")


def _unescaped(text: str, *, last: bool = False) -> str:
    text = re.sub(r'(?<!\\)(\\*)\\"', lambda m: m[1][: len(m[1]) // 2] + '"' if len(m[1]) % 2 == 0 else m[0], text)
    if last and (tail := len(text) - len(text.rstrip("\\"))) and tail % 2 == 0:
        text = text[: len(text) - tail // 2]
    return text


# -- which lines ------------------------------------------------------------------------------------------------------

_BULLET = r"(?:[-*+•·][ \t]+|\d{1,3}[.)、][ \t]*|[\[【]\d{1,3}[\]】][ \t]*)"
_LABEL = (
    r"(?:(?:资料|信息|引用|数据|参考)?来源|出处|参考资料|参考文献|引用|資料來源|來源|Sources?|References?|Citations?)"
    r"(?:[ \t]*[\[（(]?\d{1,3}[\]）)]?)?"
)
_LABELLED = rf"(?i)[ \t>]*{_BULLET}?(?:#{{1,6}}[ \t]*)?\*{{0,2}}{_LABEL}\*{{0,2}}[ \t]*[:：]\*{{0,2}}(.*)\Z"
_HEADING = rf"(?i)[ \t>]*(?:#{{1,6}}[ \t]*\*{{0,2}}|\*{{2}}){_LABEL}\*{{0,2}}[ \t]*\Z"
_ITEM = rf"[ \t>]*{_BULLET}(.*)\Z"
_PLACE_START = r"[ \t>]*(?:https?://|<https?://|\[[^\[\]]{1,200}\]\(|`)"
_INLINE = r"(?i)[（(](?:资料)?(?:来源|source)[ \t]*[:：][ \t]*([^（）()\n]{4,500})[)）]"


def split_sources_off(lines: list[str]) -> tuple[list[str], list[str]]:
    """(lines that are no source lines, the texts of the source lines behind label and bullet)"""
    others, texts, listing = list[str](), list[str](), False
    for line in lines:
        if labelled := re.match(_LABELLED, line):
            text = labelled[1].strip()
            texts += [text] if text else []
            listing = not text
        elif re.match(_HEADING, line):
            listing = True
        elif listing and not line.strip():
            continue
        elif listing and (item := re.match(_ITEM, line)):
            texts.append(item[1].strip())
        elif listing and re.match(_PLACE_START, line):
            texts.append(line.strip())
        else:
            others.append(line)
            listing = False
    return others, texts


def parse_sources(text: str) -> list[SourceLine]:
    """Every source that the source lines of `text` name; if it has none, those in brackets: （来源：https://…）."""
    others, texts = split_sources_off(text.split("\n"))
    found = [source for line in texts for source in parse_source_text(line)]
    if not found:
        found = [source for m in re.finditer(_INLINE, "\n".join(others)) for source in parse_source_text(m[1])]
    return found


# -- one line ---------------------------------------------------------------------------------------------------------

_DASH = r"(?:[—–―-]+|：|:)"
_OPEN, _CLOSERS = '"“”„「『«', {'"': '"', "“": '”"', "”": '”"', "„": '”“"', "「": "」", "『": "』", "«": "»"}
_QUOTE_START = rf"[ \t,，]*(?:{_DASH}[ \t]*|(?<=[ \t,，》>)]))([{_OPEN}])"
_LINE_END = rf"[ \t]*(?:{_ID})?[ \t]*[.。,，;；|、]?[ \t]*(?:{_ID})?[ \t]*\Z"
_NEXT = (
    rf"[ \t]*(?:({_ID})[ \t]*[;；,，|、]?|[;；|、,，])[ \t]*(?:{SOURCE_LABEL}[:：])?(?=\S)"
    rf"(?=https?://|[^\"“”「」\n]{{1,400}}?[ \t](?:[—–―]|-{{1,3}})[ \t]*[\"“「])"
)
_ANY_ID = rf"[ \t]*{_ID}[ \t]*\Z"
_MOST = 20_000  # characters of a line that are looked at


def parse_source_text(text: str) -> list[SourceLine]:
    """The sources of one line, without its label."""
    found, rest = [], text.strip()[:_MOST]
    while rest:
        source, rest = _first(rest)
        found += source
    return found


def _first(text: str) -> tuple[list[SourceLine], str]:
    """(the sources up to the end of the first quote, what stands behind it)"""
    opening = _quote_start(text)
    if opening is None:
        return list(_without_quote(text)), ""
    quote, tail, following = _quote(text, opening.end(), _CLOSERS[opening[1]])
    before = text[: opening.start()]
    places = _split_places(before)
    own_id = re.search(_ANY_ID, places[-1]) if places else None
    ids = re.findall(_ID, tail) or ([own_id[1]] if own_id else [])
    sources = [*(source for place in places[:-1] for source in _without_quote(place))]
    if places and (place := re.sub(_ANY_ID, "", places[-1])).strip() and not _is_hole(place, quote):
        sources.append(_source(place, quote, ids[0] if ids else None))
    return sources, following


def _quote_start(text: str) -> re.Match[str] | None:
    """The opening of a quote: behind a dash, or behind a comma or space. Not in a <place>, not escaped."""
    at = 0
    if bracketed := re.match(_BRACKETED, text):
        section = re.compile(_BRACKETED_SECTION).match(text, bracketed.end())
        at = (section or bracketed).end()
    elif text[0] in _OPEN:
        at = 1  # a title in quotation marks, not a quote
    return re.compile(_QUOTE_START).search(text, at)


def _quote(text: str, start: int, closers: str) -> tuple[str, str, str]:
    """(the quote that begins at `start`, id and punctuation behind it, the rest of the line)"""
    last = None
    for mark in re.finditer(rf"[{closers}]", text[start:]):
        at = start + mark.start()
        if mark[0] == '"' and (at - len(text[start:at].rstrip("\\")) - start) % 2:
            continue  # escaped
        last = at
        if re.compile(_LINE_END).match(text, at + 1):
            return _unquoted(text[start:at], closers), text[at + 1 :], ""
        if following := re.compile(_NEXT).match(text, at + 1):
            return _unquoted(text[start:at], closers), following[0], text[following.end() :].strip()
    if last is None:
        return _unquoted(text[start:], closers), "", ""
    return _unquoted(text[start:last], closers), text[last + 1 :], ""


def _unquoted(quote: str, closers: str) -> str:
    return (_unescaped(quote, last=True) if '"' in closers else quote).strip()


_SPLIT = r"[ \t]*(?:[；|]|[;、,，](?=[ \t]*https?://)|;[ \t])[ \t]*|(?<=\S)[ \t]+(?=https?://)"


def _split_places(text: str) -> list[str]:
    if text.startswith("<"):
        return [part.strip() for part in re.split(r"(?<=[^\\]>)[ \t]*[;；,，、][ \t]*(?=<)", text)]
    parts = [part.strip() for part in re.split(_SPLIT, text) if part.strip(" \t;；,，")]
    # "Title https://…" is one source; only what has a place of its own is another.
    merged: list[str] = []
    for part in parts:
        if merged and part.startswith("http") and not _looks_like_place(merged[-1]):
            merged[-1] += " " + part
        else:
            merged.append(part)
    return merged


def _looks_like_place(text: str) -> bool:
    return bool(re.search(r"https?://|[\\/]|\.\w{1,5}(?![\w.])", text))


def _without_quote(text: str) -> Iterator[SourceLine]:
    for part in _split_places(text):
        found = re.search(_ANY_ID, part)
        place = re.sub(_ANY_ID, "", part)
        # A remark behind a dash is no quote, and no part of the place, where that is complete without it.
        head, dash, _ = place.partition(" — ") if not place.startswith("<") else (place, "", "")
        if dash and (re.search(r"https?://|\.\w{1,5}\Z", head.strip()) or _locators(head)[1]):
            place = head
        if place.strip() and not _is_hole(place, ""):
            yield _source(place, "", found[1] if found else None)


def _is_hole(place: str, quote: str) -> bool:
    """A source line of the prompt's template, copied."""
    return re.match(_HOLE_PLACE, place) is not None or re.fullmatch(_HOLE_QUOTE, quote) is not None


_HOLE_PLACE = (
    r"(?i)\s*[<{＜｛](?:URL\s*(?:or|或|/)\s*(?:file )?(?:path|文件路径|路径)|(?:path|路径)\s*(?:or|或|/)\s*URL)[>}＞｝]"
)
_HOLE_QUOTE = r"(?i)[<{＜｛](?:verbatim quote|原文引句|原文)[>}＞｝]"


# -- place and locator ------------------------------------------------------------------------------------------------

_RANGE = r"(\d+(?:[ ]?[-–—~～][ ]?\d+)?)"
_APART = r"(?:[,，(（][ \t]*|[ \t]+)"
_LOCATORS = (
    ("page", rf"(?i){_APART}(?:pp?\.[ \t]*|pages?[ \t]+)(?:{_RANGE}|([ivxlc]{{1,7}}))[)）]?\Z"),
    ("page", rf"[,，(（ \t]*第[ \t]*{_RANGE}[ \t]*[页頁][)）]?\Z"),
    ("line", rf"(?:{_APART}|#)L[ \t]?(\d+(?:[-–]L?\d+)?)[)）]?\Z"),
    ("line", rf"(?i){_APART}lines?[ \t]+{_RANGE}[)）]?\Z"),
    ("line", rf"[,，(（ \t]*第[ \t]*{_RANGE}[ \t]*行[)）]?\Z"),
)
_SECTION = rf"{_APART}(?:§[ \t]*|(?i:section|sec\.)[ \t]+)(\S.*)\Z"
_LINK = r"\[([^\[\]]*)\]\(<?(\S+?)>?\)"
_URL = r"https?://[^\s<>\"“”「」《》，；。、（）]+"


def _source(place: str, quote: str, citation_id: str | None) -> SourceLine:
    place, locator = _locators(place.strip())
    return SourceLine(_place(place), locator, _one_line(quote), f"[{citation_id}]" if citation_id else None)


def _locators(text: str) -> tuple[str, dict[str, int | str]]:
    """(the place, its locator), from the end backwards."""
    locator: dict[str, int | str] = {}
    bracketed = re.match(_BRACKETED, text)
    end = bracketed.end() if bracketed else 0
    if section := re.compile(_SECTION).search(text, end):
        bracketed = re.fullmatch(_BRACKETED, section[1].strip()) if end else None
        locator["section"] = _unbracketed(bracketed[1]) if bracketed else _one_line(_unescaped(section[1]))
        text = text[: section.start()]
    found = True
    while found:
        found = False
        for key, pattern in _LOCATORS:
            if (
                key not in locator
                and (match := re.compile(pattern).search(text, max(end, len(text) - 60)))
                and match.start()
            ):
                value = next(filter(None, match.groups())).replace(" ", "")
                locator[key] = int(value) if _is_number(value) else value
                text, found = text[: match.start()].rstrip(), True
    return text, {key: locator[key] for key in ("page", "line", "section") if key in locator}


def _place(text: str) -> str:
    text = text.strip()
    if bracketed := re.fullmatch(_BRACKETED, text):
        return _unbracketed(bracketed[1])
    if link := re.search(_LINK, text):
        return link[2]
    if url := re.search(_URL, text):
        return _balanced(url[0].rstrip(".,;:!?*`'"))
    text = _one_line(_unescaped(text.strip(" \t,，;；")))
    for opening, closing in ("``", "“”", '""', "「」", ("**", "**")):
        if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening + closing):
            text = text[len(opening) : -len(closing)].strip()
    return text


def _balanced(url: str) -> str:
    """Without the `)` that belongs to the sentence around the URL."""
    while url.endswith(")") and url.count(")") > url.count("("):
        url = url[:-1]
    return url
