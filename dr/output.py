"""Text of an output.txt -> Extract: whether it is finished, a verdict by form, and the conclusion. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from dr.contract import CONCLUSION_MARK, MARK_LINE, ROUND_END
from dr.transcript import ASK_USER, Said, last_said

OK = "ok"
EMPTY = "empty"  # nothing was written
MODEL_ERROR = "model_error"  # the last turn holds the model's error where the answer should be
ASKED_USER = "asked_user"  # the last turn asks a question
PLACEHOLDER = "placeholder"  # the prompt's template, copied
NO_ANSWER = "no_answer"  # something was written, but no answer

CUT_NOTE = "\n\n> *（内容已截断，完整结论见原始output.txt）*"


class Extract(NamedTuple):
    """verdict: one of the six above. conclusion: None unless the verdict is ok."""

    finished: bool
    verdict: str
    conclusion: str | None


def extract(text: str) -> Extract:
    """The whole way from a file's text to its conclusion; never raises. A clean conclusion comes back as it is."""
    text = _plain(text)
    verdict, conclusion = _judged(last_said(_without_end(text)))
    return Extract(is_finished(text), verdict, conclusion if verdict == OK else None)


def is_finished(text_or_tail: str) -> bool:
    """Whether the round's end is written. A conclusion may speak of it anywhere else."""
    return text_or_tail.rstrip().endswith(ROUND_END)


def last_answering_turn(text: str) -> str:
    """What the last answering turn says, from its conclusion's mark on if there is one; "" when no turn says anything.
    A text that is no transcript is one turn."""
    return _from_mark(last_said(_without_end(_plain(text))).text)[0]


def for_display(conclusion: str, max_chars: int = 2000) -> str:
    """As much of a conclusion as is printed; the whole is in its file."""
    return conclusion[:max_chars]


def shorten(conclusion: str, max_chars: int = 3000) -> str:
    """Cut at the last paragraph that ends within max_chars; the note comes on top."""
    if len(conclusion) <= max_chars:
        return conclusion
    cut = conclusion.rfind("\n\n", 0, max_chars)
    return conclusion[: cut if cut > 0 else max_chars] + CUT_NOTE


# -- the SOP's cleaner ------------------------------------------------------------------------------------------------

_MARKERS = (CONCLUSION_MARK, "---\n\n## 针对", "---\n\n## 一、", "## 针对子问题", "\n##")


def extract_conclusion(text: str, max_chars: int = 4000) -> str:
    """The SOP's function, result for result. extract() is for transcripts: there it does what this one means to do,
    without cutting what a conclusion says *about* tools, turns and [ROUND END]."""
    start = next((at for marker in _MARKERS if (at := text.find(marker)) >= 0), 0)
    text = text[start:]
    text = _without_spans(text, "**LLM Running", "\n")
    text = _without_spans(text, "<summary>", "</summary>")
    text = re.sub(r"🛠️.*?(?=\n\n|\Z)", "", text, flags=re.DOTALL)
    text = _without_spans(text, "````text\n", "````")
    text = text.split(ROUND_END, 1)[0]
    return shorten(_collapsed(text), max_chars)


def _without_spans(text: str, opening: str, closing: str) -> str:
    """As re.sub(opening.*?closing) does, in time proportional to the text, however often `opening` stands there."""
    kept, at = [], 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start + len(opening))) >= 0:
        kept.append(text[at:start])
        at = end + len(closing)
    return "".join([*kept, text[at:]])


def _collapsed(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text).strip()


# Patterns are strings, compiled by re when first used: every verb of the command line imports this.

# -- a file's text ----------------------------------------------------------------------------------------------------

_ANSI = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)|[@-Z\\^_])"
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f\ufeff]"


def _plain(text: str) -> str:
    """Without what moves a terminal or cannot be seen. Undecodable bytes are U+FFFD already and stay."""
    return re.sub(_CONTROL, "", re.sub(_ANSI, "", text.replace("\r\n", "\n").replace("\r", "\n")))


def _without_end(text: str) -> str:
    """Without the line that ends the round; several, when an agent that writes its own is wrapped by another one."""
    end = _trimmed(text, len(text))
    if text[text.rfind("\n", 0, end) + 1 : end].strip() != ROUND_END:
        return text[:end].removesuffix(ROUND_END).rstrip()
    while text[(start := text.rfind("\n", 0, end) + 1) : end].strip() == ROUND_END:
        end = _trimmed(text, start)
    return text[:end]


def _trimmed(text: str, end: int) -> int:
    while end and text[end - 1].isspace():
        end -= 1
    return end


# -- the answer in a turn ---------------------------------------------------------------------------------------------

_ERROR_LINE = r"!!!Error|\[!!! .* !!!\]\s*\Z|\[!!! output truncated: .*\]\s*\Z"
# An error event in the middle of a stream is put behind the words before it, without even a space.
_GLUED_ERROR = r"[^\s\"'`“‘「『(（]!!!Error: [^\n。！？`]*\Z"
_TRACEBACK = "Traceback (most recent call last):\n"  # what an agent's own failure looks like where it writes its output
_LONG_INTRODUCTION = 120  # characters before a heading that are more than "here is the result"
_UNREADABLE = 0.2  # share of U+FFFD from which a text is not one


def _judged(said: Said) -> tuple[str, str]:
    if said.silent:
        return EMPTY, ""
    if said.crashed:
        return MODEL_ERROR, ""
    if ASK_USER in said.tools:
        return ASKED_USER, ""
    answer, marked = _from_mark(said.text)
    if _has_error(answer) or (not marked and answer.startswith(_TRACEBACK)):
        return MODEL_ERROR, ""
    content = answer.removeprefix(CONCLUSION_MARK)
    if is_template(content):
        return PLACEHOLDER, ""
    if not re.search(r"\w", content):
        return NO_ANSWER, ""
    if said.tools and not marked:
        return NO_ANSWER, ""  # it says what it is about to do
    if content.count("\ufffd") > _UNREADABLE * len("".join(content.split())):
        return NO_ANSWER, ""
    return OK, _collapsed(answer)


def _from_mark(text: str) -> tuple[str, bool]:
    """(the answer, whether a line with a mark begins it). The last mark with an answer behind it counts: an earlier one
    may be a draft or an echo of the prompt, a later one may be followed by nothing."""
    blocks = _code_blocks(text)
    marks = list(re.finditer(MARK_LINE, text))
    free = [mark for mark in marks if not _inside(blocks, mark.start())]
    marks = free or marks
    end = len(text)
    for mark in reversed(marks):
        content = text[mark.end() : end]
        if re.search(r"\w", content) and not is_template(content):
            return _marked(mark, _unfenced(text, blocks, mark, end)), True
        end = mark.start()
    if marks:
        return _marked(marks[-1], text[marks[-1].end() :]), True
    return _from_heading(text), False


def _marked(mark: re.Match[str], content: str) -> str:
    """With the mark in its plain form. `**[结论] all bold**` keeps its bold."""
    content = content.strip() if mark[1] or mark[0] != CONCLUSION_MARK else content.rstrip()
    if mark[0] == CONCLUSION_MARK:
        return mark[0] + content
    bold = "**" if mark[1] and not mark[2] else ""
    return f"{CONCLUSION_MARK} {bold}{content}"


def _from_heading(text: str) -> str:
    """An answer without a mark at the start of a line: from where the SOP would take it."""
    for marker in _MARKERS[:-1]:
        if (at := text.find(marker)) >= 0:
            return text[at:].strip()
    before, heading, rest = ("\n" + text).partition(_MARKERS[-1])
    introduction = before.strip()
    if not heading or len(introduction) > _LONG_INTRODUCTION or len(re.findall(r"[。！？]|[.!?](?=\s)", before)) > 1:
        return text.strip()
    return (heading + rest).strip()


def _has_error(answer: str) -> bool:
    """Whether a line of it is a model's error. What stands in a code block is quoted."""
    if "!!!" not in answer:
        return False
    blocks, at = _code_blocks(answer), 0
    for line in answer.split("\n"):
        if re.match(_ERROR_LINE, line) and not _inside(blocks, at):
            return True
        at += len(line) + 1
    return re.compile(_GLUED_ERROR).search(answer, max(0, len(answer) - 1000)) is not None


# -- templates --------------------------------------------------------------------------------------------------------

_HOLE = r'\{[^{}"\n]{1,200}\}|<[^<>\n]{1,200}>|｛[^｛｝\n]{1,200}｝|＜[^＜＞\n]{1,200}＞'
_TEMPLATE_WORDS = r"(?i)直接回答|sub_question|子问题|direct answer|your answer|原文引句|verbatim quote"
_INSTRUCTION = r"[`\s]*(?:first, then a direct answer of|开头，先用)"  # of sop/node_input
_ELLIPSIS = r"\s*(?:\.{3,}|…+)\s*"


def is_template(content: str) -> bool:
    """Whether it is the form that a prompt shows: `{直接回答}`, `<direct answer>`, nothing but holes to be filled."""
    head = content.lstrip(' \t\r\n:：`*"“「')[:1000]
    hole = re.match(_HOLE, head)
    if hole and re.search(_TEMPLATE_WORDS, hole[0]):
        return True
    if re.match(_INSTRUCTION, content) or re.fullmatch(_ELLIPSIS, content):
        return True
    return re.search(_HOLE, head) is not None and not re.search(r"\w", re.sub(_HOLE, "", content[:5000]))


# -- code blocks ------------------------------------------------------------------------------------------------------

_CODE_FENCE = r"(?m)^ {0,3}(`{3,}|~{3,})([^`\n]*)$"


def _code_blocks(text: str) -> list[tuple[int, int]]:
    """(start, end) of every fenced block, in order; one that is never closed is none."""
    if "```" not in text and "~~~" not in text:
        return []
    fences = [(m.start(), m.end(), m[1], not m[2].strip()) for m in re.finditer(_CODE_FENCE, text)]
    longest = {"`": 0, "~": 0}
    closable = []  # of each fence: whether one behind it can close it
    for _, _, ticks, bare in reversed(fences):
        closable.append(longest[ticks[0]] >= len(ticks))
        if bare:
            longest[ticks[0]] = max(longest[ticks[0]], len(ticks))
    closable.reverse()
    blocks, i = [], 0
    while i < len(fences):
        start, _, ticks, _ = fences[i]
        if closable[i]:
            i += 1
            while not (fences[i][3] and fences[i][2].startswith(ticks)):
                i += 1
            blocks.append((start, fences[i][1]))
        i += 1
    return blocks


def _inside(blocks: list[tuple[int, int]], at: int) -> bool:
    found = bisect_right(blocks, (at, at))
    return found > 0 and blocks[found - 1][1] > at


def _unfenced(text: str, blocks: list[tuple[int, int]], mark: re.Match[str], end: int) -> str:
    """The text from behind `mark` to `end`, without the fence that closes the block in which the mark stands."""
    for start, stop in blocks:
        if start < mark.start() < stop <= end:
            closing = text.rfind("\n", 0, stop)
            return text[mark.end() : closing] + text[stop:end]
    return text[mark.end() : end]
