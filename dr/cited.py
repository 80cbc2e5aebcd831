"""A node's conclusion.md and evidence.jsonl -> Cited: its text, and where each of its citations leads.

What a node cited without leaving evidence (GA) is looked up in the snapshots of sources/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dr import files
from dr.conclusion import Conclusion, parse
from dr.contract import Passage
from dr.errors import FormatError
from dr.layout import NodeFolder, RunFolder
from dr.markdown import plain

_EVIDENCE_ID = re.compile(r"(?:rag|web|code|local|mem)-\d+")
_AROUND = 600  # characters of a snapshot on each side of a quote that serve as its passage


@dataclass(frozen=True)
class Source:
    """What one citation leads to, before it has a number."""

    title: str
    place: str
    locator: tuple[tuple[str, str], ...]
    quote: str
    passage: str

    @property
    def key(self) -> tuple[str, tuple[tuple[str, str], ...], str]:
        """Two nodes that cite the same words of the same place cite one reference."""
        return self.place, self.locator, " ".join(self.quote.split())


@dataclass(frozen=True)
class Cited:
    """A node's conclusion and where its citations lead. by_id: citation id without brackets -> its sources."""

    node: str
    body: str
    leads: tuple[str, ...] = ()
    by_id: Mapping[str, tuple[Source, ...]] = field(default_factory=dict)
    listed: tuple[Source, ...] = ()  # of the source lines, in their order
    notes: tuple[str, ...] = ()  # of the subagent on its own work

    @property
    def texts(self) -> list[str]:
        """All that it says: the conclusion, and the titles and quotes of its sources; its notes say nothing."""
        return [self.body, *(text for source in self.listed for text in (source.title, source.quote))]


def read_node(folder: NodeFolder, base: Path, snapshots: Mapping[str, Path]) -> Cited | None:
    """None when the node has no conclusion. base: what a relative path in a source line is relative to."""
    if not folder.conclusion.is_file():
        return None
    text = plain(files.read_text(folder.conclusion))
    if not text.strip():
        return None
    return cited(folder.node_id, parse(text), _evidence(folder), base, snapshots)


def cited(
    node: str, conclusion: Conclusion, evidence: list[Passage], base: Path, snapshots: Mapping[str, Path]
) -> Cited:
    """Where the citations of a conclusion lead: to its evidence, else to a snapshot, else to a place without text."""
    by_evidence = {passage.id.strip("[]"): passage for passage in evidence}
    by_id: dict[str, tuple[Source, ...]] = {}
    listed = []
    for line in conclusion.sources:
        citation_id = (line.citation_id or "").strip("[]【】 ")
        place, quote = plain(line.place).strip(), plain(line.quote or "").strip()
        passage = by_evidence.get(citation_id) or _quoted(evidence, place, quote)
        if passage:
            source = _from_evidence(passage, quote)
        else:
            place = _absolute(place, base)
            title, text = _snapshot(snapshots, place, quote)
            source = Source(title or _title(place), place, _locator(line.locator), quote, text)
        listed.append(source)
        if citation_id:
            by_id[citation_id] = (*by_id.get(citation_id, ()), source)
    for citation_id, passage in by_evidence.items():
        by_id.setdefault(citation_id, (_from_evidence(passage, ""),))
    return Cited(node, conclusion.body, tuple(conclusion.leads), by_id, tuple(listed), tuple(conclusion.notes))


def find_snapshots(folder: RunFolder) -> dict[str, Path]:
    """URL or path -> the text file of its snapshot in sources/."""
    found = {}
    for record_path in sorted(folder.sources.glob("*.json")) if folder.sources.is_dir() else ():
        try:
            record = files.read_json(record_path)
        except (FormatError, OSError):
            continue  # half a snapshot is no snapshot; its citations stay unchecked
        place = record.get("url") or record.get("path") if isinstance(record, dict) else None
        text = record_path.with_suffix(".txt")
        if place and text.is_file():
            found[_same_place(str(place))] = text
    return {**found, **_followed(folder)}


def _followed(folder: RunFolder) -> dict[str, Path]:
    """Places as nodes wrote them -> the snapshot to which they led (dr/agent/follow.py)."""
    try:
        data = files.read_json(folder.snapshots.followed)
    except (FormatError, OSError):
        return {}
    entries = data.items() if isinstance(data, dict) else ()
    texts = {str(p): folder.snapshots.text(str(e.get("sha256"))) for p, e in entries if isinstance(e, dict)}
    return {_same_place(_absolute(p, folder.path.parent.parent)): t for p, t in texts.items() if t.is_file()}


def _evidence(folder: NodeFolder) -> list[Passage]:
    found = []
    for record in files.read_lines(folder.evidence):
        try:
            passage = Passage.from_dict(record)
        except (KeyError, TypeError, ValueError):
            continue  # not a passage; whatever cites it leads nowhere and is counted
        if _EVIDENCE_ID.fullmatch(passage.id.strip("[]")):
            found.append(passage)
    return found


def _from_evidence(passage: Passage, quote: str) -> Source:
    title = plain(passage.title).strip() or _title(passage.place)
    return Source(title, plain(passage.place), _locator(passage.locator), quote, plain(passage.text))


def _quoted(evidence: list[Passage], place: str, quote: str) -> Passage | None:
    """The passage of the same document that holds the quote, for a source line that names no id."""
    wanted = "".join(quote.split())
    if not wanted:
        return None
    for passage in evidence:
        same = _same_place(passage.place) == _same_place(place) or _name(passage.place) == _name(place)
        if same and wanted in "".join(passage.text.split()):
            return passage
    return None


def _snapshot(snapshots: Mapping[str, Path], place: str, quote: str) -> tuple[str, str]:
    """Title, and the text around the quote, or the whole text when the quote is not in it."""
    path = snapshots.get(_same_place(place))
    if path is None:
        return "", ""
    text = plain(files.read_text(path))
    title = str(files.read_json(path.with_suffix(".json")).get("title") or "")
    words = [re.escape(word) for word in quote.split()]
    match = re.search(r"\s*".join(words), text) if words else None
    if match:
        text = text[max(0, match.start() - _AROUND) : match.end() + _AROUND]
    return plain(title).strip(), text


def _same_place(place: str) -> str:
    return place.split("#")[0].rstrip("/")


def _name(place: str) -> str:
    return re.split(r"[\\/]", place.rstrip("\\/"))[-1]


def _title(place: str) -> str:
    if place.startswith(("http://", "https://")):
        parts = urlsplit(place)
        return parts.netloc + parts.path.rstrip("/")
    return _name(place)


def _absolute(place: str, base: Path) -> str:
    """A relative path that exists, made absolute; a URL, or words that are no path, as they are."""
    if "://" in place or not place or len(place) > 1000:
        return place
    try:
        path = base / Path(place).expanduser()
        return str(path) if path.exists() else place
    except (OSError, ValueError, RuntimeError):  # not even the form of a path here
        return place


def _locator(locator: Any) -> tuple[tuple[str, str], ...]:
    """{"page": 3}, or the text of a source line (`p. 3`, `L12`, `§ Heading`), as pairs."""
    if isinstance(locator, Mapping):
        return tuple((str(k), plain(str(v))) for k, v in locator.items() if v not in (None, ""))
    text = plain(str(locator or "")).strip(" ,，")
    for name, pattern in (
        ("page", r"(?:pp?\.?|第)\s*(\d[\d–-]*)\s*页?"),
        ("line", r"L(?:ines?)?\.?\s*(\d[\d–-]*)"),
        ("section", r"§\s*(.+)"),
    ):
        if match := re.fullmatch(pattern, text, re.IGNORECASE):
            return ((name, match[1]),)
    return (("section", text),) if text else ()
