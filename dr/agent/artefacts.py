"""Files that a script wrote: listed, moved to artifacts/, the rest of its folder removed. Follows no symlink and trusts
no name, depth or mode in there."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

MAX_FILES = 200
MAX_BYTES = 100 * 1024 * 1024
_MAX_DEPTH = 16
_UNSAFE = re.compile(r"[^\w.,()+=@ -]")
_SHOWN = 20


@dataclass(frozen=True)
class Artefact:
    """path: absolute. name: as the script called it below its folder, made safe to show. size: bytes."""

    path: Path
    name: str
    size: int


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        if stat.S_ISDIR(folder.lstat().st_mode):
            with os.scandir(folder) as found:
                return sorted(found, key=lambda entry: entry.name)
    except OSError:  # removed or closed by the script itself
        pass
    return []


def _walk(work: Path) -> Iterator[tuple[os.DirEntry[str], int]]:
    pending = [(work, 0)]
    while pending:
        folder, depth = pending.pop()
        for entry in _entries(folder):
            yield entry, depth
            if depth < _MAX_DEPTH and entry.is_dir(follow_symlinks=False):
                pending.append((Path(entry.path), depth + 1))


def disk_use(work: Path, most: int) -> tuple[int, int]:
    """(bytes on disk, number of entries) below `work`; counting stops above `most` entries."""
    size = count = 0
    for entry, _ in _walk(work):
        count += 1
        if count > most:
            break
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        size += found.st_blocks * 512 if hasattr(found, "st_blocks") else found.st_size
    return size, count


def collect(work: Path) -> tuple[list[Artefact], list[str]]:
    """(artefacts, names of what is left out): plain files that are not hidden, up to MAX_FILES and MAX_BYTES."""
    found: list[Artefact] = []
    left_out: list[str] = []
    total = 0
    for entry, depth in _walk(work):
        path = Path(entry.path)
        parts = path.relative_to(work).parts
        if any(part.startswith(".") for part in parts):
            continue
        if entry.is_dir(follow_symlinks=False) and depth < _MAX_DEPTH:
            continue
        try:
            known = path.lstat()
        except OSError:
            continue
        # A second name of a file elsewhere would carry that file away.
        plain = stat.S_ISREG(known.st_mode) and known.st_nlink == 1
        if not plain or len(found) >= MAX_FILES or total + known.st_size > MAX_BYTES:
            left_out.append("/".join(map(safe, parts)))
            continue
        total += known.st_size
        found.append(Artefact(path, "/".join(map(safe, parts)), known.st_size))
    return found, left_out[:_SHOWN]


def safe(part: str) -> str:
    """A file name that every system can hold and every text can show."""
    part = unicodedata.normalize("NFC", part.encode("utf-8", errors="replace").decode("utf-8"))
    return _UNSAFE.sub("_", part).strip(" .")[:100] or "_"


def move(artefacts: list[Artefact], target: Path) -> list[Artefact]:
    """The artefacts, moved below `target`, none over a file that is there."""
    moved = []
    for artefact in artefacts:
        path = free(target.joinpath(*artefact.name.split("/")))
        path.parent.mkdir(parents=True, exist_ok=True)
        artefact.path.chmod(0o644)  # not executable, and whatever else the script set
        artefact.path.replace(path)
        moved.append(replace(artefact, path=path))
    return moved


def free(path: Path) -> Path:
    """`path`, or the first of `name-2.suffix`, `name-3.suffix` … that does not exist."""
    number, candidate = 1, path
    while os.path.lexists(candidate):
        number += 1
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return candidate


def remove(folder: Path) -> None:
    """`folder` with all in it, however deep it goes and whatever its modes: what lies deep is moved up first."""
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink()
        return
    folder.chmod(0o700)
    number = 0
    while entries := list(_entries(folder)):
        for entry in entries:
            path = Path(entry.path)
            if not entry.is_dir(follow_symlinks=False):
                path.unlink()
                continue
            path.chmod(0o700)
            for inner in _entries(path):
                if inner.is_dir(follow_symlinks=False):
                    Path(inner.path).chmod(0o700)  # a folder is moved by changing it
                    number = _lift(Path(inner.path), folder, number)
                else:
                    Path(inner.path).unlink()
            path.rmdir()
    folder.rmdir()


def _lift(path: Path, top: Path, number: int) -> int:
    while os.path.lexists(top / f".{number}"):
        number += 1
    path.rename(top / f".{number}")
    return number + 1
