"""dr/picture.py, dr/layers.py: every node has a box, no line runs through one, text stays inside."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dr.contract import State
from dr.layers import Layout, Size, arrange
from dr.picture import MARKS, PictureNode, draw, fit, legend, text_width, wrap

SIZE = Size(100, 40, 30, 12, 6)


def node(i: str, *parents: str, state: State = State.DONE, type: str = "WEB", **more: object) -> PictureNode:
    return PictureNode(i, type, f"What about {i}?", state, parents, f"node-{i}", **more)  # type: ignore[arg-type]


def boxes_overlap(layout: Layout, size: Size) -> list[tuple[str, str]]:
    placed = sorted(layout.boxes.items(), key=lambda item: item[1])
    return [
        (a, b)
        for n, (a, (x, y)) in enumerate(placed)
        for b, (u, v) in placed[n + 1 :]
        if abs(x - u) < size.width and abs(y - v) < size.height
    ]


def crossed_boxes(layout: Layout, size: Size) -> list[tuple[str, tuple[float, float]]]:
    """Boxes that a line enters, sampled along each curve."""
    found = []
    for link in layout.links:
        (x1, y1), (x2, y2) = link.start, link.end
        for step in range(1, 20):
            t = step / 20
            bend = t * t * (3 - 2 * t)
            x, y = x1 + (x2 - x1) * (1.5 * t * (1 - t) * (1 - t) + 1.5 * t * t * (1 - t) + t**3), y1 + (y2 - y1) * bend
            for i, (left, top) in layout.boxes.items():
                if left + 0.5 < x < left + size.width - 0.5 and top + 0.5 < y < top + size.height - 0.5:
                    found.append((i, (x, y)))
    return found


dags = st.lists(st.sets(st.integers(0, 30), max_size=4), min_size=1, max_size=30).map(
    lambda rows: {f"n{i}": [f"n{p}" for p in sorted(row) if p < i] for i, row in enumerate(rows)}
)


@settings(max_examples=60, deadline=None)
@given(dags)
def test_layers_run_from_left_to_right_and_no_line_enters_a_box(parents: dict[str, list[str]]) -> None:
    layout = arrange(parents, SIZE)
    assert set(layout.boxes) == set(parents)
    assert boxes_overlap(layout, SIZE) == []
    assert crossed_boxes(layout, SIZE) == []
    for child, of_child in parents.items():
        for parent in of_child:
            assert layout.boxes[parent][0] + SIZE.width < layout.boxes[child][0]
    for x, y in layout.boxes.values():
        assert 0 <= x <= layout.width - SIZE.width and 0 <= y <= layout.height - SIZE.height + 0.2


@settings(max_examples=30, deadline=None)
@given(dags)
def test_every_edge_is_drawn_from_its_source_to_its_target(parents: dict[str, list[str]]) -> None:
    layout = arrange(parents, SIZE)
    for child, of_child in parents.items():
        for parent in of_child:
            links = [link for link in layout.links if (parent, child) in link.edges]
            reached = {(layout.boxes[parent][0] + SIZE.width, round(layout.boxes[parent][1] + 20, 1))}
            while True:
                on = {(x, round(y, 1)) for x, y in (link.end for link in links if _at(link.start) in reached)}
                if on <= reached:
                    break
                reached |= on
            assert _at((layout.boxes[child][0], layout.boxes[child][1] + 20)) in reached


def _at(point: tuple[float, float]) -> tuple[float, float]:
    return point[0], round(point[1], 1)


def test_a_wide_layer_becomes_several_columns() -> None:
    layout = arrange({f"n{i}": [] for i in range(14)}, SIZE)
    columns = [x for x, _ in layout.boxes.values()]
    assert sorted(columns.count(x) for x in set(columns)) == [4, 5, 5]


def test_order_avoids_crossings() -> None:
    layout = arrange({"a": [], "b": [], "c": ["b"], "d": ["a"]}, SIZE)
    a, b, c, d = (layout.boxes[i][1] for i in "abcd")
    assert (a < b) == (d < c)


def test_a_box_that_left_the_plan_stands_behind_its_successor() -> None:
    layout = arrange({"a": [], "x": ["a"], "y": ["a"], "z": ["a"], "old": []}, SIZE, {"old": "y"})
    assert layout.boxes["old"][0] == layout.boxes["y"][0]
    below = sorted(layout.boxes[i][1] for i in "xyz" if layout.boxes[i][1] > layout.boxes["y"][1])
    assert all(layout.boxes["y"][1] < layout.boxes["old"][1] < y for y in below)


def parse(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def test_every_node_is_a_link_with_its_state_in_words_shape_and_mark() -> None:
    nodes = [node(s.value, state=s) for s in State] + [node("S", *(s.value for s in State), type="SYNTH")]
    root = parse(draw(nodes, "en"))
    links = {a.get("href"): a for a in root.iter("a")}
    assert set(links) == {f"#{n.link}" for n in nodes}
    outlines = set()
    for n in nodes[:-1]:
        a = links[f"#{n.link}"]
        assert f"s-{n.state.value}" in str(a.get("class")).split()
        assert str(a.get("aria-label")).startswith(f"{n.id}, WEB, ")
        shape = next(e for e in a if e.get("class") == "shape")
        outlines.add((shape.tag, shape.get("d"), shape.get("rx")))
        assert [e.text for e in a.iter("text") if e.get("class") == "mark"] == [MARKS[n.state]]
    assert len(outlines) == len(set(MARKS.values())) == len(State)


def test_the_picture_says_what_it_shows() -> None:
    root = parse(draw([node("A"), node("B", "A", state=State.FAILED)], "en"))
    titles = {e.get("id"): e.text for e in root if e.tag in ("title", "desc")}
    assert root.get("aria-labelledby") == "dag-title dag-desc"
    assert titles["dag-title"] == "Plan"
    assert "Nodes: 2; done 1, failed 1." in str(titles["dag-desc"])


def test_synth_is_drawn_behind_those_that_nothing_else_waits_for() -> None:
    svg = draw([node("A"), node("B", "A"), node("C"), node("S", "A", "B", "C", type="SYNTH")], "en")
    lines = next(e for e in parse(svg).iter("g") if e.get("class") == "lines")
    assert sorted(str(p.get("class")) for p in lines if p.get("marker-end")) == ["l0 l1", "l1 l3", "l2 l3"]


def test_text_that_is_markup_is_escaped() -> None:
    hostile = '"><script>alert(1)</script></svg>'
    svg = draw([PictureNode("N1", "WEB", hostile, State.DONE, (), 'x" onload="y')], "zh")
    root = parse(svg)
    assert "<script" not in svg
    assert not any("onload" in e.attrib for e in root.iter())


@pytest.mark.parametrize("count", [130, 1000])
def test_many_nodes_get_a_simple_picture(count: int) -> None:
    nodes = [node(f"N{n}", *([f"N{n // 3}"] if n else [])) for n in range(count)]
    svg = draw(nodes, "en")
    assert len(list(parse(svg).iter("a"))) == count
    assert len(svg) < 900 * count


@given(st.text(max_size=300), st.sampled_from([60.0, 150.0]))
def test_text_stays_within_its_room(text: str, room: float) -> None:
    assert text_width(fit(text, room, 12), 12) <= room or fit(text, room, 12) == "…"
    lines = wrap(text, room, 12, 2)
    assert len(lines) <= 2
    assert all(text_width(line, 12) <= room for line in lines)


def test_words_are_kept_whole_and_nothing_is_lost_but_the_end() -> None:
    assert wrap("the yearly output of the plant", 100, 12, 3) == ["the yearly", "output of the", "plant"]
    assert wrap("热泵站供热量是多少", 62, 12, 2) == ["热泵站供热", "量是多少"]
    assert wrap("", 62, 12, 2) == []


def test_the_legend_names_what_occurs() -> None:
    nodes = [node("A"), node("B", state=State.FAILED), node("C", state=State.SKIPPED, removed=True)]
    assert [name for name, _, _ in legend(nodes, "zh")] == ["done", "failed", "removed"]
