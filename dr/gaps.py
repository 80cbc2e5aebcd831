"""A question and what was said -> the words of the question that nothing speaks of. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dr.language import content_terms, content_words, stem, tokens

# Forms of one word that no ending tells: "How long did it run?" is spoken of by "It ran for 41 days."
_FORMS = {
    stem(form): stem(forms.split()[0])
    for forms in (
        "run ran/build built/sell sold/buy bought/spend spent/begin began begun/win won/lead led/hold held/find found"
        "/write wrote written/give gave given/grow grew grown/fall fell fallen/rise rose risen/lose lost/pay paid"
        "/leave left/keep kept/sink sank sunk/teach taught/drive drove driven/fly flew flown/speak spoke spoken"
        "/choose chose chosen/break broke broken/draw drew drawn/see saw seen/think thought/bring brought/meet met"
        "/send sent/lie lay/wear wore worn/stand stood/eat ate eaten/sing sang sung/swim swam/know knew known/feed fed"
        "/die dead death/weigh weight/live lived life lives"
    ).split("/")
    for form in forms.split()
}


def bases(terms: Iterable[str]) -> set[str]:
    """Terms with irregular verb forms as their base."""
    return {_FORMS.get(term, term) for term in terms}


def open_terms(question: str, said: Iterable[str]) -> list[str]:
    """Content words of `question` that stand in none of the texts, in the question's order.

    Of a Chinese word only the part whose characters stand in no known pair: texts are not cut into words.
    """
    present = bases(term for text in said for term in tokens(text))
    return list(dict.fromkeys(part for word in content_words(question) for part in _missing(word, present)))


def _missing(word: str, present: set[str]) -> Iterator[str]:
    if word.isascii() or not re.search(r"[\u3400-\u9fff]", word):
        if not bases(content_terms(word)) <= present:
            yield word
        return
    known = [False] * len(word)
    for i in range(len(word) - 1):
        if word[i : i + 2] in present:
            known[i] = known[i + 1] = True
    marked = "".join(" " if k else c for c, k in zip(word, known, strict=True))
    yield from (part for part in marked.split() if len(part) > 1)
