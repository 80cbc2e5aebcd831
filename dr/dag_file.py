"""dag.md on disk: the runner's marks written at most 5 times a second, edits by hand noticed, validated and kept.

dag.seen.md is the text both sides last agreed on; an edit by hand is what differs from it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from dr import files
from dr.contract import State
from dr.dag import Dag, DagDiff, diff
from dr.dag_line import Faults
from dr.dag_text import read
from dr.errors import DagError
from dr.layout import RunFolder

WRITE_EVERY = 0.2  # seconds
WRITE_SHARE = 0.04  # of the time at most: a plan of a thousand nodes is written less often
STANDS_STILL = 0.1  # seconds: before that, an editor may still be writing, and half a plan can be a valid one


@contextmanager
def writing(folder: RunFolder) -> Iterator[None]:
    """Held while dag.md is read and replaced, so that two programs cannot undo each other's change."""
    from filelock import FileLock

    with FileLock(folder.path / ".dag.lock"):
        yield


_Signature = tuple[int, int, int]  # mtime in ns, size, inode


class _Past:
    """The marks of every text that was written, by node: from which one on it had which."""

    def __init__(self) -> None:
        self._marks: dict[str, list[tuple[int, State]]] = {}
        self._texts = 0

    def add(self, dag: Dag) -> None:
        for node in dag.nodes:
            marks = self._marks.setdefault(node.id, [])
            if not marks or marks[-1][1] is not node.state:
                marks.append((self._texts, node.state))
        self._texts += 1

    def nearest(self, marks: Mapping[str, State]) -> dict[str, State]:
        """The marks of the text that these were most likely made from: the newest of those with most in common."""
        change = [0] * (self._texts + 1)
        for node_id, mark in marks.items():
            known = [*self._marks.get(node_id, []), (self._texts, State.PENDING)]
            for (begin, state), (end, _) in pairwise(known):
                if state is mark:
                    change[begin] += 1
                    change[end] -= 1
        common = list(accumulate(change[: self._texts]))
        best = max(range(len(common)), key=lambda i: (common[i], i), default=0)
        found = ((i, [s for begin, s in known if begin <= best]) for i, known in self._marks.items())
        return {i: states[-1] for i, states in found if states}


class Edit(NamedTuple):
    """What somebody did to dag.md. edits None: the text is no valid plan, and `error` says why."""

    dag: Dag | None
    edits: DagDiff | None
    error: DagError | None = None


class DagFile:
    """The plan as the runner knows it (`dag`), and its projection to disk."""

    def __init__(self, folder: RunFolder, dag: Dag, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder, self.dag, self.clock = folder, dag, clock
        self._base = dag  # what the text on disk said when it was last written or accepted
        self._signature = self._stat()  # before the text: what is written in between is then noticed
        self._text = files.read_text(folder.dag) if self._signature else ""
        self._seen = files.read_text(folder.seen) if folder.seen.exists() else ""
        self._past = _Past()
        self._arriving: tuple[_Signature, float] | None = None
        self._marks: dict[str, State] = {}
        self._dirty = False
        self._invalid: str | None = None
        self._write_next = float("-inf")

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
        text = files.read_text(folder.dag) if folder.dag.exists() else None
        seen = Dag.parse(files.read_text(folder.seen) if folder.seen.exists() else text or "")
        self = cls(folder, seen)
        self._past.add(seen)
        if text is None:  # lost, which is no edit: it is written again
            self._dirty = True
            self.flush(force=True)
            return self, None
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
        if not self._dirty or (not force and self.clock() < self._write_next):
            return
        began = self.clock()
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
                # Of what was written, not of what is there a moment later: somebody may save an edit in between.
                self._signature = _signature(files.write_text(self.folder.dag, text))
            if text != self._seen:  # dag.md first: what is only in dag.md after a kill is taken for an edit, and kept
                files.write_text(self.folder.seen, text)
            self._seen = text
            self._text, self._base = text, self.dag
            self._past.add(self.dag)
        self._dirty, ended = False, self.clock()
        self._write_next = began + max(WRITE_EVERY, (ended - began) / WRITE_SHARE)

    def close(self) -> None:
        """The last word of a run: an edit that is still invalid is kept aside, so that the marks can be written.

        One that came in this moment stays in the plan, for the next runner.
        """
        self.take_edit(at_once=True)
        if self._invalid is not None:
            files.write_text(self.folder.path / "dag.rejected.md", self._invalid)
            self._invalid, self._dirty = None, True
        self.flush(force=True)

    def take_edit(self, *, at_once: bool = False) -> Edit | None:
        """What was edited by hand since the last look; each edit is returned once, when the file stands still."""
        signature = self._stat()
        if signature == self._signature or signature is None:
            return None
        if not at_once:
            if self._arriving is None or self._arriving[0] != signature:
                self._arriving = signature, self.clock()
            if self.clock() - self._arriving[1] < STANDS_STILL:
                return None
        try:
            text = files.read_text(self.folder.dag)
        except OSError:  # replaced this moment
            return None
        self._signature = signature
        return self._edit(text)

    def _edit(self, text: str) -> Edit | None:
        if text == self._text == self._seen and self._invalid is None:
            return None
        try:
            theirs = Dag.parse(text)
            edits = self._by_hand(diff(self._base, theirs), theirs, text)
            states = {n.id: n.state for n in self.dag.nodes} | self._marks
            merged = self._with_mine(theirs)
        except DagError as error:
            if text == self._invalid:
                return None
            self._invalid, self._dirty = text, True
            return Edit(None, None, error)
        self._invalid, self._text = None, text
        self.dag = merged.with_states({i: s for i, s in states.items() if i in merged.by_id})
        self._base = theirs
        self._dirty = True
        return Edit(theirs, edits)

    def _by_hand(self, edits: DagDiff, theirs: Dag, text: str) -> DagDiff:
        """Without marks that nobody set: those of a status section that is gone, and those of an editor that was opened
        before the runner wrote newer ones."""
        written = read(text, Faults()).states
        marks = {i: m for i, m in edits.marks.items() if i in written}
        if edits.added or edits.removed or edits.changed or any(new is State.RUNNING for _, new in marks.values()):
            before = self._past.nearest({n.id: n.state for n in theirs.nodes if n.id in written})
            marks = {i: m for i, m in marks.items() if before.get(i, m[0]) is not m[1]}
        return replace(edits, marks=marks)

    def _with_mine(self, theirs: Dag) -> Dag:
        """Their plan with what the runner changed in its own and could not write yet."""
        base = self._base.by_id
        gone = [i for i in base if i not in self.dag.by_id and i in theirs.by_id]
        new = [n for n in self.dag.work_nodes if n.id not in base and n.id not in theirs.by_id]
        dag = theirs.without(gone) if gone else theirs
        return dag.with_nodes(new) if new else dag

    def _stat(self) -> _Signature | None:
        try:
            found = self.folder.dag.stat()
        except OSError:
            return None
        return _signature(found)


def _signature(found: os.stat_result) -> _Signature:
    return found.st_mtime_ns, found.st_size, found.st_ino
