"""Operating-system processes: start one, know it again later, see how it ended, signal it, find a lost one.

In: argv, folder, environment, two log files. Out: Child, Identity, ExitInfo. No other module uses psutil, and this one
loads it when it is needed first: on Linux a run that nothing disturbs never needs it.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from dr.errors import DrError, FatalError, UsageError

# In the environment of all we start, so that a group whose leader is gone can be told from a stranger's (pids come
# round again). Not DR_…: those are settings.
MARK = "_DR_SUBAGENT"
SOFT = signal.SIGTERM
HARD = getattr(signal, "SIGKILL", signal.SIGTERM)


class Identity(NamedTuple):
    """One process for ever: a pid alone comes round again. Made by identify(); stored with all three fields.

    create_time: on Linux seconds since boot, as the kernel has it (psutil's epoch time moves whenever the clock is
    set), and `boot` says which boot; elsewhere seconds since the epoch, and `boot` is empty.
    """

    pid: int
    create_time: float
    boot: str = ""

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Identity:
        """From a record with these keys; KeyError, TypeError or ValueError for anything else."""
        return cls(int(data["pid"]), float(data["create_time"]), str(data.get("boot", "")))


class ExitInfo(NamedTuple):
    """code: exit code, -N for death by signal N, None when the process was not our child. peak_bytes: most memory held,
    None where wait4 is missing or Linux shows no more than our own peak, which every child inherits as a floor."""

    code: int | None
    peak_bytes: int | None = None

    def __str__(self) -> str:
        if self.code is None:
            return "the process is gone, exit code unknown"
        if self.code < 0:
            try:
                return f"killed by {signal.Signals(-self.code).name}"
            except ValueError:
                return f"killed by signal {-self.code}"
        return f"exit code {self.code}"


class Running(NamedTuple):
    """A process that runs now, with its command line and working directory ("" when that may not be read)."""

    identity: Identity
    argv: tuple[str, ...]
    cwd: str


class Child:
    """A process that start() started."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self._reaping = threading.Lock()  # a tree may be ended, and its root reaped, in a thread
        row = _row(popen.pid)  # a zombie's too: nobody but us can have reaped it
        self.identity = row.identity if row else Identity(popen.pid, 0.0)
        self.exit: ExitInfo | None = None

    @property
    def pid(self) -> int:
        return self.identity.pid

    def poll(self) -> ExitInfo | None:
        """How it ended, or None while it runs. Reaps it the first time."""
        with self._reaping:
            if self.exit is None:
                self.exit = self._reap()
            return self.exit

    def _reap(self) -> ExitInfo | None:
        if sys.platform == "win32":
            code = self._popen.poll()
            return None if code is None else ExitInfo(code)
        try:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        except ChildProcessError:  # SIGCHLD is ignored in this process, or somebody else waited
            self._popen.returncode = 0
            return ExitInfo(None)
        if not pid:
            return None
        code = os.waitstatus_to_exitcode(status)
        self._popen.returncode = code  # what Popen itself would have seen
        return ExitInfo(code, _peak(usage.ru_maxrss))

    def release(self) -> None:
        """It runs on after us: nobody here will wait for it."""
        if self._popen.returncode is None:
            self._popen.returncode = 0  # else Popen warns of a process left behind, which is what is wanted


def _peak(maxrss: int) -> int | None:
    if sys.platform == "win32":
        return None
    import resource

    # exec() hands the parent's peak on to the child, so up to there the number says nothing about the child.
    if maxrss <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
        return None
    return maxrss if sys.platform == "darwin" else maxrss * 1024


def start(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: Path, stderr: Path) -> Child:
    """Start `argv` as leader of its own session and process group, stdin empty, output to two files and no pipe to us.

    UsageError when the program or the folder cannot be used, FatalError when the disk is full, DrError otherwise.
    """
    tried = f"start {argv[0]}"
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    try:
        with stdout.open("wb") as out, stderr.open("wb") as err:
            return Child(
                subprocess.Popen(
                    list(argv),
                    cwd=cwd,
                    env={**env, MARK: str(stdout)},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    creationflags=flags,
                )
            )
    except OSError as error:
        raise _start_error(tried, error, cwd) from error


def _start_error(tried: str, error: OSError, cwd: Path) -> DrError:
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return FatalError(tried, "the disk is full", "free some space, then resume the task")
    if not cwd.is_dir():
        return UsageError(tried, f"its working directory {cwd} does not exist", "give an existing folder with --root")
    if isinstance(error, FileNotFoundError):
        return UsageError(tried, "no such program", "check --agent and --launch, or install it")
    if isinstance(error, PermissionError):
        return UsageError(tried, "it may not be executed", f"make it executable: {error}")
    if error.errno == errno.ENOEXEC:
        return UsageError(tried, "it is no program", "give the script a first line such as #!/bin/sh")
    return DrError(tried, str(error), "lower --max-parallel if processes or open files ran out, then resume the task")


class Row(NamedTuple):
    """A line of the process table. session: 0 where unknown."""

    identity: Identity
    parent: int
    group: int
    session: int
    zombie: bool


@cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _row_of_proc(pid: int) -> Row | None:
    """A fifth of psutil's cost for the same fields, and no clock in it."""
    if sys.platform == "win32":
        return None
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:  # noqa: PTH123 - read once a process, so Path's share counts
            text = stream.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # pid (name) state ppid pgrp session … starttime; the name may hold spaces and brackets
    fields = text[text.rindex(b")") + 2 :].split(None, 20)
    identity = Identity(pid, int(fields[19]) / os.sysconf("SC_CLK_TCK"), _boot_id())
    return Row(identity, int(fields[1]), int(fields[2]), int(fields[3]), fields[0] in b"ZX")


def _row_of_psutil(pid: int) -> Row | None:
    import psutil

    try:
        process = psutil.Process(pid)
        zombie = process.status() == psutil.STATUS_ZOMBIE
        group = 0
        if sys.platform != "win32":
            group = os.getpgid(pid)
        return Row(Identity(pid, process.create_time()), process.ppid(), group, 0, zombie)
    except (psutil.Error, ProcessLookupError, PermissionError):
        return None


_row = _row_of_proc if sys.platform == "linux" else _row_of_psutil


def table(*, zombies: bool = False) -> list[Row]:
    """All that run now; zombies only when asked for. FatalError when the system shows none, not even this one."""
    if not (pids := _pids()):
        raise FatalError("see which processes run", "the system shows none", "mount /proc")
    return [row for pid in pids if (row := _row(pid)) and (zombies or not row.zombie)]


def _pids() -> list[int]:
    if sys.platform == "linux":
        with suppress(OSError):
            return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - a Path each is waste
        return []
    import psutil

    return psutil.pids()


def identify(pid: int) -> Identity | None:
    """The running process that has this pid now."""
    row = _row(pid)
    return row.identity if row and not row.zombie else None


def alive(identity: Identity) -> bool:
    """Whether this very process runs; a zombie and a stranger with its pid do not count."""
    return identify(identity.pid) == identity


def running() -> Iterator[Running]:
    """Every process whose command line we may read, oldest first, except ourselves."""
    import psutil

    for row in sorted(table(), key=lambda r: r.identity.create_time):
        if row.identity.pid == os.getpid():
            continue
        try:
            facts = psutil.Process(row.identity.pid).as_dict(["cmdline", "cwd"])  # None for what may not be read
        except psutil.NoSuchProcess:
            continue
        if facts["cmdline"] and alive(row.identity):
            yield Running(row.identity, tuple(facts["cmdline"]), facts["cwd"] or "")


def find(predicate: Callable[[Sequence[str], str], bool]) -> list[Identity]:
    """Processes for which predicate(argv, cwd) holds, oldest first: for a start that was never recorded."""
    return [p.identity for p in running() if predicate(p.argv, p.cwd)]


def marks() -> Iterator[tuple[Row, str]]:
    """Every process that start() started, at whatever remove, with the stdout it was given.

    Those whose environment we may not read are left out.
    """
    import psutil

    for row in table():
        with suppress(psutil.Error, OSError):
            mark = psutil.Process(row.identity.pid).environ().get(MARK)
            if mark is not None and alive(row.identity):
                yield row, mark


def marked(is_ours: Callable[[str], bool]) -> list[Row]:
    """Those with a stdout for which is_ours(path) holds; group leaders first, then the oldest."""
    found = [row for row, mark in marks() if is_ours(mark)]
    return sorted(found, key=lambda r: (r.group != r.identity.pid, r.identity.create_time, r.identity.pid))


def age(identity: Identity) -> float:
    """Seconds since it was started, whatever was done to the clock meanwhile (on Linux)."""
    if sys.platform == "linux":
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - identity.create_time)
    return max(0.0, time.time() - identity.create_time)


def of_this_boot(identity: Identity) -> bool:
    """False for one recorded before the machine was restarted: nothing of it can be left."""
    return not identity.boot or identity.boot == _boot_id()


def group_exists(group: int) -> bool:
    """Whether anybody is left in a process group; False where there are none."""
    if sys.platform == "win32":
        return False
    try:
        os.killpg(group, 0)
    except OSError as error:
        return error.errno == errno.EPERM
    return True


def has_mark(pid: int) -> bool:
    """Whether the process was started, at whatever remove, by start()."""
    import psutil

    try:
        return MARK in psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return False


@cache
def has_pidfd() -> bool:
    """Whether this kernel lets us hold a process as a file descriptor (Linux 5.3)."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def send(identity: Identity, number: int) -> None:
    """Signal this very process, or nobody when it is gone. On Windows every signal ends it."""
    # Gone already, or another user's: end_trees tells what is left.
    if sys.platform == "linux" and has_pidfd():
        with suppress(ProcessLookupError, PermissionError):
            handle = os.pidfd_open(identity.pid)
            try:
                if alive(identity):  # the handle holds what we looked at: no stranger can slip in between
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)
        return
    import psutil

    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        if alive(identity):
            psutil.Process(identity.pid).send_signal(number)


def wait_gone(identity: Identity) -> None:
    """Block until it is gone, reaping nothing: for a waiting thread where there is neither pidfd nor kqueue."""
    row = _row(identity.pid)
    if row is None or row.identity != identity:
        return
    import psutil

    with suppress(psutil.Error, ChildProcessError):
        if row.parent == os.getpid() and sys.platform != "win32" and hasattr(os, "waitid"):
            os.waitid(os.P_PID, identity.pid, os.WEXITED | os.WNOWAIT)
        elif not row.zombie:
            psutil.Process(identity.pid).wait()
