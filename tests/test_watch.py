"""dr/watch.py: the rules on files and an invented clock, then on real stand-in agents."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from lab import Lab, until, wait

from dr import process, watch
from dr.layout import NodeFolder
from dr.process import ExitInfo, Identity, Running, alive
from dr.trees import end_tree
from dr.watch import Attempt, Limits, Outcome, look, successor, sweep

ANSWER = "[结论] One. Two.\n"
END = "\n\n[ROUND END]\n"
LIMITS = Limits(node_timeout_s=1800, stall_s=1200, stable_s=2)
DONE = Outcome("finished")


@pytest.fixture
def node(tmp_path: Path) -> NodeFolder:
    folder = tmp_path / "temp" / "dr_x" / "N1"
    folder.mkdir(parents=True)
    return NodeFolder(folder)


def write(node: NodeFolder, text: str | bytes, number: int = 0) -> None:
    node.output_of_round(number).write_bytes(text if isinstance(text, bytes) else text.encode())


def looks(attempt: Attempt, *times: float, exited: ExitInfo | None = None, limits: Limits = LIMITS) -> Outcome | None:
    """The outcome of the last of several looks; the earlier ones must see none."""
    for now in times[:-1]:
        assert look(attempt, now, None, limits) is None
    return look(attempt, times[-1], exited, limits)


# Rule 1


def test_a_round_end_counts_when_two_looks_agree(node: NodeFolder) -> None:
    attempt = Attempt(node, 0)
    write(node, ANSWER + END)
    assert looks(attempt, 1) is None
    assert looks(attempt, 1.1) == DONE


def test_a_file_that_grows_between_looks_is_not_done(node: NodeFolder) -> None:
    attempt = Attempt(node, 0)
    write(node, "x" + END)
    assert looks(attempt, 1) is None
    write(node, ANSWER + END)
    assert looks(attempt, 2) is None
    assert looks(attempt, 3) == DONE


def test_an_empty_moment_is_neither_done_nor_lost(node: NodeFolder) -> None:
    attempt = Attempt(node, 0)
    write(node, ANSWER)
    assert looks(attempt, 1, 2) is None
    write(node, "")
    assert looks(attempt, 3, 4, 5) is None
    write(node, ANSWER + END)
    assert looks(attempt, 6) is None
    assert looks(attempt, 7) == DONE


@pytest.mark.parametrize(
    "text", [ANSWER, "I will end with [ROUND END]", f"{END}and more", "[结论] x\n[ROUND END] is a marker\n"]
)
def test_standing_still_is_not_done(node: NodeFolder, text: str) -> None:
    attempt = Attempt(node, 0)
    write(node, text)
    assert looks(attempt, 1, 2, 3, 1000) is None


@pytest.mark.parametrize("end", ["\n[ROUND END]", "\r\n\r\n[ROUND END]\r\n", "\n[ROUND END]\n\n \n"])
def test_forms_of_the_round_end(node: NodeFolder, end: str) -> None:
    write(node, ("长" * 5000 + end).encode())
    attempt = Attempt(node, 0)
    assert looks(attempt, 1, 2) == DONE


def test_the_newest_round_counts(node: NodeFolder) -> None:
    attempt = Attempt(node, 0)
    assert looks(attempt, 1) is None  # nothing there yet
    write(node, "first, under way")
    assert looks(attempt, 2, 3) is None
    write(node, "first" + END)
    write(node, "second, under way", 1)
    assert looks(attempt, 4, 5, 6) is None
    write(node, "second" + END, 1)
    assert looks(attempt, 7, 8) == DONE


def test_an_attempt_begun_by_a_reply_waits_for_its_own_round(node: NodeFolder) -> None:
    write(node, ANSWER + END)
    attempt = Attempt(node, 0, first_round=1)
    assert looks(attempt, 1, 2, 3) is None
    write(node, ANSWER + END, 1)
    assert looks(attempt, 4, 5) == DONE


def test_the_file_is_read_once_for_each_state_of_it(node: NodeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    real = watch._tail
    monkeypatch.setattr(watch, "_tail", lambda path: (read.append(path), real(path))[1])
    attempt = Attempt(node, 0)
    write(node, ANSWER)
    assert looks(attempt, *range(1, 50)) is None
    assert len(read) == 1


# Rule 2


def test_gone_with_the_round_end_is_finished_whatever_the_exit_code(node: NodeFolder) -> None:
    write(node, ANSWER + END)
    for code in (0, 3, -9, None):
        assert looks(Attempt(node, 0), 1, exited=ExitInfo(code)) == Outcome("finished", "", code)


def test_gone_without_the_round_end_is_crashed_whatever_the_text(node: NodeFolder) -> None:
    write(node, ANSWER)
    node.stderr.write_text("Traceback …\n  File x\n\nValueError: boom\n", encoding="utf-8")
    outcome = looks(Attempt(node, 0), 1, exited=ExitInfo(1))
    reason = "exit code 1, output without [ROUND END]: Traceback … | File x | ValueError: boom"
    assert outcome == Outcome("crashed", reason, 1)
    node.output.unlink()
    node.stderr.unlink()
    assert looks(Attempt(node, 0), 1, exited=ExitInfo(-9)) == Outcome("crashed", "killed by SIGKILL, no output", -9)


def test_an_agent_that_knows_no_round_end_is_finished_with_a_conclusion(node: NodeFolder) -> None:
    def outcome(code: int | None) -> str:
        found = looks(Attempt(node, 0, knows_round_end=False), 1, exited=ExitInfo(code))
        assert found
        return found.kind

    assert outcome(0) == "crashed"
    write(node, "  \n")
    assert outcome(0) == "crashed"
    write(node, "an answer in its own form")
    assert [outcome(0), outcome(1), outcome(None)] == ["finished", "crashed", "crashed"]
    write(node, "intro\n" + ANSWER)
    assert [outcome(0), outcome(1), outcome(None)] == ["finished"] * 3
    write(node, b"\xef\xbb\xbf" + ANSWER.encode())
    assert outcome(1) == "finished"


def test_a_reason_is_one_bounded_line_whatever_stderr_holds(node: NodeFolder) -> None:
    node.stderr.write_bytes(bytes(range(256)) * 400 + b"\x1b[31mred\x00\xff\n" + b"y" * 9000 + b"\nthe end\xe7\xbb\n")
    outcome = looks(Attempt(node, 0), 1, exited=ExitInfo(2))
    assert outcome and outcome.reason.startswith("exit code 2, no output: …") and "the end" in outcome.reason
    assert outcome.reason.isprintable() and len(outcome.reason) < 450


# Rule 3


def test_without_a_round_end_a_conclusion_has_to_stand_still(node: NodeFolder) -> None:
    attempt = Attempt(node, 0, knows_round_end=False)
    write(node, ANSWER)
    assert looks(attempt, 1, 2, 2.9) is None
    write(node, ANSWER + "more\n")
    assert looks(attempt, 3, 4, 4.9) is None
    assert looks(attempt, 5) == DONE


def test_without_a_round_end_text_without_conclusion_is_not_done(node: NodeFolder) -> None:
    attempt = Attempt(node, 0, knows_round_end=False)
    write(node, "I will write the [结论] soon")
    assert looks(attempt, 1, 10, 100) is None
    write(node, "")
    assert looks(attempt, 101, 110, 120) is None


# Rule 4


def test_too_long_and_standing_still(node: NodeFolder) -> None:
    attempt = Attempt(node, 100)
    node.stderr.write_text("last words\n")
    assert looks(attempt, 101, 700, 1301) is None
    outcome = looks(attempt, 1301.5)
    assert outcome == Outcome("stalled", "nothing changed for 1200 s (stall_s): last words")
    busy = Attempt(node, 0)
    for now in range(1, 1800, 100):
        write(node, f"at {now}")
        assert looks(busy, now) is None
    outcome = looks(busy, 1801)
    assert outcome == Outcome("timeout", "not done after 1800 s (node_timeout_s): last words")


def test_an_adopted_agent_gets_a_whole_stall_time_from_the_first_look(node: NodeFolder) -> None:
    attempt = Attempt(node, -1500)  # it has run for longer than stall_s, and nobody knows when it last did something
    assert looks(attempt, 0, 1, 299) is None
    assert (outcome := looks(attempt, 301)) and outcome.kind == "timeout"


def test_an_agent_that_only_logs_is_not_stalled(node: NodeFolder) -> None:
    attempt = Attempt(node, 0)
    for now in range(1, 1700, 50):
        with node.stdout.open("a") as log:
            log.write("step\n")
        assert looks(attempt, now) is None


def test_a_clock_that_jumps_back_ends_nothing_early_and_waiting_goes_on(node: NodeFolder) -> None:
    attempt = Attempt(node, 1_000_000)
    write(node, "under way")
    assert looks(attempt, 1_000_001) is None
    assert looks(attempt, 10, 11, 12) is None
    assert (outcome := looks(attempt, 1300)) and outcome.kind == "stalled"
    literal = Attempt(node, 1_000_000, knows_round_end=False)
    write(node, ANSWER)
    assert looks(literal, 1_000_001, 5, 6) is None
    assert looks(literal, 8) == DONE


def test_a_done_output_wins_over_the_timeout(node: NodeFolder) -> None:
    attempt = Attempt(node, 0)
    write(node, ANSWER + END)
    assert looks(attempt, 1) is None
    assert looks(attempt, 5000) == DONE


def test_a_sweep_tells_those_that_ended_and_stats_twice_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []
    for number in range(200):
        node = NodeFolder(tmp_path / f"N{number}")
        node.path.mkdir()
        attempts.append(Attempt(node, 0))
        write(node, ANSWER + (END if number % 10 == 0 else ""))
    assert sweep(attempts, 1, LIMITS) == []
    assert [a for a, _ in sweep(attempts, 2, LIMITS)] == attempts[::10]
    calls: list[str] = []
    real = os.stat
    monkeypatch.setattr(os, "stat", lambda path, **more: (calls.append(path), real(path, **more))[1])
    monkeypatch.setattr(watch, "_tail", lambda path: pytest.fail(f"{path} read again"))
    assert len(sweep(attempts, 3, LIMITS)) == 20
    assert len(calls) == 400


# The launcher and the agent


def running(node: NodeFolder, pid: int, *argv: str, cwd: str | None = None) -> Running:
    return Running(Identity(pid, 1.0), argv, str(node.path.parents[2]) if cwd is None else cwd)


def test_the_real_agent_is_the_one_named_or_else_the_newest_at_work_on_the_node(
    node: NodeFolder, tmp_path: Path
) -> None:
    attempt = Attempt(node, 0, may_detach=True)
    table = [
        running(node, 5, "python", "agentmain.py", "--task", "dr_x/N1", "--nobg"),
        running(node, 6, "python", "agentmain.py", "--task", "dr_x/N1", "--nobg"),
        running(node, 7, "python", "agentmain.py", "--task", "dr_x/N10", "--nobg"),
        running(node, 8, "python", "agentmain.py", "--task", "dr_x/N1", "--nobg", cwd=str(tmp_path / "another")),
    ]
    gone = ExitInfo(0)

    def found(*processes: Running) -> int | None:
        real = successor(attempt, gone, None, lambda: processes)
        return real.pid if real else None

    assert found(*table) == 6
    node.stdout.write_bytes(b"PID: 5\r\n")
    assert found(*table) == 5
    node.stdout.write_text("PID: 7\nPID: 8\n")  # named, but at work on something else
    assert found(*table) == 6
    assert found(*table[2:]) is None
    assert found(running(node, 9, "x", "--task", "dr_x/N1", cwd="")) == 9


def test_no_search_where_it_cannot_help(node: NodeFolder) -> None:
    def never() -> list[Running]:
        pytest.fail("looked at every process")

    assert successor(Attempt(node, 0), ExitInfo(0), None, never) is None
    assert successor(Attempt(node, 0, may_detach=True), ExitInfo(3), None, never) is None
    write(node, ANSWER + END)
    assert successor(Attempt(node, 0, may_detach=True), ExitInfo(0), None, never) is None
    write(node, "done")
    assert successor(Attempt(node, 0, knows_round_end=False, may_detach=True), ExitInfo(0), None, never) is None


# Real agents


@pytest.mark.parametrize("name", ["ok", "rewrite", "linger", "detach", "garbage", "pause"])
def test_agents_that_finish(lab: Lab, name: str) -> None:
    node = lab.node("pause=0.3")
    assert lab.outcome(name, node, Limits(stable_s=0.05)).kind == "finished"
    assert node.output.read_bytes().endswith(b"\n\n[ROUND END]\n")


def test_an_agent_without_round_end_that_lives_on(lab: Lab) -> None:
    assert lab.outcome("literal", lab.node(), Limits(stable_s=0.05)).kind == "finished"


def test_agents_that_crash(lab: Lab) -> None:
    outcome = lab.outcome("crash", lab.node(), Limits())
    assert (outcome.kind, outcome.exit_code) == ("crashed", 3)
    assert outcome.reason.startswith("exit code 3, output without [ROUND END]: ")
    assert outcome.reason.endswith("ValueError: the stand-in was asked to crash")
    outcome = lab.outcome("no_round_end", lab.node(name="N2"), Limits())
    assert outcome == Outcome("crashed", "exit code 0, output without [ROUND END]", 0)


def test_agents_that_never_end(lab: Lab) -> None:
    for name, kind in (("hang", "stalled"), ("stubborn", "stalled")):
        assert lab.outcome(name, lab.node(name=name), Limits(stall_s=0.3)).kind == kind
    assert lab.outcome("hang", lab.node(), Limits(node_timeout_s=0.3)).kind == "timeout"


def test_a_detached_agent_is_found_even_if_it_overwrote_the_pid_line(lab: Lab) -> None:
    node = lab.node("overwrite pause=600")
    launcher, attempt = lab.start("detach", node), lab.attempt("detach", node)
    gone = wait(launcher)
    (real,) = lab.pids(node)
    until(lambda: "PID line was" in node.stdout.read_text("utf-8"), "the agent's first line")
    assert successor(attempt, gone, launcher.pid) == real
    assert look(attempt, time.monotonic(), None, LIMITS) is None
    process.send(real, process.HARD)
    until(lambda: not alive(real), "its end")
    assert successor(attempt, ExitInfo(None), launcher.pid) is None
    outcome = look(attempt, time.monotonic(), ExitInfo(None), LIMITS)
    assert outcome and outcome.reason == "the process is gone, exit code unknown, no output"


def test_a_reply_gets_a_new_round_from_an_agent_that_waits(lab: Lab) -> None:
    node = lab.node()
    child, attempt = lab.start("linger", node), lab.attempt("linger", node)
    until(lambda: look(attempt, time.monotonic(), None, LIMITS) == DONE, "the first round")
    node.reply.write_text("more, please", encoding="utf-8")
    again = Attempt(node, time.monotonic(), first_round=1)
    until(lambda: look(again, time.monotonic(), None, LIMITS) == DONE, "the second round")
    assert "The reply was: more, please" in node.output_of_round(1).read_text("utf-8")
    assert end_tree(child) == []
    wait(child)


@pytest.mark.parametrize(
    ("word", "kind"),
    [("ok", "finished"), ("crash", "crashed"), ("garbage", "finished"), ("hang", "stalled"), ("no word", "finished")],
)
def test_mixed_behaves_as_the_sub_question_says(lab: Lab, word: str, kind: str) -> None:
    limits = Limits(stall_s=0.5) if word == "hang" else Limits()
    assert lab.outcome("mixed", lab.node(f"子问题 {word}: what?"), limits).kind == kind


def test_flaky_crashes_once(lab: Lab) -> None:
    node = lab.node("flaky")
    assert lab.outcome("mixed", node, Limits()).kind == "crashed"
    (node.path / "attempt1").mkdir()
    node.output.unlink()
    assert lab.outcome("mixed", node, Limits()).kind == "finished"


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_any_program_can_be_the_agent(lab: Lab) -> None:
    script = lab.root.path / "agent.sh"
    script.write_text("#!/bin/sh\nprintf '[结论] from a shell. It works.\\n' > temp/$2/output.txt\n", encoding="utf-8")
    script.chmod(0o755)
    node = lab.node()
    from dr.subagent import choose_agent, command

    agent = choose_agent(lab.root, str(script), "offline")
    child = lab.start_argv(command(agent, node), node)
    attempt = Attempt(node, 0, agent.knows_round_end, agent.may_detach)
    gone = wait(child)
    assert successor(attempt, gone, child.pid) is None
    outcome = look(attempt, 1, gone, LIMITS)
    assert outcome and outcome.kind == "finished"
