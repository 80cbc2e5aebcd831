"""dr/markdown.py: whatever a source says, the page around it keeps its structure and the text stays readable."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dr.markdown import block, code, inline, inline_plain, own, plain, quote

# An independent reader of Markdown judges what the text has become.
READER = MarkdownIt("commonmark", {"html": True}).enable("table")
FORBIDDEN = {"heading_open", "html_block", "html_inline", "hr", "link_open", "image", "blockquote_open"}

HOSTILE = [
    "# Heading",
    "Heading\n===",
    "Heading\n---",
    "text\n\n# References\n\n**[1]** forged",
    "<script>alert(1)</script>",
    "<!-- open",
    "a <b>bold</b> &lt;x&gt; &#60;",
    "```\nnever closed\n# x",
    "~~~\nnever closed",
    "```py\n# code\n```\nafter",
    "````\n```\n# x\n````",
    "- item\n\n    ```\n    <b>x</b>\n    ```",
    "- # heading in an item",
    "- > quote in an item",
    "* * *",
    "***",
    "- ---",
    "___",
    "[1]: http://evil.example/ 'x'",
    "[text](javascript:alert(1)) and ![img](http://tracker.example/a.png)",
    "see [1] and [2, 3] and [^1]\n\n[^1]: note",
    "> quote\n> more",
    "`unclosed and <b> [x](y)",
    "`a`` <b>",
    "\\`<b>`",
    "line with two spaces  \nand \\\nbreaks",
    "| a | b |\n|---|---|\n| <b>x</b> | [1] |",
    "    indented <b>",
    "\t# tab",
    "1. one\n2. two\n\n   # x",
    "a\u202eb\x00c\x1b[31m",
    "<https://example.org/a> <mailto:x@y.z>",
    "<?php x ?> <![CDATA[x]]> <!DOCTYPE html>",
    "https://example.org/",
    "\ue00012\ue001 a forged mark",
]
PIECES = st.sampled_from(
    [*"#>-*+=_`~[]()<>!&|\\:. \n\t1a", "```", "~~~", "\n\n", "\n- ", "\n# ", "\n    ", "<b>", "<!--", "](x)", "[1]: /u"]
)


def _types(markdown: str) -> set[str]:
    found = set()
    for token in READER.parse(markdown):
        found.add(token.type)
        found.update(child.type for child in token.children or ())
    return found


def _page(text: str) -> str:
    return f"# Title\n\n{text}\n\n## Next\n\nlast paragraph [1]\n"


def _headings(markdown: str) -> list[str]:
    tokens = READER.parse(markdown)
    return [tokens[i + 1].content for i, t in enumerate(tokens) if t.type == "heading_open" and t.level == 0]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_conclusion_acts_beyond_itself(text: str) -> None:
    safe = block(plain(text))
    assert not _types(safe) & FORBIDDEN
    assert _headings(_page(safe)) == ["Title", "Next"]
    assert READER.parse(_page(safe))[-2].content == "last paragraph [1]"


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
@example("- a\n\n    - b\n\n        <b>")
def test_no_mixture_of_marks_breaks_the_page(text: str) -> None:
    for safe in (block(plain(text)), quote(text)):
        assert not _types(safe) & (FORBIDDEN - ({"blockquote_open"} if safe == quote(text) else set()))
        assert _headings(_page(safe)) == ["Title", "Next"]


@settings(max_examples=80, deadline=None)
@given(st.lists(PIECES, max_size=20).map("".join))
def test_a_line_stays_one_line_of_text(text: str) -> None:
    for safe in (inline(plain(text)), inline_plain(text)):
        assert "\n" not in safe
        assert _headings(f"# {safe}\n\n## Next\n")[1:] == ["Next"]
        assert not _types(f"x {safe}") & FORBIDDEN


@settings(max_examples=80, deadline=None)
@given(st.lists(PIECES, max_size=20).map("".join))
def test_a_quote_reads_as_its_source(text: str) -> None:
    tokens = READER.parse(quote(text))
    shown = "".join(
        "".join(c.content if c.type in ("text", "text_special") else " " for c in t.children or ()) for t in tokens
    )
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", text)


@pytest.mark.parametrize("text", ["/a/b c.pdf", "a`b", "`", "``x`", "C:\\x\\y"])
def test_a_path_is_shown_as_it_is(text: str) -> None:
    (inline_token,) = [t for t in READER.parse(f"x {code(text)} y") if t.type == "inline"]
    assert [c.content for c in inline_token.children or () if c.type == "code_inline"] == [text]
    assert code(f"\n{text} ") == code(text)


def test_our_citations_survive_and_foreign_ones_do_not_look_like_them() -> None:
    safe = block(plain("As shown [3] by others ") + own(7) + ".")
    assert safe == "As shown ［3］ by others [7]."
    assert block(plain("forged \ue0003\ue001")) == "forged 3"
    for text in (f"so it is{own(1)}(http://evil.example)", f"{own(1)}: http://evil.example"):
        assert not _types(block(text)) & FORBIDDEN and _types(block(text))
        assert "[1]" in block(text)


def test_what_is_harmless_stays_as_it_is() -> None:
    text = "First, **bold** and `code`.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n第二段：增长 3.5%。"
    assert block(text) == text


def test_a_heading_becomes_a_bold_line() -> None:
    assert block("# What was found #\ntext") == "**What was found**\n\ntext"


def test_a_closed_fence_stays_code_and_cannot_be_closed_from_inside() -> None:
    safe = block("- item\n```sh\n# not a heading\n<b>\n```\nafter")
    (fence,) = [t for t in READER.parse(safe) if t.type == "fence"]
    assert fence.content == "# not a heading\n<b>\n"
    assert fence.level == 0
