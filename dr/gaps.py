"""A question and what was said -> the words of the question that nothing speaks of. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dr.language import content_terms, content_words, tokens


def open_terms(question: str, said: Iterable[str]) -> list[str]:
    """Content words of `question` that stand in none of the texts, in the question's order.

    Of a Chinese word only the part whose characters stand in no known pair: texts are not cut into words.
    """
    present = {term for text in said for term in tokens(text)}
    return list(dict.fromkeys(part for word in content_words(question) for part in _missing(word, present)))


def _missing(word: str, present: set[str]) -> Iterator[str]:
    if word.isascii() or not re.search(r"[\u3400-\u9fff]", word):
        if not set(content_terms(word)) <= present:
            yield word
        return
    known = [False] * len(word)
    for i in range(len(word) - 1):
        if word[i : i + 2] in present:
            known[i] = known[i + 1] = True
    marked = "".join(" " if k else c for c, k in zip(word, known, strict=True))
    yield from (part for part in marked.split() if len(part) > 1)
