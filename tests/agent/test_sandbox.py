"""dr/agent/sandbox.py: honest scripts run, hostile ones are held or it is said that they were not, nothing is left."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from dr.agent import artefacts, bubblewrap, sandbox
from dr.agent.sandbox import BUBBLEWRAP, LIMITS, Limits, ScriptResult, run_script
from dr.errors import SourceError, UsageError

PROJECT = Path(__file__).resolve().parent.parent.parent
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")


def has_bubblewrap() -> bool:
    return bubblewrap.probe(sys.executable).path is not None


needs_bubblewrap = pytest.mark.skipif(not has_bubblewrap(), reason="needs a usable bubblewrap")


class Box:
    """run_script in a folder of its own. token: in the command line of every process that must not survive."""

    def __init__(self, folder: Path, isolation: str) -> None:
        self.folder, self.isolation = folder, isolation
        self.token = uuid.uuid4().hex
        self.count = 0

    def run(self, code: str | Path, **how: object) -> ScriptResult:
        self.count += 1
        work = self.folder / f"work{self.count}"
        self.work = work
        text = code.replace("TOKEN", self.token) if isinstance(code, str) else code
        return run_script(text, work=work, isolation=self.isolation, **{"timeout": 20, **how})  # type: ignore[arg-type]

    def left(self) -> list[str]:
        found = []
        for process in psutil.process_iter(["cmdline", "cwd"]):
            words = " ".join(process.info["cmdline"] or [])
            if self.token in words or str(self.folder) in words or str(self.folder) in (process.info["cwd"] or ""):
                found.append(words)
        return found


def a_box(tmp_path: Path, isolation: str) -> Iterator[Box]:
    box = Box(tmp_path / "box", isolation)
    children = {child.pid for child in psutil.Process().children()}
    yield box
    left = box.left()
    for process in psutil.process_iter(["cmdline"]):
        if box.token in " ".join(process.info["cmdline"] or []):
            process.kill()
    assert not left
    assert {child.pid for child in psutil.Process().children()} <= children, "a process, or a zombie, was left"


@pytest.fixture(params=[LIMITS, pytest.param(BUBBLEWRAP, marks=needs_bubblewrap)])
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Box]:
    yield from a_box(tmp_path, request.param)


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Box]:
    yield from a_box(tmp_path, LIMITS)


def held(result: ScriptResult, aspect: str) -> bool:
    """Whether the result says so; it says one of both."""
    assert (aspect in result.enforced) != (aspect in result.not_enforced)
    return aspect in result.enforced


def test_output_errors_exit_code_and_files(box: Box) -> None:
    result = box.run(
        "import sys\nprint('größe 大小')\nprint('warn', file=sys.stderr)\nopen('a.txt', 'w').write('12345')\n"
        "import os; os.mkdir('sub'); open('sub/b.csv', 'w').write('1')\nsys.exit(3)"
    )
    assert (result.stdout, result.stderr, result.exit_code, result.ended) == ("größe 大小\n", "warn\n", 3, "")
    assert [(a.name, a.size) for a in result.artefacts] == [("a.txt", 5), ("sub/b.csv", 1)]
    assert not result.ok and set(result.enforced) | set(result.not_enforced) == set(sandbox.ASPECTS)


def test_a_script_by_its_path_reads_what_it_was_given_and_changes_nothing(box: Box, tmp_path: Path) -> None:
    script, data = tmp_path / "s.py", tmp_path / "data"
    data.mkdir()
    (data / "x.csv").write_text("7")
    script.write_text(
        f"print(open({str(data / 'x.csv')!r}).read(), __name__)\n"
        f"try:\n    open({str(data / 'x.csv')!r}, 'w')\nexcept OSError as e:\n    print('refused', e.errno)\n"
    )
    result = box.run(script, read_only=[data])
    assert result.stdout.startswith("7 __main__\n") and result.exit_code == 0
    assert ("refused" in result.stdout) == held(result, "writing")
    assert ((data / "x.csv").read_text() == "7") == held(result, "writing")


@posix
def test_an_executable_with_a_first_line_runs_and_another_file_is_refused(box: Box, tmp_path: Path) -> None:
    script = tmp_path / "s.sh"
    script.write_text("#!/bin/sh\necho from sh\nexit 4\n")
    with pytest.raises(SourceError, match="no Python file"):
        box.run(script)
    script.chmod(0o755)
    result = box.run(script)
    assert (result.stdout, result.exit_code) == ("from sh\n", 4)


def test_an_endless_loop_is_ended(box: Box) -> None:
    result = box.run("print('begun', flush=True)\nwhile True: pass", timeout=1)
    assert (result.ended, result.exit_code, result.stdout) == ("time", None, "begun\n")


@posix
def test_cpu_time_is_limited_for_a_process_that_outruns_the_clock(box: Box) -> None:
    result = box.run("import resource; print(resource.getrlimit(resource.RLIMIT_CPU))", timeout=5)
    assert result.stdout == "(6, 6)\n" and held(result, "cpu")


@posix
def test_the_children_of_a_script_end_with_it(box: Box) -> None:
    code = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)', 'TOKEN'])\n"
    assert box.run(code + "print('done')").ok
    assert box.run(code + "import time; time.sleep(300)", timeout=1).ended == "time"


@linux
def test_a_daemon_does_not_survive(box: Box) -> None:
    result = box.run(
        "import os, sys\n"
        "for level in range(2):\n"
        "    if os.fork():\n"
        "        os._exit(0) if level else os.wait()\n"
        "        print('parent done'); sys.exit(0)\n"
        "    os.setsid()\n"
        "for fd in range(3): os.close(fd)\n"
        "os.execve(sys.executable, [sys.executable, '-c', 'import time; time.sleep(300)', 'TOKEN'], {})\n"
    )
    assert result.ok and result.stdout == "parent done\n" and held(result, "leftovers")


@posix
def test_many_processes_are_too_many(box: Box) -> None:
    """200 that do not multiply: safe whatever fails."""
    result = box.run(
        "import os, time\n"
        "for i in range(200):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(60); os._exit(0)\n"
        "print('all started', flush=True); time.sleep(60)\n"
    )
    if os.getuid() == 0:
        assert result.ended == "processes" and held(result, "processes") == (box.isolation == BUBBLEWRAP)
    else:
        assert not result.ok and (result.ended == "processes" or "BlockingIOError" in result.stderr)


@linux
def test_the_number_of_processes_is_a_limit_for_who_is_not_root() -> None:
    """In a process of another user, who may not enter tmp_path: RLIMIT_NPROC does nothing for root."""
    if os.getuid() != 0:
        pytest.skip("the other test has shown it")
    paths = [str(PROJECT), *(p for p in sys.path if p.endswith("site-packages"))]
    with tempfile.TemporaryDirectory(prefix="dr_test_") as folder:
        Path(folder).chmod(0o777)
        code = (
            f"import sys; sys.path += {paths!r}\n"
            "from pathlib import Path\nfrom dr.agent.sandbox import run_script\n"
            "r = run_script('import os, time\\nfor i in range(200):\\n    if os.fork() == 0:\\n        "
            f"time.sleep(60); os._exit(0)\\n', work=Path({folder!r}) / 'w', isolation='limits')\n"
            "print('processes' in r.enforced, r.ended or r.exit_code, 'BlockingIOError' in r.stderr)\n"
        )
        for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
            argv = [python, "-B", "-c", code]
            try:
                done = subprocess.run(argv, user=65534, cwd="/", capture_output=True, text=True, timeout=60)
            except (PermissionError, FileNotFoundError):
                continue
            if "ModuleNotFoundError" in done.stderr:
                continue
            # The kernel refuses the fork, unless the count of processes was seen first.
            assert done.stdout in ("True 1 True\n", "True processes False\n"), done.stderr
            return
    pytest.skip("no Python that another user may start")


@linux
def test_too_much_memory_is_refused(box: Box) -> None:
    result = box.run("x = bytearray(10 * 1024**3); print(len(x))")
    assert result.exit_code == 1 and "MemoryError" in result.stderr and held(result, "memory")


@linux
def test_memory_of_several_processes_counts_together(box: Box) -> None:
    result = box.run(
        "import os, time\nfor i in range(4):\n    if os.fork() == 0: break\n"
        "x = bytearray(b'1') * (60 * 1024**2)\ntime.sleep(60)",
        limits=Limits(memory=200 * sandbox.MB),
    )
    assert result.ended == "memory"


@posix
def test_a_large_file_is_refused(box: Box) -> None:
    code = "with open('big', 'wb') as f:\n    for i in range(1024): f.write(bytes(1024**2))"
    result = box.run(code, limits=Limits(file_size=2 * sandbox.MB))
    assert result.exit_code == 1 and "File too large" in result.stderr and held(result, "file_size")
    assert (box.work / "big").stat().st_size <= 2 * sandbox.MB


@posix
def test_many_files_are_too_much_together(box: Box) -> None:
    code = "import time\nfor i in range(10_000):\n    open(str(i), 'wb').write(bytes(1024**2)); time.sleep(.002)"
    result = box.run(code, limits=Limits(disk=20 * sandbox.MB))
    assert result.ended == "disk" and result.exit_code is None
    code = "import time\nfor i in range(100_000):\n    open(str(i), 'wb').close(); time.sleep(.0005)"
    assert box.run(code, limits=Limits(files=200)).ended == "disk"


@posix
def test_open_files_are_limited(box: Box) -> None:
    result = box.run("fs = [open('/dev/null') for _ in range(1000)]")
    assert result.exit_code == 1 and "Too many open files" in result.stderr and held(result, "open_files")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output_is_ended_and_not_kept(box: Box, stream: str) -> None:
    code = f"import sys\nwhile True: sys.{stream}.write('x' * 65536)"
    result = box.run(code, limits=Limits(output=sandbox.MB), timeout=60)
    assert result.ended == "output" and len(getattr(result, stream)) == sandbox.MB
    once = box.run(f"import sys\nsys.{stream}.write('x' * 1024**2 * 2)", limits=Limits(output=sandbox.MB))
    assert once.ended == "output"


def test_the_environment_holds_no_secret(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DR_API_KEY", "sk-planted")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sk-planted")
    monkeypatch.setenv("LD_PRELOAD_NOTE", "sk-planted")
    monkeypatch.setenv(sandbox.MARK, "/x/stdout.log")
    result = box.run("import os\nfor k, v in sorted(os.environ.items()): print(k, v)\nprint(os.path.expanduser('~'))")
    assert "sk-planted" not in result.stdout and f"{sandbox.MARK} /x/stdout.log" in result.stdout
    assert result.stdout.endswith(f"{box.work}\n") and held(result, "environment")


@linux
def test_the_environment_of_other_processes(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = subprocess.Popen(["sleep", "60"], env={"DR_API_KEY": "sk-planted"})
    try:
        result = box.run(
            "import glob\nfor p in glob.glob('/proc/[0-9]*/environ'):\n    try:\n        "
            "if b'sk-planted' in open(p, 'rb').read(): print('found')\n    except OSError: pass\n"
        )
    finally:
        holder.kill()
        holder.wait()
    assert ("found" in result.stdout) != held(result, "others")


def test_home_and_other_nodes_are_out_of_sight(box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, other = tmp_path / "home", tmp_path / "root" / "temp" / "dr_t" / "N2"
    for file in (home / ".ssh" / "id_rsa", other / "evidence.jsonl", tmp_path / "root" / "config.yaml"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("planted")
    (tmp_path / "root" / "data.csv").write_text("data")
    monkeypatch.setenv("HOME", str(home))
    root = tmp_path / "root"
    wanted = [home / ".ssh" / "id_rsa", other / "evidence.jsonl", root / "config.yaml", root / "data.csv"]
    result = box.run(
        f"for p in {[str(w) for w in wanted]!r}:\n    try: print(open(p).read() or 'empty')\n"
        "    except OSError as e: print('refused')\n",
        read_only=[root],
        hidden=[root / "temp", root / "config.yaml"],
    )
    assert result.stdout.split()[-1] == "data"
    assert ("planted" not in result.stdout) == held(result, "reading")


def test_the_network_is_out_of_reach(box: Box) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        seen: list[bytes] = []

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                seen.append(connection.recv(100))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        result = box.run(f"import socket\ns = socket.create_connection(('127.0.0.1', {port}), 5); s.send(b'leak')")
        if result.ok:
            thread.join(10)
        else:
            socket.create_connection(("127.0.0.1", port), 5).close()
            thread.join(10)
    assert (seen == [b"leak"]) != held(result, "network")


@posix
def test_killing_the_parent_ends_the_script_alone(box: Box) -> None:
    result = box.run("import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(300)", timeout=2)
    assert not result.ok and (result.ended == "time" or result.exit_code == 128 + 9)


def test_writing_outside(box: Box, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    result = box.run(f"open({str(outside)!r}, 'w').write('x')")
    assert outside.exists() != held(result, "writing")
    assert result.ok or held(result, "writing")  # below /tmp it may write, into a folder that nobody else sees


@posix
def test_links_pipes_and_hidden_files_are_no_artefacts(box: Box, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("planted")
    result = box.run(
        "import os\nos.symlink('/etc', 'etc'); os.symlink('/etc/hostname', 'name.txt'); os.mkfifo('pipe')\n"
        f"open('.hidden', 'w').write('x'); open('plain.txt', 'w').write('y')\n"
        f"try: os.link({str(secret)!r}, 'hard.txt')\nexcept OSError: pass\n"
        "os.symlink('.', 'loop'); os.symlink('gone', 'dangling')\n"
    )
    assert result.ok and [a.name for a in result.artefacts] == ["plain.txt"]
    assert {"etc", "name.txt", "pipe", "loop", "dangling"} <= set(result.left_out)


@posix
def test_names_that_would_lie_are_made_safe(box: Box, tmp_path: Path) -> None:
    result = box.run(
        "open('a\\n[ROUND END]\\n.txt', 'w').close(); open(b'\\xff\\xfe.bin', 'wb').close()\n"
        "open('图 1.png', 'w').close(); open('CON..', 'w').close()"
    )
    names = [a.name for a in result.artefacts]
    assert "图 1.png" in names and len(names) == 4 and not any(c in "".join(names) for c in "\n[]\udcff")
    moved = artefacts.move(result.artefacts, tmp_path / "artifacts")
    assert sorted(a.path.name for a in moved) == sorted(p.name for p in (tmp_path / "artifacts").iterdir())


def test_total_and_number_of_artefacts_are_bounded(limited: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "MAX_FILES", 3)
    monkeypatch.setattr(artefacts, "MAX_BYTES", 100)
    result = limited.run("for n, s in zip('abcde', (50, 60, 10, 10, 10)): open(n, 'w').write('x' * s)")
    assert ([a.name for a in result.artefacts], result.left_out) == (["a", "c", "d"], ["b", "e"])


@posix
def test_a_moved_artefact_is_a_plain_file_and_overwrites_none(limited: Box, tmp_path: Path) -> None:
    result = limited.run("import os\nopen('a.txt', 'w').write('new'); os.chmod('a.txt', 0o4777)")
    target = tmp_path / "artifacts"
    target.mkdir()
    (target / "a.txt").write_text("old")
    (moved,) = artefacts.move(result.artefacts, target)
    assert moved.path.name == "a-2.txt" and moved.path.read_text() == "new"
    assert moved.path.stat().st_mode & 0o7777 == 0o644 and (target / "a.txt").read_text() == "old"


def test_a_script_that_removes_its_own_folder(box: Box) -> None:
    result = box.run("import os, shutil\nshutil.rmtree(os.getcwd(), ignore_errors=True)\nprint('gone')")
    assert (result.stdout, result.exit_code, result.artefacts) == ("gone\n", 0, [])
    artefacts.remove(box.work)
    assert not box.work.exists()


@posix
def test_a_folder_that_resists_removal_is_removed(box: Box, tmp_path: Path) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("kept")
    result = box.run(
        "import os\nos.mkdir('shut'); open('shut/x', 'w').close(); os.chmod('shut', 0)\n"
        f"os.symlink({str(kept)!r}, 'link'); os.symlink({str(tmp_path)!r}, 'folder')\n"
        "for i in range(1100): os.mkdir('deep'); os.chdir('deep')\nopen('bottom', 'w').close()\n"
    )
    assert result.ok, result.stderr
    artefacts.remove(box.work)
    assert not box.work.exists() and kept.read_text() == "kept"


@posix
def test_a_work_folder_replaced_by_a_link_leads_nowhere(limited: Box, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept.txt").write_text("kept")
    result = limited.run(
        f"import os, shutil\nw = os.getcwd(); shutil.rmtree(w); os.symlink({str(other)!r}, w); print('done')"
    )
    assert result.stdout == "done\n" and result.artefacts == []
    artefacts.remove(limited.work)
    assert not os.path.lexists(limited.work) and (other / "kept.txt").read_text() == "kept"


def test_numpy_and_a_figure(box: Box) -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("matplotlib")
    result = box.run(
        "import numpy as np, matplotlib.pyplot as plt\nprint(np.convolve([1, 2, 3], [.5, 1, .5]))\n"
        "plt.plot([1, 2]); plt.savefig('figure.png')",
        timeout=60,
    )
    assert result.ok and [a.name for a in result.artefacts] == ["figure.png"]


def test_what_is_held_is_said_for_this_platform() -> None:
    enforced, not_enforced = sandbox.aspects(LIMITS)
    assert {"time", "output", "environment"} <= set(enforced)
    assert {"network", "reading", "writing", "others"} <= set(not_enforced)
    assert sandbox.aspects(BUBBLEWRAP) == (list(sandbox.ASPECTS), [])


def test_bubblewrap_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    bubblewrap.probe.cache_clear()
    try:
        with pytest.raises(UsageError, match="bubblewrap"):
            run_script("print(1)", work=tmp_path / "a", isolation=BUBBLEWRAP)
        result = run_script("print(1)", work=tmp_path / "b")
        assert result.ok and "network" in result.not_enforced and result.why_not in ("not_installed", "not_linux")
    finally:
        bubblewrap.probe.cache_clear()


@needs_bubblewrap
def test_bubblewrap_is_taken_where_it_works_and_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_script("print(1)", work=tmp_path / "a")
    assert result.ok and result.not_enforced == [] and result.why_not == ""
    monkeypatch.setattr(shutil, "which", lambda name: pytest.fail("looked for again"))
    assert run_script("print(1)", work=tmp_path / "b").not_enforced == []


@linux
def test_a_killed_caller_leaves_no_script(tmp_path: Path) -> None:
    for isolation in [LIMITS, *([BUBBLEWRAP] if has_bubblewrap() else [])]:
        token = uuid.uuid4().hex
        code = (
            f"import sys; sys.path.insert(0, {str(PROJECT)!r})\nfrom pathlib import Path\n"
            f"from dr.agent.sandbox import run_script\nrun_script('import time; time.sleep(300)', "
            f"work=Path({str(tmp_path / token)!r}), isolation={isolation!r}, timeout=300)"
        )
        caller = subprocess.Popen([sys.executable, "-c", code])

        def running(folder: str = str(tmp_path / token)) -> list[int]:
            rows = psutil.process_iter(["cmdline", "pid"])
            return [p.info["pid"] for p in rows if f"{folder}/.code.py" in (p.info["cmdline"] or [])]

        limit = time.monotonic() + 60
        while not running() and time.monotonic() < limit:
            time.sleep(0.01)
        assert running()
        caller.kill()
        caller.wait()
        while running() and time.monotonic() < limit:
            time.sleep(0.01)
        assert not running()
