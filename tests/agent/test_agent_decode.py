"""dr/agent/decode.py: the right charset, whatever a document or server claims."""

from __future__ import annotations

import pytest

from dr.agent.decode import declared, decode

ZH, JA = "中文网页：茶的历史有几千年。", "日本語のページです。お茶の歴史。"


@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gbk", "gb18030"])
def test_undeclared_chinese(charset: str) -> None:
    assert decode(ZH.encode(charset)) == ZH


@pytest.mark.parametrize(
    ("text", "charset", "name"),
    [(ZH, "gbk", "gb2312"), (ZH, "big5hkscs", "Big5"), (JA, "cp932", "Shift_JIS"), (JA, "euc_jp", "euc-jp")],
)
def test_declared_in_the_document_or_by_the_server(text: str, charset: str, name: str) -> None:
    text = text.replace("网页", "").replace("历史有几", "") if charset == "big5hkscs" else text
    head = f'<meta http-equiv="Content-Type" content="text/html; charset={name}">'
    assert decode((head + text).encode(charset)) == head + text
    assert decode(text.encode(charset), name) == text


def test_utf8_wins_over_a_wrong_declaration_and_a_wrong_header() -> None:
    page = f'<meta charset="gb2312">{ZH}'
    assert decode(page.encode(), "iso-8859-1") == page


def test_a_wrong_header_gives_way_to_the_meta() -> None:
    page = f'<meta charset="gbk">{ZH}'
    assert decode(page.encode("gbk"), "iso-8859-1") == page


@pytest.mark.parametrize("text", ["Café crème à la française, déjà vu", "naïve Zürich façade", "100 € – “quoted”"])
def test_western_text_is_not_taken_for_chinese(text: str) -> None:
    assert decode(text.encode("cp1252")) == text


def test_latin1_means_cp1252_and_nonsense_names_are_passed_over() -> None:
    assert decode("5 € – “ok”".encode("cp1252"), "ISO-8859-1") == "5 € – “ok”"
    assert decode(ZH.encode("gbk"), "no-such-charset") == ZH


def test_nothing_fails() -> None:
    assert decode(b"") == ""
    assert decode(bytes(range(128, 256)))


def test_declaration_forms() -> None:
    assert declared(b'<?xml version="1.0" encoding="EUC-JP"?>') == "EUC-JP"
    assert declared(b"<meta charset=utf-8>") == "utf-8"
    assert declared(b"plain") is None
