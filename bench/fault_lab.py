"""A root to break runs in, and the judge: what the nodes' own log, dag.md, result.json and the process table say."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH.parent))

from dr.dag import Dag  # noqa: E402

PATIENCE_S = 60.0  # for one command; beyond it, it counts as a deadlock
COUNTS = ("twice", "again", "at_once", "orphans", "lost", "stuck", "bugs")


@dataclass
class Verdict:
    """Counts of what must not be, and what was done; `said` has a line for each fault."""

    counts: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)

    def fault(self, kind: str, text: str, number: int = 1) -> None:
        if number:
            self.counts[kind] += number
            self.said.append(f"{kind}: {text}")


@dataclass
class Done:
    code: int | None
    out: str


class FaultLab:
    """root/temp/dr_t is the run; everything else lies next to the root, out of the runner's sight."""

    def __init__(self, folder: Path, rng: random.Random, root: Path | None = None) -> None:
        self.folder, self.rng, self.verdict = folder, rng, Verdict()
        self.root = root or folder / "root"
        (self.root / "temp").mkdir(parents=True)
        self.run = self.root / "temp" / "dr_t"
        self.log, self.note = folder / "nodes.log", folder / "kills.log"
        self.nodes: dict[str, str] = {}  # id -> kind
        self.parents: dict[str, list[str]] = {}
        self.grace = rng.choice(("0", "0.2"))  # seconds between asking a process to end and ending it
        self.flags: tuple[str, ...] = ()  # of the run, where they are not the usual ones

    # -- a plan -------------------------------------------------------------------------------------------------------

    def plan(self, kinds: list[str], longest: float) -> Path:
        """A random DAG; each node depends on up to three earlier ones."""
        lines = ["# DR: What holds?", "ROOT: What holds?", "", "## Nodes"]
        for i, kind in enumerate(kinds):
            earlier = list(self.nodes)
            parents = self.rng.sample(earlier, min(len(earlier), self.rng.choice((0, 0, 1, 1, 2, 3))))
            self.nodes[f"N{i}"], self.parents[f"N{i}"] = kind, parents
            sleep = round(self.rng.uniform(0, longest), 3)
            question = f"step {i} kind={kind} sleep={sleep}"
            lines.append(f"- [N{i}] CODE | question: {question} | depends: {', '.join(parents) or '-'}")
        path = self.folder / "plan.md"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def move(self) -> None:
        """The root gets another name, its nodes running or not."""
        new = self.root.with_name("moved")
        self.root.rename(new)
        self.root, self.run = new, new / "temp" / "dr_t"

    # -- commands -----------------------------------------------------------------------------------------------------

    def start(self, *arguments: str, **faults: str) -> subprocess.Popen[bytes]:
        """`dr_runner.py ARGUMENTS` with faults (KILL="12", CLOCK="-3600,0.5") in it."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("DR_", "FAULT_"))}
        env |= {"FAULT_LOG": str(self.log), "FAULT_ROOT": str(self.root), "FAULT_NOTE": str(self.note)}
        env |= {"PYTHONPATH": str(BENCH / "fault_hooks"), "DR_GRACE_S": self.grace, "DR_NODE_ATTEMPTS": "2"}
        env |= {f"FAULT_{k}": v for k, v in faults.items()}
        argv = [sys.executable, str(BENCH.parent / "dr_runner.py"), *arguments, "--root", str(self.root)]
        with (self.folder / "commands.log").open("ab") as out:
            out.write(f"\n$ {' '.join(arguments)} {faults}\n".encode())
            out.flush()
            return subprocess.Popen(argv, cwd=self.root, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def finish(self, runner: subprocess.Popen[bytes], what: str) -> int | None:
        """Its exit code; None, a fault, when it does not end."""
        try:
            code = runner.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            runner.kill()
            runner.wait()
            self.verdict.fault("stuck", f"{what} did not end")
            return None
        if code == 70:
            self.verdict.fault("bugs", f"{what} ended with 70")
        return code

    def command(self, *arguments: str, **faults: str) -> int | None:
        return self.finish(self.start(*arguments, **faults), arguments[0])

    # -- the judge ----------------------------------------------------------------------------------------------------

    def entries(self) -> list[list[str]]:
        return [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def living(self) -> list[psutil.Process]:
        """Everything that was started from this lab, at any remove, and still runs."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("FAULT_LOG") == str(self.log) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def states(self) -> dict[str, str]:
        dag = Dag.parse((self.run / "dag.md").read_text(encoding="utf-8"))
        return {n.id: n.state.value for n in dag.work_nodes}

    def judge_starts(self, allowed: Mapping[str, int]) -> None:
        """allowed: how often a node may be started; never again after its answer, never beside itself."""
        starts: Counter[str] = Counter()
        answered: set[str] = set()
        for event, node, *_ in self.entries():
            if event == "start":
                starts[node] += 1
                self.verdict.fault("again", f"{node} was started after its answer", node in answered)
            elif event == "end":
                answered.add(node)
            else:
                self.verdict.fault("at_once", f"{node} ran twice at once")
        for node, number in starts.items():
            most = allowed.get(node, 0)
            self.verdict.fault("twice", f"{node} was started {number} times, allowed {most}", max(0, number - most))
        self.verdict.counts["starts"] += sum(starts.values())

    def judge_orphans(self) -> None:
        deadline = time.monotonic() + 1.0  # what answered and is about to exit is no orphan
        while (left := self.living()) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.verdict.fault("orphans", f"left running: {[' '.join(p.cmdline()[-3:]) for p in left]}", len(left))
        for process in left:
            process.kill()

    def judge_end(self, expected: Mapping[str, str]) -> None:
        """expected: node -> state; and every answer has to be in the report's data."""
        try:
            states = self.states()
            result = json.loads((self.run / "result.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            self.verdict.fault("lost", f"the run's end: {error}")
            return
        for node, state in expected.items():
            if states.get(node) != state:
                self.verdict.fault("lost", f"{node} is {states.get(node)} in dag.md, not {state}")
        for entry in result["nodes"]:
            name, state = entry["id"], expected.get(entry["id"])
            if entry["state"] != state:
                self.verdict.fault("lost", f"{name} is {entry['state']} in result.json, not {state}")
            if state == "done" and f"token-{name}" not in str(entry["conclusion"]):
                self.verdict.fault("lost", f"the conclusion of {name}")
        if len(result["nodes"]) != len(expected):
            self.verdict.fault("lost", f"{len(result['nodes'])} nodes in result.json, not {len(expected)}")
        if not (self.run / "report.md").exists():
            self.verdict.fault("lost", "report.md")

    def answered(self) -> set[str]:
        return {w[1] for w in self.entries() if w[0] == "end"}
