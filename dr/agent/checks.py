"""The checks that are never left to a model: ids exist, quotes stand, numbers stand, the form is kept. Pure."""

from __future__ import annotations

import re

from dr import citations, quantities
from dr.agent.memory import InvestigateMemory
from dr.agent.words import say

_ID = re.compile(r"\[(?:rag|web|code|local|mem)-\d+\]")
_CITED = re.compile(rf"(?P<text>[^\n]*?)(?P<ids>(?:\s*{_ID.pattern})+)")
_PROTOCOL = re.compile(
    r"[\[【]\s*结论\s*[\]】]|\[ROUND END\]|\A(?:来源|线索|Leads|Sources?)\s*[:：]"
    r"|\A!!!Error|\A\[!!!|\A\**(?:LLM Running \()?Turn \d+\)? \.\.\.|🛠️",
    re.I,
)
_QUOTED = re.compile(r"“([^”]{4,})”|「([^」]{4,})」|\"([^\"]{8,})\"")


def ids_in(text: str) -> list[str]:
    """Citation ids in order of first use."""
    return list(dict.fromkeys(_ID.findall(text)))


def cited_spans(text: str) -> list[tuple[str, list[str]]]:
    """(text, ids that follow it) for every stretch of text that ends with citations; the rest with no ids."""
    spans: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        end = 0
        for match in _CITED.finditer(line):
            spans.append((_without_link(match["text"]), _ID.findall(match["ids"])))
            end = match.end()
        if rest := _without_link(line[end:]):
            spans.append((rest, []))
    return spans


def _without_link(text: str) -> str:
    """Without the punctuation between one citation and the next sentence."""
    return re.sub(r"^(?:[。；，;,]|\.(?=\s|$))+", "", text.strip()).strip()


def speaks_protocol(sentence: str) -> bool:
    """Whether a sentence of a source would be read as ours: a citation id, a mark, a source line, an error line."""
    return bool(_ID.search(sentence) or _PROTOCOL.search(sentence.strip()))


def faults(content: str, listed: list[str], evidence: InvestigateMemory, lang: str, verbatim: bool) -> list[str]:
    """What is wrong with `content`, each with what to do about it; empty when nothing is.

    listed: the ids that the step says it cites. verbatim: every cited sentence must be a quotation.
    """
    if not content.strip():
        return [say(lang, "check_empty")]
    used = ids_in(content)
    found = [say(lang, "check_unknown_id", id=i) for i in dict.fromkeys([*used, *listed]) if evidence.get(i) is None]
    found += [say(lang, "check_unlisted_id", id=i) for i in used if i not in listed]
    found += [say(lang, "check_unused_id", id=i) for i in listed if i not in used]
    for text, ids in cited_spans(content):
        passages = [(i, p.text) for i in ids if (p := evidence.get(i)) is not None]
        if passages:
            found += _span_faults(text, passages, lang, verbatim)
        elif not ids and not verbatim and quantities.quantities(text):
            found.append(say(lang, "check_uncited", sentence=text[:120]))
    return found


def quoted(text: str) -> list[str]:
    """What stands between quotation marks."""
    return [next(filter(None, groups)) for groups in _QUOTED.findall(text)]


def _span_faults(text: str, passages: list[tuple[str, str]], lang: str, verbatim: bool) -> list[str]:
    ids = "".join(i for i, _ in passages)
    quotes = [text] if verbatim else quoted(text)
    found = [
        say(lang, "check_quote", id=ids, sentence=quote[:120])
        for quote in quotes
        if not any(citations.quote_stands(quote, passage) for _, passage in passages)
    ]
    if verbatim and not found:
        return []  # a quotation that stands has its numbers there
    if missing := quantities.missing(text, "\n".join(passage for _, passage in passages)):
        numbers = say(lang, "comma").join(q.raw for q in missing)
        found.append(say(lang, "check_number", id=ids, numbers=numbers))
    return found
