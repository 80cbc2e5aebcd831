"""An ended attempt's files in; the conclusion, its verdict and its reservations out. Writes conclusion.md."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dr import files
from dr.conclusion import reservations
from dr.layout import NodeFolder
from dr.output import ASKED_USER, Extract, extract

_QUESTION_CHARS = 200


@dataclass(frozen=True)
class Collected:
    """verdict: ok, or why the output is no answer (dr/output.py). reservation: codes of what is weak about it.

    question: what it asked instead of answering.
    """

    verdict: str
    conclusion: str | None
    reservation: list[str] = field(default_factory=list)
    question: str = ""

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
        return Collected(found.verdict, None, question=_question(folder) if found.verdict == ASKED_USER else "")
    return Collected("ok", found.conclusion, reservations(found.conclusion, exempt_quotes=offline))


# As GA shows the call: its question alone, or the arguments as JSON, cut when they are long.
_ASKS = re.compile(r"(?m)^🛠️ ask_user\((.*)$|\"question\":\s*\"((?:[^\"\\\n]|\\.)*)")


def _question(folder: NodeFolder) -> str:
    outputs = folder.outputs()
    found = list(_ASKS.finditer(files.read_text(outputs[-1]))) if outputs else []
    asked = next((m[2] for m in reversed(found) if m[2]), found[-1][1] if found else "")
    if asked.startswith("{") and (inner := re.search(r"\"question\":\s*\"((?:[^\"\\]|\\.)*)", asked)):
        asked = inner[1]
    return " ".join(asked.removesuffix(")").split())[:_QUESTION_CHARS]


def conclude(folder: NodeFolder, conclusion: str) -> None:
    files.write_text(folder.conclusion, conclusion.rstrip("\n") + "\n")
