"""The command line: what each verb says, exit codes, and that bad input changes nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command import PROJECT, dr, plan
from lab import AGENTS

CASES = PROJECT / "tests" / "data"
OK = str(AGENTS / "ok.py")


def listing(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", ""], ["the question is empty"]),
        (["   "], ["the question is empty"]),
        (["why?", "--source", "nowhere"], ["nowhere", "does not exist"]),
        (["why?", "--task", "../x"], ["../x"]),
        (["why?", "--task", "a/b"], ["a/b"]),
        (["why?", "--task", "CON"], ["Windows device name"]),
        (["run", "--dag", "missing.md"], ["missing.md"]),
        (["run", "--dag", "bad.md"], ["line 5", "depends on itself"]),
        (["why?", "--mind", "genius"], ["genius"]),
        (["why?", "--max-parallel", "0"], ["max_parallel"]),
        (["why?", "--agent", "nobody.py"], ["nobody.py"]),
        (["why?", "--no-such-flag"], ["--no-such-flag"]),
        (["status", "nothing"], ["nothing", "no run"]),
        (["status", "../x"], ["../x"]),
        (["resume", "nothing"], ["no run"]),
        (["check", "missing.md"], ["missing.md"]),
        (["clean", "missing.txt"], ["missing.txt"]),
        (["add", "nothing", "--type", "LOCAL", "--question", "q"], ["no run"]),
    ],
)
def test_bad_input_is_exit_2_with_a_message_and_changes_nothing(
    tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    (tmp_path / "temp").mkdir()
    (tmp_path / "bad.md").write_text(
        "# DR: t\nROOT: q\n\n## Nodes\n- [N1] LOCAL | question: a | depends: N1\n", "utf-8"
    )
    before = listing(tmp_path)
    done = dr(tmp_path, *arguments)
    assert done.code == 2, done.err
    for word in words:
        assert word in done.err
    assert "Traceback" not in done.err
    assert done.out == ""
    assert listing(tmp_path) == before


def test_a_temp_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "temp").write_text("in the way", encoding="utf-8")
    (tmp_path / "a.txt").write_text("Water boils at 100 degrees.", encoding="utf-8")
    done = dr(tmp_path, "why?", "--source", "a.txt")
    assert done.code == 2, done.err
    assert "temp" in done.err
    assert (tmp_path / "temp").read_text(encoding="utf-8") == "in the way"


def test_errors_as_json_are_one_object_and_stderr_is_silent(tmp_path: Path) -> None:
    done = dr(tmp_path, "status", "nothing", "--json")
    assert (done.code, done.err) == (2, "")
    assert done.json()["exit"] == 2
    assert "no run" in done.json()["error"]


def test_an_existing_task_is_refused_unless_replaced(tmp_path: Path) -> None:
    plan(tmp_path / "p.md", ["A | ok | -"])
    run = ["run", "--dag", "p.md", "--task", "t", "--agent", OK, "--max-rounds", "1"]
    assert dr(tmp_path, *run).code == 0
    refused = dr(tmp_path, *run)
    assert refused.code == 2
    assert "resume t" in refused.err
    assert dr(tmp_path, *run, "--replace").code == 0


def test_status_list_and_trace_of_a_finished_run(tmp_path: Path) -> None:
    plan(tmp_path / "p.md", ["A | ok | -", "B | ok | A"], question="What holds?")
    dr(tmp_path, "run", "--dag", "p.md", "--task", "t", "--agent", OK, "--max-rounds", "1")
    status = dr(tmp_path, "status", "dr_t", "--json")
    assert (status.code, status.err) == (0, "")
    assert status.json()["counts"] == {"pending": 0, "running": 0, "done": 2, "failed": 0, "skipped": 0}
    assert status.json()["next"].endswith("report.md")
    text = dr(tmp_path, "status", "t").out
    assert "[✓] A" in text
    listed = dr(tmp_path, "list", "--json").json()["runs"]
    assert [(r["task"], r["status"], r["question"]) for r in listed] == [("t", "completed", "What holds?")]
    story = dr(tmp_path, "trace", "t").out
    assert story.index("A") < story.index("run.end")


def test_run_as_json_is_one_small_object(tmp_path: Path) -> None:
    plan(tmp_path / "p.md", [f"N{i} | ok {'very ' * 60}| -" for i in range(40)])
    done = dr(tmp_path, "run", "--dag", "p.md", "--task", "t", "--agent", OK, "--max-rounds", "1", "--json")
    assert (done.code, done.err) == (0, "")
    assert len(done.out) < 8000
    data = done.json()
    assert data["coverage"]["answered"] == 40
    assert Path(data["report"]).exists()


def test_plan_starts_nothing_and_resume_carries_it_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The bridge was opened in 1932. It is 503 metres long.", encoding="utf-8")
    planned = dr(tmp_path, "plan", "When was the bridge opened?", "--source", "a.txt", "--task", "t", "--json")
    assert planned.code == 0, planned.err
    data = planned.json()
    assert data["nodes"] == 1
    assert data["max_attempts"] == 12
    assert sorted(p.name for p in (tmp_path / "temp" / "dr_t").iterdir() if p.is_dir()) == []
    done = dr(tmp_path, "resume", "t")
    assert done.code == 0, done.err
    assert "1932" in done.out


def test_the_question_may_be_a_verb_when_run_says_so(tmp_path: Path) -> None:
    done = dr(tmp_path, "plan", "status", "--source", "/dev/null", "--task", "t")
    assert done.code == 0, done.err
    assert "ROOT: status" in (tmp_path / "temp/dr_t/dag.md").read_text(encoding="utf-8")


CHECKED = json.loads((CASES / "dag" / "expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(CHECKED))
def test_check_gives_the_cases_their_values(tmp_path: Path, name: str) -> None:
    expected = CHECKED[name]
    done = dr(tmp_path, "check", str(CASES / "dag" / f"{name}.md"), "--json")
    data = done.json()
    assert list(data) == ["title", "root", "nodes", "errors"]
    if "line" in expected:
        assert done.code == 2
        matching = [e for e in data["errors"] if e["line"] == expected["line"]]
        assert any(all(w in e["message"] for w in expected["error_contains"]) for e in matching)
        return
    assert done.code == 0
    assert (data["title"], data["root"], data["errors"]) == (expected["title"], expected["root"], [])
    for found, wanted in zip(data["nodes"], expected["nodes"], strict=True):
        assert {k: found[k] for k in wanted} == wanted
        assert set(found) == {"id", "type", "sub_question", "depends_on", "state", "source", "expected_outcome"}


def test_check_rewrites_to_the_canonical_text(tmp_path: Path) -> None:
    case = CASES / "dag" / "grouped-with-log.md"
    once = dr(tmp_path, "check", str(case), "--rewrite").out
    (tmp_path / "again.md").write_text(once, encoding="utf-8")
    assert dr(tmp_path, "check", "again.md", "--rewrite").out == once
    for line in CHECKED["grouped-with-log"]["survives"]:
        assert line in once.splitlines()


CLEANED = json.loads((CASES / "transcripts" / "expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(CLEANED))
def test_clean_gives_the_cases_their_values(tmp_path: Path, name: str) -> None:
    done = dr(tmp_path, "clean", str(CASES / "transcripts" / f"{name}.txt"), "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json() == CLEANED[name]


def test_help_names_every_verb(tmp_path: Path) -> None:
    done = dr(tmp_path, "--help")
    assert done.code == 0
    for verb in ("run", "plan", "start", "poll", "add", "synth", "status", "trace", "resume", "stop", "list", "check"):
        assert verb in done.out


@pytest.mark.parametrize("arguments", [["--help"], ["check", str(CASES / "dag" / "canonical.md")], ["list"]])
def test_fast_verbs_import_nothing_heavy(tmp_path: Path, arguments: list[str]) -> None:
    import os
    import subprocess

    code = (
        "import sys; sys.argv = ['dr_runner.py', *sys.argv[1:]]; from dr.cli import main; main(sys.argv[1:]);"
        "heavy = {'requests', 'pypdf', 'trafilatura', 'filelock', 'yaml', 'lxml', 'jinja2', 'markdown_it', 'psutil'};"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--root", str(tmp_path)] if arguments != ["--help"] else
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, encoding="utf-8", cwd=PROJECT, env=dict(os.environ),
    )  # fmt: skip
    assert "HEAVY []" in done.stdout, done.stdout + done.stderr
