"""dr/trees.py, on real processes that would rather stay."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from lab import AGENTS, Lab, until, wait

from dr import trees
from dr.process import HARD, SOFT, Identity, alive, identify, send
from dr.trees import Tree, end_tree, end_trees

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups")

SLEEP = "import time; time.sleep(600)"
LEAVE_A_CHILD = (
    "import os, subprocess, sys; env = {} if 'scrub' in sys.argv else None; "
    f"p = subprocess.Popen([sys.executable, '-c', {SLEEP!r}], env=env); print(p.pid, flush=True); p.returncode = 0"
)


def test_a_tree_that_ignores_sigterm_is_gone_with_orphans_and_other_sessions(lab: Lab) -> None:
    node = lab.node()
    child = lab.start("stubborn", node)
    everybody = lab.pids(node)
    assert len(everybody) == 4 and all(map(alive, everybody))
    assert end_tree(child, soft_s=0.05) == []
    assert not any(map(alive, everybody))
    assert wait(child).code == -HARD


def test_the_polite_are_only_asked(lab: Lab) -> None:
    node = lab.node()
    child = lab.start("linger", node)
    everybody = lab.pids(node)
    sent: list[int] = []

    def recording(identity: Identity, number: int) -> None:
        sent.append(number)
        send(identity, number)

    assert end_trees([Tree.of(child)], soft_s=60, kill=recording) == []
    assert sent == [SOFT, SOFT] and not any(map(alive, everybody))
    assert wait(child).code == -SOFT


def test_many_trees_share_one_grace(lab: Lab) -> None:
    nodes = [lab.node(name=f"N{n}") for n in range(4)]
    children = [lab.start("stubborn", node) for node in nodes]
    everybody = [identity for node in nodes for identity in lab.pids(node)]
    steps: list[str] = []

    def recording(identity: Identity, number: int) -> None:
        steps.append("soft" if number == SOFT else "hard")
        send(identity, number)

    def clock() -> float:
        steps.append("clock")
        return 0.0 if steps.count("clock") == 1 else 100.0  # the grace is over as soon as anybody looks again

    assert end_trees(map(Tree.of, children), soft_s=60, kill=recording, clock=clock) == []
    assert not any(map(alive, everybody))
    signals = [s for s in steps if s != "clock"]
    assert signals == ["soft"] * 16 + ["hard"] * 16
    assert steps[0] == "clock" and "clock" not in steps[1:17]  # one deadline for all
    for child in children:
        wait(child)


def test_orphans_of_a_dead_root_are_found_by_an_adopting_runner(lab: Lab) -> None:
    child = lab.python(LEAVE_A_CHILD)
    assert wait(child).code == 0
    orphan = orphan_of(lab)
    assert end_tree(child.identity) == []  # an identity only, as after a kill of the runner
    assert not alive(orphan)


def orphan_of(lab: Lab, name: str = "P1") -> Identity:
    orphan = identify(int(lab.node(name=name).stdout.read_text()))
    assert orphan
    return orphan


def test_an_orphan_without_our_environment_is_ours_only_if_we_saw_the_root_end(lab: Lab) -> None:
    child = lab.python(LEAVE_A_CHILD, arguments=["scrub"])
    wait(child)
    orphan = orphan_of(lab)
    assert end_tree(child.identity) == [] and alive(orphan)  # for all we know, a stranger's group
    assert end_tree(child) == [] and not alive(orphan)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    popen = subprocess.Popen([sys.executable, "-c", SLEEP], start_new_session=True)
    yield popen
    popen.kill()
    popen.wait()


def test_a_stranger_with_the_roots_number_is_left_alone(stranger: subprocess.Popen[bytes]) -> None:
    now = identify(stranger.pid)
    assert now
    before = Identity(now.pid, now.create_time - 5, now.boot)
    assert end_trees([Tree(before, before.pid, reaped_by_us=True), Tree(before, before.pid)], soft_s=0) == []
    assert alive(now)


def test_our_own_group_is_never_ended() -> None:
    assert end_trees([Tree(Identity(os.getpid(), 1.0), os.getpgrp(), reaped_by_us=True)], soft_s=0) == []
    me = identify(os.getpid())
    assert me and end_trees([Tree(me, None)], kill=lambda identity, number: pytest.fail(f"{identity} signalled")) == []


def test_an_agent_in_its_launchers_group_is_ended_with_that_group(lab: Lab) -> None:
    node = lab.node("detach pause=600")
    launcher = lab.start("detach", node)
    assert wait(launcher).code == 0
    (real,) = lab.pids(node)
    assert end_tree(real, launcher.pid) == []
    assert not alive(real)


def test_nothing_left_costs_no_look_at_the_table(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    child = lab.python("")
    wait(child)
    monkeypatch.setattr(trees, "table", lambda: pytest.fail("the table was read"))
    assert end_tree(child) == []
    assert end_trees([]) == []


def test_what_is_started_while_the_tree_is_ended_goes_too(lab: Lab) -> None:
    """A process that answers SIGTERM by starting another one and leaving."""
    code = (
        "import signal, subprocess, sys, time\n"
        "def go(*_):\n"
        f"    p = subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); print(p.pid, flush=True); p.returncode = 0\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, go); print('up', flush=True); time.sleep(600)"
    )
    child = lab.python(code)
    log = lab.node(name="P1").stdout
    until(lambda: log.read_text() == "up\n", "the handler")
    assert end_tree(child, soft_s=60) == []
    started = int(log.read_text().split()[1])
    assert identify(started) is None
    assert wait(child).code == 0


def test_survivors_are_named(lab: Lab) -> None:
    child = lab.python(SLEEP)
    ticks = iter(range(0, 10_000, 100))
    left = end_trees([Tree.of(child)], kill=lambda identity, number: None, clock=lambda: float(next(ticks)))
    assert left == [child.identity]
    assert end_tree(child) == []
    wait(child)


def test_the_stand_ins_are_all_there() -> None:
    wanted = "ok rewrite pause no_round_end linger hang crash garbage detach stubborn literal mixed"
    assert not [name for name in wanted.split() if not (AGENTS / f"{name}.py").is_file()]
