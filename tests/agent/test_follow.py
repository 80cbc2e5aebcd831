"""Source lines of nodes without evidence: followed by code, snapshotted, their quotes found or `not checked`."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from website import ARTICLE, Website

from dr import cited, process
from dr.agent import follow
from dr.citations import NOT_CHECKED, SUPPORTED, check_citation
from dr.follow import Follower
from dr.layout import Root, RunFolder
from dr.settings import Settings

QUOTE = "The Harlow lighthouse was completed in 1911 by the engineer Edith Marsh."


@pytest.fixture(autouse=True)
def private_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DR_ALLOW_PRIVATE", "true")  # the site is on the loopback


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "root" / "temp" / "dr_t")
    folder.path.mkdir(parents=True)
    (tmp_path / "root" / "memory").mkdir()
    (tmp_path / "given").mkdir()
    return folder


def conclude(run: RunFolder, place: str, *, quote: str = QUOTE, source: str = "", node: str = "N1") -> None:
    folder = run.node(node)
    folder.path.mkdir(exist_ok=True)
    folder.conclusion.write_text(f'[结论] It is old. It is tall.\n\n来源：{place} — "{quote}"\n', encoding="utf-8")
    context = {
        "root_question": "q",
        "parent_conclusions": {},
        "sub_question": "q",
        "source": source,
        "output_file": "/x",
    }
    folder.context.write_text(json.dumps(context), encoding="utf-8")


def root(run: RunFolder) -> Root:
    return Root(run.path.parent.parent)


def followed(run: RunFolder, seconds: float = 60) -> dict[str, dict[str, str]]:
    follow.follow(run, root(run), time.monotonic() + seconds)
    found = json.loads(run.snapshots.followed.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def checked(run: RunFolder, node: str = "N1") -> str:
    """The verdict of the report on the node's first source."""
    found = cited.read_node(run.node(node), root(run).path, cited.find_snapshots(run))
    assert found is not None
    source = found.listed[0]
    return check_citation("", source.quote, source.passage).verdict


def test_a_page_is_snapshotted_and_its_quote_found(run: RunFolder, site: Website) -> None:
    url = site.url + "/article"
    conclude(run, url)
    assert checked(run) == NOT_CHECKED
    entry = followed(run)[url]
    assert ARTICLE[:60] in run.snapshots.text(entry["sha256"]).read_text(encoding="utf-8")
    assert checked(run) == SUPPORTED


def test_a_quote_that_does_not_stand_there_is_not_supported(run: RunFolder, site: Website) -> None:
    conclude(run, site.url + "/article", quote="The lighthouse was sold to a circus in 1950.")
    followed(run)
    assert checked(run) != SUPPORTED


def test_what_cannot_be_fetched_is_not_checked_and_says_why(run: RunFolder, site: Website) -> None:
    url = site.url + "/no-such-page"
    conclude(run, url)
    assert "why" in followed(run)[url]
    assert checked(run) == NOT_CHECKED


def test_a_page_is_fetched_once_whoever_names_it(run: RunFolder, site: Website) -> None:
    url = site.url + "/article"
    conclude(run, url)
    conclude(run, url, node="N2")
    followed(run)
    followed(run)
    assert site.asked["/article"] == 1


@pytest.mark.parametrize("name", ["absolute", "relative", "name alone"])
def test_a_file_among_the_nodes_sources_is_read(run: RunFolder, tmp_path: Path, name: str) -> None:
    path = tmp_path / "given" / "notes.txt"
    path.write_text(ARTICLE, encoding="utf-8")
    place = {"absolute": str(path), "relative": "../../given/notes.txt", "name alone": "notes.txt"}[name]
    conclude(run, place, source=str(path.parent))
    assert "sha256" in followed(run)[place]
    assert checked(run) == SUPPORTED


@pytest.mark.parametrize(
    "place", ["outside.txt", "root/mykey.py", "root/temp/dr_other/N1/answer.md", "given/mykey.json"]
)
def test_no_other_file_is_read_whatever_a_node_says(run: RunFolder, tmp_path: Path, place: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ARTICLE, encoding="utf-8")
    conclude(run, str(path), source=str(tmp_path / "given"))
    assert "why" in followed(run)[str(path)]
    assert not list(run.sources.glob("*.txt"))


def test_a_link_does_not_lead_out_of_the_sources(run: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text(ARTICLE, encoding="utf-8")
    link = tmp_path / "given" / "notes.txt"
    link.symlink_to(tmp_path / "secret.txt")
    conclude(run, str(link), source=str(tmp_path / "given"))
    assert "why" in followed(run)[str(link)]


def test_memory_is_among_the_sources(run: RunFolder) -> None:
    path = root(run).memory / "facts.txt"
    path.write_text(ARTICLE, encoding="utf-8")
    conclude(run, "../memory/facts.txt")  # as seen from temp/, where GA's agents work
    assert "sha256" in followed(run)["../memory/facts.txt"]


def test_a_node_with_evidence_needs_none_of_this(run: RunFolder) -> None:
    conclude(run, "https://example.org/")
    run.node("N1").evidence.write_text("", encoding="utf-8")
    follow.follow(run, root(run), time.monotonic() + 5)
    assert not run.sources.exists()


def test_no_time_left_is_not_checked(run: RunFolder, site: Website) -> None:
    conclude(run, site.url + "/article")
    follow.follow(run, root(run), time.monotonic() - 1)
    assert checked(run) in (NOT_CHECKED, SUPPORTED)  # it may have been faster


def test_the_runner_follows_in_the_background_and_once_more_at_the_end(run: RunFolder, site: Website) -> None:
    conclude(run, site.url + "/article")
    follower = Follower(root(run), run, Settings(allow_private=True))
    follower.wake()
    conclude(run, site.url + "/zh-utf8", node="N2", quote="清河水库建成于1958年")
    follower.wake()
    follower.finish()
    assert checked(run) == SUPPORTED and checked(run, "N2") == SUPPORTED
    assert process.marked(lambda path: path.startswith(str(run.path))) == []


def test_what_is_still_under_way_at_the_end_is_ended(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dr.follow.FINISH_S", 0.0)
    conclude(run, "https://192.0.2.1/never")  # reserved: nobody answers
    follower = Follower(root(run), run, Settings())
    follower.finish()
    assert process.marked(lambda path: path.startswith(str(run.path))) == []
