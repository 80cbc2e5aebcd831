"""examples/source/ -> the generated files of examples/documents/: PDFs (one of them Chinese) and a GBK-encoded text.

    python examples/make_documents.py [FOLDER]

The same text gives the same bytes. In a source, blocks are separated by empty lines: `# title`, `> subtitle`,
`## heading`, `*caption*`, `| table | row |`, `chart: Jan 7.6, Feb 6.9`, `<!-- next page -->`; all else is a paragraph.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reportlab.graphics.charts.barcharts import VerticalBarChart
from reportlab.graphics.shapes import Drawing
from reportlab.lib import colors
from reportlab.lib.pagesizes import A5
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.platypus import Flowable, PageBreak, Paragraph, SimpleDocTemplate, Table, TableStyle

SOURCE = Path(__file__).resolve().parent / "source"
DOCUMENTS = Path(__file__).resolve().parent / "documents"

INK, ACCENT, PALE = colors.HexColor("#1f2a33"), colors.HexColor("#0f5e78"), colors.HexColor("#e8f1f4")
MARGIN, WIDTH = 18, 112  # mm

Fonts = tuple[str, str]  # regular, bold


def _styles(fonts: Fonts) -> dict[str, ParagraphStyle]:
    regular, bold = fonts
    wrap = "CJK" if regular == bold else None  # Chinese breaks anywhere, and its font has one weight here
    base = ParagraphStyle("base", fontName=regular, fontSize=10, leading=15, textColor=INK, wordWrap=wrap)
    title = ParagraphStyle("title", base, fontName=bold, fontSize=19, leading=25, textColor=ACCENT, spaceAfter=6)
    return {
        "# ": title,
        "> ": ParagraphStyle("subtitle", base, fontSize=11, leading=16, spaceAfter=2),
        "## ": ParagraphStyle("heading", title, fontSize=13, leading=18, spaceBefore=12, spaceAfter=8),
        "*": ParagraphStyle("caption", base, fontSize=9, leading=12, textColor=colors.grey, spaceAfter=12),
        "": ParagraphStyle("text", base, spaceAfter=8),
    }


def _table(block: str, fonts: Fonts) -> Table:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.split("\n")]
    others = len(rows[0]) - 1
    narrow = {1: 36, 2: 28}.get(others, 16)
    table = Table(rows, colWidths=[(WIDTH - narrow * others) * mm, *[narrow * mm] * others], hAlign="LEFT")
    table.spaceBefore, table.spaceAfter = 4, 12
    table.setStyle(
        TableStyle(
            [
                ("FONT", (0, 0), (-1, -1), fonts[0], 9),
                ("FONT", (0, 0), (-1, 0), fonts[1], 9),
                ("TEXTCOLOR", (0, 0), (-1, -1), INK),
                ("BACKGROUND", (0, 0), (-1, 0), PALE),
                ("LINEBELOW", (0, 0), (-1, -1), 0.4, colors.lightgrey),
                ("LINEBELOW", (0, 0), (-1, 0), 0.8, ACCENT),
                ("TOPPADDING", (0, 0), (-1, -1), 4),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 4),
            ]
        )
    )
    return table


def _chart(block: str) -> Drawing:
    bars = [part.split() for part in block.removeprefix("chart: ").split(", ")]
    drawing = Drawing(WIDTH * mm, 54 * mm)
    chart = VerticalBarChart()
    chart.x, chart.y, chart.width, chart.height = 7 * mm, 9 * mm, 104 * mm, 43 * mm
    chart.data = [[float(value) for _, value in bars]]
    chart.categoryAxis.categoryNames = [label for label, _ in bars]
    chart.valueAxis.valueMin, chart.valueAxis.valueMax, chart.valueAxis.valueStep = 0, 8, 2
    for axis in (chart.categoryAxis, chart.valueAxis):
        axis.strokeColor = colors.lightgrey
        axis.labels.fontName, axis.labels.fontSize = "Helvetica", 8
    chart.bars[0].fillColor, chart.bars[0].strokeColor = ACCENT, None
    chart.barWidth, chart.groupSpacing = 8, 6
    drawing.add(chart)
    return drawing


def _flowable(block: str, fonts: Fonts, styles: dict[str, ParagraphStyle]) -> Flowable:
    if block == "<!-- next page -->":
        return PageBreak()
    if block.startswith("|"):
        return _table(block, fonts)
    if block.startswith("chart: "):
        return _chart(block)
    mark = next(mark for mark in styles if block.startswith(mark))
    return Paragraph(block.removeprefix(mark).strip("*"), styles[mark])


def _frame(running_title: str, fonts: Fonts, page_label: str) -> Callable[[Any, Any], None]:
    def draw(canvas: Any, document: Any) -> None:
        width, height = A5
        canvas.saveState()
        canvas.setFillColor(ACCENT)
        canvas.rect(0, height - 9 * mm, width, 9 * mm, stroke=0, fill=1)
        canvas.setFont(fonts[0], 8.5)
        canvas.setFillColor(colors.white)
        canvas.drawString(MARGIN * mm, height - 6 * mm, running_title)
        canvas.setFillColor(colors.grey)
        canvas.drawRightString(width - MARGIN * mm, 9 * mm, page_label.format(document.page))
        canvas.restoreState()

    return draw


def write_pdf(source: Path, target: Path) -> None:
    """Set the text of `source`; a Chinese one in the CID font that every PDF reader brings along."""
    blocks = source.read_text(encoding="utf-8").strip().split("\n\n")
    title = blocks[0].removeprefix("# ")
    fonts, page_label = ("Helvetica", "Helvetica-Bold"), "Page {}"
    if not title.isascii():
        pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
        fonts, page_label = ("STSong-Light", "STSong-Light"), "第 {} 页"
    styles = _styles(fonts)
    document = SimpleDocTemplate(
        str(target),
        pagesize=A5,
        leftMargin=MARGIN * mm,
        rightMargin=MARGIN * mm,
        topMargin=20 * mm,
        bottomMargin=18 * mm,
        title=title,
        author=blocks[2].removeprefix("> "),
        invariant=1,
    )
    frame = _frame(title, fonts, page_label)
    document.build([_flowable(block, fonts, styles) for block in blocks], onFirstPage=frame, onLaterPages=frame)


def main(folder: Path = DOCUMENTS) -> list[Path]:
    """Write the generated files into `folder` and return them."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for source in sorted(SOURCE.iterdir()):
        if source.suffix == ".md":
            target = folder / f"{source.stem}.pdf"
            write_pdf(source, target)
        else:
            target = folder / source.name
            target.write_bytes(source.read_text(encoding="utf-8").encode("gbk"))
        written.append(target)
    return written


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
