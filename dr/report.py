"""Findings of a run -> report.md, result.json, conflicts.json and the run folder's README.md. A pure function of them.

build() makes the texts, write() puts them on disk. Every word is dr/words.py's, every number and place code's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dr import files, report_parts
from dr.answer import Quoted, extractive, gives
from dr.citations import CONTRADICTED
from dr.findings import Findings, NodeFinding, collect
from dr.folder_readme import readme
from dr.language import sentences
from dr.markdown import block, inline, plain
from dr.references import Numbering, Piece, Reference, marks, name_nodes, pieces
from dr.words import say

__all__ = ["Findings", "Report", "build", "collect", "render", "write"]

MAX_BYTES = 81_920  # of report.md in UTF-8; over that, secondary nodes are cut
CUT_CHARS = 3_000
DISAGREEMENTS = 3  # told in the answer; the section on contradictions has them all
_SAME_CHARS = 16  # a shorter stretch of text ("Yes.") may be said twice
_PARAGRAPH = re.compile(r"(\n[ \t]*\n|\n(?=[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]))")


@dataclass(frozen=True)
class Report:
    """markdown: report.md. result: result.json. conflicts: conflicts.json."""

    markdown: str
    result: dict[str, Any]
    conflicts: list[dict[str, Any]]
    references: list[Reference]


def build(
    findings: Findings,
    answer: str | None = None,
    conflicts: Sequence[Mapping[str, Any]] = (),
    root: Path | None = None,
) -> Report:
    """answer: a text whose citations name their node ([N1/local-1]); None: the SYNTH node's, else an extractive one.

    conflicts: [{"quantity", "values": [{"value", "node", "citation"}, ...]}]. root: shown as `<root>` in paths.
    """
    text = answer if answer is not None else findings.answer
    whole = _Writer(findings, text, conflicts, root)
    report = whole.report()
    if len(report.markdown.encode("utf-8")) > MAX_BYTES:
        secondary = {n.id for n in findings.answered if not n.deepening} - whole.nodes_of_answer
        if not secondary & whole.long:
            return report
        report = _Writer(findings, text, conflicts, root, cut=frozenset(secondary)).report()
    return report


def render(
    findings: Findings,
    answer: str | None = None,
    conflicts: Sequence[Mapping[str, Any]] = (),
    root: Path | None = None,
) -> str:
    """The text of report.md."""
    return build(findings, answer, conflicts, root).markdown


def write(
    findings: Findings,
    answer: str | None = None,
    conflicts: Sequence[Mapping[str, Any]] = (),
    root: Path | None = None,
) -> Report:
    """Write the report's files into the run folder; result.json last, since it tells that the others are there."""
    report = build(findings, answer, conflicts, root)
    folder = findings.folder
    files.write_text(folder.report, report.markdown)
    files.write_json(folder.conflicts, report.conflicts)
    files.write_text(folder.readme, readme(findings.language))
    files.write_json(folder.result, report.result)
    return report


@dataclass
class _Writer:
    """Writes one report from top to bottom: citations get their numbers, and sentences count as said, on the way."""

    findings: Findings
    given: str | None
    conflicts: Sequence[Mapping[str, Any]]
    root: Path | None
    cut: frozenset[str] = frozenset()
    nodes_of_answer: set[str] = field(default_factory=set)
    long: set[str] = field(default_factory=set)  # nodes that there is something to cut of

    def __post_init__(self) -> None:
        self.cited = {node.id: node.cited for node in self.findings.answered if node.cited}
        self.numbering = Numbering(self.cited, self.findings.language)
        self.said: set[str] = set()  # normalised stretches of text that stand in the report already
        self.uncited = 0

    def say(self, key: str, /, **facts: object) -> str:
        return say(self.findings.language, key, **facts)

    def report(self) -> Report:
        answer = self.answer()
        bodies = [(node, *self.finding(node)) for node in self.findings.answered]
        conflicts = [self.conflict(conflict) for conflict in self.conflicts]
        references = self.numbering.references()
        markdown = "\n\n".join(part for part in self.parts(answer, bodies, conflicts, references) if part) + "\n"
        conclusions = {node.id: whole for node, whole, _ in bodies}
        result = report_parts.result(self.findings, answer, conclusions, references, conflicts, self.root)
        return Report(markdown, result, conflicts, references)

    def parts(
        self,
        answer: str | None,
        bodies: Sequence[tuple[NodeFinding, str, str]],
        conflicts: Sequence[Mapping[str, Any]],
        references: Sequence[Reference],
    ) -> Iterator[str]:
        findings = self.findings
        yield "# " + self.say(f"title_{report_parts.extent(findings)}", question=inline(findings.question))
        yield self.heading("answer")
        if answer is None:
            key = "answer_none" if findings.nodes else "answer_no_plan"
            yield self.say(key, nodes=len(findings.nodes))
        else:
            yield answer
            yield f"*{self.say('answer_extractive')}*" if self.given is None else ""
        if bodies:
            yield self.heading("findings")
            for node, _, text in bodies:
                yield "### " + self.say(
                    "finding_heading", node=inline(node.id), type=node.type, question=inline(node.sub_question)
                )
                yield text
            yield self.heading("contradictions")
            yield "\n".join(self.conflict_line(c) for c in conflicts) or self.say("conflict_none")
        yield self.heading("open" if bodies else "tried")
        yield report_parts.what_is_open(findings)
        yield self.doubts(references)
        if bodies:
            yield self.heading("references")
            yield report_parts.counts(findings.language, references, self.numbering.dropped)
            yield from (report_parts.reference(findings.language, r, self.root) for r in references)
        yield self.heading("made")
        yield report_parts.how_made(findings)

    def heading(self, name: str) -> str:
        return "## " + self.say(f"heading_{name}")

    # -- texts with citations ---------------------------------------------------------------------------------------

    def answer(self) -> str | None:
        """The answer with its numbers, what is not answered before it, on what sources disagree behind it; None when
        no node came to a conclusion."""
        if not self.cited:
            return None
        chosen: list[Quoted] = []
        if self.given is None:
            asked = {node.id: node.sub_question for node in self.findings.answered}
            nodes = list(self.cited.values())
            chosen = extractive(self.findings.question, nodes, asked, conflicts=self.conflicts)
            text = "\n\n".join(self.quoted(quote) for quote in chosen)
        else:
            text, _ = self.text(None, name_nodes(plain(self.given), self.cited))
        if not (text := block(text)):
            return None
        # A model may have said it in other words; whether it did, code cannot tell.
        missing = report_parts.missing_terms(self.findings, passages=True) if self.given is None else ""
        gap = self.say("answer_gap", terms=missing) if missing else ""
        return "\n\n".join(filter(None, [gap, text, self.disagreements(chosen)]))

    def disagreements(self, chosen: Sequence[Quoted]) -> str:
        """A line for each conflict; one of which the answer does not speak says what it is about."""
        lines = []
        for conflict in map(self.conflict, self.conflicts[:DISAGREEMENTS]):
            values = self.values(conflict)
            if any(gives(quote, value) for quote in chosen for value in conflict["values"]):
                lines.append(self.say("answer_conflict", values=values))
            else:
                quantity = inline(plain(str(conflict.get("quantity", ""))))
                lines.append(self.say("answer_conflict_on", quantity=quantity, values=values))
        return "\n\n".join(lines)

    def quoted(self, quote: Quoted) -> str:
        """A sentence that was chosen for the answer, behind it its own citations or else all that its node lists."""
        self.said.add(_same(quote.text))
        numbers = self.numbering.numbers(quote.node, Piece(quote.text, quote.ids))
        if not quote.ids:
            numbers = self.numbering.listed(quote.node)
        self.nodes_of_answer.update(*(self.numbering.nodes_of(n) for n in numbers), [quote.node])
        return f"{quote.text.strip()} {marks(numbers)}".strip()

    def finding(self, node: NodeFinding) -> tuple[str, str]:
        """A node's conclusion with its numbers, whole, and as it stands in this report."""
        assert node.cited is not None
        whole, shown = self.text(node.id, node.cited.body)
        notes = [self.say("finding_note", text=inline(note)) for note in node.cited.notes]
        if len(shown) > CUT_CHARS:
            self.long.add(node.id)
        if node.id in self.cut & self.long:
            shown = report_parts.cut(shown, CUT_CHARS)
            note = self.say("finding_cut", file=f"{node.id}/conclusion.md")
            shown = f"{block(shown)}\n\n> *{note}*"
        else:
            shown = block(shown) or self.say("finding_empty")
        lines = [shown, *(note for note in notes if _same(note) not in self.said)]
        self.said.update(map(_same, notes))
        if listed := [n for n in dict.fromkeys(self.numbering.listed(node.id)) if f"[{n}]" not in shown]:
            lines.append(self.say("finding_sources", numbers="".join(f"[{n}]" for n in listed)))
        if node.reservation:
            text = "; ".join(report_parts.reservation(self.findings.language, code) for code in node.reservation)
            lines.append(f"*{self.say('finding_reservation', reservations=inline(text))}*")
        return "\n\n".join(filter(None, [block(whole), *notes])), "\n\n".join(lines)

    def text(self, node: str | None, text: str) -> tuple[str, str]:
        """`text` with marks for numbers: whole, and with what the report has said before only referred to."""
        parts = _PARAGRAPH.split(text)
        both = [(p, p) if _PARAGRAPH.fullmatch(p) else self.paragraph(node, p) for p in parts]
        whole, shown = ("".join(version) for version in zip(*both, strict=True))
        return _tidy(whole), _tidy(shown)

    def paragraph(self, node: str | None, text: str) -> tuple[str, str]:
        whole: list[str] = []
        shown: list[str] = []
        above: list[int] = []  # numbers of stretches that were said before, not yet referred to
        for piece in pieces(text):
            numbers = self.numbering.numbers(node, piece)
            if node is None:
                self.nodes_of_answer.update(*(self.numbering.nodes_of(n) for n in numbers))
                self.uncited += max(0, len(sentences(piece.text)) - bool(numbers))
            stretch = piece.text if numbers or not piece.ids else piece.text.rstrip()  # the space before a lost mark
            whole += [stretch, marks(numbers)]
            same = _same(piece.text)
            if len(same) >= _SAME_CHARS and same in self.said and bool(numbers) == bool(piece.ids):
                above += [n for n in numbers if n not in above]
                continue
            self.said.add(same)
            shown += [self.above(above, shown), stretch, marks(numbers)]
            above = []
        return "".join(whole), "".join([*shown, self.above(above, shown)])

    def above(self, numbers: list[int], before: list[str]) -> str:
        """The reference to what the report has said, apart from the text `before` it."""
        if not numbers:
            return ""
        gap = " " if self.findings.language == "en" and before and not before[-1][-1:].isspace() else ""
        return gap + self.say("finding_above", numbers=marks(numbers))

    # -- contradictions and doubts ----------------------------------------------------------------------------------

    def conflict(self, conflict: Mapping[str, Any]) -> dict[str, Any]:
        """The conflict with the numbers of its references: what conflicts.json holds."""
        values = []
        for value in conflict.get("values") or ():
            node, citation = str(value.get("node") or ""), str(value.get("citation") or "").strip("[]")
            sentence = str(value.get("sentence") or "")
            numbers = self.numbering.numbers(node, Piece(sentence, (citation,))) if citation else []
            if not citation and node in self.cited:
                numbers = self.numbering.listed(node)
            values.append({**value, "references": numbers})
        return {**conflict, "values": values}

    def conflict_line(self, conflict: Mapping[str, Any]) -> str:
        quantity = self.say("conflict_quantity", quantity=inline(plain(str(conflict.get("quantity", "")))))
        return f"- {quantity} {self.values(conflict)}"

    def values(self, conflict: Mapping[str, Any]) -> str:
        """The values against each other, each once with all its references."""
        behind: dict[str, list[str]] = {}
        for value in conflict["values"]:
            marked = [f"[{n}]" for n in value["references"]] or [inline(str(value.get("node") or ""))]
            behind.setdefault(inline(plain(str(value.get("value", "")))), []).extend(marked)
        return " ↔ ".join(
            self.say("conflict_value", value=value, number="".join(dict.fromkeys(marked))).strip()
            for value, marked in behind.items()
        )

    def doubts(self, references: Sequence[Reference]) -> str:
        """Citations that the check found wrong, and sentences of the answer that have none."""
        lines = [
            self.say("open_contradicted", number=f"[{r.n}]", reason=inline(plain(r.reason)))
            for r in references
            if r.check == CONTRADICTED
        ]
        if self.given is not None and self.uncited:
            lines.append(self.say("answer_uncited", count=self.uncited))
        return "\n".join(f"- {line}" for line in lines)


def _tidy(text: str) -> str:
    """No white space at the end of a line, where a citation led nowhere."""
    return re.sub(r"[ \t]+(?=\n|\Z)", "", text)


def _same(text: str) -> str:
    """The form in which two stretches of text are the same."""
    return re.sub(r"\W+", "", text).casefold()
