"""Every path and file name of a run, each written once. Touches no disk, but to see which outputs a node has."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent
HOME = PACKAGE.parent  # where dr_runner.py, dr/ and sop/ lie
TASK_PREFIX = "dr_"
OUTPUT = re.compile(r"output(\d*)\.txt\Z")


class Root(NamedTuple):
    """The folder that holds agentmain.py and temp/."""

    path: Path

    @property
    def temp(self) -> Path:
        return self.path / "temp"

    @property
    def agentmain(self) -> Path:
        return self.path / "agentmain.py"

    @property
    def memory(self) -> Path:
        return self.path / "memory"

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def hosts(self) -> Path:
        """A lock file per web host, so that all runs of the root ask one thing at a time of each."""
        return self.temp / ".hosts"

    @property
    def backoff(self) -> Path:
        """When a busy model server may be asked again, shared by all processes of the root."""
        return self.temp / ".backoff.json"

    @property
    def is_genericagent(self) -> bool:
        return self.agentmain.is_file() and (self.path / "ga.py").is_file() and self.memory.is_dir()

    def run(self, task: str) -> RunFolder:
        """The run folder of TASK, given with or without `dr_`."""
        return RunFolder(self.temp / (TASK_PREFIX + task.removeprefix(TASK_PREFIX)))


class RunFolder(NamedTuple):
    """temp/dr_<task>/"""

    path: Path

    @property
    def task(self) -> str:
        return self.path.name.removeprefix(TASK_PREFIX)

    @property
    def dag(self) -> Path:
        return self.path / "dag.md"

    @property
    def seen(self) -> Path:
        """dag.md as the runner last wrote or accepted it; a hand edit is the difference."""
        return self.path / "dag.seen.md"

    @property
    def run(self) -> Path:
        return self.path / "run.json"

    @property
    def lock(self) -> Path:
        return self.path / "run.lock"

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def report(self) -> Path:
        return self.path / "report.md"

    @property
    def report_html(self) -> Path:
        return self.path / "report.html"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def conflicts(self) -> Path:
        return self.path / "conflicts.json"

    @property
    def index_html(self) -> Path:
        return self.path / "index.html"

    @property
    def readme(self) -> Path:
        return self.path / "README.md"

    @property
    def sources(self) -> Path:
        return self.path / "sources"

    @property
    def snapshots(self) -> SnapshotFolder:
        return SnapshotFolder(self.sources)

    @property
    def log(self) -> Path:
        """stdout and stderr of a detached runner."""
        return self.path / "runner.log"

    @property
    def thinking(self) -> Path:
        """What a planner asked the root's agent, and what that said: a folder a call."""
        return self.path / "thinking"

    def node(self, node_id: str) -> NodeFolder:
        return NodeFolder(self.path / node_id)


class SnapshotFolder(NamedTuple):
    """sources/: the text of each fetched source under its SHA-256, and under urls/ which one a URL led to."""

    path: Path

    def text(self, sha256: str) -> Path:
        return self.path / f"{sha256}.txt"

    def record(self, sha256: str) -> Path:
        return self.path / f"{sha256}.json"

    @property
    def followed(self) -> Path:
        """Which snapshot each source line of a node without evidence led to, or why to none."""
        return self.path / "followed.json"

    @property
    def urls(self) -> Path:
        return self.path / "urls"

    def url(self, key: str) -> Path:
        return self.urls / f"{key}.json"

    def url_lock(self, key: str) -> Path:
        return self.urls / f"{key}.lock"


class NodeFolder(NamedTuple):
    """temp/dr_<task>/<node>/"""

    path: Path

    @property
    def node_id(self) -> str:
        return self.path.name

    @property
    def task_argument(self) -> str:
        """What `agentmain.py --task` is given."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def context(self) -> Path:
        return self.path / "context.json"

    @property
    def input(self) -> Path:
        return self.path / "input.txt"

    @property
    def output(self) -> Path:
        return self.path / "output.txt"

    def output_of_round(self, number: int) -> Path:
        """output.txt for 0, the first; output1.txt … for what an agent wrote after each reply."""
        return self.path / f"output{number or ''}.txt"

    @property
    def reply(self) -> Path:
        return self.path / "reply.txt"

    @property
    def stdout(self) -> Path:
        return self.path / "stdout.log"

    @property
    def stderr(self) -> Path:
        return self.path / "stderr.log"

    @property
    def process(self) -> Path:
        return self.path / "process.json"

    @property
    def conclusion(self) -> Path:
        return self.path / "conclusion.md"

    @property
    def answer(self) -> Path:
        return self.path / "answer.md"

    @property
    def evidence(self) -> Path:
        return self.path / "evidence.jsonl"

    @property
    def solve_memory(self) -> Path:
        return self.path / "solve_memory.json"

    @property
    def final_answer(self) -> Path:
        return self.path / "final_answer.md"

    @property
    def usage(self) -> Path:
        return self.path / "usage.json"

    @property
    def artifacts(self) -> Path:
        return self.path / "artifacts"

    @property
    def code(self) -> Path:
        """Where a script of the subagent runs; removed when it has ended."""
        return self.path / "code"

    def attempt(self, number: int) -> Path:
        return self.path / f"attempt{number}"

    def outputs(self) -> list[Path]:
        """output.txt, output1.txt, … that exist, oldest round first."""
        try:
            names = os.listdir(self.path)  # noqa: PTH208 - once or twice a node; a glob costs ten times as much
        except OSError:
            return []
        found = sorted((int(m[1] or 0), name) for name in names if (m := OUTPUT.match(name)))
        return [self.path / name for _, name in found]
