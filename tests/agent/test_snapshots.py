"""dr/agent/snapshots.py: a URL is fetched once in a run, by whichever node comes first; the report finds it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from website import ARTICLE, Website

from dr.agent.addresses import resolver
from dr.agent.browser import Browser
from dr.agent.fetch import Fetcher
from dr.agent.hosts import HostLocks
from dr.agent.snapshots import Snapshots
from dr.agent.unreadable import Unreadable
from dr.agent.web import Web
from dr.cited import find_snapshots
from dr.layout import Root, RunFolder
from dr.settings import Settings

PROJECT = Path(__file__).resolve().parent.parent.parent


def run_folder(root: Path) -> RunFolder:
    return Root(root).run("t")


def web(root: Path, **other: Any) -> Web:
    locks = HostLocks(Root(root).hosts)
    browser = Browser(resolver(True), locks, find=lambda _: None)
    snapshots = Snapshots(run_folder(root).snapshots, **other)
    return Web(Settings(), snapshots, Fetcher(locks, allow_private=True, sleep=lambda _: None), browser)


def test_a_second_node_reads_the_snapshot(tmp_path: Path, site: Website) -> None:
    first = web(tmp_path).web_fetch(f"{site.url}/article")
    second = web(tmp_path).web_fetch(f"{site.url}/article#tower")
    assert site.asked["/article"] == 1
    assert second == first and first.passages[0].sha256


def test_pages_and_other_places_come_back_as_they_were(tmp_path: Path, site: Website) -> None:
    for path in ("document", "data", "table", "notes"):
        first = web(tmp_path).web_fetch(f"{site.url}/{path}")
        assert web(tmp_path).web_fetch(f"{site.url}/{path}") == first
        assert site.asked[f"/{path}"] == 1


def test_the_files_are_as_documented_and_the_report_finds_them(tmp_path: Path, site: Website) -> None:
    document = web(tmp_path, clock=lambda: 1700000000.0).web_fetch(f"{site.url}/article")
    body = site.page("/article")[2]
    digest = hashlib.sha256(body).hexdigest()
    assert {p.sha256 for p in document.passages} == {digest}
    record = json.loads((run_folder(tmp_path).sources / f"{digest}.json").read_text(encoding="utf-8"))
    assert record == {
        "url": f"{site.url}/article",
        "title": "Harlow lighthouse",
        "fetched_at": 1700000000.0,
        "media_type": "text/html",
    }
    found = find_snapshots(run_folder(tmp_path))
    assert list(found) == [f"{site.url}/article"]
    text = found[f"{site.url}/article"].read_text(encoding="utf-8")
    assert ARTICLE in text and all(p.text in text for p in document.passages)


def test_two_addresses_of_the_same_bytes_share_a_snapshot_and_keep_their_names(tmp_path: Path, site: Website) -> None:
    direct = web(tmp_path).web_fetch(f"{site.url}/article")
    moved = web(tmp_path).web_fetch(f"{site.url}/to-article")
    assert direct.passages[0].sha256 == moved.passages[0].sha256
    assert moved.passages[0].place == f"{site.url}/to-article"
    assert len(list(run_folder(tmp_path).sources.glob("*.txt"))) == 1
    assert web(tmp_path).web_fetch(f"{site.url}/to-article") == moved
    assert site.asked["/to-article"] == 1


def test_what_fails_is_not_kept(tmp_path: Path, site: Website) -> None:
    site.pages["/late"] = lambda: (404, {}, b"")
    with pytest.raises(Unreadable):
        web(tmp_path).web_fetch(f"{site.url}/late")
    site.pages["/late"] = lambda: site.page("/article")
    assert web(tmp_path).web_fetch(f"{site.url}/late").title == "Harlow lighthouse"
    assert site.asked["/late"] == 2


@pytest.mark.parametrize("damage", ["cut text", "no text", "cut entry", "odd entry"])
def test_a_snapshot_cut_by_a_kill_is_fetched_again(tmp_path: Path, site: Website, damage: str) -> None:
    first = web(tmp_path).web_fetch(f"{site.url}/article")
    folder = run_folder(tmp_path).sources
    [text], [entry] = folder.glob("*.txt"), (folder / "urls").glob("*.json")
    if damage == "no text":
        text.unlink()
    elif damage == "odd entry":
        entry.write_text('{"sha256": 3}', encoding="utf-8")
    else:
        cut = text if damage == "cut text" else entry
        cut.write_text(cut.read_text(encoding="utf-8")[:40], encoding="utf-8")
    assert web(tmp_path).web_fetch(f"{site.url}/article") == first
    assert site.asked["/article"] == 2
    assert web(tmp_path).web_fetch(f"{site.url}/article") == first  # mended: not once more
    assert site.asked["/article"] == 2


_NODE = """
import sys
from pathlib import Path
sys.path[:0] = [{project!r}, {tests!r}]
from test_snapshots import web
print(len(web(Path({root!r})).web_fetch({url!r}).passages))
"""


def test_two_processes_that_want_the_same_page_make_one_request(tmp_path: Path, site: Website) -> None:
    url = f"{site.url}/gate"
    here = Path(__file__).resolve().parent
    code = _NODE.format(project=str(PROJECT), tests=str(here), root=str(tmp_path), url=url)
    code = code.replace("from test_snapshots", f"sys.path.insert(0, {str(here.parent)!r})\nfrom test_snapshots")
    nodes = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        assert site.entered.wait(60)
        site.released.set()
        assert [node.communicate(timeout=60)[0] for node in nodes] == ["1\n"] * 3
    finally:
        for node in nodes:
            node.kill()
            node.communicate()
    assert site.asked["/gate"] == 1


def test_nobody_waits_for_ever_for_another_node(tmp_path: Path, site: Website) -> None:
    url = f"{site.url}/gate"
    first = threading.Thread(target=web(tmp_path).web_fetch, args=(url,), daemon=True)
    first.start()
    assert site.entered.wait(30)
    with pytest.raises(Unreadable) as raised:
        web(tmp_path, wait_s=0.1).web_fetch(url)
    assert raised.value.reason == "snapshot_busy"
    site.released.set()
    first.join()
    assert site.asked["/gate"] == 1
