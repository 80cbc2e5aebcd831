"""A question and passages -> the few passages to cite, the sentences of them to quote, and where they lead.

Pure: no file.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dr import language
from dr.contract import Passage


@dataclass(frozen=True)
class Ranked:
    """A passage and how well it fits; higher is better, 0 is no common term."""

    passage: Passage
    score: float


@dataclass(frozen=True)
class Quote:
    """A passage to cite and its sentences that answer best, verbatim, in the passage's order; at least one."""

    passage: Passage
    sentences: list[str]
    score: float


@dataclass(frozen=True)
class Selection:
    """quotes: best first. leads: titles of other documents of the same source that the cited passages mention.
    uncovered: words of the question that stand in no cited passage."""

    quotes: list[Quote]
    leads: list[str]
    uncovered: list[str]


def rank(question: str, passages: Sequence[Passage], k: int) -> list[Ranked]:
    """The `k` passages that fit best, best first; passages without a term of the question are left out."""
    terms = language.content_terms(question)
    docs = [Counter(language.tokens(f"{p.title} {p.title} {p.text}")) for p in passages]
    average = sum(map(Counter.total, docs)) / max(1, len(docs))
    idf = {t: math.log(1 + (len(docs) + 0.5) / (0.5 + sum(t in d for d in docs))) for t in terms}
    found = []
    for passage, doc in zip(passages, docs, strict=True):
        norm = 1.2 * (0.25 + 0.75 * doc.total() / average)
        score = sum(idf[t] * doc[t] * 2.2 / (doc[t] + norm) for t in terms if t in doc)
        if score > 0:
            found.append(Ranked(passage, score))
    return sorted(found, key=lambda r: -r.score)[:k]


def select(
    sub_question: str,
    passages: Sequence[Passage],
    *,
    root_question: str = "",
    parent_conclusions: Mapping[str, str] | None = None,
    aspects: Sequence[str] | None = None,
) -> Selection:
    """What a node cites. aspects: parts of the question that each want a citation. Empty when nothing fits."""
    quotes = []
    for ranked in rank(sub_question, passages, 2):
        found = language.sentences(ranked.passage.text)
        quotes.append(Quote(ranked.passage, found[:2], ranked.score))
    cited = " ".join(f"{q.passage.title} {q.passage.text}" for q in quotes)
    titles = dict.fromkeys(p.title for p in passages)
    shown = {q.passage.title for q in quotes}
    leads = [t for t in titles if t and t not in shown and t.casefold() in cited.casefold()]
    present = set(language.tokens(cited))
    uncovered = [w for w in language.content_words(sub_question) if not set(language.content_terms(w)) <= present]
    return Selection(quotes, leads, uncovered)
