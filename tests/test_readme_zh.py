"""README.zh.md shows the commands of README.md: neither may fall behind the other."""

from __future__ import annotations

import re

from command import PROJECT


def commands(name: str) -> list[str]:
    """Command lines of the fenced blocks, without their comments."""
    text = (PROJECT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [re.split(r"\s{2,}#|\s+#\s", line)[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def test_every_command_of_the_english_page_is_on_the_chinese_one() -> None:
    english, chinese = commands("README.md"), commands("README.zh.md")
    assert len(english) > 8
    assert [line for line in english if line not in chinese] == []


def test_both_tables_of_exit_codes_have_the_same_codes() -> None:
    codes = [
        re.findall(r"^\| (\d+) \|", (PROJECT / n).read_text(encoding="utf-8"), re.MULTILINE)
        for n in ("README.md", "README.zh.md")
    ]
    assert codes[0] == codes[1] and codes[0]


def test_every_page_the_chinese_one_links_to_is_there() -> None:
    text = (PROJECT / "README.zh.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert links and [link for link in links if not (PROJECT / link).exists()] == []
