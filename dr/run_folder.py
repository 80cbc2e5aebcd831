"""A run's own record: temp/dr_<task>/ made, opened and locked; run.json read and written."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from dr import files
from dr.contract import check_name
from dr.errors import DrError, FormatError, LockedError, UsageError
from dr.layout import TASK_PREFIX, Root, RunFolder

FORMAT = 1


@dataclass(frozen=True)
class RunRecord:
    """run.json. status: planned | running | completed | failed | interrupted; reason: see SPEC, or "".

    original: how many nodes the first plan had, SYNTH not counted. rounds: [{"round", "nodes", "why"}].
    handled: failed nodes whose failure was dealt with (skipped or replanned), so that a resumed run does not ask again.
    intent: a change of plan under way, {"nodes": added ids, "facts": {keys of this record}}, see dr/restore.py.
    runner: who drives the run, {"pid", "create_time"}, or None. Times in epoch seconds.
    """

    task: str
    question: str
    language: str
    mind: str
    agent: str
    format: int = FORMAT
    settings: dict[str, Any] = field(default_factory=dict)
    runner: dict[str, Any] | None = None
    status: str = "planned"
    reason: str = ""
    original: int = 0
    rounds: list[dict[str, Any]] = field(default_factory=list)
    revisions: list[dict[str, Any]] = field(default_factory=list)
    replans_used: int = 0
    handled: list[str] = field(default_factory=list)
    intent: dict[str, Any] | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    started: float | None = None
    ended: float | None = None
    seconds: float = 0.0


def write_record(folder: RunFolder, record: RunRecord) -> None:
    files.write_json(folder.run, vars(record))


def read_record(folder: RunFolder) -> RunRecord:
    """UsageError when there is no such run, FormatError when its record is damaged or of another version."""
    try:
        data = files.read_json(folder.run)
    except (FileNotFoundError, NotADirectoryError):
        planned = folder.dag.is_file()
        wrong = f"there is no run in {folder.path}" + (", but a plan" if planned else "")
        verb = f"start {folder.task}" if planned else "list"
        raise UsageError(f"open task {folder.task}", wrong, f"python dr_runner.py {verb}") from None
    version = data.get("format") if isinstance(data, dict) else None
    if version != FORMAT:
        raise FormatError(
            f"read {folder.run}",
            f"its format is {version!r}, this version reads {FORMAT}",
            "use the version of the runner that wrote it, or start a new task",
        )
    try:
        record = files.record_of(RunRecord, data)
        _check(record)
    except (TypeError, KeyError) as error:
        raise FormatError(f"read {folder.run}", str(error), "restore the file, or start a new task") from error
    return record


def _check(record: RunRecord) -> None:
    """TypeError where a value has the right type and still means nothing."""
    from dr.words import LANGUAGES

    if record.language not in LANGUAGES:
        raise TypeError(f"language cannot be {record.language[:60]!r}")
    shapes = [(r, {"revision", "removed", "added", "revised"}) for r in record.revisions]
    shapes += [(r, {"round", "nodes", "why"}) for r in record.rounds]
    shapes += [(record.intent, {"nodes", "facts"})] if record.intent is not None else []
    for found, keys in shapes:
        if set(found) != keys:
            raise TypeError(f"expected the keys {', '.join(sorted(keys))} instead of {', '.join(sorted(found))[:60]!r}")


def name_from(question: str, root: Root) -> str:
    """A task name made from the question, not yet taken."""
    words = re.findall(r"\w+", question)
    stem = "_".join(words)[:40].strip("_.-") or "task"
    for number in range(1, 10_000):
        name = stem if number == 1 else f"{stem}_{number}"
        if not root.run(check_name(name, "task name")).path.exists():
            return name
    raise UsageError(f"name a task for {question!r}", "ten thousand are taken", "give one with --task NAME")


def folder_of(root: Root, task: str) -> RunFolder:
    """The folder of a task name, checked: it lies directly in temp/ and no symlink leads elsewhere."""
    name = check_name(task.removeprefix(TASK_PREFIX), "task name")
    folder = root.run(name)
    if folder.path.is_symlink() or (folder.path.exists() and folder.path.resolve().parent != root.temp.resolve()):
        raise UsageError(f"open task {name}", f"{folder.path} leads out of temp/", "remove the link")
    return folder


def check_new(root: Root, task: str) -> RunFolder:
    """The folder of a task that does not exist yet, else UsageError."""
    folder = folder_of(root, task)
    if folder.path.exists():
        verb = "resume" if folder.run.exists() else "start"
        raise UsageError(
            f"start task {folder.task}",
            f"{folder.path} exists" + ("" if folder.run.exists() else ", though there is no run in it"),
            f"use another --task, --replace, or: python dr_runner.py {verb} {folder.task}",
        )
    return folder


def create(root: Root, task: str, *, replace_old: bool) -> RunFolder:
    """An empty run folder. UsageError when the task exists (unless `replace_old`) or temp/ cannot be written."""
    folder = folder_of(root, task) if replace_old else check_new(root, task)
    if folder.path.exists():
        _remove(folder)
    try:
        folder.path.mkdir(parents=True)
    except OSError as error:
        raise UsageError(
            f"make {folder.path}", error.strerror or str(error), "make temp/ writable, or choose another --root"
        ) from error
    return folder


def _remove(folder: RunFolder) -> None:
    """Refused while a runner holds it. Subagents that go on without a runner are ended."""
    from dr.trees import end_marked

    aside = folder.path.with_name(f".{folder.path.name}.{os.getpid()}.old")
    with lock(folder):
        end_marked(folder.path, soft_s=0)
        folder.path.rename(aside)  # in one step, so that nobody takes the lock of what is half gone
    shutil.rmtree(aside)


@contextmanager
def lock(folder: RunFolder) -> Iterator[None]:
    """The one right to change a run. LockedError says who has it. Freed by the system when its holder dies."""
    from filelock import FileLock, Timeout

    guard = FileLock(folder.lock, timeout=0)
    try:
        guard.acquire()
    except Timeout:
        holder = None
        with suppress(DrError):
            holder = (read_record(folder).runner or {}).get("pid")
        raise LockedError(folder.task, holder) from None
    except OSError as error:
        raise UsageError(
            f"lock task {folder.task}", error.strerror or str(error), "make its folder writable"
        ) from error
    try:
        yield
    finally:
        guard.release()


class Run:
    """An open run: its record, saved whenever it changes."""

    def __init__(self, folder: RunFolder, record: RunRecord) -> None:
        self.folder, self.record = folder, record
        self._opened = time.monotonic()
        self._seconds_before = record.seconds

    def change(self, **facts: Any) -> None:
        """Replace fields of the record and save it, if anything differs."""
        seconds = round(self._seconds_before + time.monotonic() - self._opened, 3)
        new = replace(self.record, **facts, seconds=seconds)
        if new != replace(self.record, seconds=seconds):
            self.record = new
            write_record(self.folder, new)

    @property
    def seconds(self) -> float:
        """Seconds the run has been driven, over all its runners."""
        return self._seconds_before + time.monotonic() - self._opened


def tasks(root: Root) -> list[RunFolder]:
    """Every run folder of a root, by name."""
    if not root.temp.is_dir():
        return []
    found = [RunFolder(p) for p in root.temp.iterdir() if p.name.startswith(TASK_PREFIX) and (p / "run.json").exists()]
    return sorted(found, key=lambda f: f.path.name)
