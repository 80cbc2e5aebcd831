"""dag.md as a plan: text in, a valid Dag or DagError with every fault out; a Dag in, canonical text out.

Pure: no disk, no clock, no process. The manual is docs/format-dag.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dr.contract import NodeType, State
from dr.dag_line import Faults, Node, Placed, clean, without_none, write_node
from dr.dag_rules import checked, children_of, descendants_of, free_id, order_of, some
from dr.dag_text import (
    HEADINGS,
    Heading,
    Item,
    NodeLine,
    NotedMarks,
    Section,
    Slot,
    end_of_nodes,
    line_numbers,
    read,
    write,
)
from dr.errors import DagError, UsageError

__all__ = ["Dag", "DagDiff", "Node", "diff"]

_DEEPENING = {"zh": "深化 {number}：{why}", "en": "Deepening {number}: {why}"}
_REVISION = {"zh": "修订 {number}：{why}", "en": "Revision {number}: {why}"}


@dataclass(frozen=True)
class Dag:
    """A valid plan and the text around it. Immutable: every change returns a new Dag, or raises DagError."""

    title: str
    root: str
    lang: str  # "zh" or "en": the language of the file's labels
    nodes: tuple[Node, ...]  # in file order; at least one SYNTH
    items: tuple[Item, ...] = field(repr=False)  # what each line of the file is

    # -- from text and back -------------------------------------------------------------------------------------------

    @classmethod
    def parse(cls, text: str, path: str = "dag.md") -> Dag:
        """DagError with every fault of the text (a flood is cut and counted). `path` is for the message only."""
        faults = Faults()
        document = read(text, faults)
        nodes = checked(document.nodes, document.lang, faults, document.states)
        if faults.errors:
            raise DagError(faults.listing(), path)
        root = document.root or ""
        items = _with_synth(document.items, nodes)
        return cls(document.title or _one_line(root), root, document.lang, tuple(nodes), tuple(items))

    @classmethod
    def new(cls, title: str, root: str, nodes: Iterable[Node], lang: str) -> Dag:
        """A fresh document in the canonical form."""
        lang = lang if lang in HEADINGS else "en"
        nodes, root = tuple(nodes), clean(root)
        if not root:
            raise UsageError("make a plan", "the question is empty", "give a question")
        nodes_heading, status_heading = (Heading(HEADINGS[lang][s], s) for s in (Section.NODES, Section.STATUS))
        lines = [NodeLine(n.id) for n in nodes]
        items: list[Item] = [Slot.TITLE, Slot.ROOT, "", nodes_heading, *lines, "", status_heading, Slot.MARKS, ""]
        return cls(_one_line(title) or _one_line(root), root, lang, (), ())._rebuilt(items, nodes)

    def render(self) -> str:
        """The canonical text, `\\n` line ends. Reading it gives this plan again, and the same text."""
        return write(self.items, self.title, self.root, self.nodes, self.lang)

    # -- changes ------------------------------------------------------------------------------------------------------

    def with_states(self, states: Mapping[str, State]) -> Dag:
        """Other marks, the same plan; cheap. UsageError for an unknown id."""
        for node_id in states:
            self.node(node_id)
        nodes = (replace(n, state=states[n.id]) if states.get(n.id, n.state) is not n.state else n for n in self.nodes)
        return replace(self, nodes=tuple(nodes))

    def with_nodes(self, new_nodes: Iterable[Node], heading: str | None = None) -> Dag:
        """New nodes at the end of the node list, below a `### heading` if one is given (see deepening_heading)."""
        added = tuple(new_nodes)
        at = end_of_nodes(self.items)
        lines: list[Item] = [NodeLine(n.id) for n in added]
        if heading is not None and added:
            lines = ["", f"### {_one_line(heading)}", *lines]
        after: list[Item] = [] if self.items[at : at + 1] == ("",) else [""]
        return self._rebuilt([*self.items[:at], *lines, *after, *self.items[at:]], (*self.nodes, *added))

    def without(self, ids: Iterable[str]) -> Dag:
        """These nodes' lines and marks leave the file, and the other nodes' dependencies on them go with them."""
        gone = {self.node(i).id for i in ids}
        nodes = [
            replace(n, depends_on=tuple(d for d in n.depends_on if d not in gone))
            for n in self.nodes
            if n.id not in gone
        ]
        kept = (x for x in self.items if not (isinstance(x, NodeLine) and x.id in gone))
        return self._rebuilt([x.without(gone) if isinstance(x, NotedMarks) else x for x in kept], nodes)

    def with_node(self, node: Node) -> Dag:
        """The node of that id replaced, its mark included."""
        self.node(node.id)
        return self._rebuilt(self.items, [node if n.id == node.id else n for n in self.nodes])

    def _rebuilt(self, items: Sequence[Item], nodes: Sequence[Node]) -> Dag:
        nodes = [_clean_node(n) for n in nodes]
        faults, numbers = Faults(), line_numbers(items, len(nodes))
        plan = checked([Placed(n, numbers[n.id], write_node(n, self.lang)) for n in nodes], self.lang, faults)
        if not nodes:
            faults.add(1, "no node; a plan has at least one")
        if faults.errors:
            raise DagError(faults.listing())
        return replace(self, nodes=tuple(plan), items=tuple(_with_synth(items, plan)))

    # -- questions ----------------------------------------------------------------------------------------------------

    @cached_property
    def by_id(self) -> Mapping[str, Node]:
        return {n.id: n for n in self.nodes}

    @property
    def ids(self) -> list[str]:
        return [n.id for n in self.nodes]

    def node(self, node_id: str) -> Node:
        """UsageError if there is none."""
        if (node := self.by_id.get(node_id)) is None:
            known = some(self.by_id)
            raise UsageError(f"find node {node_id!r} in the plan", "there is no such node", f"nodes: {known}")
        return node

    @property
    def last_synth(self) -> Node:
        """The node that waits for all others."""
        return next(n for n in reversed(self.nodes) if n.type is NodeType.SYNTH)

    @property
    def work_nodes(self) -> tuple[Node, ...]:
        """All but SYNTH: the nodes that are counted and that subagents run."""
        return tuple(n for n in self.nodes if n.type is not NodeType.SYNTH)

    def topological(self) -> list[str]:
        """All ids, dependencies first; among those that are free, in file order."""
        return [self.nodes[i].id for i in order_of(self.nodes)]

    def descendants(self, node_id: str) -> list[str]:
        """Ids of all nodes, SYNTH included, that wait for this one, directly or not; in file order."""
        found = descendants_of(self._children, self.node(node_id).id)
        return [n.id for n in self.nodes if n.id in found]

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        return children_of(self.nodes)

    def free_id(self, wanted: str) -> str:
        """`wanted`, or with a number behind it when a node has that name already."""
        return free_id(wanted, self.ids)

    def deepening_heading(self, number: int, why: str) -> str:
        """`深化 1：why` or `Deepening 1: why`, for with_nodes."""
        return _one_line(_DEEPENING[self.lang].format(number=number, why=why))

    def revision_heading(self, number: int, why: str) -> str:
        """`修订 1：why` or `Revision 1: why`: nodes that a replan added."""
        return _one_line(_REVISION[self.lang].format(number=number, why=why))


# -- what a person changed ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DagDiff:
    """What was edited between two versions of a plan. A node's own line, not what follows from it for others."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # id -> names of the Node's fields
    marks: Mapping[str, tuple[State, State]] = field(default_factory=dict)  # id -> (old, new); kept nodes only
    head: tuple[str, ...] = ()  # "title", "root"

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.marks or self.head)


def diff(old: Dag, new: Dag) -> DagDiff:
    """What turns `old` into `new`. Dependencies that the last SYNTH gains or loses by rule are no edit."""
    changed, marks = {}, {}
    for node in new.nodes:
        if (before := old.by_id.get(node.id)) is None:
            continue
        names = [
            k for k in ("type", "sub_question", "source", "expected_outcome") if getattr(before, k) != getattr(node, k)
        ]
        if set(_own_dependencies(old, before)) != set(_own_dependencies(new, node)):
            names.append("depends_on")
        if names:
            changed[node.id] = tuple(names)
        if before.state is not node.state:
            marks[node.id] = (before.state, node.state)
    return DagDiff(
        added=tuple(n.id for n in new.nodes if n.id not in old.by_id),
        removed=tuple(n.id for n in old.nodes if n.id not in new.by_id),
        changed=changed,
        marks=marks,
        head=tuple(k for k in ("title", "root") if getattr(old, k) != getattr(new, k)),
    )


def _own_dependencies(dag: Dag, node: Node) -> Iterator[str]:
    last = node.id == dag.last_synth.id
    return (d for d in node.depends_on if not last or dag.by_id[d].type is NodeType.SYNTH)


def _with_synth(items: Sequence[Item], nodes: Sequence[Node]) -> list[Item]:
    """The items, with a line for a SYNTH that was added to the nodes."""
    result, shown = list(items), [x.id for x in items if isinstance(x, NodeLine)]
    if len(shown) < len(nodes):
        at = max((i for i, x in enumerate(result) if isinstance(x, NodeLine)), default=0)
        result.insert(at + 1, NodeLine(nodes[-1].id))
    return result


def _clean_node(node: Node) -> Node:
    """Texts in the form in which they can be written and read again."""
    return replace(
        node,
        sub_question=clean(node.sub_question),
        depends_on=tuple(node.depends_on),
        source=without_none(clean(node.source)),
        expected_outcome=without_none(clean(node.expected_outcome)),
    )


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())
