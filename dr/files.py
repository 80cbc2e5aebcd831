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
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from dr.errors import FatalError, FormatError, UsageError

_BINARY = getattr(os, "O_BINARY", 0)
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT if hasattr(errno, "EDQUOT") else errno.ENOSPC}


def is_disk_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in _DISK_FULL


def write_text(path: Path, text: str) -> os.stat_result:
    """Replace `path` by `text` in one step: a reader, or a kill, sees the old or the new file, never a part.

    Returns what stat() says of the very file that was written, whoever has replaced it since.
    FatalError when the disk is full; OSError otherwise. Not for two threads writing one file at once.
    """
    target = os.fspath(path)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")  # noqa: PTH118 - the same
    try:
        written = _write(temporary, text)
        replace(temporary, target)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _told(target, error) from error
        raise
    return written


def write_new(path: Path, text: str) -> None:
    """A file that nobody reads yet, without the detour of write_text: a kill may leave a part of it."""
    try:
        _write(path, text)
    except OSError as error:
        raise _told(path, error) from error


def _write(path: str | Path, text: str) -> os.stat_result:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, 0o666)
    try:
        _write_all(handle, text.encode("utf-8", errors="replace"))
        return os.fstat(handle)
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    """A full disk takes a part without an error; the next call then says so."""
    while len(data) > (written := os.write(handle, data)):
        data = data[written:]


def _told(path: str | Path, error: OSError) -> OSError | FatalError:
    if error.errno in _DISK_FULL:
        return FatalError(f"write {path}", "the disk is full", "free some space, then resume the task")
    return error


def replace(source: str | Path, target: str | Path) -> None:
    """os.replace, patient on Windows, where a reader holding the target open refuses it for a moment."""
    for pause in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, None):
        try:
            os.replace(source, target)  # noqa: PTH105 - as above
            return
        except PermissionError:
            if sys.platform != "win32" or pause is None:
                raise
            time.sleep(pause)


def write_json(path: Path, data: Any) -> None:
    write_text(path, json_text(data))


_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",\n ", ": ")).encode


def json_text(data: Any) -> str:
    """An object with one key a line, anything else indented: readable, and for objects in C, a tenth of the time."""
    if isinstance(data, dict) and data:
        return "{\n " + _ENCODE(data)[1:-1] + "\n}\n"
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


class Lines:
    """A JSON-lines file to append to: each record in one write, so that a kill leaves at most one cut line.

    The file is opened at the first record and kept open; close() when done.
    """

    _encode = json.JSONEncoder(ensure_ascii=False).encode

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def append(self, record: dict[str, Any]) -> None:
        """FatalError when the disk is full; OSError otherwise."""
        data = (self._encode(record) + "\n").encode("utf-8", errors="replace")
        try:
            if self._handle is None or not os.fstat(self._handle).st_nlink:  # somebody may have removed the file
                self.close()
                self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _BINARY, 0o644)
            if os.write(self._handle, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise _told(self.path, error) from error

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
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
