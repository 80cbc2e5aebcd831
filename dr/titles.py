"""A passage -> the names its document goes by, and whether a text mentions one of them. Pure.

A title stands in the passage, in the name of the file, or only in the first words of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from dr.contract import Passage
from dr.language import content_terms, fold
from dr.sentences import is_cjk

_NUMBERED = (
    r"(?:p|par|para|paragraph|doc|document|page|file|chunk|part|section|text|note|item|untitled|index|readme|文档|段落|文件|第)?"
    r"[\s_.#-]*\d*[\s_.-]*[页章节段]?"
)
_BRACKETS = r"\s*[(（][^()（）]*[)）]\s*$"
_SUBJECT = (
    r"[\"'“‘《「]?(?P<name>[^\n(（,，;；:：。.!?]{2,80}?|(?:[^\n(（,，;；:：。!?]{2,80}?))[\"'”’》」]?"
    r"(?:\s*[(（,，]|\s+(?:is|was|are|were|refers|has|had)\s|(?:是|为|位于|成立于|出生于|生于))"
)
_HEAD = 400  # characters of a text in which its title may stand
_LONGEST = 12  # words of a title that stands before the text without a line of its own
FULL, PART = 1.0, 0.6  # a mention by the whole name; by a single word or a shortened name


@dataclass(frozen=True)
class Alias:
    """One name. folded: as compared; weight: what a mention by this name is worth; cased: whether it counts only as
    it is written: a Shape is no shape. terms: its content terms."""

    text: str
    folded: str
    weight: float
    cased: bool
    terms: frozenset[str]


def title_of(passage: Passage) -> str:
    """The name under which a reader would ask for the passage's document."""
    return own_title(passage) or _first_words(passage.text) or passage.title or stem_of(passage.place)


def own_title(passage: Passage) -> str:
    """The title given by the document or its file name; "" when that is only a number."""
    for title in (passage.title, stem_of(passage.place)):
        plain = _plain(title)
        if re.fullmatch(_NUMBERED, plain, re.I) is None:
            return plain
    return ""


def aliases(passage: Passage) -> tuple[Alias, ...]:
    """Every name of the passage's document, the best first. passage: its first one."""
    return _aliases(own_title(passage), passage.text[:_HEAD])


@lru_cache(maxsize=8192)
def _aliases(given: str, text: str) -> tuple[Alias, ...]:
    first = _first_words(text)
    found: dict[str, Alias] = {}
    for name in (given or first, first if given and _share_a_word(given, first) else ""):
        bare = re.sub(_BRACKETS, "", name).strip() or name
        short = re.split(r"[,，]\s", bare)[0]  # "Hilo, Hawaii"
        article = re.sub(r"^(?:The|A|An)\s+", "", bare)
        for text, factor in ((bare, FULL), (article, FULL), (short, PART)):
            if len(text) > 1 and fold(text) not in found:
                folded, terms = fold(text), frozenset(content_terms(text))
                several = len(terms) > 1 or " " in text.strip()  # "With or Without You"
                weight = min(factor, FULL if several else PART)
                found[folded] = Alias(text, folded, weight, len(terms) < 2, terms)
    return tuple(found.values())


def mentions(text: str, folded: str, names: tuple[Alias, ...]) -> float:
    """What the best mention in `text` of one of the names is worth, 0 when there is none. folded: fold(text)."""
    best = 0.0
    for alias in names:
        if alias.weight > best and alias.folded in folded:
            where, wanted = (text, alias.text) if alias.cased else (folded, alias.folded)
            if _stands_alone(where, wanted):
                best = alias.weight
    return best


def stem_of(place: str) -> str:
    """The last part of a path or URL, without its suffix."""
    name = re.split(r"[/\\]", place.rstrip("/\\"))[-1]
    return re.sub(r"\.\w{1,5}$", "", name)


def _stands_alone(text: str, wanted: str) -> bool:
    """Whether `wanted` is in `text` and not a part of a longer word. CJK has no space between words."""
    start = text.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        before, after = text[start - 1 : start], text[end : end + 1]
        if not (_joins(before, wanted[0]) or _joins(after, wanted[-1])):
            return True
        start = text.find(wanted, start + 1)
    return False


def _joins(outer: str, inner: str) -> bool:
    return outer.isalnum() and inner.isalnum() and outer < "\u2e80" and inner < "\u2e80"


def _plain(title: str) -> str:
    title = title.strip().lstrip("#").strip()
    if "&" in title and ";" in title:
        from html import unescape

        title = unescape(title)
    return title if " " in title else title.replace("_", " ").strip()


def _share_a_word(one: str, other: str) -> bool:
    return not set(fold(one).split()).isdisjoint(fold(other).split())


def _first_words(text: str) -> str:
    """The title that `text` begins with: a short first line, words before a new start, or its first subject."""
    head = text.lstrip("# \t\n")[:_HEAD]
    line = head.partition("\n")[0]
    line, words = line.strip(), head.split()
    if not words:
        return ""
    if len(line) <= 100 and not line[0].islower() and not line.endswith(tuple("。！？.!?；;，,：:")):
        return line
    if fold(words[0]) not in _NO_NAME - {"i", "we", "you"} and (title := _before_new_start(words[: _LONGEST + 2])):
        return title
    subject = re.match(_SUBJECT, head)
    if subject is None or fold(words[0]) in _NO_NAME:
        return ""
    name = subject["name"].split()
    while name and name[0] in ("The", "A", "An") and (name[0] != "The" or not name[1:2] or name[1][0].islower()):
        name.pop(0)
    if name and name[-1] in name[:-1]:  # "Tim Kaine Timothy Michael Kaine"
        name = name[: name.index(name[-1]) + 1]
    begins = name[0][:1] if name else ""
    return " ".join(name) if begins.isupper() or begins.isdigit() or is_cjk(begins) else ""


def _before_new_start(words: list[str]) -> str:
    """Of a title that runs into the text: "Viva (UK) Viva (stylised as VIVA) is ...", "Dune The novel was ..."."""
    bare = [fold(word).strip("\"'“”‘’,;:") for word in words]
    for n in range(1, len(words)):
        before = " ".join(words[:n])
        if before.count("(") != before.count(")"):
            continue
        again = bare[n] == bare[0] or (bare[n] in ("the", "a", "an") and bare[n + 1 : n + 2] == bare[:1])
        begins = words[n] in ("The", "A", "An", "In", "It", "During") and words[n - 1] not in ("and", "of", "in", "&")
        capital = words[n].lstrip("\"'“‘")[:1]
        if (again and (capital.isupper() or is_cjk(capital))) or begins:
            return before
        if bare[n] in ("is", "was", "are", "were"):
            break
    return ""


_NO_NAME = frozenset(
    "in on at it he she they this that these those while moreover however during after before when as for from with by"
    " although if since there its his her their we you i".split()
)
