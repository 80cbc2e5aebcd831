"""dr/process.py, on real processes."""

from __future__ import annotations

import os
import signal
import stat
import sys
from pathlib import Path

import pytest
from lab import Lab, until, wait

from dr import process
from dr.errors import DrError, FatalError, UsageError
from dr.process import ExitInfo, Identity, alive, find, identify, send

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")
linux = pytest.mark.skipif(sys.platform != "linux", reason="what Linux counts")

SLEEP = "import time; print('up', flush=True); time.sleep(600)"


def end(child: process.Child) -> ExitInfo:
    send(child.identity, process.HARD)
    return wait(child)


@posix
def test_a_started_process_has_its_own_session_empty_stdin_and_two_logs(lab: Lab) -> None:
    child = lab.python(
        "import os, sys; print(repr(sys.stdin.read()), os.getsid(0), os.getpgid(0), '结论')\n"
        "print('é', file=sys.stderr)"
    )
    assert wait(child).code == 0
    node = lab.node(name="P1")
    assert node.stdout.read_text("utf-8").split() == ["''", str(child.pid), str(child.pid), "结论"]
    assert node.stderr.read_text("utf-8").strip() == "é"


@linux
def test_no_descriptor_of_ours_reaches_it_and_none_of_its_logs_stays_open_here(lab: Lab) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        child = lab.python(f"import os\ntry: os.write({write}, b'x')\nexcept OSError: print('closed')")
        wait(child)
    finally:
        os.close(write)
        assert os.read(read, 1) == b""
        os.close(read)
    node = lab.node(name="P1")
    assert node.stdout.read_text() == "closed\n"
    open_here = [os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")]  # noqa: PTH208
    assert str(node.stdout) not in open_here and str(node.stderr) not in open_here


def start_argv(lab: Lab, argv: list[str], cwd: Path | None = None) -> None:
    node = lab.node()
    process.start(argv, cwd=cwd or lab.root.path, env=os.environ, stdout=node.stdout, stderr=node.stderr)


def test_what_cannot_be_started_says_why(lab: Lab) -> None:
    plain = lab.root.path / "plain"
    plain.write_text("no program\n")
    with pytest.raises(UsageError, match=r"start /no/such/agent: no such program"):
        start_argv(lab, ["/no/such/agent"])
    with pytest.raises(UsageError, match=r"working directory .*nowhere does not exist"):
        start_argv(lab, [sys.executable, "-c", ""], lab.root.path / "nowhere")
    if sys.platform != "win32":
        with pytest.raises(UsageError, match="may not be executed"):
            start_argv(lab, [str(plain)])
        plain.chmod(plain.stat().st_mode | stat.S_IXUSR)
        with pytest.raises(UsageError, match="it is no program"):
            start_argv(lab, [str(plain)])


def test_a_full_disk_is_fatal_and_other_faults_keep_their_text() -> None:
    full = process._start_error("start x", OSError(28, "No space left on device"), Path())
    assert isinstance(full, FatalError)
    other = process._start_error("start x", OSError(11, "Resource temporarily unavailable"), Path())
    assert type(other) is DrError and "temporarily" in str(other)


@posix
def test_exit_code_signal_and_popen_agree(lab: Lab) -> None:
    child = lab.python("raise SystemExit(3)")
    assert wait(child).code == 3 and child.poll() is child.exit
    assert child._popen.returncode == child._popen.poll() == child._popen.wait() == 3
    killed = lab.python(SLEEP, "P2")
    assert killed.poll() is None
    assert end(killed).code == -signal.SIGKILL == killed._popen.wait()
    assert str(killed.exit) == "killed by SIGKILL"
    assert str(ExitInfo(3)) == "exit code 3" and "unknown" in str(ExitInfo(None)) and "999" in str(ExitInfo(-999))


@posix
def test_an_exit_that_somebody_else_collected_is_unknown_not_an_error(lab: Lab) -> None:
    child = lab.python("")
    os.waitpid(child.pid, 0)
    assert child.poll() == ExitInfo(None)


@linux
def test_peak_memory_is_the_childs_or_none(lab: Lab) -> None:
    import resource

    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    size = ours + 50_000_000
    big = wait(lab.python(f"b = bytearray({size}); b[::4096] = b'x' * len(b[::4096])"))
    assert big.peak_bytes is not None and big.peak_bytes >= size
    # exec keeps the parent's peak: a child that needs less than we do shows ours, which says nothing
    assert wait(lab.python("", "P2")).peak_bytes is None


def test_identity_lives_as_long_as_the_process_and_is_nobody_elses(lab: Lab) -> None:
    child = lab.python(SLEEP)
    identity = identify(child.pid)
    assert identity == child.identity and alive(identity)
    assert not alive(Identity(identity.pid, identity.create_time + 1, identity.boot))
    if identity.boot:
        assert not alive(Identity(identity.pid, identity.create_time, "another boot"))
    end(child)
    assert not alive(identity) and identify(child.pid) is None


@posix
def test_a_zombie_is_dead(lab: Lab) -> None:
    child = lab.python("")
    until(lambda: not alive(child.identity), "its end")
    os.kill(child.pid, 0)  # still in the table: nobody has reaped it
    assert identify(child.pid) is None
    assert wait(child).code == 0


@linux
def test_the_clock_has_no_part_in_an_identity(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    child = lab.python(SLEEP)
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: 0.0)  # as if the clock had been set
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert alive(child.identity)
    end(child)


@posix
def test_a_signal_never_reaches_a_stranger(lab: Lab) -> None:
    child = lab.python(
        "import signal, sys, time; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5)); print('up', flush=True)\n"
        "time.sleep(600)"
    )
    until(lambda: lab.node(name="P1").stdout.read_text() == "up\n", "the handler")
    send(Identity(child.pid, child.identity.create_time + 1, child.identity.boot), process.HARD)
    send(Identity(2**22 - 1, 1.0), process.HARD)  # nobody
    send(child.identity, signal.SIGUSR1)
    assert wait(child).code == 5  # a kill before it would have come first


def test_a_lost_process_is_found_by_command_line_and_folder(lab: Lab) -> None:
    child = lab.python(SLEEP)
    elsewhere = str(lab.root.path / "temp")
    until(lambda: lab.node(name="P1").stdout.read_text() == "up\n", "exec")
    here = str(lab.root.path.resolve())
    assert find(lambda argv, cwd: argv[1:] == ("-c", SLEEP) and cwd == here) == [child.identity]
    assert find(lambda argv, cwd: argv[1:] == ("-c", SLEEP) and cwd == elsewhere) == []
    end(child)
    assert find(lambda argv, cwd: argv[1:] == ("-c", SLEEP) and cwd == here) == []


def test_psutil_and_proc_tell_the_same_table(lab: Lab) -> None:
    child = lab.python(SLEEP)
    ours, theirs = process._row(child.pid), process._row_of_psutil(child.pid)
    assert ours and theirs
    assert (ours.parent, ours.group, ours.zombie) == (theirs.parent, theirs.group, theirs.zombie)
    assert ours.parent == os.getpid()
    end(child)
    assert process._row(child.pid) is None and process._row_of_psutil(child.pid) is None


def test_a_released_child_runs_on_without_a_warning(lab: Lab) -> None:
    child = lab.python(SLEEP)
    identity = child.identity
    child.release()
    lab.children.clear()
    del child  # a ResourceWarning here would fail the test
    assert alive(identity)
    send(identity, process.HARD)
    if sys.platform != "win32":
        os.waitpid(identity.pid, 0)
