"""The runner dropped into a real GenericAgent, whose model is a script: installed, driven, driving, removed again.

    GENERICAGENT=/path/of/a/checkout GENERICAGENT_PYTHON=/its/python pytest -m costly tests/real_ga

tests/real_ga/run.sh CHECKOUT does this with an environment of its own. Nothing is written into the checkout.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scripted_llm import Asked, Call, Fail, Item, ScriptedLLM, Text

PROJECT = Path(__file__).resolve().parents[2]
CHECKOUT = os.environ.get("GENERICAGENT", "")
PYTHON = os.environ.get("GENERICAGENT_PYTHON", sys.executable)
pytestmark = [
    pytest.mark.costly,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not (Path(CHECKOUT) / "ga.py").is_file(), reason="GENERICAGENT names no GenericAgent checkout"),
]


@dataclass
class GA:
    root: Path

    def run(self, *arguments: str, cwd: str = ".", timeout: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PYTHON, str(self.root / "dr_runner.py"), *arguments],
            cwd=self.root / cwd,
            env=self.environment(),
            capture_output=True,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            timeout=timeout,
        )

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("DR_")}
        return {
            **kept,
            "GA_LANG": "zh",
            "TMPDIR": str(self.root.parent),
        }  # the browser lock of this machine is not ours

    def use(self, model: ScriptedLLM) -> None:
        facts = {"name": "scripted", "apikey": "sk-scripted", "apibase": model.base_url, "model": "scripted"}
        config = {"native_oai_config": {**facts, "api_mode": "chat_completions", "max_retries": 0}}
        (self.root / "mykey.json").write_text(json.dumps(config), encoding="utf-8")
        (self.root / ".git" / "info" / "exclude").write_text("mykey.json\n", encoding="utf-8")  # this test's own

    def install(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(PROJECT / "dr_runner.py"), "install", str(self.root), *options],
            capture_output=True,
            encoding="utf-8",
            check=True,
        )

    def git(self, *arguments: str) -> str:
        name = ("-c", "user.name=t", "-c", "user.email=t@t")
        done = subprocess.run(
            ["git", *name, *arguments], cwd=self.root, capture_output=True, encoding="utf-8", check=True
        )
        return done.stdout

    def processes(self) -> list[str]:
        """Command lines of whatever runs in this root."""
        found = []
        for process in psutil.process_iter():
            try:
                cwd, argv = process.cwd(), process.cmdline()
            except psutil.Error:
                continue
            inside = cwd == str(self.root) or cwd.startswith(f"{self.root}{os.sep}")
            if inside and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(argv))
        return found

    def result(self, task: str) -> dict[str, Any]:
        data = json.loads((self.folder(task) / "result.json").read_text(encoding="utf-8"))
        assert isinstance(data, dict)
        return data

    def folder(self, task: str) -> Path:
        return self.root / "temp" / f"dr_{task}"

    def events(self, task: str) -> list[dict[str, Any]]:
        lines = (self.folder(task) / "events.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def ga(tmp_path: Path) -> Iterator[GA]:
    ga = GA(tmp_path / "ga")
    shutil.copytree(CHECKOUT, ga.root, ignore=shutil.ignore_patterns(".git", "temp", "mykey.*", "__pycache__"))
    (tmp_path / "facts.txt").write_text("The harbour wall is blue. It was painted in 1999.\n", encoding="utf-8")
    ga.git("init", "-q")
    ga.git("add", "-A")
    ga.git("commit", "-qm", "as it is")
    yield ga
    for process in psutil.process_iter():
        try:
            if process.cwd().startswith(str(ga.root)):
                process.kill()
        except psutil.Error:
            continue


def dag(ga: GA, *lines: str, question: str = "What colour is the harbour wall?") -> Path:
    path = ga.root.parent / "plan.md"
    source = ga.root.parent / "facts.txt"
    nodes = [f"- [{n}] {t} | question: {q} | depends: {d} | source: {source}" for n, t, q, d in map(_split, lines)]
    path.write_text(
        "\n".join([f"# DR: {question}", f"ROOT: {question}", "", "## Nodes", *nodes]) + "\n", encoding="utf-8"
    )
    return path


def _split(line: str) -> list[str]:
    return [part.strip() for part in line.split("|")]


def conclusion(ga_root: Path, text: str) -> str:
    source = ga_root.parent / "facts.txt"
    return f'[结论] {text} It follows from the file.\n\n来源：{source} — "The harbour wall is blue."\n'


def reads_context(asked: Asked) -> Call:
    """What every GA does first; the echo of the conclusion format is in its transcript from then on."""
    before = "<summary>先读 context.json</summary>按要求写 [结论] {针对sub_question的直接回答}"
    return Call("file_read", {"path": str(asked.node / "context.json") if asked.node else ""}, before)


def is_planner(asked: Asked) -> bool:
    return asked.node is None


# -- the whole way -----------------------------------------------------------------------------------------------------


def test_five_nodes_with_a_failing_one_and_a_deepening(ga: GA) -> None:
    ga.install()
    seen: dict[str, int] = {}

    def planner(asked: Asked) -> Item:
        if asked.turn > 1:  # GA takes a reply that is one fenced block for an action that was forgotten
            return Text("The block above is the whole answer; nothing is to be run.")
        if "What just failed" in asked.prompt:
            seen["again"] = seen.get("again", 0) + 1
            rest = [{"id": i} for i in ("N5",) if f'"id": "{i}"' in asked.prompt]
            source = str(ga.root.parent / "facts.txt")
            new = {"id": "N3_other", "type": "LOCAL", "question": "When was the wall painted?", "source": source}
            return Text(json.dumps({"nodes": [new, *rest], "reason": "another source"}))
        if "a deepening, is needed" in asked.prompt:
            seen["deeper"] = seen.get("deeper", 0) + 1
            if seen["deeper"] == 1:
                return Text("I think N1 wants more. No JSON from me.")
            if seen["deeper"] == 2:
                node = {"id": "N1_detail", "type": "LOCAL", "question": "Which blue is it exactly?", "depends": ["N1"]}
                fenced = json.dumps({"nodes": [node], "reason": "the shade is open"}, indent=1)
                return Text(f"Here it is:\n```json\n{fenced}\n```")
            return Text('{"nodes": [], "reason": "everything is answered"}')
        if "You write the final answer" in asked.prompt:
            return Text('{"answer": "The harbour wall is blue [N1]. It was painted in 1999 [N3_other]."}')
        return Fail(400, f"an unexpected prompt: {asked.prompt[:200]}")

    def script(asked: Asked) -> Item:
        if is_planner(asked):
            return planner(asked)
        question = asked.context["sub_question"]
        if "cannot" in question:
            return Fail(400, "scripted failure of the model")
        if asked.turn == 1:
            return reads_context(asked)
        if "slow" in question and asked.turn == 2:
            return Call("code_run", {"type": "python", "script": "import time\ntime.sleep(4)\nprint('read')"}, "读文件")
        if "asks" in question and asked.turn == 2:
            return Call("ask_user", {"question": "Which wall?"})
        if "file" in question and asked.turn == 2:
            content = conclusion(ga.root, "The answer that stands in answer.md is blue.")
            # Older versions take the content from the reply, newer ones from the arguments.
            before = f"<file_content>\n{content}</file_content>"
            return Call(
                "file_write", {"path": asked.context["output_file"], "content": content, "mode": "overwrite"}, before
            )
        text = f"The wall is blue, says the node for {question!r}."
        return Text(f"<summary>完成</summary>{conclusion(ga.root, text)}", after=3.0 if "slow" in question else 0.0)

    with ScriptedLLM(script) as model:
        ga.use(model)
        plan = dag(
            ga,
            "N1 | LOCAL | slow: what colour is it | none",
            "N2 | LOCAL | written to a file: what colour is it | none",
            "N3 | LOCAL | this one cannot be answered | none",
            "N4 | LOCAL | asks first: what colour | none",
            "N5 | LOCAL | after the first: since when | N1",
        )
        done = ga.run("run", "--dag", str(plan), "--task", "five")
        assert model.errors == []
    assert done.returncode == 3, done.stderr
    result = ga.result("five")
    states = {n["id"]: n["state"] for n in result["nodes"]}
    answered = dict.fromkeys(("N1", "N2", "N3_other", "N4", "N5", "N1_detail"), "done")
    assert states == {**answered, "N3": "failed"}
    by_id = {n["id"]: n for n in result["nodes"]}
    assert "says the node for 'slow" in by_id["N1"]["conclusion"]
    assert "{针对" not in json.dumps(by_id, ensure_ascii=False)
    assert "scripted failure" not in "".join(n["conclusion"] or "" for n in result["nodes"])
    assert by_id["N3"]["attempts"] == 3 and by_id["N3"]["error"]
    assert by_id["N4"]["attempts"] == 2
    # Corrected in the same process, whose second round is another file.
    assert (ga.folder("five") / "N4" / "attempt1" / "output.txt").is_file()
    assert (ga.folder("five") / "N4" / "output1.txt").is_file()
    assert [e["node"] for e in ga.events("five") if e["type"] == "attempt.reply"] == ["N4"]
    assert seen == {"again": 1, "deeper": 3}
    assert "The harbour wall is blue" in result["answer"] and "[1]" in result["answer"]
    assert result["usage"]["prompt_tokens"] >= 120 * 10
    assert {r["check"] for r in result["references"]} == {"supported"}
    assert ga.processes() == []
    assert set(ga.git("status", "--short").splitlines()) == {"?? dr/", "?? dr_runner.py", "?? sop/"}


def test_partial_output_is_never_the_answer(ga: GA) -> None:
    """The agent is killed in the middle of its second turn, each time: its transcript has a conclusion, but no end."""
    ga.install()
    killed = []

    def script(asked: Asked) -> Item:
        if asked.turn == 1:
            return Call(
                "code_run", {"type": "python", "script": "print(1)"}, conclusion(ga.root, "A first guess is red.")
            )
        mine = [p for p in psutil.process_iter() if _works_for(p, ga.root)]
        for process in mine:
            process.kill()
            killed.append(process.pid)
        return Text("too late", after=1.0)

    with ScriptedLLM(script) as model:
        ga.use(model)
        plan = dag(ga, "N1 | LOCAL | what colour is it | none")
        done = ga.run("run", "--dag", str(plan), "--task", "cut", "--max-rounds", "1", "--on-failure", "skip")
    assert done.returncode == 1, done.stdout
    assert len(killed) == 3
    node = ga.result("cut")["nodes"][0]
    assert node["state"] == "failed" and node["conclusion"] is None
    assert "A first guess is red" in (ga.folder("cut") / "N1" / "output.txt").read_text(encoding="utf-8")
    assert ga.processes() == []


def _works_for(process: psutil.Process, root: Path) -> bool:
    try:
        return process.cwd() == str(root) and any("agentmain.py" in a for a in process.cmdline())
    except psutil.Error:
        return False


def test_a_launcher_that_detaches(ga: GA) -> None:
    """Without --nobg, newer versions start themselves again and return 0 at once."""
    ga.install()
    wrapper = ga.root / "temp" / "wrapper.py"
    wrapper.parent.mkdir(exist_ok=True)
    wrapper.write_text(
        "import subprocess, sys\nMARKS = ('[ROUND END]', 'reply.txt', 'GenericAgentHandler')\n"
        "sys.exit(subprocess.run([sys.executable, 'agentmain.py', *sys.argv[1:]]).returncode)\n",
        encoding="utf-8",
    )

    def script(asked: Asked) -> Item:
        return reads_context(asked) if asked.turn == 1 else Text(conclusion(ga.root, "The wall is blue."), after=2.0)

    with ScriptedLLM(script) as model:
        ga.use(model)
        plan = dag(ga, "N1 | LOCAL | what colour is it | none")
        arguments = ("--task", "away", "--max-rounds", "1", "--agent", str(wrapper), "--mind", "offline")
        done = ga.run("run", "--dag", str(plan), *arguments)
    assert done.returncode == 0, done.stderr
    assert [n["attempts"] for n in ga.result("away")["nodes"]] == [1]
    assert ga.processes() == []


def test_plans_by_itself_and_says_when_the_offline_planner_stands_in(ga: GA) -> None:
    ga.install()

    def script(asked: Asked) -> Item:
        if is_planner(asked):
            return Text("Sorry, I would rather chat.")
        return reads_context(asked) if asked.turn == 1 else Text(conclusion(ga.root, "The wall is blue."))

    with ScriptedLLM(script) as model:
        ga.use(model)
        source = str(ga.root.parent / "facts.txt")
        done = ga.run("What colour is the harbour wall?", "--source", source, "--task", "fallback")
        prompts = [a for a in model.asked if is_planner(a) and a.turn == 1]
    assert done.returncode == 0, done.stderr
    record = json.loads((ga.folder("fallback") / "run.json").read_text(encoding="utf-8"))
    assert record["mind"] == "agent"
    assert any("offline planner stands in" in note for note in record["notes"])
    assert len(prompts) >= 3
    assert "The harbour wall is blue. It was painted" not in "".join(a.prompt for a in prompts)  # no source text
    assert ga.processes() == []


def test_the_outer_agent_starts_polls_and_sums_up(ga: GA) -> None:
    """From temp/, as code_run does it: each call returns soon, one object of less than 8,000 characters."""
    ga.install()

    def script(asked: Asked) -> Item:
        return reads_context(asked) if asked.turn == 1 else Text(conclusion(ga.root, "The wall is blue."), after=1.0)

    with ScriptedLLM(script) as model:
        ga.use(model)
        folder = ga.root / "temp" / "dr_outer"
        folder.mkdir(parents=True)
        shutil.copy(
            dag(ga, "N1 | LOCAL | which colour | none", "N2 | LOCAL | since when is it so | N1"), folder / "dag.md"
        )
        calls = 0
        started = ga.run("start", "outer", "--json", cwd="temp")
        data = json.loads(started.stdout)
        while data["counts"]["pending"] or data["counts"]["running"]:
            calls += 1
            assert calls < 20
            polled = ga.run("poll", "outer", "--json", cwd="temp")
            assert polled.returncode == 0 and len(polled.stdout) < 8000 and polled.stderr == ""
            data = json.loads(polled.stdout)
        assert data["next"].endswith("synth outer")
        answer = ga.root / "temp" / "answer.md"
        answer.write_text("The wall is blue [N1], and has been since it was painted [N2].\n", encoding="utf-8")
        done = ga.run("synth", "outer", "--from", str(answer), "--json", cwd="temp")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["answer"].startswith("The wall is blue")
    assert ga.processes() == []


def test_an_outer_genericagent_runs_the_sop_with_its_own_code_run(ga: GA) -> None:
    """Its tool waits for every holder of the pipe: start must leave none, though a node works on for seconds."""
    ga.install()
    turns: list[tuple[float, str]] = []
    (ga.root / "temp" / "dr_o").mkdir(parents=True)
    shutil.copy(
        dag(ga, "N1 | LOCAL | slow: which colour | none", "N2 | LOCAL | since when | N1"),
        ga.root / "temp" / "dr_o" / "dag.md",
    )

    def script(asked: Asked) -> Item:
        if asked.node is None:
            turns.append((time.monotonic(), json.dumps(asked.messages[-3:], ensure_ascii=False)))
            verbs = ["start", "poll", "poll", "poll", "synth"]
            if asked.turn > len(verbs):
                return Text("The report is written.")
            words = ["../dr_runner.py", verbs[asked.turn - 1], "o", "--json"]
            code = f"import subprocess, sys\nsys.exit(subprocess.run([sys.executable, *{words!r}]).returncode)"
            return Call("code_run", {"type": "python", "script": code, "timeout": 90}, f"step {asked.turn}")
        if asked.turn == 1:
            return reads_context(asked)
        slow = "slow" in asked.context["sub_question"]
        return Text(conclusion(ga.root, "The wall is blue."), after=8.0 if slow else 0.0)

    with ScriptedLLM(script) as model:
        ga.use(model)
        prompt = ga.root / "temp" / "outer.txt"
        folder = ga.root / "temp" / "outer_task"
        folder.mkdir()
        (folder / "input.txt").write_text("Follow deep_research_sop for the run o.", encoding="utf-8")
        argv = [PYTHON, "agentmain.py", "--task", "outer_task", "--nobg"]
        if "--nobg" not in (ga.root / "agentmain.py").read_text(encoding="utf-8"):
            argv.pop()
        log = prompt.open("wb")
        outer = subprocess.Popen(
            argv, cwd=ga.root, env=ga.environment(), stdout=log, stderr=log, start_new_session=True
        )
        log.close()
        output = folder / "output.txt"
        limit = time.monotonic() + 120
        while not (output.exists() and output.read_text(encoding="utf-8").rstrip().endswith("[ROUND END]")):
            assert time.monotonic() < limit, prompt.read_text(encoding="utf-8")[-2000:]
            time.sleep(0.2)
        outer.kill()
        outer.wait()
    started = turns[1][0] - turns[0][0]
    assert started < 7.5, started  # the node took 8 s
    assert "poll o" in turns[1][1] and "synth o" in turns[-2][1] + turns[-3][1] + turns[-4][1]
    assert ga.result("o")["status"] == "completed"
    assert {n["state"] for n in ga.result("o")["nodes"]} == {"done"}
    assert ga.processes() == []


def test_one_browser_for_two_runs(ga: GA) -> None:
    """WEB nodes of two runs at once: never two agents at work, and a LOCAL node does not wait."""
    ga.install()
    at_work: dict[str, str] = {}
    most = {"WEB": 0, "LOCAL": 0}
    lock = threading.Lock()

    def script(asked: Asked) -> Item:
        assert asked.node is not None
        kind = asked.prompt.split("TYPE: ")[1].split()[0]
        name = f"{asked.node.parent.name}/{asked.node.name}"
        with lock:
            if asked.turn == 1:
                at_work[name] = kind
            most[kind] = max(most[kind], list(at_work.values()).count(kind))
        if asked.turn == 1:
            return reads_context(asked)
        time.sleep(1.5)
        with lock:
            del at_work[name]
        return Text(conclusion(ga.root, "The wall is blue."))

    with ScriptedLLM(script) as model:
        ga.use(model)
        lines = (
            "N1 | WEB | which colour | none",
            "N2 | WEB | since when is it so | none",
            "N3 | LOCAL | who did it | none",
        )
        results = []
        threads = []
        for task in ("one", "two"):
            plan = dag(ga, *lines)
            own = plan.with_name(f"{task}.md")
            plan.rename(own)
            options = ("--task", task, "--max-rounds", "1", "--mind", "agent")
            arguments = ("run", "--dag", str(own), *options)
            threads.append(threading.Thread(target=lambda a=arguments: results.append(ga.run(*a))))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [r.returncode for r in results] == [0, 0], results
    assert most["WEB"] == 1
    assert any(e["type"] == "browser.wait" for t in ("one", "two") for e in ga.events(t))
    assert ga.processes() == []


def test_killed_in_the_middle_of_a_plan_and_resumed(ga: GA) -> None:
    ga.install()
    waiting = threading.Event()

    def script(asked: Asked) -> Item:
        if is_planner(asked) and "deepening, is needed" in asked.prompt:
            waiting.set()
            return Text('{"nodes": [], "reason": "all is said"}', after=3.0)
        if is_planner(asked):
            return Text('{"answer": "The harbour wall is blue, says the only node [N1]."}')
        return reads_context(asked) if asked.turn == 1 else Text(conclusion(ga.root, "The wall is blue."))

    with ScriptedLLM(script) as model:
        ga.use(model)
        plan = dag(ga, "N1 | LOCAL | what colour is it | none")
        argv = [PYTHON, "dr_runner.py", "run", "--dag", str(plan), "--task", "kill"]
        first = subprocess.Popen(argv, cwd=ga.root, env=ga.environment(), stdout=-3, stderr=-3, start_new_session=True)
        assert waiting.wait(60)
        first.kill()
        first.wait()
        done = ga.run("resume", "kill")
    assert done.returncode == 0, done.stderr
    assert ga.result("kill")["answer"].startswith("The harbour wall is blue")
    assert [n["attempts"] for n in ga.result("kill")["nodes"]] == [1]
    assert ga.processes() == []


def test_installed_upgraded_and_removed(ga: GA) -> None:
    before = ga.git("status", "--short", "--ignored")
    (ga.root / "memory" / "global_mem_insight.txt").write_text("# Index\n[RULES]\n1. x\n", encoding="utf-8")
    listed = sorted(p for p in ga.root.rglob("*") if ".git" not in p.parts)
    ga.install("--index")
    ga.run("doctor")
    assert "deep_research_sop" in (ga.root / "memory" / "global_mem_insight.txt").read_text(encoding="utf-8")
    ga.install("--uninstall")
    left = [p for p in ga.root.rglob("*") if ".git" not in p.parts]
    assert sorted(left) == listed
    (ga.root / "memory" / "global_mem_insight.txt").unlink()
    assert ga.git("status", "--short", "--ignored") == before
