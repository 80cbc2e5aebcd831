"""A run folder -> report.html, and index.html while the run is on: one self-contained page each, no script, no network.

Looks are dr/templates/, words dr/words.py, the picture dr/picture.py; what is said is the report's (dr/report.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dr import events as event_log
from dr import files
from dr.dag import Dag
from dr.errors import DagError, DrError
from dr.findings import Findings, collect
from dr.layout import PACKAGE, RunFolder
from dr.page_view import DETAILS, View
from dr.report import Report, build

if TYPE_CHECKING:
    from jinja2 import Template

MAX_BYTES = 3_000_000
_MANY = 300  # nodes and references from which on a page shows less of each from the start


def write_report_page(folder: RunFolder, report: Report | None = None, root: Path | None = None) -> Path:
    """Write report.html. report: what report.write() returned, to save making it again; root: shown as `<root>`."""
    files.write_text(folder.report_html, page(folder, report, root))
    return folder.report_html


def write_index(folder: RunFolder, report: Report | None = None, root: Path | None = None) -> Path:
    """Write index.html: reloads itself as long as run.json says that the run is on."""
    files.write_text(folder.index_html, page(folder, report, root))
    return folder.index_html


class LivePage:
    """Keeps index.html up to date at small cost: at most once a second, and for at most 1 % of the time.

    Call update() whenever something may have changed, and finish() when the run has ended or was interrupted.
    """

    def __init__(self, folder: RunFolder, clock: Callable[[], float] = time.monotonic, share: float = 0.01) -> None:
        self.folder, self.clock, self.share = folder, clock, share
        self._next = clock()

    def update(self) -> bool:
        """Whether the page was written."""
        began = self.clock()
        if began < self._next:
            return False
        write_index(self.folder)
        ended = self.clock()
        self._next = ended + max(1.0, (ended - began) / self.share)
        return True

    def finish(self, report: Report | None = None) -> None:
        write_index(self.folder, report)


def page(
    folder: RunFolder,
    report: Report | None = None,
    root: Path | None = None,
    clock: Callable[[], float] = time.time,
    findings: Findings | None = None,
) -> str:
    """The page of a run, finished or not, from its files. findings: what was collected already."""
    findings = findings or collect(folder)
    report = report or build(findings, None, _conflicts(folder), root)
    log = list(event_log.read(folder.events))
    return render(findings, report, _plan(folder), log, _records(findings), root=root, now=clock())


def render(
    findings: Findings,
    report: Report,
    dag: Dag | None,
    events: Sequence[Mapping[str, Any]],
    records: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    root: Path | None = None,
    now: float = 0.0,
) -> str:
    """Pure. records: node -> its process.json, of nodes that events may not tell of; now: epoch seconds, for the page
    of a run that is on."""
    large = len(findings.nodes) + len(report.references) > _MANY
    html = ""
    for detail in DETAILS[large:]:
        view = View(findings, report, dag, events, records or {}, root, now, detail)
        html = _template().render(view.given())
        if len(html.encode("utf-8")) <= MAX_BYTES:
            break
    return html


@lru_cache(maxsize=1)
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(PACKAGE / "templates", encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")


# -- reading ----------------------------------------------------------------------------------------------------------


def _plan(folder: RunFolder) -> Dag | None:
    """The plan; after an invalid edit the last valid one."""
    for path in (folder.dag, folder.seen):
        try:
            return Dag.parse(files.read_text(path))
        except (DagError, OSError):
            continue
    return None


def _records(findings: Findings) -> dict[str, dict[str, Any]]:
    """process.json of every node that was started."""
    found = {}
    for node in findings.nodes:
        try:
            record = files.read_json(findings.folder.node(node.id).process)
        except (DrError, OSError):
            continue
        if isinstance(record, dict):
            found[node.id] = record
    return found


def _conflicts(folder: RunFolder) -> list[dict[str, Any]]:
    try:
        found = files.read_json(folder.conflicts)
    except (DrError, OSError):
        return []
    return [c for c in found if isinstance(c, dict)] if isinstance(found, list) else []
