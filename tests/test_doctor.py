"""`doctor`: what is missing, unreachable or left behind, each with the command that mends it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import dr, plan
from lab import AGENTS, Lab

from dr import doctor, packages
from dr.doctor import Check
from dr.layout import Root

SLOW = str(AGENTS / "pause.py")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DR_BASE_URL", "DR_MODEL", "DR_API_KEY", "DR_SEARXNG_URL", "DR_SEARCH_API_KEY", "DR_MIND"):
        monkeypatch.delenv(name, raising=False)


def answers(status: int, body: str = "") -> doctor.Get:
    return lambda url, headers: (status, body)


def unreachable(url: str, headers: dict[str, str]) -> tuple[int, str]:
    raise OSError("connection refused")


def check(root: Path, what: str, get: doctor.Get = unreachable, **flags: Any) -> Check:
    found = [c for c in doctor.examine(Root(root), flags, get) if c.what == what]
    assert len(found) == 1, found
    return found[0]


MODEL = {"model": "m-1", "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-secret"}


@pytest.mark.parametrize(
    ("get", "state", "words"),
    [
        (answers(200, '{"data": [{"id": "m-1"}]}'), doctor.OK, "answers"),
        (answers(200, '{"data": [{"id": "other"}]}'), doctor.WARN, "does not speak of"),
        (answers(404), doctor.WARN, "HTTP 404"),
        (answers(401), doctor.BAD, "refused"),
        (unreachable, doctor.BAD, "connection refused"),
    ],
)
def test_asks_the_model_server_whether_it_is_there(tmp_path: Path, get: doctor.Get, state: str, words: str) -> None:
    found = check(tmp_path, "mind", get, **MODEL)
    assert found.state == state and words in found.said
    assert "sk-secret" not in doctor.text([found])


def test_sends_the_key_to_the_model_server_alone(tmp_path: Path) -> None:
    seen: list[tuple[str, dict[str, str]]] = []

    def get(url: str, headers: dict[str, str]) -> tuple[int, str]:
        seen.append((url, headers))
        return 200, "m-1 results"

    doctor.examine(Root(tmp_path), {**MODEL, "searxng_url": "http://127.0.0.1:9"}, get)
    assert seen[0] == ("http://127.0.0.1:9/v1/models", {"Authorization": "Bearer sk-secret"})
    assert seen[1][0].startswith("http://127.0.0.1:9/search?") and seen[1][1] == {}


def test_a_search_engine_without_json_is_told_from_one_that_is_gone(tmp_path: Path) -> None:
    flags = {"searxng_url": "http://127.0.0.1:9"}
    assert "JSON" in check(tmp_path, "search", answers(403), **flags).mend
    assert check(tmp_path, "search", answers(200, '{"results": []}'), **flags).state == doctor.OK
    assert check(tmp_path, "search").state == doctor.WARN


def test_names_missing_packages_and_what_installs_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "missing", lambda: [p for p in packages.PACKAGES if p.name == "pypdf"])
    found = check(tmp_path, "packages")
    assert found.state == doctor.WARN and found.mend == packages.command(sys.executable, [packages.PACKAGES[2]])
    monkeypatch.setattr(packages, "missing", lambda: [p for p in packages.PACKAGES if p.needed])
    assert check(tmp_path, "packages").state == doctor.BAD


def test_a_genericagent_root_without_a_model_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    for name in ("agentmain.py", "ga.py"):
        (tmp_path / name).write_text("agent_runner_loop = '[ROUND END]'\n", encoding="utf-8")
    assert "GenericAgent" in check(tmp_path, "root").said
    assert check(tmp_path, "mind").state == doctor.WARN
    (tmp_path / "mykey.json").write_text("{}", encoding="utf-8")
    assert check(tmp_path, "mind").state == doctor.OK
    assert "[ROUND END]" in check(tmp_path, "agent").said


def test_wrong_settings_are_one_finding_and_the_rest_is_still_looked_at(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("no_such_key: 1\n", encoding="utf-8")
    found = {c.what: c for c in doctor.examine(Root(tmp_path), {}, unreachable)}
    assert found["settings"].state == doctor.BAD and "no_such_key" in found["settings"].said
    assert "runs" in found


def test_subagents_without_a_runner_are_found_and_the_named_command_ends_them(tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    plan(tmp_path / "p.md", ["A | pause=50 | -"])
    started = dr(tmp_path, "start", "t", "--dag", "p.md", "--agent", SLOW)
    assert started.code == 0, started.err
    data = dr(tmp_path, "doctor", "--json").json()
    row = next(c for c in data["checks"] if c["what"] == "run t")
    assert row["state"] == "warn" and "without a runner" in row["said"] and "stop t" in row["mend"]
    assert dr(tmp_path, "stop", "t").code == 0
    after = dr(tmp_path, "doctor", "--json").json()
    assert not any(c["what"] == "run t" for c in after["checks"])


def test_processes_of_a_run_whose_folder_is_gone_are_found(lab: Lab) -> None:
    child = lab.python("import time; time.sleep(60)", name="N1")
    found = {c.what: c for c in doctor.examine(lab.root, {}, unreachable)}
    assert str(child.pid) in found["temp/dr_x"].said and str(child.pid) in found["temp/dr_x"].mend
    subprocess.run(found["temp/dr_x"].mend, shell=True, check=True)


def test_a_run_whose_runner_died_says_how_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    plan(tmp_path / "p.md", ["A | one | -"])
    assert dr(tmp_path, "plan", "what is it?", "--dag", "p.md", "--task", "t").code == 0
    path = tmp_path / "temp" / "dr_t" / "run.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record.update(status="running", runner={"pid": 2**22 - 1, "create_time": 1.0, "boot": ""})
    path.write_text(json.dumps(record), encoding="utf-8")
    found = check(tmp_path, "run t")
    assert found.state == doctor.WARN and found.mend.endswith("resume t")


def test_what_a_killed_replacement_left_is_named_with_its_removal(tmp_path: Path) -> None:
    left = tmp_path / "temp" / ".dr_t.123.old"
    left.mkdir(parents=True)
    found = check(tmp_path, f"temp/{left.name}")
    subprocess.run(found.mend, shell=True, check=True)
    assert not left.exists()


def test_the_verb_exits_0_and_its_last_line_is_what_to_do(tmp_path: Path) -> None:
    done = dr(tmp_path, "doctor")
    assert done.code == 0 and done.err == ""
    assert "python" in done.out.splitlines()[0] and done.out.splitlines()[-1].strip()
