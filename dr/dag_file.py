"""dag.md on disk: the runner's marks written at most 5 times a second, edits by hand noticed, validated and kept.

dag.seen.md is the text both sides last agreed on; an edit by hand is what differs from it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dr import files
from dr.contract import State
from dr.dag import Dag, DagDiff, diff
from dr.errors import DagError
from dr.layout import RunFolder

WRITE_EVERY = 0.2  # seconds


@contextmanager
def writing(folder: RunFolder) -> Iterator[None]:
    """Held while dag.md is read and replaced, so that two programs cannot undo each other's change."""
    from filelock import FileLock

    with FileLock(folder.path / ".dag.lock"):
        yield


@dataclass(frozen=True)
class Edit:
    """What somebody did to dag.md. edits None: the text is no valid plan, and `error` says why."""

    dag: Dag | None
    edits: DagDiff | None
    error: DagError | None = None


class DagFile:
    """The plan as the runner knows it (`dag`), and its projection to disk."""

    def __init__(self, folder: RunFolder, dag: Dag, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder, self.dag, self.clock = folder, dag, clock
        self._base = dag  # what the text on disk said when it was last written or accepted
        self._text = files.read_text(folder.dag) if folder.dag.exists() else ""
        self._signature = self._stat()
        self._marks: dict[str, State] = {}
        self._dirty = False
        self._invalid: str | None = None
        self._written_at = float("-inf")

    @classmethod
    def create(cls, folder: RunFolder, dag: Dag) -> DagFile:
        """Write a first dag.md."""
        self = cls(folder, dag)
        self._dirty = True
        self.flush(force=True)
        return self

    @classmethod
    def open(cls, folder: RunFolder) -> tuple[DagFile, Edit | None]:
        """The plan of an earlier runner, and what was edited since. DagError when no valid version is left."""
        text = files.read_text(folder.dag) if folder.dag.exists() else ""
        seen = Dag.parse(files.read_text(folder.seen)) if folder.seen.exists() else Dag.parse(text)
        self = cls(folder, seen)
        return self, self._edit(text)

    def mark(self, node_id: str, state: State) -> None:
        self._marks[node_id] = state
        self._dirty = True

    def forget(self, node_id: str) -> None:
        """The node left the plan: a mark of it that was not written yet goes with it."""
        self._marks.pop(node_id, None)

    def replace(self, dag: Dag) -> None:
        """Another plan, with its marks as they are; written at once, since it is more than a mark."""
        self.dag = dag
        self._dirty = True
        self.flush(force=True)

    def flush(self, *, force: bool = False) -> None:
        """Write what changed, if it is time. An invalid edit is left for its author to correct, until the run ends."""
        if not self._dirty or (not force and self.clock() - self._written_at < WRITE_EVERY):
            return
        if self._marks:
            self.dag = self.dag.with_states(self._marks)
            self._marks = {}
        if self._invalid is not None:
            return
        text = self.dag.render()
        with writing(self.folder):
            if self._stat() not in (None, self._signature):
                return  # an edit by hand came in: take_edit() first, so that it is not overwritten
            if text != self._text or not self.folder.dag.exists():
                files.write_text(self.folder.dag, text)
                files.write_text(self.folder.seen, text)
            self._text, self._signature, self._base = text, self._stat(), self.dag
        self._dirty, self._written_at = False, self.clock()

    def close(self) -> None:
        """The last word of a run: an edit that is still invalid is kept aside, so that the marks can be written."""
        if self._invalid is not None:
            files.write_text(self.folder.path / "dag.rejected.md", self._invalid)
            self._invalid, self._dirty = None, True
        self.flush(force=True)

    def take_edit(self) -> Edit | None:
        """What was edited by hand since the last look; each edit is returned once."""
        signature = self._stat()
        if signature == self._signature or signature is None:
            return None
        self._signature = signature
        return self._edit(files.read_text(self.folder.dag))

    def _edit(self, text: str) -> Edit | None:
        if text == self._text and self._invalid is None and self.folder.seen.exists() and text == self._seen_text():
            return None
        try:
            theirs = Dag.parse(text)
        except DagError as error:
            if text == self._invalid:
                return None
            self._invalid, self._dirty = text, True
            return Edit(None, None, error)
        self._invalid, self._text = None, text
        edits = diff(self._base, theirs)
        states = {n.id: n.state for n in self.dag.nodes} | self._marks
        self.dag = theirs.with_states({i: s for i, s in states.items() if i in theirs.by_id})
        self._base = theirs
        self._dirty = True
        return Edit(theirs, edits)

    def _seen_text(self) -> str:
        return files.read_text(self.folder.seen)

    def _stat(self) -> tuple[int, int, int] | None:
        try:
            found = self.folder.dag.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
