"""Findings and report of a run -> what the page's template is given (dr/templates/page.html). Pure: no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from dr import history, report_parts, timeline
from dr.citations import CONTRADICTED, NOT_CHECKED, SUPPORTED
from dr.contract import State
from dr.dag import Dag
from dr.excerpt import FAR, NEAR, excerpt
from dr.findings import Findings, NodeFinding
from dr.markdown import plain
from dr.page_head import MARKS, clock_time, duration, facts, kind, states, why
from dr.page_text import Texts, file_link, web_link
from dr.picture import draw, legend
from dr.references import Reference
from dr.report import Report
from dr.words import has, say

RELOAD_S = 5  # how often the page of a run that is on reloads itself
_LISTED = 24  # nodes that a change of the plan names; the rest is counted


@dataclass(frozen=True)
class Detail:
    """How many characters of long texts a page shows; fewer on a page that would grow too large."""

    near: int = NEAR
    far: int = FAR
    conclusion: int = 1_000_000
    text: int = 6_000  # of a question, a quote, a reason


DETAILS = (Detail(), Detail(160, 0, 4_000, 1_000), Detail(60, 0, 600, 200), Detail(20, 0, 160, 80))


class View:
    """One page from top to bottom: texts first, since references list where they are cited."""

    def __init__(
        self,
        findings: Findings,
        report: Report,
        dag: Dag | None,
        events: Sequence[Mapping[str, Any]],
        records: Mapping[str, Mapping[str, Any]],
        root: Path | None,
        now: float,
        detail: Detail,
    ) -> None:
        self.findings, self.report, self.root, self.now, self.detail = findings, report, root, now, detail
        self.say = partial(say, findings.language)
        self.duration = partial(duration, findings.language)
        self.texts = Texts(len(report.references))
        self.kind = kind(findings)
        self.changes = history.changes(findings, events)
        self.nodes = history.picture_nodes(findings, dag, self.changes, events)
        rows = timeline.attempts(events, records)
        self.timeline = timeline.arrange(rows, now if self.kind == "running" else None)
        self.numbers = {r.n: r for r in report.references}

    def given(self) -> dict[str, Any]:
        """All that the template names."""
        from markupsafe import Markup

        findings = self.findings
        answer = self.report.result.get("answer")
        given: dict[str, Any] = {
            "say": self.say,
            "lang": "zh-Hans" if findings.language == "zh" else "en",
            "kind": self.kind,
            "mark": MARKS[self.kind],
            "reload": RELOAD_S if self.kind == "running" else 0,
            "task": findings.task,
            "question": self.cut(findings.question),
            "why": why(findings),
            "resume": f"python dr_runner.py resume {findings.task}",
            "as_of": clock_time(self.now),
            "coverage": findings.coverage,
            "states": states(findings),
            "facts": facts(findings, self.now),
            "answer": self.texts.html(answer) if answer else None,
            "extractive": f"*{self.say('answer_extractive')}*" in self.report.markdown,
            "findings": [self.finding(node) for node in findings.nodes],
            "conflicts": [self.conflict(c) for c in self.report.conflicts],
            "open": self.section("open", "tried"),
            "made": self.section("made"),
            "open_heading": self.say("heading_open" if findings.answered else "heading_tried"),
            # SVG whose every text was escaped where it was drawn
            "picture": Markup(draw(self.nodes, findings.language)) if self.nodes else None,
            "legend": legend(self.nodes, findings.language),
            "changes": [self.change(c) for c in self.changes],
            "removed": [
                (i, history.element(i), self.say(f"page_change_{c.kind}", number=c.number))
                for i, c in self._gone.items()
            ],
            "bars": [self.bar(b) for b in self.timeline.bars],
            "timeline": self.timeline,
            "axis": [clock_time(t) if t is not None else "" for t in (self.timeline.start, self.timeline.end)],
        }
        given["references"] = [self.reference(r) for r in self.report.references]  # last: they list their citations
        given["checks"] = self.checks()
        return given

    def cut(self, text: str) -> str:
        return text if len(text) <= self.detail.text else text[: self.detail.text] + "…"

    # -- texts ----------------------------------------------------------------------------------------------------

    def section(self, *names: str) -> Any:
        """A section of report.md, as it stands there. The last heading of that name: a fence may hold another one."""
        for name in names:
            at = self.report.markdown.rfind(f"\n## {self.say(f'heading_{name}')}\n")
            if at >= 0:
                text = self.report.markdown[at + 1 :].partition("\n")[2]
                return self.texts.html(text.split("\n## ")[0])
        return None

    def finding(self, node: NodeFinding) -> dict[str, Any]:
        conclusion = self._conclusions.get(node.id) if node.answered else None
        cut = conclusion is not None and len(conclusion) > self.detail.conclusion
        if conclusion is not None and cut:
            conclusion = report_parts.cut(conclusion, self.detail.conclusion)
        text = self.texts.html(conclusion) if conclusion else None
        others = [n for n in self._cited_by.get(node.id, ()) if f"[{n}]" not in (conclusion or "")]
        return {
            "id": node.id,
            "element": history.element(node.id),
            "type": node.type,
            "state": node.state.value,
            "state_words": self.say(f"state_{node.state.value}"),
            "question": self.cut(node.sub_question),
            "parents": [(p, self.link(p)) for p in node.depends_on],
            "deepening": node.deepening,
            "attempts": node.attempts,
            "took": self.duration(node.seconds) if node.seconds is not None else "",
            "conclusion": text,
            "cut": cut,
            "sources": [self.texts.cite(n) for n in others],
            "reservation": [report_parts.reservation(self.findings.language, code) for code in node.reservation],
            "why": "" if node.answered or node.state is State.RUNNING else plain(report_parts.why(self.findings, node)),
            "file": self.file(node) if node.answered else None,
        }

    def file(self, node: NodeFinding) -> str | None:
        folder = self.findings.folder
        return file_link(str(folder.node(node.id).conclusion.absolute()), folder.path.absolute())

    @cached_property
    def _conclusions(self) -> dict[str, str]:
        """node -> its conclusion as Markdown with the report's citation numbers."""
        return {n["id"]: n["conclusion"] for n in self.report.result.get("nodes") or () if n.get("conclusion")}

    @cached_property
    def _gone(self) -> dict[str, history.Change]:
        """Nodes that left the plan, and by which change."""
        known = {n.id for n in self.findings.nodes}
        return {i: change for change in self.changes for i in change.removed if i not in known}

    @cached_property
    def _elements(self) -> set[str]:
        return {n.id for n in self.findings.nodes} | self._gone.keys()

    def link(self, node: str) -> str:
        """The id of the element that speaks of a node; empty when the page does not."""
        return history.element(node) if node in self._elements else ""

    @cached_property
    def _cited_by(self) -> dict[str, list[int]]:
        """node -> numbers of the references it cites."""
        found: dict[str, list[int]] = {}
        for r in self.report.references:
            for node in r.nodes:
                found.setdefault(node, []).append(r.n)
        return found

    def conflict(self, conflict: Mapping[str, Any]) -> dict[str, Any]:
        """One side for each value; nodes that give the same value stand on the same side."""
        sides: dict[str, dict[str, Any]] = {}
        for value in conflict.get("values") or ():
            numbers = [n for n in value.get("references") or () if n in self.numbers]
            node, text = plain(str(value.get("node") or "")), plain(str(value.get("value", "")))
            side = sides.setdefault(
                "".join(text.split()).casefold(),
                {"value": text, "sentence": plain(str(value.get("sentence") or "")), "numbers": {}, "nodes": {}},
            )
            side["numbers"].update(dict.fromkeys(numbers))
            side["nodes"].update({node: self.link(node)} if node else {})
        for side in sides.values():
            side["titles"] = list(dict.fromkeys(self.cut(self.numbers[n].title) for n in side["numbers"]))
            side["cites"] = [self.texts.cite(n) for n in side["numbers"]]
        return {"quantity": plain(str(conflict.get("quantity", ""))), "sides": list(sides.values())}

    def change(self, change: history.Change) -> dict[str, Any]:
        named = {"added": change.added[:_LISTED], "removed": change.removed, "revised": change.revised[:_LISTED]}
        lists = {name: [(i, self.link(i)) for i in ids] for name, ids in named.items()}
        more = len(change.added) - len(named["added"])
        return {"kind": change.kind, "number": change.number, "why": self.cut(change.why), "more": more, **lists}

    def bar(self, bar: timeline.Bar) -> dict[str, Any]:
        attempt = bar.attempt
        seconds = (attempt.end if attempt.end is not None else self.now) - attempt.start
        on = attempt.end is None and self.kind == "running"
        outcome = attempt.outcome or ("running" if on else "unknown")
        key = f"page_outcome_{outcome}"
        why = f"why_{attempt.reason}"
        return {
            "node": attempt.node,
            "element": self.link(attempt.node),
            "number": attempt.number,
            "outcome": outcome if has(key) else "unknown",
            "words": self.say(key) if has(key) else attempt.outcome,
            "reason": self.cut(self.say(why) if has(why) else attempt.reason),
            "start": clock_time(attempt.start),
            "took": self.duration(max(0.0, seconds)) if attempt.end is not None or on else "",
            "left": f"{min(bar.left, 99.4):.2f}",
            "width": f"{max(bar.width, 0.6):.2f}",
        }

    # -- references -----------------------------------------------------------------------------------------------

    def checks(self) -> list[dict[str, Any]]:
        found = [r.check for r in self.report.references]
        return [
            {"name": _class(check), "count": found.count(check), "words": self.say(f"check_{check}")}
            for check in (SUPPORTED, CONTRADICTED, NOT_CHECKED)
            if check in found
        ]

    def reference(self, r: Reference) -> dict[str, Any]:
        shown = excerpt(r.passage, r.quote, self.detail.near, self.detail.far)
        locator = dict(r.locator)
        link = web_link(r.place) or file_link(r.place, self.findings.folder.path, locator.get("page", ""))
        return {
            "n": r.n,
            "title": self.cut(r.title or r.place),
            "place": report_parts.place(r.place, self.root),
            "link": link,
            "where": plain(report_parts.where(self.findings.language, r.locator)),
            "check": _class(r.check),
            "check_words": self.say(f"check_{r.check}"),
            "reason": self.cut(plain(r.reason)),
            "near": shown.near,
            "wide": shown.wide,
            "quote": "" if shown.found else self.cut(r.quote),
            "nodes": [(i, self.link(i)) for i in r.nodes],
            "places": self.texts.places.get(r.n, []),
        }


def _class(check: str) -> str:
    return check.replace(" ", "-")
