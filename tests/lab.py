"""A root in a temporary folder with real stand-in agents.

After each test nothing that was started there may still run, whatever session or parent it has by then.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from dr import process, watch
from dr.layout import NodeFolder, Root
from dr.process import MARK, Child, ExitInfo, Identity
from dr.subagent import Agent, choose_agent, command, environment
from dr.trees import Tree, end_trees
from dr.waiter import Waiter
from dr.watch import Attempt, Limits, Outcome

AGENTS = Path(__file__).resolve().parent / "agents"


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a process to get somewhere; the limit only turns a hang into a failure."""
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit, f"waited in vain: {what}"
        time.sleep(0.005)


def marked(folder: Path) -> list[psutil.Process]:
    """Whatever was started, at any remove, with its logs under `folder`, and still runs."""
    found = []
    for candidate in psutil.process_iter():
        try:
            mark = candidate.environ().get(MARK, "")
            if mark.startswith(f"{folder}{os.sep}") and candidate.status() != psutil.STATUS_ZOMBIE:
                found.append(candidate)
        except psutil.Error:
            continue
    return found


@dataclass
class Lab:
    root: Root
    children: list[Child] = field(default_factory=list)

    def node(self, question: str = "What is it?", name: str = "N1") -> NodeFolder:
        node = self.root.run("x").node(name)
        node.path.mkdir(parents=True, exist_ok=True)
        context = {
            **{"root_question": "Why?", "parent_conclusions": {}, "sub_question": question, "source": ""},
            "output_file": str(node.output),
        }
        node.context.write_text(json.dumps(context), encoding="utf-8")
        return node

    def agent(self, name: str) -> Agent:
        return choose_agent(self.root, str(AGENTS / f"{name}.py"), "offline")

    def start(self, name: str, node: NodeFolder) -> Child:
        """The stand-in `name`, started as the runner starts it."""
        agent = self.agent(name)
        env = environment(agent, {})
        argv = command(agent, node)
        return self.start_argv(argv, node, env)

    def python(self, code: str, name: str = "P1", arguments: Sequence[str] = ()) -> Child:
        """A process that runs `code`."""
        node = self.node(name=name)
        return self.start_argv([sys.executable, "-c", code, *arguments], node)

    def start_argv(self, argv: list[str], node: NodeFolder, env: Mapping[str, str] = os.environ) -> Child:
        child = process.start(argv, cwd=self.root.path, env=env, stdout=node.stdout, stderr=node.stderr)
        self.children.append(child)
        return child

    def attempt(self, name: str, node: NodeFolder) -> Attempt:
        agent = self.agent(name)
        return Attempt(node, time.monotonic(), agent.knows_round_end, agent.may_detach)

    def pids(self, node: NodeFolder) -> list[Identity]:
        """The processes that a stand-in recorded, once it has."""
        listing = node.path / "pids.json"
        until(listing.exists, f"{listing} written")
        return [found for pid in json.loads(listing.read_text()) if (found := process.identify(pid))]

    def outcome(self, name: str, node: NodeFolder, limits: Limits) -> Outcome:
        """One attempt from start to end, as a runner would do it; its tree is ended."""
        child, attempt = self.start(name, node), self.attempt(name, node)
        watched: Child | Identity = child
        with Waiter() as waiter:
            waiter.add("node", child)
            outcome = None
            while outcome is None:
                exited: ExitInfo | None = None
                for ended in waiter.wait(0.02):
                    real = watch.successor(attempt, ended.exit, child.pid)
                    if real is None:
                        exited = ended.exit
                    else:
                        watched = real
                        waiter.add("node", real)
                outcome = watch.look(attempt, time.monotonic(), exited, limits)
        assert end_trees([Tree.of(watched, child.pid)], soft_s=0) == []
        wait(child)
        return outcome


def wait(child: Child) -> ExitInfo:
    until(lambda: child.poll() is not None, "the child's end")
    assert child.exit is not None
    return child.exit


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    (tmp_path / "temp").mkdir()
    lab = Lab(Root(tmp_path))
    yield lab
    left = marked(tmp_path)
    names = [" ".join(p.cmdline()) for p in left]
    for straggler in left:
        straggler.kill()
    for child in lab.children:
        wait(child)
    assert not left, f"left running: {names}"
