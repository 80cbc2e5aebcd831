"""What the stand-in agents share: the node they were started for, and a conclusion in the agreed form.

Started like any agent, `python FILE --task dr_x/N1` with the root as working directory. Nothing of the project is
imported: the stand-ins know only the files. None outlives ten minutes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

LONGEST_S = 600
SLEEPER = "import time; time.sleep(600)"
STUBBORN_SLEEPER = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
)


class Node:
    """One node folder, as the agent sees it."""

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.folder = Path("temp") / argv[argv.index("--task") + 1]
        self.context = json.loads((self.folder / "context.json").read_text(encoding="utf-8"))
        self.question = str(self.context["sub_question"])
        self.output = self.folder / "output.txt"

    def seconds(self, default: float) -> float:
        """`pause=0.5` in the sub-question, else STANDIN_SECONDS, else the default."""
        named = re.search(r"pause=([\d.]+)", self.question)
        return float(named[1] if named else os.environ.get("STANDIN_SECONDS", default))

    def conclusion(self) -> str:
        parents = self.context["parent_conclusions"]
        known = f"It builds on {', '.join(parents)}." if parents else "It builds on no other node."
        source = self.context["source"] or "https://example.org/stand-in"
        return (
            f"[结论] The stand-in agent answers: {self.question} is settled by its source. {known} "
            "The answer is the same each time, so that runs can be compared.\n\n"
            "This second point says what the first rests on: the source is named below, with the sentence it gives.\n\n"
            f'来源：{source} — "The stand-in agent answers the same each time."\n'
        )

    def write(self, text: str, name: str = "output.txt") -> None:
        """In place, as GA does: a reader may see a part."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def finish(self, end: str, name: str = "output.txt") -> None:
        """The conclusion, where the context says, and `end` after the transcript."""
        target = Path(self.context["output_file"])
        if target.name != "output.txt":  # an agent that keeps its transcript in output.txt
            target.write_text(self.conclusion(), encoding="utf-8")
        self.write(self.conclusion() + end, name)

    def record(self, *pids: int) -> None:
        """The processes of this node, for tests that want to see them gone."""
        part = self.folder / "pids.part"
        part.write_text(json.dumps([os.getpid(), *pids]), encoding="utf-8")
        part.replace(self.folder / "pids.json")

    def spawn(self, code: str, *, session: bool = False) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code], start_new_session=session, stdout=subprocess.PIPE)


def stay(seconds: float = LONGEST_S) -> None:
    time.sleep(min(seconds, LONGEST_S))


def node_of_command_line() -> Node:
    return Node(sys.argv[1:])
