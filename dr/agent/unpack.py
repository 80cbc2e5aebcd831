"""The body of a response, piece by piece -> its bytes, unpacked and never more than a limit. Pure."""

from __future__ import annotations

import zlib

from dr.agent.unreadable import Unreadable

ENCODINGS = "gzip, deflate"
_STEP = 65_536  # bytes unpacked at a time: what a bomb can cost beyond the limit


class Body:
    """Feed it what arrives; it stops with Unreadable as soon as either side, packed or unpacked, is over the limit."""

    def __init__(self, encoding: str, limit: int) -> None:
        """encoding: the Content-Encoding. Unreadable when it is one that was not asked for."""
        self.encoding = encoding.strip().lower().removeprefix("x-")
        if self.encoding not in ("", "identity", "gzip", "deflate"):
            raise Unreadable("encoding", encoding=encoding[:40])
        self.limit, self.arrived, self.data = limit, 0, bytearray()
        self._packed = self.encoding in ("gzip", "deflate")
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, by its header
        self._started = False

    def feed(self, piece: bytes) -> None:
        self.arrived += len(piece)
        if self.arrived > self.limit:
            raise self._too_large()
        if not self._packed:
            self.data += piece
            return
        try:
            self._unpack(piece)
        except zlib.error as error:
            raise Unreadable("encoding_broken", encoding=self.encoding) from error

    def _unpack(self, piece: bytes) -> None:
        while piece:
            if self._inflate.eof:  # gzip members may follow each other; anything else behind the end is padding
                if self.encoding != "gzip" or not piece.startswith(b"\x1f\x8b"):
                    return
                self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
            try:
                self.data += self._inflate.decompress(piece, _STEP)
            except zlib.error:
                if self._started or self.encoding != "deflate":
                    raise
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)  # servers that send deflate without its header
                self.data += self._inflate.decompress(piece, _STEP)
            self._started = True
            if len(self.data) > self.limit:
                raise self._too_large()
            piece = self._inflate.unconsumed_tail or self._inflate.unused_data

    def finish(self) -> bytes:
        """All of it. Unreadable when the packed stream ends before its end mark."""
        if self._packed and self._started:
            self.data += self._inflate.flush()
            if not self._inflate.eof:
                raise Unreadable("encoding_broken", encoding=self.encoding)
        return bytes(self.data)

    def _too_large(self) -> Unreadable:
        return Unreadable("too_large_page", limit=self.limit // (1024 * 1024))
