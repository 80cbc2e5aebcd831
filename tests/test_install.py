"""`install`: what is written, what is never overwritten, upgrades, and that --uninstall takes out exactly that."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from command import PROJECT, dr

from dr import install, packages
from dr.errors import UsageError
from dr.layout import Root

INDEX = "# [Global Memory Insight]\nL3: subagent | web_setup_sop\n\n[RULES]\n1. 搜索先行\n"


@pytest.fixture
def ga(tmp_path: Path) -> Path:
    """What makes a folder a GenericAgent root, and files of its own that are nobody else's business."""
    root = tmp_path / "ga"
    (root / "memory").mkdir(parents=True)
    for name in ("agentmain.py", "ga.py", "README.md", "pyproject.toml"):
        (root / name).write_text("print('theirs')\n", encoding="utf-8")
    (root / install.INDEX).write_text(INDEX, encoding="utf-8")
    return root


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small version of this program."""
    source = tmp_path / "source"
    for name, text in {
        "dr_runner.py": "one",
        "dr/a.py": "a",
        "dr/b/c.py": "c",
        "dr/__pycache__/a.cpython-311.pyc": "compiled",
        "sop/deep_research_sop.zh.md": "中文 SOP",
        "sop/deep_research_sop.en.md": "English SOP",
        "tests/test_a.py": "test",
        "temp/x": "x",
    }.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    return source


def snapshot(root: Path) -> dict[str, str]:
    return {
        p.relative_to(root).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "folder"
        for p in root.rglob("*")
    }


def run(ga: Path, source: Path, *, index: bool = False, dry_run: bool = False) -> install.Changes:
    return install.install(Root(ga), index=index, dry_run=dry_run, source=source)


def test_copies_the_program_and_puts_the_sop_into_memory(ga: Path, source: Path) -> None:
    before = snapshot(ga)
    changes = run(ga, source)
    new = set(snapshot(ga)) - set(before)
    assert new == {
        *("dr_runner.py", "dr", "dr/a.py", "dr/b", "dr/b/c.py", "sop", install.MANIFEST, install.SOP),
        *("sop/deep_research_sop.zh.md", "sop/deep_research_sop.en.md"),
    }
    assert {n: h for n, h in snapshot(ga).items() if n in before} == before
    assert (ga / install.SOP).read_text(encoding="utf-8") == "中文 SOP"
    assert set(changes.added) == new - {"dr", "dr/b", "sop", install.MANIFEST}
    assert changes.index == "offered"


def test_the_sop_is_in_the_language_of_the_roots_index(ga: Path, source: Path) -> None:
    (ga / install.INDEX).write_text("# Insight\nread the level two facts first\n", encoding="utf-8")
    run(ga, source)
    assert (ga / install.SOP).read_text(encoding="utf-8") == "English SOP"


def test_a_dry_run_and_a_refusal_change_nothing(ga: Path, source: Path) -> None:
    before = snapshot(ga)
    assert run(ga, source, index=True, dry_run=True).added
    assert snapshot(ga) == before
    (ga / "dr").mkdir()
    (ga / "dr" / "a.py").write_text("somebody else's", encoding="utf-8")
    before = snapshot(ga)
    with pytest.raises(UsageError, match=r"dr/a\.py"):
        run(ga, source)
    assert snapshot(ga) == before


def test_a_sop_of_the_same_name_that_was_there_is_kept(ga: Path, source: Path) -> None:
    (ga / install.SOP).write_text("the user's own", encoding="utf-8")
    changes = run(ga, source)
    assert (install.SOP, "install_not_ours") in changes.kept
    install.uninstall(Root(ga), dry_run=False)
    assert (ga / install.SOP).read_text(encoding="utf-8") == "the user's own"


def test_an_upgrade_replaces_what_was_not_changed_and_drops_what_is_gone(ga: Path, source: Path) -> None:
    run(ga, source)
    (ga / "dr" / "a.py").write_text("changed by the user", encoding="utf-8")
    (source / "dr_runner.py").write_text("two", encoding="utf-8")
    (source / "dr" / "a.py").write_text("a2", encoding="utf-8")
    (source / "dr" / "new.py").write_text("new", encoding="utf-8")
    shutil.rmtree(source / "dr" / "b")
    changes = run(ga, source)
    assert changes.added == ["dr/new.py"] and changes.upgraded == ["dr_runner.py"] and changes.removed == ["dr/b/c.py"]
    assert changes.kept == [("dr/a.py", "install_changed")]
    assert (ga / "dr" / "a.py").read_text(encoding="utf-8") == "changed by the user"
    assert not (ga / "dr" / "b").exists()
    again = run(ga, source)  # still known as changed, not as ours
    assert again.kept == [("dr/a.py", "install_changed")] and not again.upgraded


def test_a_kill_in_the_middle_of_an_upgrade_is_mended_by_the_next(
    ga: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(ga, source)
    for name in ("dr_runner.py", "dr/a.py", "dr/b/c.py"):
        (source / name).write_text("second version", encoding="utf-8")
    wrote = install._write
    done: list[Path] = []

    def breaks(path: Path, data: bytes) -> None:
        if done:
            raise KeyboardInterrupt
        done.append(path)
        wrote(path, data)

    monkeypatch.setattr(install, "_write", breaks)
    with pytest.raises(KeyboardInterrupt):
        run(ga, source)
    monkeypatch.undo()
    changes = run(ga, source)
    assert changes.kept == [] and len(changes.upgraded) == 2
    assert (ga / "dr" / "b" / "c.py").read_text(encoding="utf-8") == "second version"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_index_gets_one_line_above_its_rules_and_loses_it_again(ga: Path, source: Path, newline: str) -> None:
    text = INDEX.replace("\n", newline).encode("utf-8")
    (ga / install.INDEX).write_bytes(text)
    before = snapshot(ga)
    assert run(ga, source, index=True).index == "added"
    lines = (ga / install.INDEX).read_bytes().decode("utf-8").split(newline)
    assert install.INDEX_NAME in lines[2] and lines[3] == "" and lines[4] == "[RULES]"
    assert run(ga, source, index=True).index == "there"
    install.uninstall(Root(ga), dry_run=False)
    assert snapshot(ga) == before


def test_uninstall_removes_exactly_what_was_written(ga: Path, source: Path) -> None:
    before = snapshot(ga)
    run(ga, source, index=True)
    (ga / "dr" / "__pycache__").mkdir()
    (ga / "dr" / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"compiled from dr/a.py")
    (ga / "dr" / "mine.py").write_text("the user's", encoding="utf-8")
    (ga / "sop" / "deep_research_sop.en.md").write_text("changed", encoding="utf-8")
    changes = install.uninstall(Root(ga), dry_run=False)
    assert changes.kept == [("sop/deep_research_sop.en.md", "install_changed")]
    left = {n: h for n, h in snapshot(ga).items() if n not in before}
    assert set(left) == {"dr", "dr/mine.py", "sop", "sop/deep_research_sop.en.md"}
    with pytest.raises(UsageError, match="nothing was installed"):
        install.uninstall(Root(ga), dry_run=False)


@pytest.mark.parametrize("missing", ["agentmain.py", "ga.py", "memory"])
def test_says_what_makes_a_folder_no_root(ga: Path, source: Path, missing: str) -> None:
    path = ga / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(UsageError, match=f"no GenericAgent root: {missing}"):
        run(ga, source)


def test_refuses_a_link_to_a_checkout(ga: Path, source: Path) -> None:
    (ga / "dr").symlink_to(source / "dr")
    with pytest.raises(UsageError, match="dr is a link"):
        run(ga, source)
    assert (source / "dr" / "a.py").read_text(encoding="utf-8") == "a"


def test_a_manifest_that_leads_out_of_the_root_is_refused(ga: Path, source: Path, tmp_path: Path) -> None:
    run(ga, source)
    (tmp_path / "precious").write_text("x", encoding="utf-8")
    known = json.loads((ga / install.MANIFEST).read_text(encoding="utf-8"))
    known["files"]["../precious"] = [hashlib.sha256(b"x").hexdigest()]
    (ga / install.MANIFEST).write_text(json.dumps(known), encoding="utf-8")
    with pytest.raises(install.FormatError, match="leads out"):
        install.uninstall(Root(ga), dry_run=False)
    assert (tmp_path / "precious").exists()


def test_the_command_installs_a_program_that_works_there(ga: Path) -> None:
    done = dr(ga, "install", str(ga), "--json")
    assert done.code == 0, done.err
    data = done.json()
    assert data["index"] == "offered" and "python" in data["next"]
    installed = {p.relative_to(ga).as_posix() for p in (ga / "dr").rglob("*.py")}
    assert installed == {p.relative_to(PROJECT).as_posix() for p in (PROJECT / "dr").rglob("*.py")}
    assert not (ga / "tests").exists() and not (ga / "dr" / "__pycache__").exists()
    out = dr(ga, "install", str(ga), "--uninstall")
    assert out.code == 0 and not (ga / "dr").exists() and not (ga / "dr_runner.py").exists()


def test_says_what_a_python_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert packages.missing(str(tmp_path / "no-python")) is None
    lacking = [p for p in packages.PACKAGES if p.module in ("psutil", "yaml")]
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda m: None if m in ("psutil", "yaml") else object())
    assert packages.missing() == lacking
    assert packages.command("/usr/bin/python3", lacking) == "/usr/bin/python3 -m pip install psutil PyYAML"
    needed, optional = packages.told("p", lacking, "en")
    assert "psutil" in needed and "PyYAML" in optional
