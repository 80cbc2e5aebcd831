"""Quotes with their passages -> the text of a conclusion, in the form that the runner collects. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dr.agent.words import say
from dr.contract import CONCLUSION_CHARS_CJK, CONCLUSION_MARK, CONCLUSION_WORDS, Passage
from dr.source_lines import source_line


@dataclass(frozen=True)
class Cited:
    """One sentence of a passage that is in evidence.jsonl, word by word."""

    sentence: str
    passage: Passage

    def __str__(self) -> str:
        return f"{one_line(self.sentence)} {self.passage.id}"


def paragraph(sentences: list[Cited]) -> str:
    return " ".join(map(str, sentences))


def one_line(text: str) -> str:
    return " ".join(text.split())


def is_too_long(body: str) -> bool:
    """Over 500 characters of Chinese or 300 words, as the conclusion's form asks."""
    cjk = sum("\u3400" <= c <= "\u9fff" for c in body)
    if cjk * 4 > len(body):
        return len(body) > CONCLUSION_CHARS_CJK
    return len(body.split()) > CONCLUSION_WORDS


def compose(direct: list[Cited], further: list[list[Cited]], remarks: list[str], leads: list[str], lang: str) -> str:
    """The conclusion: the sentences of `direct`, then a paragraph for each group of `further`. The first sentence is
    always there; when it gets too long, others are left out, the last ones first, a passage's only one last.

    remarks: sentences of our own, each a note at the end of the body; leads: titles worth a look.
    """
    remark = notes([say(lang, "no_model"), *remarks], lang)
    groups = [list(direct), *map(list, further)]
    while is_too_long(_body(groups, remark)) and _shorten(groups):
        pass
    first: dict[str, Cited] = {}
    for cited in (c for group in groups for c in group):
        first.setdefault(cited.passage.id, cited)
    lines = [source_line(c.passage.place, c.passage.locator, c.sentence, c.passage.id) for c in first.values()]
    if leads:
        lines.insert(0, say(lang, "leads", names=say(lang, "separator").join(leads)))
    return "\n\n".join([_body(groups, remark), "\n".join(lines)])


def notes(remarks: Sequence[str], lang: str) -> str:
    """What is said of the work and not of the question: paragraphs that the runner tells by how they begin."""
    return "\n\n".join(say(lang, "note", text=remark) for remark in remarks)


def _shorten(groups: list[list[Cited]]) -> bool:
    """Leave one sentence out; False when only one is left. A quote is never cut."""
    everything = [cited for group in groups for cited in group]
    if len(everything) == 1:
        return False
    uses = [cited.passage.id for cited in everything]
    spare = [c for c in everything[1:] if uses.count(c.passage.id) > 1]
    dropped = spare[-1] if spare else everything[-1]
    group = next(g for g in reversed(groups) if dropped in g)
    group.remove(dropped)
    groups[:] = [g for g in groups if g]
    return True


def _body(groups: list[list[Cited]], remark: str) -> str:
    return "\n\n".join([f"{CONCLUSION_MARK} {paragraph(groups[0])}", *map(paragraph, groups[1:]), remark])
