"""dr/subagent.py: which agent, what it can do, how it is started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from lab import AGENTS, Lab, wait

from dr.contract import ROUND_END
from dr.errors import UsageError
from dr.layout import HOME, Root
from dr.subagent import (
    FUNC,
    LLM_NO,
    NO_USER_TOOLS,
    NOBG,
    OWN_CAPABILITIES,
    REPLY,
    choose_agent,
    command,
    environment,
    job_name,
    template,
)

GA_TEXT = """
from ga import GenericAgentHandler
parser.add_argument('--func'); parser.add_argument('--llm_no', type=int); parser.add_argument('--nobg')
parser.add_argument('--no-user-tools', action='store_true')
f.write(item['done'] + '\\n\\n[ROUND END]\\n'); consume_file(d, 'reply.txt')
raise SystemExit('imported')
"""
OWN_TEXT = "from dr.agent.cli import main\nraise SystemExit(main())\n"


@pytest.fixture
def ga(tmp_path: Path) -> Root:
    (tmp_path / "agentmain.py").write_text(GA_TEXT, encoding="utf-8")
    (tmp_path / "ga.py").write_text("")
    (tmp_path / "memory").mkdir()
    return Root(tmp_path)


def test_auto_takes_the_roots_agent_and_reads_what_it_can_do(ga: Root) -> None:
    agent = choose_agent(ga, "auto", "model")
    assert agent.argv == (sys.executable, "agentmain.py")
    assert agent.knows == {ROUND_END, NOBG, NO_USER_TOOLS, LLM_NO, FUNC, REPLY}
    assert agent.transcript and not agent.own and not agent.may_detach and agent.waits_for_reply
    assert choose_agent(ga, "auto", "agent") == agent


def test_auto_takes_ours_in_a_ga_root_without_a_model(ga: Root) -> None:
    agent = choose_agent(ga, "auto", "offline")
    assert agent == choose_agent(ga, "own", "model")
    assert agent.argv == (sys.executable, "-m", "dr.agent") and agent.own and not agent.transcript


def test_our_own_entry_is_known_and_started_as_such(tmp_path: Path) -> None:
    (tmp_path / "agentmain.py").write_text(OWN_TEXT)
    for choice in ("auto", "own", str(tmp_path / "agentmain.py")):
        agent = choose_agent(Root(tmp_path), choice, "offline")
        assert agent.own and agent.knows == OWN_CAPABILITIES and not agent.may_detach and not agent.waits_for_reply
        assert agent.argv[0] == sys.executable and agent.argv[1].endswith("agentmain.py")


@pytest.mark.parametrize("choice", ["auto", "own"])
def test_a_root_without_agent_uses_ours(tmp_path: Path, choice: str) -> None:
    assert choose_agent(Root(tmp_path), choice, "offline").argv == (sys.executable, "-m", "dr.agent")


def test_a_file_that_is_missing_or_may_not_be_executed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        choose_agent(Root(tmp_path), str(tmp_path / "nothing.py"), "offline")
    with pytest.raises(UsageError, match="there is no such file"):
        choose_agent(Root(tmp_path), str(tmp_path), "offline")
    script = tmp_path / "agent.sh"
    script.write_text("#!/bin/sh\necho '[ROUND END]'\n")
    if sys.platform != "win32":
        with pytest.raises(UsageError, match="not executable\n  -> chmod"):
            choose_agent(Root(tmp_path), str(script), "offline")
    script.chmod(0o755)
    agent = choose_agent(Root(tmp_path), str(script), "offline")
    assert agent.argv == (str(script),) and agent.knows == {ROUND_END} and agent.may_detach


def test_a_relative_file_is_taken_from_where_the_caller_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    assert choose_agent(Root(Path("elsewhere")), "my.py", "offline").argv == (sys.executable, str(tmp_path / "my.py"))


def test_what_the_stand_ins_know(tmp_path: Path) -> None:
    def knows(name: str) -> frozenset[str]:
        return choose_agent(Root(tmp_path), str(AGENTS / f"{name}.py"), "offline").knows

    for name in ("ok", "rewrite", "pause", "no_round_end", "hang", "crash", "garbage", "stubborn", "detach", "mixed"):
        assert knows(name) == {ROUND_END}, name
    assert knows("linger") == {ROUND_END, REPLY}
    assert knows("literal") == frozenset()


def test_a_comment_and_a_longer_flag_are_not_a_capability(tmp_path: Path) -> None:
    agent = tmp_path / "a.py"
    agent.write_text("  # no --nobg, no [ROUND END] here\nadd('--nobg-please'); add('--func-tion')\n", encoding="utf-8")
    assert choose_agent(Root(tmp_path), str(agent), "offline").knows == frozenset()


def test_a_compiled_agent_is_read_as_bytes(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_bytes(b"\x7fELF\x00\xff\n\n[ROUND END]\n\x00--llm_no\x00")
    program.chmod(0o755)
    assert choose_agent(Root(tmp_path), str(program), "offline").knows == {ROUND_END, LLM_NO}


def test_the_command_line_has_the_flags_that_are_known(ga: Root) -> None:
    node = ga.run("x").node("N1")
    agent = choose_agent(ga, "auto", "model")
    argv = [sys.executable, "agentmain.py", "--task", "dr_x/N1", "--nobg", "--no-user-tools"]
    assert command(agent, node) == argv
    assert command(agent, node, llm_no=2) == [*argv, "--llm_no", "2"]
    plain = choose_agent(ga, str(AGENTS / "ok.py"), "model")
    assert command(plain, node, llm_no=2) == [sys.executable, str(AGENTS / "ok.py"), "--task", "dr_x/N1"]


def test_a_launch_template_goes_in_front(ga: Root) -> None:
    node = ga.run("x").node("N1")
    argv = command(choose_agent(ga, "auto", "model"), node, launch="srun --ntasks=1 '--comment=a b' --job-name={job}")
    assert argv[:6] == ["srun", "--ntasks=1", "--comment=a b", "--job-name=dr_x+N1", sys.executable, "agentmain.py"]
    assert template("scancel --name={job}", node, "--cancel") == ["scancel", "--name=dr_x+N1"]
    assert template("", node, "--launch") == [] and job_name(node) == "dr_x+N1"
    with pytest.raises(UsageError, match=r"--launch.*No closing quotation"):
        template("srun 'x", node, "--launch")


def test_job_names_of_different_nodes_differ(ga: Root) -> None:
    assert job_name(ga.run("a.b").node("c")) != job_name(ga.run("a").node("b.c"))


def test_only_our_own_agent_is_given_the_settings(ga: Root) -> None:
    base = {"PATH": "/bin", "PYTHONPATH": "/lib/py", "OPENAI_API_KEY": "theirs"}
    settings = {"DR_MODEL_API_KEY": "secret"}
    own = environment(choose_agent(ga, "own", "model"), settings, base)
    assert own["DR_MODEL_API_KEY"] == "secret" and own["PATH"] == "/bin"
    assert own["PYTHONPATH"] == os.pathsep.join([str(HOME), "/lib/py"])
    other = environment(choose_agent(ga, "auto", "model"), settings, base)
    assert other == {**base, "PYTHONIOENCODING": "utf-8"}
    assert base == {"PATH": "/bin", "PYTHONPATH": "/lib/py", "OPENAI_API_KEY": "theirs"}
    assert environment(choose_agent(ga, "own", "model"), {}, {})["PYTHONPATH"] == str(HOME)


def test_a_stand_in_started_so_reads_its_context_and_answers(lab: Lab) -> None:
    node = lab.node("What is the unit of length?")
    assert wait(lab.start("ok", node)).code == 0
    text = node.output.read_text("utf-8")
    assert text.startswith("[结论] ") and "unit of length" in text and text.endswith("\n\n[ROUND END]\n")
    assert node.stdout.read_text() == "ok: answering\n"
