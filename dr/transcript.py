"""Text of an agent's transcript -> what its last answering turn says, and the tools that turn called. Pure.

The forms are those of GenericAgent from early 2026 on, plain and verbose. A turn is a header on a line of its own, the
model's reply, then its tool calls. Verbose: a call is followed by its arguments between ```` and its output between
`````. Plain: a call is one line. What tools print may look like anything above, a header and a conclusion included.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dr.contract import MARK_LINE

ASK_USER = "ask_user"


class Said(NamedTuple):
    """text: the reply of the last answering turn, without tool calls and thoughts; of a text without turns, all of it.

    tools: names of the tools that this turn called. crashed: the transcript ends with the error that ended the round.
    silent: nothing was said or done at all.
    """

    text: str
    tools: tuple[str, ...] = ()
    crashed: bool = False
    silent: bool = False


@dataclass
class _Turn:
    """Lines start to end, its header not among them. calls: (line, column, tool) of verbose calls.

    glued: the next turn's header is in the last line.
    """

    number: int
    start: int
    end: int
    calls: list[tuple[int, int, str]] = field(default_factory=list)
    glued: bool = False


def last_said(text: str) -> Said:
    """`text` ends where the agent's words end: [ROUND END] is gone."""
    text = text.rstrip()
    lines = text.split("\n")
    turns = _Reader(lines).turns()
    if not turns:
        return Said(_without_thoughts(text).strip(), silent=not text)
    if re.compile(_ROUND_ERROR).search(text, max(0, text.rfind("\n```\n", 0, -4))):
        return Said("", crashed=True)
    for turn in reversed(turns):
        reply, tools = _reply(lines, turn)
        said = _without_thoughts(reply).strip()
        if said or tools:
            return Said(said, tuple(tools))
    return Said("", silent=not any(line.strip() for turn in turns for line in lines[turn.start : turn.end]))


# -- turns ------------------------------------------------------------------------------------------------------------

_HEADER = r"(\*\*)?(?:(LLM Running \(Turn )(\d{1,6})\)|Turn (\d{1,6})) \.\.\.(\*\*)?\Z"
_HEADER_CHARS = 60
# Several icons are two code points, hence an alternation; the second one may be lost on the way.
_ICON = "(?:🛠\ufe0f?|📖|✏\ufe0f?|⚙\ufe0f?|🌐|💾|❓)"
_CALL = rf"{_ICON} ?(?:Tool:|正在调用工具:|\*\*正在调用工具:\*\*) ?`(\w+)` +📥 ?(?:args:|参数:|\*\*参数:\*\*)[ \t]*\Z"
_FENCE = r"(`{4,})([^`]*)\Z"
_ARGS, _OUTPUT = 4, 5  # backticks around the arguments and the output of a verbose call
# The way GenericAgent reports an exception in its own code: `KeyError: 'x' @ ga.py:12, do_x -> `source line``
_ROUND_ERROR = r"\n```\n[A-Za-z_][\w.]*: [\s\S]{0,20000}? @ [^\n@]+:\d+, [^\n]*\n```\s*\Z"


class _Reader:
    """One pass over the lines, each looked at a fixed number of times."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.calls = [i for i, line in enumerate(lines) if "📥" in line and self._is_call(i)]
        self._calls = frozenset(self.calls)
        self.fences: dict[int, list[int]] = {}  # length -> lines that are such a fence and nothing else
        for i, line in enumerate(lines):
            if line.startswith("````") and (fence := re.match(_FENCE, line.rstrip())) and not fence[2]:
                self.fences.setdefault(len(fence[1]), []).append(i)
        self.args_ends = [i for i in self.fences.get(_ARGS, ()) if self._ends_args(i)]
        self.output_ends = [i for i in self.fences.get(_OUTPUT, ()) if self._ends_output(i)]
        self._output_ends = frozenset(self.output_ends)

    def turns(self) -> list[_Turn]:
        """[] when this is no transcript."""
        turns: list[_Turn] = []
        shape: tuple[bool, bool] | None = None
        i, lines = 0, self.lines
        while i < len(lines):
            header = _header(lines[i])
            if header and self._begins_turn(i, header, turns, shape):
                if not turns and re.search(MARK_LINE, "\n".join(lines[:i])):
                    return []  # a conclusion that speaks of turns
                number, shape, before = header
                while turns and turns[-1].number >= number:  # printed by a tool that closed its fence too early
                    turns.pop()
                if turns:
                    turns[-1].glued = bool(before)
                    turns[-1].end = i + turns[-1].glued
                turns.append(_Turn(number, i + 1, len(lines)))
                i += 1
            elif i in self._calls:
                if turns:
                    found = re.search(_CALL, lines[i])
                    assert found is not None  # _is_call saw it
                    turns[-1].calls.append((i, found.start(), found[1]))
                i = self._after_call(i)
            else:
                i = self._after_fence(i)
        while turns and not turns[-1].calls and self._is_output(turns[-1]):
            end = turns.pop().end
            if turns:
                turns[-1].end, turns[-1].glued = end, False
        return turns

    def _begins_turn(
        self, i: int, header: tuple[int, tuple[bool, bool], str], turns: list[_Turn], shape: tuple[bool, bool] | None
    ) -> bool:
        number, its_shape, before = header
        if i + 1 < len(self.lines) and self.lines[i + 1].strip():
            return False  # a header is followed by a blank line
        if not turns:
            return number == 1 and not before
        if its_shape != shape or (before and its_shape != (True, True)):
            return False  # only the oldest form is glued to the reply before it
        return number == turns[-1].number + 1 or (number <= turns[-1].number and self._follows_output(i))

    def _is_output(self, turn: _Turn) -> bool:
        """Whether it ends with the end of an output that did not begin in it: a tool printed the turn."""
        fences = self.fences.get(_OUTPUT, [])
        inside = fences[bisect_left(fences, turn.start) : bisect_left(fences, turn.end)]
        return len(inside) % 2 == 1 and not any(line.strip() for line in self.lines[inside[-1] + 1 : turn.end])

    def _follows_output(self, i: int) -> bool:
        while i > 0 and not self.lines[i - 1].strip():
            i -= 1
        return i > 0 and self.lines[i - 1].rstrip() == "`" * _OUTPUT

    def _is_call(self, i: int) -> bool:
        following = self.lines[i + 1] if i + 1 < len(self.lines) else ""
        return following.startswith("````") and re.search(_CALL, self.lines[i]) is not None

    def _ends_args(self, i: int) -> bool:
        """The arguments are a JSON object, in old plain transcripts cut off by ` ...`."""
        return self.lines[i - 1].endswith(("}", " ...")) if i else False

    def _ends_output(self, i: int) -> bool:
        """What follows an output is another call, another turn, or the end."""
        i += 1
        while i < len(self.lines) and not self.lines[i].strip():
            i += 1
        return i == len(self.lines) or _header(self.lines[i]) is not None or i in self._calls

    def _after_call(self, i: int) -> int:
        """The line behind arguments and output of the call in line `i`; the end when they are cut off."""
        first, sure, following = (_next(found, i + 1) for found in (self.fences.get(4, ()), self.args_ends, self.calls))
        if first is None:
            return len(self.lines)
        end = sure if sure is not None and (following is None or sure < following) else first
        if end + 1 == len(self.lines) or self.lines[end + 1].rstrip() != "`" * _OUTPUT:
            return end + 1
        closing = _next(self.output_ends, end + 1)
        if closing is None:
            closing = _next(self.fences[_OUTPUT], end + 1)
        return len(self.lines) if closing is None else closing + 1

    def _after_fence(self, i: int) -> int:
        """The line behind the fenced block of a reply that begins in line `i`; the next line when none begins."""
        fence = re.match(_FENCE, self.lines[i].rstrip()) if self.lines[i].startswith("````") else None
        closing = _next(self.fences.get(len(fence[1]), ()), i) if fence else None
        call = _next(self.calls, i)
        if closing is None or (call is not None and call < closing) or i in self._output_ends:
            return i + 1  # not closed, or by the fence of something else
        return closing + 1


def _next(found: Sequence[int], i: int) -> int | None:
    at = bisect_right(found, i)
    return found[at] if at < len(found) else None


def _header(line: str) -> tuple[int, tuple[bool, bool], str] | None:
    """(number of the turn, its form, text before it in the line)"""
    line = line.rstrip(" \t")
    if not line.endswith((" ...", " ...**")):
        return None
    at = max(0, len(line) - _HEADER_CHARS)
    found = re.search(_HEADER, line[at:])
    if not found or bool(found[1]) != bool(found[5]):
        return None
    return int(found[3] or found[4]), (bool(found[1]), bool(found[2])), line[: at + found.start()]


# -- replies ----------------------------------------------------------------------------------------------------------

_LINE_CALL = rf"{_ICON} ([A-Za-z_]\w*)\("
# What these two show is not JSON and may have several lines.
_LONG_LINE_CALL = rf"{_ICON} ({ASK_USER}|update_working_checkpoint)\("
_NO_TOOL = r"(?:\A|\n)`{5}[ \t]*\n(?:\[(?:Info|Warn)\][^\n]*\n)*(?:`{5}\s*)?\Z"


def _reply(lines: Sequence[str], turn: _Turn) -> tuple[str, list[str]]:
    """The reply of a turn without the calls behind it, and the names of the tools called."""
    if turn.calls:
        line, column, _ = turn.calls[0]
        return "\n".join([*lines[turn.start : line], lines[line][:column]]), [name for _, _, name in turn.calls]
    body = list(lines[turn.start : turn.end])
    if turn.glued and (header := _header(body[-1])):
        body[-1] = header[2]
    end, tools = len(body), list[str]()
    while end and (not body[end - 1].strip() or _is_line_call(body[end - 1])):
        end -= 1
        if call := re.match(_LINE_CALL, body[end]):
            tools.append(call[1])
    if end and body[end - 1].rstrip().endswith(")"):
        for i in range(end):
            if call := re.match(_LONG_LINE_CALL, body[i]):
                end, tools = i, [*tools, call[1]]
                break
    text = "\n".join(body[:end])
    return (text if tools else re.sub(_NO_TOOL, "", text + "\n")), tools


def _is_line_call(line: str) -> bool:
    call = re.match(_LINE_CALL, line)
    return call is not None and (
        line.rstrip().endswith(")") or line.startswith('{"', call.end())
    )  # the latter: cut off


# -- thoughts ---------------------------------------------------------------------------------------------------------

_HIDDEN = ("thinking", "think", "summary", "tool_use", "tool_call", "file_content")


def _without_thoughts(text: str) -> str:
    """Without the elements that are not meant for the reader. A tag in `code` is spoken of, not used."""
    for name in _HIDDEN:
        if f"{name}>" in text:
            text = _without_element(text, name)
    return text


def _without_element(text: str, name: str) -> str:
    opening, closing = f"<{name}>", f"</{name}>"
    kept, at = [], 0
    while (start := _find_tag(text, opening, at)) >= 0:
        end = _find_tag(text, closing, start)
        if end < 0:
            if start == 0 or text[start - 1] == "\n":  # cut off, or never closed
                mark = re.compile(MARK_LINE).search(text, start)
                end = mark.start() if mark else len(text)
                if name == "summary" and "\n" in text[start:end]:
                    end = text.index("\n", start)  # a summary is one line
                kept.append(text[at:start])
                at = end
            break
        kept.append(text[at:start])
        at = end + len(closing)
    text = "".join([*kept, text[at:]])
    if name in ("thinking", "think") and (stray := _find_tag(text, closing, 0)) >= 0:
        text = text[stray + len(closing) :]  # a chat template wrote the opening tag
    return text


def _find_tag(text: str, tag: str, at: int) -> int:
    while (at := text.find(tag, at)) > 0 and text[at - 1] == "`":
        at += len(tag)
    return at
