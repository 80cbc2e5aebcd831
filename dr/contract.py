"""What runner and subagent agree on: node types, states, names, context.json, evidence, the conclusion format."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from dr.errors import FormatError, UsageError

ROUND_END = "[ROUND END]"
CONCLUSION_MARK = "[结论]"
# Pattern of the mark as agents write it at the start of a line: [结论], 【结论】, **[结论]**, ## [结论]
MARK_LINE = r"(?m)^[ \t>]*(?:#{1,6}[ \t]+|[-*+][ \t]+)?(\*\*)?[\[【［]结论[\]】］](\*\*)?"
SOURCE_LABEL = "来源"  # a conclusion's source lines: 来源：<URL or path>[, p. N] — "<verbatim quote>"
PARENT_CONCLUSION_CHARS = 200
CONCLUSION_CHARS_CJK = 500
CONCLUSION_WORDS = 300
INPUT_CHARS = 1500


class NodeType(str, Enum):
    """Where a node's answer comes from; SYNTH is done by the main agent itself."""

    WEB = "WEB"
    LOCAL = "LOCAL"
    MEMORY = "MEMORY"
    CODE = "CODE"
    SYNTH = "SYNTH"


class State(str, Enum):
    """State of a node; `mark` is how dag.md shows it."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"

    @property
    def mark(self) -> str:
        return _MARKS[self]

    @property
    def settled(self) -> bool:
        """Nothing more will happen to the node unless somebody asks for it."""
        return self in (State.DONE, State.FAILED, State.SKIPPED)


_MARKS = {State.PENDING: " ", State.RUNNING: "~", State.DONE: "✓", State.FAILED: "✗", State.SKIPPED: "-"}

_NAME = re.compile(r"[\w][\w.-]{0,79}\Z")
# Files the runner keeps next to the node folders, and names that Windows cannot create.
_RUN_FILES = {
    *("dag.md", "dag.seen.md", "run.json", "run.lock", "events.jsonl", "report.md", "report.html", "result.json"),
    *("conflicts.json", "index.html", "readme.md", "sources", "runner.log", "thinking"),
}
_DEVICES = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(1, 10))}


def fold(name: str) -> str:
    """The form in which two names are the same name: NFC, then casefold."""
    return unicodedata.normalize("NFC", name).casefold()


def check_name(name: str, what: str) -> str:
    """`name` if it can be a task name or node id (1-80 Unicode word characters, `.`, `-`), else UsageError."""
    folded = fold(name)
    if not _NAME.match(name) or ".." in name or name.endswith("."):
        wrong = "only letters, digits, _ . - are allowed, at most 80, starting with a letter, digit or _, without '..'"
    elif folded in _RUN_FILES:
        wrong = "this is the name of a run file"
    elif folded.split(".")[0] in _DEVICES:
        wrong = "this is a Windows device name"
    else:
        return name
    raise UsageError(f"use {name!r} as {what}", wrong, "choose another name, for example N1")


_SOURCE_SPLIT = re.compile(r"\s*(?:[;；]\s+|；|;(?=(?:https?://|[~./\\]|[A-Za-z]:[\\/]))|;$)\s*")


def split_sources(source: str) -> list[str]:
    """The single sources of a `来源` field; `;` separates them, but a `;` inside a URL or file name does not."""
    return [part for part in (p.strip() for p in _SOURCE_SPLIT.split(source)) if part]


def join_sources(sources: list[str]) -> str:
    return "; ".join(sources)


@dataclass(frozen=True)
class Context:
    """context.json: exactly these five keys. parent_conclusions: node id -> at most 200 characters."""

    root_question: str
    parent_conclusions: dict[str, str]
    sub_question: str
    source: str
    output_file: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any, path: str) -> Context:
        """Validated; FormatError names the missing, unknown or mistyped key."""
        expected = list(cls.__dataclass_fields__)
        if not isinstance(data, dict):
            raise FormatError(f"read {path}", f"a JSON object with the keys {expected} is expected")
        missing, unknown = [k for k in expected if k not in data], [k for k in data if k not in expected]
        if missing or unknown:
            wrong = ", ".join([f"missing key {k}" for k in missing] + [f"unknown key {k}" for k in unknown])
            raise FormatError(f"read {path}", wrong, f"write exactly these keys: {', '.join(expected)}")
        parents = data["parent_conclusions"]
        if not isinstance(parents, dict) or not all(isinstance(v, str) for v in parents.values()):
            raise FormatError(f"read {path}", "parent_conclusions must be an object of node id -> text")
        for key in expected:
            if key != "parent_conclusions" and not isinstance(data[key], str):
                raise FormatError(f"read {path}", f"{key} must be a string")
        if not data["sub_question"].strip():
            raise FormatError(f"read {path}", "sub_question is empty")
        return cls(**data)


class Passage(NamedTuple):
    """A piece of a source that a node may cite; one line of evidence.jsonl.

    id: "[local-1]"; kind: rag|web|code|local|mem; place: path or URL; locator: {"page"|"line"|"section": value};
    sha256: of the source's bytes, so that a later change of the source is noticed.
    """

    id: str
    kind: str
    place: str
    sha256: str
    title: str
    locator: dict[str, Any] = field(default_factory=dict)
    text: str = ""

    def to_dict(self) -> dict[str, Any]:
        where = "url" if self.place.startswith(("http://", "https://")) else "path"
        return {
            **{"id": self.id, "kind": self.kind, where: self.place, "sha256": self.sha256},
            **{"title": self.title, "locator": self.locator, "text": self.text},
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Passage:
        place = data.get("url") or data.get("path") or ""
        return cls(
            id=str(data["id"]),
            kind=str(data["kind"]),
            place=str(place),
            sha256=str(data.get("sha256", "")),
            title=str(data.get("title", "")),
            locator=dict(data.get("locator") or {}),
            text=str(data["text"]),
        )
