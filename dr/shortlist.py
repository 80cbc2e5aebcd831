"""Many passages -> those worth a closer look at a question, for the price of substring searches. Pure.

A passage is looked at when it holds much of the question, or when it and one of the very best passages mention each
other's document.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dr.contract import Passage
from dr.language import content_terms, fold
from dr.titles import aliases

KEPT = 96  # passages kept for what they hold; as many again for links
_HEADS = 6
_SHORTEST_NAME = 4


def shortlist(question: str, passages: Sequence[Passage], heads: Mapping[str, Passage], kept: int = KEPT) -> list[int]:
    """Indices of the passages to look at, in order. heads: place -> the first passage of the document."""
    if len(passages) <= kept:
        return list(range(len(passages)))
    texts = [fold(f"{p.title}\n{p.text}") for p in passages]
    scores = [0.0] * len(texts)
    for term in content_terms(question):
        probe = term[:-1] if len(term) > 4 and term.endswith("y") else term  # story, stories
        holding = [i for i, text in enumerate(texts) if probe in text]
        weight = math.log(1 + (len(texts) - len(holding) + 0.5) / (len(holding) + 0.5))
        for i in holding:
            scores[i] += weight
    order = sorted(range(len(texts)), key=lambda i: -scores[i])
    chosen = [i for i in order[:kept] if scores[i] > 0]
    best = chosen[:_HEADS]
    names = [a.folded for i in best for a in aliases(heads[passages[i].place])[:1] if len(a.folded) >= _SHORTEST_NAME]
    said = "\n".join(texts[i] for i in best)
    linked = [
        i for i in order[kept:] if any(name in texts[i] for name in names) or _key(passages[i], heads, texts[i]) in said
    ]
    return sorted([*chosen, *linked[:kept]])


def _key(passage: Passage, heads: Mapping[str, Passage], text: str) -> str:
    """A cheap stand-in for the name of the passage's document: its title, or the first two words of its text."""
    title = passage.title
    if " " in title or len(title) > 8:
        return fold(title.split(" (")[0])
    head = heads[passage.place]
    words = fold(head.text[:80]).split(None, 2) if head is not passage else text[len(title) + 1 :][:80].split(None, 2)
    return " ".join(words[:2]) if words else "\n\n"
