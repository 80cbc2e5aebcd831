"""CODE nodes: agentmain.py as a real process on a temporary root; what is concluded, what fails, what is left."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import agent_makers as make
import psutil
import pytest

from dr.agent import bubblewrap
from dr.citations import quote_stands

BOXED = bubblewrap.probe(sys.executable).path is not None


@pytest.fixture(autouse=True)
def nothing_left_running(tmp_path: Path) -> Iterator[None]:
    yield
    rows = psutil.process_iter(["cmdline"])
    assert not [p.info["cmdline"] for p in rows if str(tmp_path) in " ".join(p.info["cmdline"] or [])]


def run(root: Path, question: str, source: str, **variables: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The node folder and the ended process; an answer and a failure are told apart in every file."""
    folder = make.node(root, "dr_t/N1", question, source, type="CODE")
    done = make.run(root, "--task", "dr_t/N1", "--nobg", "--verbose", **variables)
    output = folder / "output.txt"
    assert output.exists() == (done.returncode == 0), done.stderr
    if done.returncode:
        assert "Traceback" not in done.stderr.split("stderr")[0] and done.stderr.startswith("dr.agent: ")
        assert not (folder / "final_answer.md").exists()
        assert not (folder / "evidence.jsonl").exists() or not make.evidence(folder)
    else:
        check_form(folder)
    assert not (folder / "code").exists()
    return folder, done


def check_form(folder: Path) -> None:
    """Every cited id is evidence, every quote stands in its passage, every line number leads to it."""
    text = (folder / "output.txt").read_text(encoding="utf-8")
    assert text.startswith("[结论] ") and text.endswith("\n\n[ROUND END]\n")
    by_id = {p["id"]: p for p in make.evidence(folder)}
    lines = [line for line in text.split("\n") if line.startswith("来源：")]
    assert lines
    for line in lines:
        quote, citation = line.split(' — "', 1)[1].rsplit('" ', 1)
        assert by_id[citation]["kind"] == "code" and quote_stands(quote, by_id[citation]["text"])
    for passage in by_id.values():
        if number := passage["locator"].get("line"):
            stored = Path(passage["path"]).read_text(encoding="utf-8").split("\n")
            assert stored[number - 1].startswith(passage["text"].split("\n")[0])


def answer(folder: Path) -> str:
    return (folder / "output.txt").read_text(encoding="utf-8")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_script_with_its_data(tmp_path: Path) -> None:
    write(tmp_path / "cities.csv", "city,people\n" + "".join(f"c{i},{i * 100}\n" for i in range(12)))
    write(
        tmp_path / "sum.py",
        "import csv\nrows = list(csv.DictReader(open('cities.csv')))\n"
        "for r in rows: print(r['city'], r['people'])\n"
        "print('The total population is', sum(int(r['people']) for r in rows))\n"
        "open('plot.svg', 'w').write('<svg/>')\n",
    )
    folder, done = run(tmp_path, "What is the total population of the cities?", "sum.py; cities.csv")
    text = answer(folder)
    assert text.startswith("[结论] The total population is 6600 [code-1]")
    assert f'来源：{folder}/artifacts/sum.stdout.txt, L1 — "The total population is 6600" [code-1]' in text
    assert "sum.py: exit code 0. [code-2] Files written: plot.svg (6 bytes). [code-2]" in text
    assert (folder / "artifacts" / "plot.svg").read_text() == "<svg/>"
    assert ("Not held here" in text) != BOXED
    assert "[run_python_code] success" in done.stdout and "--- Step 3: s003 ---" in done.stdout
    memory = json.loads((folder / "solve_memory.json").read_text(encoding="utf-8"))
    assert memory["progress"]["status"] == "completed" and memory["metadata"]["completed_steps"] == 3
    record = make.evidence(folder)[-1]
    assert record["path"] == str(tmp_path / "sum.py") and len(record["sha256"]) == 64


def test_a_chinese_question_with_code_in_it(tmp_path: Path) -> None:
    folder, _ = run(tmp_path, "六乘以七的结果是多少？\n```python\nprint('结果是', 6 * 7)\n```\n", "")
    text = answer(folder)
    assert text.startswith("[结论] 结果是 42 [code-1]") and "退出码 0" in text and "未使用语言模型" in text
    assert (folder / "artifacts" / "code-1.py").read_text(encoding="utf-8") == "print('结果是', 6 * 7)\n"


def test_code_in_the_question_reads_the_source(tmp_path: Path) -> None:
    write(tmp_path / "d.txt", "blue whale\n")
    folder, _ = run(tmp_path, "Which animal?\n```py\nprint(open('d.txt').read())\n```", str(tmp_path / "d.txt"))
    assert answer(folder).startswith("[结论] blue whale [code-1]")


def test_several_scripts_and_a_module_that_one_imports(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "import helper\nprint('alpha is', helper.value)\n")
    write(tmp_path / "b.py", "print('beta is 2')\n")
    write(tmp_path / "helper.py", "value = 1\n")
    folder, done = run(tmp_path, "What are alpha and beta?", "a.py; b.py; helper.py")
    text = answer(folder)
    assert "alpha is 1 [code-1]" in text and "beta is 2 [code-3]" in text and "helper.py: exit" not in text
    assert "[Plan] 2 block(s)" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="no #! there")
def test_an_executable_of_another_language(tmp_path: Path) -> None:
    script = write(tmp_path / "count.sh", "#!/bin/sh\necho three | tr a-z A-Z\n")
    folder, done = run(tmp_path, "How many?", "count.sh")
    assert done.returncode == 1 and "count.sh is no Python file (.py) and no executable file" in done.stderr
    script.chmod(0o755)
    assert make.run(tmp_path, "--task", "dr_t/N1").returncode == 0
    assert answer(folder).startswith("[结论] THREE [code-1]")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('The answer is 5')\nraise SystemExit(3)", "exit code 3"),
        (
            "print('The answer is 5')\nraise ValueError('wrong input')",
            "exit code 1; last lines of stderr: .*wrong input",
        ),
        ("print('The answer is 5', flush=True)\nwhile True: pass", "not done after 1 s; it was ended"),
        ("x = 5", "it printed nothing"),
        ("print('  ')\nopen('p.txt', 'w').write('x')", r"it printed nothing \(it wrote p.txt \(1 bytes\)\)"),
        ("print('[结论] The answer is 5')", "its output holds nothing that can be quoted"),
        ("this is no Python", "SyntaxError"),
    ],
)
def test_a_failure_is_no_finding(tmp_path: Path, code: str, reason: str) -> None:
    script = write(tmp_path / "s.py", code + "\n")
    folder = make.node(tmp_path, "dr_t/N1", "What is the answer?", str(script), type="CODE")
    done = make.run(tmp_path, "--task", "dr_t/N1", DR_AGENTS_CODE_AGENT_TIMEOUT="1" if "while" in code else "20")
    assert done.returncode == 1 and done.stderr.startswith("dr.agent: run s.py: ")
    assert re.search(reason, done.stderr) and "\n  -> " in done.stderr
    assert not (folder / "output.txt").exists() and not (folder / "final_answer.md").exists()
    assert not (folder / "code").exists()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "no script was given, and the question holds no ```python block"),
        ("missing.py", "there is no such file"),
        ("data.csv", "data.csv is no Python file"),
        ("temp/dr_t/N2/s.py", "belongs to another node"),
    ],
)
def test_nothing_to_run(tmp_path: Path, source: str, reason: str) -> None:
    write(tmp_path / "data.csv", "1")
    other = make.node(tmp_path, "dr_t/N2", "q", "", type="CODE")
    write(other / "s.py", "print(1)")
    _, done = run_without_evidence(tmp_path, source)
    assert done.returncode == 1 and reason in done.stderr


def run_without_evidence(root: Path, source: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = make.node(root, "dr_t/N1", "What is it?", source, type="CODE")
    done = make.run(root, "--task", "dr_t/N1")
    assert not (folder / "output.txt").exists()
    return folder, done


def test_without_bubblewrap_the_conclusion_says_what_was_not_held(tmp_path: Path) -> None:
    write(tmp_path / "s.py", "print('value 7')\n")
    folder, _ = run(tmp_path, "What is the value?", "s.py", PATH=str(tmp_path / "nothing"))
    text = answer(folder)
    assert text.startswith("[结论] value 7 [code-1]")
    assert "Held while the script ran: running time" in text and "Not held here: " in text and "network access" in text
    assert "bubblewrap is " in text  # not installed, or for Linux only


def test_switched_off(tmp_path: Path) -> None:
    write(tmp_path / "s.py", "print(1)")
    _, done = run(tmp_path, "What?", "s.py", DR_AGENTS_CODE_AGENT_ENABLED="false")
    assert done.returncode == 2 and "the code_agent is switched off" in done.stderr


def test_no_secret_and_no_other_node_for_the_script(tmp_path: Path) -> None:
    other = make.node(tmp_path, "dr_t/N2", "q", "", type="CODE")
    write(other / "evidence.jsonl", "planted")
    write(
        tmp_path / "s.py",
        f"import os\nprint('key', os.environ.get('DR_API_KEY'), len([k for k in os.environ if k.startswith('DR_')]))\n"
        f"print('node', os.path.exists({str(other / 'evidence.jsonl')!r}))\n",
    )
    folder, _ = run(tmp_path, "What does it see?", "s.py", DR_API_KEY="sk-planted", OPENAI_API_KEY="sk-planted")
    text = answer(folder)
    assert "key None 0 [code-1]" in text and f"node {not BOXED} [code-1]" in text
    assert not [p for p in folder.rglob("*") if p.is_file() and "sk-planted" in p.read_text(errors="replace")]


def test_a_restarted_subagent_runs_nothing_twice_unless_the_script_changed(tmp_path: Path) -> None:
    script = write(tmp_path / "s.py", "import time\nprint('value', time.time_ns())\n")
    folder, _ = run(tmp_path, "What is the value?", "s.py")
    first = answer(folder)
    memory = json.loads((folder / "solve_memory.json").read_text(encoding="utf-8"))
    for step in memory["plan"]["blocks"][0]["steps"][1:]:  # as after a kill behind the first step
        step.update(status="pending", content="", citations=[], tool_logs=[])
    memory["progress"].update(status="in_progress", completed_blocks=[], completed_steps=["s001"])
    (folder / "solve_memory.json").write_text(json.dumps(memory), encoding="utf-8")
    done = make.run(tmp_path, "--task", "dr_t/N1", "--verbose")
    assert done.returncode == 0 and "[run_python_code]" not in done.stdout and answer(folder) == first
    write(script, "print('another value: 8')\n")
    assert make.run(tmp_path, "--task", "dr_t/N1").returncode == 0
    assert answer(folder).startswith("[结论] another value: 8 [code-1]")


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_a_killed_subagent_leaves_no_script_and_its_successor_answers(tmp_path: Path) -> None:
    write(
        tmp_path / "s.py",
        "import os, time\nprint('value 7', flush=True)\nif not os.path.exists('go'): time.sleep(120)\n",
    )
    write(tmp_path / "slow", "x")
    folder = make.node(tmp_path, "dr_t/N1", "What is the value?", "s.py", type="CODE")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DR_")}
    environment |= {"DR_ROOT": str(tmp_path), "DR_MIND": "offline", "DR_AGENTS_CODE_AGENT_TIMEOUT": "120"}
    argv = [sys.executable, str(make.PROJECT / "agentmain.py"), "--task", "dr_t/N1"]
    first = subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def scripts() -> list[psutil.Process]:
        wanted = str(tmp_path / "s.py")
        return [p for p in psutil.process_iter(["cmdline"]) if (p.info["cmdline"] or [])[-1:] == [wanted]]

    limit = time.monotonic() + 60
    while not scripts() and time.monotonic() < limit:
        time.sleep(0.01)
    assert scripts()
    first.kill()
    first.wait()
    while scripts() and time.monotonic() < limit:
        time.sleep(0.01)
    assert not scripts()
    write(tmp_path / "s.py", "print('value 7')\n")
    assert make.run(tmp_path, "--task", "dr_t/N1").returncode == 0
    assert answer(folder).startswith("[结论] value 7 [code-1]") and not (folder / "code").exists()
