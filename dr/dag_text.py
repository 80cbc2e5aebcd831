"""The text of dag.md to a Document (what each line is, what it says) and back; faults are collected with line numbers.

Lossless: a line that is not title, ROOT, node or marks is kept as it stands. Pure; docs/format-dag.md is the manual.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias
from unicodedata import normalize

from dr.contract import State, fold
from dr.dag_line import Faults, Node, Placed, decode, encodable, encode, read_node, state_of, write_node

MAX_CHARS = 4_000_000  # a plan of 1,000 nodes has about 0.3 million
MARKS_A_LINE = 10


class Section(Enum):
    NODES = "nodes"
    STATUS = "status"
    OTHER = "other"


class Slot(Enum):
    """A place of which a file has one."""

    TITLE = "title"
    ROOT = "root"
    MARKS = "marks"  # the marks of all nodes that no NotedMarks shows; several lines


class Heading(NamedTuple):
    """A heading of level 1 or 2, kept as written; it begins a section."""

    text: str
    section: Section


class NodeLine(NamedTuple):
    id: str


class Mark(NamedTuple):
    """`label`: the id and colon as written."""

    id: str
    label: str


class NotedMarks(NamedTuple):
    """A line of the status section that says more than marks: its marks are kept up to date where they stand."""

    parts: tuple[str | Mark, ...]

    def without(self, ids: Iterable[str]) -> NotedMarks | str:
        gone = set(ids)
        parts = tuple(p for p in self.parts if isinstance(p, str) or p.id not in gone)
        texts = [p for p in parts if isinstance(p, str)]
        return NotedMarks(parts) if len(texts) < len(parts) else "".join(texts)

    def ids(self) -> set[str]:
        return {p.id for p in self.parts if isinstance(p, Mark)}


Item: TypeAlias = "str | Slot | Heading | NodeLine | NotedMarks"  # str: a line that is not ours


@dataclass
class Document:
    """A dag.md as read. The nodes' states are in `states`, by id: marks may stand above the node list."""

    items: list[Item] = field(default_factory=list)
    title: str | None = None
    root: str | None = None
    lang: str = "zh"
    nodes: list[Placed] = field(default_factory=list)
    states: dict[str, State] = field(default_factory=dict)


HEADINGS = {
    "zh": {Section.NODES: "## 节点列表", Section.STATUS: "## 节点状态"},
    "en": {Section.NODES: "## Nodes", Section.STATUS: "## Status"},
}
_SECTIONS = {
    **dict.fromkeys(("节点列表", "节点清单", "节点", "nodes", "node list"), Section.NODES),
    **dict.fromkeys(("节点状态", "状态", "status", "node status"), Section.STATUS),
}
_LEGEND = {"图例", "说明", "标记", "状态", "legend", "key", "marks", "status", "note"}  # `图例：[ ] …` is no mark
_TITLE = re.compile(r"#\s*DR\s*[:：]\s*(.*)", re.IGNORECASE | re.DOTALL)
_ROOT = re.compile(r"ROOT\s*[:：]\s*(.*)", re.IGNORECASE | re.DOTALL)
_HEADING = re.compile(r"(##?)(?!#)(\s*)([^（(]*)", re.DOTALL)
_INDENT = re.compile(r"\s*(?:[-*+•]\s*|\d{1,4}[.)]\s+)?")
# The look-behind keeps a long word from being tried from each of its letters (linear time).
_ID = r"\w[\w.\-\u0300-\u036f]{0,89}"
_MARK = re.compile(rf"(?<![\w.-])({_ID})(\s*[:：]\s*)\[([^\[\]]{{0,8}})\]")
_CHECK_BOX = re.compile(rf"\[([^\[\]]{{0,8}})\]\s*({_ID})\s*")
_BETWEEN_MARKS = " \t\u3000,，、;；|"


# -- reading ----------------------------------------------------------------------------------------------------------


def read(text: str, faults: Faults) -> Document:
    """What every line is and says. Faults of single lines are added; those of the plan as a whole are for dag.py."""
    document = Document()
    if len(text) > MAX_CHARS:
        faults.add(1, f"the file has {len(text):,} characters; at most {MAX_CHARS:,} are read")
        return document
    lines = encodable(text).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    section, fenced, begun = Section.OTHER, False, False
    status_lines: list[int] = []
    votes, heading_votes = {"zh": 0, "en": 0}, {"zh": 0, "en": 0}
    for number, line in enumerate(lines, 1):
        item: Item = line
        if begun and section is Section.OTHER and line.startswith(("```", "~~~")):
            fenced = not fenced  # an example inside a note is no plan
        if not begun and document.title is None and (m := _TITLE.match(line)):
            document.title, item = m[1].strip(), Slot.TITLE
        elif not fenced and line.startswith("#") and (heading := _heading(line)) is not None:
            section, item = heading.section, heading
            if section is not Section.OTHER:
                begun = True
                heading_votes["en" if line.isascii() else "zh"] += 1
        elif section is Section.NODES:
            if (placed := read_node(line, number, faults, votes)) is not None:
                document.nodes.append(placed)
                item = NodeLine(placed.node.id)
        elif section is Section.STATUS:
            if "[" in line:
                status_lines.append(number)
        elif not begun and document.root is None and (m := _ROOT.match(line)):
            document.root, item = decode(m[1], pipes=False).strip(), Slot.ROOT
            if not document.root:
                faults.add(number, "ROOT is empty; expected `ROOT: the original question`", line)
        document.items.append(item)
    document.lang = _language(votes, heading_votes)
    _check_head(document, faults)
    if document.nodes:
        _read_marks(document, status_lines, lines, faults)
    return document


def _language(votes: Mapping[str, int], heading_votes: Mapping[str, int]) -> str:
    """By the fields' labels; headings decide when these do not."""
    difference = votes["en"] - votes["zh"] or heading_votes["en"] - heading_votes["zh"]
    return "en" if difference > 0 else "zh"


def _heading(line: str) -> Heading | None:
    if (m := _HEADING.match(line)) is None:
        return None
    level, blank, name = m.groups()
    section = _SECTIONS.get(name.strip().rstrip(":：").strip().casefold()) if level == "##" else None
    if section is None and not blank:
        return None  # `#word` is no heading
    return Heading(line, section or Section.OTHER)


def _check_head(document: Document, faults: Faults) -> None:
    lists = [i for i, x in enumerate(document.items, 1) if isinstance(x, Heading) and x.section is Section.NODES]
    if document.title is None:
        faults.add(1, "no title above the node list; expected `# DR: the question in one line`")
    if document.root is None:
        faults.add(1, "no ROOT above the node list; expected a line `ROOT: the original question`")
    if not lists:
        faults.add(1, "no node list; expected the heading `## 节点列表` or `## Nodes`, and nodes below it")
    elif not document.nodes:
        faults.add(lists[0], "no node below this heading; expected `- [N1] WEB | 子问题：… | 依赖：无`")


def _read_marks(document: Document, status_lines: list[int], lines: list[str], faults: Faults) -> None:
    ids = {fold(p.node.id): p.node.id for p in document.nodes}
    ids.update((p.node.id, p.node.id) for p in document.nodes)
    items: list[Item | None] = list(document.items)
    place: int | None = None
    for number in status_lines:
        parts, owned = _mark_line(lines[number - 1], number, ids, document.states, faults)
        if owned:
            items[number - 1] = None
            place = number - 1 if place is None else place
        elif len(parts) > 1:
            items[number - 1] = NotedMarks(tuple(parts))
    if place is not None:
        items[place] = Slot.MARKS
    document.items = [item for item in items if item is not None]
    if place is None:
        _give_marks_a_place(document, ids, faults)


def _mark_line(
    line: str, number: int, ids: Mapping[str, str], states: dict[str, State], faults: Faults
) -> tuple[list[str | Mark], bool]:
    """The line cut into text and marks, and whether it holds nothing but marks. A node's last mark counts."""
    start = m.end() if (m := _INDENT.match(line)) else 0
    if (m := _CHECK_BOX.fullmatch(line, start)) and (node_id := ids.get(fold(m[2]))) and (state := state_of(m[1])):
        states[node_id] = state  # `- [x] N1`
        return [], True
    found = list(_MARK.finditer(line, start))
    owned = bool(found) and not _left_over(line, start, found)
    parts: list[str | Mark] = []
    at = 0
    for m in found:
        name, colon, mark = m.groups()
        state = state_of(mark)
        node_id = ids.get(name) or ids.get(fold(name))
        if node_id is None:
            if (owned or m.start() == start) and fold(name) not in _LEGEND:
                name = normalize("NFC", name)
                faults.add(number, f"mark for {name}, which is no node; add the node or remove the mark", line)
        elif state is None:
            faults.add(number, f"unknown mark [{mark}] of {name}; expected [ ], [~], [✓], [✗] or [-]", line)
        else:
            states[node_id] = state
            if owned:
                continue
            parts += [line[at : m.start()], Mark(node_id, name + colon)]
            at = m.end()
    parts.append(line[at:])
    return parts, owned


def _left_over(line: str, start: int, found: Sequence[re.Match[str]]) -> str:
    """What a line says besides its marks."""
    begins, ends = [*(m.start() for m in found), len(line)], [start, *(m.end() for m in found)]
    return "".join(line[a:b] for a, b in zip(ends, begins, strict=True)).strip(_BETWEEN_MARKS)


def _give_marks_a_place(document: Document, ids: Mapping[str, str], faults: Faults) -> None:
    """In a file that has no marks yet. Marks under a misspelt heading are an error, not dropped."""
    items = document.items
    for number, item in enumerate(items, 1):
        if isinstance(item, Heading) and item.section is Section.STATUS:
            items.insert(number, Slot.MARKS)
            return
    for number, item in enumerate(items, 1):
        if isinstance(item, str) and "[" in item:
            start = m.end() if (m := _INDENT.match(item)) else 0
            found = list(_MARK.finditer(item, start))
            if any(fold(m[1]) in ids for m in found) and not _left_over(item, start, found):
                faults.add(number, "marks outside a status section; expected `## 节点状态` or `## Status` above", item)
                return
    at = end_of_nodes(items)
    after: list[Item] = [""] if at == len(items) or items[at] != "" else []
    items[at:at] = ["", Heading(HEADINGS[document.lang][Section.STATUS], Section.STATUS), Slot.MARKS, *after]


def end_of_nodes(items: Sequence[Item]) -> int:
    """Index behind the last non-blank line of the last node list."""
    start = max(i for i, x in enumerate(items) if isinstance(x, Heading) and x.section is Section.NODES)
    end = next((i for i in range(start + 1, len(items)) if isinstance(items[i], Heading)), len(items))
    while end > start + 1 and isinstance(line := items[end - 1], str) and not line.strip():
        end -= 1
    return end


# -- writing ----------------------------------------------------------------------------------------------------------


def write(items: Sequence[Item], title: str, root: str, nodes: Sequence[Node], lang: str) -> str:
    """The canonical text; title, root and every text of a node are clean (dag_line.clean)."""
    by_id = {node.id: node for node in nodes}
    out: list[str] = []
    for item in items:
        if isinstance(item, str):
            out.append(item)
        elif isinstance(item, NodeLine):
            out.append(write_node(by_id[item.id], lang))
        elif isinstance(item, Heading):
            out.append(item.text)
        elif isinstance(item, NotedMarks):
            out.append("".join(p if isinstance(p, str) else f"{p.label}[{by_id[p.id].state.mark}]" for p in item.parts))
        elif item is Slot.MARKS:
            out += _mark_lines(nodes, items)
        else:
            out.append(f"# DR: {title}" if item is Slot.TITLE else f"ROOT: {encode(root, pipes=False)}")
    return "\n".join(out)


def _mark_lines(nodes: Sequence[Node], items: Sequence[Item]) -> list[str]:
    noted = {i for item in items if isinstance(item, NotedMarks) for i in item.ids()}
    marks = [f"{n.id}: [{n.state.mark}]" for n in nodes if n.id not in noted]
    return [" ".join(marks[i : i + MARKS_A_LINE]) for i in range(0, len(marks), MARKS_A_LINE)]


def line_numbers(items: Sequence[Item], nodes: int) -> dict[str, int]:
    """Node id -> its line in the text that `write` gives, for a plan of so many nodes."""
    numbers, line = {}, 1
    for item in items:
        if isinstance(item, NodeLine):
            numbers[item.id] = line
        line += -(-nodes // MARKS_A_LINE) if item is Slot.MARKS else 1
    return numbers
