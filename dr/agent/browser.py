"""A page that shows its text by JavaScript -> its DOM, through headless Chromium where there is one.

One browser at a time on this machine, held by a file lock that dies with its holder; a record beside it says whose.
Enforced: http(s) and WebSocket pass the gate, to checked addresses only; profile, home and environment hold nothing of
the user's. Not enforced: Chromium's own sandbox is off (as root and in containers it cannot start), so that a fault of
Chromium could reach what this user can reach. Behind a proxy that is the only way out, the browser reaches nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from dr import files
from dr.agent.addresses import Resolve
from dr.agent.gate import Gate
from dr.agent.hosts import HostLocks, held
from dr.agent.unreadable import Unreadable
from dr.errors import FormatError

NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-dev-shm-usage --disable-breakpad --disable-extensions --mute-audio
--disable-default-apps --no-default-browser-check --hide-scrollbars --no-pings --password-store=basic
--webrtc-ip-handling-policy=disable_non_proxied_udp --force-webrtc-ip-handling-policy=disable_non_proxied_udp
--proxy-bypass-list=<-loopback> --dump-dom""".split()
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "SystemRoot", "_DR_SUBAGENT")  # the last: whose tree it is

_HOMES = ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


def lock_folder() -> Path:
    """Where this machine's browser lock is: not in a home, which several machines may share."""
    user = f"-{os.getuid()}" if sys.platform != "win32" else ""
    return Path(tempfile.gettempdir()) / f"dr-runner-browser{user}"


class Browser:
    """wait_s: for another subagent's browser; render_s: for one page; budget_ms: of the page's own clock."""

    def __init__(
        self,
        resolve: Resolve,
        hosts: HostLocks,
        *,
        folder: Path | None = None,
        find: Callable[[str], str | None] = shutil.which,
        wait_s: float = 60.0,
        render_s: float = 40.0,
        budget_ms: int = 8_000,
        max_bytes: int = 10 * 1024 * 1024,
    ) -> None:
        self.resolve, self.hosts, self.find = resolve, hosts, find
        self.folder = folder or lock_folder()
        self.wait_s, self.render_s, self.budget_ms, self.max_bytes = wait_s, render_s, budget_ms, max_bytes

    def render(self, url: str) -> bytes:
        """The DOM of `url` as UTF-8 HTML, after its scripts. Unreadable says why there is none."""
        program = next(filter(None, map(self.find, NAMES)), None)
        if program is None:
            raise Unreadable("browser_missing", url)
        record = self.folder / "holder.json"

        def busy() -> Unreadable:
            return Unreadable("browser_busy", url, holder=_who(record))

        with (
            held(self.folder / "browser.lock", self.wait_s, busy),
            _recorded(record),
            self.hosts.one_at_a_time(urlsplit(url).hostname or ""),
            tempfile.TemporaryDirectory(prefix="dr_browser_", dir=_short_folder(), ignore_cleanup_errors=True) as home,
            Gate(self.resolve) as gate,
        ):
            return self._dump(program, url, Path(home), gate)

    def _dump(self, program: str, url: str, home: Path, gate: Gate) -> bytes:
        argv = [
            *(program, *_FLAGS, f"--user-data-dir={home / 'profile'}", f"--proxy-server={gate.address}"),
            *(f"--virtual-time-budget={self.budget_ms}", f"--timeout={round(self.render_s * 1000)}", url),
        ]
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment |= dict.fromkeys(_HOMES, str(home))
        try:
            process = subprocess.Popen(
                argv,
                cwd=home,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as error:
            raise Unreadable("browser_failed", url, detail=error.strerror or type(error).__name__) from error
        try:
            dom = self._read(process, url)
        finally:
            _end(process)
        if gate.refused and not dom.strip():
            raise gate.refused[0].at(url)
        if not dom.strip():
            raise Unreadable("browser_failed", url, detail=f"exit code {process.returncode}")
        return dom

    def _read(self, process: subprocess.Popen[bytes], url: str) -> bytes:
        """What it prints, at most `max_bytes` and for at most `render_s` seconds."""
        assert process.stdout is not None
        stream = process.stdout
        printed: list[bytes] = []
        reader = threading.Thread(target=lambda: printed.append(stream.read(self.max_bytes + 1)), daemon=True)
        reader.start()
        reader.join(self.render_s)
        if not printed:
            _end(process)  # which ends the reading too
            reader.join(5)
            raise Unreadable("browser_timeout", url, seconds=f"{self.render_s:g}")
        if len(printed[0]) > self.max_bytes:
            raise Unreadable("too_large_page", url, limit=self.max_bytes // (1024 * 1024))
        return printed[0]


def _short_folder() -> str | None:
    """Where the browser's home is made. Its sockets are below it, and their paths may have 104 characters only."""
    long = sys.platform != "win32" and len(tempfile.gettempdir()) > 30
    return "/tmp" if long and os.access("/tmp", os.W_OK) else None


def _end(process: subprocess.Popen[bytes]) -> None:
    """The browser and all it has started, at once. They share our process group, so that a runner that ends the
    subagent ends them too; so they are found by descent."""
    from dr.process import identify
    from dr.trees import end_tree

    if (identity := identify(process.pid)) is not None:
        end_tree(identity, soft_s=0.0)
    process.wait()
    if process.stdout:
        process.stdout.close()


@contextmanager
def _recorded(path: Path) -> Iterator[None]:
    """Who has the browser: this process, for as long as it lasts."""
    from dr.process import identify

    identity = identify(os.getpid())
    files.write_json(path, identity.to_dict() if identity else {"pid": os.getpid()})
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _who(path: Path) -> str:
    try:
        return f"pid {int(files.read_json(path)['pid'])}"
    except (FormatError, OSError, KeyError, TypeError, ValueError):
        return "pid ?"
