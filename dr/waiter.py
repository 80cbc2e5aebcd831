"""Waiting for processes to end, without polling: in: children and adopted processes; out: those that ended, at once.

Linux: pidfds and one epoll; macOS and BSD: kqueue; elsewhere one sleeping thread a process.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Hashable
from types import TracebackType
from typing import NamedTuple, Protocol

from dr.process import Child, ExitInfo, Identity, alive, has_pidfd, wait_gone


class Ended(NamedTuple):
    """A watched process that is gone. key: what add() was given."""

    key: Hashable
    exit: ExitInfo


class Backend(Protocol):
    """How this system tells that a process ended. `wake` is a socket whose readability ends a select(), too."""

    def watch(self, identity: Identity, *, ours: bool) -> bool:
        """False when it is gone already. ours: a child not yet reaped, so that nobody else can have its pid."""

    def forget(self, pid: int) -> None: ...

    def select(self, timeout: float | None) -> set[int]:
        """Pids that ended; empty after the timeout or a wake."""

    def close(self) -> None: ...


class PidfdBackend:
    def __init__(self, wake: socket.socket) -> None:
        self._selector = selectors.DefaultSelector()
        self._selector.register(wake, selectors.EVENT_READ, None)
        self._handles: dict[int, int] = {}

    def watch(self, identity: Identity, *, ours: bool) -> bool:
        if sys.platform != "linux":
            raise NotImplementedError
        try:
            handle = os.pidfd_open(identity.pid)
        except ProcessLookupError:
            return False
        if not ours and not alive(identity):  # after the open, so that no stranger can take the pid in between
            os.close(handle)
            return False
        self._handles[identity.pid] = handle
        self._selector.register(handle, selectors.EVENT_READ, identity.pid)
        return True

    def forget(self, pid: int) -> None:
        handle = self._handles.pop(pid)
        self._selector.unregister(handle)
        os.close(handle)

    def select(self, timeout: float | None) -> set[int]:
        return {key.data for key, _ in self._selector.select(timeout) if key.data is not None}

    def close(self) -> None:
        for pid in list(self._handles):
            self.forget(pid)
        self._selector.close()


if sys.platform != "linux" and sys.platform != "win32":

    class KqueueBackend:
        def __init__(self, wake: socket.socket) -> None:
            self._queue = select.kqueue()
            self._pids: set[int] = set()
            self._queue.control([select.kevent(wake.fileno(), select.KQ_FILTER_READ, select.KQ_EV_ADD)], 0)

        def _change(self, pid: int, flags: int) -> None:
            event = select.kevent(pid, select.KQ_FILTER_PROC, flags, select.KQ_NOTE_EXIT)
            self._queue.control([event], 0)

        def watch(self, identity: Identity, *, ours: bool) -> bool:
            try:
                self._change(identity.pid, select.KQ_EV_ADD)
            except ProcessLookupError:
                return False
            self._pids.add(identity.pid)
            if ours or alive(identity):
                return True
            self.forget(identity.pid)
            return False

        def forget(self, pid: int) -> None:
            self._pids.discard(pid)
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the event goes with the process
                self._change(pid, select.KQ_EV_DELETE)

        def select(self, timeout: float | None) -> set[int]:
            events = self._queue.control(None, len(self._pids) + 1, timeout)
            return {e.ident for e in events if e.filter == select.KQ_FILTER_PROC}

        def close(self) -> None:
            self._queue.close()


class ThreadBackend:
    """A daemon thread a process, asleep in the system's own wait."""

    def __init__(self, wake: socket.socket) -> None:
        self._wake = wake
        self._tell, self._told = socket.socketpair()
        self._gone: set[int] = set()
        self._watched: dict[int, Identity] = {}

    def watch(self, identity: Identity, *, ours: bool) -> bool:
        if not alive(identity):
            return False
        self._watched[identity.pid] = identity
        threading.Thread(target=self._wait, args=(identity,), daemon=True).start()
        return True

    def _wait(self, identity: Identity) -> None:
        wait_gone(identity)
        self._gone.add(identity.pid)
        with contextlib.suppress(OSError):  # closed meanwhile: nobody asks any more
            self._tell.send(b"x")

    def forget(self, pid: int) -> None:
        self._watched.pop(pid, None)
        self._gone.discard(pid)

    def select(self, timeout: float | None) -> set[int]:
        ready, _, _ = select.select([self._wake, self._told], [], [], timeout)
        if self._told in ready:
            self._told.recv(4096)
        return {pid for pid in tuple(self._gone) if pid in self._watched}

    def close(self) -> None:
        self._tell.close()
        self._told.close()


def best_backend(wake: socket.socket) -> Backend:
    if has_pidfd():
        return PidfdBackend(wake)
    if sys.platform != "linux" and sys.platform != "win32" and hasattr(select, "kqueue"):
        return KqueueBackend(wake)
    return ThreadBackend(wake)


class Waiter:
    """wait() sleeps until a watched process ends, wake() is called (from a thread or signal handler), or time is up.

    signals: every signal with a Python handler wakes it as well; main thread only.
    """

    def __init__(self, *, signals: bool = False, backend: type[PidfdBackend] | type[ThreadBackend] | None = None):
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._backend: Backend = (backend or best_backend)(self._wake_out)
        self._watched: dict[int, tuple[Hashable, Child | Identity]] = {}
        self._gone: list[tuple[Hashable, Child | Identity]] = []
        self._signals = signals
        if signals:
            self._old_fd = signal.set_wakeup_fd(self._wake_in.fileno(), warn_on_full_buffer=False)

    def __len__(self) -> int:
        return len(self._watched) + len(self._gone)

    def add(self, key: Hashable, process: Child | Identity) -> None:
        """Watch a child of ours, reaped here when it ends, or another process; one gone already ends at once."""
        identity = process.identity if isinstance(process, Child) else process
        if self._backend.watch(identity, ours=isinstance(process, Child) and process.exit is None):
            self._watched[identity.pid] = (key, process)
        else:
            self._gone.append((key, process))

    def discard(self, key: Hashable) -> None:
        """Watch it no more; a child is then reaped by its poll()."""
        self._gone = [entry for entry in self._gone if entry[0] != key]
        for pid in [pid for pid, entry in self._watched.items() if entry[0] == key]:
            del self._watched[pid]
            self._backend.forget(pid)

    def wait(self, timeout: float | None = None) -> list[Ended]:
        """Those that ended, each told once; [] after `timeout` seconds or a wake. None: no limit."""
        timeout = 0 if self._gone else None if timeout is None else max(0.0, timeout)
        for pid in self._backend.select(timeout):
            self._gone.append(self._watched.pop(pid))
            self._backend.forget(pid)
        with contextlib.suppress(BlockingIOError):
            self._wake_out.recv(4096)
        ended = [Ended(key, _exit(process)) for key, process in self._gone]
        self._gone = []
        return ended

    def wake(self) -> None:
        """End the current or next wait()."""
        with contextlib.suppress(BlockingIOError):  # full: it is awake already
            self._wake_in.send(b"x")

    def close(self) -> None:
        if self._signals:
            signal.set_wakeup_fd(self._old_fd)
        self._backend.close()
        self._wake_in.close()
        self._wake_out.close()

    def __enter__(self) -> Waiter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _exit(process: Child | Identity) -> ExitInfo:
    return (process.poll() if isinstance(process, Child) else None) or ExitInfo(None)
