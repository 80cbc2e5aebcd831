"""The command line: what each verb says, exit codes, and that bad input changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import PROJECT, dr, plan, result
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
        (["why?", "--source", ""], ["it is empty"]),
        (["why?", "--source", "x" * 5000], ["xxx…"]),
        (["why?", "--source", os.devnull], ["neither a file nor a folder"]),
        (["why?", "--source", "one; two.md"], ["a ';' that would divide it"]),
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
    (tmp_path / "one; two.md").write_text("Water boils at 100 degrees.", encoding="utf-8")
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


@pytest.mark.parametrize("arguments", [["poll"], ["why?", "--no-such-flag"], ["poll", "t", "--wait", "soon"]])
def test_wrong_usage_as_json_is_one_object_too(tmp_path: Path, arguments: list[str]) -> None:
    done = dr(tmp_path, *arguments, "--json")
    assert (done.code, done.err) == (2, "")
    assert done.json()["error"] and done.json()["exit"] == 2


def test_closed_streams_and_a_reader_that_leaves_end_no_run(tmp_path: Path) -> None:
    plan(tmp_path / "p.md", ["A | ok | -"])
    run = [sys.executable, str(PROJECT / "dr_runner.py"), "run", "--dag", str(tmp_path / "p.md"), "--agent", OK]
    run += ["--max-rounds", "1", "--root", str(tmp_path)]
    for task, redirection in (("closed", "<&- >&- 2>&-"), ("full", ">/dev/null 2>/dev/full")):
        subprocess.run(["sh", "-c", f'"$@" {redirection}', "sh", *run, "--task", task], check=True)
        assert result(tmp_path, task)["status"] == "completed"
    reader, writer = os.pipe()
    os.close(reader)
    assert subprocess.run([*run, "--task", "left"], stdout=subprocess.DEVNULL, stderr=writer).returncode == 0
    os.close(writer)
    assert result(tmp_path, "left")["status"] == "completed"


def test_ctrl_c_while_the_program_is_loaded_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'dr.cli':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n",
        encoding="utf-8",
    )
    done = dr(tmp_path, "list", PYTHONPATH=str(tmp_path))
    assert (done.code, done.out, done.err) == (130, "", "")


@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_plan_is_read_in_the_encodings_that_windows_writes(tmp_path: Path, charset: str) -> None:
    text = plan(tmp_path / "p.md", ["A | 容量是多少 | -"]).read_text(encoding="utf-8")
    (tmp_path / "p.md").write_bytes(text.replace("\n", "\r\n").encode(charset))
    assert dr(tmp_path, "check", "p.md", "--json").json()["nodes"][0]["sub_question"] == "容量是多少"


def test_a_folder_that_is_gone_is_no_traceback(tmp_path: Path) -> None:
    script = 'mkdir gone && cd gone && rmdir "$PWD" && exec "$@"'
    argv = ["sh", "-c", script, "sh", sys.executable, str(PROJECT / "dr_runner.py"), "status", "t", "--root", "here"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 2, done.stderr
    assert "as root" in done.stderr and "Traceback" not in done.stderr


def test_a_run_that_cannot_be_read_hides_no_other_from_the_list(tmp_path: Path) -> None:
    plan(tmp_path / "p.md", ["A | ok | -"])
    assert dr(tmp_path, "plan", "--dag", "p.md", "--task", "t").code == 0
    (tmp_path / "temp" / "dr_bad" / "run.json").mkdir(parents=True)
    listed = dr(tmp_path, "list", "--json")
    assert [(r["task"], r["status"]) for r in listed.json()["runs"]] == [("bad", "unreadable"), ("t", "planned")]


def test_a_file_that_somebody_made_a_folder_is_named_and_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Water boils at 100 degrees.", encoding="utf-8")
    assert dr(tmp_path, "plan", "When does water boil?", "--source", "a.txt", "--task", "t").code == 0
    dag = tmp_path / "temp" / "dr_t" / "dag.md"
    dag.rename(dag.with_name("kept.md"))
    dag.mkdir()
    done = dr(tmp_path, "resume", "t")
    assert done.code == 2, done.err
    assert f"use {dag}" in done.err and "directory" in done.err.lower()
    dag.rmdir()
    assert dr(tmp_path, "skip", "t", "N1").code == 0, "a lost dag.md is written again"


def test_text_from_outside_does_not_command_the_terminal(tmp_path: Path) -> None:
    plan(tmp_path / "p.md", ["A | \x1b]0;x\x07red\x1b[31m\x9b2J | -"])
    done = dr(tmp_path, "check", "p.md")
    assert done.code == 0
    assert "red\ufffd[31m\ufffd2J" in done.out
    assert not set(done.out) & {"\x1b", "\x07", "\x9b"}


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
    done = dr(tmp_path, "plan", "status", "--source", str(CASES), "--task", "t")
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


def test_next_can_be_run_as_printed_wherever_one_stands(tmp_path: Path) -> None:
    import shlex

    (tmp_path / "temp" / "dr_t").mkdir(parents=True)
    plan(tmp_path / "temp/dr_t/dag.md", ["A | ok | -", "B | ok | A"])
    runner = "../../" * 8 + str(PROJECT / "dr_runner.py").lstrip("/")
    argv = [sys.executable, runner, "start", "t", "--agent", OK, "--root", str(tmp_path), "--json"]
    for _ in range(8):
        done = subprocess.run(argv, cwd=tmp_path / "temp", capture_output=True, text=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        following = json.loads(done.stdout).get("next") or ""
        if not following or following.endswith(".md"):
            break
        assert following.endswith("--json")
        argv = [*shlex.split(following), "--root", str(tmp_path)]
        assert argv[1] == runner
    assert (tmp_path / "temp/dr_t/report.md").exists()


def test_a_mistyped_verb_is_named(tmp_path: Path) -> None:
    done = dr(tmp_path, "verfy", "t")
    assert done.code == 2
    assert "verify" in done.err


def test_no_source_and_no_search_engine_is_said_at_once(tmp_path: Path) -> None:
    done = dr(tmp_path, "How high is the Eiffel Tower?")
    assert done.code == 2
    assert "--source" in done.err
    assert listing(tmp_path) == []


def test_a_plan_in_a_folder_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "temp" / "dr_t").mkdir(parents=True)
    plan(tmp_path / "temp/dr_t/dag.md", ["A | ok | -"])
    assert "start t" in dr(tmp_path, "status", "t").err


def test_a_refused_synth_changes_no_status(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The bridge was opened in 1932.", encoding="utf-8")
    dr(tmp_path, "plan", "When was the bridge opened?", "--source", "a.txt", "--task", "t")
    assert dr(tmp_path, "synth", "t").code == 2
    assert dr(tmp_path, "status", "t", "--json").json()["status"] == "planned"


def test_status_of_many_nodes_fits_and_ends_with_the_next_command(tmp_path: Path) -> None:
    plan(tmp_path / "p.md", [f"N{i} | ok {'very ' * 60}| -" for i in range(150)])
    dr(tmp_path, "plan", "--dag", "p.md", "--task", "t")
    text = dr(tmp_path, "status", "t").out
    assert len(text) < 10_000
    assert text.rstrip().endswith("resume t")


def test_missing_packages_are_said_and_are_no_bug(tmp_path: Path) -> None:

    code = (
        "import sys, importlib.util as u; found = u.find_spec;"
        "u.find_spec = lambda n, *a: None if n in ('psutil', 'filelock') else found(n, *a);"
        "from dr.cli import main; raise SystemExit(main(sys.argv[1:]))"
    )
    argv = [sys.executable, "-c", code, "run", "why?", "--source", ".", "--root", str(tmp_path)]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 2
    assert "requirements.txt" in done.stderr
    assert listing(tmp_path) == []
