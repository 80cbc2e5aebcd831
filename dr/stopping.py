"""`stop`: end a run from outside. The runner that drives it is asked; without one its subagents are ended here."""

from __future__ import annotations

import signal
import time

from dr import process, run_folder
from dr.errors import DrError, LockedError
from dr.layout import Root, RunFolder
from dr.process import Identity
from dr.settings import Settings
from dr.trees import end_marked
from dr.waiter import Waiter

PATIENCE_S = 30.0  # for a runner to end its subagents and write its files


def stop(root: Root, folder: RunFolder, settings: Settings) -> str:
    """Returns "runner", "subagents" or "nothing": what there was to end. DrError when a runner does not go."""
    from dr import session

    deadline = time.monotonic() + PATIENCE_S
    asked = False
    while True:
        runner = _runner_of(folder)
        if runner is not None:
            _end_runner(folder, runner)
            asked = True
        elif not asked and _is_over(folder):
            end_marked(folder.path, settings.grace_s)
            return "nothing"
        try:
            with session.opened(root, folder, settings, lambda record: None, deepens=False) as opened:
                opened.interrupt()
            return "runner" if asked else "subagents"
        except LockedError:
            # A runner that starts this moment: it has the lock and its record is not written yet.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _end_runner(folder: RunFolder, runner: Identity) -> None:
    process.send(runner, process.SOFT)
    if wake := getattr(signal, "SIGCONT", None):
        process.send(runner, wake)  # one that Ctrl-Z suspended hears nothing else
    with Waiter() as waiter:
        waiter.add("runner", runner)
        waiter.wait(PATIENCE_S)
    if process.alive(runner):
        raise DrError(
            f"stop task {folder.task}", f"its runner, process {runner.pid}, does not end", f"kill {runner.pid}"
        )


def _is_over(folder: RunFolder) -> bool:
    """It has its report: its end is not to become an interruption."""
    record = run_folder.read_record(folder)
    return record.status in ("completed", "failed") and record.runner is None


def _runner_of(folder: RunFolder) -> Identity | None:
    recorded = run_folder.read_record(folder).runner
    try:
        identity = Identity.from_dict(recorded) if recorded else None
    except (KeyError, TypeError, ValueError):
        return None
    return identity if identity is not None and process.alive(identity) else None
