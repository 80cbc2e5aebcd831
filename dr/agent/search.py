"""Keywords -> the pages that a search engine names: SearXNG, an API of Tavily's form, or the optional library ddgs.

The engine is the user's own choice, so its address may be private; the pages that it names may not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from dr.agent.fetch import Fetcher, Page
from dr.agent.unreadable import Unreadable

if TYPE_CHECKING:
    from dr.settings import Settings

_QUERY_CHARS = 400


@dataclass(frozen=True)
class Hit:
    """One page that a search named. snippet: the engine's words, never evidence."""

    url: str
    title: str
    snippet: str


def search(query: str, settings: Settings, fetcher: Fetcher) -> list[Hit]:
    """At most `search_results` pages, best first, each once. Unreadable: no engine, its failure, or nothing found."""
    query = " ".join(query.split())[:_QUERY_CHARS]
    engine = _engine(settings)
    if engine is None:
        raise Unreadable("no_search", query)
    try:
        found = engine(query, settings, replace(fetcher, allow_private=True))
    except Unreadable as error:
        raise error.at(query) from error
    hits = _distinct(found)[: settings.search_results]
    if not hits:
        raise Unreadable("search_nothing", query, query=query)
    return hits


def _engine(settings: Settings) -> Callable[[str, Settings, Fetcher], list[Hit]] | None:
    if settings.searxng_url:
        return _searxng
    if settings.search_api_key:
        return _api
    from importlib.util import find_spec

    return _ddgs if find_spec("ddgs") else None


def _searxng(query: str, settings: Settings, fetcher: Fetcher) -> list[Hit]:
    base = settings.searxng_url.split("?")[0].rstrip("/").removesuffix("/search")
    name = _name(base)
    try:
        page = fetcher.fetch(
            f"{base}/search?{urlencode({'q': query, 'format': 'json'})}", headers={"Accept": "application/json"}
        )
    except Unreadable as error:
        if error.reason == "http_403":  # its answer when JSON is not among its formats
            raise Unreadable("search_json", engine=name) from error
        raise Unreadable("search_failed", engine=name, detail=error) from error
    return _results(page, name, "url", "content")


def _api(query: str, settings: Settings, fetcher: Fetcher) -> list[Hit]:
    name = _name(settings.search_url)
    body = {"query": query, "max_results": settings.search_results}
    try:
        page = fetcher.fetch(
            settings.search_url,
            body=body,
            headers={"Accept": "application/json", "Authorization": f"Bearer {settings.search_api_key}"},
        )
    except Unreadable as error:
        if error.reason in ("http_401", "http_403"):
            raise Unreadable("search_key", engine=name, status=error.facts["status"]) from error
        raise Unreadable("search_failed", engine=name, detail=error) from error
    return _results(page, name, "url", "content")


def _ddgs(query: str, settings: Settings, fetcher: Fetcher) -> list[Hit]:
    library = import_module("ddgs")
    fault: type[Exception] = import_module("ddgs.exceptions").DDGSException
    try:
        found = library.DDGS().text(query, max_results=settings.search_results)
    except (fault, OSError) as error:
        raise Unreadable("search_failed", engine="ddgs", detail=f"{type(error).__name__}: {error}"[:160]) from error
    return _hits(found, "href", "body")


def _name(url: str) -> str:
    return urlsplit(url).hostname or url


def _results(page: Page, engine: str, url: str, snippet: str) -> list[Hit]:
    try:
        data = json.loads(page.data)
    except ValueError as error:
        raise Unreadable("search_json", engine=engine) from error
    results = data.get("results") if isinstance(data, dict) else None
    if not isinstance(results, list):
        raise Unreadable("search_failed", engine=engine, detail="no list of results")
    return _hits(results, url, snippet)


def _hits(results: Any, url: str, snippet: str) -> list[Hit]:
    return [
        Hit(r[url], str(r.get("title") or ""), str(r.get(snippet) or ""))
        for r in results
        if isinstance(r, dict) and isinstance(r.get(url), str) and r[url].startswith(("http://", "https://"))
    ]


def _distinct(hits: list[Hit]) -> list[Hit]:
    """Each page once: http and https, and a fragment more or less, are the same page."""
    found: dict[str, Hit] = {}
    for hit in hits:
        found.setdefault(hit.url.split("#")[0].split("://", 1)[1].rstrip("/"), hit)
    return list(found.values())
