"""The README is true: its file map names every module, its links lead somewhere, its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command import PROJECT, dr

from dr.layout import PACKAGE

README = (PROJECT / "README.md").read_text(encoding="utf-8")
PAGES = ["README.md", "README.zh.md", "CONTRIBUTING.md", "examples/README.md"]


def test_the_file_map_names_every_module_once() -> None:
    listed = re.findall(r"^- `(dr/[\w/]+\.py)`", README, re.MULTILINE)
    there = [str(p.relative_to(PROJECT).as_posix()) for p in PACKAGE.rglob("*.py") if p.name != "__init__.py"]
    assert sorted(listed) == sorted(there)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = PROJECT / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_every_verb_and_flag_in_the_commands_exists(page: str, tmp_path: Path) -> None:
    text = (PROJECT / page).read_text(encoding="utf-8")
    known = dr(tmp_path, "--help").out
    flags = dr(tmp_path, "run", "--help").out
    for line in re.findall(r"^\S*python dr_runner\.py (.+)$", text, re.MULTILINE):
        first = line.split()[0]
        if not first.startswith('"'):
            assert re.search(rf"^ +{re.escape(first)}\b", known, re.MULTILINE), line
        if first.startswith('"') or first == "run":
            for flag in re.findall(r"(?<=\s)--[a-z-]+", line.split("#")[0]):
                assert flag in flags, line


def test_the_first_command_gives_the_answer_it_promises(tmp_path: Path) -> None:
    command = re.search(r'^\.venv/bin/python dr_runner\.py "([^"]+)" --source (\S+)$', README, re.MULTILINE)
    assert command
    done = dr(tmp_path, command[1], "--source", command[2], cwd=PROJECT)
    assert done.code == 0, done.err
    assert "37 days" in done.out
    assert Path(done.out.rstrip().splitlines()[-1]).read_text(encoding="utf-8").startswith("# ")
