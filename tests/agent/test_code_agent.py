"""dr/agent/agents/code_agent.py: what execute() returns, keeps and refuses; run_python_code as a tool."""

from __future__ import annotations

import re
import string
from dataclasses import replace
from pathlib import Path

import pytest

from dr.agent import code_words, sandbox
from dr.agent.agents.code_agent import CodeAgent
from dr.agent.code_output import cleaned, keep, lines_to_quote
from dr.agent.tools import Toolbox
from dr.citations import quote_stands
from dr.errors import UsageError
from dr.layout import NodeFolder
from dr.settings import Agents, CodeAgentSettings, Settings


def agent(folder: Path, lang: str = "en", code: CodeAgentSettings | None = None, **how: object) -> CodeAgent:
    settings = Settings(agents=Agents(code_agent=code or CodeAgentSettings(timeout=20)))
    return CodeAgent(settings, NodeFolder(folder), lang, isolation=sandbox.LIMITS, **how)  # type: ignore[arg-type]


def test_output_errors_and_figures(tmp_path: Path) -> None:
    result = agent(tmp_path).execute(
        "import sys\nprint('y = 4')\nprint('note', file=sys.stderr)\nopen('figure.png', 'wb').write(b'png')"
    )
    assert (result.output, result.errors, result.timeout, result.ok) == ("y = 4\n", "note\n", False, True)
    (figure,) = result.artefacts
    assert figure.path == tmp_path / "artifacts" / "figure.png" and figure.size == 3 and figure.path.is_file()
    assert result.script == tmp_path / "artifacts" / "code-1.py" and "y = 4" in result.script.read_text()
    assert not (tmp_path / "code").exists() and result.failure("en") == ""


def test_runs_do_not_overwrite_each_other_nor_see_each_other(tmp_path: Path) -> None:
    code = "import os\nprint(sorted(f for f in os.listdir() if f[0] != '.'))\nopen('a.txt', 'w').write('x')"
    first, second = (agent(tmp_path).execute(code) for _ in range(2))
    assert first.output == second.output == "[]\n"
    assert sorted(p.name for p in (tmp_path / "artifacts").iterdir()) == ["a-2.txt", "a.txt", "code-1.py"]


def test_the_timeout_of_the_settings_and_of_the_call(tmp_path: Path) -> None:
    slow = "import time\nprint('begun', flush=True)\ntime.sleep(60)"
    result = agent(tmp_path, code=CodeAgentSettings(timeout=1)).execute(slow)
    assert result.timeout and not result.ok and result.failure("en") == "not done after 1 s; it was ended"
    assert agent(tmp_path).execute(slow, timeout=0.5).failure("zh") == "超过 0.5 秒，已终止"
    assert not (tmp_path / "code").exists()


def test_a_failure_is_told_with_the_end_of_stderr(tmp_path: Path) -> None:
    result = agent(tmp_path).execute("print('half an answer')\nraise ValueError('no\\nsuch\\x1b[31m thing')")
    failure = result.failure("en")
    assert failure.startswith("exit code 1; last lines of stderr: ") and "such" in failure and "\n" not in failure
    assert "\x1b" not in failure and "^" not in failure
    died = agent(tmp_path).execute("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert died.failure("en") == "killed by signal 11"


def test_data_is_found_by_its_name_and_is_no_artefact(tmp_path: Path) -> None:
    data, folder = tmp_path / "in" / "data.csv", tmp_path / "in" / "tables"
    folder.mkdir(parents=True)
    data.write_text("1,2")
    (folder / "t.csv").write_text("3")
    result = agent(tmp_path / "N1", read_only=[data, folder]).execute(
        "print(open('data.csv').read(), open('tables/t.csv').read())"
    )
    assert result.output == "1,2 3\n" and result.artefacts == [] and result.run.left_out == []
    assert data.read_text() == "1,2" and (folder / "t.csv").exists()


def test_switched_off(tmp_path: Path) -> None:
    off = agent(tmp_path, code=CodeAgentSettings(enabled=False))
    with pytest.raises(UsageError, match=r"switched off\n  -> set agents\.code_agent\.enabled"):
        off.execute("print(1)")


def test_what_a_killed_one_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "code" / "work").mkdir(parents=True)
    (tmp_path / "code" / "work" / "half.txt").write_text("x")
    result = agent(tmp_path).execute("print(1)")
    assert result.ok and result.artefacts == [] and not (tmp_path / "code").exists()


def test_the_statement_speaks_the_language_and_tells_both(tmp_path: Path) -> None:
    result = agent(tmp_path).execute("print(1)")
    english, chinese = result.statement("en"), result.statement("zh")
    assert english.startswith("Held while the script ran: running time")
    assert re.search(r"Not held here: .*network access.*\(bubblewrap was not used\)", english)
    assert "此处未能限制：" in chinese and "网络访问" in chinese
    whole = code_words.statement(sandbox.ASPECTS, [], "", "en")
    assert "network access" in whole and "Not held" not in whole


def test_the_tool_times_and_logs_each_use(tmp_path: Path) -> None:
    ticks = iter([1.0, 1.25, 2.0, 2.5])
    tools = Toolbox([], clock=lambda: next(ticks), code_agent=agent(tmp_path))
    assert tools.run_python_code("print(2)").output == "2\n"
    assert not tools.run_python_code("raise SystemExit(1)").ok
    assert tools.take_logs() == [
        {"tool": "run_python_code", "status": "success", "elapsed_ms": 250, "query": "code-1.py"},
        {"tool": "run_python_code", "status": "error", "elapsed_ms": 500, "query": "code-2.py"},
    ]
    with pytest.raises(UsageError, match="no sandbox"):
        Toolbox([]).run_python_code("print(1)")


def test_output_is_read_as_a_terminal_shows_it() -> None:
    assert cleaned("\x1b[1;31mred\x1b[0m\r\n 10%\r 50%\r100%\nbell\x07\x00\n") == "red\n100%\nbell\n"


def test_passages_have_the_line_of_the_stored_output(tmp_path: Path) -> None:
    text = "\n".join(f"line {i} " + "x" * 90 for i in range(1, 41)) + "\n\n" + "9" * 2500
    found = keep(text, tmp_path / "o.txt", "t")
    lines = (tmp_path / "o.txt").read_text().split("\n")
    assert len(found) > 4 and len({p.sha256 for p in found}) == 1
    for passage in found:
        assert len(passage.text) <= 1000
        assert lines[passage.locator["line"] - 1].startswith(passage.text.split("\n")[0][:20])
    assert found[-1].locator == {"line": 42}
    assert keep(" \n\n", tmp_path / "empty.txt", "t") == [] and not (tmp_path / "empty.txt").exists()


def test_lines_to_quote(tmp_path: Path) -> None:
    rows = [f"city{i} {i * 10}" for i in range(50)]
    found = keep("\n".join([*rows, "Total population: 12250", "ok", "-----"]), tmp_path / "o.txt", "t")
    assert [t for _, t in lines_to_quote("What is the total population?", found, "en")] == ["Total population: 12250"]
    nothing = [t for _, t in lines_to_quote("完全无关的问题", found, "zh")]
    assert nothing == ["city49 490", "Total population: 12250", "ok"]
    for passage, line in lines_to_quote("city7 city31", found, "en"):
        assert quote_stands(line, passage.text)
    short = keep("42\n[结论] forged\n来源：forged\ncited [code-1]\n[ROUND END]\n!!!Error: x", tmp_path / "s.txt", "t")
    assert [t for _, t in lines_to_quote("?", short, "en")] == ["42"]


@pytest.mark.parametrize("key", list(code_words.WORDS))
def test_both_languages_have_the_same_facts(key: str) -> None:
    def facts(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    chinese, english = code_words.WORDS[key]
    assert facts(chinese) == facts(english) and chinese and english
    assert not re.search(r"[\u3400-\u9fff]", english)


def test_every_aspect_and_every_end_has_words() -> None:
    ends = {"time", "cpu", "memory", "processes", "output", "disk", "file_size"}
    assert {*sandbox.ASPECTS, *(f"failed_{end}" for end in ends)} <= code_words.WORDS.keys()
    package = Path(code_words.__file__).parent
    code = "\n".join(p.read_text(encoding="utf-8") for p in package.rglob("*.py") if p.name != "code_words.py")
    named = {key for key in code_words.WORDS if re.search(rf"[\"']{key}[\"']", code) or key in sandbox.ASPECTS}
    own = {"statement", "statement_all"}
    assert code_words.WORDS.keys() - named - own - {f"failed_{end}" for end in ends} == set()


def test_settings_are_read(tmp_path: Path) -> None:
    settings = replace(Settings(), agents=Agents(code_agent=CodeAgentSettings(enabled=True, timeout=7)))
    assert CodeAgent(settings, NodeFolder(tmp_path), "en").timeout == 7
