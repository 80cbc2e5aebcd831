"""Locks that outlive no process: one request at a time per web host, over all nodes and processes of a root."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dr.agent.unreadable import Unreadable
from dr.errors import UsageError


@contextmanager
def held(path: Path, wait_s: float, busy: Callable[[], Unreadable]) -> Iterator[None]:
    """The file lock at `path`, freed by the system when its holder dies. `busy()` is raised after `wait_s` seconds."""
    from filelock import FileLock, Timeout

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        guard = FileLock(path)
        guard.acquire(timeout=wait_s)
    except Timeout:
        raise busy() from None
    except OSError as error:
        raise UsageError(f"lock {path}", error.strerror or str(error), "make its folder writable") from error
    try:
        yield
    finally:
        guard.release()


class HostLocks:
    """folder: where the lock files are; wait_s: seconds after which a host counts as busy."""

    def __init__(self, folder: Path, wait_s: float = 600.0) -> None:
        self.folder, self.wait_s = folder, wait_s

    @contextmanager
    def one_at_a_time(self, host: str) -> Iterator[None]:
        """The right to ask `host`. Never held for two hosts at once, so that nobody waits in a circle."""
        # The leading underscore keeps `con` and the like, which Windows reserves, from being a file's name.
        name = "_" + re.sub(r"[^a-z0-9.-]", "_", host.lower())[:120]
        with held(self.folder / f"{name}.lock", self.wait_s, lambda: Unreadable("host_busy", host, host=host)):
            yield
