"""Real files for the readers, and a root with one node folder; every function writes below the given folder."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

PROJECT = Path(__file__).resolve().parent.parent.parent


def pdf(path: Path, pages: list[list[str]], *, title: str = "", chinese: bool = False, password: str = "") -> Path:
    """A PDF of real text, a list of lines a page."""
    encryption = StandardEncryption(password, ownerPassword="owner", canPrint=0) if password else None
    canvas = Canvas(str(path), pagesize=A4, encrypt=encryption)
    font = "Helvetica"
    if chinese:
        pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
        font = "STSong-Light"
    if title:
        canvas.setTitle(title)
    for lines in pages:
        canvas.setFont(font, 11)
        for number, line in enumerate(lines):
            canvas.drawString(60, 780 - 16 * number, line)
        canvas.showPage()
    canvas.save()
    return path


def owner_locked_pdf(path: Path, lines: list[str]) -> Path:
    """Encrypted, but with an empty user password, as many published PDFs are."""
    canvas = Canvas(str(path), pagesize=A4, encrypt=StandardEncryption("", ownerPassword="owner"))
    for number, line in enumerate(lines):
        canvas.drawString(60, 780 - 16 * number, line)
    canvas.save()
    return path


def scanned_pdf(path: Path, pages: int = 2) -> Path:
    """Pages that are pictures only."""
    canvas = Canvas(str(path), pagesize=A4)
    picture = io.BytesIO()
    Image.new("L", (60, 60), 200).save(picture, "PNG")
    for _ in range(pages):
        picture.seek(0)
        canvas.drawImage(ImageReader(picture), 50, 300, 400, 400)
        canvas.showPage()
    canvas.save()
    return path


_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(path: Path, body: str, styles: str = "", padding: int = 0) -> Path:
    """A DOCX with `body` as the XML inside w:body. padding: MB of spaces in the document part."""
    document = f'<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="{_W}"><w:body>{body}</w:body></w:document>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", document + " " * (padding * 1024 * 1024))
        if styles:
            archive.writestr("word/styles.xml", f'<w:styles xmlns:w="{_W}">{styles}</w:styles>')
    return path


def node(root: Path, name: str, question: str, source: str, **other: Any) -> Path:
    """A node folder with context.json and input.txt; other: `type`, and keys of context.json."""
    folder = root / "temp" / name
    folder.mkdir(parents=True)
    context = {
        "root_question": question,
        "parent_conclusions": {},
        "sub_question": question,
        "source": source,
        "output_file": str(folder / "output.txt"),
    } | {k: v for k, v in other.items() if k != "type"}
    (folder / "context.json").write_text(json.dumps(context, ensure_ascii=False), encoding="utf-8")
    (folder / "input.txt").write_text(f"TYPE: {other.get('type', 'LOCAL')}\nGoal.\n", encoding="utf-8")
    return folder


def run(
    root: Path, *arguments: str, cwd: Path | None = None, limit_s: float = 100, **variables: str
) -> subprocess.CompletedProcess[str]:
    """agentmain.py as its own process, with nothing of the caller's DR_* variables."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DR_")}
    return subprocess.run(
        [sys.executable, str(PROJECT / "agentmain.py"), *arguments],
        env=environment | {"DR_ROOT": str(root), "DR_MIND": "offline"} | variables,
        cwd=cwd or root,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=limit_s,
        check=False,
    )


def evidence(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "evidence.jsonl").read_text(encoding="utf-8").splitlines()]
