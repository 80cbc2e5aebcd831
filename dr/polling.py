"""`start` and `poll`: the run driven in slices from separate processes, as an outer agent's tool calls need it.

Between two calls no runner lives: the subagents go on by themselves, and everything known is in files.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dr import files, overview, run_folder, session
from dr.contract import State
from dr.errors import EXIT_USAGE, DrError, LockedError
from dr.events import Listener
from dr.layout import HOME, Root, RunFolder
from dr.output import for_display
from dr.settings import Settings

START_S = 4.0  # `start` returns within 5 s, whatever is left to launch
LOOK_S = 0.25


def start(root: Root, folder: RunFolder, settings: Settings, listener: Listener) -> dict[str, Any]:
    """Launch what is ready and leave it running."""
    with session.opened(root, folder, settings, listener, deepens=False, leave=True) as opened:
        opened.runner.launch_ready()
    return overview.status(folder)


def detach(folder: RunFolder, root: Root, flags: Mapping[str, Any]) -> int:
    """A runner in the background that goes on by itself; returns its pid. Its output is in runner.log."""
    options = [f"--{k.removesuffix('_s').replace('_', '-')}={v}" for k, v in flags.items() if v is not None]
    argv = [sys.executable, str(HOME / "dr_runner.py"), "resume", folder.task, "--root", str(root.path), *options]
    extra: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        extra = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    with folder.log.open("ab") as log:
        child = subprocess.Popen(argv, cwd=root.path, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **extra)
    # Not before it holds the run's lock: a poll that came first would drive the run, and the runner would give up.
    deadline = time.monotonic() + START_S
    while (run_folder.read_record(folder).runner or {}).get("pid") != child.pid and time.monotonic() < deadline:
        if child.poll() is not None:
            break
        time.sleep(0.02)
    if child.poll() == EXIT_USAGE:
        last = files.read_text(folder.log).strip().rpartition("\n")[2]
        raise DrError(f"start task {folder.task} in the background", last, f"see {folder.log}")
    child.returncode = child.returncode or 0  # it is meant to outlive us: no warning about it
    return child.pid


def poll(root: Root, folder: RunFolder, settings: Settings, listener: Listener, wait_s: float) -> dict[str, Any]:
    """Collect, launch what became ready; return when something changed or after `wait_s` seconds."""
    before = _settled(folder)
    deadline = time.monotonic() + wait_s
    try:
        with session.opened(root, folder, settings, listener, deepens=False, leave=True) as opened:
            runner = opened.runner
            runner.drive(until=lambda: bool(_settled_now(runner) - before) or time.monotonic() >= deadline)
            if not runner.interrupted:
                runner.launch_ready()  # what the last answer made ready does not wait for the next poll
    except LockedError:
        # Somebody else drives the run, a detached runner or another poll: look on.
        while not (_settled(folder) - before) and time.monotonic() < deadline and _is_on(folder):
            time.sleep(LOOK_S)
    data = overview.status(folder)
    data["new"] = {i: _conclusion(folder, i) for i in sorted(_settled(folder) - before)}
    return data


def _is_on(folder: RunFolder) -> bool:
    return overview.effective_status(run_folder.read_record(folder)) == "running"


def _settled_now(runner: Any) -> set[str]:
    return {i for i, s in runner.machine.states.items() if s.settled}


def _settled(folder: RunFolder) -> set[str]:
    return {n.id for n in overview.plan(folder).work_nodes if n.state.settled}


def _conclusion(folder: RunFolder, node_id: str) -> str:
    """What is shown of one node's end: the beginning of its conclusion, or why there is none."""
    path: Path = folder.node(node_id).conclusion
    if path.exists():
        return for_display(files.read_text(path).strip())
    state = next(n.state for n in overview.plan(folder).work_nodes if n.id == node_id)
    return "" if state is State.DONE else state.value
