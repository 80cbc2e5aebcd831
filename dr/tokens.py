"""Tokens used so far, by calls of a chat model -> usage.json, after each call.

{"prompt_tokens", "completion_tokens", "total_tokens", "calls", "estimated"}; estimated: calls whose tokens were counted
from the text because the server did not say.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dr import files
from dr.errors import FormatError

KEYS = ("prompt_tokens", "completion_tokens", "total_tokens", "calls", "estimated")
_PER_MESSAGE = 4  # what a chat template puts around each


def estimate(text: str) -> int:
    """About one token a CJK character and one per four others."""
    wide = sum(character >= "\u2e80" for character in text)
    return wide + math.ceil((len(text) - wide) / 4)


def estimate_messages(messages: Sequence[Mapping[str, Any]]) -> int:
    return sum(estimate(str(m.get("content", ""))) + _PER_MESSAGE for m in messages)


def read_usage(path: Path) -> dict[str, int]:
    """The five counts; all 0 for a missing or damaged file."""
    try:
        data = files.read_json(path)
    except (FormatError, OSError):
        data = {}
    data = data if isinstance(data, dict) else {}
    return {k: v if isinstance(v := data.get(k), int) and not isinstance(v, bool) and v >= 0 else 0 for k in KEYS}


class UsageMeter:
    """Goes on from what the file says, so that a restarted subagent adds to it. One process a file; None: no file."""

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._lock = path, threading.Lock()
        self._totals = read_usage(path) if path else dict.fromkeys(KEYS, 0)

    def add(self, prompt_tokens: int, completion_tokens: int, *, estimated: bool) -> None:
        with self._lock:
            added = (prompt_tokens, completion_tokens, prompt_tokens + completion_tokens, 1, int(estimated))
            self._totals = {key: self._totals[key] + more for key, more in zip(KEYS, added, strict=True)}
            if self._path:
                files.write_json(self._path, self._totals)

    def totals(self) -> dict[str, int]:
        with self._lock:
            return dict(self._totals)
