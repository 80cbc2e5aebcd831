"""Whole runs in a root like GenericAgent's: its agent answers, is corrected by reply, plans while other nodes go on."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from command import dr, events, plan, result, start
from lab import AGENTS, marked, until

QUOTE = "The tower is 81 m tall, and was measured in 1999."
GOOD = f'[结论] It is 81 m tall. The survey says so.\n\n来源：SOURCE — "{QUOTE}"\n'
REPLAN, DEEPEN, FIRST, ANSWER = (
    "What just failed",
    "a deepening, is needed",
    "Split the root question",
    "You write the final",
)
NO_MORE = json.dumps({"nodes": [], "reason": "all is said"})
ANSWERED = json.dumps({"answer": "The tower is 81 m tall, says the survey [A]."})


@pytest.fixture
def ga(tmp_path: Path) -> Path:
    root = tmp_path / "ga"
    (root / "memory").mkdir(parents=True)
    (root / "temp").mkdir()
    (root / "ga.py").write_text("", encoding="utf-8")
    shutil.copy(AGENTS / "ga_like.py", root / "agentmain.py")
    return root


def script(ga: Path, texts: dict[str, list[Any]]) -> None:
    survey = ga.parent / "survey.txt"
    survey.write_text(QUOTE + "\n", encoding="utf-8")
    defaults = {DEEPEN: [NO_MORE], ANSWER: [ANSWERED]}
    text = json.dumps({**defaults, **texts}).replace("SOURCE", str(survey))
    (ga / "script.json").write_text(text, encoding="utf-8")


def asked(ga: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ga / "asked.jsonl").read_text(encoding="utf-8").splitlines()]


def run(ga: Path, lines: list[str], *options: str, code: int = 0) -> dict[str, Any]:
    made = plan(ga.parent / "p.md", lines)
    text = made.read_text(encoding="utf-8")
    sourced = "\n".join(
        f"{r} | source: {ga.parent / 'survey.txt'}" if r.startswith("- [") else r for r in text.split("\n")
    )
    made.write_text(sourced, encoding="utf-8")
    done = dr(ga, "run", "--dag", str(made), "--task", "t", *options, TMPDIR=str(ga.parent))
    assert done.code == code, done.err + done.out
    assert marked(ga) == []
    return {n["id"]: n for n in result(ga, "t")["nodes"]}


def test_a_bad_answer_is_corrected_in_the_process_that_waits(ga: Path) -> None:
    script(ga, {"one": ["", GOOD]})
    nodes = run(ga, ["A | one | -"])
    assert nodes["A"]["state"] == "done" and nodes["A"]["attempts"] == 2
    folder = ga / "temp" / "dr_t" / "A"
    assert (folder / "output1.txt").exists() and not (folder / "output.txt").exists()
    assert (folder / "attempt1" / "output.txt").exists() and (folder / "attempt1" / "process.json").exists()
    record = json.loads((folder / "process.json").read_text(encoding="utf-8"))
    assert (record["attempt"], record["tries"], record["round"]) == (2, 2, 1)
    first = json.loads((folder / "attempt1" / "process.json").read_text(encoding="utf-8"))
    assert first["pid"] == record["pid"] and first["outcome"] == "retry"
    assert "the output is empty" in [a for a in asked(ga) if a["key"] == "one"][1]["prompt"]


def test_tokens_of_a_log_that_two_attempts_share_are_counted_once(ga: Path) -> None:
    script(ga, {"one": ["", "", GOOD]})
    run(ga, ["A | one | -"])
    folder = ga / "temp" / "dr_t" / "A"
    usages = [folder / "attempt1" / "usage.json", folder / "attempt2" / "usage.json", folder / "usage.json"]
    assert [json.loads(p.read_text(encoding="utf-8"))["total_tokens"] for p in usages] == [110, 110, 110]
    assert result(ga, "t")["usage"]["total_tokens"] == 330


def test_a_failure_of_the_model_is_tried_in_a_new_process(ga: Path) -> None:
    script(ga, {"one": ["!!!Error: HTTP 400", GOOD]})
    nodes = run(ga, ["A | one | -"])
    assert nodes["A"]["attempts"] == 2
    folder = ga / "temp" / "dr_t" / "A"
    pids = [
        json.loads(p.read_text(encoding="utf-8"))["pid"]
        for p in (folder / "process.json", folder / "attempt1" / "process.json")
    ]
    assert pids[0] != pids[1]
    assert not [e for e in events(ga, "t") if e["type"] == "attempt.reply"]


def test_after_all_attempts_it_has_failed_and_nothing_lingers(ga: Path) -> None:
    script(ga, {"one": [""], "two": [GOOD]})
    nodes = run(ga, ["A | one | -", "B | two | -"], "--on-failure", "skip", code=3)
    assert nodes["A"]["state"] == "failed" and nodes["A"]["attempts"] == 3
    assert (ga / "temp" / "dr_t" / "A" / "output2.txt").exists()


def test_a_runner_killed_after_a_reply_leaves_a_round_that_is_taken_over(ga: Path) -> None:
    script(ga, {"one": ["", 1.5, GOOD]})
    made = plan(ga.parent / "p.md", ["A | one | -"])
    first = start(ga, "run", "--dag", str(made), "--task", "t", "--max-rounds", "1")
    record = ga / "temp" / "dr_t" / "A" / "process.json"
    until(lambda: record.exists() and json.loads(record.read_text(encoding="utf-8"))["round"] == 1, "the second round")
    first.kill()
    first.wait()
    assert dr(ga, "resume", "t", TMPDIR=str(ga.parent)).code == 0
    node = result(ga, "t")["nodes"][0]
    assert node["state"] == "done" and node["attempts"] == 2
    assert marked(ga) == []


def test_while_a_plan_is_thought_about_the_other_nodes_go_on(ga: Path) -> None:
    other = {"id": "A_other", "type": "CODE", "question": "one otherwise", "depends": []}
    replan = json.dumps({"nodes": [other, {"id": "D"}], "reason": "another way"})
    script(
        ga,
        {REPLAN: [5.0, replan], "one otherwise": [GOOD], "two": [3.0, GOOD], "three": [GOOD], "one": ["!!!Error: x"]},
    )
    nodes = run(ga, ["A | one | -", "B | two | -", "D | three | B"], code=3)
    states = {i: n["state"] for i, n in nodes.items()}
    assert states == {"A": "failed", "A_other": "done", "B": "done", "D": "done"}
    told = {e["node"]: e["ts"] for e in events(ga, "t") if e["type"] == "attempt.end" and e["outcome"] == "done"}
    drafted = next(e["ts"] for e in events(ga, "t") if e["type"] == "plan.draft")
    assert told["B"] < drafted and told["D"] < drafted < told["A_other"]


def test_a_node_added_by_hand_meanwhile_stays_in_the_plan(ga: Path) -> None:
    other = {"id": "A_other", "type": "CODE", "question": "one otherwise", "depends": []}
    replan = json.dumps({"nodes": [other], "reason": "another way"})
    script(
        ga, {REPLAN: [3.0, replan], "one otherwise": [GOOD], "by hand": [GOOD], "one": ["!!!Error: x"], "two": [GOOD]}
    )
    made = plan(ga.parent / "p.md", ["A | one | -", "B | two | -"])
    first = start(ga, "run", "--dag", str(made), "--task", "t", "--max-rounds", "1")
    thinking = ga / "temp" / "dr_t" / "thinking" / "1" / "prompt.md"
    until(thinking.exists, "the planner being asked")
    assert dr(ga, "add", "t", "--type", "CODE", "--question", "by hand", "--id", "H").code == 0
    assert first.wait(60) == 3
    states = {n["id"]: n["state"] for n in result(ga, "t")["nodes"]}
    assert states == {"A": "failed", "A_other": "done", "B": "done", "H": "done"}


def test_plans_deepens_and_sums_up_with_the_roots_own_model(ga: Path) -> None:
    first = json.dumps({"nodes": [{"id": "A", "type": "CODE", "question": "one"}], "reason": "one step"})
    deeper = json.dumps(
        {"nodes": [{"id": "A_why", "type": "CODE", "question": "two", "depends": ["A"]}], "reason": "why is open"}
    )
    script(ga, {FIRST: [first], DEEPEN: [deeper, NO_MORE], "one": [GOOD], "two": [GOOD]})
    done = dr(ga, "How tall is the tower?", "--task", "t", TMPDIR=str(ga.parent))
    assert done.code == 0, done.err
    data = result(ga, "t")
    assert [n["id"] for n in data["nodes"]] == ["A", "A_why"]
    assert data["answer"].startswith("The tower is 81 m tall")
    assert sorted(p.name for p in (ga / "temp" / "dr_t" / "thinking").iterdir()) == ["1", "2", "3", "4"]
    assert not list((ga / "temp").glob(".dr_thinking*"))
    assert marked(ga) == []


def test_start_and_poll_leave_the_thinking_to_who_calls(ga: Path) -> None:
    script(ga, {"one": ["!!!Error: x"], "two": [GOOD]})
    made = plan(ga.parent / "p.md", ["A | one | -", "B | two | -"])
    assert dr(ga, "start", "t", "--dag", str(made), TMPDIR=str(ga.parent)).code == 0
    for _ in range(20):
        data = dr(ga, "poll", "t", "--json", "--wait", "20", TMPDIR=str(ga.parent)).json()
        if not data["counts"]["pending"] and not data["counts"]["running"]:
            break
    assert dr(ga, "synth", "t", TMPDIR=str(ga.parent)).code == 3
    assert {a["key"] for a in asked(ga)} == {"one", "two"}


@pytest.mark.parametrize("how", ["stop", "ctrl-c", "kill"])
def test_a_planner_at_work_ends_with_its_run_and_is_asked_again(ga: Path, how: str) -> None:
    script(ga, {DEEPEN: [30, NO_MORE], "one": [GOOD]})
    made = plan(ga.parent / "p.md", ["A | one | -"])
    first = start(ga, "run", "--dag", str(made), "--task", "t")
    until((ga / "temp" / "dr_t" / "thinking" / "1" / "prompt.md").exists, "the planner being asked")
    begun = time.monotonic()
    if how == "stop":
        assert dr(ga, "stop", "t").code == 0
    else:
        first.send_signal(signal.SIGINT if how == "ctrl-c" else signal.SIGKILL)
    first.wait(20)
    assert time.monotonic() - begun < 25  # not the planner's own 30 s
    script(ga, {"one": [GOOD]})
    assert dr(ga, "resume", "t", TMPDIR=str(ga.parent)).code == 0
    assert marked(ga) == []
    assert [n["attempts"] for n in result(ga, "t")["nodes"]] == [1]


def test_an_agent_without_func_is_asked_through_a_task(ga: Path) -> None:
    """GenericAgent before 2026-06: it takes folders only, and lingers for a reply."""
    text = (ga / "agentmain.py").read_text(encoding="utf-8")
    old = text.replace("--func", "--gone").replace('sys.argv[sys.argv.index("--task") + 1]', "TASK")
    old = old.replace(
        'if __name__ == "__main__":', 'TASK = sys.argv[sys.argv.index("--task") + 1]\nif __name__ == "__main__":'
    )
    asks = 'question = json.loads((folder / "context.json").read_text(encoding="utf-8"))["sub_question"]'
    assert asks in old
    both = (
        'context = folder / "context.json"\n    text = (folder / "input.txt").read_text(encoding="utf-8")\n'
        '    question = json.loads(context.read_text(encoding="utf-8"))["sub_question"] if context.exists() else '
        "next(k for k in SCRIPT if k in text)"
    )
    (ga / "agentmain.py").write_text(old.replace(asks, both), encoding="utf-8")
    script(ga, {"one": [GOOD]})
    run(ga, ["A | one | -"])
    assert (ga / "temp" / "dr_t" / "thinking" / "1" / "output.txt").exists()
    assert result(ga, "t")["answer"].startswith("The tower is 81 m tall")


def test_no_process_of_ours_has_the_keys_of_the_root(ga: Path) -> None:
    """mykey.* is the agent's business: nothing of the runner opens it."""
    (ga / "mykey.py").write_text("raise SystemExit('read by the runner')\n", encoding="utf-8")
    (ga / "mykey.py").chmod(0)
    script(ga, {"one": [GOOD]})
    run(ga, ["A | one | -"])
    shown = subprocess.run(["grep", "-rl", "mykey", str(ga / "temp" / "dr_t")], capture_output=True, encoding="utf-8")
    assert shown.stdout == ""


@pytest.mark.parametrize("shown", ["Which tower?", '{"question": "Which tower?"}'])
def test_a_question_is_shown_and_its_answer_starts_the_node_again(ga: Path, shown: str) -> None:
    """As the versions of GenericAgent show the call."""
    asks = f"<summary>I have to ask</summary>\n\n🛠️ ask_user({shown})"
    script(ga, {"one": [asks, asks, asks, GOOD], "two": [GOOD]})
    nodes = run(ga, ["A | one | -", "B | two | -"], "--on-failure", "skip", code=3)
    assert nodes["A"]["state"] == "failed" and nodes["A"]["error"].endswith("Which tower?")
    assert dr(ga, "reply", "t", "A", "the one of Elmsay").code == 0
    assert dr(ga, "resume", "t", TMPDIR=str(ga.parent)).code == 0
    assert [n["state"] for n in result(ga, "t")["nodes"]] == ["done", "done"]
    told = [a["prompt"] for a in asked(ga) if a["key"] == "one"]
    assert len(told) == 4 and "The answer to what you asked: the one of Elmsay" in told[3]
    assert "Which tower?" in told[1]
