"""Whole runs of the real command and our own subagent over real documents, without a model."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
from command import PROJECT, dr, result
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen import canvas

DOCUMENTS = PROJECT / "examples" / "documents"


def folded(text: str) -> str:
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


def test_page_references_are_right_when_the_pdf_is_opened(tmp_path: Path) -> None:
    from pypdf import PdfReader

    question = "For how many days was the sea-water intake of Port Ellery closed in 2024?"
    done = dr(tmp_path, question, "--source", str(DOCUMENTS), "--task", "t", cwd=PROJECT)
    assert done.code == 0, done.err
    assert "37 days" in done.out
    data = result(tmp_path, "t")
    assert (data["status"], data["reason"], data["language"], data["mind"]) == (
        *("completed", "goal_met", "en", "offline"),
    )
    paged = [r for r in data["references"] if r.get("path", "").endswith(".pdf")]
    assert paged
    for reference in paged:
        page = PdfReader(reference["path"]).pages[int(reference["locator"]["page"]) - 1]
        text = folded(page.extract_text())
        for part in reference["quote"].split(" … "):
            assert folded(part) in text, (reference["locator"], part)
    assert {r["check"] for r in data["references"]} == {"supported"}
    report = Path(data["report"]).read_text(encoding="utf-8")
    assert "No language model" in report


@pytest.fixture
def chinese(tmp_path: Path) -> Path:
    folder = tmp_path / "资料"
    folder.mkdir()
    (folder / "水库概况.txt").write_bytes(
        "青溪水库位于云岭县北部，1987年建成。\n\n青溪水库的总库容为三千二百万立方米，主要用于灌溉和供水。\n".encode(
            "gbk"
        )
    )
    (folder / "大坝.md").write_text(
        "# 青溪大坝\n\n青溪大坝高52米，坝型为碾压混凝土重力坝。大坝由长河设计院设计。\n", encoding="utf-8"
    )
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    page = canvas.Canvas(str(folder / "长河设计院年报.pdf"))
    for lines in (
        ["长河设计院年报", "本页为目录。"],
        ["长河设计院成立于1956年，总部设在南屏市。", "该院现有职工八百余人。"],
    ):
        page.setFont("STSong-Light", 14)
        for i, line in enumerate(lines):
            page.drawString(72, 720 - 30 * i, line)
        page.showPage()
    page.save()
    return folder


def test_a_chinese_question_over_chinese_documents(tmp_path: Path, chinese: Path) -> None:
    done = dr(
        tmp_path, "青溪水库的总库容是多少？大坝的设计单位总部设在哪里？", "--source", str(chinese), "--task", "水库"
    )
    assert done.code == 0, done.err
    assert "三千二百万立方米" in done.out
    assert "南屏市" in done.out
    data = result(tmp_path, "水库")
    assert data["language"] == "zh"
    places = {Path(r["path"]).name: r for r in data["references"]}
    seat = next(r for r in data["references"] if "南屏市" in r["quote"])
    assert (Path(seat["path"]).name, str(seat["locator"]["page"])) == ("长河设计院年报.pdf", "2")
    assert "总库容为三千二百万立方米" in places["水库概况.txt"]["quote"]
    report = Path(data["report"]).read_text(encoding="utf-8")
    headings = [line for line in report.splitlines() if line.startswith("## ")]
    assert headings
    assert all(re.search("[\u4e00-\u9fff]", line) for line in headings)
    assert "第 2 页" in report


def unreadable(folder: Path) -> dict[str, bytes]:
    from pypdf import PdfReader, PdfWriter

    page = canvas.Canvas(str(folder / "plain.pdf"))
    page.drawString(72, 720, "The secret of the vault is seven.")
    page.save()
    writer = PdfWriter(clone_from=PdfReader(folder / "plain.pdf"))
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(folder / "encrypted.pdf")
    blank = canvas.Canvas(str(folder / "scanned.pdf"))
    blank.rect(72, 600, 200, 100, fill=1)
    blank.save()
    return {
        "encrypted.pdf": (folder / "encrypted.pdf").read_bytes(),
        "scanned.pdf": (folder / "scanned.pdf").read_bytes(),
        "empty.pdf": b"",
        "broken.pdf": b"%PDF-1.7\nnothing more",
        "binary.bin": bytes(range(256)) * 40,
        "empty.txt": b"",
    }


@pytest.mark.parametrize("name", ["encrypted.pdf", "scanned.pdf", "empty.pdf", "broken.pdf", "binary.bin", "empty.txt"])
def test_a_source_that_cannot_be_read_is_a_failed_node_with_the_reason(tmp_path: Path, name: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    data = unreadable(tmp_path)[name]
    (source / name).write_bytes(data)
    done = dr(tmp_path, "What is the secret of the vault?", "--source", str(source / name), "--task", "t")
    assert done.code == 1, done.err
    found = result(tmp_path, "t")
    assert (found["status"], found["reason"], found["answer"]) == ("failed", "no_findings", None)
    assert found["nodes"][0]["state"] == "failed"
    error = found["nodes"][0]["error"]
    assert name in error
    assert "Traceback" not in error
    assert "[ROUND END]" not in error
    assert found["references"] == []


def test_one_bad_file_among_good_ones_is_said_and_the_others_answer(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "encrypted.pdf").write_bytes(unreadable(tmp_path)["encrypted.pdf"])
    (source / "note.md").write_text("# Vault\n\nThe secret of the vault is seven. It was chosen in 1999.\n", "utf-8")
    done = dr(tmp_path, "What is the secret of the vault?", "--source", str(source), "--task", "t")
    assert done.code in (0, 3), done.err
    assert "seven" in done.out
    report = Path(result(tmp_path, "t")["report"]).read_text(encoding="utf-8")
    assert "encrypted.pdf" in report


def test_a_source_that_vanishes_after_planning(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The bridge was opened in 1932.", encoding="utf-8")
    assert dr(tmp_path, "plan", "When was the bridge opened?", "--source", "a.txt", "--task", "t").code == 0
    (tmp_path / "a.txt").unlink()
    done = dr(tmp_path, "resume", "t")
    assert done.code == 1
    assert "a.txt" in result(tmp_path, "t")["nodes"][0]["error"]


def test_a_question_the_sources_do_not_speak_of_is_no_finding(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The bridge was opened in 1932. It is 503 metres long.", encoding="utf-8")
    done = dr(tmp_path, "Which enzyme digests lactose?", "--source", "a.txt", "--task", "t")
    assert done.code == 1, done.out
    data = result(tmp_path, "t")
    assert data["references"] == []
    assert json.loads((tmp_path / "temp/dr_t/run.json").read_text(encoding="utf-8"))["reason"] == "no_findings"
