"""A proxy on the loopback for one browser: everything the browser asks for passes here and its address is checked.

Enforced: http, https and WebSocket requests of the page and of all that it loads reach checked addresses only, each
looked up once, redirects included. Not enforced here: what is inside a TLS connection, and how much is loaded.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

from dr.agent.addresses import Resolve
from dr.agent.unreadable import Unreadable

_HEAD = 65_536  # bytes of a request's head
_CONNECT_S, _IDLE_S = 10.0, 30.0
_ALLOWED_AT_ONCE = 64
_REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_FAILED = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_HOP = (b"proxy-connection:", b"proxy-authorization:", b"connection:", b"keep-alive:")


class Gate:
    """`with Gate(resolve) as gate:` listens at `gate.address`. refused: why it let nothing through, each time."""

    def __init__(self, resolve: Resolve) -> None:
        self.resolve = resolve
        self.refused: list[Unreadable] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._room = threading.Semaphore(_ALLOWED_AT_ONCE)
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)

    @property
    def address(self) -> str:
        host, port = self._listener.getsockname()[:2]
        return f"http://{host}:{port}"

    def __enter__(self) -> Gate:
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends every connection and waits for what served it."""
        with self._lock:
            self._closed = True
            for opened in self._open:
                _shut(opened)
        with contextlib.suppress(OSError):  # wakes accept(), which closing alone does not do everywhere
            socket.create_connection(self._listener.getsockname()[:2], 1).close()
        self._acceptor.join(2)
        self._listener.close()
        for thread in self._threads:
            thread.join(_CONNECT_S + 1)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._keep(client):
                client.close()
                return
            self._room.acquire()
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self._threads = [t for t in self._threads if t.is_alive()] + [thread]
            thread.start()

    def _keep(self, opened: socket.socket) -> bool:
        with self._lock:
            if not self._closed:
                self._open.add(opened)
            return not self._closed

    def _serve(self, client: socket.socket) -> None:
        opened = [client]
        try:
            client.settimeout(_IDLE_S)
            head, rest = _head(client)
            method, target, version = head.split(b"\r\n", 1)[0].split(b" ", 2)
            tunnel = method == b"CONNECT"
            parts = urlsplit(("//" if tunnel else "") + target.decode("ascii"))
            if not tunnel and parts.scheme not in ("http", "ws"):
                raise ValueError(parts.scheme)
            server = self._reach(client, parts.hostname or "", parts.port or 80)
            if server is None:
                return
            opened.append(server)
            if tunnel:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                server.sendall(rest)
            else:
                path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                server.sendall(_plain_head(method, path.encode("ascii"), version, head) + rest)
            _relay(client, server)
        except (OSError, ValueError):  # the browser went away, or sent what is no request
            pass
        finally:
            with self._lock:
                self._open.difference_update(opened)
            for each in opened:
                each.close()
            self._room.release()

    def _reach(self, client: socket.socket, host: str, port: int) -> socket.socket | None:
        """A connection to `host`; None when there is none, which the browser is told."""
        try:
            found = self.resolve(host, port)
        except Unreadable as error:
            if error.reason == "private":
                self.refused.append(error)
            client.sendall(_REFUSED if error.reason == "private" else _FAILED)
            return None
        for family, address in found:
            server = socket.socket(family, socket.SOCK_STREAM)
            server.settimeout(_CONNECT_S)
            try:
                server.connect(address)
                server.settimeout(_IDLE_S)
            except OSError:
                server.close()
                continue
            if self._keep(server):
                return server
            server.close()
            return None
        client.sendall(_FAILED)
        return None


def _head(client: socket.socket) -> tuple[bytes, bytes]:
    """The head of a request, and what came with it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = client.recv(8192)
        if not piece or len(data) > _HEAD:
            raise ValueError("no head")
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _plain_head(method: bytes, path: bytes, version: bytes, head: bytes) -> bytes:
    """The head as a server wants it. One request a connection: the next may be for another host."""
    lines = head.split(b"\r\n")[1:]
    upgrade = any(line.lower().startswith(b"upgrade:") for line in lines)
    kept = [line for line in lines if upgrade or not line.lower().startswith(_HOP)]
    kept += [] if upgrade else [b"Connection: close"]
    return b"\r\n".join([b" ".join((method, path, version)), *kept]) + b"\r\n\r\n"


def _relay(client: socket.socket, server: socket.socket) -> None:
    """Bytes both ways until either side has ended or nothing has come for a while."""
    with selectors.DefaultSelector() as selector:
        other: dict[Any, socket.socket] = {client: server, server: client}
        for each in other:
            selector.register(each, selectors.EVENT_READ)
        while events := selector.select(_IDLE_S):
            for key, _ in events:
                source: Any = key.fileobj
                data = source.recv(65_536)
                if not data:
                    if source is server:
                        return
                    _half(server)
                    selector.unregister(source)
                    continue
                other[source].sendall(data)


def _half(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        server.shutdown(socket.SHUT_WR)


def _shut(opened: socket.socket) -> None:
    with contextlib.suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)
