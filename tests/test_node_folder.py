"""A node folder: attempts are moved, never lost, whatever moment the runner is killed at; what counts as one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dr import node_folder
from dr.contract import Context, NodeType, State
from dr.errors import FormatError
from dr.layout import NodeFolder
from dr.node_folder import ProcessRecord

CONTEXT = Context("Why?", {}, "What?", "", "/x/output.txt")


def attempted(path: Path, outcome: str | None = "done", *, memory: bool = False) -> NodeFolder:
    """A node with one attempt."""
    folder = NodeFolder(path / "N1")
    number = node_folder.prepare(folder, CONTEXT, NodeType.LOCAL, "en", keep_work=True)
    node_folder.write_record(folder, ProcessRecord(["x"], number, pid=7, create_time=1.0, start=1.0, outcome=outcome))
    for file in (folder.output, folder.stdout, folder.conclusion, *([folder.solve_memory] if memory else [])):
        file.write_text(file.name, encoding="utf-8")
    return folder


def names(path: Path) -> set[str]:
    return {p.name for p in path.iterdir()}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pid", "x"),
        ("group", {}),
        ("tries", None),
        ("start", "x"),
        ("reservation", [1]),
        ("outcome", "won"),
        ("argv", "x"),
    ],
)
def test_a_process_record_of_the_wrong_types_is_told(tmp_path: Path, key: str, value: object) -> None:
    folder = attempted(tmp_path)
    data = json.loads(folder.process.read_text(encoding="utf-8"))
    folder.process.write_text(json.dumps({**data, key: value}), encoding="utf-8")
    with pytest.raises(FormatError, match=r"process\.json"):
        node_folder.read_record(folder)


class Killed(BaseException):
    pass


def test_put_away_killed_at_any_move_leaves_no_half_record_and_is_completed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = names(attempted(tmp_path / "whole").path)
    move = shutil.move
    for cut in range(len(whole)):
        folder = attempted(tmp_path / str(cut))
        left = iter(range(cut))

        def moved(source: str, target: str, left: object = left) -> None:
            if next(left, None) is None:  # type: ignore[call-overload]
                raise Killed
            move(source, target)

        monkeypatch.setattr(shutil, "move", moved)
        with pytest.raises(Killed):
            node_folder.put_away(folder)
        monkeypatch.setattr(shutil, "move", move)
        record = node_folder.read_record(folder)
        assert node_folder.intent(folder) is None, "the old answer would be taken for that of a new attempt"
        assert record is None or folder.conclusion.exists(), f"a done node without a conclusion after {cut} moves"
        assert node_folder.prepare(folder, CONTEXT, NodeType.LOCAL, "en", keep_work=False) == 2
        assert names(folder.attempt(1)) == whole
        assert names(folder.path) == {"attempt1", "context.json", "input.txt"}


def test_a_start_that_never_came_about_is_no_attempt(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path / "N1")
    for _ in range(2):
        assert node_folder.prepare(folder, CONTEXT, NodeType.LOCAL, "en", keep_work=True) == 1
        intent = node_folder.intent(folder)
        assert intent and (intent.attempt, intent.tries, intent.counts) == (1, 1, False)
    assert node_folder.attempts(folder) == 0
    folder.stdout.touch()  # it was started after all, and the runner killed before it could note the pid
    assert node_folder.prepare(folder, CONTEXT, NodeType.LOCAL, "en", keep_work=True) == 2


def test_an_attempt_that_was_about_to_start_keeps_its_number_of_tries(tmp_path: Path) -> None:
    folder = attempted(tmp_path, "retry")
    node_folder.prepare(folder, CONTEXT, NodeType.LOCAL, "en", keep_work=True)
    intent = node_folder.intent(folder)
    assert intent and (intent.attempt, intent.tries) == (2, 2)


@pytest.mark.parametrize(
    ("outcome", "pid", "start", "counted"),
    [
        ("done", 7, 1.0, 1),
        ("retry", 7, 1.0, 1),
        ("failed", None, 1.0, 1),
        (None, 7, 1.0, 1),
        ("interrupted", 7, 1.0, 0),
        ("skipped", None, None, 0),
    ],
)
def test_which_records_count_as_attempts(
    tmp_path: Path, outcome: str | None, pid: int | None, start: float | None, counted: int
) -> None:
    folder = NodeFolder(tmp_path)
    node_folder.write_record(folder, ProcessRecord([], 1, pid=pid, start=start, outcome=outcome))
    assert node_folder.attempts(folder) == counted


def test_an_attempt_that_is_followed_by_another_leaves_its_node_open() -> None:
    assert ProcessRecord([], 1, outcome="retry").state is State.PENDING


def test_what_a_restarted_subagent_goes_on_from_stays(tmp_path: Path) -> None:
    folder = attempted(tmp_path, "retry", memory=True)
    assert node_folder.prepare(folder, CONTEXT, NodeType.LOCAL, "en", keep_work=True) == 2
    assert folder.solve_memory.exists()
    assert "solve_memory.json" not in names(folder.attempt(1))
