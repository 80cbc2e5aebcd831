"""A script -> its output, exit code and files, and what held it meanwhile. In: script or code, an empty work folder;
out: ScriptResult. Nothing that the script started runs on afterwards; its files stay in the work folder."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from dr.agent import bubblewrap
from dr.agent.artefacts import Artefact, collect, disk_use
from dr.agent.code_words import say
from dr.agent.script_tree import ScriptTree, adopting, children_of_ours, memory_of, tasks_of_user
from dr.errors import SourceError, UsageError
from dr.process import MARK

MB = 1024 * 1024
AUTO, BUBBLEWRAP, LIMITS = "auto", "bubblewrap", "limits"  # isolation
PYTHON = (".py", ".pyw")
_LAUNCHER = Path(__file__).with_name("limited.py")
_TICK_S, _DISK_TICKS = 0.05, 4
_LAST_TICK_S = 0.001  # once its outputs are closed it is about to end
_CPU_SIGNALLED, _SIZE_SIGNALLED = 128 + 24, 128 + 25  # by SIGXCPU, SIGXFSZ


@dataclass(frozen=True)
class Limits:
    """Bytes and counts for one script. memory: address space of one process, and resident memory of all together."""

    memory: int = 2048 * MB
    file_size: int = 100 * MB
    disk: int = 512 * MB
    files: int = 10_000
    open_files: int = 256
    processes: int = 64
    output: int = 4 * MB


@dataclass(frozen=True)
class ScriptResult:
    """ended: why it was ended, "" when it came to its own end: time, cpu, memory, processes, output, disk, file_size.

    exit_code: 128+N for death by signal N, None when it was ended. enforced, not_enforced: of ASPECTS.
    artefacts: files in the work folder. why_not: key of the reason for less than full isolation, "" for full.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    artefacts: list[Artefact]
    enforced: list[str]
    not_enforced: list[str]
    ended: str = ""
    seconds: float = 0.0
    why_not: str = ""
    left_out: list[str] = field(default_factory=list)  # files that are no artefacts

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.ended


# What a script may be held from; each has its words in dr/agent/code_words.py.
ASPECTS = (
    *("time", "cpu", "memory", "processes", "file_size", "disk", "open_files", "output", "environment"),
    *("network", "reading", "writing", "others", "leftovers"),
)


def aspects(isolation: str, *, adopted: bool = True) -> tuple[list[str], list[str]]:
    """(enforced, not enforced) by bubblewrap or by limits alone on this platform."""
    held = {"time", "disk", "output", "environment"}
    if isolation == BUBBLEWRAP:
        held = set(ASPECTS)
    elif sys.platform != "win32":
        held |= {"cpu", "file_size", "open_files"}
        held |= {"memory"} if sys.platform != "darwin" else set()  # macOS takes the limit and does not keep it
        # RLIMIT_NPROC does not hold root, and counts all that the user runs, which has to be known.
        held |= {"processes"} if sys.platform == "linux" and os.getuid() != 0 else set()
        held |= {"leftovers"} if adopted else set()
    return [a for a in ASPECTS if a in held], [a for a in ASPECTS if a not in held]


def run_script(
    code: str | Path,
    *,
    timeout: float = 10,
    work: Path,
    read_only: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    interpreter: str = sys.executable,
    isolation: str = AUTO,
    limits: Limits = Limits(),
) -> ScriptResult:
    """Run Python code, or a script by its path, in the folder `work`, and end all of it after `timeout` seconds.

    read_only: what else it may read, under the same paths; hidden: not even when it lies in there. isolation: `auto`
    takes bubblewrap where it works. UsageError when bubblewrap is asked for and does not; SourceError: no script.
    """
    work = work.absolute()
    temporary = work / ".tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    if isinstance(code, str):
        script = work / ".code.py"
        script.write_text(code, encoding="utf-8", errors="replace")
    else:
        script = code.absolute()
        read_only = [*read_only, script]
    command = command_of(script, interpreter)
    env = environment(work, temporary, interpreter)
    why_not = "not_wanted"
    boxed: list[str] = []
    if isolation != LIMITS:
        found = bubblewrap.probe(interpreter)
        if found.path is not None:
            shown = bubblewrap.with_user_site([path.absolute() for path in read_only], env)
            boxed = bubblewrap.arguments(found.path, bubblewrap.Mounts(work, shown, hidden), interpreter)
        elif isolation == BUBBLEWRAP:
            wrong = say("en", found.reason) + (f" ({found.detail})" if found.detail else "")
            raise UsageError("run a script in bubblewrap", wrong, "install it, or run without")
        why_not = found.reason
    argv = [*_launcher("exec" if boxed else "fork", timeout, limits), *boxed, *command]
    with adopting() as adopted:
        run = _Run(argv, work, env, timeout, limits)
        run.wait()
    enforced, not_enforced = aspects(BUBBLEWRAP if boxed else LIMITS, adopted=adopted and not run.survivors)
    artefacts, left_out = collect(work)
    return ScriptResult(
        *(run.stdout.text(), run.stderr.text(), run.exit_code, artefacts, enforced, not_enforced),
        *(run.ended, run.seconds, why_not, left_out),
    )


def is_script(path: Path) -> bool:
    """Whether `path` can be run: Python by its suffix, else an executable file that begins with #!"""
    if not path.is_file():
        return False
    if path.suffix.lower() in PYTHON:
        return True
    if sys.platform == "win32" or not os.access(path, os.X_OK):
        return False
    with path.open("rb") as stream:
        return stream.read(2) == b"#!"


def command_of(script: Path, interpreter: str) -> list[str]:
    """SourceError when nothing says what should run it."""
    if not is_script(script):
        raise SourceError(
            f"run {script}",
            "it is no Python file (.py) and no executable file with a #! line",
            "give a Python script, or add a #! line and make it executable",
        )
    return [interpreter, str(script)] if script.suffix.lower() in PYTHON else [str(script)]


def environment(work: Path, temporary: Path, interpreter: str) -> dict[str, str]:
    """All that a script is told; nothing of ours but the language and the runner's mark. Results do not vary by it."""
    import site

    env = {name: os.environ[name] for name in ("LANG", MARK) if name in os.environ}
    env.setdefault("LANG", "C.UTF-8")
    env |= {"HOME": str(work), "TMPDIR": str(temporary), "MPLCONFIGDIR": str(temporary), "MPLBACKEND": "Agg"}
    env |= {"PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    # A thread per core, each with an arena of its own, would meet the limit on memory on a large machine.
    env |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    if sys.platform == "win32":
        env |= {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "PATHEXT") if name in os.environ}
        env |= {"TEMP": str(temporary), "TMP": str(temporary), "USERPROFILE": str(work)}
    else:
        path = [str(Path(interpreter).parent), *"/usr/local/bin /usr/bin /bin".split()]
        env["PATH"] = os.pathsep.join(dict.fromkeys(path))
    if site.ENABLE_USER_SITE and interpreter == sys.executable:
        env["PYTHONUSERBASE"] = site.getuserbase()
    return env


def _launcher(how: str, timeout: float, limits: Limits) -> list[str]:
    if sys.platform == "win32":
        return []
    values = {"CORE": 0, "CPU": math.ceil(timeout) + 1, "FSIZE": limits.file_size, "NOFILE": limits.open_files}
    if sys.platform != "darwin":
        values["AS"] = limits.memory
    if os.getuid() != 0 and (running := tasks_of_user()) is not None:
        values["NPROC"] = running + limits.processes
    spec = ",".join(f"{name}={value}" for name, value in values.items())
    return [sys.executable, "-I", "-S", str(_LAUNCHER), how, str(os.getpid()), spec]


class _Stream:
    """One output of a script, read in a thread; nothing is kept beyond `most` bytes."""

    def __init__(self, stream: IO[bytes], most: int, wake: threading.Event) -> None:
        self._stream, self._most, self._wake = stream, most, wake
        self._data = bytearray()
        self.full = self.closed = False
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        while chunk := os.read(self._stream.fileno(), 65536):
            room = self._most - len(self._data)
            self._data += chunk[:room]
            if len(chunk) > room and not self.full:
                self.full = True
                self._wake.set()
        self.closed = True
        self._wake.set()

    def text(self) -> str:
        return bytes(self._data).decode("utf-8", errors="replace").replace("\r\n", "\n")

    def close(self) -> None:
        self.thread.join(timeout=2)
        if not self.thread.is_alive():
            self._stream.close()


class _Run:
    """One process with all below it, from start to end."""

    def __init__(self, argv: list[str], work: Path, env: dict[str, str], timeout: float, limits: Limits) -> None:
        self._work, self._limits = work, limits
        self.ended = ""
        self.survivors: list[int] = []
        self._wake = threading.Event()
        self._ticks = 0
        known = children_of_ours()
        flags = 0
        if sys.platform == "win32":
            flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
        self._began = time.monotonic()
        self._deadline = self._began + timeout
        self._popen = subprocess.Popen(
            argv,
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            creationflags=flags,
        )
        self._tree = ScriptTree(self._popen.pid, known)
        assert self._popen.stdout is not None and self._popen.stderr is not None
        self.stdout = _Stream(self._popen.stdout, limits.output, self._wake)
        self.stderr = _Stream(self._popen.stderr, limits.output, self._wake)
        self.seconds = 0.0
        self.exit_code: int | None = None

    def wait(self) -> None:
        """Until it has ended, or has to be; then nothing of it is left."""
        try:
            pause = _LAST_TICK_S
            while not self._exited() and not self.ended:
                if self.stdout.closed and self.stderr.closed and pause < _TICK_S:
                    time.sleep(pause)
                    pause *= 2
                    continue
                self._wake.wait(min(_TICK_S, max(0.0, self._deadline - time.monotonic())))
                self._wake.clear()
                self.ended = self._overrun()
            self.seconds = time.monotonic() - self._began
        finally:
            self.survivors = self._tree.end()
            code = self._popen.wait()
            self.stdout.close()
            self.stderr.close()
        if not self.ended:
            code = code if code >= 0 else 128 - code
            self.ended = {_CPU_SIGNALLED: "cpu", _SIZE_SIGNALLED: "file_size"}.get(code, "")
            self.exit_code = None if self.ended else code
        if not self.ended and (self.stdout.full or self.stderr.full):
            self.ended, self.exit_code = "output", None

    def _exited(self) -> bool:
        """Not reaped yet where that can be had: until the rest of its group has been ended its number stays taken."""
        if sys.platform != "win32" and hasattr(os, "waitid"):
            return os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return self._popen.poll() is not None

    def _overrun(self) -> str:
        """What it has had too much of."""
        if self.stdout.full or self.stderr.full:
            return "output"
        if time.monotonic() >= self._deadline:
            return "time"
        rows = self._tree.rows()
        if len(rows) > self._limits.processes:
            return "processes"
        if memory_of(rows) > self._limits.memory:
            return "memory"
        self._ticks += 1
        if self._ticks % _DISK_TICKS == 0:
            size, count = disk_use(self._work, self._limits.files)
            if size > self._limits.disk or count > self._limits.files:
                return "disk"
        return ""
