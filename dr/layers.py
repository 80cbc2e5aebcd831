"""A DAG -> a layered layout, left to right: a place for every box, and lines that run between boxes, never through one.

Longest-path layers (a tall one is split into columns), barycentre order, least-squares heights. Pure.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

_SWEEPS = 12
_STRAIGHTENING = 8
_LANE = 12  # height that a line takes up in a column it runs through
_BUNDLE = 4  # edges into one node from which on they share a lane; others share one by their source
_MANY = 200  # nodes from which on lines run behind boxes: lanes for them would be most of the picture


@dataclass(frozen=True)
class Size:
    """Of boxes and the gaps between them, in pixels. columns: boxes in one column at most."""

    width: int
    height: int
    gap_x: int
    gap_y: int
    column: int


@dataclass(frozen=True)
class Link:
    """A line between two neighbouring columns, or across one (straight). edges: the (source, target) it serves."""

    start: tuple[float, float]
    end: tuple[float, float]
    edges: tuple[tuple[str, str], ...]
    arrow: bool
    straight: bool = False


@dataclass(frozen=True)
class Layout:
    """boxes: id -> x and y of the upper left corner."""

    boxes: Mapping[str, tuple[float, float]]
    links: tuple[Link, ...]
    width: float
    height: float


_Item = tuple[str, str, int]  # ("box", id, layer), or a line's lane: ("from", source, layer), ("into", target, layer)


def arrange(parents: Mapping[str, Sequence[str]], size: Size, beside: Mapping[str, str] | None = None) -> Layout:
    """parents: id -> the ids it depends on, in a topological order. beside: a box without edges -> whose neighbour."""
    layer = _layers(parents, size.column, beside or {})
    edges = [(p, child) for child, of_child in parents.items() for p in dict.fromkeys(of_child) if p in parents]
    lanes = len(parents) <= _MANY
    chains = {edge: _chain(edge, layer, _bundled(edges)) if lanes else _direct(edge, layer) for edge in edges}
    columns = _columns(parents, layer, chains)
    uses: dict[tuple[_Item, _Item], list[tuple[str, str]]] = defaultdict(list)
    for edge, chain in chains.items():
        for pair in pairwise(chain):
            uses[pair].append(edge)
    up, down = _neighbours(uses)
    columns = [_paired(column, beside or {}) for column in _ordered(columns, up, down)]
    y = _heights(columns, up, down, size)
    x = _lefts(columns, uses, size)
    boxes = {i: (x[layer[i]], y["box", i, layer[i]]) for i in parents}
    width = max((at for at, _ in boxes.values()), default=0.0) + size.width
    height = max((y[item] + _tall(item, size) for column in columns for item in column), default=0.0)
    return Layout(boxes, tuple(_links(uses, x, y, size)), width, height)


def _layers(parents: Mapping[str, Sequence[str]], limit: int, beside: Mapping[str, str]) -> dict[str, int]:
    """Column of each id: behind all its parents; of a layer with more than `limit` boxes, one of several columns."""
    depth: dict[str, int] = {}
    for i, of_child in parents.items():
        depth[i] = max((depth[p] + 1 for p in of_child if p in depth), default=0)
    for i, other in beside.items():
        depth[i] = depth.get(other, 0)
    by_depth: dict[int, list[str]] = defaultdict(list)
    for i in parents:
        by_depth[depth[i]].append(i)
    layer, first = {}, 0
    for _, ids in sorted(by_depth.items()):
        columns = math.ceil(len(ids) / limit)
        per = math.ceil(len(ids) / columns)
        for position, i in enumerate(ids):
            layer[i] = first + position // per
        first += columns
    return layer


def _bundled(edges: Iterable[tuple[str, str]]) -> set[str]:
    count: dict[str, int] = defaultdict(int)
    for _, target in edges:
        count[target] += 1
    return {target for target, number in count.items() if number > _BUNDLE}


def _chain(edge: tuple[str, str], layer: Mapping[str, int], bundled: set[str]) -> list[_Item]:
    """What an edge runs along: its source, a lane in every column between, its target."""
    source, target = edge
    lane = ("into", target) if target in bundled else ("from", source)
    between = [(*lane, column) for column in range(layer[source] + 1, layer[target])]
    return [("box", source, layer[source]), *between, ("box", target, layer[target])]


def _direct(edge: tuple[str, str], layer: Mapping[str, int]) -> list[_Item]:
    return [("box", i, layer[i]) for i in edge]


def _columns(
    ids: Iterable[str], layer: Mapping[str, int], chains: Mapping[tuple[str, str], list[_Item]]
) -> list[list[_Item]]:
    items: dict[_Item, None] = dict.fromkeys(("box", i, layer[i]) for i in ids)
    for chain in chains.values():
        items.update(dict.fromkeys(chain))
    columns: list[list[_Item]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for item in items:
        columns[item[2]].append(item)
    return columns


_Neighbours = dict[_Item, list[_Item]]


def _neighbours(pairs: Iterable[tuple[_Item, _Item]]) -> tuple[_Neighbours, _Neighbours]:
    up: _Neighbours = defaultdict(list)
    down: _Neighbours = defaultdict(list)
    for one, other in pairs:
        down[one].append(other)
        up[other].append(one)
    return up, down


# -- order within the columns -----------------------------------------------------------------------------------------


def _ordered(columns: list[list[_Item]], up: _Neighbours, down: _Neighbours) -> list[list[_Item]]:
    """Sweeps to and fro, each column by the mean place of its neighbours; the one with the fewest crossings counts."""
    best, fewest = columns, _crossings(columns, down)
    current = columns
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        place = {item: position for column in current for position, item in enumerate(column)}
        current = list(current)
        for number in range(len(current)) if forward else reversed(range(len(current))):
            column = sorted(current[number], key=lambda i: _mean((up if forward else down).get(i, ()), place, place[i]))
            current[number] = column
            place.update({item: position for position, item in enumerate(column)})
        crossings = _crossings(current, down)
        if crossings < fewest:
            best, fewest = current, crossings
    return best


def _paired(column: Sequence[_Item], beside: Mapping[str, str]) -> list[_Item]:
    """The column with each box that has a partner right behind it."""
    result = [item for item in column if item[0] != "box" or item[1] not in beside]
    for item in column:
        if item not in result:
            names = [other[1] if other[0] == "box" else "" for other in result]
            at = names.index(beside[item[1]]) + 1 if beside[item[1]] in names else len(result)
            result.insert(at, item)
    return result


def _mean(items: Sequence[_Item], place: Mapping[_Item, float], otherwise: float) -> float:
    return sum(place[i] for i in items) / len(items) if items else otherwise


def _crossings(columns: Sequence[Sequence[_Item]], down: _Neighbours) -> int:
    place = {item: position for column in columns for position, item in enumerate(column)}
    total = 0
    for column in columns:
        ends: list[int] = []  # of the lines so far, sorted
        for item in column:
            own = sorted(place[other] for other in down.get(item, ()))
            total += sum(len(ends) - bisect_right(ends, end) for end in own)
            for end in own:
                insort(ends, end)
    return total


# -- coordinates ------------------------------------------------------------------------------------------------------


def _tall(item: _Item, size: Size) -> float:
    return size.height if item[0] == "box" else _LANE


def _heights(columns: list[list[_Item]], up: _Neighbours, down: _Neighbours, size: Size) -> dict[_Item, float]:
    """Upper edges: every item as near to the middle of its neighbours as order and gaps allow."""
    middle: dict[_Item, float] = {}
    for column in columns:
        middle.update(zip(column, _offsets(column, size), strict=True))
    tallest = max((middle[column[-1]] for column in columns if column), default=0.0)
    for sweep in range(_STRAIGHTENING):
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            wanted = [_mean([*up.get(i, ()), *down.get(i, ())], middle, middle[i]) for i in column]
            middle.update(zip(column, _spaced(column, wanted, tallest, size), strict=True))
    top = min((middle[i] - _tall(i, size) / 2 for column in columns for i in column), default=0.0)
    return {i: round(at - _tall(i, size) / 2 - top, 1) for i, at in middle.items()}


def _offsets(column: Sequence[_Item], size: Size) -> list[float]:
    """Middles of the items of a column that is packed as tight as the gaps allow, the first at 0."""
    offsets, at = [], 0.0
    for number, item in enumerate(column):
        if number:
            before = column[number - 1]
            lanes = (before[0] != "box") + (item[0] != "box")
            gap = (size.gap_y, size.gap_y * 0.75, 2.0)[lanes]
            at += (_tall(before, size) + _tall(item, size)) / 2 + gap
        offsets.append(at)
    return offsets


def _spaced(column: Sequence[_Item], wanted: Sequence[float], tallest: float, size: Size) -> list[float]:
    """The places nearest to the wanted ones that keep the order, the gaps, and the height of the tallest column
    (least squares by pooling adjacent violators)."""
    offsets = _offsets(column, size)
    blocks: list[tuple[float, int]] = []  # mean, members
    for value, offset in zip(wanted, offsets, strict=True):
        mean, members = value - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, count = blocks.pop()
            mean, members = (mean * members + other * count) / (members + count), members + count
        blocks.append((mean, members))
    last = tallest - offsets[-1] if offsets else 0.0
    means = [min(max(mean, 0.0), last) for mean, members in blocks for _ in range(members)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _lefts(columns: Sequence[Sequence[_Item]], pairs: Iterable[tuple[_Item, _Item]], size: Size) -> list[float]:
    """Left edge of each column; the more lines run between two columns, the further they are apart."""
    lines = [0] * (len(columns) + 1)
    for one, _ in pairs:
        lines[one[2]] += 1
    lefts, at = [], 0.0
    for number in range(len(columns)):
        lefts.append(round(at, 1))
        at += size.width + size.gap_x + min(lines[number] * 2, size.gap_x)
    return lefts


def _links(
    uses: Mapping[tuple[_Item, _Item], list[tuple[str, str]]],
    x: Sequence[float],
    y: Mapping[_Item, float],
    size: Size,
) -> Iterable[Link]:
    across: dict[_Item, dict[tuple[str, str], None]] = defaultdict(dict)
    for (one, other), edges in uses.items():
        start = (x[one[2]] + size.width, y[one] + _tall(one, size) / 2)
        end = (x[other[2]], y[other] + _tall(other, size) / 2)
        yield Link(start, end, tuple(edges), arrow=other[0] == "box")
        if other[0] != "box":
            across[other].update(dict.fromkeys(edges))
    for lane, found in across.items():
        at = y[lane] + _LANE / 2
        yield Link((x[lane[2]], at), (x[lane[2]] + size.width, at), tuple(found), arrow=False, straight=True)
