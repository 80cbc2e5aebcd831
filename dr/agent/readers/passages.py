"""Blocks of a document -> passages of a paragraph's size, never dividing a sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from dr.agent.readers.block import Block

LEAST = 200  # characters; a shorter block takes the next ones with it
MOST = 900
_UNDIVIDED = 4_000  # longer "sentences" are no sentences and are divided at a space

Splitter = Callable[[str], list[str]]


def pack(blocks: list[Block], sentences: Splitter) -> list[tuple[str, dict[str, Any]]]:
    """(text, locator of its first block). A document of at most MOST characters without pages is one passage."""
    if blocks and "page" not in blocks[0].locator and sum(len(b.text) + 1 for b in blocks) <= MOST + 1:
        return [("\n".join(b.text for b in blocks), blocks[0].locator)]
    packed: list[tuple[str, dict[str, Any]]] = []
    held: list[Block] = []

    def flush() -> None:
        if held:
            packed.append(("\n".join(b.text for b in held), held[0].locator))
            held.clear()

    for block in blocks:
        size = sum(len(b.text) + 1 for b in held)
        if held and (held[0].group != block.group or size >= LEAST or size + len(block.text) > MOST):
            flush()
        if len(block.text) <= MOST:
            held.append(block)
            continue
        flush()
        packed += [(part, block.locator) for part in _divide(block.text, sentences)]
    flush()
    return packed


def _divide(text: str, sentences: Splitter) -> Iterator[str]:
    """A long block in parts of about MOST characters, each of whole sentences (of whole lines when it has lines)."""
    units = text.split("\n") if text.count("\n") > 3 else sentences(text)
    glue = "\n" if text.count("\n") > 3 else (" " if re.search(r"[.!?]\s", text) else "")
    part = ""
    for unit in (piece for long in units for piece in _pieces(long)):
        if part and len(part) + len(glue) + len(unit) > MOST:
            yield part
            part = ""
        part = f"{part}{glue}{unit}" if part else unit
    if part:
        yield part


def _pieces(sentence: str) -> Iterator[str]:
    while len(sentence) > _UNDIVIDED:
        cut = sentence.rfind(" ", _UNDIVIDED // 2, _UNDIVIDED)
        cut = cut if cut > 0 else _UNDIVIDED
        yield sentence[:cut].strip()
        sentence = sentence[cut:].strip()
    if sentence:
        yield sentence
