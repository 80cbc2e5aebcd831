"""Reading and writing of our own files: UTF-8, `\\n`, atomic replace; JSON and JSON lines with clear errors."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import sys
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from dr.errors import FatalError, FormatError, UsageError

_DISK_FULL = {errno.ENOSPC, errno.EDQUOT if hasattr(errno, "EDQUOT") else errno.ENOSPC}


def is_disk_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in _DISK_FULL


def write_text(path: Path, text: str) -> os.stat_result:
    """Replace `path` by `text` in one step: a reader, or a kill, sees the old or the new file, never a part.

    Returns what stat() says of the very file that was written, whoever has replaced it since.
    FatalError when the disk is full; OSError otherwise. Not for two threads writing one file at once.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with _disk_full_told(path):
        try:
            with open(temporary, "wb") as stream:  # noqa: PTH123 - several times a node: Path.open costs a fifth more
                stream.write(text.encode("utf-8", errors="replace"))
                stream.flush()
                written = os.fstat(stream.fileno())
            replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    return written


def write_new(path: Path, text: str) -> None:
    """A file that nobody reads yet, without the detour of write_text: a kill may leave a part of it."""
    with _disk_full_told(path), open(path, "wb") as stream:  # noqa: PTH123 - as above
        stream.write(text.encode("utf-8", errors="replace"))


@contextmanager
def _disk_full_told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL:
            raise FatalError(f"write {path}", "the disk is full", "free some space, then resume the task") from error
        raise


def replace(source: Path, target: Path) -> None:
    """Path.replace, patient on Windows, where a reader holding the target open refuses it for a moment."""
    for pause in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, None):
        try:
            source.replace(target)
            return
        except PermissionError:
            if sys.platform != "win32" or pause is None:
                raise
            time.sleep(pause)


def write_json(path: Path, data: Any) -> None:
    write_text(path, json_text(data))


def json_text(data: Any) -> str:
    """An object with one key a line, anything else indented: readable, and for objects in C, a third of the time."""
    if isinstance(data, dict):
        lines = (
            f" {json.dumps(str(k), ensure_ascii=False)}: {json.dumps(v, ensure_ascii=False)}" for k, v in data.items()
        )
        return "{\n" + ",\n".join(lines) + "\n}\n"
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def read_text(path: Path) -> str:
    """Text of a file that others may have written: BOM dropped, undecodable bytes replaced, newlines as `\\n`."""
    data = path.read_bytes()
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))  # what a Windows shell or editor writes; no UTF-8 begins so
    text = data.decode("utf-16" if wide else "utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_given(path: Path) -> str:
    """read_text of a file that the user named; UsageError when it cannot be read."""
    try:
        return read_text(path)
    except OSError as error:
        raise UsageError(f"read {path}", error.strerror or str(error), "give a file that can be read") from error


def read_json(path: Path) -> Any:
    """FormatError when it is no JSON; OSError when it cannot be read."""
    try:
        return _decoded(read_text(path))
    except ValueError as error:
        raise FormatError(f"read {path}", f"not valid JSON ({error})", "restore the file or remove it") from error


def _decoded(text: str) -> Any:
    """What the JSON means, as our own writers could have written it; ValueError for anything else.

    Others write these files too: no nesting without end, no infinite number, no half of a surrogate pair.
    """
    try:
        data = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if "\\ud" in text or "\\uD" in text:
        data = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", errors="replace"))
    return data


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is no finite number")
    return value


_T = TypeVar("_T")
_KINDS: dict[str, tuple[type, ...]] = {
    **{"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)},
    **{"dict": (dict,), "list": (list,), "None": (type(None),)},
}


@cache
def _shape(record: Any) -> dict[str, tuple[tuple[type, ...], tuple[type, ...] | None]]:
    """Field -> its types, and those of its elements; read from annotations like "list[str] | None"."""
    shape = {}
    for item in fields(record):
        names = re.findall(r"(\w+)(?:\[(\w+))?[^|]*", str(item.type))
        inner = next((_KINDS[element] for name, element in names if name == "list"), None)
        shape[item.name] = (tuple(kind for name, _ in names for kind in _KINDS[name]), inner)
    return shape


def record_of(record: type[_T], data: Any) -> _T:
    """The dataclass that a JSON object is, keys that it does not know passed over. TypeError: a key is missing, or a
    value is not of its field's type."""
    if not isinstance(data, dict):
        raise TypeError("not an object")
    shape = _shape(cast("Hashable", record))
    known = {key: value for key, value in data.items() if key in shape}
    for key, value in known.items():
        kinds, inner = shape[key]
        right = isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)
        if not right or (inner and value and not all(isinstance(element, inner) for element in value)):
            raise TypeError(f"{key} cannot be {str(value)[:60]!r}")
    return record(**known)


def append_line(path: Path, record: dict[str, Any]) -> None:
    """One JSON line at the end of `path`, in one write, so that a kill leaves at most one cut line."""
    data = (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", errors="replace")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
    try:
        if os.write(handle, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        if error.errno in _DISK_FULL:
            raise FatalError(f"write {path}", "the disk is full", "free some space, then resume the task") from error
        raise
    finally:
        os.close(handle)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file; a missing file has none, a line cut by a kill is passed over."""
    if not path.exists():
        return
    for line in read_text(path).split("\n"):
        if not line.strip():
            continue
        try:
            record = _decoded(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record
