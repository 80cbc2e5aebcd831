"""The only module that prints: results on stdout, progress and errors on stderr, or one JSON object and silence."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from dr.errors import DrError
from dr.words import has, say

JSON_CHARS = 8000  # an outer agent's tool cuts the middle out of anything much longer
PLAIN = "python dr_runner.py"  # how messages name the program
_LONG = 600  # a string longer than this may be shortened to fit


class Terminal:
    """quiet: no progress. as_json: exactly one object on stdout, nothing on stderr."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet or as_json
        self.language = "en"
        self._started = time.monotonic()
        self._program = _program()

    def event(self, record: dict[str, Any]) -> None:
        """A listener of the event log: one plain line for what a person wants to see."""
        if self.quiet:
            return
        key = f"line_{record['type']}"
        if record["type"] == "attempt.end":
            key += f"_{record['outcome']}"
        if not has(key):
            return
        facts = {k: _flat(v) for k, v in record.items()}
        seconds = int(time.monotonic() - self._started)
        self._err(f"[{seconds // 60:02}:{seconds % 60:02}] {say(self.language, key, **facts)}")

    def note(self, text: str) -> None:
        if not self.quiet:
            self._err(text)

    def result(self, data: dict[str, Any], text: str) -> None:
        """What a verb found: the object for programs, or the text for people, whose last line says what comes next."""
        if isinstance(data.get("next"), str):
            data = {**data, "next": self._as_called(data["next"])}
        self._out(json.dumps(fit(data), ensure_ascii=False) if self.as_json else self._as_called(text))

    def _as_called(self, text: str) -> str:
        """Messages name the program plainly; who reads them can run what they say only as it was called."""
        shown = text.replace(PLAIN, self._program)
        return f"{shown} --json" if self.as_json and shown.startswith(self._program) and "\n" not in shown else shown

    def whole(self, data: dict[str, Any], text: str) -> None:
        """As result(), but never shortened: what the verb is asked for is the object itself."""
        self._out(json.dumps(data, ensure_ascii=False) if self.as_json else text)

    def raw(self, text: str) -> None:
        """A file's text, as it is."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def error(self, error: DrError) -> None:
        if self.as_json:
            next_step = self._as_called(error.next_step)
            facts = {"error": error.wrong, "tried": error.tried, "next": next_step, "exit": error.exit_code}
            self._out(json.dumps(fit(facts), ensure_ascii=False))
        else:
            self._err(self._as_called(f"dr_runner: {error}"))

    def bug(self, error: Exception, report: Path | None) -> None:
        where = f"the report is in {report}" if report else "no report could be written"
        text = f"a bug in the runner: {type(error).__name__}: {error}; {where}"
        if self.as_json:
            self._out(json.dumps({"error": text, "report": str(report), "exit": 70}, ensure_ascii=False))
        else:
            self._err(f"dr_runner: {text}")

    def _out(self, text: str) -> None:
        sys.stdout.write(_harmless(text.rstrip("\n")) + "\n")
        sys.stdout.flush()

    def _err(self, text: str) -> None:
        """A run does not end because nobody reads its progress any more."""
        try:
            sys.stderr.write(_harmless(text) + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            self.quiet = True


# All control characters but tab and line feed: a source or a question must not command the terminal it is shown on.
_CONTROLS = {c: "\ufffd" for c in (*range(0x20), *range(0x7F, 0xA0)) if chr(c) not in "\t\n"}


def _harmless(text: str) -> str:
    return text.translate(_CONTROLS)


def _program() -> str:
    """The program as it was called: an outer agent in temp/ has to say `python ../dr_runner.py`."""
    called = sys.argv[0] if sys.argv else ""
    if not called.endswith("dr_runner.py"):
        return PLAIN
    found = shutil.which("python")
    same = found is not None and Path(found).resolve() == Path(sys.executable).resolve()
    words = ["python" if same and sys.prefix == sys.base_prefix else sys.executable, called]
    return " ".join(shlex.quote(w) if sys.platform != "win32" else w for w in words)


def _flat(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, (list, tuple)):
        return ", ".join(_flat(v) for v in value) or "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return " ".join(str(value).split())


def fit(data: dict[str, Any], limit: int = JSON_CHARS) -> dict[str, Any]:
    """`data` so that its JSON stays under `limit` characters: long texts and lists are shortened, never broken.

    What was left out is said in the key "shortened"; the files hold it whole.
    """
    for texts, items in ((None, None), (_LONG, 60), (300, 30), (160, 16), (80, 8), (40, 3), (20, 1)):
        shorter = data if texts is None else _shorten(data, texts, items or 0)
        if texts is not None:
            shorter = {**shorter, "shortened": "long texts and lists; the files hold them whole"}
        if len(json.dumps(shorter, ensure_ascii=False)) < limit:
            return shorter
    return {"shortened": "everything; read the files", **{k: v for k, v in data.items() if isinstance(v, (int, bool))}}


def _shorten(value: Any, texts: int, items: int) -> Any:
    if isinstance(value, str) and len(value) > texts and not value.startswith(("/", "http")):
        return value[: texts - 1] + "…"
    if isinstance(value, dict):
        return {k: _shorten(v, texts, items) for k, v in value.items()}
    if isinstance(value, list):
        return [_shorten(v, texts, items) for v in value[:items]]
    return value
