"""Conclusions so far -> the nodes of the next round, or the reason why there is none. Pure, no model, no source text.

A round follows what conclusions lead to: documents they name as leads, names that several of them mention, and
quantities on which they contradict each other. It asks only what something suggests can be answered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from dr import conclusion
from dr.conflicts import clash, shown, topic
from dr.contract import NodeType, fold, join_sources, split_sources
from dr.dag import Node
from dr.gaps import open_terms
from dr.language import detect, names, normalise, repeats, sentences
from dr.plan import Step
from dr.planning import Deepening
from dr.quantities import Quantity
from dr.words import say

PER_NODE = 2  # leads followed of one conclusion in one round
PER_ROUND = 6
_WORD_CHARS = 24
_OPEN_SHOWN = 4


@dataclass(frozen=True)
class _Wish:
    """A node somebody would like: word for its id, the nodes it comes from, why; lead: the document it follows."""

    word: str
    parents: tuple[Node, ...]
    source: str
    type: NodeType
    question: str
    why: str = ""
    lead: str = ""


def deepen(question: str, nodes: Sequence[Node], findings: Mapping[str, str], number: int, room: int) -> Deepening:
    """Round `number`, at most `room` nodes. nodes: of the plan so far, SYNTH excepted. findings: id -> conclusion."""
    lang = detect(question)
    answered = [n for n in nodes if findings.get(n.id, "").strip()]
    if not answered:
        return Deepening([], say(lang, "deepen_no_findings"))
    parts = {n.id: conclusion.parse(findings[n.id]) for n in answered}
    wishes = [
        *_contradictions(answered, parts, lang),
        *_leads(question, nodes, answered, parts, lang),
        *_links(question, answered, parts, lang),
    ]
    asked = [n.sub_question for n in nodes]
    taken = {fold(n.id) for n in nodes}
    steps: list[Step] = []
    granted: list[_Wish] = []
    refused = 0
    for wish in wishes:
        if len(steps) >= min(room, PER_ROUND):
            break
        if repeats(wish.question, asked) is not None:
            refused += 1
            continue
        node_id = _free_id(wish, taken)
        args = {
            "sub_question": wish.question,
            "source": wish.source,
            "depends_on": [node.id for node in wish.parents],
        }
        steps.append(Step(node_id, wish.type.value, args, say(lang, "plan_expected")))
        asked.append(wish.question)
        granted.append(wish)
    if steps:
        return Deepening(steps, _why(granted, lang))
    missing = open_terms(question, [part.body for part in parts.values()])
    return Deepening([], _why_none(lang, missing, refused))


def _why(granted: Sequence[_Wish], lang: str) -> str:
    between = say(lang, "separator_list")
    leads = [wish.lead for wish in granted if wish.lead]
    followed = [say(lang, "deepen_why_lead", titles=between.join(leads))] if leads else []
    return between.join(dict.fromkeys([*(wish.why for wish in granted if wish.why), *followed]))


def _why_none(lang: str, missing: Sequence[str], refused: int) -> str:
    if missing:
        return say(lang, "deepen_no_lead", terms=say(lang, "comma_list").join(missing[:6]))
    return say(lang, "deepen_repeats") if refused else say(lang, "deepen_covered")


# -- leads ------------------------------------------------------------------------------------------------------------


def _leads(
    question: str,
    nodes: Sequence[Node],
    answered: Sequence[Node],
    parts: Mapping[str, conclusion.Conclusion],
    lang: str,
) -> list[_Wish]:
    """Documents that conclusions name as worth a look, the best of every node first."""
    seen = {normalise(title) for title in _cited_titles(parts)}
    narrow = [normalise(n.sub_question) for n in nodes if normalise(n.sub_question) != normalise(question)]
    missing = open_terms(question, [part.body for part in parts.values()])
    wishes: list[_Wish] = []
    for turn in range(PER_NODE):
        for node in answered:
            leads = parts[node.id].leads[:PER_NODE]
            if turn >= len(leads):
                continue
            title = leads[turn]
            key = normalise(title)
            # A document that was read, or about which a node asks by name, needs no node of its own.
            if not key or key in seen or any(_names(text, key) for text in narrow):
                continue
            seen.add(key)
            wishes.append(
                _Wish(_slug(title), (node,), node.source, node.type, _about(title, missing, lang), lead=title)
            )
    return wishes


def _cited_titles(parts: Mapping[str, conclusion.Conclusion]) -> list[str]:
    """Names of the files that were cited already."""
    places = [line.place for part in parts.values() for line in part.sources]
    return [re.sub(r"\.\w{1,5}$", "", re.split(r"[/\\]", place.rstrip("/\\"))[-1]) for place in places]


def _names(text: str, key: str) -> bool:
    return f" {key} " in f" {text} " if key.isascii() else key in text


def _about(title: str, missing: Sequence[str], lang: str) -> str:
    words = [word for word in missing if fold(word) not in fold(title)][:_OPEN_SHOWN]
    if not words:
        return say(lang, "deepen_about", title=title)
    return say(lang, "deepen_about_terms", title=title, terms=say(lang, "comma_list").join(words))


# -- names that link conclusions --------------------------------------------------------------------------------------


def _links(
    question: str, answered: Sequence[Node], parts: Mapping[str, conclusion.Conclusion], lang: str
) -> list[_Wish]:
    """Names that two conclusions mention and the question does not, where a search of the web can answer."""
    searching = [n for n in answered if n.type is NodeType.WEB and not n.source]
    if not searching or any(parts[n.id].leads for n in answered):
        return []
    missing = open_terms(question, [part.body for part in parts.values()])
    holders: dict[str, list[Node]] = {}
    shown: dict[str, str] = {}
    for node in searching:
        for name in names(parts[node.id].body):
            holders.setdefault(fold(name), []).append(node)
            shown.setdefault(fold(name), name)
    linking = [key for key, owners in holders.items() if len(owners) > 1 and key not in fold(question)]
    return [
        _Wish(
            _slug(shown[key]),
            tuple(holders[key]),
            "",
            NodeType.WEB,
            _about(shown[key], missing, lang),
            say(lang, "deepen_why_link", name=shown[key]),
        )
        for key in linking[:PER_NODE]
        if missing
    ]


# -- contradictions ---------------------------------------------------------------------------------------------------


def _contradictions(answered: Sequence[Node], parts: Mapping[str, conclusion.Conclusion], lang: str) -> list[_Wish]:
    """Two conclusions that give the same quantity different values: their sources are read together."""
    wishes = []
    for one, other in combinations(answered, 2):
        if "_" in one.id or "_" in other.id or one.type is not other.type or not (one.source and other.source):
            continue  # a node that deepens has seen what it asks about
        found = _conflict(parts[one.id].body, parts[other.id].body)
        if found is None:
            continue
        about = topic(*found)
        first, second = (shown(quantity) for _, quantity in found)
        sources = list(dict.fromkeys([*split_sources(one.source), *split_sources(other.source)]))
        wishes.append(
            _Wish(
                "conflict",
                (one, other),
                join_sources(sources),
                one.type,
                say(lang, "deepen_conflict", topic=about, one=first, other=second),
                say(lang, "deepen_why_conflict", one=first, other=second),
            )
        )
    return wishes[:PER_NODE]


def _conflict(one: str, other: str) -> tuple[tuple[str, Quantity], tuple[str, Quantity]] | None:
    """A sentence of each and its number, where the two contradict each other."""
    ours = [s for s in sentences(_bare(one)) if any(c.isdigit() for c in s)]
    theirs = [s for s in sentences(_bare(other)) if any(c.isdigit() for c in s)]
    for a in ours:
        for b in theirs:
            if (found := clash(a, b)) is not None:
                return (a, found[0]), (b, found[1])
    return None


def _bare(text: str) -> str:
    return re.sub(r"\s*\[(?:rag|web|code|local|mem)-\d+\]", "", text)


# -- ids --------------------------------------------------------------------------------------------------------------


def _slug(title: str) -> str:
    """A word for an id: the title's words, joined by `_`, cut at a word."""
    words = re.findall(r"\w+", fold(title))
    slug = ""
    for word in words:
        if slug and len(slug) + 1 + len(word) > _WORD_CHARS:
            break
        slug = f"{slug}_{word}" if slug else word[:_WORD_CHARS]
    return slug or "more"


def _free_id(wish: _Wish, taken: set[str]) -> str:
    base = f"{wish.parents[0].id}_{wish.word}"[:70]
    found, count = base, 2
    while fold(found) in taken:
        found, count = f"{base}_{count}", count + 1
    taken.add(fold(found))
    return found
