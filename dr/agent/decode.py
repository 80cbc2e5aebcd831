"""Bytes of unknown charset -> text. Pure.

Order: BOM, strict UTF-8, what the document declares, what the server declares, gb18030, cp1252.
"""

from __future__ import annotations

import codecs
import re

# What documents call a charset -> the superset that is really meant.
_ALIASES = {
    **dict.fromkeys(("gb2312", "gbk", "gb_2312-80", "x-gbk", "cp936", "hz-gb-2312"), "gb18030"),
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "latin-1", "latin1", "us-ascii", "ascii"), "cp1252"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("big5", "big-5", "x-x-big5"), "big5hkscs"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
}
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16: its BOM starts with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = rb"""(?i)(?:charset\s*=|<\?xml[^>]{0,80}?encoding\s*=)\s*["']?\s*([A-Za-z0-9_.:-]{2,40})"""
_HEAD = 4096  # bytes in which a declaration is looked for
_GB_PAIR = rb"[\x81-\xfe][\x30-\xfe]"


def decode(data: bytes, header: str | None = None) -> str:
    """The text of `data`; `header`: the charset that the server named. Never fails: cp1252 is the last resort."""
    for bom, charset in _BOMS:
        if data.startswith(bom):
            return data.decode(charset, errors="replace")
    for named in ("utf-8", declared(data), header):
        if named and (text := _strict(data, named)) is not None:
            return text
    if _looks_gb(data) and (text := _strict(data, "gb18030")) is not None:
        return text
    return data.decode("cp1252", errors="replace")


def declared(data: bytes) -> str | None:
    """The charset that the head of an HTML or XML document names."""
    match = re.search(_DECLARED, data[:_HEAD])
    return match[1].decode("ascii") if match else None


def _strict(data: bytes, charset: str) -> str | None:
    name = charset.strip().lower()
    try:
        return data.decode(_ALIASES.get(name, name))
    except (UnicodeDecodeError, LookupError):
        return None


def _looks_gb(data: bytes) -> bool:
    """Accented Latin text can be valid gb18030 too, but its second bytes are then ASCII letters.

    Common Chinese characters are GB 2312, whose second byte is always 0xA1 or more.
    """
    pairs = list(re.findall(_GB_PAIR, data[:200_000]))
    common = sum(1 for pair in pairs if pair[1] >= 0xA1)
    return common * 2 >= len(pairs)
