"""Conclusions -> an extractive answer: their sentences that fit the question best, as they stand. Pure; no model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dr.cited import Cited
from dr.language import content_terms, numbers, sentences, tokens
from dr.quoting import answer_sentences
from dr.references import pieces

SENTENCES = 6  # at most; a reader wants an answer, the findings follow
_CHARS = 420  # a longer stretch is a passage, not a sentence; its last sentences are taken
_FILLED = 5  # sentences up to which nodes are heard that answer their own question in words not of the root question
_SHORT = 4  # different terms; less is a heading or a cell of a table
_SAME = 0.9  # of a sentence's words in another one: it says the same


@dataclass(frozen=True)
class Quoted:
    """A sentence of a node's conclusion. ids: the citations behind it; none for a node that cites as a whole."""

    node: str
    text: str
    ids: tuple[str, ...]


def extractive(
    question: str,
    nodes: Sequence[Cited],
    asked: Mapping[str, str] | None = None,
    limit: int = SENTENCES,
    conflicts: Sequence[Mapping[str, Any]] = (),
) -> list[Quoted]:
    """The sentences that answer the question best, best first, each for what it adds.

    asked: node -> its own question. conflicts: as dr.conflicts.find() gives them; of one that the answer touches every
    side is heard.
    """
    candidates = [(quote, lead) for node in nodes for quote, lead in _candidates(node)]
    long = [(quote, lead) for quote, lead in candidates if len(set(tokens(quote.text))) >= _SHORT]
    candidates = long or candidates
    words = {quote: frozenset(tokens(quote.text)) for quote, _ in candidates}
    by_text: dict[str, Quoted] = {}
    for quote, _ in candidates:  # of equals the first: nodes come dependencies first
        by_text.setdefault(quote.text, quote)
    chosen: list[Quoted] = []
    for text in answer_sentences(question, by_text, limit):
        quote = by_text[text]
        if not any(_says(c, quote, words) for c in chosen):
            chosen.append(quote)
    heard = {quote.node for quote in chosen}
    own = {node: set(content_terms(text)) - set(content_terms(question)) for node, text in (asked or {}).items()}
    leads = (quote for quote, lead in candidates if lead and quote.node not in heard)
    others = (quote for quote in leads if own.get(quote.node, set()) & words[quote])
    fresh = [q for q in others if not any(_says(c, q, words) for c in chosen)]
    chosen += fresh[: max(0, min(limit, _FILLED) - len(chosen))]
    for conflict in conflicts:
        _hear_every_side(conflict, chosen, [quote for quote, _ in candidates])
    return chosen or [quote for quote, _ in candidates[:1]]


def _says(one: Quoted, other: Quoted, words: Mapping[Quoted, frozenset[str]]) -> bool:
    """Whether `one` says all that `other` does; another number is another statement."""
    shared = len(words[one] & words[other]) >= _SAME * len(words[other])
    return shared and set(numbers(other.text)) <= set(numbers(one.text))


def _hear_every_side(conflict: Mapping[str, Any], chosen: list[Quoted], candidates: Sequence[Quoted]) -> None:
    """Put behind the sentence that gives one of the values one for each other value."""
    sides: dict[str, list[Quoted]] = {}
    for value in conflict.get("values") or ():
        sides.setdefault(str(value.get("value")), []).extend(q for q in candidates if gives(q, value))
    heard = {value for value, quotes in sides.items() if any(q in chosen for q in quotes)}
    if not heard:
        return
    at = 1 + max(i for i, q in enumerate(chosen) if any(q in sides[value] for value in heard))
    chosen[at:at] = dict.fromkeys(quotes[0] for value, quotes in sides.items() if value not in heard and quotes)


def gives(quote: Quoted, value: Mapping[str, Any]) -> bool:
    """Whether it is the sentence in which a value of a conflict stands."""
    sentence = _one_line(str(value.get("sentence") or ""))
    same = quote.node == value.get("node") and str(value.get("citation") or "").strip("[]") in quote.ids
    return same and bool(sentence) and sentence in quote.text


def _candidates(node: Cited) -> list[tuple[Quoted, bool]]:
    """Each cited stretch of a conclusion, and whether it is the first; of one that cites as a whole its beginning."""
    paragraphs = [list(pieces(p)) for p in re.split(r"\n\s*\n", node.body) if p.strip()]
    found: list[tuple[Quoted, bool]] = []
    for piece in (piece for paragraph in paragraphs for piece in paragraph):
        ids = tuple(i for i in piece.ids if i in node.by_id)
        if ids and (text := _one_line(piece.text)):
            found.append((Quoted(node.node, _tail(text), ids), not found))
    if not found and paragraphs:
        text = _one_line("".join(piece.text.rstrip() if piece.ids else piece.text for piece in paragraphs[0]))
        found.append((Quoted(node.node, _head(text), ()), True))
    return found


def _one_line(text: str) -> str:
    """Without the marks of a list or heading: the sentence is going to stand alone."""
    return " ".join(re.sub(r"^\s*(?:[-*+]|\d{1,3}[.)]|#{1,6})\s+", "", text).split())


def _tail(text: str) -> str:
    """Of a long stretch the last sentences, which the citation behind it vouches for."""
    parts, short = sentences(text), ""
    for part in reversed(parts):
        if short and len(part) + len(short) > _CHARS:
            break
        short = f"{part.strip()} {short}".strip() if part.isascii() else part.strip() + short
    return text if len(text) <= _CHARS else short or text


def _head(text: str) -> str:
    """Of a conclusion without citations the first sentences."""
    parts = sentences(text)
    return " ".join(p.strip() for p in parts[:3]) if all(p.isascii() for p in parts[:3]) else "".join(parts[:3])
