"""A question and passages -> the few passages to cite, the sentences of them to quote, and where they lead.

Pure: no file. Questions that one passage does not answer are answered by two: pairs are weighed together (dr/pairs.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dr.contract import Passage
from dr.language import content_words, fold
from dr.pairs import Doc, Field
from dr.quoting import answer_sentences, best_sentences, has_sentence
from dr.shortlist import KEPT

__all__ = ["Quote", "Ranked", "Selection", "answer_sentences", "rank", "select"]

LEADS = 2
_LIKELY = 0.02  # chance of belonging to the evidence from which a document is a lead
_ALSO = 0.15  # chance from which a third passage is cited at once
_TOUCHES = 0.15  # share of the question a passage has to speak of to be cited at all
_ADDS = 0.05  # share of the question that a partner has to speak of, unless the two are linked


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
    """quotes: best first. leads: titles of other documents of the same source worth a look, best first.
    uncovered: words of the question that stand in no cited passage."""

    quotes: list[Quote]
    leads: list[str]
    uncovered: list[str]


def rank(question: str, passages: Sequence[Passage], k: int) -> list[Ranked]:
    """The `k` passages that fit best, best first; passages without a term of the question are left out."""
    field = Field(question, passages, kept=max(KEPT, 4 * k))
    found = [Ranked(doc.passage, score) for doc in field.docs if (score := field.bm25(doc)) > 0]
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
    if aspects and len(aspects) > 1:
        return _merged(
            [select(a, passages, root_question=root_question, parent_conclusions=parent_conclusions) for a in aspects]
        )
    known = "\n".join((parent_conclusions or {}).values())
    field = Field(sub_question, passages, known, root_question=root_question)
    focused = bool(root_question) and fold(root_question).strip() != fold(sub_question).strip()
    named = field.named() if focused else []
    if named:
        cited = [_best_of(named[0], f"{root_question} {sub_question}", passages)]
        leads, strength = field.led_to(named[0], known), {cited[0].index: field.relevance(named[0])}
    else:
        cited, leads, strength = _pair(field)
    if not cited:
        return Selection([], [], content_words(sub_question))
    terms = dict(field.weights)
    if focused:
        for term, weight in Field(root_question, [d.passage for d in cited]).weights.items():
            terms.setdefault(term, 0.5 * weight)
    return Selection(
        [_quote(doc, cited, terms, f"{root_question} {sub_question}", strength[doc.index]) for doc in cited],
        list(dict.fromkeys(doc.title for doc in leads))[:LEADS],
        field.uncovered(cited, content_words(sub_question)),
    )


def _pair(field: Field) -> tuple[list[Doc], list[Doc], dict[int, float]]:
    """The pair of passages that answers best, one alone when the other adds nothing, and what else is likely."""
    pairs = field.pairs()
    if not pairs:
        lone = [d for d in field.candidates() if field.covers(d) >= _TOUCHES or d.asked]
        return lone[:1], [], {d.index: field.relevance(d) for d in lone}
    top = pairs[0][0]
    chance: dict[int, float] = {}
    total = 0.0
    for score, one, other in pairs:
        odds = math.exp(score - top)
        total += odds
        for doc in (one, other):
            chance[doc.index] = chance.get(doc.index, 0.0) + odds
    chance = {i: odds / total for i, odds in chance.items()}
    _, one, other = pairs[0]
    first, second = sorted((one, other), key=field.relevance, reverse=True)
    if field.covers(first) < _TOUCHES and not first.asked:
        return [], [], {}
    cited = [doc for doc in (first, second) if doc is first or _helps(field, doc, [first])]
    places = {doc.passage.place for doc in cited}
    likely = sorted((d for d in field.docs if chance.get(d.index, 0.0) >= _LIKELY), key=lambda d: -chance[d.index])
    others = sorted((d for d in likely if d.passage.place not in places and not d.foreign), key=lambda d: d.stranger)
    if len(cited) == 1:
        return cited, [d for d in others if _helps(field, d, cited)], chance
    if others and not others[0].stranger and chance[others[0].index] >= _ALSO:  # it was a close thing
        cited.append(others.pop(0))
    return cited, others, chance


def _helps(field: Field, doc: Doc, cited: Sequence[Doc]) -> bool:
    """Whether it speaks of the question at all, is named by it, or one of the two names the other."""
    return field.covers(doc) >= _ADDS or doc.asked > 0 or any(field.linked(doc, other) > 0 for other in cited)


def _best_of(named: Doc, question: str, passages: Sequence[Passage]) -> Doc:
    """The passage of the named document that speaks most of the question; what its title says is no news."""
    own = [p for p in passages if p.place == named.passage.place]
    if len(own) == 1:
        return named
    field = Field(question, own)
    docs = [d for d in field.docs if has_sentence(d.passage)] or field.docs
    news = {d.index: sum(w for t, w in field.weights.items() if t in d.terms - d.title_terms) for d in docs}
    return max(docs, key=lambda d: (news[d.index], -d.index))


def _quote(doc: Doc, cited: Sequence[Doc], terms: Mapping[str, float], question: str, score: float) -> Quote:
    links = [alias.folded for other in cited if other is not doc for alias in other.aliases[:1]]
    return Quote(doc.passage, best_sentences(doc.passage, terms, question, links), score)


def _merged(selections: Sequence[Selection]) -> Selection:
    quotes: dict[tuple[str, str], Quote] = {}
    for quote in (q for s in selections for q in s.quotes):
        key = (quote.passage.place, quote.passage.text)
        old = quotes.get(key)
        if old is not None:
            wanted = {*old.sentences, *quote.sentences}
            order = [s for s in best_sentences(quote.passage, {}, "", limit=10_000) if s in wanted]
            quote = Quote(quote.passage, order, max(old.score, quote.score))
        quotes[key] = quote
    leads = list(dict.fromkeys(lead for s in selections for lead in s.leads))
    uncovered = list(dict.fromkeys(word for s in selections for word in s.uncovered))
    return Selection(list(quotes.values()), leads, uncovered)
