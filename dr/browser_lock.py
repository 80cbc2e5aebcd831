"""The browser that GA's WEB nodes share: at most one subagent at a time, over all runs of this machine.

Who has it stands in browser-subagent.json in the machine's temporary folder, as the subagent's own process: it stays
taken when its runner dies and is free when the subagent is gone. A file lock guards the look and the entry.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from dr import files, process
from dr.errors import FormatError
from dr.layout import NodeFolder
from dr.node_folder import ProcessRecord
from dr.process import Identity

_SPARE_S = 60.0  # beyond its time limit, before a subagent that nobody ended is taken for one that hangs


def machine_folder() -> Path:
    """Not in a home, which several machines may share; the subagent's own browser lock lies there too."""
    user = f"-{os.getuid()}" if sys.platform != "win32" else ""
    return Path(tempfile.gettempdir()) / f"dr-runner-browser{user}"


class Holder(NamedTuple):
    """node: its folder. limit_s: seconds after which its runner, or in its place anybody, may take it for hanging."""

    node: str
    stdout: str
    identity: Identity
    group: int | None
    limit_s: float

    def holds(self) -> bool:
        """The subagent runs, or what it left behind in its group does; not one that has outlived its own limit."""
        if process.alive(self.identity):
            return process.age(self.identity) <= self.limit_s
        # A launcher is gone and its child works on: rare, so the look at every process is affordable.
        left = self.group is not None and process.of_this_boot(self.identity) and process.group_exists(self.group)
        rows = process.marked(lambda path: path == self.stdout) if left else []
        return any(process.age(row.identity) <= self.limit_s for row in rows)


class BrowserLock:
    """try_take(), then, while the lock is held, start the subagent and hand_over() to it; leave() when it was not
    started. folder: for tests."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or machine_folder()
        self._guard: Any = None

    @property
    def record(self) -> Path:
        return self.folder / "browser-subagent.json"

    def holder(self) -> Holder | None:
        """Who has it now."""
        try:
            data = files.read_json(self.record)
            group = data.get("group")
            found = Holder(
                node=str(data["node"]),
                stdout=str(data["stdout"]),
                identity=Identity.from_dict(data),
                group=int(group) if group is not None else None,
                limit_s=float(data["limit_s"]),
            )
        except (FormatError, OSError, KeyError, TypeError, ValueError, AttributeError):
            return None  # none, or half a record: a holder that cannot be known cannot be waited for
        return found if found.holds() else None

    def try_take(self) -> bool:
        """False while somebody has it, or is just taking it. An unusable folder stops nobody: there is no sharing
        then, which GA's agents cope with by themselves."""
        from filelock import FileLock, Timeout

        if self._guard is not None:
            return True
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            guard = FileLock(self.folder / "browser-subagent.lock")
            guard.acquire(timeout=0)
        except Timeout:
            return False
        except OSError:
            return True
        if self.holder() is not None:
            guard.release()
            return False
        self._guard = guard
        return True

    def hand_over(self, node: NodeFolder, record: ProcessRecord, limit_s: float) -> None:
        """From now on it is the subagent's, whatever becomes of us."""
        if self._guard is None:
            return
        try:
            if record.pid is not None:
                held = {
                    **{"node": str(node.path), "stdout": str(node.stdout), "pid": record.pid},
                    **{"create_time": record.create_time, "boot": record.boot, "group": record.group},
                    "limit_s": limit_s + _SPARE_S,
                }
                files.write_json(self.record, held)
        finally:
            self.leave()

    def leave(self) -> None:
        if self._guard is not None:
            self._guard.release()
            self._guard = None

    def __enter__(self) -> BrowserLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()
