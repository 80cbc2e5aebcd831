"""Quotes with their passages -> the text of a conclusion, in the form that the runner collects. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dr.agent.words import say
from dr.contract import CONCLUSION_CHARS_CJK, CONCLUSION_MARK, CONCLUSION_WORDS, SOURCE_LABEL, Passage

_CJK = re.compile("[\u3400-\u9fff]")


@dataclass
class Quoted:
    """Sentences of one passage that is in evidence.jsonl, in the order of their weight."""

    passage: Passage
    sentences: list[str] = field(default_factory=list)

    def add(self, sentences: list[str]) -> None:
        self.sentences += [s for s in sentences if s not in self.sentences]

    def text(self) -> str:
        return " ".join(f"{one_line(sentence)} {self.passage.id}" for sentence in self.sentences)


def one_line(text: str) -> str:
    return " ".join(text.split())


def source_line(quoted: Quoted) -> str:
    """来源：<path or URL>, p. 3 — "<verbatim quote>" [local-1]"""
    quote = one_line(quoted.sentences[0])
    return f'{SOURCE_LABEL}：{quoted.passage.place}{_locator(quoted.passage)} — "{quote}" {quoted.passage.id}'


def _locator(passage: Passage) -> str:
    where = passage.locator
    if "page" in where:
        return f", p. {where['page']}"
    if "line" in where:
        return f", L{where['line']}"
    return f", § {one_line(str(where['section']))}" if where.get("section") else ""


def is_too_long(body: str) -> bool:
    """Over 500 characters of Chinese or 300 words, as the conclusion's form asks."""
    cjk = len(_CJK.findall(body))
    if cjk * 4 > len(body):
        return len(body) > CONCLUSION_CHARS_CJK
    return len(body.split()) > CONCLUSION_WORDS


def compose(direct: list[Quoted], further: list[Quoted], remarks: list[str], leads: list[str], lang: str) -> str:
    """The conclusion. The first of `direct` is always there; others are shortened, then left out, when it gets too
    long. remarks: sentences of our own, one paragraph, at the end of the body; leads: titles worth a look."""
    remark = say(lang, "no_model") + "".join(f" {r}" if lang == "en" else r for r in remarks)
    first, others = list(direct), list(further)
    while is_too_long(_body(first, others, remark)):
        longest = max((q for q in (*others, *first) if len(q.sentences) > 1), key=lambda q: len(q.text()), default=None)
        if longest is not None:
            longest.sentences.pop()
        elif others:
            others.pop()
        elif len(first) > 1:
            first.pop()
        else:
            break  # one sentence, however long: a quote is not cut
    parts = [_body(first, others, remark)]
    lines = [source_line(quoted) for quoted in (*first, *others)]
    if leads:
        lines.insert(0, say(lang, "leads", names=say(lang, "separator").join(leads)))
    return "\n\n".join([*parts, "\n".join(lines)])


def _body(direct: list[Quoted], further: list[Quoted], remark: str) -> str:
    first = f"{CONCLUSION_MARK} " + " ".join(quoted.text() for quoted in direct)
    return "\n\n".join([first, *(quoted.text() for quoted in further), remark])
