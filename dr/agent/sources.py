"""The sources that a node may read, by its type -> Corpus. The fences of LOCAL and MEMORY nodes are here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dr.agent.documents import Corpus, read_corpus
from dr.agent.request import Request
from dr.agent.unreadable import Unreadable
from dr.agent.words import say
from dr.contract import NodeType, split_sources
from dr.errors import SourceError
from dr.layout import TASK_PREFIX, NodeFolder, Root, RunFolder, SnapshotFolder

if TYPE_CHECKING:
    from dr.settings import Settings

KINDS = {NodeType.LOCAL: "local", NodeType.MEMORY: "mem", NodeType.WEB: "web"}
INSIGHT_INDEX = "global_mem_insight.txt"
_NOTES = ("global_mem.txt", "user_profile.txt", "user_profile.md")


def read_sources(
    request: Request,
    folder: NodeFolder | None,
    root: Root,
    load: Callable[[], Settings],
    log: Callable[[str], None] = lambda _: None,
) -> Corpus:
    """All that the node may read; a corpus without documents says why in `failed`. Unreadable: the type is unknown."""
    if request.type not in KINDS:
        raise Unreadable("type_unavailable", type=request.type.value)
    if request.type is NodeType.WEB:
        from dr.agent.web import open_web

        web = open_web(load(), snapshot_folder(folder, root), root.hosts, log)
        return web.read(request.context.source, request.context.sub_question)
    fence = Fence(root, folder)
    if request.type is NodeType.LOCAL:
        paths = local_paths(request.context.source, root)
        return read_corpus(paths, KINDS[request.type], fence) if paths else Corpus([], [Unreadable("no_source")])
    given = load().memory
    memory = root.path / Path(given).expanduser() if given else root.memory
    if memory.is_dir():
        return read_corpus(memory_paths(memory, request.context.source), KINDS[request.type], fence)
    return Corpus([], [Unreadable("memory_missing", str(memory))])


def snapshot_folder(folder: NodeFolder | None, root: Root) -> SnapshotFolder:
    """The sources/ that all nodes of a run share; of a node without a run, its own."""
    if folder is None:
        return SnapshotFolder(root.temp / "sources")
    run = folder.path.parent
    shared = run.parent == root.temp and run.name.startswith(TASK_PREFIX)
    return RunFolder(run if shared else folder.path).snapshots


def type_error(request: Request, lang: str) -> SourceError:
    """The node's type has no tools here."""
    word = request.type.value
    return SourceError(
        say(lang, "tried_node", type=word),
        say(lang, "type_unavailable", type=word),
        say(lang, "type_unavailable_next"),
    )


def nothing_read(request: Request, corpus: Corpus, lang: str) -> SourceError:
    """Why no source at all could be read."""
    place = request.context.source.strip() or (corpus.failed[0].place if corpus.failed else "")
    tried = say(lang, "tried_read", place=place or say(lang, "the_sources"))
    following = "web_next" if request.type is NodeType.WEB else "unavailable_next"
    return SourceError(tried, _reasons(corpus, lang), say(lang, following))


def _reasons(corpus: Corpus, lang: str) -> str:
    if len(corpus.failed) == 1:
        return corpus.failed[0].why(lang)
    shown = notes(corpus, lang)[:5]
    if len(corpus.failed) > len(shown):
        shown.append(say(lang, "unread_more", count=len(corpus.failed) - len(shown)))
    if not shown:
        return say(lang, "no_files")
    return say(lang, "all_failed", reasons=say(lang, "separator").join(shown))


def notes(corpus: Corpus, lang: str) -> list[str]:
    """What could not be read, a line each: the file's name, or the URL, and why."""
    brackets = ("（", "）") if lang == "zh" else (" (", ")")
    return [f"{_short(e.place)}{brackets[0]}{e.why(lang)}{brackets[1]}" for e in corpus.failed]


def _short(place: str) -> str:
    return place if "://" in place else Path(place).name or place


class Fence:
    """Whether a resolved path may be read: not when it lies in another node's folder."""

    def __init__(self, root: Root, own: NodeFolder | None) -> None:
        self.temp = root.temp.resolve()
        self.own = own.path.resolve() if own else None

    def __call__(self, path: Path) -> bool:
        if path == self.temp or not path.is_relative_to(self.temp):
            return True
        for folder in (path, *path.parents):
            if folder == self.temp:
                return True
            if folder != self.own and (folder / "context.json").is_file():
                return False
        return True


def local_paths(source: str, root: Root) -> list[Path]:
    """The paths of a `source`; relative ones are below the root."""
    whole = _path(source.strip(), root)
    parts = [source.strip()] if source.strip() and os.path.lexists(whole) else split_sources(source)
    return [_path(part, root) for part in parts]


def _path(text: str, root: Root) -> Path:
    if text.startswith("file://"):
        from urllib.parse import unquote, urlsplit

        text = unquote(urlsplit(text).path)
    return root.path / Path(text.strip("\"'")).expanduser()


def memory_paths(memory: Path, source: str) -> list[Path]:
    """The insight index, the files that it names in its order, the profile, then all other notes.

    `source` narrows this to a path inside the folder when it names one.
    """
    top = memory.resolve()
    named = [(top / part).resolve() for part in split_sources(source)]
    inside = [path for path in named if path != top and path.is_relative_to(top) and path.exists()]
    if inside:
        return inside
    index = top / INSIGHT_INDEX
    everything = [path for path in sorted(top.rglob("*")) if path.is_file() and not _hidden(path, top)]
    readable = [path for path in everything if path.resolve().is_relative_to(top)]
    text = index.read_bytes().decode("utf-8", errors="replace") if index.is_file() else ""
    named_there = sorted((at, path) for path in readable if (at := _named_at(path, text)) >= 0)
    notes_ = [top / name for name in _NOTES]
    plain = [path for path in readable if path.suffix.casefold() in (".md", ".txt")]
    ordered = [index, *(path for _, path in named_there), *notes_, *plain]
    return [path for path in dict.fromkeys(ordered) if path.is_file()]


def _named_at(path: Path, text: str) -> int:
    """Where `text` names the file, with or without its suffix; -1 when it does not."""
    import re

    for name in (path.name, path.stem if len(path.stem) > 3 else path.name):
        if match := re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
            return match.start()
    return -1


def _hidden(path: Path, top: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(top).parts)
