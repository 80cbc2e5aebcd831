"""The browser of GA's WEB nodes: one subagent at a time, over runs, runners and kills; nobody waits for ever."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import dr, events, plan, result
from lab import Lab

from dr import process
from dr.browser_lock import BrowserLock
from dr.layout import NodeFolder
from dr.node_folder import ProcessRecord
from dr.process import Identity


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield child
    child.kill()
    child.wait()


def record(identity: Identity, group: int | None = None) -> ProcessRecord:
    return ProcessRecord(
        [], 1, pid=identity.pid, create_time=identity.create_time, boot=identity.boot, group=group or identity.pid
    )


def identity_of(child: subprocess.Popen[bytes]) -> Identity:
    found = process.identify(child.pid)
    assert found is not None
    return found


def node(tmp_path: Path) -> NodeFolder:
    return NodeFolder(tmp_path / "temp" / "dr_x" / "N1")


def test_is_the_subagents_after_the_hand_over_and_free_when_it_is_gone(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    one, two = BrowserLock(tmp_path / "b"), BrowserLock(tmp_path / "b")
    assert one.try_take()
    assert not two.try_take()  # while it is being taken
    one.hand_over(node(tmp_path), record(identity_of(sleeper)), 100)
    assert not two.try_take() and not one.try_take()  # also for its own run
    holder = two.holder()
    assert holder is not None and holder.identity.pid == sleeper.pid and holder.node.endswith("N1")
    sleeper.kill()
    sleeper.wait()
    assert two.try_take()
    two.leave()


def test_is_free_again_when_nothing_was_started(tmp_path: Path) -> None:
    one, two = BrowserLock(tmp_path / "b"), BrowserLock(tmp_path / "b")
    assert one.try_take()
    one.leave()
    assert two.try_take()
    two.leave()


def test_outlives_a_dead_runner_but_not_a_dead_subagent(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    code = "\n".join(
        (
            "import sys",
            "from pathlib import Path",
            "from dr import process",
            "from dr.browser_lock import BrowserLock",
            "from dr.layout import NodeFolder",
            "from dr.node_folder import ProcessRecord",
            "lock, i = BrowserLock(Path(sys.argv[1])), process.identify(int(sys.argv[2]))",
            "assert lock.try_take()",
            "record = ProcessRecord([], 1, pid=i.pid, create_time=i.create_time, boot=i.boot, group=i.pid)",
            "lock.hand_over(NodeFolder(Path('/x/temp/dr_x/N1')), record, 100)",
        )
    )
    project = Path(__file__).resolve().parent.parent
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "b"), str(sleeper.pid)], check=True, cwd=project)
    assert not BrowserLock(tmp_path / "b").try_take()
    sleeper.kill()
    sleeper.wait()
    last = BrowserLock(tmp_path / "b")
    assert last.try_take()
    last.leave()


def test_a_subagent_past_its_own_limit_holds_up_nobody(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    one, two = BrowserLock(tmp_path / "b"), BrowserLock(tmp_path / "b")
    assert one.try_take()
    one.hand_over(node(tmp_path), record(identity_of(sleeper)), -1000)
    assert two.try_take()
    two.leave()


def test_the_child_of_a_launcher_that_is_gone_holds_it(lab: Lab) -> None:
    """A launcher whose child works on has the group, and the child has its mark."""
    folder = lab.node(name="W1")
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    child = lab.start_argv([sys.executable, "-c", code], folder)
    while child.poll() is None:
        pass
    one, two = BrowserLock(lab.root.path / "b"), BrowserLock(lab.root.path / "b")
    assert one.try_take()
    one.hand_over(folder, record(child.identity), 100)
    assert not two.try_take()
    for row in process.marked(lambda path: path == str(folder.stdout)):
        process.send(row.identity, process.HARD)
    while two.holder() is not None:
        pass
    assert two.try_take()
    two.leave()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1, "create_time": 0, "node": "n"}'])
def test_a_damaged_record_stops_nobody(tmp_path: Path, text: str) -> None:
    lock = BrowserLock(tmp_path / "b")
    lock.folder.mkdir()
    lock.record.write_text(text, encoding="utf-8")
    assert lock.holder() is None and lock.try_take()
    lock.leave()


def test_an_unusable_folder_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("a file", encoding="utf-8")
    lock = BrowserLock(tmp_path / "b")
    assert lock.try_take()
    lock.hand_over(node(tmp_path), record(Identity(1, 0.0)), 1)
    lock.leave()


AGENT = '''"""A stand-in for GA: GenericAgentHandler [ROUND END]"""
import json, sys, time
from pathlib import Path
folder = Path("temp") / sys.argv[sys.argv.index("--task") + 1]
kind = (folder / "input.txt").read_text(encoding="utf-8").splitlines()[0]
journal = Path("journal.txt")
with journal.open("a") as stream:
    stream.write(f"+ {kind} {folder.name}\\n")
time.sleep(0.4)
with journal.open("a") as stream:
    stream.write(f"- {kind} {folder.name}\\n")
(folder / "output.txt").write_text("[结论] It is so. It has been seen.\\n\\n[ROUND END]\\n", encoding="utf-8")
'''


def test_web_nodes_of_gas_agent_take_turns_and_others_do_not_wait(tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    (tmp_path / "agent.py").write_text(AGENT, encoding="utf-8")
    made = plan(tmp_path / "p.md", ["A | one | -", "B | two | -", "C | three | -"])
    text = made.read_text(encoding="utf-8").replace("CODE", "WEB").replace("- [C] WEB", "- [C] CODE")
    made.write_text(text, encoding="utf-8")
    arguments = ("--dag", "p.md", "--task", "t", "--agent", "agent.py", "--max-rounds", "1", "--mind", "offline")
    done = dr(tmp_path, "run", *arguments, TMPDIR=str(tmp_path))
    assert done.code == 0, done.err
    assert {n["state"] for n in result(tmp_path, "t")["nodes"]} == {"done"}
    at_work: list[str] = []
    most_web, together = 0, False
    for line in (tmp_path / "journal.txt").read_text(encoding="utf-8").splitlines():
        sign, _, kind, _ = line.split()
        at_work.append(kind) if sign == "+" else at_work.remove(kind)
        most_web = max(most_web, at_work.count("WEB"))
        together = together or len(at_work) > 1
    assert most_web == 1 and together
    assert [e["node"] for e in events(tmp_path, "t") if e["type"] == "browser.wait"] == ["B"]
    assert json.loads((next(tmp_path.glob("dr-runner-browser*")) / "browser-subagent.json").read_text())["pid"]


def test_start_leaves_the_web_node_that_has_to_wait_and_poll_starts_it(tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    (tmp_path / "agent.py").write_text(AGENT, encoding="utf-8")
    made = plan(tmp_path / "p.md", ["A | one | -", "B | two | -"])
    made.write_text(made.read_text(encoding="utf-8").replace("CODE", "WEB"), encoding="utf-8")
    arguments = ("--dag", "p.md", "--agent", "agent.py", "--mind", "offline", "--json")
    started = dr(tmp_path, "start", "t", *arguments, TMPDIR=str(tmp_path)).json()
    assert started["counts"]["pending"] + started["counts"]["running"] == 2
    for _ in range(20):
        polled = dr(tmp_path, "poll", "t", "--wait", "10", "--json", TMPDIR=str(tmp_path)).json()
        if not polled["counts"]["pending"] and not polled["counts"]["running"]:
            break
    assert polled["counts"]["done"] == 2
