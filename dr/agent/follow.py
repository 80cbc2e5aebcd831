"""Source lines of nodes that left no evidence (GA's) followed by code: each source snapshotted into sources/.

    python -m dr.agent.follow RUN_FOLDER SECONDS

followed.json there says of each place which snapshot it led to, or why to none. Run by the runner beside a run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from dr import files
from dr.agent.documents import Document, read_document
from dr.agent.hosts import held
from dr.agent.snapshots import joined
from dr.agent.sources import local_paths
from dr.agent.unreadable import Unreadable
from dr.contract import split_sources
from dr.errors import DrError, FormatError
from dr.layout import NodeFolder, Root, RunFolder
from dr.settings import load
from dr.source_lines import parse_sources

AT_ONCE = 4
_SECRETS = ("mykey.",)  # GA's keys: never a source, whatever a node says


def main(argv: list[str]) -> int:
    run, seconds = RunFolder(Path(argv[0]).resolve()), float(argv[1])
    follow(run, Root(run.path.parent.parent), time.monotonic() + seconds)
    return 0


def follow(run: RunFolder, root: Root, deadline: float) -> None:
    """Every place that is not followed yet, until the deadline; one that failed is tried again by the next call."""
    todo = {place: node for node, place in _places(run) if not _known(run).get(place, {}).get("sha256")}
    if not todo:
        return
    reader = _Reader(run, root)
    pool = ThreadPoolExecutor(AT_ONCE)
    futures = {pool.submit(reader.read, place, node): place for place, node in todo.items()}
    try:
        for future in as_completed(futures, timeout=max(0.0, deadline - time.monotonic())):
            try:
                entry: dict[str, Any] = {"sha256": future.result()}
            except DrError as error:
                entry = {"why": error.why("en") if isinstance(error, Unreadable) else error.wrong}
            except (OSError, ImportError, ValueError) as error:
                entry = {"why": f"{type(error).__name__}: {error}"}
            _note(run, futures[future], entry)
    except TimeoutError:
        pass  # what is not done is not checked
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _places(run: RunFolder) -> Iterator[tuple[NodeFolder, str]]:
    for entry in sorted(run.path.iterdir()):
        node = NodeFolder(entry)
        if node.conclusion.is_file() and not node.evidence.exists():
            for source in parse_sources(files.read_text(node.conclusion)):
                yield node, source.place.strip()


def _known(run: RunFolder) -> dict[str, Any]:
    try:
        data = files.read_json(run.snapshots.followed)
    except (FormatError, OSError):
        return {}
    return data if isinstance(data, dict) else {}


def _note(run: RunFolder, place: str, entry: dict[str, Any]) -> None:
    run.sources.mkdir(exist_ok=True)
    with held(run.sources / "followed.lock", 30.0, lambda: Unreadable("snapshot_busy", place)):
        files.write_json(run.snapshots.followed, {**_known(run), place: entry})


class _Reader:
    def __init__(self, run: RunFolder, root: Root) -> None:
        self.run, self.root = run, root
        self._web: Any = None

    def read(self, place: str, node: NodeFolder) -> str:
        """SHA-256 under which its text now lies in sources/. Unreadable, OSError or ImportError: why it does not."""
        if place.lower().startswith(("http://", "https://")):
            return _digest(self._open_web().web_fetch(place))
        given = self._given(node)
        path = next((p for p in self._candidates(place, given) if p.is_file()), None)
        if path is None:
            raise Unreadable("missing", place)
        resolved = path.resolve()
        allowed = [p.resolve() for p in (*given, self.root.memory, node.path) if p.exists()]
        if not any(resolved.is_relative_to(top) for top in allowed) or resolved.name.startswith(_SECRETS):
            raise Unreadable("outside", place)
        document = read_document(resolved, "local")
        self._keep(str(path), document)
        return _digest(document)

    def _open_web(self) -> Any:
        if self._web is None:
            from dr.agent.web import open_web

            self._web = open_web(load(self.root.path, {}), self.run.snapshots, self.root.hosts, lambda _: None)
        return self._web

    def _candidates(self, place: str, given: list[Path]) -> Iterable[Path]:
        """GA's agents work in temp/, so that is what their relative paths start from; some give a mere name."""
        path = Path(place).expanduser()
        if path.is_absolute():
            return [path]
        named = [top / path if top.is_dir() else top for top in given if top.is_dir() or top.name == path.name]
        return [self.root.temp / path, self.root.path / path, *named]

    def _given(self, node: NodeFolder) -> list[Path]:
        """The files and folders among the node's sources."""
        context = files.read_json(node.context)
        source = str(context.get("source", "")) if isinstance(context, dict) else ""
        return local_paths(source, self.root) if any("://" not in s for s in split_sources(source)) else []

    def _keep(self, path: str, document: Document) -> None:
        digest, folder = _digest(document), self.run.snapshots
        folder.path.mkdir(exist_ok=True)
        text, _ = joined(document.passages)
        files.write_text(folder.text(digest), text)
        record = {"path": path, "title": document.title, "fetched_at": round(time.time(), 3), "media_type": ""}
        files.write_json(folder.record(digest), record)


def _digest(document: Document) -> str:
    return document.passages[0].sha256


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
