"""One node line of dag.md, `- [N1] WEB  | 子问题：… | 依赖：…`: text to Node and back; tolerant in, canonical out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple
from unicodedata import normalize

from dr.contract import NodeType, State
from dr.errors import LineError

MAX_FAULTS = 25  # listed; the rest is counted
NEWLINE = "⏎"  # a line break inside a field; unlike \n or <br> it occurs in no path and in hardly any question
TYPES = "WEB, LOCAL, MEMORY, CODE or SYNTH"
_TYPE = dict(NodeType.__members__)


@dataclass(frozen=True)
class Node:
    """One line of the node list. `source` and `expected_outcome` may be empty."""

    id: str
    type: NodeType
    sub_question: str
    depends_on: tuple[str, ...] = ()
    state: State = State.PENDING
    source: str = ""
    expected_outcome: str = ""


class Placed(NamedTuple):
    """A node and where it stands, for messages. Its dependencies are as written until the plan is checked."""

    node: Node
    line: int
    text: str


class Faults:
    """Collects faults; a flood of them is counted, not stored."""

    def __init__(self) -> None:
        self.errors: list[LineError] = []
        self.unlisted = 0

    def add(self, line: int, wrong: str, text: str = "") -> None:
        if len(self.errors) >= MAX_FAULTS:
            self.unlisted += 1
        else:
            self.errors.append(LineError(line, wrong + (f": {show(text)}" if text else "")))

    def listing(self) -> list[LineError]:
        """By line; the last entry counts those that are not listed."""
        errors = sorted(self.errors, key=lambda e: e.line)
        if self.unlisted:
            errors.append(LineError(errors[-1].line, f"and {self.unlisted} more faults in this file"))
        return errors


def show(text: str) -> str:
    """A quoted excerpt that is safe to print."""
    text = text[:1000].strip()
    text = text if len(text) <= 120 else text[:119] + "…"
    return '"' + "".join(c if c.isprintable() else "\ufffd" for c in text) + '"'


# -- words ------------------------------------------------------------------------------------------------------------

# kind of field -> labels, folded and without blanks
_LABELS = {
    "question": ("子问题", "问题", "question", "subquestion"),
    "depends": ("依赖", "depends", "dependson", "deps", "dependencies"),
    "source": ("来源", "信息源", "source", "sources", "url"),
    "expect": ("预期", "预期结果", "expect", "expected", "expectedoutcome"),
}
_KIND = {label: kind for kind, labels in _LABELS.items() for label in labels}
_LABEL = (
    r"(?:(子问题|问题|依赖|来源|信息源|预期(?:结果)?|(?:sub[-_ ]?)?question|depends(?:[-_ ]on)?|deps|dependencies"
    r"|sources?|expect(?:ed)?(?:[-_ ]outcome)?)\s*[:：]|(url)\s*[:：=])"
)
_ANY_LABEL = re.compile(_LABEL, re.IGNORECASE)
_FIELD = re.compile(rf"\s*{_LABEL}", re.IGNORECASE)  # behind a `|`
_MISREADABLE = re.compile(rf"(?:(?<=\s)|\A)\|(?=\s*(?:{_LABEL}|\Z))", re.IGNORECASE)
_WRITTEN = {
    "zh": {
        "question": "子问题：",
        "depends": "依赖：",
        "source": "来源：",
        "expect": "预期：",
        "none": "无",
        "comma": ",",
    },
    "en": {
        **{"question": "question: ", "depends": "depends: ", "source": "source: ", "expect": "expect: "},
        **{"none": "none", "comma": ", "},
    },
}
_NONE = {"", "无", "没有", "none", "n/a", "-", "–", "—"}
MARKS = {
    **{"": State.PENDING, " ": State.PENDING, "~": State.RUNNING, "～": State.RUNNING},
    **dict.fromkeys(("✓", "✔", "√", "☑", "✅", "x", "v"), State.DONE),
    **dict.fromkeys(("✗", "✘", "✖", "×", "❌"), State.FAILED),
    **dict.fromkeys(("-", "–", "—"), State.SKIPPED),
}
_HEAD = re.compile(r"([-*+•]\s*|\d{1,4}[.)]\s*)?\[([^\[\]]*)\]\s*([A-Za-z]*)([^\s|]*)(\s*)(\|?)(.*)", re.DOTALL)
_BLANKS = re.compile(r"[-_\s]")
_DEPENDS_SPLIT = re.compile(r"[,，、;；\s]+")
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """A field's text as the plan holds it: stripped, `\\n` line breaks, encodable."""
    return encodable(text).replace("\r\n", "\n").replace("\r", "\n").strip()


def encodable(text: str) -> str:
    """Lone surrogates replaced, so that whatever was read can be written."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def means_none(text: str) -> bool:
    return text.strip().casefold() in _NONE


def without_none(text: str) -> str:
    """`text`, or '' if it is a word for none."""
    return "" if text and means_none(text) else text


def state_of(mark: str) -> State | None:
    """`mark`: what stands between the brackets; None if it is no mark."""
    if (state := MARKS.get(mark)) is not None:
        return state
    return MARKS.get(mark.strip().removesuffix("\ufe0f").casefold())


# -- escapes: a backslash counts only in front of `|` and the line break sign, so that Windows paths need no care ------

# The look-behinds keep a run of backslashes from being tried from each of its members (linear time).
_ESCAPED = re.compile(rf"(?<!\\)(\\*)([|{NEWLINE}])")
_SPECIAL = re.compile(rf"(?<!\\)(\\*)([|{NEWLINE}\n])")


def decode(text: str, pipes: bool = True) -> str:
    """What a field says. pipes=False for ROOT, which has no fields: there a `\\|` is just that."""

    def one(m: re.Match[str]) -> str:
        slashes, char = m.groups()
        if char == "|":
            return "\\" * (len(slashes) // 2) + "|" if pipes else slashes + "|"
        return "\\" * (len(slashes) // 2) + (NEWLINE if len(slashes) % 2 else "\n")

    return _ESCAPED.sub(one, text) if "|" in text or NEWLINE in text else text


def encode(text: str, pipes: bool = True) -> str:
    """The inverse of `decode`. A `|` is escaped only where it would begin a field or end the line."""

    def one(m: re.Match[str]) -> str:
        slashes, char = m.groups()
        if char == "|":
            return slashes * 2 + "|" if pipes else slashes + "|"
        return slashes * 2 + (NEWLINE if char == "\n" else "\\" + NEWLINE)

    if "|" not in text and "\n" not in text and NEWLINE not in text:
        return text
    text = _SPECIAL.sub(one, text)
    return _MISREADABLE.sub(r"\\|", text) if pipes else text


# -- the line ---------------------------------------------------------------------------------------------------------


def write_node(node: Node, lang: str) -> str:
    words = _WRITTEN[lang]
    question = encode(node.sub_question)
    if node.type is not NodeType.SYNTH or question.startswith("\\|") or _ANY_LABEL.match(question):
        question = words["question"] + question
    depends = words["comma"].join(node.depends_on) or words["none"]
    line = f"- [{node.id}] {node.type.value:<4} | {question} | {words['depends']}{depends}"
    if node.source:
        line += f" | {words['source']}{encode(node.source)}"
    if node.expected_outcome:
        line += f" | {words['expect']}{encode(node.expected_outcome)}"
    return line


def read_node(line: str, number: int, faults: Faults, votes: dict[str, int]) -> Placed | None:
    """The node of a line, or None for a line that is not ours: prose, a sub-heading, a link, a check box.

    votes: labels seen by language, counted here.
    """
    if (m := _HEAD.match(line.strip())) is None:
        return None
    bullet, raw_id, word, rest_of_word, blank, bar, body = m.groups()
    node_id, type_text = normalize("NFC", raw_id.strip()), word + rest_of_word
    type_ = _TYPE.get(word.upper())
    known = type_ is not None and (not rest_of_word or rest_of_word[0] in "-_/(（")
    if type_text[:1] in ("(", ":") or not (bullet or (known and bar)):
        return None
    if not bar and (state_of(node_id) is not None or not (known or _ANY_LABEL.search(line))):
        return None
    if not known:
        faults.add(number, f"unknown type {show(type_text)} of node {_plain(node_id)}; expected {TYPES}", line)
    if known and not bar and not _FIELD.match(body):
        faults.add(
            number, f"no ` | ` after the type of node {_plain(node_id)}; expected `- [N1] WEB | 子问题：…`", line
        )
    values: dict[str, str] = {}
    for kind, text in _fields(body, bool(bar and not blank), votes):
        if kind in values:
            wrong = f"two {kind} fields in node {_plain(node_id)}"
            faults.add(number, f"{wrong}; expected one, and a literal | written as \\|", line)
        values[kind] = text
    depends, bar, extra = values.get("depends", "").partition("|")
    if bar:
        wrong = f"unknown field {show(extra)} in node {_plain(node_id)}"
        faults.add(number, f"{wrong}; expected 来源, 预期, source or expect", line)
    node = Node(
        id=node_id,
        type=type_ or NodeType.WEB,
        sub_question=_text(values, "question"),
        depends_on=() if means_none(depends) else tuple(t for t in _DEPENDS_SPLIT.split(depends) if t),
        source=without_none(_text(values, "source")),
        expected_outcome=without_none(_text(values, "expect")),
    )
    return Placed(node, number, line)


def _text(values: dict[str, str], kind: str) -> str:
    return decode(text).strip() if (text := values.get(kind)) else ""


def _plain(name: str) -> str:
    return show(name)[1:-1]


def _fields(body: str, compact: bool, votes: dict[str, int]) -> list[tuple[str, str]]:
    """(kind, text as written). What stands before the first label is the question.

    A field begins at a `|` behind a blank; in a compact line, `WEB|子问题：…|依赖：…`, at any `|` that is not escaped.
    """
    body = body.rstrip()
    if body.endswith("|") and (len(body) == 1 or body[-2].isspace()):
        body = body[:-1]
    fields: list[tuple[str, str]] = []
    kind, begin, at = "question", 0, -1
    while at < len(body):
        before = body[at - 1 : at]
        if (at == -1 or before.isspace() or (compact and before != "\\")) and (m := _FIELD.match(body, at + 1)):
            if (text := body[begin : max(at, 0)].strip()) or begin:
                fields.append((kind, text))
            label = (m[1] or m[2]).casefold()
            if label != "url":
                votes["en" if label.isascii() else "zh"] += 1
            kind, begin = _KIND.get(label) or _KIND[_BLANKS.sub("", label)], m.end()
        at = body.find("|", at + 1)
        if at == -1:
            break
    if (text := body[begin:].strip()) or begin:
        fields.append((kind, text))
    return fields
