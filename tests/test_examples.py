"""examples/: the generated documents are those of their sources, and the answers stand where the README says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pypdf
import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
DOCUMENTS = EXAMPLES / "documents"
_ROW = re.compile(r"^\| ([^|`]+) \| `([^`]+)` \| (p\. \d+|L\d+|§ [^|]+) \| ([^|]+) \|$", re.MULTILINE)
ROWS = _ROW.findall((EXAMPLES / "README.md").read_text(encoding="utf-8"))


def _close(text: str) -> str:
    """Without white space: line breaks of a PDF fall anywhere, in Chinese inside a word."""
    return re.sub(r"\s+", "", text)


def _pages(path: Path) -> list[str]:
    return [page.extract_text() for page in pypdf.PdfReader(path).pages]


def _text(path: Path, where: str) -> str:
    """The page, line (to the end of its paragraph) or section of `path`."""
    if path.suffix == ".pdf":
        return _pages(path)[int(where.removeprefix("p. ")) - 1]
    text = path.read_bytes().decode("utf-8" if path.name.isascii() else "gbk")
    if where.startswith("L"):
        return re.split(r"\n\s*\n", text.split("\n", int(where[1:]) - 1)[-1])[0]
    heading = where.removeprefix("§ ")
    parts = re.split(r"^(?:## |.*<h2[^>]*>)(.+?)(?:</h2>)?$", text, flags=re.MULTILINE)
    return re.sub(r"<[^>]+>", "", parts[parts.index(heading) + 1])


@pytest.mark.parametrize(("document", "where", "sentence"), [row[1:] for row in ROWS])
def test_answer_stands_where_the_readme_says(document: str, where: str, sentence: str) -> None:
    assert _close(sentence) in _close(_text(DOCUMENTS / document, where))


def test_every_document_is_named_in_the_readme_and_every_question_needs_three() -> None:
    assert {row[1] for row in ROWS} == {path.name for path in DOCUMENTS.iterdir()}
    needed = {n: {row[1] for row in ROWS if n in row[0].split(", ")} for n in "134"}
    assert all(len(documents) >= 3 for documents in needed.values()), needed


def test_documents_are_made_from_their_sources_identically(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_documents", EXAMPLES / "make_documents.py")
    assert spec and spec.loader
    make_documents = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_documents)
    written = make_documents.main(tmp_path)
    assert len(written) == 4
    for made in written:
        committed = DOCUMENTS / made.name
        if made.suffix == ".pdf":
            assert _pages(made) == _pages(committed)
            assert len(_pages(made)) > 1
        else:
            assert made.read_bytes() == committed.read_bytes()


def test_the_text_is_gbk_and_nothing_else() -> None:
    data = (DOCUMENTS / "换热器维护说明.txt").read_bytes()
    assert "临海热能" in data.decode("gbk")
    with pytest.raises(UnicodeDecodeError):
        data.decode("utf-8")


def test_the_figures_of_the_case_add_up() -> None:
    report = " ".join(_pages(DOCUMENTS / "operating-report-2024.pdf")[1].split())
    months = [float(n) for row in re.findall(r"GWh ((?:\d\.\d ?){6})", report) for n in row.split()]
    assert len(months) == 12
    assert round(sum(months), 1) == 58.6 == round(74 - 9.8 - 5.6, 1)
