"""An ended attempt's files in; the conclusion, its verdict and its reservations out. Writes conclusion.md."""

from __future__ import annotations

from dataclasses import dataclass, field

from dr import files
from dr.conclusion import reservations
from dr.layout import NodeFolder
from dr.output import Extract, extract


@dataclass(frozen=True)
class Collected:
    """verdict: ok, or why the output is no answer (dr/output.py). reservation: codes of what is weak about it."""

    verdict: str
    conclusion: str | None
    reservation: list[str] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        return self.verdict == "ok" and bool(self.conclusion)


def collect(folder: NodeFolder, *, offline: bool) -> Collected:
    """Read what the attempt left: answer.md where an agent was told to write there, else the newest output.

    offline: the mind that quotes instead of explaining, which the conclusion's form excuses.
    """
    found = Extract(finished=False, verdict="empty", conclusion=None)
    for path in (folder.answer, *reversed(folder.outputs())):
        if path.exists():
            found = extract(files.read_text(path))
            if found.verdict == "ok" or path != folder.answer:
                break
    if found.verdict != "ok" or not found.conclusion:
        return Collected(found.verdict, None)
    return Collected("ok", found.conclusion, reservations(found.conclusion, exempt_quotes=offline))


def conclude(folder: NodeFolder, conclusion: str) -> None:
    files.write_text(folder.conclusion, conclusion.rstrip("\n") + "\n")
