"""DOCX bytes -> blocks with their section; tables row by row. Zip and ElementTree of the standard library."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from xml.etree import ElementTree

from dr.agent.readers.block import Block, Parsed
from dr.agent.unreadable import Unreadable

_LIMIT_MB = 64  # of one part, unpacked
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_DC_TITLE = "{http://purl.org/dc/elements/1.1/}title"
DOCUMENT = "word/document.xml"


def read_docx(data: bytes) -> Parsed:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            document = _part(archive, DOCUMENT)
            styles = _headings(_part(archive, "word/styles.xml")) if "word/styles.xml" in names else {}
            core = _part(archive, "docProps/core.xml") if "docProps/core.xml" in names else None
    except (zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise Unreadable("docx_broken", detail=type(error).__name__) from error
    except ElementTree.ParseError as error:
        raise Unreadable("docx_broken", detail=str(error)) from error
    title = (core.findtext(f".//{_DC_TITLE}") or "").strip() if core is not None else ""
    blocks: list[Block] = []
    section = ""
    body = document.find(f"{_W}body")
    for level, text in _body(body if body is not None else document, styles):
        if level:
            section = text
            title = title or text
        else:
            blocks.append(Block(text, {"section": section} if section else {}, section))
    return Parsed(title, blocks)


def _part(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    """A part as XML, unpacked no further than the limit whatever its header claims."""
    with archive.open(name) as stream:
        data = stream.read(_LIMIT_MB * 1024 * 1024 + 1)
    if len(data) > _LIMIT_MB * 1024 * 1024:
        raise Unreadable("docx_bomb", limit=_LIMIT_MB)
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:  # Word writes none; entities could unfold without end
        raise Unreadable("docx_broken", detail="DOCTYPE")
    return ElementTree.fromstring(data)


def _headings(styles: ElementTree.Element) -> dict[str, int]:
    """Style id -> heading level; ids are localised ("1", "berschrift1"), names are not."""
    levels: dict[str, int] = {}
    for style in styles.iter(f"{_W}style"):
        name = style.find(f"{_W}name")
        words = (name.get(f"{_W}val") or "").casefold().split() if name is not None else []
        if words[:1] == ["title"]:
            levels[style.get(f"{_W}styleId") or ""] = 1
        elif len(words) == 2 and words[0] == "heading" and words[1].isdigit():
            levels[style.get(f"{_W}styleId") or ""] = int(words[1])
    return levels


def _body(body: ElementTree.Element, styles: dict[str, int]) -> Iterator[tuple[int, str]]:
    """(heading level or 0, text) in order of reading."""
    for element in body:
        if element.tag == f"{_W}p":
            if text := _text(element):
                style = element.find(f"{_W}pPr/{_W}pStyle")
                name = (style.get(f"{_W}val") or "") if style is not None else ""
                level = styles.get(name) or (1 if name.casefold().startswith(("heading", "title")) else 0)
                yield level, text
        elif element.tag == f"{_W}tbl":
            for row in element.iter(f"{_W}tr"):
                cells = [_text(cell) for cell in row.findall(f"{_W}tc")]
                if any(cells):
                    yield 0, " | ".join(cells)
        elif element.tag in (f"{_W}sdt", f"{_W}sdtContent", f"{_W}ins", f"{_W}customXml"):
            yield from _body(element, styles)


def _text(element: ElementTree.Element) -> str:
    return " ".join("".join(_runs(element)).split())


def _runs(element: ElementTree.Element) -> Iterator[str]:
    for child in element:
        if child.tag == f"{_W}t":
            yield child.text or ""
        elif child.tag in (f"{_W}tab", f"{_W}br", f"{_W}cr"):
            yield " "
        elif child.tag == f"{_W}noBreakHyphen":
            yield "-"
        elif child.tag != _FALLBACK:
            yield from _runs(child)
            if child.tag == f"{_W}p":
                yield " "
