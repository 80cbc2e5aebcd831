"""Conclusions -> an answer, written by a model from conclusions alone, section by section when they are many; and what
of such an answer code lets stand. Pure but for what it is given to ask with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dr import prompts
from dr.citations import CONTRADICTED, SUPPORTED, check_citation
from dr.cited import Cited, Source
from dr.conclusion import parse
from dr.dag import Dag
from dr.errors import ContextOverflow
from dr.language import sentences
from dr.references import Piece, name_nodes, pieces
from dr.words import say

# prompt, validate, language, schema -> what validate returned
AskJson = Callable[[str, Callable[[Any], Any], str, Mapping[str, Any]], Any]
Part = tuple[str, str]  # our heading, and a text of conclusions, which stands inside a fence
WHOLE_CHARS = 6_000  # of conclusions that one prompt is given; more are answered section by section
_LEAST_CHARS = 1_000
_SECTIONS = 8
_HEAD_CHARS = 160
_ID = re.compile(
    r"[\[【]\s*((?:rag|web|code|local|mem)-\d+(?:\s*[,，、;；]\s*(?:rag|web|code|local|mem)-\d+)*)\s*[\]】]"
)

_STRING = {"type": "string", "maxLength": 6000}
ANSWER = {"type": "object", "properties": {"answer": _STRING}, "required": ["answer"], "additionalProperties": False}
_ROW = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 100},
        "nodes": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["title", "nodes"],
    "additionalProperties": False,
}
OUTLINE = {
    "type": "object",
    "properties": {"sections": {"type": "array", "items": _ROW, "minItems": 1, "maxItems": _SECTIONS}},
    "required": ["sections"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Checked:
    """text: None when nothing cited is left. contradicted: sentences taken out; unknown: citations without a source."""

    text: str | None
    contradicted: list[str]
    unknown: list[str]


def write(ask: AskJson, question: str, dag: Dag, findings: Mapping[str, str], lang: str) -> str:
    """The answer's text, citing [N1/local-1] or [N1]. ChatError: no usable reply came."""
    told = _told(dag, findings, lang)
    missing = [n for n in dag.work_nodes if n.id not in told]
    open_ = "\n".join(f"- {n.id}: {n.sub_question} ({say(lang, 'state_' + n.state.value)})" for n in missing)
    whole = _chars(told.values())
    if whole <= WHOLE_CHARS:
        try:
            return _one(ask, "synthesis", question, list(told.values()), set(told), lang, open_)
        except ContextOverflow:
            pass
    most = WHOLE_CHARS
    while True:
        try:
            return _sections(ask, question, told, open_, most, lang)
        except ContextOverflow:
            if most <= _LEAST_CHARS:
                raise
            most //= 2


def _sections(ask: AskJson, question: str, told: Mapping[str, Part], open_: str, most: int, lang: str) -> str:
    written: list[str] = []
    for title, nodes in _outline(ask, question, told, most, lang):
        facts = {"title": title}
        written.append(_one(ask, "synthesis_section", question, [told[n] for n in nodes], set(nodes), lang, **facts))
    heads = [("", _first_sentences(text)) for text in written]
    lead = _one(ask, "synthesis_lead", question, heads, set(told), lang, open_)
    return "\n\n".join([lead, *written])


def _outline(
    ask: AskJson, question: str, told: Mapping[str, Part], most: int, lang: str
) -> list[tuple[str, list[str]]]:
    """(title, nodes) of each section, none of more than `most` characters of conclusions; every node is in one."""
    heads = [(heading, text[: min(_HEAD_CHARS, most // len(told))]) for heading, text in told.values()]

    def validate(value: Any) -> list[tuple[str, list[str]]]:
        rows = [(str(row["title"]), [str(n).strip("[] ") for n in row["nodes"]]) for row in value["sections"]]
        if strange := [n for _, nodes in rows for n in nodes if n not in told]:
            raise ValueError(f"{strange[0]} is none of the nodes: {', '.join(told)}")
        return rows

    facts = {"question": question, **_fenced(heads), "most": _SECTIONS}
    rows = ask(prompts.prompt("synthesis_outline", lang, **facts), validate, lang, OUTLINE)
    found: list[tuple[str, list[str]]] = []
    seen: set[str] = set()
    rest = [n for n in told if all(n not in nodes for _, nodes in rows)]
    for title, nodes in [*rows, (question, rest)]:
        chunk: list[str] = []
        for node in [n for n in dict.fromkeys(nodes) if n not in seen]:
            if chunk and _chars(told[n] for n in [*chunk, node]) > most:
                found.append((title, chunk))
                chunk = []
            chunk.append(node)
            seen.add(node)
        if chunk:
            found.append((title, chunk))
    return found


def _one(
    ask: AskJson,
    page: str,
    question: str,
    parts: Sequence[Part],
    known: set[str],
    lang: str,
    open_: str = "",
    **facts: object,
) -> str:
    text = prompts.prompt(page, lang, question=question, **_fenced(parts, open_), **facts)
    return str(ask(text, lambda value: answer(value, known), lang, ANSWER))


def answer(value: Any, known: set[str]) -> str:
    text = value.get("answer") if isinstance(value, dict) else None
    if not isinstance(text, str) or len(text.strip()) < 20:
        raise ValueError('the reply must be {"answer": "…"} with the whole answer as its text')
    if known and not any(re.search(rf"[\[【,，、;；]\s*{re.escape(i)}\s*[\]】,，、;；/]", text) for i in known):
        raise ValueError(f"the answer cites no node; write [{sorted(known)[0]}] behind what rests on that node")
    return text.strip()


def _told(dag: Dag, findings: Mapping[str, str], lang: str) -> dict[str, Part]:
    """Node -> its conclusion's own words, its citations named after it; its source lines, which quote, are left out."""
    told = {}
    for node in dag.work_nodes:
        parts = parse(findings.get(node.id, ""))
        body = "\n\n".join([parts.body.strip(), *parts.notes]).strip()
        if body:
            named = _ID.sub(lambda m: _named(m[1], node.id), body)  # noqa: B023 - used at once
            told[node.id] = f"### {node.id} ({node.type.value}): {node.sub_question}\n", named
    return told


def _chars(parts: Iterable[Part]) -> int:
    return sum(len(heading) + len(text) for heading, text in parts)


def _fenced(parts: Sequence[Part], open_: str = "") -> dict[str, str]:
    """What a page is told of the conclusions. open_: nodes without one, in our words."""
    word = prompts.fence([text for _, text in parts])
    return {"fence": word, "findings": "\n\n".join(filter(None, [prompts.material(parts, word), open_]))}


def _named(ids: str, node: str) -> str:
    return "[" + ", ".join(f"{node}/{i}" for i in re.findall(r"\w+-\d+", ids)) + "]"


def _first_sentences(text: str) -> str:
    """The first cited stretches of a section, for the lead."""
    found = list(pieces(text))[:2]
    return "".join(f"{p.text}[{', '.join(p.ids)}]" if p.ids else p.text for p in found)[:800]


# -- what code lets stand ---------------------------------------------------------------------------------------------


def checked(text: str, nodes: Mapping[str, Cited]) -> Checked:
    """Citations that lead nowhere are dropped, and sentences that the passage they cite contradicts."""
    contradicted: list[str] = []
    unknown: list[str] = []
    cites = False
    paragraphs: list[str] = []
    for paragraph in re.split(r"\n\s*\n", name_nodes(text, nodes)):
        kept = ""
        for piece in pieces(paragraph):
            sources = {i: _sources(i, nodes) for i in piece.ids}
            unknown += [i for i, found in sources.items() if not found and i not in unknown]
            good = [i for i, found in sources.items() if found]
            said = _last(piece)
            if good and said and _contradicted(said, [s for i in good for s in sources[i]]):
                contradicted.append(said)
                kept += piece.text[: piece.text.rindex(said)].rstrip(" ")
                continue
            cites = cites or bool(good)
            mark = f" [{', '.join(good)}]" if good else ""
            kept += (piece.text.rstrip() if piece.ids else piece.text) + mark
        if kept.strip():
            paragraphs.append(kept.strip())
    return Checked("\n\n".join(paragraphs) if cites else None, contradicted, unknown)


def _last(piece: Piece) -> str:
    lines = [line for line in piece.text.strip().split("\n") if line.strip()]
    found = sentences(lines[-1]) if lines else []
    return found[-1].strip() if found else ""


def _sources(written: str, nodes: Mapping[str, Cited]) -> tuple[Source, ...]:
    owner, _, citation = re.sub("[:：]", "/", written).rpartition("/")
    if citation == "*":
        node = nodes.get(owner)
        return (node.listed or tuple(s for found in node.by_id.values() for s in found)) if node else ()
    owners = [owner] if owner else list(nodes)
    found = [nodes[o].by_id[citation] for o in owners if o in nodes and citation in nodes[o].by_id]
    return found[0] if len(found) == 1 else ()


def _contradicted(said: str, sources: Sequence[Source]) -> bool:
    passages = [s.passage for s in sources]
    verdicts = {
        check_citation(said, "", passage, [p for p in passages if p != passage]).verdict for passage in passages
    }
    return CONTRADICTED in verdicts and SUPPORTED not in verdicts
