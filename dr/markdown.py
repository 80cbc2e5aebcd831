"""Foreign text -> Markdown that reads the same and cannot change the structure of the page around it. Pure.

block() is for conclusions: it keeps paragraphs, lists, tables and **bold**, and takes the power from headings, HTML,
links, fences, rules and everything else that would reach beyond the text. inline() is for one line of plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Marks that stand for our own citation numbers while a text is made safe; taken out of every foreign text first.
_OPEN, _CLOSE = "\ue000", "\ue001"
_OWN = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_INVISIBLE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff{_OPEN}{_CLOSE}]")

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})([^`]*)$")
_HEADING = re.compile(r"^ {0,3}#{1,6}(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r"^[ \t]*(?:=+|-+)[ \t]*$")
_RULE = re.compile(r"^[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_ITEM = re.compile(r"^([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+)(?=\S)")
_TABLE_RULE = re.compile(r"^[ \t]*\|?[ \t:|-]+\|[ \t:|-]*$")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_NUMBER_IN_BRACKETS = re.compile(r"\[\^?([\d\s,;–-]*\d[\d\s,;–-]*)\]")
_ENTITY = re.compile(r"&(?=#?\w{1,32};)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_BACKSLASH = re.compile(r"\\(?=[!-/:-@\[-`{-~]|$)")  # at the end of a piece, too: what follows is ours


def own(number: int) -> str:
    """The mark of our citation [number] in a text that block() or inline() is going to make safe."""
    return f"{_OPEN}{number}{_CLOSE}"


def plain(text: str) -> str:
    """`text` without characters that cannot be seen but act: controls, direction marks, and the marks of own()."""
    return _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def block(text: str) -> str:
    """Several lines of a conclusion. A closed code fence is closed by us again, an unclosed one is no fence."""
    lines, out, i = text.strip("\n").split("\n"), list[str](), 0
    while i < len(lines):
        fence = _FENCE.match(lines[i])
        end = _fence_end(lines, i, fence[1]) if fence else None
        if end is not None:
            out += ["", *_fenced(lines[i + 1 : end]), ""]
            i = end
        else:
            out += _line(lines[i])
        i += 1
    return numbers(re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n"))


def inline(text: str) -> str:
    """One line: all white space becomes a space, nothing but **bold** and `code` acts."""
    return numbers(_spans(" ".join(text.split())))


def code(text: str) -> str:
    """A code span, for paths: delimited by more backticks than the text holds in a row."""
    text = " ".join(text.split())
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks, pad = "`" * (longest + 1), " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def quote(text: str, indent: str = "") -> str:
    """Plain text as a block quote, a paragraph a line."""
    paragraphs = [inline_plain(p) for p in re.split(r"\n\s*\n", plain(text)) if p.strip()]
    return f"\n{indent}>\n".join(f"{indent}> {p}" for p in paragraphs)


def inline_plain(text: str) -> str:
    """One line of verbatim text: like inline(), and `*` and `_` are characters too."""
    text = _spans(" ".join(plain(text).split()), keep_code=False, keep_numbers=True)
    return numbers(_start(re.sub(r"[*_~|]", r"\\\g<0>", text)))


def numbers(text: str) -> str:
    """The marks of own() as the reader sees them: [3]."""
    text = re.sub(rf"({_OWN.pattern})(?=[(:])", r"\1\\", text)  # "[3](" would be a link, "[3]:" a definition
    return _OWN.sub(r"[\1]", text)


def bullets(items: Iterable[str]) -> str:
    """A list of lines that inline() has made safe."""
    return "\n".join(f"- {_start(item)}" for item in items)


def _first(match: re.Match[str]) -> str:
    found = match[0]
    return f"{found}\\" if found[0].isdigit() else f"\\{found}"


def _fence_end(lines: list[str], start: int, fence: str) -> int | None:
    closing = re.compile(rf"^[ \t]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$")
    return next((i for i in range(start + 1, len(lines)) if closing.match(lines[i])), None)


def _fenced(lines: list[str]) -> list[str]:
    """At the margin, so that it ends a list, and with a fence that no line of it can close."""
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *lines, fence]


def _line(line: str) -> list[str]:
    if heading := _HEADING.match(line):
        title = (heading[1] or "").replace("*", "").strip()
        return ["", f"**{_spans(title)}**", ""] if title else [""]
    if _RULE.match(line) or _UNDERLINE.match(line):
        return ["\\" + line.strip()]
    if _TABLE_RULE.match(line):
        return [line.strip()]
    if item := _ITEM.match(line):
        return [item[0] + _start(_spans(line[item.end() :]))]
    return [_start(_spans(line.strip()))]


def _start(text: str) -> str:
    """What acts only at the start of a line. A heading inside a list item counts, too."""
    return re.sub(r"^(?:#{1,6}(?=[ \t]|$)|>|~{3,}|[-+*](?=[ \t]|$)|\d{1,9}(?=[.)](?:[ \t]|$))|[=-]+$)", _first, text)


def _spans(text: str, *, keep_code: bool = True, keep_numbers: bool = False) -> str:
    out, at = [], 0
    for span in _CODE_SPAN.finditer(text) if keep_code else ():
        out += [_escape(text[at : span.start()], keep_numbers), span[0]]
        at = span.end()
    return "".join([*out, _escape(text[at:], keep_numbers)])


def _escape(text: str, keep_numbers: bool) -> str:
    """Brackets around numbers become full-width ones in running text: only our citations may look like citations."""
    text = _BACKSLASH.sub(r"\\\\", text).replace("`", "\\`")
    text = _TAG.sub(r"\\<", _ENTITY.sub(r"\\&", text))
    if not keep_numbers:
        text = _NUMBER_IN_BRACKETS.sub(r"［\1］", text)
    return text.replace("[", "\\[").replace("]", "\\]")
