"""What a call asks of the subagent: flags and files of the node folder -> Request. Reads files, writes none."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from dr import files
from dr.contract import Context, NodeType, check_name
from dr.errors import FormatError, UsageError
from dr.layout import NodeFolder, Root

_HEADER = r"(?i)\s*(TYPE|SOURCE|类型|来源)\s*[:：]\s*(.*?)\s*$"


@dataclass(frozen=True)
class Request:
    """node_type None: not said; it follows from whether there is a source."""

    context: Context
    node_type: NodeType | None

    @property
    def type(self) -> NodeType:
        source = self.context.source.strip()
        if source.startswith(("http://", "https://")):
            return self.node_type or NodeType.WEB
        return self.node_type or (NodeType.LOCAL if source else NodeType.MEMORY)


def node_folder(root: Root, name: str) -> NodeFolder:
    """<root>/temp/NAME. UsageError when a part of NAME is no name, or a symlink leads out of temp/."""
    parts = name.split("/")
    for part in parts:
        check_name(part, "part of --task")
    path = root.temp.joinpath(*parts)
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root.temp)):
        raise UsageError(f"use {path} as node folder", "a symlink leads out of temp/", "remove the symlink")
    return NodeFolder(path)


def from_folder(folder: NodeFolder) -> Request:
    """The request of context.json and the first line of input.txt. FormatError when either is missing or wrong."""
    if not folder.context.is_file():
        raise FormatError(
            f"read {folder.context}", "there is no such file", "write it first, or give the question with --input"
        )
    context = Context.from_dict(files.read_json(folder.context), str(folder.context))
    _check_output(context, folder)
    first = files.read_text(folder.input).split("\n", 1)[0] if folder.input.is_file() else ""
    match = re.match(_HEADER, first)
    if match is None or match[1].upper() not in ("TYPE", "类型"):
        raise FormatError(f"read {folder.input}", f"its first line is {first!r}", "begin it with TYPE: LOCAL")
    return Request(context, _type(match[2], str(folder.input)))


def _check_output(context: Context, folder: NodeFolder) -> None:
    output = Path(context.output_file)
    inside = output.is_absolute() and os.path.realpath(output.parent) == os.path.realpath(folder.path)
    ours = (folder.input.name, folder.final_answer.name, folder.conclusion.name)
    if not inside or output.suffix not in (".txt", ".md") or output.name in ours:
        raise FormatError(
            f"read {folder.context}",
            f"output_file {context.output_file!r} is no answer file of this node's folder",
            f"give {folder.output}",
        )


def _type(word: str, where: str) -> NodeType:
    try:
        return NodeType(word.strip().upper().split("-")[0])
    except ValueError:
        known = ", ".join(t.value for t in NodeType if t is not NodeType.SYNTH)
        raise FormatError(f"read the type in {where}", f"{word!r} is none of {known}") from None


def from_text(text: str, output: Path, where: str) -> Request:
    """The request of --input or --func: the question, after optional lines `TYPE: LOCAL` and `SOURCE: path`."""
    lines = text.replace("\r\n", "\n").strip("\ufeff\n ").split("\n")
    node_type, source = None, ""
    while lines and (match := re.match(_HEADER, lines[0])):
        if match[1].upper() in ("TYPE", "类型"):
            node_type = _type(match[2], where)
        else:
            source = match[2]
        lines.pop(0)
    question = "\n".join(lines).strip()
    if not question:
        raise UsageError(f"read {where}", "it holds no question", "write the question there")
    return Request(Context(question, {}, question, source, str(output)), node_type)
