"""dr/agent/search.py: what a search engine names, in each of its three forms, and what is said when there is none."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
from website import Website

from dr.agent import search
from dr.agent.fetch import Fetcher
from dr.agent.hosts import HostLocks
from dr.agent.unreadable import Unreadable
from dr.settings import SECRETS, Settings


def fetcher(root: Path, **other: Any) -> Fetcher:
    return Fetcher(HostLocks(root / "hosts"), sleep=lambda _: None, **other)


def found(root: Path, query: str, **settings: Any) -> list[search.Hit]:
    return search.search(query, Settings(**settings), fetcher(root))


def fault(root: Path, query: str, **settings: Any) -> Unreadable:
    with pytest.raises(Unreadable) as raised:
        found(root, query, **settings)
    return raised.value


@pytest.mark.parametrize("ending", ["", "/", "/search", "/search?format=json"])
def test_searxng_names_pages_each_once_best_first(tmp_path: Path, site: Website, ending: str) -> None:
    """Its own address may be private without allow_private: it is in the settings."""
    hits = found(tmp_path, "harlow  lighthouse", searxng_url=site.url + ending)
    assert [h.url.removeprefix(site.url) for h in hits] == ["/article", "/404", "/notes", "/table"]
    assert hits[0].title == "Page /article"
    assert site.asked == {"/search": 1}


def test_as_many_pages_as_the_settings_say(tmp_path: Path, site: Website) -> None:
    assert len(found(tmp_path, "harlow", searxng_url=site.url, search_results=2)) == 2


@pytest.mark.parametrize(
    ("query", "reason", "word"),
    [
        *(("closed", "search_json", "settings.yml"), ("html", "search_json", "settings.yml")),
        ("nothing", "search_nothing", "nothing"),
    ],
)
def test_a_searxng_that_gives_nothing(tmp_path: Path, site: Website, query: str, reason: str, word: str) -> None:
    error = fault(tmp_path, query, searxng_url=site.url)
    assert (error.reason, error.place) == (reason, query) and word in error.why("en") and word in error.why("zh")


def test_a_searxng_that_is_down(tmp_path: Path) -> None:
    error = fault(tmp_path, "harlow", searxng_url="http://no-such-host.invalid")
    assert error.reason == "search_failed" and "DNS" in error.why("en") and "域名解析" in error.why("zh")


def test_an_api_is_asked_once_with_its_key(tmp_path: Path, site: Website) -> None:
    settings = {"search_url": f"{site.url}/api", "search_api_key": "tvly-secret"}
    assert [h.url for h in found(tmp_path, "harlow", **settings)] == [f"{site.url}/article"]
    assert site.posted == [{"query": "harlow", "max_results": 5}]


def test_a_wrong_key_is_told_without_the_key(tmp_path: Path, site: Website) -> None:
    error = fault(tmp_path, "harlow", search_url=f"{site.url}/api", search_api_key="tvly-wrong")
    assert error.reason == "search_key" and "tvly" not in str(error) + error.why("zh")
    assert "search_api_key" in SECRETS


def test_a_key_does_not_follow_a_redirect(tmp_path: Path, site: Website) -> None:
    error = fault(tmp_path, "harlow", search_url=f"{site.url}/api-moved", search_api_key="tvly-secret")
    assert error.reason == "search_failed" and site.asked == {"/api-moved": 1}


class Trouble(Exception):
    pass


def pretend_ddgs(monkeypatch: pytest.MonkeyPatch, results: Any) -> None:
    class DDGS:
        def text(self, query: str, max_results: int) -> Any:
            if isinstance(results, Exception):
                raise results
            return results[:max_results]

    library, faults = types.ModuleType("ddgs"), types.ModuleType("ddgs.exceptions")
    library.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    library.DDGS, faults.DDGSException = DDGS, Trouble  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ddgs", library)
    monkeypatch.setitem(sys.modules, "ddgs.exceptions", faults)


def test_the_keyless_library_when_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_ddgs(monkeypatch, [{"title": "A", "href": "https://a.example/x", "body": "b"}])
    assert found(tmp_path, "harlow") == [search.Hit("https://a.example/x", "A", "b")]


def test_the_keyless_library_has_faults_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_ddgs(monkeypatch, Trouble("202 Ratelimit"))
    error = fault(tmp_path, "harlow")
    assert error.reason == "search_failed" and "Ratelimit" in error.why("zh")


def test_without_an_engine_it_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ddgs", None)
    error = fault(tmp_path, "harlow")
    for word in ("searxng_url", "search_api_key", "ddgs"):
        assert word in error.why("en") and word in error.why("zh")
