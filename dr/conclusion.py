"""Text of a conclusion -> its parts, its short form for child nodes, and what is weak about its form. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from dr.contract import CONCLUSION_CHARS_CJK, CONCLUSION_WORDS, MARK_LINE, PARENT_CONCLUSION_CHARS
from dr.sentences import sentences
from dr.source_lines import CITATION, SourceLine, parse_sources, source_line, split_sources_off

__all__ = ["Conclusion", "SourceLine", "parse", "reservations", "short_form", "source_line"]

# Codes of reservations; their words are in dr/words.py as reservation_<code>.
NO_MARKER, ONE_SENTENCE, OVER_LONG, NO_SOURCE = "no_marker", "one_sentence", "over_long", "no_source"

_LEADS = r"(?i)[ \t>]*(?:[-*+•][ \t]+)?\*{0,2}(?:线索|後續線索|Leads?)\*{0,2}[ \t]*[:：]\*{0,2}(.*)\Z"
_NOTE = r"[ \t]*(?:注|Note)[:：][ \t]*(.*)\Z"
_CJK = "[\u3400-\u9fff]"
_WIDE_END = "[\u2018-\u201d\u3000-\u303f\u3400-\u9fff\uff00-\uffef]\\Z"  # no space follows these


@dataclass(frozen=True)
class Conclusion:
    """body: without mark, notes, leads and source lines; citation ids are still in it. leads: titles worth following.

    notes: what the subagent says of its own work, without `Note:`; nothing of it counts as said of the question.
    """

    body: str
    leads: list[str] = field(default_factory=list)
    sources: list[SourceLine] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@lru_cache(maxsize=256)  # asked of one text by the runner, by every child, by the report
def parse(text: str) -> Conclusion:
    """The parts of a conclusion, in whatever form it was written; never raises."""
    lines, _ = split_sources_off(text.split("\n"))
    body, leads = list[str](), list[str]()
    for line in lines:
        if found := re.match(_LEADS, line):
            leads += [lead for part in re.split(r"[；;]", found[1]) if (lead := part.strip(" \t.。"))]
        else:
            body.append(line)
    said, notes = _notes_apart(_without_mark("\n".join(body)))
    return Conclusion(said, leads, parse_sources(text), notes)


def _notes_apart(body: str) -> tuple[str, list[str]]:
    """The body without its notes, and these. What cites a source is no note, nor is what a conclusion begins with."""
    paragraphs = re.split(r"(\n(?:[ \t]*\n)+)", body)  # every other one is the space between two
    kept, notes = paragraphs[:1], list[str]()
    for space, paragraph in zip(paragraphs[1::2], paragraphs[2::2], strict=True):
        note = re.match(_NOTE, paragraph, re.DOTALL)
        if note and not re.search(CITATION, paragraph):
            notes += filter(None, [_one_line(note[1])])
        else:
            kept += [space, paragraph]
    return "".join(kept).strip() if notes else body, notes


@lru_cache(maxsize=256)
def short_form(text: str, limit: int = PARENT_CONCLUSION_CHARS) -> str:
    """What a child node is told: at most `limit` characters of the body, whole sentences; a first sentence that is
    longer is cut at a word, with `…`."""
    body = _without_citations(parse(text).body)
    taken, at = "", 0
    for sentence in sentences(body):
        start = body.index(sentence, at)
        apart = bool(taken) and start > at and not re.search(_WIDE_END, taken)
        longer = taken + " " * apart + _one_line(sentence)
        if len(longer) > limit:
            break
        taken, at = longer, start + len(sentence)
    if taken or not body:
        return taken
    return _cut(_one_line(body), limit)


def reservations(text: str, exempt_quotes: bool) -> list[str]:
    """Codes of what is weak about a usable conclusion's form. exempt_quotes: for a mind that quotes and does not
    explain, sentences that carry a citation are as short or long as their source made them."""
    parts = parse(text)
    found = [] if re.match(MARK_LINE, text.lstrip()) else [NO_MARKER]
    stated = sentences(parts.body)
    quoted = any(re.search(CITATION, sentence) for sentence in stated)
    if len(stated) < 2 and not (exempt_quotes and quoted):
        found.append(ONE_SENTENCE)
    counted = parts.body
    if exempt_quotes:
        counted = "\n".join(line for line in counted.split("\n") if not re.search(CITATION, line))
    if _over_long(_without_citations(counted)):
        found.append(OVER_LONG)
    if not parts.sources:
        found.append(NO_SOURCE)
    return found


def _over_long(body: str) -> bool:
    cjk = len(re.findall(_CJK, body))
    if cjk * 4 > len(body):
        return len("".join(body.split())) > CONCLUSION_CHARS_CJK
    return len(body.split()) > CONCLUSION_WORDS


def _without_mark(text: str) -> str:
    text = text.strip()
    mark = re.match(MARK_LINE, text)
    if not mark:
        return text
    bold = "**" if mark[1] and not mark[2] else ""
    return bold + text[mark.end() :].lstrip(" \t\n:：")


def _without_citations(text: str) -> str:
    """Without citation ids, code blocks and the signs of headings and bold type."""
    text = re.sub(r"(?ms)^```.*?^```[ \t]*$", "", text) if text.count("```") < 200 else text
    text = re.sub(rf"[ \t]*{CITATION}", "", text)
    text = re.sub(r"(?m)^[ \t]*#{1,6}[ \t]+", "", text.replace("**", ""))
    return text.strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = text[: max(0, limit - 1)]
    at = max(head.rfind(sign) for sign in " ，、；：,;:")
    if at > limit // 2:
        head = head[:at]
    return (head.rstrip(" ，、；：,;:") + "…")[:limit]
