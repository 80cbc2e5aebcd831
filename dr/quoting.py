"""Passages to cite -> which of their sentences to quote, verbatim, and which of those answer the question. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from dr.contract import Passage
from dr.language import content_terms, fold, names, numbers, sentences, tokens

QUOTED = 3  # sentences of a passage at most
ANSWERING = 5  # sentences of an answer
_AT_LEAST = 2  # of them, as long as each adds anything
_FOR_KIND = 2  # more, that hold the kind of thing asked for and none of the question's terms that is new
_HEADING_CHARS, _TABLE_CHARS = 80, 300


# What an answer looks like, by the word that asks for it.
_ASKED = (
    (r"\b(?:when|what year|which year|what date|birthday|how old)\b|哪一?年|何时|什么时候|日期", "time"),
    (r"\bhow (?:many|much|long|far|tall|high|large|big)\b|多少|几[个年位次]|多[长高大远]", "number"),
    (r"\b(?:who|whom|whose)\b|谁|哪一?位|何人", "name"),
    (r"\b(?:where|(?:what|which) (?:city|country|state|county|place))\b|哪里|何地|哪个?国|哪座", "name"),
)
_TIME = r"\b(?:1\d|20)\d\d\b|[〇零一二三四五六七八九]{4}年"


def kind_asked(question: str) -> str:
    """'time', 'number', 'name' or '': what form the answer has."""
    folded = fold(question)
    return next((kind for pattern, kind in _ASKED if re.search(pattern, folded)), "")


def _has_kind(text: str, kind: str, known: set[str]) -> bool:
    if kind == "time":
        return re.search(_TIME, text) is not None
    if kind == "number":
        return bool(numbers(text))
    return kind == "name" and any(fold(name) not in known for name in names(text))


def best_sentences(
    passage: Passage, terms: Mapping[str, float], question: str, links: Sequence[str] = (), limit: int = QUOTED
) -> list[str]:
    """The sentences of `passage` that speak most of the question, in their order; at least one unless it has no text.

    terms: weight of each term asked about. links: folded names of the other cited documents.
    """
    found = _units(passage.text)
    kind, known = kind_asked(question), {fold(n) for n in names(question)}
    scored = []
    opening = next((i for i, (_, whole) in enumerate(found) if whole), 0)
    for index, (text, whole) in enumerate(found):
        folded = fold(text)
        score = sum(terms.get(t, 0.0) for t in set(tokens(text)))
        score += 0.5 * any(link in folded for link in links)
        score += 0.3 * _has_kind(text, kind, known)
        score += 0.4 * (index == opening)  # says what the passage is about
        scored.append((whole, score, -index))
    # A heading says nothing by itself: it is quoted only where there is nothing else.
    best = [s for s in sorted(scored, reverse=True)[:limit] if s[0] == max(scored)[0]] if scored else []
    chosen = {-index for _, _, index in best}
    return [text for index, (text, _) in enumerate(found) if index in chosen]


def has_sentence(passage: Passage) -> bool:
    """Whether it is more than a heading."""
    return any(whole for _, whole in _units(passage.text))


def _units(text: str) -> list[tuple[str, bool]]:
    """The sentences of a text and whether each can stand alone; the cells of a table that came as lines are one."""
    found: list[tuple[str, bool]] = []
    start = end = lines = 0
    at = 0
    for sentence in sentences(text):
        begin = text.index(sentence, at)
        at = begin + len(sentence)
        if _is_whole(sentence):
            found += _fragments(text[start:end], lines)
            found.append((sentence, True))
            lines = 0
            continue
        if lines and at - start > _TABLE_CHARS:
            found += _fragments(text[start:end], lines)
            lines = 0
        start = begin if lines == 0 else start
        end, lines = at, lines + 1
    return found + _fragments(text[start:end], lines)


def _fragments(text: str, lines: int) -> list[tuple[str, bool]]:
    return [(text, lines > 2)] if lines else []


def _is_whole(sentence: str) -> bool:
    """Whether it reads as a sentence: it has an end, or is too long for a heading."""
    return sentence.rstrip("\"'”’)）]】」』").endswith(tuple(".!?。！？…")) or len(sentence) > _HEADING_CHARS


def answer_sentences(question: str, quoted: Iterable[str], limit: int = ANSWERING) -> list[str]:
    """Of the quoted sentences those that answer best, best first: they cover the question's terms together, and hold
    what kind of thing it asks for."""
    found = list(dict.fromkeys(quoted))
    sets = [set(tokens(text)) for text in found]
    spread = Counter(term for terms in sets for term in terms)
    weight = {t: math.log(1 + len(found) / spread[t]) for t in content_terms(question) if t in spread}
    total = sum(weight.values()) or 1.0
    kind, known = kind_asked(question), {fold(n) for n in names(question)}
    # What was quoted first was the better find.
    holds = [_has_kind(text, kind, known) for text in found]
    bonus = [0.3 * held - 0.03 * i for i, held in enumerate(holds)]
    chosen: list[int] = []
    said: set[str] = set()
    for_kind = 0
    while len(chosen) < min(limit, len(found)):
        gains = [
            (sum(weight.get(t, 0.0) * (0.3 if t in said else 1.0) for t in terms) / total + bonus[i], -i)
            for i, terms in enumerate(sets)
            if i not in chosen
            and (len(chosen) < _AT_LEAST or (holds[i] and for_kind < _FOR_KIND) or weight.keys() & terms - said)
        ]
        if not gains:  # the rest would only fill up
            break
        gain, index = max(gains)
        if chosen and gain + 0.03 * -index <= 0.02:  # it adds nothing, whenever it was quoted
            break
        for_kind += len(chosen) >= _AT_LEAST and not weight.keys() & sets[-index] - said
        chosen.append(-index)
        said |= sets[-index]
    return [found[i] for i in chosen]
