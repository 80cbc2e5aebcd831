"""Source paths -> documents with passages that have a place (page, line, section). Reads files, writes none."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dr.agent.unreadable import Unreadable
from dr.contract import Passage
from dr.errors import DrError

# What divides and decodes text is imported once the first file is read: start-up CPU is what bounds a wide DAG.
if TYPE_CHECKING:
    from dr.agent.readers.block import Parsed

MAX_FILES = 5_000
MAX_FILE_MB = 64
MAX_TOTAL_MB = 512
_SKIPPED_FOLDERS = frozenset(("__pycache__", "node_modules"))


@dataclass(frozen=True)
class Document:
    """One source that was read. Its passages have no id until they are cited."""

    title: str
    passages: list[Passage]
    notes: list[Unreadable] = field(default_factory=list)


@dataclass(frozen=True)
class Corpus:
    """All that a node's sources hold. failed: files, or parts of them, that could not be read, and why."""

    documents: list[Document]
    failed: list[Unreadable]

    @property
    def passages(self) -> list[Passage]:
        return [passage for document in self.documents for passage in document.passages]


def read_corpus(paths: list[Path], kind: str, fence: Callable[[Path], bool] = lambda _: True) -> Corpus:
    """Every file of `paths` (files or folders). fence: whether a resolved path may be read at all.

    A file that fails does not stop the others. Order: that of `paths`, then by name.
    """
    documents: list[Document] = []
    failed: list[Unreadable] = []
    seen: set[Path] = set()
    total = 0
    for path in paths:
        for found in _files(path, fence):
            if isinstance(found, Unreadable):
                failed.append(found)
                continue
            if found in seen:
                continue
            if len(seen) >= MAX_FILES:
                failed.append(Unreadable("too_many", str(path), limit=MAX_FILES))
                break
            seen.add(found)
            try:
                total += found.stat().st_size
                if total > MAX_TOTAL_MB * 1024 * 1024:
                    failed.append(Unreadable("too_much", str(path), limit=MAX_TOTAL_MB))
                    break
                document = read_document(found, kind)
            except Unreadable as error:
                failed.append(error)
            except OSError as error:
                failed.append(Unreadable("denied", str(found), detail=error.strerror or type(error).__name__))
            else:
                documents.append(document)
                failed += document.notes
    return Corpus(documents, failed)


def _files(path: Path, fence: Callable[[Path], bool]) -> Iterator[Path | Unreadable]:
    """Resolved files below `path` in order of name; hidden ones are passed over, symlinks never lead out of it."""
    try:
        top = path.resolve(strict=True)
        kind = top.stat().st_mode
    except (OSError, RuntimeError, ValueError) as error:  # a loop of symlinks; a NUL in the name
        absent = isinstance(error, (FileNotFoundError, NotADirectoryError, ValueError))
        yield Unreadable("missing", str(path)) if absent else Unreadable("denied", str(path), detail=str(error))
        return
    if not fence(top):
        yield Unreadable("other_node", str(path))
    elif stat.S_ISREG(kind):
        yield top
    elif not stat.S_ISDIR(kind):
        yield Unreadable("not_regular", str(path))
    else:
        empty = True
        for found in _walk(top, fence):
            empty = False
            yield found
        if empty:
            yield Unreadable("no_files", str(path))


def _walk(top: Path, fence: Callable[[Path], bool]) -> Iterator[Path | Unreadable]:
    unreadable: list[OSError] = []
    for folder, folders, names in os.walk(top, onerror=unreadable.append):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if not _hidden(name) and fence(here / name))
        for name in [name for name in folders if (here / name).is_symlink()]:
            folders.remove(name)  # one that stays inside `top` is reached by its own name
            if not Path(os.path.realpath(here / name)).is_relative_to(top):
                yield Unreadable("outside", str(here / name))
        for name in sorted(names):
            entry = here / name
            if _hidden(name):
                continue
            if entry.is_symlink():
                target = Path(os.path.realpath(entry))  # unlike resolve(), it passes over a loop
                if not target.is_relative_to(top):
                    yield Unreadable("outside", str(entry))
                    continue
                entry = target
            if entry.is_file():
                yield entry
    for error in unreadable:
        yield Unreadable("denied", str(error.filename), detail=error.strerror or type(error).__name__)


def _hidden(name: str) -> bool:
    return name.startswith((".", "~$")) or name in _SKIPPED_FOLDERS


def read_document(path: Path, kind: str) -> Document:
    """One file. Unreadable when it holds no text that may be quoted; OSError when it cannot be opened."""
    size = path.stat().st_size
    if size > MAX_FILE_MB * 1024 * 1024:
        raise Unreadable("too_large", str(path), size=size // (1024 * 1024), limit=MAX_FILE_MB)
    data = path.read_bytes()
    return document_of(data, str(path), kind, name=path.name)


def document_of(data: bytes, place: str, kind: str, name: str = "", charset: str | None = None) -> Document:
    """The document that `data` is, by its content first and its name second. charset: what a server declared."""
    import hashlib

    from dr import language
    from dr.agent.readers.passages import pack

    try:
        parsed = parse(data, name, charset)
        packed = [(t, locator) for t, locator in pack(parsed.blocks, language.sentences) if t.strip()]
        if not packed:
            raise Unreadable("empty")
    except Unreadable as error:
        raise error.at(place) from error
    except (DrError, ImportError):
        raise
    except Exception as error:  # readers meet hostile bytes: what one cannot take costs this document only
        raise Unreadable("reader_failed", place, detail=type(error).__name__) from error
    digest = hashlib.sha256(data).hexdigest()
    title = parsed.title or Path(name).stem or place
    passages = [Passage("", kind, place, digest, title, dict(locator), text) for text, locator in packed]
    return Document(title, passages, [note.at(place) for note in parsed.notes])


_CODE = frozenset(
    "py js ts jsx tsx java c h cc cpp hpp cs go rs rb php pl sh bash zsh ps1 bat r m jl scala kt swift lua sql "
    "toml ini cfg conf yaml yml xml css scss vue tex bib make cmake dockerfile".split()
)
_HTML = frozenset("html htm xhtml shtml".split())
_MARKDOWN = frozenset("md markdown mdown mkd".split())


def parse(data: bytes, name: str, charset: str | None = None) -> Parsed:
    """`data` through the reader of its format."""
    suffix = Path(name).suffix.lstrip(".").casefold()
    if b"%PDF-" in data[:1024]:
        from dr.agent.readers.pdf import read_pdf

        return read_pdf(data)
    if data.startswith(b"PK\x03\x04"):
        from dr.agent.readers.docx import DOCUMENT, read_docx

        if suffix == "docx" or DOCUMENT.encode() in data:
            return read_docx(data)
        raise Unreadable("binary", detail=f"zip, .{suffix}" if suffix else "zip")
    if suffix == "pdf":
        raise Unreadable("pdf_broken", detail="no %PDF header")
    text = _text_of(data, charset, suffix)
    head = text[:1024].lstrip().casefold()
    if suffix in _HTML or head.startswith(("<!doctype html", "<html")):
        from dr.agent.readers.html import read_html

        return read_html(text)
    if suffix in ("csv", "tsv", "json", "jsonl", "ndjson"):
        from dr.agent.readers.table import read_csv, read_json

        return read_csv(text, suffix == "tsv") if suffix in ("csv", "tsv") else read_json(text)
    from dr.agent.readers.text import read_code, read_markdown, read_text

    if suffix in _MARKDOWN:
        return read_markdown(text)
    return read_code(text) if suffix in _CODE else read_text(text)


def _text_of(data: bytes, charset: str | None, suffix: str) -> str:
    """The text of `data`, or Unreadable when it is none."""
    from dr.agent.decode import decode

    if not data.strip():
        raise Unreadable("empty")
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff"))
    if not wide and b"\x00" in data[:65536]:
        raise Unreadable("binary", detail=f".{suffix}" if suffix else "NUL")
    text = decode(data, charset)
    sample = text[:20_000]
    odd = sum(1 for c in sample if (c < " " and c not in "\t\n\r\x0c\x1b") or "\x7f" <= c <= "\x9f" or c == "\ufffd")
    if odd > 0.03 * len(sample):
        raise Unreadable("binary", detail=f".{suffix}" if suffix else "?")
    return text
