"""The waiting that processes share through a file: extended, honoured, bounded, never broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROJECT
from scripted_model import Fail, ScriptedModel

from dr.backoff import SharedBackoff

NOW = 1_800_000_000.0
HERE = "http://127.0.0.1/v1/chat/completions"


def shared(path: Path, now: float = NOW, address: str = HERE) -> SharedBackoff:
    return SharedBackoff(path, address, longest_s=120, clock=lambda: now)


def test_all_wait_for_the_longest_wait_anybody_was_told(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "backoff.json"
    assert shared(path).remaining() == 0
    shared(path).extend(30)
    shared(path, NOW + 10).extend(5)
    assert shared(path, NOW + 10).remaining() == 20
    assert shared(path, NOW + 10, "http://other/v1").remaining() == 0
    shared(path, NOW + 10).extend(60)
    assert shared(path, NOW + 10).remaining() == 60
    assert shared(path, NOW + 71).remaining() == 0
    shared(path, NOW + 71, "http://other/v1").extend(1)
    assert list(json.loads(path.read_text(encoding="utf-8"))["not_before"]) == [
        "http://other/v1"
    ]  # past ones are dropped


def test_nobody_waits_longer_than_the_longest_whatever_clocks_do(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    shared(path).extend(10**9)
    assert shared(path).remaining() == 120
    assert shared(path, NOW - 60).remaining() == 120  # another machine's clock is a minute behind
    assert shared(path, NOW - 86_400).remaining() == 0  # a clock was set back
    shared(path, NOW - 86_400).extend(5)
    assert shared(path, NOW - 86_400).remaining() == 5


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "null", '{"version": 2, "not_before": {}}', '{"version": 1, "not_before": [1]}'),
        *(
            f'{{"version": 1, "not_before": {{"{HERE}": {value}}}}}'
            for value in ('"soon"', "true", "NaN", "1e999", "-1")
        ),
        *("\x00\x01", '{"version": 1, "not_before": {"' + HERE),
    ],
)
def test_a_corrupted_file_holds_nobody_back_and_is_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(content, encoding="utf-8")
    assert shared(path).remaining() == 0
    shared(path).extend(7)
    assert shared(path).remaining() == 7


WRITER = """
import sys
from pathlib import Path
from dr.backoff import SharedBackoff
path, number = Path(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for turn in range(25):
    SharedBackoff(path, f"http://own-{number}/v1", clock=lambda: 1.8e9).extend(turn + 1)
    SharedBackoff(path, "http://common/v1", clock=lambda: 1.8e9).extend(number * 25 + turn)
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    command = [sys.executable, "-c", WRITER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": PROJECT}
    started = [subprocess.Popen([*command, str(number)], **pipes) for number in range(4)]
    try:
        for process in started:
            assert process.stdout.readline() == "ready\n"
        for process in started:
            process.stdin.write("go\n")
            process.stdin.flush()
        assert [process.communicate() and process.returncode for process in started] == [0, 0, 0, 0]
    finally:
        for process in started:
            process.kill()
            process.communicate()
    entries = json.loads(path.read_text(encoding="utf-8"))["not_before"]
    assert entries == {**{f"http://own-{n}/v1": 1.8e9 + 25 for n in range(4)}, "http://common/v1": 1.8e9 + 99}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.json", "b.json.lock"]


ASKER = """
import json, os, sys
from pathlib import Path
from dr.chat import Chat
slept = []
env = os.environ
chat = Chat(env["DR_BASE_URL"], env["DR_MODEL"], env["DR_API_KEY"], backoff_path=Path(sys.argv[1]),
            clock=lambda: 1.8e9 + sum(slept), sleep=slept.append, jitter=lambda: 0.0)
reply = chat.ask([{"role": "user", "content": "hello"}])
print(json.dumps([reply.text, slept]))
"""


def test_one_process_is_told_to_wait_and_every_process_waits(tmp_path: Path) -> None:
    def ask(model: ScriptedModel) -> list[object]:
        command = [sys.executable, "-c", ASKER, str(tmp_path / "b.json")]
        done = subprocess.run(
            command, cwd=PROJECT, env=model.environment(), capture_output=True, text=True, encoding="utf-8"
        )
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout))

    with ScriptedModel([Fail(429, retry_after=40), "first", "second"]) as model, ScriptedModel(["elsewhere"]) as other:
        assert ask(model) == ["first", [40.0]]
        assert ask(model) == ["second", [40.0]]  # its clock stands at the time of the first; it was told nothing itself
        assert ask(other) == ["elsewhere", []]
    assert len(model.requests) == 3
