"""A run folder -> everything a reader opens: report.md, result.json, conflicts.json, report.html, and index.html live.

The heavy libraries are loaded, and the live page is written, beside the run: nobody waits for either.
"""

from __future__ import annotations

import sys
import threading

from dr import files
from dr.errors import FatalError
from dr.events import EventLog
from dr.folder_readme import say_state
from dr.layout import RunFolder

FIRST_PAGE_S = 2.0  # a run that is over sooner needs no live page
_LOOK_S = 1.0
_SWITCH_S = 0.001  # between threads: a page that is being made may not hold up the start of a node


def publish(folder: RunFolder, log: EventLog) -> None:
    """The report and its pages, at the end of a run."""
    from dr import conflicts, findings, report

    found = findings.collect(folder)
    made = report.write(found, None, conflicts.find(found.statements()))
    say_state(folder, found.language, found.status, found.reason, partial=len(found.answered) < len(found.nodes))
    try:
        from dr.page import page

        html = page(folder, made, findings=found)
    except ModuleNotFoundError as missing:  # dropped into an environment without them; the report itself is there
        log.log("page.missing", package=missing.name or "")
        return
    files.write_text(folder.report_html, html)
    files.write_text(folder.index_html, html)


def keep_answer(folder: RunFolder, synth: str, answer: str) -> None:
    """An answer written by somebody else, where the report, and whoever makes it again, looks for it."""
    target = folder.node(synth)
    target.path.mkdir(exist_ok=True)
    files.write_text(target.conclusion, answer.strip() + "\n")


class LivePage:
    """index.html while the run is on. A context manager around the driving of a run."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="live page", daemon=True)
        self._interval = sys.getswitchinterval()

    def __enter__(self) -> LivePage:
        sys.setswitchinterval(_SWITCH_S)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        sys.setswitchinterval(self._interval)

    def _work(self) -> None:
        if self._over.wait(FIRST_PAGE_S):  # the first nodes are to be started first
            return
        try:
            from dr import conflicts, findings, page, report  # noqa: F401 - what publish() needs, loaded meanwhile
        except ModuleNotFoundError:
            return
        live = page.LivePage(self.folder)
        while not self._over.wait(_LOOK_S):
            try:
                live.update()
            except (OSError, FatalError):
                return  # the folder cannot be written: the run itself meets that, and says so


def last_page(folder: RunFolder) -> None:
    """index.html of a run that was interrupted: it says so, and how to go on."""
    try:
        from dr import page
    except ModuleNotFoundError:
        return
    if folder.index_html.exists():
        page.write_index(folder)
