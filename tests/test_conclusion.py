"""dr/conclusion.py and dr/source_lines.py: reading and writing of a conclusion's parts; docs/format-conclusion.md."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dr.conclusion import SourceLine, parse, reservations, short_form, source_line
from dr.contract import Context, Passage, split_sources
from dr.output import extract
from dr.source_lines import parse_sources

steady = settings(deadline=None, derandomize=True)
PAGE = (Path(__file__).parent.parent / "docs" / "format-conclusion.md").read_text(encoding="utf-8")


def one(place: str, quote: str = "", citation_id: str | None = None, **locator: int | str) -> list[SourceLine]:
    return [SourceLine(place, locator, quote, citation_id)]


# -- source lines -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('来源：https://a.b/c, p. 3 — "q one" [local-1]', one("https://a.b/c", "q one", "[local-1]", page=3)),
        ('来源：/data/my file, v2.pdf — "q"', one("/data/my file, v2.pdf", "q")),
        (
            "来源: docs/a.pdf, pp. 12-13, § 3.1, Results - “q”",
            one("docs/a.pdf", "q", page="12-13", section="3.1, Results"),
        ),
        ('Source: C:\\data\\x y.md, L12 - "q" [local-1]', one("C:\\data\\x y.md", "q", "[local-1]", line=12)),
        ('来源：a.txt — "he said "hi"; then left" [local-1]', one("a.txt", 'he said "hi"; then left', "[local-1]")),
        ('来源：a.txt — "A — "B" C" [local-1]', one("a.txt", 'A — "B" C', "[local-1]")),
        ('来源：a.txt — "never closed', one("a.txt", "never closed")),
        ("- 来源：《手册》第14页 —「写放大为3.2」", one("《手册》", "写放大为3.2", page=14)),
        ("**来源**：`docs/a.md`，第 7 行：“q”", one("docs/a.md", "q", line=7)),
        ("来源：notes/热泵 报告，终稿.txt, L7 — “q”", one("notes/热泵 报告，终稿.txt", "q", line=7)),
        ('来源：[Title](https://a.b/c) (p. 4): "q"', one("https://a.b/c", "q", page=4)),
        ('来源：国家统计局 https://a.b/c, accessed 2024 — "q"', one("https://a.b/c", "q")),
        ('来源：https://en.wikipedia.org/wiki/A_(b) — "q"', one("https://en.wikipedia.org/wiki/A_(b)", "q")),
        ("来源：docs/a.pdf 第3页 — 写放大为3.2", one("docs/a.pdf", page=3)),
        ("来源：docs/Annual report — 2024.pdf", one("docs/Annual report — 2024.pdf")),
        ("来源：/a/b.txt [local-2]", one("/a/b.txt", "", "[local-2]")),
        ("来源：https://a.b/1；https://a.b/2", [*one("https://a.b/1"), *one("https://a.b/2")]),
        ("Sources: https://a.b/1, https://a.b/2", [*one("https://a.b/1"), *one("https://a.b/2")]),
        (
            '来源：https://a.b/x（第3页）— "abc"; https://c.d/y — "def" [web-2]',
            [*one("https://a.b/x", "abc", page=3), *one("https://c.d/y", "def", "[web-2]")],
        ),
        (
            'Sources: a.txt — "x" [local-1] b.txt — "y" [local-2]',
            [*one("a.txt", "x", "[local-1]"), *one("b.txt", "y", "[local-2]")],
        ),
        (
            '## 来源\n\n1. https://a — "x"\n2. docs/b.pdf, p. 2\n\nMore text.',
            [*one("https://a", "x"), *one("docs/b.pdf", page=2)],
        ),
        ("来源：\n- https://a\n- https://b", [*one("https://a"), *one("https://b")]),
        ("It is 3.2（来源：https://x.y/z 第3页）.", one("https://x.y/z", page=3)),
        ('来源：<URL or path>, p. N — "<verbatim quote>"', []),
        ('来源：<URL 或路径>, p. <页码> — "<原文引句>"', []),
        ("来源：", []),
        ("The source: nobody knows.", []),
    ],
)
def test_source_lines_as_written_by_models(line: str, expected: list[SourceLine]) -> None:
    assert parse_sources(line) == expected


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (SourceLine("docs/a.pdf", {"page": 3}, "q", "[local-1]"), '来源：docs/a.pdf, p. 3 — "q" [local-1]'),
        (SourceLine("a", {"page": "3-4", "line": 2, "section": "R"}), "来源：a, p. 3-4, L2, § R"),
        (SourceLine("C:\\x\\y", {}, 'a "b" c\\'), '来源：C:\\x\\y — "a \\"b\\" c\\\\"'),
        (SourceLine("report, p. 3", {}, "q"), '来源：<report, p. 3> — "q"'),
        (SourceLine("a;  b > c".replace("  ", " ")), "来源：<a; b \\> c>"),
    ],
)
def test_canonical_source_line(source: SourceLine, line: str) -> None:
    assert source_line(**asdict(source)) == line
    assert parse(line).sources == [source]


def test_white_space_becomes_single_spaces() -> None:
    line = source_line("my\n file", {"section": " a\tb "}, "two\nlines  here ")
    assert parse(line).sources == [SourceLine("my file", {"section": "a b"}, "two lines here")]


_PIECES = st.sampled_from(
    [
        *(
            "a",
            "Report",
            "手册",
            " ",
            '"',
            "\\",
            "—",
            "-",
            ",",
            "，",
            "；",
            "; ",
            ", p. 3",
            "§",
            ", § x",
            ' — "',
            '" [web-1]',
        ),
        *(
            "[local-1]",
            "http://a",
            "https://b.c/d",
            "<",
            ">",
            ".pdf",
            "C:\\x",
            "“",
            "”",
            "「",
            "(",
            ")",
            "L12",
            " 第3页",
        ),
        *("来源：", "`", "**", "?", "。", "\n", "<URL or path>", "线索："),
    ]
)
_LINES = (st.lists(_PIECES, max_size=8).map("".join) | st.text(max_size=12)).map(lambda text: " ".join(text.split()))
_LOCATORS = st.fixed_dictionaries(
    {},
    optional={
        "page": st.integers(1, 9999) | st.sampled_from(["3-4", "12–13", "iv"]),
        "line": st.integers(1, 9999),
        "section": _LINES.filter(bool),
    },
)


@steady
@given(_LINES.filter(bool), _LOCATORS, _LINES, st.none() | st.sampled_from(["[local-1]", "[web-12]", "[mem-3]"]))
def test_what_is_written_is_read(place: str, locator: dict[str, Any], quote: str, citation_id: str | None) -> None:
    line = source_line(place, locator, quote, citation_id)
    assert "\n" not in line
    assert parse(f"[结论] A. B.\n\n{line}\n{line}").sources == [SourceLine(place, locator, quote, citation_id)] * 2


# -- parts ------------------------------------------------------------------------------------------------------------

CHINESE = (
    "[结论] 该索引在 2021 年引入 [local-1]。写入放大约为 3.2 倍[local-2]。\n\n含义：写多读少时应关闭它。\n\n"
    '线索：预写日志；分层压缩\n来源：docs/手册.pdf, p. 14 — "写入放大约为 3.2 倍" [local-2]\n'
)


NOTED = '[结论] The tank holds 40 litres [local-1].\n\n{note}\n\n来源：/t.txt — "The tank holds 40 litres" [local-1]'


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("Note: The passages do not mention: cost.", ["The passages do not mention: cost."]),
        ("注：未能读取：a.pdf。", ["未能读取：a.pdf。"]),
        ("Note: one.\n\n注：二。", ["one.", "二。"]),
        ("Note: this stands\non two lines.", ["this stands on two lines."]),
    ],
)
def test_notes_are_no_part_of_what_is_said(note: str, expected: list[str]) -> None:
    text = NOTED.format(note=note)
    parts = parse(text)
    assert parts.notes == expected
    assert parts.body == "The tank holds 40 litres [local-1]." and len(parts.sources) == 1
    assert short_form(text) == "The tank holds 40 litres."


@pytest.mark.parametrize(
    "paragraph", ["Note: mind the gap [local-1].", "Notes: many.", "Please note: it leaks.", "注意：漏水。"]
)
def test_what_cites_or_only_looks_alike_is_no_note(paragraph: str) -> None:
    parts = parse(NOTED.format(note=paragraph))
    assert parts.notes == [] and paragraph in parts.body
    assert parse("Note: all there is.").body == "Note: all there is."


def test_parts() -> None:
    parts = parse(CHINESE)
    assert parts.body == "该索引在 2021 年引入 [local-1]。写入放大约为 3.2 倍[local-2]。\n\n含义：写多读少时应关闭它。"
    assert parts.leads == ["预写日志", "分层压缩"]
    assert parts.sources == one("docs/手册.pdf", "写入放大约为 3.2 倍", "[local-2]", page=14)


@pytest.mark.parametrize(
    ("text", "body", "leads"),
    [
        ("", "", []),
        ("plain", "plain", []),
        ("**[结论]** x\nLeads: A; B.\ny", "x\ny", ["A", "B"]),
        ("【结论】：x\n\n- **线索**：A", "x", ["A"]),
        ("**[结论] bold**", "**bold**", []),
        ("Misleads: none. 线索：不在行首", "Misleads: none. 线索：不在行首", []),
        ("线索：；\nx", "x", []),
    ],
)
def test_body_and_leads(text: str, body: str, leads: list[str]) -> None:
    assert (parse(text).body, parse(text).leads) == (body, leads)


@steady
@given(st.lists(_PIECES, max_size=20).map("".join) | st.text())
def test_never_raises(text: str) -> None:
    parse(text)
    assert len(short_form(text)) <= 200
    assert len(short_form(text, 5)) <= 5
    reservations(text, True)
    reservations(text, False)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit", ["来源：", '来源：a — "', '"', "<", "\\", ", p. 3", " — ", "； ", "[local-1]", "（来源：", "\n- ", "```\n"]
)
def test_no_text_takes_long(unit: str) -> None:
    for text in (unit * (100_000 // len(unit)), "来源：" + unit * (100_000 // len(unit))):
        parse(text)
        short_form(text)


# -- short form -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        (CHINESE, 200, "该索引在 2021 年引入。写入放大约为 3.2 倍。含义：写多读少时应关闭它。"),
        (CHINESE, 30, "该索引在 2021 年引入。写入放大约为 3.2 倍。"),
        (CHINESE, 16, "该索引在 2021 年引入。"),
        ("[结论] It is 3.2, says Dr. Li of the U.S. lab. Then more.", 45, "It is 3.2, says Dr. Li of the U.S. lab."),
        ("[结论] One is 3.14. Two (e.g. 4.5) is not.", 30, "One is 3.14."),
        ("A [web-1]. B [web-2, web-3]!\n\nC?", 200, "A. B! C?"),
        ("## Result\n**Bold** words.\n\nLeads: X\n来源：a", 200, "Result Bold words."),
        ("One sentence that is far too long for it", 20, "One sentence that…"),
        ("这是一个很长的句子，它没有句号，而且超过了限制", 15, "这是一个很长的句子…"),
        ("[结论]", 200, ""),
        ('来源：a — "b"', 200, ""),
    ],
)
def test_short_form(text: str, limit: int, expected: str) -> None:
    assert short_form(text, limit) == expected


# -- reservations -----------------------------------------------------------------------------------------------------

SOURCE = '\n\n来源：a.txt — "q" [local-1]'


@pytest.mark.parametrize(
    ("text", "exempt", "expected"),
    [
        (CHINESE, False, []),
        ("[结论] One. Two." + SOURCE, False, []),
        ("One. Two." + SOURCE, False, ["no_marker"]),
        ("[结论] One." + SOURCE, False, ["one_sentence"]),
        ("[结论] It is 3.2, says Dr. Li." + SOURCE, False, ["one_sentence"]),
        ("[结论] One [local-1]." + SOURCE, True, []),
        ("[结论] One." + SOURCE, True, ["one_sentence"]),
        ("[结论] One. Two.", False, ["no_source"]),
        ("[结论] " + "字。" * 250 + SOURCE, False, []),
        ("[结论] " + "字。" * 251 + SOURCE, False, ["over_long"]),
        ("[结论] " + "Word word. " * 150 + SOURCE, False, []),
        ("[结论] " + "Word word. " * 151 + SOURCE, False, ["over_long"]),
        ("[结论] " + "Word word. " * 151 + "[local-1]" + SOURCE, True, []),
        ("Hm", False, ["no_marker", "one_sentence", "no_source"]),
        ('[结论] One. Two.\n\n来源：<URL or path>, p. N — "<verbatim quote>"', False, ["no_source"]),
    ],
)
def test_reservations(text: str, exempt: bool, expected: list[str]) -> None:
    assert reservations(text, exempt) == expected


# -- docs/format-conclusion.md ----------------------------------------------------------------------------------------


def example(kind: str) -> str:
    found = re.findall(rf"(?ms)^```{re.escape(kind)}\n(.*?)^```$", PAGE)
    assert len(found) == 1, kind
    return str(found[0])


def table(heading: str) -> list[str]:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"(?m)^\| (`.+?) \|", section)


def test_documented_context() -> None:
    context = Context.from_dict(json.loads(example("json context")), "context.json")
    assert table("context.json") == [f"`{key}`" for key in context.to_dict()]
    assert split_sources(context.source) == ["docs/manual.pdf", "https://example.org/notes;v=2"]


def test_documented_evidence() -> None:
    record = json.loads(example("json evidence"))
    assert Passage.from_dict(record).to_dict() == record
    assert [key.replace("`", "") for key in table("evidence.jsonl")] == [
        "path or url" if k == "path" else k for k in record
    ]


def test_documented_conclusion() -> None:
    text = example("conclusion").strip()
    found = extract(text + "\n\n[ROUND END]\n")
    assert found.conclusion == text
    parts = parse(text)
    assert json.loads(example("json parts")) == {
        "notes": parts.notes,
        "leads": parts.leads,
        "sources": [asdict(source) for source in parts.sources],
        "short_form": short_form(text, 100),
        "reservations": reservations(text, False),
    }
    assert [source_line(**asdict(source)) for source in parts.sources] == text.split("\n")[-3:]


def test_documented_ways_to_write_a_source() -> None:
    rows = re.findall(r"(?m)^\| `(来源：.*?)` \| `(.*?)` \|$", PAGE)
    assert len(rows) == 3
    for canonical, other in rows:
        assert parse_sources(canonical) == parse_sources(other)
        assert [source_line(**asdict(source)) for source in parse_sources(other)] == [canonical]


def test_documented_verdicts() -> None:
    from dr import output

    known = {output.OK, output.EMPTY, output.MODEL_ERROR, output.ASKED_USER, output.PLACEHOLDER, output.NO_ANSWER}
    assert {verdict.strip("`") for verdict in table("output.txt")} == known
