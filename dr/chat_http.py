"""A request to a chat API -> its response as plain data, through `requests`. The only module that knows the key.

Request and Response hold no key and can be kept: a recorder is a transport around this one.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from dr.errors import FatalError, UsageError

LONGEST_BODY = 32_000_000  # bytes; no answer is so long, a runaway stream is
_KEPT_HEADERS = ("content-type", "retry-after", "retry-after-ms", "location")
_HOW = {"stream", "stream_options"}  # how a reply travels, not what is asked
_DONE = re.compile(rb"(?:^|[\r\n])data:[ ]?\[DONE\]")
_TLS_LASTING = re.compile(r"certificate|wrong.version.number", re.IGNORECASE)
_EVENTS = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry|error)?:")


@dataclass(frozen=True)
class Request:
    """The JSON body of one POST to /chat/completions: model, messages, parameters."""

    body: dict[str, Any]

    @property
    def key(self) -> str:
        """The same for the same model, messages and parameters, streamed or not. A repeated request repeats its key."""
        asked = {name: value for name, value in self.body.items() if name not in _HOW}
        return hashlib.sha256(_json(asked, sort=True)).hexdigest()


@dataclass(frozen=True)
class Response:
    """headers: the few that matter, in lower case. cut: why the body ended before its end, "" when it is whole."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    cut: str = ""


class NoResponse(Exception):
    """Nothing came back. lasting: trying again cannot help. costly: the whole of a time limit was waited for."""

    def __init__(self, reason: str, *, lasting: bool = False, costly: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.lasting, self.costly = reason, lasting, costly


Transport = Callable[[Request], Response]


class ApiKey:
    """Keeps the key out of every repr, and takes it out of texts that come from elsewhere."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value.strip()
        if not self._value.isascii() or not self._value.isprintable() or " " in self._value:
            wrong = "it holds a blank, a line break or a character that no key has"
            raise FatalError("use the api_key", wrong, "copy the key again, without quotes, into DR_API_KEY")

    def __repr__(self) -> str:
        return "<api key>" if self._value else "<no api key>"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> Any:
        raise TypeError("a key is not written anywhere")

    def sign(self, prepared: Any) -> Any:
        """For requests' `auth`: said explicitly even without a key, else a .netrc entry would be sent instead."""
        if self._value:
            prepared.headers["Authorization"] = f"Bearer {self._value}"
        return prepared

    def redact(self, text: str) -> str:
        return text.replace(self._value, repr(self)) if len(self._value) >= 4 else text


@dataclass(frozen=True)
class Address:
    """url: where requests go. shown: the same without what may be secret, for messages and shared files."""

    url: str
    shown: str
    loopback: bool
    versioned: bool  # whether its path says a version, as nearly every API's does

    @classmethod
    def of(cls, base_url: str) -> Address:
        """`base_url`: up to and with /v1, or with /chat/completions after it. UsageError when it is no address."""
        try:
            parts = urlsplit(base_url.strip())
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            parts, host = urlsplit(""), ""
        if parts.scheme not in ("http", "https") or not host:
            shown = re.sub(r"//[^/@]*@", "//", base_url.partition("?")[0])
            raise UsageError(f"use base_url {shown!r}", "no http address", "for example http://127.0.0.1:8080/v1")
        if "@" in parts.netloc:
            raise UsageError(f"use base_url at {host}", "it holds a user or password", "put the key into DR_API_KEY")
        path = parts.path.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
        url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
        shown = urlunsplit((parts.scheme, parts.netloc.lower(), path, "", ""))
        return cls(url, shown, _is_loopback(host), bool(re.search(r"/v\d", path)))


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _json(data: Any, *, sort: bool = False) -> bytes:
    # Lone surrogates of a damaged source are no UTF-8 and servers refuse them escaped too.
    return json.dumps(data, ensure_ascii=False, sort_keys=sort).encode("utf-8", errors="replace")


class HttpTransport:
    """`timeout_s`: until the next piece of a reply, its first and only one when not streamed. `longest_s`: in all."""

    def __init__(
        self,
        address: Address,
        api_key: ApiKey,
        *,
        timeout_s: float = 300.0,
        connect_s: float = 10.0,
        longest_s: float = 900.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address, self._key, self._clock = address, api_key, clock
        self._timeouts, self._longest_s = (connect_s, timeout_s), longest_s

    def __call__(self, request: Request) -> Response:
        """NoResponse when there is no status; a body that breaks off is returned with `cut`."""
        import requests
        from requests import exceptions

        until = self._clock() + self._longest_s
        with requests.Session() as session:
            session.trust_env = not self._address.loopback  # a proxy cannot reach this machine's own servers
            try:
                response = session.post(
                    self._address.url,
                    data=_json(request.body),
                    headers={"Content-Type": "application/json", "User-Agent": "dr-runner"},
                    auth=self._key.sign,
                    timeout=self._timeouts,
                    stream=True,
                    allow_redirects=False,  # a redirected POST becomes a GET, and the key would travel with it
                )
            except exceptions.Timeout as error:
                costly = not isinstance(error, exceptions.ConnectTimeout)
                raise NoResponse("no reply within the time limit", costly=costly) from None
            except (OSError, ValueError) as error:  # requests' own are OSErrors; ValueError: wrong address or header
                foreign = not isinstance(error, exceptions.RequestException)  # no such certificate file, for one
                lasting = foreign or isinstance(error, ValueError) or bool(_TLS_LASTING.search(str(error)))
                raise NoResponse(self._key.redact(_reason(error)), lasting=lasting) from None
            with response:
                body, cut = self._read(response.raw, until)
        headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        return Response(response.status_code, body, headers, self._key.redact(cut))

    def _read(self, raw: Any, until: float) -> tuple[bytes, str]:
        from urllib3.exceptions import HTTPError

        body = bytearray()
        while True:
            try:
                piece = raw.read1(65536, decode_content=True)
            except (HTTPError, OSError) as error:
                return bytes(body), f"the connection broke off ({_reason(error)})"
            if not piece:
                return bytes(body), ""
            seen = max(0, len(body) - 16)
            body += piece
            if _DONE.search(body, seen) and _EVENTS.match(body):
                return bytes(body), ""  # some servers keep the connection open after it
            if len(body) > LONGEST_BODY:
                return bytes(body), f"it is longer than {LONGEST_BODY:,} bytes"
            if self._clock() > until:
                return bytes(body), f"it took longer than {self._longest_s:g} s"


def _reason(error: BaseException) -> str:
    """The innermost cause in words: "Connection refused" and not three classes around it."""
    seen: BaseException = error
    for _ in range(6):
        inner = getattr(seen, "reason", None) or next((a for a in seen.args if isinstance(a, BaseException)), None)
        if not isinstance(inner, BaseException):
            break
        seen = inner
    text = getattr(seen, "strerror", None) or str(seen) or type(seen).__name__
    return re.sub(r"<[^>]*object at 0x\w+>:?\s*|^\w+\(host=.*?\): ", "", str(text))[:300]
