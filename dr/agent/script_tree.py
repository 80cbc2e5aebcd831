"""The processes that a script started: who they are, what memory they hold, and their end. Reads the process table."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dr.process import HARD, Identity, Row, send, table

_END_S = 5.0  # for the kernel to remove what was killed; only uninterruptible I/O takes longer


class ScriptTree:
    """All that runs because of `leader`, a child of ours that leads a process group (where there are groups).

    known: our children before it was started; one that is neither among them nor of our session is an orphan of the
    script that was handed to us (see `adopting`).
    """

    def __init__(self, leader: int, known: frozenset[int]) -> None:
        self.leader, self._known = leader, known
        self._seen: set[Identity] = set()

    def rows(self, *, zombies: bool = False) -> list[Row]:
        """Those that run now, the leader included."""
        rows = table(zombies=True)
        children: dict[int, list[Row]] = {}
        for row in rows:
            children.setdefault(row.parent, []).append(row)
        session = 0 if sys.platform == "win32" else os.getsid(0)
        found = [row for row in rows if self._belongs(row, session)]
        members: dict[int, Row] = {}
        while found:
            row = found.pop()
            if row.identity.pid not in members and row.identity.pid != os.getpid():
                members[row.identity.pid] = row
                found += children.get(row.identity.pid, [])
        self._seen.update(row.identity for row in members.values())
        return [row for row in members.values() if zombies or not row.zombie]

    def _belongs(self, row: Row, session: int) -> bool:
        pid = row.identity.pid
        if pid == self.leader or row.identity in self._seen or self.leader in (row.group, row.session):
            return True
        ours = sys.platform != "win32" and row.parent == os.getpid() and pid not in self._known
        return ours and row.session != session

    def end(self) -> list[int]:
        """Kill them all, and what they start meanwhile; the pids that the kernel would not end."""
        deadline = time.monotonic() + _END_S
        pause = 0.001
        while True:
            rows = self.rows(zombies=True)
            living = [row.identity for row in rows if not row.zombie]
            if sys.platform != "win32" and living:
                with suppress(OSError):
                    os.killpg(self.leader, signal.SIGKILL)  # at once, so that a group that multiplies cannot outrun us
            for identity in living:
                send(identity, HARD)
            for row in rows:
                if row.zombie and row.parent == os.getpid():
                    self._reap(row.identity.pid)
            if not living or time.monotonic() > deadline:
                return [identity.pid for identity in living]
            time.sleep(pause)
            pause = min(pause * 2, 0.05)

    def _reap(self, pid: int) -> None:
        """An orphan that was handed to us; the leader is its starter's to reap."""
        if sys.platform != "win32" and pid != self.leader:
            with suppress(OSError):
                os.waitpid(pid, os.WNOHANG)


def memory_of(rows: list[Row]) -> int:
    """Resident bytes of all together; pages that they share count for each. 0 where this is not to be had cheaply."""
    if sys.platform != "linux":
        return 0
    pages = 0
    for row in rows:
        with suppress(OSError, ValueError, IndexError):
            pages += int(Path(f"/proc/{row.identity.pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def tasks_of_user() -> int | None:
    """Processes and threads that count against RLIMIT_NPROC already, as far as one may see; None where unknown."""
    if sys.platform != "linux":
        return None
    count, me = 0, os.getuid()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.stat().st_uid == me:
                count += sum(1 for _ in (process / "task").iterdir())
    return count or None


def children_of_ours() -> frozenset[int]:
    me = os.getpid()
    return frozenset(row.identity.pid for row in table(zombies=True) if row.parent == me)


@contextmanager
def adopting() -> Iterator[bool]:
    """Meanwhile a process whose parent has ended becomes our child, not init's, so that no daemon is lost from sight.

    False where that cannot be had.
    """
    if sys.platform != "linux":
        yield False
        return
    import ctypes

    set_subreaper, get_subreaper = 36, 37
    libc, before = ctypes.CDLL(None), ctypes.c_int(0)
    libc.prctl(get_subreaper, ctypes.byref(before), 0, 0, 0)
    done = libc.prctl(set_subreaper, 1, 0, 0, 0) == 0
    try:
        yield done
    finally:
        libc.prctl(set_subreaper, before.value, 0, 0, 0)
