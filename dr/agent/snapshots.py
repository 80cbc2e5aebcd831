"""sources/ of a run: each URL is fetched once, whoever asks. In: a URL and how to read it; out: a Document.

<sha256>.txt holds the text as it is quoted, <sha256>.json what it is, urls/<key>.json which snapshot a URL led to.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dr import files
from dr.agent.documents import Document
from dr.agent.hosts import held
from dr.agent.unreadable import Unreadable
from dr.contract import Passage
from dr.errors import FormatError
from dr.layout import SnapshotFolder

_GAP = "\n\n"  # between the passages in the text file


@dataclass(frozen=True)
class Fetched:
    """A page that was read: its document, whose passages name the URL and the SHA-256 of its bytes."""

    document: Document
    final_url: str
    media_type: str


class Snapshots:
    """wait_s: seconds to wait for another process that is fetching the same URL."""

    def __init__(self, folder: SnapshotFolder, wait_s: float = 900.0, clock: Callable[[], float] = time.time) -> None:
        self.folder, self.wait_s, self.clock = folder, wait_s, clock

    def document(self, url: str, fetch: Callable[[str], Fetched]) -> Document:
        """The document at `url`, by `fetch` when no node of the run has it yet. What fails is not kept."""
        key = _sha256(url)
        if (found := self._known(url, key)) is not None:
            return found
        with held(self.folder.url_lock(key), self.wait_s, lambda: Unreadable("snapshot_busy", url)):
            found = self._known(url, key)  # by whoever had the lock before
            if found is None:
                fetched = fetch(url)
                self._keep(url, key, fetched)
                found = fetched.document
        return found

    def _known(self, url: str, key: str) -> Document | None:
        path = self.folder.url(key)
        if not path.is_file():
            return None
        try:
            entry = files.read_json(path)
            text = files.read_text(self.folder.text(entry["sha256"]))
            return _restored(url, entry, text)
        except (FormatError, OSError, KeyError, TypeError, ValueError):
            return None  # cut by a kill or edited by hand: fetched again, which mends it

    def _keep(self, url: str, key: str, fetched: Fetched) -> None:
        """Text, then record, then the URL's entry: what an entry leads to is complete."""
        document, digest = fetched.document, fetched.document.passages[0].sha256
        text, spans = joined(document.passages)
        entry = {
            "sha256": digest,
            "url": url,
            "final_url": fetched.final_url,
            "title": document.title,
            "notes": [[note.reason, note.facts] for note in document.notes],
            "text_sha256": _sha256(text),
            "passages": spans,
        }
        if _sha256_of(self.folder.text(digest)) != entry["text_sha256"]:
            files.write_text(self.folder.text(digest), text)
        if not self.folder.record(digest).is_file():  # another URL may have led to the same bytes before
            record = {
                "url": url,
                "title": document.title,
                "fetched_at": round(self.clock(), 3),
                "media_type": fetched.media_type,
            }
            files.write_json(self.folder.record(digest), record)
        files.write_json(self.folder.url(key), entry)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _sha256_of(path: Path) -> str:
    return _sha256(files.read_text(path)) if path.is_file() else ""


def joined(passages: list[Passage]) -> tuple[str, list[list[Any]]]:
    """The passages as one text, and [start, end, locator] of each."""
    spans: list[list[Any]] = []
    at = 0
    for passage in passages:
        spans.append([at, at + len(passage.text), passage.locator])
        at += len(passage.text) + len(_GAP)
    return _GAP.join(p.text for p in passages), spans


def _restored(url: str, entry: dict[str, Any], text: str) -> Document:
    digest, title = str(entry["sha256"]), str(entry["title"])
    if entry["text_sha256"] != _sha256(text):
        raise ValueError("the text is not the one that was written")
    spans = entry["passages"]
    passages = [Passage("", "web", url, digest, title, dict(where), text[a:b]) for a, b, where in spans]
    notes = [Unreadable(reason, url, **facts) for reason, facts in entry["notes"]]
    return Document(title, passages, notes)
