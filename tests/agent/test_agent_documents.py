"""dr/agent/documents.py and its readers: any file -> passages with a place, or the reason why not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import agent_makers as make
import pytest

from dr.agent.documents import Corpus, Document, read_corpus, read_document
from dr.agent.unreadable import Unreadable
from dr.citations import quote_stands


def read(path: Path) -> Document:
    return read_document(path, "local")


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


def why(path: Path) -> str:
    with pytest.raises(Unreadable) as caught:
        read(path)
    assert caught.value.place == str(path)
    assert caught.value.why("en") and caught.value.why("zh")
    return caught.value.reason


# --- PDF


def test_english_pdf_has_a_page_for_every_passage(tmp_path: Path) -> None:
    path = make.pdf(
        tmp_path / "report.pdf",
        [
            ["The harbour was opened in 1904 by the", "city council after long consul-", "tation with the guilds."],
            ["Its new crane lifts forty tonnes."],
            ["The last ferry left in 1987."],
        ],
        title="History of the Harbour",
    )
    document = read(path)
    assert document.title == "History of the Harbour"
    assert [p.locator for p in document.passages] == [{"page": 1}, {"page": 2}, {"page": 3}]
    assert "after long consultation with the guilds." in document.passages[0].text
    assert document.passages[2].text == "The last ferry left in 1987."
    assert document.passages[0].id == "" and document.passages[0].kind == "local"


def test_chinese_pdf_keeps_its_characters_and_joins_lines_without_spaces(tmp_path: Path) -> None:
    path = make.pdf(
        tmp_path / "年报.pdf",
        [["公司成立于一九九八年，总部位于", "深圳市南山区。"], ["二〇二〇年收入为三十五亿元。"]],
        chinese=True,
    )
    document = read(path)
    assert document.title == "年报"
    assert document.passages[0].text == "公司成立于一九九八年，总部位于深圳市南山区。"
    assert document.passages[1].locator == {"page": 2}


def test_a_sentence_cut_by_the_end_of_a_page_stays_whole_on_the_page_where_it_begins(tmp_path: Path) -> None:
    path = make.pdf(tmp_path / "a.pdf", [["Alpha is one. The bridge was built"], ["in two years. Beta is two."]])
    first = read(path).passages[0]
    assert first.locator == {"page": 1} and "The bridge was built in two years." in first.text


def test_running_headers_and_page_numbers_are_no_text(tmp_path: Path) -> None:
    pages = [
        ["Annual Report 2020", f"Chapter {word} tells of {word}.", "It goes on.", "And on.", str(n)]
        for n, word in enumerate(("ants", "bees", "cats", "dogs"), 1)
    ]
    text = " ".join(p.text for p in read(make.pdf(tmp_path / "a.pdf", pages)).passages)
    assert "Annual Report" not in text and "Chapter cats tells of cats." in text


@pytest.mark.parametrize("title", ["untitled", "Microsoft Word - draft3.docx", "report_final.pdf"])
def test_a_title_that_says_nothing_gives_way_to_the_file_name(tmp_path: Path, title: str) -> None:
    assert read(make.pdf(tmp_path / "tides.pdf", [["Tides rise."]], title=title)).title == "tides"


def test_encrypted_scanned_broken_and_garbled_pdfs_say_so(tmp_path: Path) -> None:
    assert why(make.pdf(tmp_path / "e.pdf", [["secret"]], password="pw")) == "pdf_encrypted"
    assert why(make.scanned_pdf(tmp_path / "s.pdf")) == "pdf_scanned"
    whole = make.pdf(tmp_path / "w.pdf", [["text"]]).read_bytes()
    assert why(write(tmp_path / "b.pdf", b"%PDF-1.7\n" + os.urandom(400))) == "pdf_broken"
    assert why(write(tmp_path / "n.pdf", b"this is no pdf")) == "pdf_broken"
    assert why(make.pdf(tmp_path / "g.pdf", [["(cid:12)(cid:7)(cid:33)(cid:4) (cid:18)(cid:2)"] * 5])) == "pdf_garbled"
    write(tmp_path / "cut.pdf", whole[: len(whole) // 2])
    try:
        document = read(tmp_path / "cut.pdf")  # pypdf may mend it; then the text must be the page's
        assert document.passages[0].text == "text"
    except Unreadable as error:
        assert error.reason in ("pdf_broken", "pdf_scanned")


def test_an_empty_user_password_is_tried(tmp_path: Path) -> None:
    assert read(make.owner_locked_pdf(tmp_path / "o.pdf", ["Open to all."])).passages[0].text == "Open to all."


def test_pdf_is_known_by_content_not_by_name(tmp_path: Path) -> None:
    path = make.pdf(tmp_path / "a.pdf", [["Hidden pdf."]]).rename(tmp_path / "a.txt")
    assert read(path).passages[0].locator == {"page": 1}


def test_pages_without_text_are_noted(tmp_path: Path) -> None:
    document = read(make.pdf(tmp_path / "a.pdf", [["Some text."], [], ["More text."]]))
    assert [n.reason for n in document.notes] == ["pdf_pages"]
    assert [p.locator["page"] for p in document.passages] == [1, 3]


# --- text, Markdown, code


def test_small_text_is_one_passage(tmp_path: Path) -> None:
    document = read(write(tmp_path / "Ada Lovelace.txt", "Ada wrote notes.\n\nShe lived in London."))
    assert [p.text for p in document.passages] == ["Ada wrote notes.\nShe lived in London."]
    assert document.title == "Ada Lovelace" and document.passages[0].locator == {"line": 1}


def test_long_text_is_cut_at_paragraphs_and_sentences_with_line_numbers(tmp_path: Path) -> None:
    long = " ".join(f"Sentence number {i} stands whole here." for i in range(60))
    path = write(tmp_path / "long.txt", "First short paragraph.\n\n" + "Middle. " * 40 + "\n\n" + long)
    passages = read(path).passages
    assert all(len(p.text) <= 900 for p in passages) and len(passages) > 3
    assert all(p.text.endswith(".") for p in passages)
    assert passages[-1].locator == {"line": 5}


def test_gbk_text_is_read_right(tmp_path: Path) -> None:
    document = read(write(tmp_path / "g.txt", "深圳公司成立于1998年，总部位于深圳。".encode("gbk")))
    assert document.passages[0].text == "深圳公司成立于1998年，总部位于深圳。"


def test_markdown_has_sections_lines_and_a_title(tmp_path: Path) -> None:
    filler = "Filler words make this section long enough to stand alone. " * 8
    text = (
        f"# Tea\n\nTea is **old**. See [a page](http://x.y).\n\n{filler}\n\nHarvest\n-------\n\n{filler}\n"
        "Picked in May.\n\n```\ncode  stays\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    document = read(write(tmp_path / "x.md", text))
    assert document.title == "Tea"
    assert document.passages[0].text.startswith("Tea is old. See a page.")
    assert document.passages[0].locator == {"line": 3, "section": "Tea"}
    harvest = [p for p in document.passages if p.locator.get("section") == "Harvest"]
    assert harvest[0].locator["line"] == 10
    joined = "\n".join(p.text for p in harvest)
    assert "Picked in May." in joined and "code  stays" in joined and "1 | 2" in joined and "---" not in joined


def test_code_keeps_its_lines(tmp_path: Path) -> None:
    body = "def f(x):\n    return x + 1\n\n\n" * 60
    passages = read(write(tmp_path / "m.py", body)).passages
    assert "def f(x):\n    return x + 1" in passages[0].text and len(passages) > 1
    assert passages[1].locator["line"] > passages[0].locator["line"]


# --- HTML, tables, JSON, DOCX


def test_html_main_text_has_sections_and_no_navigation(tmp_path: Path) -> None:
    page = (
        "<html><head><title>Rivers - Site</title></head><body><nav>Home Login Cart</nav><article><h1>Rivers</h1>"
        "<p>The Rhine is 1,230 kilometres long and flows through six countries on its way to the sea.</p>"
        "<h2>Source</h2><p>It rises in the Swiss Alps, where two streams meet near the village of Reichenau.</p>"
        "</article><script>var x = 'hidden';</script><footer>Imprint</footer></body></html>"
    )
    document = read(write(tmp_path / "r.html", page))
    text = " ".join(p.text for p in document.passages)
    assert document.title == "Rivers" and "1,230 kilometres" in text and "Reichenau" in text
    assert "Login" not in text and "hidden" not in text and "Imprint" not in text


def test_html_without_an_article_is_read_by_the_fallback(tmp_path: Path) -> None:
    document = read(write(tmp_path / "f.html", "<html><title>T</title><body><div>Short note.</div></body></html>"))
    assert document.passages[0].text == "Short note."


def test_html_charset_comes_from_its_meta(tmp_path: Path) -> None:
    page = '<html><head><meta charset="gb2312"></head><body><p>中国是茶的故乡，种茶的历史有几千年。</p></body></html>'
    assert "中国是茶的故乡" in read(write(tmp_path / "g.html", page.encode("gbk"))).passages[0].text


def test_csv_rows_carry_the_names_of_their_columns(tmp_path: Path) -> None:
    document = read(write(tmp_path / "c.csv", 'city;people;note\nUlm;128,928;"on the\nDanube"\nBonn;331,885;\n'))
    assert document.passages[0].text == "city: Ulm; people: 128,928; note: on the Danube\ncity: Bonn; people: 331,885"
    rows = "name,value\n" + "".join(f"item{i},{'x' * 100}{i}\n" for i in range(30))
    passages = read(write(tmp_path / "d.csv", rows)).passages
    assert passages[0].locator == {"line": 2} and all("name: item" in p.text for p in passages)
    assert "a: 1; b: 2" in read(write(tmp_path / "t.tsv", "a\tb\n1\t2\n")).passages[0].text


def test_json_and_json_lines(tmp_path: Path) -> None:
    document = read(write(tmp_path / "j.json", '{"items": [{"n": "a", "v": {"w": 1}}, {"n": "b", "v": null}]}'))
    assert document.passages[0].text == "n: a; v.w: 1\nn: b" and document.passages[0].locator["section"] == "$.items[0]"
    assert read(write(tmp_path / "l.jsonl", '{"a": 1}\n{"a": 2}\n')).passages[0].text == "a: 1\na: 2"
    assert read(write(tmp_path / "bad.json", "{ not json at all")).passages[0].text == "{ not json at all"


def test_docx_with_headings_and_tables(tmp_path: Path) -> None:
    def paragraph(text: str, style: str = "") -> str:
        properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"

    cells = "".join(f"<w:tc>{paragraph(c)}</w:tc>" for c in ("Ulm", "128,928"))
    body = (
        paragraph("城市", "1")
        + paragraph("Ulm lies on the Danube. " + "It is an old city with a tall minster. " * 20)
        + f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
        + "<w:p><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del></w:p>"
    )
    style = '<w:style w:styleId="1"><w:name w:val="heading 1"/></w:style>'
    document = read(make.docx(tmp_path / "d.docx", body, style))
    text = "\n".join(p.text for p in document.passages)
    assert document.title == "城市" and "Ulm | 128,928" in text and "deleted" not in text
    assert document.passages[0].locator == {"section": "城市"}


def test_hostile_docx_says_so(tmp_path: Path) -> None:
    assert why(make.docx(tmp_path / "bomb.docx", "", padding=65)) == "docx_bomb"
    assert why(make.docx(tmp_path / "bad.docx", "<w:p>")) == "docx_broken"
    assert why(make.docx(tmp_path / "dtd.docx", "<!-- <!ENTITY a> -->")) == "docx_broken"
    assert why(write(tmp_path / "zip.docx", b"PK\x03\x04" + os.urandom(200))) == "docx_broken"


# --- what is no text


def test_a_file_that_its_reader_cannot_take_costs_no_other(tmp_path: Path) -> None:
    make.docx(tmp_path / "a.docx", "<w:p>" * 50_000 + "</w:p>" * 50_000)
    write(tmp_path / "b.md", "The bridge is 80 metres long.")
    assert why(tmp_path / "a.docx") == "reader_failed"
    corpus = read_corpus([tmp_path], "local")
    assert [d.title for d in corpus.documents] == ["b"]
    assert reasons(corpus) == ["reader_failed"]


def test_binary_and_empty_files_say_so(tmp_path: Path) -> None:
    assert why(write(tmp_path / "x.bin", bytes(range(256)) * 20)) == "binary"
    assert why(write(tmp_path / "x", os.urandom(4000).replace(b"\x00", b"\x01"))) == "binary"
    assert why(write(tmp_path / "x.png", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")) == "binary"
    assert why(write(tmp_path / "e.txt", b" \n\n")) == "empty"
    assert why(write(tmp_path / "e.json", b"{}")) == "empty"


def test_every_quote_stands_in_its_passage_whatever_the_format(tmp_path: Path) -> None:
    make.pdf(tmp_path / "a.pdf", [["A fine office fi-", "nally opened. It stayed."]])
    write(tmp_path / "b.md", "# T\n\nA *wrapped*\nsentence here.\n")
    for document in read_corpus([tmp_path], "local").documents:
        for passage in document.passages:
            assert quote_stands(passage.text, passage.text)


# --- folders


def test_folder_is_read_in_order_without_hidden_files_and_goes_on_after_a_failure(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("c.txt", "a.txt", "b/d.txt", ".hidden.txt", ".git/config", "~$lock.docx"):
        write(tmp_path / name, f"Text of {name}.")
    write(tmp_path / "broken.pdf", b"%PDF-1.4 nothing")
    corpus = read_corpus([tmp_path], "local")
    assert [d.title for d in corpus.documents] == ["a", "c", "d"]
    assert [(Path(e.place).name, e.reason) for e in corpus.failed] == [("broken.pdf", "pdf_broken")]


@pytest.mark.skipif(sys.platform == "win32", reason="symlinks need rights on Windows")
def test_symlinks_never_lead_out_of_the_source(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    write(outside / "secret.txt", "Secret.")
    write(inside / "a.txt", "Open.")
    (inside / "link.txt").symlink_to(outside / "secret.txt")
    (inside / "folder").symlink_to(outside)
    (inside / "again.txt").symlink_to(inside / "a.txt")
    (inside / "loop").symlink_to(inside / "loop")
    corpus = read_corpus([inside], "local")
    assert [p.text for p in corpus.passages] == ["Open."]
    assert sorted(Path(e.place).name for e in corpus.failed if e.reason == "outside") == ["folder", "link.txt"]


def test_missing_and_empty_folders_and_the_same_file_twice(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    file = write(tmp_path / "a.txt", "Once.")
    assert reasons(read_corpus([tmp_path / "none", tmp_path / "empty"], "local")) == ["missing", "no_files"]
    assert len(read_corpus([file, file, tmp_path], "local").documents) == 1


def reasons(corpus: Corpus) -> list[str]:
    return [error.reason for error in corpus.failed]


def test_limits_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(4):
        write(tmp_path / f"{i}.txt", "x" * 100)
    monkeypatch.setattr("dr.agent.documents.MAX_FILES", 2)
    corpus = read_corpus([tmp_path], "local")
    assert len(corpus.documents) == 2 and reasons(corpus) == ["too_many"]
    monkeypatch.setattr("dr.agent.documents.MAX_FILE_MB", 0)
    assert set(reasons(read_corpus([tmp_path], "local"))) == {"too_large", "too_many"}


def test_a_fenced_folder_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "no").mkdir()
    write(tmp_path / "no" / "a.txt", "No.")
    write(tmp_path / "b.txt", "Yes.")
    corpus = read_corpus([tmp_path], "local", lambda path: path.name != "no")
    assert [p.text for p in corpus.passages] == ["Yes."]
    assert reasons(read_corpus([tmp_path / "no"], "local", lambda path: path.name != "no")) == ["other_node"]
