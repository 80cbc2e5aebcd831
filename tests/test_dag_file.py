"""dag.md on disk: what is an edit by hand and what is not, and that neither side's change is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from dr.contract import NodeType, State
from dr.dag import Dag, Node
from dr.dag_file import STANDS_STILL, DagFile, Edit
from dr.layout import RunFolder

PLAN = """# DR: Why?
ROOT: Why?

## Nodes
- [A] LOCAL | question: one | depends: -
- [B] LOCAL | question: two | depends: A
- [C] LOCAL | question: three | depends: -

## Status
"""


class Clock:
    now = 1e9

    def __call__(self) -> float:
        return self.now


def made(path: Path) -> tuple[RunFolder, DagFile, Clock]:
    folder, clock = RunFolder(path), Clock()
    file = DagFile.create(folder, Dag.parse(PLAN))
    file.clock = clock
    return folder, file, clock


def mark(file: DagFile, clock: Clock, **states: State) -> None:
    """Marks of the runner, written."""
    for node_id, state in states.items():
        file.mark(node_id, state)
    clock.now += 1
    file.flush()


def edited(folder: RunFolder, file: DagFile, text: str) -> Edit | None:
    folder.dag.write_text(text, encoding="utf-8")
    return file.take_edit(at_once=True)


def text_of(folder: RunFolder) -> str:
    return folder.dag.read_text(encoding="utf-8")


def test_a_file_that_an_editor_may_still_be_writing_is_no_edit_yet(tmp_path: Path) -> None:
    folder, file, clock = made(tmp_path)
    whole = text_of(folder)
    folder.dag.write_text(whole[: whole.index("- [C]")], encoding="utf-8")  # half a plan, and a valid one
    assert file.take_edit() is None
    clock.now += STANDS_STILL / 2
    folder.dag.write_text(whole.replace("three", "another"), encoding="utf-8")
    assert file.take_edit() is None
    clock.now += STANDS_STILL
    edit = file.take_edit()
    assert edit and edit.edits
    assert (edit.edits.removed, dict(edit.edits.changed)) == ((), {"C": ("sub_question",)})
    assert file.take_edit() is None


@pytest.mark.parametrize("reopened", [False, True])
def test_a_status_section_that_is_gone_runs_nothing_again(tmp_path: Path, reopened: bool) -> None:
    folder, file, clock = made(tmp_path)
    mark(file, clock, A=State.DONE, B=State.RUNNING)
    text = text_of(folder)
    folder.dag.write_text(text[: text.index("## Status")], encoding="utf-8")
    edit: Edit | None
    file, edit = DagFile.open(folder) if reopened else (file, file.take_edit(at_once=True))
    assert edit and edit.edits is not None
    assert not edit.edits.marks
    file.flush(force=True)
    written = Dag.parse(text_of(folder))
    assert [written.node(i).state for i in "ABC"] == [State.DONE, State.RUNNING, State.PENDING]


def test_a_lost_file_is_written_again_and_is_no_edit(tmp_path: Path) -> None:
    folder, file, clock = made(tmp_path)
    mark(file, clock, A=State.DONE)
    text = text_of(folder)
    folder.dag.unlink()
    assert file.take_edit() is None
    mark(file, clock, B=State.RUNNING)
    assert text_of(folder) == text.replace("B: [ ]", "B: [~]")
    folder.dag.unlink()
    _, edit = DagFile.open(folder)
    assert edit is None
    assert text_of(folder) == text.replace("B: [ ]", "B: [~]")


def test_a_mark_taken_back_is_an_edit(tmp_path: Path) -> None:
    folder, file, clock = made(tmp_path)
    mark(file, clock, A=State.DONE)
    edit = edited(folder, file, text_of(folder).replace("A: [✓]", "A: [ ]"))
    assert edit and edit.edits and dict(edit.edits.marks) == {"A": (State.DONE, State.PENDING)}


def test_an_editor_opened_before_newer_marks_were_written_takes_none_back(tmp_path: Path) -> None:
    """Only what differs from the text it was opened with was meant."""
    folder, file, clock = made(tmp_path)
    mark(file, clock, A=State.RUNNING)
    opened = text_of(folder)
    mark(file, clock, A=State.DONE)
    mark(file, clock, B=State.DONE)
    edit = edited(folder, file, opened.replace("three", "another").replace("C: [ ]", "C: [-]"))
    assert edit and edit.edits
    assert set(edit.edits.changed) == {"C"}
    assert dict(edit.edits.marks) == {"C": (State.PENDING, State.SKIPPED)}
    file.flush(force=True)
    assert Dag.parse(text_of(folder)).node("B").state is State.DONE


def test_nodes_that_could_not_be_written_survive_an_edit(tmp_path: Path) -> None:
    """The planner appended one while an invalid edit stood in the file."""
    folder, file, _ = made(tmp_path)
    text = text_of(folder)
    edit = edited(folder, file, text.replace("LOCAL | question: three", "WRONG | question: three"))
    assert edit and edit.error
    file.replace(file.dag.with_nodes([Node("D", NodeType.LOCAL, "four", ("A",))]))
    edit = edited(folder, file, text.replace("three", "another"))
    assert edit and edit.edits and set(edit.edits.changed) == {"C"}
    file.mark("D", State.RUNNING)
    file.flush(force=True)
    written = Dag.parse(text_of(folder))
    assert (written.node("C").sub_question, written.node("D").state) == ("another", State.RUNNING)


def test_an_edit_that_was_carried_out_is_not_found_again(tmp_path: Path) -> None:
    folder, file, clock = made(tmp_path)
    mark(file, clock, A=State.DONE)
    assert edited(folder, file, text_of(folder).replace("A: [✓]", "A: [ ]"))
    file.mark("A", State.PENDING)  # what carrying it out comes to: the text is as its author left it
    file.flush(force=True)
    assert DagFile.open(folder)[1] is None


def test_an_edit_before_the_kill_is_found_after_it(tmp_path: Path) -> None:
    folder, file, clock = made(tmp_path)
    mark(file, clock, A=State.DONE)
    assert edited(folder, file, text_of(folder).replace("A: [✓]", "A: [ ]"))
    _, edit = DagFile.open(folder)  # the runner died before it had done anything about it
    assert edit and edit.edits and set(edit.edits.marks) == {"A"}


def test_an_edit_of_the_last_moment_keeps_neither_marks_nor_itself_out(tmp_path: Path) -> None:
    folder, file, _ = made(tmp_path)
    file.mark("A", State.DONE)
    folder.dag.write_text(text_of(folder).replace("three", "another"), encoding="utf-8")
    file.close()
    written = Dag.parse(text_of(folder))
    assert (written.node("A").state, written.node("C").sub_question) == (State.DONE, "another")


def test_an_edit_saved_right_behind_a_write_of_the_runner_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happens between the write of dag.md and the next step of the runner is not taken for its own."""
    from dr import files

    folder, file, clock = made(tmp_path)
    write = files.write_text

    def write_then_somebody_saves(path: Path, text: str) -> object:
        written = write(path, text)
        if path == folder.dag:
            path.write_text(text.replace("question: two", "question: another"), encoding="utf-8")
        return written

    monkeypatch.setattr(files, "write_text", write_then_somebody_saves)
    mark(file, clock, A=State.RUNNING)
    monkeypatch.undo()
    edit = file.take_edit(at_once=True)
    assert edit is not None
    assert edit.edits is not None
    assert dict(edit.edits.changed) == {"B": ("sub_question",)}
