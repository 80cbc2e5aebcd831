"""Texts with citations, in the order of the report -> one list of references, numbered by first appearance and checked.

Pure: what the citations lead to was read before (dr/cited.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dr.citations import CONTRADICTED, NOT_CHECKED, SUPPORTED, Check, check_citation, quote_stands, squeezed
from dr.cited import Cited, Source
from dr.language import sentences
from dr.markdown import own

# [local-1], [local-1, web-2], 【web-3】, and in an answer, where the node must be told, [N1/local-1] or [N1:local-1];
# [N1/*] is whatever N1 lists.
_ID = r"(?:(?:[\w.-]+\s*[/:：]\s*)?(?:rag|web|code|local|mem)-\d+|[\w.-]+/\*)"
_CITATION = re.compile(rf"[\[【]\s*({_ID}(?:\s*[,，、;；]\s*{_ID})*)\s*[\]】]")
_FOLLOWING = re.compile(rf"\s?{_CITATION.pattern}")
_STOP = re.compile(r"[.!?](?=\s|\Z)|[。！？]")


@dataclass(frozen=True)
class Reference:
    """One numbered reference. passage: the stored text that the check was made against, "" when there is none.

    check: supported, contradicted or not checked; reason: why.
    """

    n: int
    title: str
    place: str
    locator: Mapping[str, str]
    quote: str
    passage: str
    check: str
    reason: str
    nodes: tuple[str, ...]


def _gravity(check: Check) -> int:
    """One sentence that the passage contradicts, or that says what is not in it, spoils the reference; else one that
    it supports carries it."""
    if check.verdict == CONTRADICTED:
        return 0
    if check.verdict == NOT_CHECKED and check.reason in ("numbers_missing", "quote_missing", "mostly_missing"):
        return 1
    return 2 if check.verdict == SUPPORTED else 3


@dataclass(frozen=True)
class Piece:
    """A stretch of text and the citations that stand behind it. ids: as written, without brackets."""

    text: str
    ids: tuple[str, ...]


def pieces(text: str) -> Iterator[Piece]:
    """`text` cut behind each group of citations. A full stop behind the citation belongs to the piece before."""
    at = 0
    while match := _CITATION.search(text, at):
        end, ids = match.end(), _ids(match[1])
        while following := _FOLLOWING.match(text, end):
            end, ids = following.end(), ids + _ids(following[1])
        stop = _STOP.match(text, end)
        if stop:
            before = text[at : match.start()]
            bare = before.rstrip()
            yield Piece(bare + stop[0] + before[len(bare) :], ids)
            end = stop.end()
        else:
            yield Piece(text[at : match.start()], ids)
        at = end
    if text[at:]:
        yield Piece(text[at:], ())


def name_nodes(text: str, nodes: Mapping[str, Cited]) -> str:
    """`text` with [N1], by which an author means all that N1 rests on, written as [N1/*]."""
    if not nodes:
        return text
    names = "|".join(re.escape(node) for node in sorted(nodes, key=len, reverse=True))
    return re.sub(rf"[\[【]\s*((?:{names})(?:\s*[,，、;；]\s*(?:{names}))*)\s*[\]】]", _with_stars, text)


def _with_stars(match: re.Match[str]) -> str:
    return "[" + ", ".join(f"{name}/*" for name in re.split(r"\s*[,，、;；]\s*", match[1])) + "]"


def _ids(group: str) -> tuple[str, ...]:
    return tuple("".join(part.split()) for part in re.split(r"[,，、;；]", group))


class Numbering:
    """Gives numbers in the order in which texts are handed in, which is the order of the report."""

    def __init__(self, nodes: Mapping[str, Cited], lang: str) -> None:
        self.nodes, self.lang = nodes, lang
        self.dropped: dict[str, None] = {}  # citations that led nowhere, each once
        self._sources: dict[Any, Source] = {}  # in the order of their numbers
        self._numbers: dict[Any, int] = {}
        self._said: dict[Any, dict[tuple[str, tuple[str, ...]], None]] = {}  # sentence, other passages it cites
        self._nodes: dict[Any, list[str]] = {}
        self._quoted: dict[Any, dict[str, None]] = {}  # sentences that may stand in the passage word by word

    def numbers(self, node: str | None, piece: Piece) -> list[int]:
        """The numbers of a piece's citations. node None: the answer's, whose ids name their node."""
        found: list[tuple[str, Source]] = []
        for written in piece.ids:
            owner, sources = self._find(node, written)
            if not sources:
                self.dropped[f"{node}: {written}" if node else written] = None
            found += [(owner, source) for source in sources]
        numbers = [self._number(owner, source) for owner, source in found]
        said = _sentences(piece.text) if found else []
        sentence = said[-1] if said else ""
        for _, source in found:
            self._quoted[source.key].update(dict.fromkeys(said))
            also = tuple(other.passage for _, other in found if other.key != source.key)
            self._said[source.key][sentence, also] = None
        return list(dict.fromkeys(numbers))

    def listed(self, node: str) -> list[int]:
        """The numbers of all sources that a node lists, the cited ones included."""
        return [self._number(node, source) for source in self.nodes[node].listed]

    def nodes_of(self, number: int) -> list[str]:
        return self._nodes[list(self._sources)[number - 1]]

    def references(self) -> list[Reference]:
        """Every reference that has a number, checked against its stored passage."""
        return [self._reference(n, source) for n, source in enumerate(self._sources.values(), 1)]

    def _find(self, node: str | None, written: str) -> tuple[str, tuple[Source, ...]]:
        owner, _, citation_id = re.sub("[:：]", "/", written).rpartition("/")
        if citation_id == "*":
            return owner, self.nodes[owner].listed if owner in self.nodes else ()
        candidates = [owner] if owner else [node] if node else list(self.nodes)
        leads = [(n, self.nodes[n].by_id[citation_id]) for n in candidates if citation_id in self._ids_of(n)]
        return leads[0] if len(leads) == 1 else ("", ())  # an id of several nodes is nobody's

    def _ids_of(self, node: str) -> Mapping[str, tuple[Source, ...]]:
        return self.nodes[node].by_id if node in self.nodes else {}

    def _number(self, node: str, source: Source) -> int:
        self._sources.setdefault(source.key, source)
        self._said.setdefault(source.key, {})
        self._quoted.setdefault(source.key, {})
        citing = self._nodes.setdefault(source.key, [])
        if node not in citing:
            citing.append(node)
        return self._numbers.setdefault(source.key, len(self._sources))

    def _reference(self, n: int, source: Source) -> Reference:
        said = list(self._said[source.key])
        # The quote speaks for its own sentence; another one that cites the same place has to stand by itself.
        own = {sentence for sentence, _ in said if quote_stands(source.quote, sentence)}
        checks = []
        for sentence, also in said:
            quote = "" if own and sentence not in own else source.quote
            checks.append(check_citation(sentence, quote, source.passage, also))
        checks = checks or [check_citation("", source.quote, source.passage)]
        check = min(checks, key=_gravity)
        nodes = tuple(self._nodes[source.key])
        return Reference(
            n=n,
            title=source.title,
            place=source.place,
            locator=dict(source.locator),
            quote=self._quote(source),
            passage=source.passage,
            check=check.verdict,
            reason=check.why(self.lang),
            nodes=nodes,
        )

    def _quote(self, source: Source) -> str:
        """The source line's quote and what else the report says of the passage word by word, in the passage's order."""
        more = [s for s in self._quoted[source.key] if source.passage and s not in source.quote]
        parts = {squeezed(source.quote): source.quote} if source.quote else {}
        for sentence in more:
            key = squeezed(sentence)
            core = key.rstrip(".。!?！？")  # a sentence that ends where the passage's goes on says nothing more
            if core and not any(core in known for known in parts) and quote_stands(sentence, source.passage):
                parts = {known: part for known, part in parts.items() if known not in key} | {key: sentence}
        if len(parts) < 2:
            return "".join(parts.values())
        passage = squeezed(source.passage)
        return " … ".join(parts[key] for key in sorted(parts, key=lambda key: passage.find(key.rstrip(".。"))))


def marks(numbers: list[int]) -> str:
    """The numbers as citations, before the text around them is made safe."""
    return "".join(own(n) for n in numbers)


def _sentences(text: str) -> list[str]:
    """Of what stands before a citation, the sentences of its last paragraph; it vouches for the last of them."""
    lines = [line for line in text.strip().split("\n") if line.strip()]
    return [sentence.strip() for sentence in sentences(lines[-1])] if lines else []
