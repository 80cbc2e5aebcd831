"""Text -> its sentences, each a verbatim substring; Chinese and English. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

# Patterns are strings: re compiles and keeps one when it is first used, and start-up is what many a process pays for.
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"


def is_cjk(character: str) -> bool:
    """Whether a character (or the first of a string) is Chinese, Japanese or Korean; they stand without spaces."""
    return "\u3040" <= character[:1] < "\ufb00" or character[:1] >= "\U00020000"


_ABBREVIATIONS = frozenset(
    """mr mrs ms dr prof rev fr st sr jr gen col lt capt sgt maj cmdr adm gov sen rep hon pres messrs mme mlle vs v etc
    al e.g i.e eg ie cf ca c approx est viz no nos vol vols pp p fig figs eq eqs sec sect ch chap ed eds art para inc
    ltd co corp bros dept univ assn ave blvd rd mt ft jan feb mar apr jun jul aug sep sept oct nov dec b d r fl a.k.a
    op cit ibid transl trans incl excl max min ph.d""".split()
)
# A sentence may follow these even though they end in a period: "in the U.S. The ...", "Acme Inc. The ...".
_MAY_END = frozenset("inc ltd co corp etc jr sr al bros st ft ave rd blvd est op cit".split())
_STARTERS = frozenset(
    """the a an it he she they we this that these those his her its their in on at by for from after before during since
    as when while although however but and there one both many some most following""".split()
)
_CLOSERS = "\"'”’»)]}）】」』》〉"
_END = rf"[.!?…。！？]+[{re.escape(_CLOSERS)}]*"
_BLOCK = r"\n[ \t]*(?:\n[ \t]*)+"
_ITEM = r"[ \t]*(?:[-*•·#|>]|\d{1,3}[.)、]|[（(]?[一二三四五六七八九十]+[）)、])"
_SHORT_LINE = 40  # characters; a shorter line without a full stop is a title, a heading or an item


def sentences(text: str) -> list[str]:
    """The sentences of `text` in order, each a verbatim substring without white space around it."""
    found: list[str] = []
    for block in re.split(_BLOCK, text):
        for piece in _lines(block):
            start = 0
            for end in _ends(piece):
                found.append(piece[start:end].strip())
                start = end
            found.append(piece[start:].strip())
    return [s for s in found if s]


def _lines(block: str) -> Iterator[str]:
    """Lines of a block, those put together again that are one wrapped sentence."""
    lines = block.split("\n")
    width = max(map(len, lines))
    start = position = 0
    for line, following in pairwise(lines):
        position += len(line) + 1
        bare, begins = line.rstrip(), following.lstrip()[:1]
        short = len(bare) < (_SHORT_LINE if not any(map(is_cjk, bare)) else _SHORT_LINE // 2) or len(bare) < 0.6 * width
        fresh = bool(begins) and not begins.islower() and begins not in ",;)，；、）"
        unfinished = bare.endswith((",", "，", "、", "-", "(", "（"))
        if re.match(_END, bare[-1:]) or re.match(_ITEM, following) or bare.lstrip().startswith(("#", "|")):
            pass
        elif not (short and fresh and not unfinished):
            continue
        yield block[start:position]
        start = position
    yield block[start:]


def _ends(text: str) -> Iterator[int]:
    """Where a sentence of `text` ends and another begins."""
    for match in re.finditer(_END, text):
        end, mark = match.end(), match.group()
        if end == len(text):
            return
        if mark[0] in "。！？":
            yield end
            continue
        if not text[end].isspace() and not is_cjk(text[end]):
            continue  # 3.14, example.com, "e.g.,"
        rest = text[end:].lstrip()
        if not rest:
            return
        if rest[0].islower() or rest[0] in ",;:)":
            continue
        if mark[0] == "." and not mark.startswith("..") and _no_stop(text[: match.start()], rest):
            continue
        yield end


def _no_stop(before: str, rest: str) -> bool:
    """Whether the period after `before` belongs to an abbreviation or an initial."""
    word = before[max(before.rfind(c) for c in " \t\n([\"“‘'") + 1 :]
    folded = word.casefold().strip(".")
    following = re.match(r"[^\W\d_]+", rest)
    starts = following is not None and following.group().casefold() in _STARTERS
    if len(folded) == 1 and folded.isalpha() and not is_cjk(folded):
        return not starts or folded not in "ai"  # J. K. Rowling; "... vitamin A. The ..."
    if re.fullmatch(r"(?:[a-z]\.)+[a-z]", folded):
        return not starts  # U.S., a.m.
    if folded in _ABBREVIATIONS:
        return not (folded in _MAY_END and starts)
    return folded.isdigit() and rest[0].isdigit() and len(folded) < 3
