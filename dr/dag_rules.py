"""The rules of a plan: nodes as read or made in, nodes with resolved dependencies and a complete SYNTH out, or faults.

Pure. Everything here is linear in the size of the plan, also for a hostile one.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from dr.contract import NodeType, State, check_name, fold
from dr.dag_line import Faults, Node, Placed, means_none
from dr.errors import UsageError

_SYNTH_QUESTION = {"zh": "汇总", "en": "sum up"}


def checked(
    placed: Sequence[Placed], lang: str, faults: Faults, states: Mapping[str, State] | None = None
) -> list[Node]:
    """The nodes, dependencies resolved, the last SYNTH completed; whatever breaks a rule is a fault.

    states: by node id, where a node does not hold its state already.
    """
    first: dict[str, Placed] = {}
    for p in placed:
        if (earlier := first.setdefault(fold(p.node.id), p)) is not p:
            faults.add(
                p.line, f"node {p.node.id} stands on line {earlier.line} already; expected an id of its own", p.text
            )
        else:
            _check_id(p, faults)
    ids = {p.node.id: p.node.id for p in first.values()}
    nodes = [_resolved(p, ids, first, lang, faults, states or {}) for p in first.values()]
    lines = [(p.line, p.text) for p in first.values()]
    if left := _on_or_behind_cycles(nodes):
        for cycle in _cycles(nodes, left):
            at = cycle.index(min(cycle))
            names = [nodes[i].id for i in [*cycle[at:], *cycle[:at], cycle[at]]]
            path = " -> ".join(names if len(names) <= 12 else [*names[:8], "…", *names[-3:]])
            faults.add(lines[min(cycle)][0], f"cycle {path}; expected no node to wait for itself", lines[min(cycle)][1])
    elif nodes:
        _complete_synth(nodes, lines, lang, faults)
    return nodes


def _check_id(p: Placed, faults: Faults) -> None:
    try:
        check_name(p.node.id, "node id")
        if means_none(p.node.id):
            faults.add(p.line, f"{p.node.id} cannot be a node id: as a dependency it means none", p.text)
    except UsageError as error:
        faults.add(p.line, f"not a node id; {error.wrong}", p.text)


def _resolved(
    p: Placed,
    ids: Mapping[str, str],
    folded: Mapping[str, Placed],
    lang: str,
    faults: Faults,
    states: Mapping[str, State],
) -> Node:
    """The node with its dependencies as ids of nodes."""
    node = p.node
    depends: dict[str, None] = {}
    for written in node.depends_on:
        target = ids.get(written)
        if target is None and (other := folded.get(fold(written.strip("[]")))) is not None:
            target = other.node.id
        if target is None:
            faults.add(p.line, f"{node.id} depends on {_cut(written)}, which is no node (nodes: {some(ids)})", p.text)
        elif target == node.id:
            faults.add(p.line, f"{node.id} depends on itself; expected the id of another node", p.text)
        else:
            depends[target] = None
    question = node.sub_question
    if not question and node.type is NodeType.SYNTH:
        question = _SYNTH_QUESTION[lang]
    elif not question:
        faults.add(p.line, f"node {node.id} has no question; expected `| 子问题：…` or `| question: …`", p.text)
    state, found = states.get(node.id, node.state), tuple(depends)
    if state is node.state and found == node.depends_on and question == node.sub_question:
        return node
    return Node(node.id, node.type, question, found, state, node.source, node.expected_outcome)


def _complete_synth(nodes: list[Node], lines: Sequence[tuple[int, str]], lang: str, faults: Faults) -> None:
    """The last SYNTH waits for every other work node, besides what it waits for already; a missing one is added."""
    at = next((i for i in reversed(range(len(nodes))) if nodes[i].type is NodeType.SYNTH), None)
    if at is None:
        at = len(nodes)
        nodes.append(Node(free_id("SYNTH", (n.id for n in nodes)), NodeType.SYNTH, _SYNTH_QUESTION[lang]))
    last = nodes[at]
    waited_for = any(last.id in n.depends_on for n in nodes)
    waiting = descendants_of(children_of(nodes), last.id) if waited_for else set()
    for node, (line, text) in zip(nodes, lines, strict=False):
        if node.id in waiting and node.type is not NodeType.SYNTH:
            wrong = f"{node.id} waits for {last.id}, the last SYNTH, which waits for every node"
            faults.add(line, f"{wrong}: {last.id} -> {node.id} -> {last.id}; remove it or add a SYNTH below", text)
    work = (n.id for n in nodes if n.type is not NodeType.SYNTH)
    nodes[at] = replace(last, depends_on=tuple(dict.fromkeys((*last.depends_on, *work))))


# -- graphs ------------------------------------------------------------------------------------------------------------


def children_of(nodes: Iterable[Node]) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for node in nodes:
        for parent in node.depends_on:
            children.setdefault(parent, []).append(node.id)
    return children


def descendants_of(children: Mapping[str, list[str]], node_id: str) -> set[str]:
    found: set[str] = set()
    stack = [node_id]
    while stack:
        new = [c for c in children.get(stack.pop(), ()) if c not in found]
        found.update(new)
        stack += new
    return found


def _on_or_behind_cycles(nodes: Sequence[Node]) -> set[int]:
    index = {n.id: i for i, n in enumerate(nodes)}
    if all(index[d] < i for i, n in enumerate(nodes) for d in n.depends_on):
        return set()  # the usual plan: every node stands below what it depends on
    return set(range(len(nodes))) - set(order_of(nodes))


def order_of(nodes: Sequence[Node]) -> list[int]:
    """Indices, dependencies first, the lowest free index next; those on or behind a cycle are missing."""
    index = {n.id: i for i, n in enumerate(nodes)}
    waits = [len(n.depends_on) for n in nodes]
    children = children_of(nodes)
    free, order = [i for i, count in enumerate(waits) if count == 0], []
    while free:
        order.append(i := heapq.heappop(free))
        for child in children.get(nodes[i].id, ()):
            waits[index[child]] -= 1
            if waits[index[child]] == 0:
                heapq.heappush(free, index[child])
    return order


def _cycles(nodes: Sequence[Node], left: Collection[int]) -> Iterator[list[int]]:
    """Cycles that share no node, at least one of each knot, by depth-first search without recursion."""
    index = {n.id: i for i, n in enumerate(nodes)}
    seen: set[int] = set()
    for root in sorted(left):
        path: list[int] = []
        place: dict[int, int] = {}
        told: list[tuple[int, int]] = []  # the parts of the path that are in a cycle already given
        stack = [] if root in seen else [(root, iter(nodes[root].depends_on))]
        while stack:
            node, rest = stack[-1]
            if node not in place:
                place[node] = len(path)
                path.append(node)
                seen.add(node)
            for parent in (index[d] for d in rest):
                if parent in place:
                    if place[parent] >= (min(told[-1][1], len(path)) if told else 0):
                        told.append((place[parent], len(path)))
                        yield path[place[parent] :]
                elif parent in left and parent not in seen:
                    stack.append((parent, iter(nodes[parent].depends_on)))
                    break
            else:
                stack.pop()
                del place[path.pop()]
                while told and told[-1][0] >= len(path):
                    told.pop()


def free_id(wanted: str, taken: Iterable[str]) -> str:
    folded = {fold(t) for t in taken}
    number, name = 2, wanted
    while fold(name) in folded:
        name, number = f"{wanted}{number}", number + 1
    return name


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def some(ids: Collection[str]) -> str:
    """The first few, for a message."""
    return ", ".join(islice(ids, 8)) + (f", … {len(ids)} in all" if len(ids) > 8 else "")
