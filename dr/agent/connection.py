"""The connections of fetch.py: made to addresses that were checked, ended when their time is over. Imports requests."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from dr.agent.unreadable import Unreadable


class Watchdog:
    """Ends a connection after `seconds`, wherever it stands: headers, a TLS handshake or a body that drips for ever."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.expired = seconds, False
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Watchdog:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        for watched in self._sockets:
            watched.close()

    def watch(self, connected: socket.socket) -> None:
        # A duplicate: TLS takes the socket itself away, and shutting down either ends both.
        self._sockets.append(connected.dup())

    def check(self) -> None:
        """Unreadable when the time is over."""
        if self.expired:
            raise Unreadable("total_timeout", seconds=f"{self.seconds:g}")

    def _end(self) -> None:
        self.expired = True
        for watched in list(self._sockets):
            with suppress(OSError):
                watched.shutdown(socket.SHUT_RDWR)


class Pinned(HTTPAdapter):
    """Connects to the given addresses only, in their order; the host's name stays the one that TLS and server see."""

    def __init__(self, found: list[tuple[int, Any]], watchdog: Watchdog) -> None:
        self.found, self.watchdog = found, watchdog
        super().__init__(max_retries=0)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **pool_kwargs: Any) -> None:
        adapter = self

        class Http(HTTPConnection):
            def _new_conn(self) -> socket.socket:
                return adapter.connect(self)

        class Https(HTTPSConnection):
            def _new_conn(self) -> socket.socket:
                return adapter.connect(self)

        class HttpPool(HTTPConnectionPool):
            ConnectionCls = Http

        class HttpsPool(HTTPSConnectionPool):
            ConnectionCls = Https

        self.poolmanager = PoolManager(num_pools=connections, maxsize=maxsize, block=block, **pool_kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": HttpPool, "https": HttpsPool}

    def connect(self, connection: HTTPConnection) -> socket.socket:
        """A connected socket, as urllib3's own connections make it, but without another look-up of the name."""
        last: OSError | None = None
        for family, address in self.found:
            self.watchdog.check()
            try:
                return self._connected(family, address, connection.timeout)
            except OSError as error:
                last = error
        if isinstance(last, TimeoutError):
            raise ConnectTimeoutError(connection, "timed out") from last
        raise NewConnectionError(connection, str(last)) from last

    def _connected(self, family: int, address: Any, timeout: Any) -> socket.socket:
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.settimeout(timeout if isinstance(timeout, (int, float)) else None)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.connect(address)
            self.watchdog.watch(made)
        except BaseException:
            made.close()
            raise
        return made
