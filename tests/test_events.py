"""events.jsonl: appended whole, and readable whatever a kill left of its last line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dr import events
from dr.errors import FatalError
from dr.events import EventLog


def test_a_line_cut_by_a_kill_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    EventLog(path, lambda: 1.0).log("one", text="第一")
    EventLog(path, lambda: 2.0).log("two")
    for cut in range(1, 20):
        os.truncate(path, path.stat().st_size - 1)
        EventLog(path, lambda: 3.0).log("three")
        types = [e["type"] for e in events.read(path)]
        assert types[0] == "one" and types[-1] == "three", f"cut at {cut}"


def test_what_others_wrote_into_the_file_spoils_no_event(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("[" * 100_000 + '\n{"ts": 1e999}\n3\n', encoding="utf-8")
    EventLog(path, lambda: 1.0).log("one", text="\ud83d")
    assert [(e["type"], e["text"]) for e in events.read(path)] == [("one", "?")]


def test_a_line_that_found_no_room_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda handle, data: len(data) - 1)
    with pytest.raises(FatalError, match="disk is full"):
        EventLog(tmp_path / "events.jsonl").log("one")
