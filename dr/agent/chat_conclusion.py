"""What a chat model wrote -> text that holds: ids in one form, no marks of ours, only statements that code could check;
and the conclusion, whose source lines are code's. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from dr import citations, language
from dr.agent import checks
from dr.agent.conclusion import is_too_long, notes, one_line
from dr.agent.memory import InvestigateMemory
from dr.agent.words import say
from dr.contract import CONCLUSION_MARK, Passage
from dr.source_lines import source_line

_KIND = r"(?:rag|web|code|local|mem)-\d+"
_GROUP = re.compile(rf"\s*[\[【［]\s*({_KIND}(?:\s*[,，、;；]\s*{_KIND})*)\s*[\]】］]", re.I)
_MARKS = re.compile(r"\**[\[【［]\s*(?:结论|ROUND END)\s*[\]】］]\**[:：]?\s*", re.I)
_PIECE = re.compile(rf"[^\n]*?(?:\s*\[{_KIND}\])+[。.]?|[^\n]+")
_QUOTE_CHARS = 300
Statement = tuple[str, list[str]]  # text, the ids behind it


def cleaned(text: str) -> str:
    """The model's text with its ids written as [local-1] each, without marks of ours and lines that speak protocol."""
    text = _GROUP.sub(lambda m: "".join(f" [{i.lower()}]" for i in re.findall(_KIND, m[1], re.I)), _MARKS.sub("", text))
    lines = (" ".join(line.split()) for line in text.replace("\r", "\n").split("\n"))
    return "\n".join(line for line in lines if line and not checks.speaks_protocol(re.sub(r"\[[^\]]*\]", "", line)))


def statements(text: str, evidence: InvestigateMemory, lang: str) -> tuple[list[Statement], int]:
    """(what of `text` is cited and holds, how many cited statements do not)."""
    sound: list[Statement] = []
    lost = 0
    for piece in (m[0] for m in _PIECE.finditer(text)):
        ids = checks.ids_in(piece)
        if not ids:
            continue
        if checks.faults(piece, ids, evidence, lang, verbatim=False):
            lost += 1
        else:
            sound.append((piece.strip(), ids))
    return sound, lost


def by_code(found: Sequence[Statement]) -> tuple[str, list[str]]:
    """(answer, points) from statements as they stand, for when a model wrote no usable ones."""
    texts = list(dict.fromkeys(text for text, _ in found))
    return " ".join(texts[:2]), texts[2:]


def write(
    answer: str,
    points: Sequence[str],
    remarks: Sequence[str],
    leads: Sequence[str],
    evidence: InvestigateMemory,
    lang: str,
) -> str:
    """The conclusion in the form that the runner collects. Too much is left out from the end, whole points first."""
    kept = [one_line(point) for point in points if point.strip()]
    pieces = [m[0].strip() for m in _PIECE.finditer(answer) if m[0].strip()]

    def body() -> str:
        return "\n\n".join([f"{CONCLUSION_MARK} {' '.join(pieces)}", *kept, *filter(None, [notes(remarks, lang)])])

    while is_too_long(body()) and (kept or len(pieces) > 1):
        (kept or pieces).pop()
    said = "\n".join([*pieces, *kept])
    lines = [_source(passage, said) for i in checks.ids_in(said) if (passage := evidence.get(i)) is not None]
    if leads:
        lines.insert(0, say(lang, "leads", names=say(lang, "separator").join(leads)))
    return "\n\n".join([body(), "\n".join(lines)])


def _source(passage: Passage, body: str) -> str:
    said = " ".join(text for text, ids in checks.cited_spans(body) if passage.id in ids)
    return source_line(passage.place, passage.locator, quote_for(said, passage), passage.id)


def quote_for(said: str, passage: Passage) -> str:
    """The words of `passage` on which `said` rests: what it quotes, else the sentence that shares most with it."""
    standing = [q for q in checks.quoted(said) if citations.quote_stands(q, passage.text)]
    wanted = set(language.tokens(said))
    sentences = [s for s in language.sentences(passage.text) if not checks.speaks_protocol(s)]
    best = max(sentences, key=lambda s: _shared(s, wanted, standing), default="")
    best = one_line(best)
    if len(best) > _QUOTE_CHARS:
        at = best.rfind(" ", 0, _QUOTE_CHARS)
        best = best[: at if at > 0 else _QUOTE_CHARS]
    return best if citations.quote_stands(best, passage.text) else max(standing, key=len, default="")


def _shared(sentence: str, wanted: set[str], quotes: Sequence[str]) -> float:
    words = set(language.tokens(sentence))
    held = sum(citations.quote_stands(quote, sentence) for quote in quotes)
    return 100 * held + len(words & wanted) / math.sqrt(len(words) + 5)
