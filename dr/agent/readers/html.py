"""HTML -> blocks of its main text with their section. trafilatura; a plain tag filter when that finds nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from dr.agent.readers.block import Block, Parsed
from dr.agent.unreadable import Unreadable


def read_html(text: str) -> Parsed:
    """The main text of a page; navigation, scripts and hidden parts are not read."""
    try:
        parsed = _main_text(text)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise Unreadable("html_broken", detail=type(error).__name__) from error
    return parsed if parsed is not None and parsed.blocks else _tag_filter(text)


def _main_text(text: str) -> Parsed | None:
    import logging

    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # "discarding data" is told by the missing result
    # It refuses text with an encoding declaration, which is no longer true once the bytes are decoded.
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)
    document: Any = trafilatura.bare_extraction(
        text, include_comments=False, include_tables=True, include_formatting=True, with_metadata=True
    )
    if document is None or document.body is None:
        return None
    return Parsed(_squeeze(document.title or ""), list(_blocks(document.body)))


def _blocks(body: Any) -> Iterator[Block]:
    section = ""
    for element in body:
        if element.tag == "head":
            section = _squeeze("".join(element.itertext()))
        elif element.tag in ("list", "table"):
            for row in element.iter("item", "row"):
                cells = [_squeeze("".join(cell.itertext())) for cell in row.iter("cell")]
                content = " | ".join(cells) if cells else _squeeze("".join(row.itertext()))
                if content:
                    yield Block(content, _place(section), section)
        elif content := _squeeze("".join(element.itertext())):
            yield Block(content, _place(section), section)


def _place(section: str) -> dict[str, Any]:
    return {"section": section} if section else {}


def _squeeze(text: str) -> str:
    return " ".join(text.split())


_SKIP = frozenset("script style noscript template nav header footer aside form svg button select iframe".split())
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_INLINE = frozenset("a abbr b bdi bdo cite code em i kbd mark q s small span strong sub sup time u var font".split())
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))


class _TagFilter(HTMLParser):
    """All visible text outside navigation and scripts, a block per block element."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = self.section = ""
        self.blocks: list[Block] = []
        self.held: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _INLINE:
            self.flush()
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _INLINE:
            self.flush()
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not _SKIP.intersection(self.open):
            self.held.append(data)

    def flush(self) -> None:
        text, self.held = _squeeze("".join(self.held)), []
        if not text:
            return
        if "title" in self.open:
            self.title = self.title or text
        elif heading := _HEADINGS.intersection(self.open):
            self.section = text
            if "h1" in heading:
                self.title = self.title or text
        else:
            self.blocks.append(Block(text, _place(self.section), self.section))


def _tag_filter(text: str) -> Parsed:
    parser = _TagFilter()
    parser.feed(text)
    parser.close()
    parser.flush()
    return Parsed(parser.title, parser.blocks)
