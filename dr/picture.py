"""A plan -> its picture: inline SVG, a box a node, linked to where the page speaks of it. Pure: no file.

State is told by outline shape, colour and mark together; colours are the page's style classes (dr/templates/page.css).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from dr.contract import NodeType, State
from dr.layers import Layout, Link, Size, arrange
from dr.words import say

_SMALL = 120  # nodes from which on a box shows its id and mark only
_LIVELY = 80  # nodes up to which pointing at one brings out its lines
_LINES = 4_000  # at most; further ones are left out, and said to be
_FAINT = 400  # lines from which on they are drawn faintly
_PAD = 14
_NORMAL, _DENSE = Size(196, 66, 36, 16, 10), Size(128, 26, 40, 8, 12)
MARKS = {State.DONE: "✓", State.FAILED: "✕", State.SKIPPED: "–", State.RUNNING: "▸", State.PENDING: "·"}


@dataclass(frozen=True)
class PictureNode:
    """link: id of the element that speaks of the node. round: of the deepening that appended it, 0 for the first plan.
    revision: that added it, 0 for none. revised: its question was changed. removed: no longer in the plan.
    """

    id: str
    type: str
    question: str
    state: State
    depends_on: tuple[str, ...] = ()
    link: str = ""
    round: int = 0
    revision: int = 0
    revised: bool = False
    removed: bool = False
    beside: str = ""  # a removed node stands where this one, which took its place, does


def draw(nodes: Sequence[PictureNode], lang: str) -> str:
    """nodes: in a topological order."""
    kept = _without_implied({n.id: n for n in nodes})
    dense = len(nodes) > _SMALL
    size = _DENSE if dense else _NORMAL
    if len(nodes) > 100:
        column = max(size.column, math.ceil(1.6 * math.sqrt(len(nodes))))
        size = Size(size.width, size.height, size.gap_x, size.gap_y, column)
    layout = arrange(kept, size, {n.id: n.beside for n in nodes if n.beside})
    numbers = {n.id: number for number, n in enumerate(nodes)}
    lively = len(nodes) <= _LIVELY
    lines = [_line(link, numbers if lively else {}) for link in layout.links[:_LINES]]
    boxes = [_box(n, layout.boxes[n.id], size, numbers[n.id], lang, dense=dense) for n in nodes]
    width, height = layout.width + 2 * _PAD, layout.height + 2 * _PAD
    left_out = len(layout.links) - len(lines)
    return "".join(
        [
            f'<svg class="dag" role="group" aria-labelledby="dag-title dag-desc" width="{width:g}" height="{height:g}"'
            f' viewBox="{-_PAD} {-_PAD} {width:g} {height:g}">',
            f'<title id="dag-title">{say(lang, "page_heading_plan")}</title>',
            f'<desc id="dag-desc">{_description(nodes, layout, left_out, lang)}</desc>',
            f"<style>{_pointing(layout, numbers)}</style>" if lively else "",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
            ' orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
            f'<g class="lines{" many" if len(lines) > _FAINT else ""}">{"".join(lines)}</g>',
            *boxes,
            "</svg>",
        ]
    )


def _without_implied(nodes: Mapping[str, PictureNode]) -> dict[str, list[str]]:
    """id -> parents to draw. SYNTH waits for all nodes by rule: only those that nothing else waits for are drawn."""
    waited = {p for n in nodes.values() if n.type != NodeType.SYNTH.value for p in n.depends_on}
    drawn = {}
    for n in nodes.values():
        parents = [p for p in n.depends_on if p in nodes]
        if n.type == NodeType.SYNTH.value:
            parents = [p for p in parents if p not in waited]
        drawn[n.id] = parents
    return drawn


def _description(nodes: Sequence[PictureNode], layout: Layout, left_out: int, lang: str) -> str:
    states = [n.state for n in nodes if not n.removed]
    counts = [f"{say(lang, f'state_{s.value}')} {states.count(s)}" for s in State if s in states]
    text = say(lang, "page_picture_desc", nodes=len(states), counts=say(lang, "comma_list").join(counts))
    return text + (" " + say(lang, "page_picture_left_out", count=left_out) if left_out else "")


# -- lines ------------------------------------------------------------------------------------------------------------


def _line(link: Link, numbers: Mapping[str, int]) -> str:
    (x1, y1), (x2, y2) = link.start, link.end
    if link.straight:
        path = f"M{x1:g} {y1:g}H{x2:g}"
    else:
        half = (x2 - x1) / 2
        path = f"M{x1:g} {y1:g}C{x1 + half:g} {y1:g} {x2 - half:g} {y2:g} {x2:g} {y2:g}"
    names = {f"l{numbers[i]}" for edge in link.edges for i in edge if i in numbers}
    classes = f' class="{" ".join(sorted(names))}"' if names else ""
    arrow = ' marker-end="url(#arrow)"' if link.arrow else ""
    return f'<path{classes} d="{path}"{arrow}/>'


def _pointing(layout: Layout, numbers: Mapping[str, int]) -> str:
    """Style rules: pointing at a box, or reaching it by keyboard, brings out the lines of its edges."""
    with_lines = sorted({numbers[i] for link in layout.links for edge in link.edges for i in edge})
    selectors = [f".dag:has(.b{n}:is(:hover,:focus)) .l{n}" for n in with_lines]
    return ",".join(selectors) + "{stroke:var(--accent);stroke-width:2.2;opacity:1}" if selectors else ""


# -- boxes ------------------------------------------------------------------------------------------------------------


def _box(n: PictureNode, at: tuple[float, float], size: Size, number: int, lang: str, *, dense: bool) -> str:
    state = "removed" if n.removed else n.state.value
    classes = f"box b{number} s-{state}" + (" synth" if n.type == NodeType.SYNTH.value else "")
    tag = _tag(n, lang)
    label = f"{n.id}, {n.type}, {_state_words(n, lang)}{', ' + tag if tag else ''}: {n.question}"
    inner = _small(n, size) if dense else _large(n, size, tag)
    return (
        f'<a class="{classes}" href="#{escape(n.link)}" aria-label="{escape(_shorten(label, 400))}"'
        f' transform="translate({at[0]:g} {at[1]:g})"><title>{escape(_shorten(label, 400))}</title>'
        f"{_outline(n, size)}{inner}</a>"
    )


def _state_words(n: PictureNode, lang: str) -> str:
    return say(lang, "page_removed") if n.removed else say(lang, f"state_{n.state.value}")


def _tag(n: PictureNode, lang: str) -> str:
    if n.removed:
        return ""
    if n.revision:
        return say(lang, "page_tag_added", revision=n.revision)
    if n.round:
        return say(lang, "page_tag_deepening", round=n.round)
    return say(lang, "page_tag_revised") if n.revised else ""


def _outline(n: PictureNode, size: Size) -> str:
    """SYNTH a hexagon; done rounded, running a pill, failed with cut corners, skipped slanted, pending a rectangle."""
    w, h = size.width, size.height
    if n.type == NodeType.SYNTH.value:
        return f'<path class="shape" d="M12 0H{w - 12}L{w} {h / 2:g}L{w - 12} {h}H12L0 {h / 2:g}z"/>'
    if n.state is State.FAILED and not n.removed:
        return f'<path class="shape" d="M10 0H{w - 10}L{w} 10V{h - 10}L{w - 10} {h}H10L0 {h - 10}V10z"/>'
    if n.state is State.SKIPPED and not n.removed:
        return f'<path class="shape" d="M9 0H{w}L{w - 9} {h}H0z"/>'
    radius = {State.DONE: 9, State.RUNNING: min(h / 2, 24)}.get(n.state, 2)
    return f'<rect class="shape" width="{w}" height="{h}" rx="{radius:g}"/>'


def _mark(n: PictureNode, x: float, y: float, r: float) -> str:
    mark = "✕" if n.removed else MARKS[n.state]
    return (
        f'<circle class="dot" cx="{x:g}" cy="{y:g}" r="{r:g}"/><text class="mark" x="{x:g}" y="{y + 4:g}">{mark}</text>'
    )


def _small(n: PictureNode, size: Size) -> str:
    text = f'<text class="id" x="29" y="17.5">{escape(fit(n.id, size.width - 40, 13))}</text>'
    dot = f'<circle class="later {_later(n)}" cx="{size.width - 8}" cy="0" r="4.5"/>' if _later(n) else ""
    return _mark(n, 17, size.height / 2, 7) + text + dot


def _later(n: PictureNode) -> str:
    """Style class of a node that the first plan did not have."""
    return "" if n.removed else "added" if n.revision else "deep" if n.round else ""


def _large(n: PictureNode, size: Size, tag: str) -> str:
    inset = 18
    room = size.width - 2 * inset
    right = size.width - inset
    type_width = text_width(n.type, 9.5) + 8
    parts = [
        _mark(n, inset + 6, 17, 8),
        f'<text class="id" x="{inset + 20}" y="21.5">{escape(fit(n.id, room - 20 - type_width, 13))}</text>',
        f'<text class="type" x="{right}" y="21">{escape(n.type)}</text>',
    ]
    for number, line in enumerate(wrap(n.question, room, 11.5, 2)):
        parts.append(f'<text class="q" x="{inset}" y="{40 + 15 * number}">{escape(line)}</text>')
    if tag:
        width = text_width(tag, 10) + 12
        x = size.width - width - 14
        parts.append(
            f'<g class="tag {_later(n) or "added"}"><rect x="{x:g}" y="-9" width="{width:g}" height="16" rx="8"/>'
            f'<text x="{x + width / 2:g}" y="3">{escape(tag)}</text></g>'
        )
    return "".join(parts)


# -- text of a known width --------------------------------------------------------------------------------------------


def text_width(text: str, font: float) -> float:
    """A careful estimate in pixels: fonts differ, and nothing may stick out of its box."""
    return sum(_em(c) for c in text) * font


def _em(char: str) -> float:
    if unicodedata.east_asian_width(char) in "WF":
        return 1.02
    if unicodedata.combining(char):
        return 0.0
    if char in "ilj.,;:'|!()[] tfrI":
        return 0.38
    return 0.74 if char.isupper() or char in "mwMW@%—" else 0.58


def fit(text: str, room: float, font: float) -> str:
    """`text`, or as much of it as fits with an ellipsis."""
    if text_width(text, font) <= room:
        return text
    return text[: _prefix(text, room - text_width("…", font), font)].rstrip() + "…"


def _prefix(text: str, room: float, font: float) -> int:
    """How many characters fit."""
    at = 0.0
    for number, char in enumerate(text):
        at += _em(char) * font
        if at > room:
            return number
    return len(text)


def wrap(text: str, room: float, font: float, limit: int) -> list[str]:
    """At most `limit` lines, broken at spaces or between CJK characters; the last is cut with an ellipsis."""
    lines: list[str] = []
    rest = " ".join(text[:400].split())
    while rest and len(lines) < limit - 1 and text_width(rest, font) > room:
        cut = max(_prefix(rest, room, font), 1)
        if not any(_is_wide(c) for c in rest[cut - 1 : cut + 1]) and " " in rest[:cut] and rest[cut : cut + 1] != " ":
            cut = rest.rindex(" ", 0, cut)
        lines.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return [*lines, fit(rest, room, font)] if rest else lines


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def legend(nodes: Iterable[PictureNode], lang: str) -> list[tuple[str, str, str]]:
    """(class, mark, words) of the states that occur, in the order of State."""
    listed = list(nodes)
    rows = [
        (s.value, MARKS[s], say(lang, f"state_{s.value}"))
        for s in State
        if any(n.state is s and not n.removed for n in listed)
    ]
    return rows + ([("removed", "✕", say(lang, "page_removed"))] if any(n.removed for n in listed) else [])
