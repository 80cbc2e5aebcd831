"""One URL -> Page: its bytes and what the server said of them. Network; the lock files of hosts; writes nothing else.

Every address is checked after resolution and is the one connected to, so that a name cannot be changed in between.
Behind a proxy (HTTP_PROXY, HTTPS_PROXY) the proxy resolves again: then only the first look is ours.
"""

from __future__ import annotations

import email.utils
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urldefrag, urljoin, urlsplit

from dr.agent import addresses
from dr.agent.addresses import Resolve
from dr.agent.hosts import HostLocks
from dr.agent.unpack import ENCODINGS, Body
from dr.agent.unreadable import Unreadable

if TYPE_CHECKING:
    from requests import Response, Session

USER_AGENT = "Mozilla/5.0 (compatible; dr-runner/0.1; reads single pages for research)"
ACCEPT = "text/html,application/xhtml+xml,application/pdf,text/plain,application/json;q=0.9,*/*;q=0.8"
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_BACK_OFF = (1.0, 4.0, 16.0)  # seconds before the second, third, … attempt
_NO_TEXT = ("image/", "audio/", "video/", "font/")
_PIECE = 65_536


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes. total_s: of one attempt; wait_s: the longest wait that a server may ask for."""

    connect_s: float = 10.0
    read_s: float = 20.0
    total_s: float = 60.0
    wait_s: float = 60.0
    max_bytes: int = 10 * 1024 * 1024
    redirects: int = 5
    attempts: int = 3


@dataclass(frozen=True)
class Page:
    """url: as asked for; final_url: where it was found. media_type: lower case, "" when the server named none."""

    url: str
    final_url: str
    data: bytes
    media_type: str = ""
    charset: str | None = None


class _Again(Exception):
    """A fault that may pass. after: seconds that the server asks to wait, None when it does not say."""

    def __init__(self, reason: Unreadable, after: float | None = None) -> None:
        super().__init__(str(reason))
        self.reason, self.after = reason, after


@dataclass
class Fetcher:
    """Fetches politely: one request at a time per host, patient with busy servers. log: told of every wait."""

    hosts: HostLocks
    allow_private: bool = False
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    log: Callable[[str], None] = lambda _: None
    resolve: Resolve | None = None  # for tests; else by allow_private

    def fetch(self, url: str, *, body: Any = None, headers: dict[str, str] | None = None) -> Page:
        """The page at `url`. Unreadable says why there is none. body: sent as JSON with POST, which follows nothing."""
        asked = clean_url(url)
        here = asked
        with _session(
            {"User-Agent": USER_AGENT, "Accept": ACCEPT, "Accept-Encoding": ENCODINGS} | (headers or {})
        ) as s:
            for _ in range(self.limits.redirects + 1):
                answer = self._patiently(s, here, body)
                if isinstance(answer, Page):
                    return Page(asked, here, answer.data, answer.media_type, answer.charset)
                if body is not None or headers:
                    raise Unreadable("redirected", asked, target=answer)  # a key or query is not for another address
                here = clean_url(urljoin(here, answer))
                self.log(f"[Fetch] {asked} -> {here}")
        raise Unreadable("redirects", asked, limit=self.limits.redirects)

    def _patiently(self, session: Session, url: str, body: Any) -> Page | str:
        """The page, or where it has moved to. Waits, with the host still locked, when the server asks for it."""
        host = urlsplit(url).hostname or ""
        with self.hosts.one_at_a_time(host):
            for attempt in range(1, self.limits.attempts + 1):
                try:
                    return self._once(session, url, body)
                except _Again as trouble:
                    wait = _BACK_OFF[min(attempt, len(_BACK_OFF)) - 1] if trouble.after is None else trouble.after
                    if attempt == self.limits.attempts or wait > self.limits.wait_s:
                        raise trouble.reason.at(url) from trouble
                    self.log(f"[Fetch] {url}: {trouble.reason.why('en')}; again in {wait:g} s")
                    self.sleep(wait)
                except Unreadable as error:
                    raise error.at(url) from error
        raise AssertionError("at least one attempt is made")

    def _once(self, session: Session, url: str, body: Any) -> Page | str:
        from dr.agent.connection import Pinned, Watchdog

        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        proxies = _proxies(url)
        try:
            found = (self.resolve or addresses.resolver(self.allow_private))(host, port)
        except Unreadable as error:
            if error.reason == "dns_again":
                raise _Again(Unreadable("dns", host=host)) from error
            if not (proxies and error.reason == "dns"):
                raise
            found = []  # a machine that only its proxy connects to the world may know no names itself
        with Watchdog(self.limits.total_s) as watchdog, _faults(watchdog, host, self.limits):
            session.mount(f"{parts.scheme}://", Pinned(found, watchdog))
            with session.request(
                "GET" if body is None else "POST",
                url,
                json=body,
                stream=True,
                allow_redirects=False,
                timeout=(self.limits.connect_s, self.limits.read_s),
                proxies=proxies,
                verify=os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE") or True,
            ) as response:
                return self._answer(response, watchdog.check)

    def _answer(self, response: Response, check: Callable[[], None]) -> Page | str:
        if response.status_code in _REDIRECTS and "Location" in response.headers:
            return _location(response)
        if not 200 <= response.status_code < 300:
            self._refused(response)
        media_type, _, parameters = response.headers.get("Content-Type", "").partition(";")
        media_type = media_type.strip().lower()
        if media_type.startswith(_NO_TEXT) and "svg" not in media_type:
            raise Unreadable("not_text", media_type=media_type[:60])
        length = response.headers.get("Content-Length", "")
        if length.isdecimal() and int(length) > self.limits.max_bytes:
            raise Unreadable("too_large_page", limit=self.limits.max_bytes // (1024 * 1024))
        unpacked = Body(response.headers.get("Content-Encoding", ""), self.limits.max_bytes)
        while piece := response.raw.read1(_PIECE, decode_content=False):
            unpacked.feed(piece)
            check()
        check()  # a connection that was ended looks like the end of the page
        return Page("", "", unpacked.finish(), media_type, _charset(parameters))

    def _refused(self, response: Response) -> None:
        status = response.status_code
        known = {401: "http_401", 402: "http_402", 403: "http_403", 404: "http_404", 410: "http_404", 429: "http_429"}
        reason = Unreadable(known.get(status, "http_5xx" if status >= 500 else "http_other"), status=status)
        if status == 429 or status >= 500:
            raise _Again(reason, _retry_after(response.headers.get("Retry-After", ""), self.clock()))
        raise reason


@contextmanager
def _session(headers: dict[str, str]) -> Iterator[Session]:
    """Cookies are kept from redirect to redirect and then forgotten; no password file is read."""
    import requests

    with requests.Session() as session:
        session.trust_env = False
        session.headers.update(headers)
        yield session


def _proxies(url: str) -> dict[str, str]:
    from requests.utils import get_environ_proxies

    scheme = urlsplit(url).scheme
    found = get_environ_proxies(url)
    return {scheme: proxy} if (proxy := found.get(scheme) or found.get("all")) else {}


@contextmanager
def _faults(watchdog: Any, host: str, limits: Limits) -> Iterator[None]:
    """What goes wrong on the way, by its name: what may pass as _Again, the rest as Unreadable."""
    import requests
    import urllib3

    try:
        yield
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, UnicodeError) as error:
        watchdog.check()
        causes = [error, *_causes(error)]
        if any(type(c).__name__ in ("SSLError", "SSLCertVerificationError", "CertificateError") for c in causes):
            raise Unreadable("tls", host=host, detail=_detail(causes)) from error
        if isinstance(error, (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, UnicodeError)):
            raise Unreadable("bad_url") from error
        if isinstance(error, requests.exceptions.ConnectTimeout):
            raise _Again(Unreadable("connect_timeout", host=host, seconds=f"{limits.connect_s:g}")) from error
        if any("ReadTimeout" in type(c).__name__ or isinstance(c, TimeoutError) for c in causes):
            raise _Again(Unreadable("read_timeout", seconds=f"{limits.read_s:g}")) from error
        raise _Again(Unreadable("connection", host=host, detail=_detail(causes))) from error


def _causes(error: BaseException) -> list[BaseException]:
    """What an error was made from; the libraries wrap theirs in arguments, attributes and causes."""
    found: list[BaseException] = []
    todo: list[Any] = [error]
    while todo and len(found) < 20:
        here = todo.pop()
        for inner in (*getattr(here, "args", ()), getattr(here, "reason", None), here.__cause__, here.__context__):
            if isinstance(inner, BaseException) and inner not in found:
                found.append(inner)
                todo.append(inner)
    return found


def _detail(causes: list[BaseException]) -> str:
    """The innermost error's own words, in short."""
    said = [str(c.strerror) for c in causes if isinstance(c, OSError) and c.strerror] or [type(causes[-1]).__name__]
    return " ".join(said[-1].split())[:160]


def clean_url(url: str) -> str:
    """`url` as it is fetched and cited: without fragment, with what must be quoted quoted. Unreadable: no such page."""
    text = "".join(c for c in urldefrag(url.strip()).url if c >= " " and c != "\x7f")
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - raises on a port that is none
    except ValueError as error:
        raise Unreadable("bad_url", url) from error
    if parts.scheme.lower() not in ("http", "https"):
        raise Unreadable("scheme", url, scheme=parts.scheme or text[:20])
    user, _, address = parts.netloc.rpartition("@")
    if user:
        raise Unreadable("userinfo", text.replace(f"{user}@", "", 1))  # it may be a password: not told to anybody
    if not parts.hostname:
        raise Unreadable("bad_url", url)
    safe = "%/:=&?~+!$,;'@()*[]|"
    path = quote(parts.path or "/", safe=safe)
    query = "?" + quote(parts.query, safe=safe) if parts.query else ""
    return f"{parts.scheme.lower()}://{_ascii(address.lower(), url)}{path}{query}"


def _ascii(address: str, url: str) -> str:
    """Host and port as the wire has them: what is looked up is then what is asked for."""
    if address.isascii():
        return address
    import idna

    host, colon, port = address.partition(":")
    try:
        return idna.encode(host, uts46=True).decode("ascii") + colon + port
    except idna.IDNAError as error:
        raise Unreadable("bad_url", url) from error


def _location(response: Response) -> str:
    """The target of a redirect: servers send it as UTF-8, which the HTTP library reads as Latin-1."""
    raw = str(response.headers["Location"])
    try:
        return raw.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return raw


def _charset(parameters: str) -> str | None:
    for part in parameters.split(";"):
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset" and value.strip():
            return value.strip(" \"'")[:40] or None
    return None


def _retry_after(value: str, now: float) -> float | None:
    """Seconds to wait, of either form of the header; None when it says nothing that can be understood."""
    value = value.strip()
    if value.isdecimal():
        return float(value[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
