"""CSV, TSV and JSON -> one block a row or record, each value with the name of its column. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from dr.agent.readers.block import Block, Parsed
from dr.agent.readers.text import read_text

_DELIMITERS = ",\t;|"
_CELL = 2_000  # characters of one value; longer ones are cut at this length, marked
csv.field_size_limit(16 * 1024 * 1024)


def read_csv(text: str, tabs: bool = False) -> Parsed:
    """Rows as "header: value; header: value"; the line number is that of the row."""
    text = text.replace("\x00", "")
    delimiter = "\t" if tabs else _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[tuple[int, list[str]]] = []
    before = 0
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append((before + 1, [_short(cell) for cell in row]))
            before = reader.line_num
    except csv.Error:
        return read_text(text)
    if not rows:
        return Parsed("", [])
    header = rows[0][1]
    if not _is_header(header, [row for _, row in rows[1:]]):
        return Parsed("", [Block(" | ".join(row), {"line": line}) for line, row in rows])
    blocks = [Block(_pairs(header, row), {"line": line}) for line, row in rows[1:]]
    return Parsed("", [block for block in blocks if block.text])


def _delimiter(text: str) -> str:
    """The delimiter that divides the first lines into the same number of cells, more than one."""
    sample = [line for line in text.split("\n")[:20] if line.strip()][:10]

    def score(delimiter: str) -> tuple[bool, int]:
        counts = [len(row) for row in csv.reader(sample, delimiter=delimiter)]
        return (len(set(counts)) == 1, min(counts)) if counts and min(counts) > 1 else (False, 0)

    return max(_DELIMITERS, key=score)


def _is_header(first: list[str], rest: list[list[str]]) -> bool:
    """A first row of names: no empty or repeated cell, no number."""
    names = [cell for cell in first if cell]
    return bool(rest) and len(names) == len(set(names)) == len(first) and not any(_is_number(cell) for cell in first)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "").rstrip("%"))
    except ValueError:
        return False
    return True


def _pairs(header: list[str], row: list[str]) -> str:
    names = [*header, *(f"#{i + 1}" for i in range(len(header), len(row)))]
    return "; ".join(f"{name}: {value}" for name, value in zip(names, row, strict=False) if value)


def _short(value: str) -> str:
    value = " ".join(value.split())
    return value if len(value) <= _CELL else value[:_CELL] + "…"


def read_json(text: str) -> Parsed:
    """JSON or JSON lines: one block a record of the outermost list or object. What is no JSON is read as text."""
    try:
        return Parsed("", [Block(content, {"section": path}) for path, content in _records(json.loads(text))])
    except (ValueError, RecursionError):
        pass
    blocks: list[Block] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                content = _flat(json.loads(line))
            except (ValueError, RecursionError):
                return read_text(text)
            if content:
                blocks.append(Block(content, {"line": number}))
    return Parsed("", blocks)


def _records(data: Any) -> Iterator[tuple[str, str]]:
    items: list[tuple[str, Any]]
    if isinstance(data, list):
        items = [(f"$[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, dict):
        items = []
        for key, value in data.items():
            if isinstance(value, list) and any(isinstance(v, dict) for v in value):
                items += [(f"$.{key}[{i}]", item) for i, item in enumerate(value)]
            else:
                items.append((f"$.{key}", {key: value}))
    else:
        items = [("$", data)]
    for path, value in items:
        if content := _flat(value):
            yield path, content


def _flat(value: Any, name: str = "") -> str:
    """ "a: 1; b.c: 2"."""
    return "; ".join(f"{n}: {v}" if n else v for n, v in _leaves(value, name) if v)


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        if all(not isinstance(v, (dict, list)) for v in value):
            yield name, ", ".join(_scalar(v) for v in value)
        else:
            for i, inner in enumerate(value):
                yield from _leaves(inner, f"{name}[{i}]")
    else:
        yield name, _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _short(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)
