"""`stop`: end a run from outside. The runner that drives it is asked; without one its subagents are ended here."""

from __future__ import annotations

import time

from dr import process, run_folder
from dr.errors import DrError, LockedError
from dr.layout import Root, RunFolder
from dr.process import Identity
from dr.settings import Settings
from dr.waiter import Waiter

PATIENCE_S = 30.0  # for a runner to end its subagents and write its files


def stop(root: Root, folder: RunFolder, settings: Settings) -> str:
    """Returns "runner" or "subagents": what there was to end. DrError when a runner does not go."""
    runner = _runner_of(folder)
    if runner is not None:
        process.send(runner, process.SOFT)
        with Waiter() as waiter:
            waiter.add("runner", runner)
            waiter.wait(PATIENCE_S)
        if process.alive(runner):
            raise DrError(
                f"stop task {folder.task}", f"its runner, process {runner.pid}, does not end", "end it by hand"
            )
    try:
        from dr import session

        with session.opened(root, folder, settings, lambda record: None, deepens=False) as opened:
            opened.interrupt()
    except LockedError:
        if runner is not None:
            raise
        # A runner that starts this moment: it has the lock and its record is not written yet.
        time.sleep(0.5)
        return stop(root, folder, settings)
    return "runner" if runner is not None else "subagents"


def _runner_of(folder: RunFolder) -> Identity | None:
    recorded = run_folder.read_record(folder).runner
    try:
        identity = Identity.from_dict(recorded) if recorded else None
    except (KeyError, TypeError, ValueError):
        return None
    return identity if identity is not None and process.alive(identity) else None
