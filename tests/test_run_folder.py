"""run.json and the lock: who may do what to a run, and what is said when not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from lab import Lab, marked, until

from dr import overview, process, run_folder
from dr.errors import FormatError, LockedError, UsageError
from dr.layout import Root, RunFolder
from dr.run_folder import RunRecord, write_record


def made(root: Root, **facts: object) -> RunFolder:
    folder = root.run("x")
    folder.path.mkdir(parents=True, exist_ok=True)
    write_record(folder, RunRecord("x", "Why?", "en", "offline", "own", **facts))  # type: ignore[arg-type]
    return folder


def test_replacing_a_run_ends_the_subagents_that_nobody_watches(lab: Lab) -> None:
    folder = made(lab.root)
    child = lab.python("import time; print('on', flush=True); time.sleep(600)")
    until(lambda: folder.node("P1").stdout.read_text(encoding="utf-8") != "", "it is up")
    new = run_folder.create(lab.root, "x", replace_old=True)
    until(lambda: child.poll() is not None, "the end of the subagent")
    assert not marked(lab.root.path)
    assert list(new.path.iterdir()) == []
    assert [p.name for p in lab.root.temp.iterdir()] == ["dr_x"]


def test_a_run_that_is_held_is_not_replaced(tmp_path: Path) -> None:
    folder = made(Root(tmp_path), runner={"pid": 4711, "create_time": 1.0})
    with run_folder.lock(folder), pytest.raises(LockedError, match="process 4711"):
        run_folder.create(Root(tmp_path), "x", replace_old=True)
    assert folder.run.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"format": 2}', '{"format": 1}'])
def test_a_record_that_cannot_be_read_says_so_and_holds_the_lock_all_the_same(tmp_path: Path, text: str) -> None:
    folder = made(Root(tmp_path))
    folder.run.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=r"run\.json"):
        run_folder.read_record(folder)
    with run_folder.lock(folder), pytest.raises(LockedError), run_folder.lock(folder):
        pass


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("task", None),
        ("language", "fr"),
        ("settings", None),
        ("runner", [1]),
        ("original", True),
        ("seconds", "x"),
        ("rounds", [1]),
        ("rounds", [{}]),
        ("revisions", {"a": 1}),
        ("revisions", [{"revision": 1}]),
        ("handled", [1]),
        ("intent", {"nodes": []}),
    ],
)
def test_a_record_with_a_value_that_means_nothing_says_which(tmp_path: Path, key: str, value: object) -> None:
    folder = made(Root(tmp_path))
    data = json.loads(folder.run.read_text(encoding="utf-8"))
    folder.run.write_text(json.dumps({**data, key: value}), encoding="utf-8")
    with pytest.raises(FormatError, match=r"run\.json"):
        run_folder.read_record(folder)


def test_an_infinite_number_is_no_record_and_half_a_surrogate_pair_is_shown_as_unknown(tmp_path: Path) -> None:
    folder = made(Root(tmp_path), seconds=2.5, notes=["x"])
    text = folder.run.read_text(encoding="utf-8")
    for number in ("1e999", "NaN", "-Infinity"):
        folder.run.write_text(text.replace("2.5", number), encoding="utf-8")
        with pytest.raises(FormatError, match="no finite number"):
            run_folder.read_record(folder)
    folder.run.write_text(text.replace('"x"', '"\\ud83d x"'), encoding="utf-8")
    assert run_folder.read_record(folder).notes == ["? x"]


def test_a_folder_without_a_run_does_not_send_to_resume(tmp_path: Path) -> None:
    Root(tmp_path).run("x").path.mkdir(parents=True)
    with pytest.raises(UsageError, match="no run in it") as caught:
        run_folder.create(Root(tmp_path), "x", replace_old=False)
    assert "start x" in caught.value.next_step


def test_a_runner_that_died_over_the_report_left_an_interrupted_run(tmp_path: Path) -> None:
    dead = {"pid": 2**30, "create_time": 1.0, "boot": ""}
    folder = made(Root(tmp_path), status="completed", reason="goal_met", runner=dead)
    assert overview.effective_status(run_folder.read_record(folder)) == "interrupted"
    myself = process.identify(os.getpid())
    assert myself
    folder = made(Root(tmp_path), status="completed", reason="goal_met", runner=myself.to_dict())
    assert overview.effective_status(run_folder.read_record(folder)) == "running"
    folder = made(Root(tmp_path), status="completed", reason="goal_met")
    assert overview.effective_status(run_folder.read_record(folder)) == "completed"
