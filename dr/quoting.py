"""Passages to cite -> which of their sentences to quote, verbatim, and which of those answer the question. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dr.contract import Passage
from dr.language import content_terms, fold, names, numbers, sentences, tokens

QUOTED = 3  # sentences of a passage at most
ANSWERING = 5  # sentences of an answer


@dataclass(frozen=True)
class Sentence:
    """A sentence of a passage. index: its place among them."""

    text: str
    index: int
    score: float


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
    found = sentences(passage.text)
    kind, known = kind_asked(question), {fold(n) for n in names(question)}
    scored = []
    for index, text in enumerate(found):
        folded = fold(text)
        score = sum(terms.get(t, 0.0) for t in set(tokens(text)))
        score += 0.5 * any(link in folded for link in links)
        score += 0.3 * _has_kind(text, kind, known)
        score += 0.4 * (index == 0)  # says what the passage is about
        scored.append((score, -index, text))
    chosen = {-index for _, index, _ in sorted(scored, reverse=True)[:limit]}
    return [text for index, text in enumerate(found) if index in chosen]


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
    bonus = [0.3 * _has_kind(text, kind, known) - 0.03 * i for i, text in enumerate(found)]
    chosen: list[int] = []
    said: set[str] = set()
    while len(chosen) < min(limit, len(found)):
        gains = [
            (sum(weight.get(t, 0.0) * (0.3 if t in said else 1.0) for t in terms) / total + bonus[i], -i)
            for i, terms in enumerate(sets)
            if i not in chosen
        ]
        gain, index = max(gains)
        if chosen and gain + 0.03 * -index <= 0.02:  # it adds nothing, whenever it was quoted
            break
        chosen.append(-index)
        said |= sets[-index]
    return [found[i] for i in chosen]
