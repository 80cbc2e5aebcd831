"""PDF bytes -> blocks with page numbers, through pypdf. Encrypted, scanned and garbled ones are Unreadable."""

from __future__ import annotations

import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dr.agent.readers.block import Block, Parsed, join_lines
from dr.agent.readers.garbled import is_garbled
from dr.agent.unreadable import Unreadable

if TYPE_CHECKING:
    from pypdf import PdfReader

# What pypdf raises on broken files besides its own errors: it trusts types and offsets that the file claims.
_FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, RecursionError)
_OTHER_FAULTS = (OSError, EOFError, NotImplementedError, MemoryError)
_NO_TITLE = re.compile(
    r"(untitled|microsoft word\b.*|anonymous|\(anonymous\)|.*\.(docx?|pdf|tex|dvi|indd|odt)|\d*)\Z", re.I
)
# Ligatures, radicals and compatibility ideographs that fonts map to; full NFKC would also turn ， into , and x² to x2.
_COMPATIBLE = re.compile("[\u2e80-\u2fdf\uf900-\ufaff\ufb00-\ufdff\ufe70-\ufefc]+")
_UNSEEN = dict.fromkeys(map(ord, "\x00\x02\x03\x07\x08\xad\u200b\ufeff"))


def read_pdf(data: bytes) -> Parsed:
    import logging

    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its remarks on the file's syntax help nobody here
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("pdf_encrypted")
        pages = [clean(page.extract_text()) for page in reader.pages]
        title = _title(reader)
    except (FileNotDecryptedError, DependencyError) as error:
        raise Unreadable("pdf_encrypted") from error
    except (PyPdfError, *_FAULTS, *_OTHER_FAULTS) as error:
        raise Unreadable("pdf_broken", detail=_detail(error)) from error
    return from_pages(pages, title)


def from_pages(pages: list[str], title: str) -> Parsed:
    """The blocks of page texts; pages without usable text are noted, all of them an error."""
    filled = [text for text in pages if text.strip()]
    if not filled:
        raise Unreadable("pdf_scanned", pages=len(pages))
    good = [text if text.strip() and not is_garbled(text) else "" for text in pages]
    lost = sum(1 for text in good if not text)
    if not any(good) or is_garbled("\n".join(filled)):
        raise Unreadable("pdf_garbled")
    blocks = [Block(text, {"page": number}, number) for number, text in _paragraphs(_without_running_lines(good))]
    return Parsed(title, blocks, [Unreadable("pdf_pages", pages=len(pages), lost=lost)] if lost else [])


def clean(text: str) -> str:
    text = _COMPATIBLE.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text.translate(_UNSEEN))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _detail(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:120]}".rstrip(": ")


def _title(reader: PdfReader) -> str:
    raw = reader.metadata.title if reader.metadata else None
    title = " ".join(clean(str(raw or "")).split())
    return "" if _NO_TITLE.match(title) else title[:200]


def _without_running_lines(pages: list[str]) -> list[list[str]]:
    """Lines of each page, without headers and footers that many pages share and without bare page numbers."""
    lines = [[line.strip() for line in page.split("\n") if line.strip()] for page in pages]
    edges = Counter(key for page in lines for key in {_digitless(line) for line in (*page[:2], *page[-2:])})
    common = {key for key, count in edges.items() if count >= 3 and count * 2 > len(lines)}
    result = []
    for page in lines:
        last = len(page) - 1
        result.append(
            [
                line
                for i, line in enumerate(page)
                if not ((i < 2 or i > last - 2) and (_digitless(line) in common and len(page) > 3))
                and not (i in (0, last) and last > 0 and re.fullmatch(r"[-–—\s]*\d{1,4}[-–—\s]*", line))
            ]
        )
    return result


def _digitless(line: str) -> str:
    return re.sub(r"\d+", "#", line)


def _paragraphs(pages: list[list[str]]) -> Iterator[tuple[int, str]]:
    """(page number, paragraph); a paragraph cut by the end of a page belongs to the page where it begins."""
    lengths = sorted(len(line) for page in pages for line in page)
    usual = lengths[len(lengths) * 3 // 4] if lengths else 0
    held: list[str] = []
    begun = 1
    for number, page in enumerate(pages, 1):
        for line in page:
            if held and _ends(held, line, usual):
                yield begun, join_lines("\n".join(held), hyphens=True)
                held = []
            begun = begun if held else number
            held.append(line)
        if held and (held[-1].endswith(_STOPS) or number == len(pages) or not _goes_on(pages[number])):
            yield begun, join_lines("\n".join(held), hyphens=True)
            held = []
    if held:
        yield begun, join_lines("\n".join(held), hyphens=True)


_STOPS = tuple('。！？!?.：:”"」』）)')


def _ends(held: list[str], following: str, usual: int) -> bool:
    """Whether a paragraph ends before `following`: its last line is short and closed, or it is a heading."""
    line = held[-1]
    short = len(line) < 0.8 * usual
    if line.endswith(_STOPS):
        return short or sum(map(len, held)) > 2500
    heading = len(held) == 1 and len(line) < 0.6 * usual and not line.endswith((",", "，", "、", ";", "；", "-"))
    return heading and (following[:1].isupper() or following[:1].isdigit() or not following[:1].isascii())


def _goes_on(page: list[str]) -> bool:
    """Whether a page begins in the middle of a sentence."""
    return bool(page) and (page[0][:1].islower() or not page[0][:1].isascii())
