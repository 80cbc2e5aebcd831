"""Sources that GA's subagents name, looked up beside the run by a process of our own subagent's package.

It is never waited for but at the end, and there not for long: what is not read by then stays `not checked`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from dr import process
from dr.layout import HOME, Root, RunFolder
from dr.process import Child
from dr.settings import Settings, to_environment
from dr.trees import end_tree
from dr.waiter import Waiter

LONGEST_S = 300.0  # one process
FINISH_S = 40.0  # the report waits: an outer agent's tool call has 60 s


class Follower:
    """wake(): a node has concluded. finish(): the report is next. end(): whatever still runs."""

    def __init__(
        self, root: Root, folder: RunFolder, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.root, self.folder, self.clock = root, folder, clock
        own = {**to_environment(settings), "DR_ROOT": str(root.path)}
        path = os.pathsep.join([str(HOME), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._environment = {**os.environ, **own, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
        self._child: Child | None = None
        self._more = True  # also for what an earlier runner left

    def wake(self) -> None:
        self._more = True
        if self._child is None or self._child.poll() is not None:
            self._start()

    def _start(self) -> None:
        self._more = False
        self.folder.sources.mkdir(exist_ok=True)
        self._child = process.start(
            [sys.executable, "-m", "dr.agent.follow", str(self.folder.path), str(LONGEST_S)],
            cwd=self.root.path,
            env=self._environment,
            stdout=self.folder.sources / "follow.log",
            stderr=self.folder.sources / "follow.err.log",
        )

    def finish(self) -> None:
        """Wait for what is under way, and once more for what concluded meanwhile."""
        deadline = self.clock() + FINISH_S
        while self._child is not None or self._more:
            if self._child is None:
                self._start()
            assert self._child is not None
            with Waiter() as waiter:
                waiter.add("follow", self._child)
                gone = waiter.wait(max(0.0, deadline - self.clock()))
            if not gone:
                break
            self._child = None
        self.end()

    def end(self) -> None:
        child, self._child, self._more = self._child, None, False
        if child is not None:
            end_tree(child, soft_s=0.5)
            child.poll()
