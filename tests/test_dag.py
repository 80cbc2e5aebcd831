"""dag.md: what is read, what is written, what survives, and every error."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dr.contract import NodeType, State
from dr.dag import Dag, Node, diff
from dr.errors import DagError, UsageError

CASES = Path(__file__).parent / "data" / "dag"
EXPECTED: dict[str, dict[str, Any]] = json.loads((CASES / "expected.json").read_text(encoding="utf-8"))
MANUAL = Path(__file__).parent.parent / "docs" / "format-dag.md"
GOOD = [name for name, case in EXPECTED.items() if "nodes" in case]
BAD = [name for name, case in EXPECTED.items() if "line" in case]


def case_text(name: str) -> str:
    return (CASES / f"{name}.md").read_text(encoding="utf-8")


def record(node: Node) -> dict[str, Any]:
    return {
        **{"id": node.id, "type": node.type.value, "sub_question": node.sub_question},
        **{"depends_on": list(node.depends_on), "state": node.state.value, "source": node.source},
        "expected_outcome": node.expected_outcome,
    }


def plan(*nodes: str, status: str | None = "", root: str = "q", nodes_heading: str = "## 节点列表") -> str:
    end = "" if status is None else f"\n## 节点状态\n{status}\n"
    return f"# DR: t\nROOT: {root}\n\n{nodes_heading}\n" + "\n".join(nodes) + "\n" + end


def parse(*nodes: str, **kwargs: Any) -> Dag:
    return Dag.parse(plan(*nodes, **kwargs))


def only(line: str) -> Node:
    """The first node of a plan with this one line."""
    return parse(line).nodes[0]


def faults(text: str) -> list[tuple[int, str]]:
    with pytest.raises(DagError) as raised:
        Dag.parse(text)
    return [(e.line, e.message) for e in raised.value.errors]


def assert_stable(dag: Dag) -> None:
    text = dag.render()
    again = Dag.parse(text)
    assert again.render() == text
    assert (again.title, again.root, again.nodes) == (dag.title, dag.root, dag.nodes)


# -- cases and manual -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOOD)
def test_good_case(name: str) -> None:
    dag, case = Dag.parse(case_text(name)), EXPECTED[name]
    assert (dag.title, dag.root) == (case["title"], case["root"])
    assert len(dag.nodes) == len(case["nodes"])
    for node, expected in zip(dag.nodes, case["nodes"], strict=True):
        assert record(node) == {"source": "", "expected_outcome": "", **expected}
    lines = dag.render().split("\n")
    assert [line for line in lines if line in case.get("survives", [])] == case.get("survives", [])
    assert_stable(dag)


@pytest.mark.parametrize("name", BAD)
def test_bad_case_names_the_fault_first(name: str) -> None:
    line, message = faults(case_text(name))[0]
    assert line == EXPECTED[name]["line"]
    assert all(word in message for word in EXPECTED[name]["error_contains"])


def test_canonical_text_is_left_alone() -> None:
    assert Dag.parse(case_text("canonical")).render() == case_text("canonical")


def manual_blocks() -> list[tuple[str, str, str | None]]:
    """(kind, text, the block that says what is expected of it)."""
    blocks = re.findall(r"^```(.+)\n([\s\S]*?)^```$", MANUAL.read_text(encoding="utf-8"), re.MULTILINE)
    following = [*blocks[1:], ("", "")]
    return [
        (kind, text, then if then_kind in ("json", "errors") else None)
        for (kind, text), (then_kind, then) in zip(blocks, following, strict=True)
        if kind.startswith("dag")
    ]


@pytest.mark.parametrize(("kind", "text", "then"), manual_blocks())
def test_manual_example(kind: str, text: str, then: str | None) -> None:
    if kind == "dag errors":
        assert then is not None
        found = faults(text)
        expected = [line.split(" ", 1) for line in then.splitlines()]
        assert [line for line, _ in found] == [int(line) for line, _ in expected]
        assert all(words in message for (_, message), (_, words) in zip(found, expected, strict=True))
        return
    dag = Dag.parse(text)
    assert_stable(dag)
    if kind == "dag canonical":
        assert dag.render() == text
    if then is not None:
        expected_nodes = json.loads(then)
        assert len(dag.nodes) == len(expected_nodes)
        for node, wanted in zip(dag.nodes, expected_nodes, strict=True):
            assert {k: v for k, v in record(node).items() if k in wanted} == wanted


def test_the_manual_has_examples_of_every_kind() -> None:
    assert {kind for kind, _, _ in manual_blocks()} == {"dag", "dag canonical", "dag errors"}


# -- tolerant reading -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written", ["依赖：无", "依赖: none", "依赖：-", "依赖：", "依赖：NONE", "Depends: n/a", "依赖：  "]
)
def test_no_dependency(written: str) -> None:
    assert only(f"- [N1] WEB | 子问题：a | {written}").depends_on == ()
    assert only("- [N1] WEB | 子问题：a").depends_on == ()


@pytest.mark.parametrize("written", ["A,B", "A，B", "A、B", "A B", "A, B", "a ,b", "[A],[B]", "A;B", "A,A,B"])
def test_separators_of_dependencies(written: str) -> None:
    dag = parse("- [A] WEB | 子问题：a", "- [B] WEB | 子问题：b", f"- [C] WEB | 子问题：c | 依赖：{written}")
    assert dag.node("C").depends_on == ("A", "B")


@pytest.mark.parametrize(
    "line",
    [
        "- [N1] WEB | 子问题：a：b | 依赖：无 | 来源：s | 预期：e",
        "* [N1] web | 子问题: a：b | 依赖: 无 | 来源: s | 预期: e",
        "-[N1] WEB-static|子问题：a：b|依赖：无|来源：s|预期：e",
        "  - [ N1 ]  Web | QUESTION: a：b | DEPENDS: none | SOURCE: s | EXPECT: e  ",
        "+ [N1] WEB | question : a：b | depends on : none | url = s | expected outcome: e |",
        "- [N1] WEB | url=s | 预期：e | 子问题：a：b",
        "[N1] WEB | a：b | source: s | expected: e",
        "- [N1] WEB/js | sub_question: a：b | 信息源：s | 预期结果：e",
        "3) [N1] WEB（静态） | 问题：a：b | URL：s | 预期：e",
        "- [N1] WEB 子问题：a：b | 来源：s | 预期：e",
    ],
)
def test_ways_to_write_a_node(line: str) -> None:
    assert only(line) == Node("N1", NodeType.WEB, "a：b", (), State.PENDING, "s", "e")


@pytest.mark.parametrize(
    ("mark", "state"),
    [
        *((m, State.DONE) for m in ("✓", "x", "X", "√", "✔", "✔\ufe0f", "v", "V", " x ")),
        *((m, State.PENDING) for m in ("", " ", "　")),
        *((m, State.FAILED) for m in ("✗", "✘", "×")),
        *((m, State.SKIPPED) for m in ("-", "—")),
        ("~", State.RUNNING),
    ],
)
def test_marks(mark: str, state: State) -> None:
    assert parse("- [N1] WEB | 子问题：a", status=f"N1: [{mark}]").node("N1").state is state


@pytest.mark.parametrize(
    "status",
    [
        "A: [x] B: [~] C: [-]",
        "A：[x]\nB：[~]\nC：[-]",
        "- A: [x]\n* B: [~]\n- C: [-]",
        "A: [x], B: [~]；C: [-]",
        "A:[x]B:[~]\n\nC : [ - ]",
        "- [x] A\n- [~] B\n- [-] C",
        "a: [x] b: [~] c: [-]",
        "| A: [x] | B: [~] | C: [-] |",
    ],
)
def test_ways_to_write_the_marks(status: str) -> None:
    dag = parse(*(f"- [{i}] WEB | 子问题：a" for i in "ABC"), status=status)
    assert [n.state for n in dag.nodes[:3]] == [State.DONE, State.RUNNING, State.SKIPPED]
    assert "A: [✓] B: [~] C: [-] SYNTH: [ ]\n" in dag.render()
    assert_stable(dag)


def test_crlf_and_bom_are_read_and_not_written() -> None:
    text = case_text("grouped-with-log")
    dag = Dag.parse("\ufeff" + text.replace("\n", "\r\n"))
    assert dag == Dag.parse(text)
    assert "\r" not in dag.render()
    assert "\ufeff" not in dag.render()


def test_marks_may_stand_above_the_nodes() -> None:
    text = "# DR: t\nROOT: q\n## Status\nN1: [x]\n## Nodes\n- [N1] WEB | question: a\n"
    dag = Dag.parse(text)
    assert dag.node("N1").state is State.DONE
    assert_stable(dag)


def test_ten_marks_a_line() -> None:
    dag = parse(*(f"- [N{i}] WEB | 子问题：a" for i in range(1, 24)))
    lines = [line for line in dag.render().split("\n") if re.match(r"\w+: \[", line)]
    assert [line.count("[") for line in lines] == [10, 10, 4]


def test_a_file_without_marks_gets_a_status_section() -> None:
    dag = Dag.parse("# DR: t\nROOT: q\n\n## Nodes\n- [N1] WEB | question: a\n\n## Notes\nmine")
    assert dag.render() == (
        "# DR: t\nROOT: q\n\n## Nodes\n- [N1] WEB  | question: a | depends: none\n"
        "- [SYNTH] SYNTH | sum up | depends: N1\n"
        "\n## Status\nN1: [ ] SYNTH: [ ]\n\n## Notes\nmine"
    )
    assert_stable(dag)


def test_a_note_about_a_mark_is_no_lost_status_section() -> None:
    text = "# DR: t\nROOT: q\n\n## Nodes\n- [N1] WEB | question: a\n\n## Notes\nN1: [x] by hand, see mail\n"
    assert Dag.parse(text).node("N1").state is State.PENDING
    assert [line for line, _ in faults(text.replace(" by hand, see mail", ""))] == [8]


def test_the_languages_of_labels_and_headings_may_differ() -> None:
    dag = parse("- [N1] WEB | question: a | depends: none", "- [N2] SYNTH | b | depends: N1", status="")
    assert "- [N1] WEB  | question: a | depends: none" in dag.render()
    assert "## 节点列表" in dag.render()


# -- what is not a node -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "### 第一批",
        "#hashtag",
        "- [ ] 待办",
        "- [x] done already",
        "- [text](https://example.org)",
        "[1]: https://example.org",
        "[注] 这里并行",
        "- [注] 这里并行",
        "- plain",
        "> - [N5] WEB | 子问题：quoted",
        "  indented note | with a bar",
        "\ttab  ",
        "N1: [✓] in the node list",
    ],
)
def test_unowned_line_in_the_node_list(line: str) -> None:
    text = plan("- [N1] WEB  | 子问题：a | 依赖：无", line, "- [N2] SYNTH | b | 依赖：N1", status="N1: [ ] N2: [ ]")
    assert Dag.parse(text).render() == text


@pytest.mark.parametrize(
    "line", ["prose", "图例：[ ] 待办 [~] 运行", "[✓] 表示完成", "", "### N1", "- [x] something else"]
)
def test_unowned_line_in_the_status_section(line: str) -> None:
    text = plan(
        "- [N1] WEB  | 子问题：a | 依赖：无", "- [N2] SYNTH | b | 依赖：N1", status=f"{line}\nN1: [✓] N2: [ ]\n{line}"
    )
    assert Dag.parse(text).render() == text


def test_a_fenced_example_in_a_note_is_no_plan() -> None:
    note = "## Notes\n```\n## Nodes\n- [N9] WEB | question: example\n## Status\nN9: [x]\n```\n"
    dag = Dag.parse(case_text("english") + note)
    assert [n.id for n in dag.nodes] == ["N1", "N2", "N3"]
    assert dag.render().endswith(note)


def test_a_note_behind_a_mark_stays_and_its_mark_is_kept_up_to_date() -> None:
    nodes = ("- [N1] WEB | 子问题：a", "- [N2] WEB | 子问题：b", "- [N3] SYNTH | c")
    dag = parse(*nodes, status="N1: [x] 04:15 完成\nN2: [ ] N3: [ ]")
    assert dag.node("N1").state is State.DONE
    assert "## 节点状态\nN1: [✓] 04:15 完成\nN2: [ ] N3: [ ]\n" in dag.render()
    later = dag.with_states({"N1": State.FAILED})
    assert "\nN1: [✗] 04:15 完成\n" in later.render()
    assert_stable(later)
    assert "\n 04:15 完成\nN2: [ ] N3: [ ]\n" in dag.without(["N1"]).render()
    assert_stable(dag.without(["N1"]))


# -- questions with signs in them -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("A | B：对比", "A | B：对比"),
        ("a|b", "a|b"),
        ("a|依赖：b", "a|依赖：b"),
        (r"a \| 依赖：N9", "a | 依赖：N9"),
        (r"a \| b", "a | b"),
        (r"C:\new\x 和 D:\\y", r"C:\new\x 和 D:\\y"),
        (r"a\\|b", r"a\|b"),
        ("a⏎b", "a\nb"),
        (r"a\⏎b", "a⏎b"),
        ("依赖：没有这个字段", None),
    ],
)
def test_signs_in_a_question(written: str, means: str | None) -> None:
    dag = parse(f"- [N1] WEB | 子问题：{written} | 依赖：无")
    assert dag.nodes[0].sub_question == (written if means is None else means)
    assert_stable(dag)


def test_a_synth_question_that_looks_like_a_field_is_labelled() -> None:
    dag = Dag.new("t", "q", [Node("N1", NodeType.WEB, "a"), Node("S", NodeType.SYNTH, "depends: on what")], "en")
    assert "- [S] SYNTH | question: depends: on what | depends: N1" in dag.render()
    assert_stable(dag)


# -- SYNTH ------------------------------------------------------------------------------------------------------------


def test_synth_is_added_with_a_free_id() -> None:
    dag = parse("- [synth] WEB | 子问题：a", "note", "- [N2] WEB | 子问题：b", "", "a last note")
    assert dag.nodes[-1] == Node("SYNTH2", NodeType.SYNTH, "汇总", ("synth", "N2"))
    lines = dag.render().split("\n")
    assert lines[lines.index("- [SYNTH2] SYNTH | 汇总 | 依赖：synth,N2") + 1 :][:2] == ["", "a last note"]
    assert [n.id for n in dag.work_nodes] == ["synth", "N2"]
    assert_stable(dag)


def test_the_last_synth_gets_what_is_missing_and_loses_nothing() -> None:
    dag = parse(
        *("- [A] WEB | 子问题：a", "- [M] SYNTH | middle | 依赖：A", "- [B] WEB | 子问题：b | 依赖：M"),
        *("- [C] WEB | 子问题：c", "- [Z] SYNTH | 依赖：M，C"),
    )
    assert dag.last_synth.id == "Z"
    assert dag.last_synth.depends_on == ("M", "C", "A", "B")
    assert dag.node("M").depends_on == ("A",)
    assert dag.last_synth.sub_question == "汇总"


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        (["- [N1] WEB | 子问题：a", "- [n1] WEB | 子问题：b"], 6, ["n1", "line 5"]),
        (["- [É] WEB | 子问题：a", "- [E\u0301] WEB | 子问题：b"], 6, ["line 5"]),
        (["- [N1] WIKI | 子问题：a"], 5, ["WIKI", "N1", "WEB, LOCAL"]),
        (["- [N1] | 子问题：a"], 5, ["N1", "expected WEB"]),
        (["- [N1] WEB | 子问题：a | 依赖：N9"], 5, ["N1", "N9"]),
        (["- [N1] WEB | 子问题：a | 依赖：N1"], 5, ["N1", "itself"]),
        (["- [N1] WEB | 子问题：  | 依赖：无"], 5, ["N1", "question"]),
        (["- [N1] WEB"], 5, ["N1", "` | `"]),
        (["- [N1] WEB | 子问题：a | 子问题：b"], 5, ["N1", "two question"]),
        (["- [N1] WEB | 子问题：a | 依赖：无 | 备注：b"], 5, ["备注", "预期"]),
        (["- [a/b] WEB | 子问题：a"], 5, ["letters"]),
        (["- [无] WEB | 子问题：a"], 5, ["无", "none"]),
        (["- [dag.md] WEB | 子问题：a"], 5, ["run file"]),
        (["note", "- [A] WEB | 子问题：a | 依赖：B", "- [B] WEB | 子问题：a | 依赖：A"], 6, ["A -> B -> A"]),
        (["- [A] WEB | 子问题：a", "- [S] SYNTH | s", "- [B] WEB | 子问题：b | 依赖：S"], 7, ["S -> B -> S"]),
    ],
)
def test_fault_of_a_node(lines: list[str], line: int, words: list[str]) -> None:
    found = faults(plan(*lines))
    assert found[0][0] == line
    assert all(word in found[0][1] for word in words)
    assert lines[line - 5] in found[0][1]


@pytest.mark.parametrize("mark", ["N9: [ ]", "- N9: [x]", "N9: [x] with a note", "N1: [ ] N9: [ ]"])
def test_mark_for_an_unknown_node(mark: str) -> None:
    found = faults(plan("- [N1] WEB | 子问题：a", status=mark))
    assert [line for line, _ in found] == [8]
    assert "N9" in found[0][1]
    assert mark in found[0][1]


def test_unknown_mark() -> None:
    assert "[?]" in faults(plan("- [N1] WEB | 子问题：a", status="N1: [?]"))[0][1]


@pytest.mark.parametrize(
    ("cut", "words"),
    [("# DR: t", "# DR:"), ("ROOT: q", "ROOT:"), ("## 节点列表", "## 节点列表"), ("- [N1] WEB | 子问题：a", "no node")],
)
def test_missing_part(cut: str, words: str) -> None:
    text = plan("- [N1] WEB | 子问题：a", status="N1: [ ]")
    assert any(words in message for _, message in faults(text.replace(cut, "")))


def test_every_knot_of_cycles_is_named_once() -> None:
    pairs = [("A", "B"), ("B", "C"), ("C", "B A"), ("D", "A E"), ("E", "D"), ("F", "E"), ("G", "none")]
    found = faults(plan(*(f"- [{i}] WEB | question: q | depends: {d}" for i, d in pairs)))
    assert [line for line, _ in found] == [6, 8]
    assert "B -> C -> B" in found[0][1]
    assert "D -> E -> D" in found[1][1]


def test_a_long_cycle_is_shortened() -> None:
    size = 500
    nodes = (f"- [N{i}] WEB | 子问题：a | 依赖：N{(i + 1) % size}" for i in range(size))
    ((line, message),) = faults(plan(*nodes))
    assert line == 5
    assert "N0 -> N1 -> " in message
    assert message.split(";")[0].endswith("-> N499 -> N0")
    assert len(message) < 300


def test_thousands_of_faults_are_counted() -> None:
    with pytest.raises(DagError) as raised:
        Dag.parse(plan(*(f"- [N{i}] WEBB | 子问题：a | 依赖：X{i}" for i in range(3000))))
    assert len(raised.value.errors) == 26
    assert "5975 more" in raised.value.errors[-1].message
    assert len(str(raised.value)) < 8000


# -- hostile text: an answer, in linear time (the suite's own time limit is the only clock) ----------------------------

BIG = 1_000_000
HOSTILE = {
    "nothing": "",
    "nul": "\0" * BIG,
    "newlines": "\n" * BIG,
    "blanks": plan(" " * BIG),
    "blanks behind a bullet": plan("-" + " " * BIG),
    "brackets": plan("- " + "[" * BIG),
    "bars": plan("- [N1] WEB | a" + " |" * (BIG // 2) + " x | 依赖：Q"),
    "backslashes": plan("- [N1] WEB | a" + "\\" * BIG + " | 依赖：Q"),
    "labels": plan("- [N1] WEB | a" + " | 依赖：b" * (BIG // 6)),
    "long id": plan("- [" + "N" * BIG + "] WEB | 子问题：a"),
    "long type": plan("- [N1] " + "W" * BIG + " | 子问题：a"),
    "word as mark": plan("- [N1] WEB | 子问题：a", status="N2: [ ]" + "a" * BIG + "["),
    "words as marks": plan("- [N1] WEB | 子问题：a", status="N2: [ ]" + "a:" * (BIG // 2) + "["),
    "dots as mark": plan("- [N1] WEB | 子问题：a", status="N2: [ ] ." + ".-" * (BIG // 2) + "["),
    "blanks as mark": plan("- [N1] WEB | 子问题：a", status="N2: [ ] a" + " " * BIG + "["),
    "marks": plan("- [N1] WEB | 子问题：a", status="N9: [ ] " * (BIG // 8)),
    "hashes": "#" * BIG,
    "fences": plan("- [N1] WEB", status="\n## x\n" + "```\n" * (BIG // 4)),
    "nested": plan(*(" " * i + "- [N] x | y" for i in range(1000))),
    "surrogates": plan("- [\ud800] WEB | 子问题：\udfff", root="\ud800"),
    "duplicates": plan(*["- [N1] WEB | 子问题：a"] * 20_000),
    "unknown dependencies": plan(*(f"- [N{i}] WEB | 子问题：a | 依赖：X{i}" for i in range(20_000))),
    "two-cycles": plan(*(f"- [N{i}] WEB | 子问题：a | 依赖：N{i ^ 1}" for i in range(20_000))),
    "chain back to the start": plan(*(f"- [N{i}] WEB | 子问题：a | 依赖：N{i + 1},N0" for i in range(20_000))),
    "chain upwards into a cycle": plan(
        *(f"- [N{i}] WEB | 子问题：a | 依赖：N{(i + 1) % 20_000},N{i // 2}" for i in range(20_000))
    ),
    "too long": plan(*(f"- [N{i}] WEB | 子问题：{'a' * 500}" for i in range(20_000))),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_gives_an_error(name: str) -> None:
    with pytest.raises(DagError) as raised:
        Dag.parse(HOSTILE[name])
    assert 0 < len(raised.value.errors) <= 26
    str(raised.value).encode("utf-8")
    assert len(str(raised.value)) < 12_000


def test_surrogates_and_nuls_in_a_valid_plan_can_be_written() -> None:
    dag = parse("- [N1] WEB | 子问题：a\ud800b\0", root="\udc00?")
    dag.render().encode("utf-8")
    assert dag.nodes[0].sub_question == "a\ufffdb\0"
    assert_stable(dag)


# -- changes ----------------------------------------------------------------------------------------------------------


def small() -> Dag:
    return Dag.parse(case_text("grouped-with-log"))


def test_with_states_changes_marks_only() -> None:
    before = small().render()
    after = small().with_states({"N1": State.SKIPPED, "N3": State.RUNNING}).render()
    assert after == before.replace("N1: [✓] N2: [✗] N3: [ ]", "N1: [-] N2: [✗] N3: [~]")
    with pytest.raises(UsageError, match="N9"):
        small().with_states({"N9": State.DONE})


def test_with_nodes_appends_below_a_heading() -> None:
    dag = small()
    new = Node("N1_yield", NodeType.WEB, "yields\nper step", ("N1",), expected_outcome="a number")
    after = dag.with_nodes([new], dag.deepening_heading(1, "N1 names\na theory"))
    added = "\n### 深化 1：N1 names a theory\n- [N1_yield] WEB  | 子问题：yields⏎per step | 依赖：N1 | 预期：a number\n"
    expected = dag.render().replace("\n\n## 节点状态", f"\n{added}\n## 节点状态", 1)
    expected = expected.replace("依赖：N1,N2\n", "依赖：N1,N2,N1_yield\n").replace(
        "N3: [ ]\n", "N3: [ ] N1_yield: [ ]\n"
    )
    assert after.render() == expected
    assert after.last_synth.depends_on == ("N1", "N2", "N1_yield")
    assert_stable(after)
    twice = after.with_nodes([Node("N2_x", NodeType.LOCAL, "x")], after.deepening_heading(2, "y"))
    assert twice.render().index("### 深化 1") < twice.render().index("### 深化 2") < twice.render().index("## 节点状态")
    assert Dag.parse(case_text("english")).deepening_heading(3, "z") == "Deepening 3: z"


def test_with_nodes_without_a_heading() -> None:
    after = small().with_nodes([Node("N4", NodeType.CODE, "x")])
    assert "\n- [N3] SYNTH | 汇总 | 依赖：N1,N2,N4\n- [N4] CODE | 子问题：x | 依赖：无\n\n## 节点状态" in after.render()
    assert_stable(after)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (Node("n1", NodeType.WEB, "x"), "already"),
        (Node("N4", NodeType.WEB, " \n"), "question"),
        (Node("N4", NodeType.WEB, "x", ("N8",)), "N8"),
        (Node("N4", NodeType.WEB, "x", ("N3",)), "last SYNTH"),
        (Node("../x", NodeType.WEB, "x"), "letters"),
    ],
)
def test_with_nodes_refuses_what_the_file_could_not_say(node: Node, words: str) -> None:
    with pytest.raises(DagError, match=words) as raised:
        small().with_nodes([node])
    assert raised.value.errors[0].line == 13


def test_without_takes_lines_marks_and_dependencies() -> None:
    dag = parse(
        "- [A] WEB | 子问题：a", "- [B] WEB | 子问题：b | 依赖：A", "- [S] SYNTH | s", status="A: [x] B: [ ] S: [ ]"
    )
    after = dag.without(["A"])
    assert after.node("B").depends_on == ()
    assert after.last_synth.depends_on == ("B",)
    assert "\nB: [ ] S: [ ]\n" in after.render()
    assert_stable(after)
    assert after.without(["S"]).last_synth.id == "SYNTH"
    with pytest.raises(DagError, match="no node"):
        dag.without(["A", "B", "S"])


def test_with_node_replaces_the_line() -> None:
    after = small().with_node(Node("N2", NodeType.MEMORY, "other", ("N1",), State.RUNNING))
    assert "\n- [N2] MEMORY | 子问题：other | 依赖：N1\n" in after.render()
    assert "N2: [~]" in after.render()
    with pytest.raises(UsageError, match="N9"):
        small().with_node(Node("N9", NodeType.WEB, "x"))


def test_order_and_descendants() -> None:
    pairs = [("A", "D"), ("B", "none"), ("C", "B"), ("D", "none"), ("E", "A, C")]
    dag = parse(*(f"- [{i}] WEB | question: q | depends: {d}" for i, d in pairs))
    assert dag.topological() == ["B", "C", "D", "A", "E", "SYNTH"]
    assert dag.descendants("D") == ["A", "E", "SYNTH"]
    assert dag.descendants("SYNTH") == []
    with pytest.raises(UsageError, match="Q"):
        dag.descendants("Q")


def test_new_documents() -> None:
    nodes = [Node("N1", NodeType.WEB, "a"), Node("N2", NodeType.LOCAL, "b", ("N1",), source="x; y")]
    assert Dag.new("two\nlines", "one?\ntwo?", nodes, "zh").render() == (
        "# DR: two lines\nROOT: one?⏎two?\n\n## 节点列表\n- [N1] WEB  | 子问题：a | 依赖：无\n"
        "- [N2] LOCAL | 子问题：b | 依赖：N1 | 来源：x; y\n- [SYNTH] SYNTH | 汇总 | 依赖：N1,N2\n"
        "\n## 节点状态\nN1: [ ] N2: [ ] SYNTH: [ ]\n"
    )
    english = Dag.new("", "one?\ntwo?", nodes, "en")
    assert english.title == "one? two?"
    assert "## Nodes\n- [N1] WEB  | question: a | depends: none\n" in english.render()
    for bad in ([], [Node("N1", NodeType.WEB, "")]):
        with pytest.raises(DagError):
            Dag.new("t", "q", bad, "en")
    with pytest.raises(UsageError, match="question"):
        Dag.new("t", " ", nodes, "en")


def test_free_id() -> None:
    assert small().free_id("N1_x") == "N1_x"
    assert small().free_id("n1") == "n12"


# -- what a person changed --------------------------------------------------------------------------------------------


def test_diff_of_a_rewrite_is_empty() -> None:
    assert not diff(small(), Dag.parse(small().render()))


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("N1: [✓]", "N1: [ ]", {"marks": {"N1": (State.DONE, State.PENDING)}}),
        ("recovery rates", "rates", {"changed": {"N1": ("sub_question",)}}),
        ("docs/audit 2023.pdf", "docs/b.pdf", {"changed": {"N2": ("source",)}}),
        ("LOCAL", "MEMORY", {"changed": {"N2": ("type",)}}),
        ("cost | 依赖：无", "cost | 依赖：N1", {"changed": {"N2": ("depends_on",)}}),
        ("2023.pdf", "2023.pdf | 预期：x", {"changed": {"N2": ("expected_outcome",)}}),
        ("依赖：N1，N2", "依赖：N2", {}),
        ("### 第二批", "### 二\nnote", {}),
        ("\n### 第二批", "- [N4] CODE | 子问题：x\n### 第二批", {"added": ("N4",)}),
        ("ROOT: Which", "ROOT: What", {"head": ("root",)}),
    ],
)
def test_diff(old: str, new: str, found: dict[str, Any]) -> None:
    text = case_text("grouped-with-log")
    assert old in text
    edits = diff(small(), Dag.parse(text.replace(old, new)))
    empty = {"added": (), "removed": (), "changed": {}, "marks": {}, "head": ()}
    assert {k: getattr(edits, k) for k in empty} == {**empty, **found}
    assert bool(edits) is bool(found)


def test_diff_of_a_removed_node() -> None:
    text = re.sub(r"- \[N2\].*\n", "", case_text("grouped-with-log")).replace("N2: [✗] ", "").replace("N1，N2", "N1")
    edits = diff(small(), Dag.parse(text))
    assert edits.removed == ("N2",)
    assert not edits.changed


# -- properties -------------------------------------------------------------------------------------------------------

quiet = settings(deadline=None, database=None)  # no clock, no files

pieces = [
    "a",
    "问",
    " ",
    "|",
    " | ",
    "\\",
    "⏎",
    "\n",
    "：",
    ":",
    "依赖：",
    "depends:",
    "source: ",
    "url=",
    "[x]",
    "N1: [ ]",
]
texts = st.one_of(st.text(), st.lists(st.sampled_from(pieces)).map("".join))


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    count = draw(st.integers(1, 12))
    nodes = []
    for i in range(count):
        parents = draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else []
        node = Node(
            id=f"N{i}",
            type=draw(st.sampled_from([t for t in NodeType if t is not NodeType.SYNTH])),
            sub_question="x" + draw(texts) if draw(st.booleans()) else draw(texts.filter(lambda t: bool(t.strip()))),
            depends_on=tuple(f"N{p}" for p in parents),
            state=draw(st.sampled_from(State)),
            source=draw(texts),
            expected_outcome=draw(texts),
        )
        nodes.append(node)
    synth = Node("S", NodeType.SYNTH, draw(texts), state=draw(st.sampled_from(State)))
    nodes = draw(st.permutations([*nodes, synth])) if draw(st.booleans()) else nodes
    root = draw(texts.filter(lambda t: bool(t.strip())))
    return Dag.new(draw(texts), root, nodes, draw(st.sampled_from(["zh", "en"])))


@quiet
@given(dags())
def test_whatever_a_plan_says_survives_the_text(dag: Dag) -> None:
    text = dag.render()
    again = Dag.parse(text)
    assert again == dag
    assert again.render() == text
    assert Dag.parse(text.replace("\n", "\r\n")) == dag


unowned = st.one_of(
    st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=30).map("note ".__add__),
    st.sampled_from(
        ["", "  ", "### 深化", "- item", "\t- [ ] todo", "> quote", "| table |", "- [link](x)", "#tag", "\u2028"]
    ),
)


@quiet
@given(dags(), st.data())
def test_unowned_lines_stay_in_place(dag: Dag, data: st.DataObject) -> None:
    lines = dag.render().split("\n")
    for _ in range(data.draw(st.integers(1, 8))):
        marks = {i + 1 for i, line in enumerate(lines) if re.match(r"\w+: \[.\]", line)}  # marks move together
        free = [i for i in range(len(lines) + 1) if i not in marks]
        lines.insert(data.draw(st.sampled_from(free)), data.draw(unowned))
    text = "\n".join(lines)
    again = Dag.parse(text)
    assert again.nodes == dag.nodes
    assert again.render() == text


@quiet
@given(st.lists(st.sampled_from([*pieces, "- [N1] WEB", "# DR: ", "ROOT: ", "## Nodes", "## Status", "N1", "\n"])))
def test_any_text_is_a_plan_or_a_list_of_faults(parts: list[str]) -> None:
    text = "".join(parts)
    for candidate in (text, plan("- [N1] WEB | question: a", text, status=text)):
        try:
            dag = Dag.parse(candidate)
        except DagError as error:
            assert error.errors
        else:
            assert_stable(dag)


@quiet
@given(dags(), st.lists(st.tuples(texts, st.booleans()), min_size=1, max_size=3))
def test_appended_nodes_survive_the_text(dag: Dag, new: list[tuple[str, bool]]) -> None:
    for number, (question, headed) in enumerate(new):
        node = Node(dag.free_id("N0_more"), NodeType.WEB, question + "?", ("N0",))
        dag = dag.with_nodes([node], dag.deepening_heading(number, question) if headed else None)
        assert Dag.parse(dag.render()) == dag
    assert Dag.parse(dag.without(["N0_more"]).render()).ids == dag.without(["N0_more"]).ids
