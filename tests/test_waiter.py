"""dr/waiter.py: each way of waiting that this system has."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest
from lab import Lab, until, wait

from dr import process
from dr.process import ExitInfo, Identity, alive, has_pidfd, send
from dr.waiter import Ended, PidfdBackend, ThreadBackend, Waiter

BACKENDS = [*([PidfdBackend] if has_pidfd() else []), ThreadBackend]
SLEEP = "import time; time.sleep(600)"


@pytest.fixture(params=BACKENDS, ids=lambda b: b.__name__)
def waiter(request: pytest.FixtureRequest) -> Iterator[Waiter]:
    with Waiter(backend=request.param) as waiter:
        yield waiter


def all_ended(waiter: Waiter) -> list[Ended]:
    """Until nothing is watched; pytest's limit turns a missed end into a failure."""
    ended: list[Ended] = []
    while len(waiter):
        ended += waiter.wait(None)
    return ended


def test_each_end_is_told_once_with_its_code(lab: Lab, waiter: Waiter) -> None:
    for code in range(5):
        waiter.add(code, lab.python(f"raise SystemExit({code})", f"P{code}"))
    told = all_ended(waiter)
    assert sorted((e.key, e.exit.code) for e in told) == [(n, n) for n in range(5)]
    assert waiter.wait(0) == []


def test_nothing_is_told_while_it_runs(lab: Lab, waiter: Waiter) -> None:
    child = lab.python(SLEEP)
    waiter.add("a", child)
    assert waiter.wait(0) == [] and waiter.wait(-1) == [] and len(waiter) == 1
    send(child.identity, process.HARD)
    assert [e.exit.code for e in all_ended(waiter)] == [-process.HARD]


def test_a_process_that_is_not_our_child_is_watched_as_well(lab: Lab, waiter: Waiter) -> None:
    node = lab.node("pause=600")
    launcher = lab.start("detach", node)
    wait(launcher)
    (real,) = lab.pids(node)
    waiter.add("adopted", real)
    assert waiter.wait(0) == []
    send(real, process.HARD)
    assert all_ended(waiter) == [Ended("adopted", ExitInfo(None))]


@pytest.mark.skipif(sys.platform == "win32", reason="zombies")
def test_what_ended_before_is_told_at_once(lab: Lab, waiter: Waiter) -> None:
    zombie = lab.python("raise SystemExit(7)", "P1")
    until(lambda: not alive(zombie.identity), "its end")
    reaped = lab.python("raise SystemExit(8)", "P2")
    wait(reaped)
    living = lab.python(SLEEP, "P3")
    reused = Identity(living.pid, living.identity.create_time - 1, living.identity.boot)
    for key, what in {"zombie": zombie, "reaped": reaped, "gone": reaped.identity, "reused": reused}.items():
        waiter.add(key, what)
    told = {e.key: e.exit.code for e in waiter.wait(None)}
    assert told == {"zombie": 7, "reaped": 8, "gone": None, "reused": None}
    assert alive(living.identity)
    send(living.identity, process.HARD)
    wait(living)


def test_a_wake_ends_the_wait_now_or_next(lab: Lab, waiter: Waiter) -> None:
    child = lab.python(SLEEP)
    waiter.add("a", child)
    waiter.wake()
    assert waiter.wait(None) == []
    for _ in range(3000):  # more than the socket holds
        waiter.wake()
    assert waiter.wait(None) == []
    thread = threading.Timer(0.05, waiter.wake)
    thread.start()
    while waiter.wait(None):
        pass
    thread.join()
    send(child.identity, process.HARD)
    while not (told := waiter.wait(None)):
        pass
    assert told[0].key == "a"


@pytest.mark.skipif(sys.platform == "win32", reason="signals between processes")
def test_a_signal_with_a_handler_ends_the_wait(lab: Lab) -> None:
    seen: list[int] = []
    old = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:
        with Waiter(signals=True) as waiter:
            sender = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
            sender.start()
            assert waiter.wait(None) == []
            sender.join()
        assert seen == [signal.SIGUSR1]
        assert signal.set_wakeup_fd(-1) == -1  # what was there before is there again
    finally:
        signal.signal(signal.SIGUSR1, old)


def test_a_discarded_child_is_ours_to_poll(lab: Lab, waiter: Waiter) -> None:
    child = lab.python(SLEEP)
    waiter.add("a", child)
    waiter.discard("a")
    waiter.discard("never added")
    assert len(waiter) == 0
    send(child.identity, process.HARD)
    assert wait(child).code == -process.HARD
    assert waiter.wait(0) == []


def test_closing_leaves_no_descriptor(lab: Lab) -> None:
    if not os.path.isdir("/proc/self/fd"):  # noqa: PTH112
        pytest.skip("no /proc")
    child = lab.python(SLEEP)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with Waiter() as waiter:
        waiter.add("a", child)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    send(child.identity, process.HARD)
    wait(child)
