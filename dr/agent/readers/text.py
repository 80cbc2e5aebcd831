"""Plain text, Markdown and code -> blocks with line numbers and sections. Pure."""

from __future__ import annotations

import re

from dr.agent.readers.block import Block, Parsed, join_lines, paragraphs

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t#]*$")
_UNDERLINE = re.compile(r"(=+|-{3,})\s*$")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_TITLE_CHARS = 100
_TABLE_ROW = re.compile(r"\s*\|.*\|\s*$")
_TABLE_RULE = re.compile(r"[\s|:-]+$")
_COMMENT = re.compile(r"<!--.*?-->", re.S)


def read_text(text: str) -> Parsed:
    """Plain text. Its title is a first line that stands alone and is no sentence."""
    lines = _lines(text)
    blocks = [Block(p, {"line": n}) for p, n in paragraphs(lines)]
    filled = [i for i, line in enumerate(lines) if line.strip()]
    title = ""
    if len(filled) > 1 and filled[1] - filled[0] > 1:
        first = lines[filled[0]].strip()
        if len(first) <= _TITLE_CHARS and not first.endswith(tuple("。！？.!?；;，,：:")):
            title = first
    return Parsed(title, blocks)


def read_code(text: str) -> Parsed:
    """Code: stretches between blank lines, their lines kept."""
    blocks: list[Block] = []
    held: list[str] = []
    for number, line in enumerate([*_lines(text), ""], 1):
        if line.strip():
            held.append(line.rstrip())
        elif held:
            blocks.append(Block("\n".join(held), {"line": number - len(held)}))
            held = []
    return Parsed("", blocks)


def read_markdown(text: str) -> Parsed:
    """Markdown: a section per heading; headings, fences, tables and front matter are known."""
    lines = _lines(_COMMENT.sub(lambda m: "\n" * m[0].count("\n"), text))
    reader = _Markdown()
    front = _front_matter(lines)
    title = next((line[6:].strip(" \"'") for line in lines[:front] if line.startswith("title:")), "")
    for number, line in enumerate(lines[front:], front + 1):
        reader.add(number, line)
    reader.flush()
    return Parsed(title or reader.title, reader.blocks)


class _Markdown:
    """The lines so far, as blocks; `held` are those of the paragraph or fence that is open, from line `first`."""

    def __init__(self) -> None:
        self.title = self.section = self.fence = ""
        self.blocks: list[Block] = []
        self.held: list[str] = []
        self.first = 1

    def add(self, number: int, line: str) -> None:
        mark = _FENCE.match(line)
        if self.fence and mark and mark[1].startswith(self.fence) and not line.strip(" `~"):
            self.flush()
        elif self.fence:
            self.hold(number, line)
        elif mark:
            self.flush()
            self.fence = mark[1]
        elif _TABLE_ROW.match(line):
            self.flush()
            if not _TABLE_RULE.match(line):
                self.blocks.append(self.block(_row(line), number))
        elif (heading := _heading(line, self.held)) is not None:
            if not line.startswith("#"):
                self.held.pop()  # its text is the line before
            self.flush()
            self.section = heading
            self.title = self.title or heading
        else:
            self.hold(number, line)

    def hold(self, number: int, line: str) -> None:
        self.first = self.first if self.held else number
        self.held.append(line)

    def flush(self) -> None:
        if self.fence and any(line.strip() for line in self.held):
            self.blocks.append(self.block("\n".join(self.held), self.first))
        elif not self.fence:
            self.blocks += [self.block(_plain(text), n) for text, n in paragraphs(self.held, self.first)]
        self.held, self.fence = [], ""

    def block(self, text: str, number: int) -> Block:
        place = {"line": number, "section": self.section} if self.section else {"line": number}
        return Block(text, place, self.section)


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n").split("\n")


def _front_matter(lines: list[str]) -> int:
    if lines and lines[0].strip() == "---":
        for index, line in enumerate(lines[1:60], 1):
            if line.strip() == "---":
                return index + 1
    return 0


def _heading(line: str, held: list[str]) -> str | None:
    if match := _HEADING.match(line):
        return _plain(match[2])
    alone = bool(held) and (len(held) == 1 or not held[-2].strip())
    if _UNDERLINE.match(line) and alone and 0 < len(held[-1].strip()) <= _TITLE_CHARS:
        return _plain(held[-1].strip())
    return None


_LINK = re.compile(r"!?\[([^\]\n]*)\]\(<?[^)\s>]*>?(?:\s+\"[^\"]*\")?\)")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_CODE = re.compile(r"`([^`\n]+)`")


def _plain(text: str) -> str:
    """Without the marks of emphasis, code and links, which no reader of the page would see."""
    text = re.sub(r"^\s*>\s?", "", text)
    return _CODE.sub(r"\1", _STRONG.sub(r"\2", _LINK.sub(r"\1", text)))


def _row(line: str) -> str:
    return join_lines(" | ".join(cell.strip() for cell in _plain(line).strip().strip("|").split("|")))
