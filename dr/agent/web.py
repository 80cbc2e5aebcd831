"""What a WEB node may do: fetch a page, search, through the browser if need be. In: its source; out: a Corpus."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from dr.agent import addresses
from dr.agent.browser import Browser
from dr.agent.documents import Corpus, Document, document_of
from dr.agent.fetch import Fetcher, Page, clean_url
from dr.agent.hosts import HostLocks
from dr.agent.search import Hit, search
from dr.agent.snapshots import Fetched, Snapshots
from dr.agent.unreadable import Unreadable
from dr.contract import split_sources
from dr.layout import SnapshotFolder

if TYPE_CHECKING:
    from dr.settings import Settings

KIND = "web"
Log = Callable[[str], None]


class Web:
    """web_fetch and web_search over the snapshots of one run."""

    def __init__(
        self, settings: Settings, snapshots: Snapshots, fetcher: Fetcher, browser: Browser, log: Log = lambda _: None
    ) -> None:
        self.settings, self.snapshots, self.fetcher, self.browser = settings, snapshots, fetcher, browser
        self.log = log

    def web_fetch(self, url: str) -> Document:
        """The page at `url`, fetched once in a run. Unreadable says why it cannot be read."""
        return self.snapshots.document(clean_url(url), self._read)

    def web_search(self, query: str) -> list[Hit]:
        """The pages that the configured search engine names. Unreadable: none is configured, or it failed."""
        hits = search(query, self.settings, self.fetcher)
        for number, hit in enumerate(hits, 1):
            self.log(f"[Search] {number}. {' '.join(hit.title.split())[:80]} - {hit.url}")
        return hits

    def read(self, source: str, question: str) -> Corpus:
        """Every page that `source` names; for keywords, and for nothing at all, the pages that a search finds."""
        documents: dict[str, Document] = {}
        failed: list[Unreadable] = []
        for named in dict.fromkeys(self._urls(source, question, failed)):
            try:
                url = clean_url(named)
                if url in documents:
                    continue
                documents[url] = self.web_fetch(url)
            except Unreadable as error:
                failed.append(error if error.place else error.at(named))
                self.log(f"[Fetch] {failed[-1].place}: {error.why('en')}")
            else:
                failed += documents[url].notes
                self.log(f"[Fetch] {url}: {len(documents[url].passages)} passage(s)")
        return Corpus(list(documents.values()), failed)

    def _urls(self, source: str, question: str, failed: list[Unreadable]) -> Iterator[str]:
        for part in split_sources(source) or [question]:
            try:
                yield from urls_in(part) or [hit.url for hit in self.web_search(part)]
            except Unreadable as error:
                failed.append(error if error.place else error.at(part))

    def _read(self, url: str) -> Fetched:
        page = self.fetcher.fetch(url)
        if not is_html(page):
            return Fetched(read_page(page), page.final_url, page.media_type or "text/plain")
        document, fault = None, Unreadable("page_empty", url)
        try:
            document = read_page(page)
        except Unreadable as error:
            fault = error if error.reason != "empty" else fault
        if shows_text_by_script(page, document):
            document = self._rendered(page, document)
        if document is None:
            raise fault
        return Fetched(document, page.final_url, page.media_type or "text/html")

    def _rendered(self, page: Page, plain: Document | None) -> Document:
        """The page as the browser shows it, or what plain text there is; Unreadable: that is no text."""
        self.log(f"[Browser] {page.url}: it shows its text by JavaScript")
        try:
            dom = self.browser.render(page.final_url)
            rendered = read_page(Page(page.url, page.final_url, dom, "text/html", "utf-8"))
        except Unreadable as error:
            why = error if error.reason != "empty" else Unreadable("browser_no_text")
        else:
            if _size(rendered) > _size(plain):
                return rendered
            why = Unreadable("browser_no_text")
        self.log(f"[Browser] {page.url}: {why.why('en')}")
        if plain is None or _ASKS.search(_text(plain)):
            raise Unreadable("needs_javascript", page.url, detail=why)
        return plain


_ADDRESS = re.compile(r"https?://[^\s<>\"，。；、（）【】《》「」]+", re.I)
_BARE = re.compile(
    r"(?:www\.[\w-]+(?:\.[\w-]+)+|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?=/))(?::\d+)?(?:/\S*)?\Z", re.I
)
_OTHER_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*://|(?:file|data|javascript|mailto|ftp):)\S+\Z", re.I)


def urls_in(part: str) -> list[str]:
    """The addresses that one part of a source names; none when it is keywords."""
    part = part.strip().strip("<>\"'")
    found = _ADDRESS.findall(part)
    if len(found) == 1 and part.startswith(found[0]) and not _is_note(part[len(found[0]) :]):
        return [part]  # spaces inside an address
    if found:
        return [url.rstrip(".,;:!?)]'") for url in found]
    if _BARE.match(part):
        return [f"https://{part}"]
    return [part] if _OTHER_SCHEME.match(part) else []


def _is_note(rest: str) -> bool:
    """Whether what follows an address is a remark, not the rest of a file name with spaces."""
    return bool(re.search(r"\s", rest)) and not re.search(r"\.\w{2,5}\Z", rest)


def is_html(page: Page) -> bool:
    head = page.data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return head.startswith((b"<!doctype html", b"<html")) or (
        page.media_type in ("text/html", "application/xhtml+xml") and not head.startswith(b"%pdf")
    )


_SUFFIXES = {
    **{"text/html": ".html", "application/xhtml+xml": ".html", "text/csv": ".csv", "application/csv": ".csv"},
    **{"text/tab-separated-values": ".tsv", "application/json": ".json", "application/ld+json": ".json"},
    **{
        "application/x-ndjson": ".jsonl",
        "application/jsonl": ".jsonl",
        "text/markdown": ".md",
        "text/x-markdown": ".md",
    },
}


def read_page(page: Page) -> Document:
    """The document of a page, by its content, then by what the server says it is, then by the name in its URL."""
    path = Path(unquote(urlsplit(page.final_url).path))
    name, suffix = path.name, _SUFFIXES.get(page.media_type, "")
    if is_html(page):
        suffix = ".html"
    elif page.media_type.endswith("+json"):
        suffix = ".json"
    if suffix and Path(name).suffix.lower() != suffix:
        name = (name or urlsplit(page.final_url).hostname or "") + suffix
    return document_of(page.data, page.url, KIND, name, page.charset)


_LITTLE = 300  # characters; a page with more has its text without scripts
_SHELL = re.compile(
    rb"""<(?:div|main|app-root)[^>]*\bid\s*=\s*["']?(?:root|app|__next|__nuxt|___gatsby|main)\b[^>]*>\s*</"""
)
_ASKS = re.compile(
    r"(?:enable|requires?|needs?|turn on|without)\W+(?:\w+\W+){0,2}java ?script"
    r"|java ?script (?:is )?(?:required|disabled)"
    r"|(?:启用|开启|打开|需要)\W{0,3}(?:\w{0,4})java ?script",
    re.I,
)


def shows_text_by_script(page: Page, document: Document | None) -> bool:
    """Whether a page holds scripts and no text, or hardly any and signs that scripts would bring it."""
    if b"<script" not in page.data.lower() or _size(document) > _LITTLE:
        return False
    return document is None or bool(_SHELL.search(page.data) or _ASKS.search(page.data.decode("utf-8", "replace")))


def _text(document: Document) -> str:
    return "\n".join(passage.text for passage in document.passages)


def _size(document: Document | None) -> int:
    return len(_text(document)) if document else 0


def open_web(settings: Settings, folder: SnapshotFolder, hosts: Path, log: Log) -> Web:
    """The tools with the settings' rule for private addresses. hosts: folder of the host locks."""
    locks = HostLocks(hosts)
    fetcher = Fetcher(locks, settings.allow_private, log=log)
    browser = Browser(addresses.resolver(settings.allow_private), locks)
    return Web(settings, Snapshots(folder), fetcher, browser, log)
