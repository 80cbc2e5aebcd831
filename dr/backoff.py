"""When a busy server may be asked again, shared by all processes that use it, in one small file.

{"version": 1, "not_before": {"<address>": <seconds since 1970>}}; a file that cannot be read holds nothing back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from dr import files
from dr.errors import FormatError

VERSION = 1
LOCK_S = 5.0  # a writer needs milliseconds; longer means a dead file system, and own waiting still holds


class SharedBackoff:
    """`longest_s`: no entry holds anybody back longer, whatever the file or a changed clock says."""

    def __init__(
        self, path: Path, address: str, *, longest_s: float = 120.0, clock: Callable[[], float] = time.time
    ) -> None:
        self._path, self._address, self._longest_s, self._clock = path, address, longest_s, clock

    def remaining(self) -> float:
        """Seconds until the server may be asked, 0 for now."""
        return self._remaining(self._read().get(self._address, 0.0))

    def extend(self, seconds: float) -> None:
        """Nobody asks for so long; an entry that holds longer stays. OSError when the file cannot be written."""
        from filelock import FileLock, Timeout

        seconds = min(max(seconds, 0.0), self._longest_s)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(f"{self._path}.lock", timeout=LOCK_S):
                entries = {a: t for a, t in self._read().items() if self._remaining(t) > 0}
                if self._remaining(entries.get(self._address, 0.0)) < seconds:
                    entries[self._address] = self._clock() + seconds
                files.write_json(self._path, {"version": VERSION, "not_before": entries})
        except Timeout:
            return

    def _remaining(self, not_before: float) -> float:
        left = not_before - self._clock()
        # Twice the longest: room for the clocks of two machines. Beyond it, a clock was changed meanwhile.
        return min(left, self._longest_s) if 0 < left <= 2 * self._longest_s else 0.0

    def _read(self) -> dict[str, float]:
        try:
            data = files.read_json(self._path)
        except (FormatError, OSError):
            return {}
        entries = data.get("not_before") if isinstance(data, dict) and data.get("version") == VERSION else None
        if not isinstance(entries, dict):
            return {}
        return {a: float(t) for a, t in entries.items() if isinstance(t, (int, float)) and not isinstance(t, bool)}
