"""bubblewrap, where it is usable: the command line that shows a script its own folder, its sources and no network.

In: folders and interpreter; out: arguments to put in front of the script's command.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# What programs need of /etc to find libraries, fonts and the time zone; nothing about users, hosts or secrets.
_ETC = "ld.so.cache ld.so.conf ld.so.conf.d alternatives localtime fonts matplotlibrc mime.types".split()
_OF_PREFIX = ("bin", "lib", "lib32", "lib64", "pyvenv.cfg")  # not the whole: a prefix may be a home or a project
_TMP_BYTES = 64 * 1024 * 1024  # of /tmp and /dev/shm, which are memory


@dataclass(frozen=True)
class Mounts:
    """What a script sees. hidden: files and folders that are not shown even where they lie in what is shown."""

    work: Path | None
    read_only: Sequence[Path] = ()
    hidden: Sequence[Path] = ()


@dataclass(frozen=True)
class Probe:
    """path: of bwrap when it works here; else the reason, a key of dr/agent/code_words.py, and what bwrap said."""

    path: str | None
    reason: str = ""
    detail: str = ""


@cache
def probe(interpreter: str) -> Probe:
    """Whether `interpreter` can be started inside; tried once in the life of this process."""
    if sys.platform != "linux":
        return Probe(None, "not_linux")
    path = shutil.which("bwrap")
    if path is None:
        return Probe(None, "not_installed")
    command = [*arguments(path, Mounts(None), interpreter), interpreter, "-I", "-c", "pass"]
    try:
        done = subprocess.run(
            command, env={"LANG": "C.UTF-8"}, stdin=subprocess.DEVNULL, capture_output=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Probe(None, "not_usable", str(error))
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        return Probe(None, "not_usable", lines[-1])
    return Probe(path)


def arguments(bwrap: str, mounts: Mounts, interpreter: str) -> list[str]:
    """The command line up to the script's own command."""
    argv = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    argv += ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            argv += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            argv += ["--ro-bind", name, name]
    for name in _ETC:
        argv += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    shown = [part for prefix in _prefixes(interpreter) for name in _OF_PREFIX if (part := prefix / name).exists()]
    argv += ["--proc", "/proc", "--dev", "/dev", *_memory("/dev/shm"), *_memory("/tmp"), "--remount-ro", "/dev"]
    argv += _places(mounts, shown)
    argv += ["--remount-ro", "/"]
    if mounts.work is not None:
        argv += ["--chdir", str(mounts.work)]
    return [*argv, "--"]


def _memory(path: str) -> list[str]:
    return ["--size", str(_TMP_BYTES), "--tmpfs", path]


def _places(mounts: Mounts, shown: Sequence[Path]) -> list[str]:
    """Mounts from the outermost to the innermost: what lies inside another would else be covered by it."""
    every: dict[Path, list[str]] = {}
    for path in (*shown, *mounts.read_only):
        every[path] = ["--ro-bind", str(path.resolve()), str(path)]
    for path in mounts.hidden:
        if path not in every and any(path.is_relative_to(place) for place in (*every, Path("/usr"))):
            every[path] = ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    if mounts.work is not None:
        every[mounts.work] = ["--bind", str(mounts.work), str(mounts.work)]
    words = [word for path in sorted(every, key=lambda p: len(p.parts)) for word in every[path]]
    covers = [path for path, mount in every.items() if mount[0] == "--tmpfs"]
    return words + [word for path in covers for word in ("--remount-ro", str(path))]  # once all inside are in place


def _prefixes(interpreter: str) -> list[Path]:
    """Where an interpreter and its libraries lie, besides /usr: along every symlink that leads to it."""
    found = [Path(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)]
    if interpreter != sys.executable:
        found = []
    found += [path.parent.parent for path in _hops(Path(interpreter))]
    usr = Path("/usr")
    return [p for p in dict.fromkeys(found) if p != usr and usr not in p.parents and len(p.parts) > 1]


def _hops(path: Path) -> Iterator[Path]:
    for _ in range(40):
        yield path
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    yield path.resolve()


def with_user_site(read_only: Sequence[Path], environ: Mapping[str, str]) -> Sequence[Path]:
    """`read_only` and the folder of packages that the user installed for themselves, which lies in the home."""
    base = environ.get("PYTHONUSERBASE")
    library = Path(base) / "lib" if base else None
    return [*read_only, library] if library and library.is_dir() else read_only
