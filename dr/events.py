"""events.jsonl: one thing that happened a line, {"ts", "type", ...}, append-only; also handed to whoever listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dr import files

Listener = Callable[[dict[str, Any]], None]


class EventLog:
    """Appends events; each is on disk before `log` returns. Listeners are told after that."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path, self.clock = path, clock
        self.listeners: list[Listener] = []
        _end_cut_line(path)
        self._lines = files.Lines(path)

    def log(self, type_: str, **facts: Any) -> None:
        record = {"ts": round(self.clock(), 4), "type": type_, **facts}
        self._lines.append(record)
        for listener in self.listeners:
            listener(record)

    def close(self) -> None:
        self._lines.close()


def _end_cut_line(path: Path) -> None:
    """A kill may leave a line without its end; the next event must not be glued to it."""
    if path.exists() and path.stat().st_size:
        with path.open("rb+") as stream:
            stream.seek(-1, 2)
            if stream.read(1) != b"\n":
                stream.write(b"\n")


def read(path: Path) -> Iterator[dict[str, Any]]:
    return files.read_lines(path)
