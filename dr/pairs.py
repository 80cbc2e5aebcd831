"""A question and passages -> how well passages, and pairs of them, cover it. Pure.

A question of two hops is answered by two passages that together speak of all of it and are linked by a name, where each
alone may fit badly. So pairs are weighed, by the features and weights of the table below. The weights come from a
logistic fit on HotpotQA questions, rounded; each stands for one idea.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import combinations, pairwise

from dr.contract import Passage
from dr.gaps import bases
from dr.language import content_terms, fold, names, tokens
from dr.sentences import CJK, is_cjk
from dr.shortlist import KEPT, shortlist
from dr.titles import Alias, aliases, mentions, title_of

TOGETHER = 8.0  # share of the question's terms that the two cover together
ALONE = -3.0  # share that one of them covers alone: two that cover different parts are the better pair
ASKED = 1.5  # the question names the document
NEAR = 2.5  # the share of a title's words that stand in the question: of the lesser,
NEAR_BEST = 0.7  # and of the better of the two
PHRASES = 3.3  # share of the question's word pairs that stand in either
LINKED = 1.2  # one mentions the other by name
ALMOST = 2.6  # share of the title's words of one that stand in the other
SHARED = 1.1  # a name that only these two hold, at most two
RIVALS = -1.7  # titles with a common word: two of a kind rather than two parts
SAME = 1.0  # both are of one document
STRANGER, ESTRANGED = 0.4, -1.5  # about a namesake: what that leaves of a passage's fit, and costs a pair
_FOREIGN = 3  # times a passage names a namesake; then it is about that one
NAME_WEIGHT = 1.5  # a term inside a proper name against another term
_COMMON = 0.4  # what a term counts that every passage holds; in a small folder many do
_CANDIDATES, _HEADS = 24, 6  # passages paired; those of them whose links are followed to further passages


class Doc:
    """A passage as it is compared."""

    def __init__(self, passage: Passage, head: Passage) -> None:
        self.passage = passage
        self.head = head  # the first passage of the same document: where its title stands
        self.index = 0
        self.asked = 0.0
        self.near = 0.0
        self.all_terms = _terms_of(passage.title, passage.text)
        self.terms = frozenset(self.all_terms)
        self.namesakes = 0  # how often it names a namesake of what is asked, which its document never mentions

    @property
    def stranger(self) -> bool:
        return self.namesakes > 0

    @property
    def foreign(self) -> bool:
        """Altogether about the namesake."""
        return self.namesakes >= _FOREIGN

    @cached_property
    def folded(self) -> str:
        return fold(self.passage.text)

    @cached_property
    def line(self) -> str:
        return f" {' '.join(self.all_terms)} "

    @cached_property
    def aliases(self) -> tuple[Alias, ...]:
        return aliases(self.head)

    @cached_property
    def title(self) -> str:
        return title_of(self.head)

    @cached_property
    def title_terms(self) -> frozenset[str]:
        return self.aliases[0].terms if self.aliases else frozenset()

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset({fold(name) for name in names(self.passage.text)} | {a.folded for a in self.aliases[:1]})

    @property
    def says_nothing(self) -> bool:
        """Whether it is only the title of its document."""
        return len(self.passage.text) < 200 and set(content_terms(self.passage.text)) <= self.title_terms

    def mentions(self, other: Doc) -> float:
        if other.passage.place == self.passage.place:
            return 0.0
        return mentions(self.passage.text, self.folded, other.aliases)


@lru_cache(maxsize=8192)
def _terms_of(title: str, text: str) -> tuple[str, ...]:
    return tuple(tokens(f"{title} . {text}"))


class Field:
    """Passages in view of one question. known: what is known already; documents it names are close to the question."""

    def __init__(
        self, question: str, passages: Sequence[Passage], known: str = "", kept: int = KEPT, root_question: str = ""
    ) -> None:
        self.question, self.known, self.root_question = question, known, root_question
        heads: dict[str, Passage] = {}
        for passage in passages:
            heads.setdefault(passage.place, passage)
        looked_at = [passages[i] for i in shortlist(question, passages, heads, kept)]
        self.docs = [Doc(p, heads[p.place]) for p in looked_at]
        self.spread: dict[str, int] = {}
        for index, doc in enumerate(self.docs):
            doc.index = index
            for term in doc.terms:
                self.spread[term] = self.spread.get(term, 0) + 1
        self._put_in_context(passages)
        self.terms = content_terms(question)
        in_names = {term for name in names(question) for term in content_terms(name)}
        # A term that no passage holds tells no passage from another; it still counts for what is covered at all.
        raw = {t: self.rarity(t) * (NAME_WEIGHT if t in in_names else 1.0) for t in self.terms}
        total = sum(w for t, w in raw.items() if t in self.spread) or 1.0
        self.weights = {t: w / total for t, w in raw.items() if t in self.spread}
        self._all = sum(raw.values()) / total if raw else 1.0
        folded = fold(question)
        for doc in self.docs:
            doc.asked = mentions(question, folded, doc.aliases)
            doc.near = self._share(doc.title_terms, set(self.terms))
        self._phrases = dict.fromkeys(_phrases(question, set(self.terms)), 0.0)
        for phrase in self._phrases:
            count = sum(_holds(doc, phrase) for doc in self.docs)
            self._phrases[phrase] = self._rarity(count) if count else 0.0
        self._phrase_total = sum(self._phrases.values()) or 1.0

    def _put_in_context(self, passages: Sequence[Passage]) -> None:
        """A page of a report on Port Ellery speaks of Port Ellery without saying so; one on Port Elmsay does not."""
        asked = list(dict.fromkeys(map(fold, [*names(self.question), *names(self.root_question)])))
        if not asked:
            return
        whole: dict[str, list[str]] = {}
        for passage in passages:
            whole.setdefault(passage.place, [passage.title]).append(passage.text)
        texts = {place: fold(" ".join(parts)) for place, parts in whole.items()}
        held = {place: [name for name in asked if name in text] for place, text in texts.items()}
        for doc in self.docs:
            place = doc.passage.place
            if len(whole[place]) > 2:  # more than one passage
                doc.terms |= {t for name in held[place] for t in content_terms(name)}
            if not held[place]:
                doc.namesakes = max(_count_namesakes(name, doc.passage.text) for name in asked)

    def rarity(self, term: str) -> float:
        return self._rarity(self.spread.get(term, 0))

    def _rarity(self, count: int) -> float:
        return max(_COMMON, math.log(1 + (len(self.docs) - count + 0.5) / (count + 0.5)))

    def _share(self, wanted: frozenset[str], present: set[str] | frozenset[str]) -> float:
        total = sum(self.rarity(t) for t in wanted)
        return sum(self.rarity(t) for t in wanted if t in present) / total if total else 0.0

    # -- one passage --------------------------------------------------------------------------------------------------

    def covers(self, doc: Doc) -> float:
        """Share of the question, terms that no passage holds included, that the passage speaks of."""
        return self._weight(doc.terms) / self._all

    def _weight(self, present: frozenset[str]) -> float:
        return sum(w for t, w in self.weights.items() if t in present)

    def relevance(self, doc: Doc) -> float:
        """How well a passage fits by itself."""
        fits = self._weight(doc.terms) + 0.4 * doc.asked + 0.4 * doc.near + 0.4 * self._phrase_share(doc.index)
        return fits * (STRANGER if doc.stranger else 1.0)

    def bm25(self, doc: Doc) -> float:
        average = sum(len(d.all_terms) for d in self.docs) / len(self.docs)
        norm = 1.2 * (0.25 + 0.75 * len(doc.all_terms) / average)
        counts = {t: doc.all_terms.count(t) for t in self.weights if t in doc.terms}
        score = sum(self.rarity(t) * n * 2.2 / (n + norm) for t, n in counts.items())
        return score * (1 + 0.5 * doc.near + 0.5 * doc.asked)

    def named(self) -> list[Doc]:
        """Documents that the question names in full, the longest name first; first passages before later ones."""
        asked = fold(self.question)
        found = [d for d in self.docs if d.asked >= 1 or (d.asked > 0 and (d.near >= 1 or not d.title_terms))]
        # "Joe Buck" before "Joe Buck (musician)", unless the question says which.
        exact = {d.index: fold(d.title) in asked for d in found}
        return sorted(found, key=lambda d: (not exact[d.index], -len(d.title), -self.relevance(d), d.index))

    def _phrase_share(self, *indices: int) -> float:
        held = (w for p, w in self._phrases.items() if w and any(_holds(self.docs[i], p) for i in indices))
        return sum(held) / self._phrase_total

    # -- two passages -------------------------------------------------------------------------------------------------

    def linked(self, one: Doc, other: Doc) -> float:
        return max(one.mentions(other), other.mentions(one))

    def candidates(self) -> list[Doc]:
        """Passages worth pairing: those that fit best, and what the very best mention or are mentioned by."""
        docs = [d for d in self.docs if not d.says_nothing] or self.docs
        ranked = sorted(docs, key=self.relevance, reverse=True)
        chosen, rest = ranked[:_CANDIDATES], ranked[_CANDIDATES:]
        near = [doc for doc in rest if any(self.linked(head, doc) >= 1 for head in chosen[:_HEADS])]
        return chosen + near[:_CANDIDATES]

    def pairs(self) -> list[tuple[float, Doc, Doc]]:
        """Pairs of passages with their score, best first. exp(score) is proportional to the chance of being right."""
        docs = self.candidates()
        holders: dict[str, int] = {}
        for doc in docs:
            for name in doc.names:
                holders[name] = holders.get(name, 0) + 1
        asked = {fold(name) for name in names(self.question)}
        rare = {d.index: {n for n in d.names if holders[n] == 2 and n not in asked} for d in docs}
        held = {d.index: {p for p, w in self._phrases.items() if w and _holds(d, p)} for d in docs}
        cover = {d.index: self._weight(d.terms) for d in docs}
        given = fold(self.known)
        for doc in docs:
            doc.asked = max(doc.asked, mentions(self.known, given, doc.aliases) if given else 0.0)
        scored = []
        for one, other in combinations(docs, 2):
            i, j = one.index, other.index
            apart = one.passage.place != other.passage.place
            score = TOGETHER * self._weight(one.terms | other.terms) + ALONE * max(cover[i], cover[j])
            score += ASKED * (one.asked + other.asked)
            score += NEAR * min(one.near, other.near) + NEAR_BEST * max(one.near, other.near)
            score += PHRASES * sum(self._phrases[p] for p in held[i] | held[j]) / self._phrase_total
            score += SHARED * min(2, len(rare[i] & rare[j]))
            if apart:
                score += LINKED * self.linked(one, other)
                score += ALMOST * max(
                    self._share(one.title_terms, other.terms), self._share(other.title_terms, one.terms)
                )
                score += RIVALS * (not one.title_terms.isdisjoint(other.title_terms))
            else:
                score += SAME
            score += ESTRANGED * (one.stranger + other.stranger)
            scored.append((score, one, other))
        scored.sort(key=lambda s: -s[0])
        return scored

    def led_to(self, doc: Doc, known: str) -> list[Doc]:
        """Documents that `doc` mentions and that speak of what it leaves open."""
        missing = {t: w for t, w in self.weights.items() if t not in doc.terms}
        given = fold(f"{known} {self.question}")
        found = []
        for other in self.docs:
            gain = sum(w for t, w in missing.items() if t in other.terms)
            if gain >= 0.1 and doc.mentions(other) >= 1 and not mentions(given, given, other.aliases):
                found.append((gain, other))
        return [other for _, other in sorted(found, key=lambda f: -f[0])]

    def uncovered(self, cited: Sequence[Doc], words: Sequence[str]) -> list[str]:
        """The words no term of which stands in a cited passage."""
        present = frozenset().union(*(d.terms for d in cited))
        present = frozenset(bases(present))
        return [word for word in words if present.isdisjoint(bases(content_terms(word) or [word]))]


def _count_namesakes(name: str, text: str) -> int:
    """Port Elmsay for Port Ellery: all words but the last the same, the last another one with a capital."""
    *first, last = name.split()
    if not first:
        return 0
    before = r"\s+".join(map(re.escape, first))
    found = re.findall(rf"\b(?i:{before})\s+(?=[A-Z\u00c0-\u00de])([\w'\u2019-]+)", text)
    return sum(fold(word) != last for word in found)


def _phrases(question: str, terms: set[str]) -> list[str]:
    """Neighbours in the question of which one carries content, as they stand in a Doc's line; CJK: three characters."""
    found: dict[str, None] = {}
    words = [t for t in tokens(question) if not is_cjk(t)]
    for one, other in pairwise(words):
        if one in terms or other in terms:
            found[f" {one} {other} "] = None
    for run in re.findall(f"[{CJK}]{{3,}}", fold(question)):
        for i in range(len(run) - 2):
            if run[i : i + 2] in terms or run[i + 1 : i + 3] in terms:
                found[run[i : i + 3]] = None
    return list(found)


def _holds(doc: Doc, phrase: str) -> bool:
    return phrase in (doc.line if phrase[0] == " " else doc.folded)
