"""A model's text -> the JSON it means, mended by json_repair where needed; whether it meets a schema. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_LONGEST = 400_000  # characters looked at
_LONGEST_MENDED = 50_000  # mending takes up to a second for these
_DEEPEST = 60  # json_repair takes 15 s over 50,000 brackets that nothing closes
_STARTS = 6  # places at which mending is tried
_TRIES = 400
_BRACKET = re.compile(r"[\[{]")
_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")  # one character; mending keeps halves
_FENCE = re.compile(r"```[ \t]*[\w-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)


def candidates(text: str) -> Iterator[Any]:
    """Objects and arrays that `text` may mean, the likeliest first.

    What is JSON as it stands goes before what must be mended, unless it is a piece of a broken whole.
    """
    text = text[:_LONGEST]
    if (whole := _strict(text)) is not None:
        yield whole
        return
    parts = [*reversed([m[1] for m in _FENCE.finditer(text)]), text]
    yield from (value for part in parts[:-1] if (value := _strict(part)) is not None)
    scans = [_scan(part) for part in parts]
    for scan in scans:
        yield from scan.pieces
    for part, scan in zip(parts, scans, strict=True):
        yield from _mended(part, scan.broken)
    for scan in scans:
        yield from scan.inner


def _strict(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


@dataclass(frozen=True)
class _Scan:
    """pieces: what stands alone and is JSON, longest first. inner: the same inside a broken whole. broken: starts."""

    pieces: list[Any]
    inner: list[Any]
    broken: list[int]


def _scan(text: str) -> _Scan:
    decoder = json.JSONDecoder()
    pieces: list[tuple[int, Any]] = []
    inner: list[tuple[int, Any]] = []
    broken: list[int] = []
    at = depth = 0
    for _ in range(_TRIES):
        if (start := _BRACKET.search(text, at)) is None:
            break
        depth = max(0, depth - len(re.findall(r"[\]}]", text[at : start.start()])))
        try:
            value, at = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            if depth == 0:
                broken.append(start.start())
            depth, at = depth + 1, start.end()
        else:
            (inner if depth else pieces).append((at - start.start(), value))
    return _Scan(_longest_first(pieces), _longest_first(inner), broken)


def _longest_first(found: list[tuple[int, Any]]) -> list[Any]:
    return [value for _, value in sorted(found, key=lambda piece: -piece[0])]


def _mended(text: str, starts: list[int]) -> Iterator[Any]:
    try:
        from json_repair import repair_json
    except ImportError:  # in an environment of somebody else's: then only what is JSON as it stands is understood
        return

    # An object is what is asked for nearly always; a bracket in prose is a footnote.
    for start in sorted(starts[:_STARTS], key=lambda at: (text[at] == "[", at)):
        part = _PAIR.sub(lambda pair: json.loads(f'"{pair[0]}"'), text[start : start + _LONGEST_MENDED])
        if _depth(part) > _DEEPEST:
            continue
        try:
            value = repair_json(part, return_objects=True, skip_json_loads=True)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, (dict, list)) and value:
            yield value
        if isinstance(value, list):  # several objects in a row
            yield from (v for v in value if isinstance(v, (dict, list)) and v)


def _depth(text: str) -> int:
    deepest = depth = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


# -- schema -----------------------------------------------------------------------------------------------------------

_TYPES: dict[str, tuple[type, ...]] = {
    **{"object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float)},
    **{"boolean": (bool,), "null": (type(None),)},
}
_CHECKED = {"type", "properties", "required", "additionalProperties", "items", "enum"}
_BOUNDS = {"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"}
_REMARKS = {"title", "description", "$schema", "default", "examples"}


def faults(value: Any, schema: Mapping[str, Any], where: str = "the reply") -> list[str]:
    """What of `value` the schema forbids, each with its place. ValueError for a schema keyword that is not checked."""
    if unknown := schema.keys() - _CHECKED - _BOUNDS - _REMARKS:
        raise ValueError(f"the schema of {where} uses {', '.join(sorted(unknown))}, which is not checked")
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return [f"{where} must be of type {' or '.join(kinds)}, not {_shown(value)}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where} must be one of {', '.join(map(str, schema['enum']))}, not {_shown(value)}"]
    found = _out_of_bounds(value, schema, where)
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{where} lacks the key {key!r}" for key in schema.get("required", ()) if key not in value]
        if schema.get("additionalProperties") is False:
            found += [f"{where} has the unknown key {key!r}" for key in value if key not in properties]
        for key in properties.keys() & value.keys():
            found += faults(value[key], properties[key], key if where == "the reply" else f"{where}.{key}")
    if isinstance(value, list) and "items" in schema:
        name = "" if where == "the reply" else where
        for number, item in enumerate(value):
            found += faults(item, schema["items"], f"{name}[{number}]")
    return found


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float):
        return (kind == "number" and abs(value) < float("inf")) or (kind == "integer" and value.is_integer())
    return isinstance(value, _TYPES[kind])


def _out_of_bounds(value: Any, schema: Mapping[str, Any], where: str) -> list[str]:
    size: float
    if isinstance(value, (str, list)):
        size, unit = len(value), "characters" if isinstance(value, str) else "items"
        least, most = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        size, unit, least, most = value, "", "minimum", "maximum"
    else:
        return []
    found = []
    if least in schema and size < schema[least]:
        found.append(f"{where} must be at least {schema[least]} {unit}".rstrip() + f", not {size}")
    if most in schema and size > schema[most]:
        found.append(f"{where} must be at most {schema[most]} {unit}".rstrip() + f", not {size}")
    return found


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"


def is_closed(schema: Mapping[str, Any]) -> bool:
    """Whether each object lists all its keys as required and allows no other: what OpenAI asks of a strict schema."""
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            return False
        return all(is_closed(inner) for inner in properties.values())
    return is_closed(schema["items"]) if "items" in schema else True
