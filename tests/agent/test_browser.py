"""dr/agent/browser.py and gate.py: a page of scripts gets its text, and nothing gets to a private address.

The tests of the browser itself are skipped where no Chromium is installed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from website import Website, html

from dr.agent import browser
from dr.agent.addresses import Resolve, is_public, resolver
from dr.agent.browser import Browser
from dr.agent.fetch import Fetcher
from dr.agent.gate import Gate
from dr.agent.hosts import HostLocks, held
from dr.agent.snapshots import Snapshots
from dr.agent.unreadable import Unreadable
from dr.agent.web import Web
from dr.layout import SnapshotFolder
from dr.process import identify
from dr.settings import Settings

CHROMIUM = next(filter(None, map(shutil.which, browser.NAMES)), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason=f"none of {', '.join(browser.NAMES)} is installed")
needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in browser is a shell script")


def of(root: Path, **other: Any) -> Browser:
    return Browser(other.pop("resolve", resolver(True)), HostLocks(root / "hosts"), folder=root / "lock", **other)


def web(root: Path, with_browser: Browser) -> Web:
    fetcher = Fetcher(with_browser.hosts, allow_private=True, sleep=lambda _: None)
    return Web(Settings(), Snapshots(SnapshotFolder(root / "sources")), fetcher, with_browser)


def stand_in(root: Path, script: str) -> Any:
    """A `find` that knows a browser made of a shell script."""
    path = root / "stand-in"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return lambda name: str(path) if name == "chromium" else None


def only_first_loopback(host: str, port: int) -> list[tuple[int, Any]]:
    """127.0.0.1, which is public.example, counts as public; other private addresses, as inner.example, are refused."""
    address = {"public.example": "127.0.0.1", "inner.example": "127.0.0.2"}.get(host, host)
    if address != "127.0.0.1" and not is_public(address):
        raise Unreadable("private", host, host=host, address=address)
    return [(socket.AF_INET, (address, port))]


@pytest.fixture
def homes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The homes that were made for browsers; each process of one has it in its environment."""
    made: list[str] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **others: Any) -> None:
            made.append(others["env"]["HOME"])
            super().__init__(*arguments, **others)

    monkeypatch.setattr(browser.subprocess, "Popen", Noted)
    return made


def lives_in(home: str) -> Callable[[psutil.Process], bool]:
    def lives(process: psutil.Process) -> bool:
        try:
            return process.status() != psutil.STATUS_ZOMBIE and process.environ().get("HOME") == home
        except (psutil.Error, OSError):
            return False

    return lives


# With a browser


@pytest.mark.costly
@needs_chromium
def test_a_page_of_scripts_is_read_and_nothing_is_left_behind(tmp_path: Path, site: Website, homes: list[str]) -> None:
    document = web(tmp_path, of(tmp_path)).web_fetch(f"{site.url}/app")
    assert "The harbour master is Ivo Brandt." in document.passages[0].text
    assert document.passages[0].place == f"{site.url}/app"
    assert len(homes) == 1 and not Path(homes[0]).exists() and not any(map(lives_in(homes[0]), psutil.process_iter()))
    assert sorted(p.name for p in (tmp_path / "lock").iterdir()) == ["browser.lock"]


@pytest.mark.costly
@needs_chromium
def test_what_a_page_loads_passes_the_gate(tmp_path: Path, site: Website) -> None:
    """A page of the open net reaches no private address through a name: no picture, frame, script or request."""
    private = f"http://inner.example:{site.port}"
    tries = (
        f"<img src='{private}/img'><iframe src='{private}/frame'></iframe><script src='{private}/js'></script>"
        f"<script>fetch('{private}/fetch', {{mode: 'no-cors'}}).catch(() => 0);"
        f"try {{ new WebSocket('ws://inner.example:{site.port}/ws') }} catch (e) {{}}"
        "fetch('/notes').then(r => r.text()).then(t => { document.body.innerHTML += '<p>' + t + '</p>' })</script>"
    )
    site.pages["/page"] = lambda: (200, {"Content-Type": "text/html"}, html("Loads", "One.", body=tries).encode())
    dom = of(tmp_path, resolve=only_first_loopback).render(f"http://public.example:{site.port}/page")
    assert b"completed in 1911" in dom  # the page's own request was let through
    assert site.asked["/notes"] == 1
    for path in ("/img", "/frame", "/js", "/fetch", "/ws"):
        assert path not in site.asked


@pytest.mark.costly
@needs_chromium
def test_a_page_cannot_send_datagrams(tmp_path: Path, site: Website) -> None:
    """WebRTC would go around a proxy. The page's requests keep its clock from running ahead of real packets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(0.2)
        server = f"stun:127.0.0.1:{listener.getsockname()[1]}"
        script = (
            f"<script>const c = new RTCPeerConnection({{iceServers: [{{urls: '{server}'}}]}});"
            "c.createDataChannel('x'); c.createOffer().then(o => c.setLocalDescription(o));"
            "let n = 0; const timer = setInterval(() => { fetch('/notes?' + n); if (++n >= 200) { clearInterval(timer);"
            "document.body.innerHTML += '<p>gathered</p>' } }, 10)</script>"
        )
        site.pages["/rtc"] = lambda: (200, {"Content-Type": "text/html"}, html("RTC", "One.", body=script).encode())
        assert b"<p>gathered</p></body>" in of(tmp_path).render(f"{site.url}/rtc")
        with pytest.raises(TimeoutError):
            listener.recv(100)


@pytest.mark.costly
@needs_chromium
def test_a_private_page_is_refused_in_the_browser(tmp_path: Path, site: Website) -> None:
    blocked = of(tmp_path, resolve=resolver(False))
    with pytest.raises(Unreadable) as raised:
        blocked.render(f"{site.url}/app")
    assert raised.value.reason == "private" and not site.asked


@pytest.mark.costly
@needs_chromium
def test_a_page_that_never_ends_is_ended(tmp_path: Path, site: Website, homes: list[str]) -> None:
    endless = b"<html><body><script>for (;;) {}</script></body></html>"
    site.pages["/endless"] = lambda: (200, {"Content-Type": "text/html"}, endless)
    with pytest.raises(Unreadable) as raised:
        of(tmp_path, render_s=3.0).render(f"{site.url}/endless")
    assert raised.value.reason in ("browser_timeout", "browser_failed")
    assert homes and not any(map(lives_in(homes[0]), psutil.process_iter()))


# With a stand-in, or none


@needs_posix
def test_the_holder_is_on_record_while_it_holds(tmp_path: Path) -> None:
    holder = tmp_path / "lock" / "holder.json"
    find = stand_in(tmp_path, f"cat {holder}")
    record = json.loads(of(tmp_path, find=find).render("http://127.0.0.1:9/"))
    me = identify(os.getpid())
    assert me is not None and record == me.to_dict()
    assert not holder.exists()


@needs_posix
def test_the_browser_knows_nothing_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DR_API_KEY", "sk-secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://ann:s3cret@proxy.example")
    printed = of(tmp_path, find=stand_in(tmp_path, 'env; echo "$@"')).render("http://127.0.0.1:9/page").decode()
    assert "secret" not in printed and "s3cret" not in printed
    assert f"HOME={Path.home()}\n" not in printed
    for flag in ("--headless=new", "--user-data-dir=", "--proxy-server=http://127.0.0.1:", "<-loopback>", "/page"):
        assert flag in printed


@needs_posix
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("sleep 60 & sleep 60", "browser_timeout"),
        ("exit 3", "browser_failed"),
        ("head -c 3000000 /dev/zero", "too_large_page"),
    ],
)
def test_a_browser_that_gives_no_page(tmp_path: Path, script: str, reason: str) -> None:
    wayward = of(tmp_path, find=stand_in(tmp_path, script), render_s=5.0 if "sleep" not in script else 0.3)
    wayward.max_bytes = 2_000_000
    with pytest.raises(Unreadable) as raised:
        wayward.render("http://127.0.0.1:9/")
    assert raised.value.reason == reason
    assert not psutil.Process().children(recursive=True)


def test_a_busy_browser_is_not_waited_for_for_ever(tmp_path: Path, site: Website) -> None:
    busy = of(tmp_path, find=lambda _: sys.executable, wait_s=0.1)
    with held(tmp_path / "lock" / "browser.lock", 1, lambda: Unreadable("empty")), pytest.raises(Unreadable) as raised:
        web(tmp_path, busy).web_fetch(f"{site.url}/app")
    assert raised.value.reason == "needs_javascript"
    assert "in use" in raised.value.why("en") and "正被占用" in raised.value.why("zh")


@pytest.mark.parametrize("path", ["app", "app-asks"])
def test_without_a_browser_it_says_that_scripts_are_needed(tmp_path: Path, site: Website, path: str) -> None:
    with pytest.raises(Unreadable) as raised:
        web(tmp_path, of(tmp_path, find=lambda _: None)).web_fetch(f"{site.url}/{path}")
    assert raised.value.reason == "needs_javascript"
    assert "no Chromium" in str(raised.value) and "没有找到 Chromium" in raised.value.why("zh")
    assert site.asked[f"/{path}"] == 1


@pytest.mark.parametrize(("path", "reason"), [("blank", "page_empty"), ("empty", "page_empty")])
def test_an_empty_page_without_scripts_needs_no_browser(tmp_path: Path, site: Website, path: str, reason: str) -> None:
    def unexpected(_: str) -> str:
        raise AssertionError("a browser is looked for")

    with pytest.raises(Unreadable) as raised:
        web(tmp_path, of(tmp_path, find=unexpected)).web_fetch(f"{site.url}/{path}")
    assert raised.value.reason == reason


def test_a_short_page_with_a_script_is_a_page(tmp_path: Path, site: Website) -> None:
    document = web(tmp_path, of(tmp_path, find=lambda _: None)).web_fetch(f"{site.url}/short")
    assert "The pier opens at nine." in document.passages[0].text


# The gate


def ask(gate: Gate, request: bytes) -> bytes:
    host, port = gate.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as client:
        client.sendall(request)
        answer = b""
        while piece := client.recv(65_536):
            answer += piece
        return answer


@pytest.mark.parametrize("resolve", [resolver(True), only_first_loopback])
def test_the_gate_lets_through_what_may_be_reached(site: Website, resolve: Resolve) -> None:
    with Gate(resolve) as gate:
        request = f"GET {site.url}/notes?a=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nProxy-Connection: keep-alive\r\n\r\n"
        assert b"completed in 1911" in ask(gate, request.encode())
        inner = b"GET /notes HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        answer = ask(gate, f"CONNECT 127.0.0.1:{site.port} HTTP/1.1\r\n\r\n".encode() + inner)
        assert answer.startswith(b"HTTP/1.1 200") and b"completed in 1911" in answer
    assert gate.refused == [] and "Proxy-Connection" not in site.headers[0]


@pytest.mark.parametrize("method", ["GET http://{}/notes", "CONNECT {}"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "169.254.169.254", "[::1]"])
def test_the_gate_refuses_private_addresses(site: Website, method: str, host: str) -> None:
    with Gate(resolver(False)) as gate:
        request = method.format(f"{host}:{site.port}") + " HTTP/1.1\r\nHost: x\r\n\r\n"
        assert ask(gate, request.encode()).startswith(b"HTTP/1.1 403")
    assert len(gate.refused) == 1 and not site.asked


@pytest.mark.parametrize(
    "request_",
    [b"\r\n\r\n", b"GET\r\n\r\n", b"GET file:///etc/passwd HTTP/1.1\r\n\r\n", b"\xff\xfe x y\r\n\r\n", b"x" * 99_999],
)
def test_the_gate_hangs_up_on_what_is_no_request(request_: bytes) -> None:
    with Gate(resolver(True)) as gate, contextlib.suppress(ConnectionError):  # hung up on while still sending
        assert ask(gate, request_) == b""


def test_a_closed_gate_leaves_no_thread(site: Website) -> None:
    before = threading.active_count()
    with Gate(resolver(True)) as gate:
        host, port = gate.address.removeprefix("http://").split(":")
        idle = socket.create_connection((host, int(port)), 10)
        ask(gate, f"GET {site.url}/notes HTTP/1.1\r\n\r\n".encode())
    idle.close()
    assert not [t for t in threading.enumerate() if t.name.endswith(("(_serve)", "(_accept)"))]
    assert threading.active_count() <= before + 1  # the site's own
