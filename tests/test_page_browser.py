"""The pages in a real Chromium: nothing overlaps or scrolls sideways at three widths, hostile text does nothing.

The pages forbid scripts, so a page of the test's own loads each in a frame, from one local server, and measures it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dr import page
from tests.folders import START, story
from tests.test_page import hostile_folder

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (390, 820, 1440)
pytestmark = [
    pytest.mark.costly,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

MEASURE = """<!doctype html><meta charset="utf-8"><body><script>
const pages = PAGES, widths = WIDTHS, found = [];
const sleep = ms => new Promise(go => setTimeout(go, ms));
function overlaps(doc) {
  const boxes = [];
  const texts = "h1,h2,h3,p,summary,dt,dd,.progress-counts li,nav a,.check,.cite,cite,th,td,mark";
  for (const e of doc.querySelectorAll(texts)) {
    if (e.querySelector("h1,h2,h3,p,summary,dt,dd,.check,.cite,th,td,mark") || e.closest(".skip,svg")) continue;
    for (const r of e.getClientRects()) if (r.width > 1 && r.height > 1) boxes.push([e, r]);
  }
  boxes.sort((a, b) => a[1].top - b[1].top);
  const bad = [];
  boxes.forEach(([e, r], i) => {
    for (let k = i + 1; k < boxes.length && boxes[k][1].top < r.bottom - 4; k++) {
      const [f, s] = boxes[k];
      if (e === f || e.contains(f) || f.contains(e) || e.closest(".rows") !== f.closest(".rows")) continue;
      if (Math.min(r.right, s.right) - Math.max(r.left, s.left) > 3)
        bad.push(e.textContent.slice(0, 40) + " / " + f.textContent.slice(0, 40));
    }
  });
  return bad;
}
function outside(doc, width) {
  return [...doc.body.querySelectorAll("*")].filter(e => !e.closest(".scroll,.skip,pre,table") &&
    e.getBoundingClientRect().right > width + 1).map(e => e.tagName + "." + e.className).slice(0, 5);
}
function spilled(doc) {
  const bad = [];
  for (const a of doc.querySelectorAll(".dag a")) {
    const shape = a.querySelector(".shape").getBoundingClientRect();
    for (const t of a.querySelectorAll("text.id,text.q,text.type,text.mark")) {
      const r = t.getBoundingClientRect();
      const aside = r.left < shape.left - 1 || r.right > shape.right + 1;
      if (aside || r.top < shape.top - 1 || r.bottom > shape.bottom + 1) bad.push(t.textContent);
    }
  }
  return bad;
}
(async () => {
  for (const name of pages) for (const width of widths) {
    const frame = document.createElement("iframe");
    frame.style.cssText = `width:${width}px;height:900px;border:0`;
    frame.src = name;
    document.body.append(frame);
    await new Promise(go => frame.onload = go);
    await sleep(20);
    const view = frame.contentWindow, doc = frame.contentDocument, root = doc.documentElement;
    const claim = doc.querySelector(".cite");
    let opened = null;
    if (claim) {
      claim.focus();
      const focused = doc.activeElement === claim, before = view.scrollY;
      view.location.hash = claim.getAttribute("href");
      await sleep(20);
      const target = doc.querySelector(".reference:target"), r = target && target.getBoundingClientRect();
      const seen = !!r && r.top >= 0 && r.bottom <= 901 && r.right <= width + 1;
      opened = {focused, moved: view.scrollY - before, seen};
      view.location.hash = "_";
      await sleep(20);
    }
    found.push({name, width, sideways: root.scrollWidth - root.clientWidth, overlaps: overlaps(doc),
      outside: outside(doc, width), spilled: spilled(doc), opened,
      scripts: doc.scripts.length, hacked: String(view.hacked)});
    frame.remove();
  }
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify(found);
  document.body.replaceChildren(out);
})();
</script>"""


class Server:
    """Serves a folder on the loopback and notes what was asked for."""

    def __init__(self, folder: Path) -> None:
        asked: list[str] = []

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(f"{self.headers.get('Host', '')}{self.path}")
                super().do_GET()

            def log_message(self, *_: Any) -> None:
                """Quietly."""

        self.asked = asked
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "www").mkdir()
    running = Server(tmp_path / "www")
    yield running
    running.close()


def chromium(profile: Path, *arguments: str) -> str:
    assert CHROMIUM is not None
    flags = "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += " --disable-component-update --disable-sync --disable-default-apps --disable-extensions"
    command = [CHROMIUM, *flags.split(), f"--user-data-dir={profile}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    return done.stdout


def measured(tmp_path: Path, server: Server, pages: dict[str, str], *arguments: str) -> list[dict[str, Any]]:
    www = tmp_path / "www"
    for name, html in pages.items():
        (www / name).write_text(html, encoding="utf-8")
    script = MEASURE.replace("PAGES", json.dumps(list(pages))).replace("WIDTHS", json.dumps(WIDTHS), 1)
    (www / "measure.html").write_text(script, encoding="utf-8")
    no_network = f"--host-resolver-rules=MAP evil.example 127.0.0.1:{server.port}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    dom = chromium(
        tmp_path / "profile",
        *("--dump-dom", "--virtual-time-budget=60000", "--window-size=1500,1000", no_network, *arguments),
        f"http://127.0.0.1:{server.port}/measure.html",
    )
    found = dom.split('<pre id="found">')[1].split("</pre>")[0]
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        found = found.replace(entity, char)
    results = json.loads(found)
    assert len(results) == len(pages) * len(WIDTHS)
    return list(results)


def test_pages_fit_at_every_width(tmp_path: Path, server: Server) -> None:
    pages = {}
    for lang, size, kind in [
        *(("en", 5, kind) for kind in ("completed", "failed", "interrupted")),
        *(("zh", 5, kind) for kind in ("exhausted", "completed")),
        *((lang, 40, "partial") for lang in ("en", "zh")),
    ]:
        folder = story(tmp_path / f"{lang}-{size}-{kind}", size=size, lang=lang, kind=kind)
        pages[f"{lang}-{size}-{kind}.html"] = page.page(folder, clock=lambda: START + 14)
    for found in measured(tmp_path, server, pages):
        where = f"{found['name']} at {found['width']}"
        assert found["sideways"] == 0, f"{where} scrolls sideways: {found['outside']}"
        assert found["outside"] == [] == found["spilled"] == found["overlaps"], where
        if found["opened"] is not None:  # a claim opens its passage beside itself, and the text stays where it is
            assert found["opened"] == {"focused": True, "moved": 0, "seen": True}, where


def test_hostile_text_does_nothing(tmp_path: Path, server: Server) -> None:
    html = page.page(hostile_folder(tmp_path)).replace("alert(1)", "parent.hacked=hacked=1")
    for found in measured(tmp_path, server, {"hostile.html": html}):
        assert found["scripts"] == 0 and found["hacked"] == "undefined"
        assert found["sideways"] == 0, found["outside"]
    assert {asked.partition("/")[2] for asked in server.asked} <= {"measure.html", "hostile.html", "favicon.ico"}


def test_the_measure_sees_faults(tmp_path: Path, server: Server) -> None:
    """A page that overflows, overlaps and runs scripts is found out, or the tests above would prove nothing."""
    bad = (
        '<!doctype html><title>x</title><body><p style="width:3000px">wide</p><h2 style="margin:0">A heading</h2>'
        '<p style="margin-top:-20px">over it</p><script>hacked=1</script><img src="http://evil.example/x.png">'
    )
    for found in measured(tmp_path, server, {"bad.html": bad}):
        assert found["sideways"] > 0 and found["outside"] and found["overlaps"]
        assert found["scripts"] == 1 and found["hacked"] == "1"
    assert any(asked.endswith("/x.png") for asked in server.asked)


def test_it_prints(tmp_path: Path) -> None:
    folder = story(tmp_path, size=40, lang="zh", kind="partial")
    page.write_report_page(folder)
    target = tmp_path / "p.pdf"
    chromium(tmp_path / "profile", f"--print-to-pdf={target}", "--no-pdf-header-footer", folder.report_html.as_uri())
    from pypdf import PdfReader

    text = "".join(p.extract_text() for p in PdfReader(target).pages)
    assert "部分完成" in text and "N_old" in text
