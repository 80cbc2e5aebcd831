"""Faults put into the runner alone, by environment: a kill before its n-th change of a file or process, another clock.

FAULT_ROOT: only changes below this folder count. FAULT_KILL: n. FAULT_NOTE: where to say what was about to be done.
FAULT_CLOCK: "SHIFT,AFTER": time.time() jumps by SHIFT seconds, AFTER seconds from now.
"""

import os
import signal
import sys
import time
from pathlib import Path

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _is_change(event, arguments, root):
    if event == "subprocess.Popen":
        return True
    if event not in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree"):
        return False
    if event == "open":
        _, mode, flags = arguments
        if not (set(mode) & set("wax+") if isinstance(mode, str) else (flags or 0) & _WRITES):
            return False
    return os.fspath(arguments[0]).startswith(root) if isinstance(arguments[0], str) else False


def _kill_at(number, root, note):
    count = 0
    busy = False

    def hook(event, arguments):
        nonlocal count, busy
        if busy or not _is_change(event, arguments, root):
            return
        count += 1
        if count == number:
            busy = True
            if note:
                with Path(note).open("a", encoding="utf-8") as stream:
                    stream.write(f"killed before {event} {' '.join(map(str, arguments[:2]))}\n")
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _shift_clock(shift, after):
    real, since = time.time, time.monotonic()
    time.time = lambda: real() + (shift if time.monotonic() - since >= after else 0.0)


if any(word.endswith("dr_runner.py") for word in sys.orig_argv):
    if os.environ.get("FAULT_KILL"):
        _kill_at(int(os.environ["FAULT_KILL"]), os.environ["FAULT_ROOT"], os.environ.get("FAULT_NOTE"))
    if os.environ.get("FAULT_CLOCK"):
        _shift_clock(*map(float, os.environ["FAULT_CLOCK"].split(",")))
