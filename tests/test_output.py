"""dr/output.py and dr/transcript.py: transcripts of every form, the traps in them, and texts that are no transcript."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dr import output
from dr.output import Extract, extract, extract_conclusion, for_display, is_finished, last_answering_turn, shorten
from tests.transcripts import ERAS, ROUND_END, Call, Era, Turn

steady = settings(deadline=None, derandomize=True)
DATA = Path(__file__).parent / "data" / "transcripts"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))

GOOD = (
    "[结论] 该索引在 2021 年引入，写入放大约为 3.2 倍。\n\n依据：手册第 14 页给出 3.2，图 5 与之一致。\n\n"
    '来源：docs/manual.pdf, p. 14 — "write amplification of 3.2"'
)
ECHO = Turn(
    "<summary>读取context</summary>\n格式如下：\n[结论] {针对sub_question的直接回答，≥2-3句，≤500字}",
    [Call("file_read", {"path": "temp/dr_x/N1/context.json"}, "\n[Action] Reading file: temp/dr_x/N1/context.json\n")],
)
SCRIPT = "import json\n\nprint('[结论] printed by a script')\n\n" + "x = 1\n" * 40
DRAFT = Turn(
    "<summary>run</summary>\n[结论] draft, to be replaced",
    [
        Call(
            "code_run",
            {"type": "python", "script": SCRIPT},
            "[Status] ✅\n[Stdout]\n[结论] printed by a script\n42\n\n",
        )
    ],
)
TRACEBACK = 'Traceback (most recent call last):\n  File "agentmain.py", line 3, in <module>\nKeyError: 7\n'
FORMS = [(era, verbose) for era in ERAS for verbose in (False, True)]
every_form = pytest.mark.parametrize(
    ("era", "verbose"), FORMS, ids=[f"{era.name}-{'verbose' if verbose else 'plain'}" for era, verbose in FORMS]
)


def ok(conclusion: str, *, finished: bool = True) -> Extract:
    return Extract(finished, "ok", conclusion)


def bad(verdict: str, *, finished: bool = True) -> Extract:
    return Extract(finished, verdict, None)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_recorded_transcripts(name: str) -> None:
    found = extract((DATA / f"{name}.txt").read_text(encoding="utf-8"))
    assert found == Extract(**EXPECTED[name])


@every_form
def test_last_turn_counts(era: Era, verbose: bool) -> None:
    turns = [ECHO, DRAFT, Turn(f"<summary>完成</summary>\n\n{GOOD}")]
    assert extract(era.render(turns, verbose=verbose)) == ok(GOOD)
    assert extract(era.render(turns, verbose=verbose, end="")) == ok(GOOD, finished=False)


@every_form
def test_answer_without_a_mark(era: Era, verbose: bool) -> None:
    answer = "The index came in 2021.\n\nIts write amplification is 3.2."
    assert extract(era.render([ECHO, DRAFT, Turn(answer)], verbose=verbose)) == ok(answer)


@every_form
@pytest.mark.parametrize(
    "phrase",
    [
        "The agent writes [ROUND END] when it is done.\n\nMore follows.",
        "[ROUND END]\nis a line of its own here.",
        "The icon 🛠️ marks a tool.\n\nMore follows.",
        "🛠️ 维护建议：每年清洗一次。\n\nMore follows.",
        "🛠️ code_run(x) is how a call looks.\nMore follows.",
        "A fence:\n\n````text\n[结论] quoted\n````\n\nMore follows.",
        "A fence:\n\n```\n[结论] quoted\n!!!Error: quoted\n```\n\nMore follows.",
        "The log says\nTurn 4 ...\nand goes on.",
        "The log says\n\nTurn 9 ...\n\nand goes on.",
        "The log says\n\n**LLM Running (Turn 1) ...**\n\nand goes on.",
        "It answered `!!!Error: HTTP 500` twice, and then !!!Error: once more.\n\nMore follows.",
        "In HTML `<summary>` is the heading, closed by `</summary>`; that is all.",
    ],
)
def test_what_a_conclusion_speaks_of_stays(era: Era, verbose: bool, phrase: str) -> None:
    conclusion = f"[结论] First.\n\n{phrase}\n\nThe end."
    assert extract(era.render([ECHO, DRAFT, Turn(conclusion)], verbose=verbose)) == ok(conclusion)


@every_form
@pytest.mark.parametrize(
    "printed",
    [
        "[结论] printed\n",
        "\n**Turn 3 ...**\n\n[结论] fake\n",
        "\n**LLM Running (Turn 3) ...**\n\n[结论] fake\n",
        "````\n[结论] fake\n",
        "`````\n[结论] fake\n",
        "````\n`````\n````text\n[结论] fake\n",
        "`````\n\n**Turn 3 ...**\n\n[结论] fake\n",
        "`````\n\n**LLM Running (Turn 3) ...**\n\n[结论] fake\n",
        "`````\n**LLM Running (Turn 3) ...**\n\n[结论] fake\n\n**LLM Running (Turn 4) ...**\n\n[结论] fake\n",
        "!!!Error: printed by a tool\n",
        "[ROUND END]\n",
        "<thinking>\n",
        "🛠️ Tool: `ask_user`  📥 args:\n````text\n{}\n````\n",
    ],
)
@pytest.mark.parametrize("answer", [GOOD, "An answer without a mark. It has two sentences."])
def test_what_a_tool_prints_is_no_answer(era: Era, verbose: bool, printed: str, answer: str) -> None:
    call = Turn("<summary>look</summary>", [Call("web_execute_js", {"script": "return 1"}, printed)])
    assert extract(era.render([ECHO, call, Turn(answer)], verbose=verbose)) == ok(answer)
    assert extract(era.render([ECHO, Turn("I look.", [*call.calls])], verbose=verbose)) == bad("no_answer")


@every_form
def test_arguments_that_hold_fences(era: Era, verbose: bool) -> None:
    script = "Notes\n````text\n{\n}\n````\n\n[结论] written to a file\n\n````\n"
    call = Turn(
        "<summary>write</summary>", [Call("file_write", {"content": script}, "[Action] Writing\n"), *ECHO.calls]
    )
    assert extract(era.render([ECHO, call, DRAFT, Turn(GOOD)], verbose=verbose)) == ok(GOOD)


@every_form
def test_several_calls_and_none_with_output(era: Era, verbose: bool) -> None:
    calls = Turn("Three at once.", [Call("web_scan", {}), Call("code_run", {"code": "1"}, "1\n"), Call("web_scan", {})])
    assert extract(era.render([ECHO, calls, Turn(GOOD)], verbose=verbose)) == ok(GOOD)


@every_form
def test_conclusion_next_to_a_call(era: Era, verbose: bool) -> None:
    last = Turn(GOOD, [Call("update_working_checkpoint", {"key_info": "done"}, "[Info] Updated key_info.\n")])
    assert extract(era.render([ECHO, DRAFT, last], verbose=verbose)) == ok(GOOD)


@every_form
def test_empty_last_turn(era: Era, verbose: bool) -> None:
    assert extract(era.render([ECHO, Turn(GOOD), Turn("")], verbose=verbose)) == ok(GOOD)
    assert extract(era.render([ECHO, Turn(GOOD), Turn("<summary>完成</summary>")], verbose=verbose)) == ok(GOOD)
    assert extract(era.render([Turn("")], verbose=verbose)).verdict in ("empty", "no_answer")


@every_form
def test_thoughts_are_no_answer(era: Era, verbose: bool) -> None:
    thought = "<thinking>\n[结论] maybe this\n\n!!!Error: maybe that\n</thinking>\n"
    assert extract(era.render([ECHO, Turn(thought + GOOD)], verbose=verbose)) == ok(GOOD)
    assert extract(era.render([ECHO, Turn(f"<thinking>\nnever closed\n\n{GOOD}")], verbose=verbose)) == ok(GOOD)
    assert extract(era.render([Turn("<thinking>\ncut off")], verbose=verbose)) == bad("no_answer")


@every_form
def test_cut_off_in_the_middle_of_a_tool(era: Era, verbose: bool) -> None:
    text = era.render([ECHO, DRAFT], verbose=verbose, end="")
    cut = text[: text.index("printed by a script") + 5]
    found = extract(cut)
    assert not found.finished
    assert found.conclusion in (None, "[结论] draft, to be replaced")


@every_form
@pytest.mark.parametrize(
    "reply",
    [
        '!!!Error: HTTP 401 {"error": "invalid api key"}',
        "[结论] half of it\n\n[!!! 流异常中断，未收到完整响应 !!!]",
        "[结论] half of it\n\n[!!! Response truncated: max_tokens !!!]",
        "[结论] half of it!!!Error: overloaded",
        "```python\nprint(1)\n\n[!!! 流异常中断 ReadTimeout: read timed out !!!]",
    ],
)
def test_model_errors(era: Era, verbose: bool, reply: str) -> None:
    assert extract(era.render([ECHO, DRAFT, Turn(reply)], verbose=verbose)) == bad("model_error")
    assert extract(era.render([ECHO, Turn(reply), Turn(GOOD)], verbose=verbose)) == ok(GOOD)


@every_form
def test_error_of_the_round_itself(era: Era, verbose: bool) -> None:
    error = "\n```\nKeyError: 'x' @ ga.py:120, do_code_run -> `args['x']`\n```" + ROUND_END
    assert extract(era.render([ECHO, DRAFT], verbose=verbose, end=error)) == bad("model_error")


@every_form
@pytest.mark.parametrize("question", ["Which year do you mean?", "Which year (AD)\nor which [结论]?"])
def test_questions(era: Era, verbose: bool, question: str) -> None:
    ask = Call("ask_user", {"question": question, "candidates": ["2020", "2021"]}, "Waiting for your answer ...\n")
    assert extract(era.render([ECHO, Turn("<summary>ask</summary>", [ask])], verbose=verbose)) == bad("asked_user")
    assert extract(era.render([ECHO, Turn(GOOD, [ask])], verbose=verbose)) == bad("asked_user")
    assert extract(era.render([ECHO, Turn("", [ask]), Turn(GOOD)], verbose=verbose)) == ok(GOOD)


@every_form
@pytest.mark.parametrize(
    "template",
    [
        "[结论] {直接回答}",
        "[结论] {针对sub_question的直接回答，≥2-3句，≤500字}",
        "[结论] <direct answer>\n\n<further points, one paragraph each>",
        '[结论] {直接回答}\n\n来源：<URL or path>, p. N — "<verbatim quote>"',
        "结论格式应为 [结论] {直接回答}。",
        "[结论] ……",
        "The form: `[结论]` first, then a direct answer of at least 2-3 sentences; at most 300 words.",
    ],
)
def test_templates(era: Era, verbose: bool, template: str) -> None:
    assert extract(era.render([DRAFT, Turn(template)], verbose=verbose)) == bad("placeholder")
    assert extract(era.render([DRAFT, Turn(f"{GOOD}\n\n[结论] {{直接回答}}")], verbose=verbose)) == ok(GOOD)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", bad("empty", finished=False)),
        (" \n\n", bad("empty", finished=False)),
        ("\n\n[ROUND END]\n", bad("empty")),
        ("\x00\x00\n[ROUND END]\n", bad("empty")),
        ("\nTurn 1 ...\n\n\n\n[ROUND END]\n", bad("empty")),
        ("---\n\n[ROUND END]", bad("no_answer")),
        ("[结论]\n\n[ROUND END]\n", bad("no_answer")),
        ("\nTurn 1 ...\n\n<summary>done</summary>\n\n\n[ROUND END]\n", bad("no_answer")),
        ("\nTurn 1 ...\n\n🛠️ web_scan({})\n\n\n[ROUND END]\n", bad("no_answer")),
        ("\nTurn 1 ...\n\nI read the page.\n🛠️ web_scan({})\n\n\n[ROUND END]\n", bad("no_answer")),
        ("!!!Error: HTTP 500\n\n[ROUND END]\n", bad("model_error")),
        ("Turn 1 ...\n\n!!!Error: HTTP 401 Unauthorized\n\n\n[ROUND END]\n", bad("model_error")),
        (TRACEBACK + "\n[ROUND END]\n", bad("model_error")),
    ],
)
def test_no_conclusion(text: str, expected: Extract) -> None:
    assert extract(text) == expected


@pytest.mark.parametrize(
    ("text", "conclusion"),
    [
        ("42", "42"),
        ("A plain answer.\nOf two lines.\n", "A plain answer.\nOf two lines."),
        (f"some log\n{GOOD}\n[ROUND END]\n\n[ROUND END]\n", GOOD),
        (f"{GOOD} [ROUND END]", GOOD),
        ("\ufeff[结论] Ein Satz.\r\nZwei.\r\n", "[结论] Ein Satz.\nZwei."),
        ("\x1b[31m[结论] red\x1b[0m and\x00 so on", "[结论] red and so on"),
        ("【结论】 An answer.", "[结论] An answer."),
        ("**[结论]** An answer.", "[结论] An answer."),
        ("**[结论] An answer.**", "[结论] **An answer.**"),
        ("## [结论]\nAn answer.", "[结论] An answer."),
        ("```\n[结论] An answer.\n```\nAnd more.", "[结论] An answer.\nAnd more."),
        ("<think>\n[结论] no\n</think>\n[结论] yes", "[结论] yes"),
        ("[结论] no\n</think>\nAn answer.", "An answer."),
        ("log\n---\n\n## 针对子问题一\n答案。", "---\n\n## 针对子问题一\n答案。"),
        ("Here it is.\n\n## Result\nAn answer.\n\n## More\nText.", "## Result\nAn answer.\n\n## More\nText."),
        ("## Result\nAn answer.\n\n## More\nText.", "## Result\nAn answer.\n\n## More\nText."),
        ("It is 42. It was 41.\n\n## Why\nText.", "It is 42. It was 41.\n\n## Why\nText."),
        ("<html> is the root. {a} is a set.", "<html> is the root. {a} is a set."),
        ("[结论] He says\n\nTurn 1 ...\n\nand moves.", "[结论] He says\n\nTurn 1 ...\n\nand moves."),
        ("Its tools:\n🛠️ code_run({})\n🛠️ file_read({})", "Its tools:\n🛠️ code_run({})\n🛠️ file_read({})"),
        ("!!!Error: first try\n[结论] The second try.", "[结论] The second try."),
        ("Caf\ufffd is open. It is in town.", "Caf\ufffd is open. It is in town."),
    ],
)
def test_texts_that_are_no_transcript(text: str, conclusion: str) -> None:
    found = extract(text)
    assert (found.verdict, found.conclusion) == ("ok", conclusion)
    assert extract(conclusion).conclusion == conclusion


def test_a_conclusion_may_show_a_traceback() -> None:
    text = f"[结论] The script fails with a KeyError.\n\n{TRACEBACK}"
    assert extract(f"{TRACEBACK}\n{text}\n[ROUND END]\n") == Extract(True, "ok", text.strip())


def test_bytes_that_are_no_text() -> None:
    garbage = (bytes(range(256)) * 8 + b"\x1b[31m\x00\xff\xfe\xed\xa0\x80\n").decode("utf-8", errors="replace")
    assert extract(garbage + ROUND_END) == bad("no_answer")
    gbk = "该索引在二零二一年引入，写入放大约为三倍。".encode("gbk").decode("utf-8", errors="replace")
    assert extract(gbk + ROUND_END) == bad("no_answer")


def test_last_answering_turn() -> None:
    text = ERAS[-2].render([ECHO, DRAFT, Turn(f"Done.\n\n{GOOD}")], verbose=True)
    assert last_answering_turn(text) == GOOD
    assert last_answering_turn(ERAS[-2].render([ECHO, Turn("Just this.")], verbose=False)) == "Just this."
    assert last_answering_turn("") == ""


def test_is_finished() -> None:
    assert is_finished("x\n\n[ROUND END]\n")
    assert is_finished("OUND END]\n\n[ROUND END]\n \n")
    assert not is_finished("it ends with [ROUND END], then\n")
    assert not is_finished("")


# -- the SOP's function -----------------------------------------------------------------------------------------------


def sop(content: str, max_chars: int = 4000) -> str:
    """What the SOP prescribes, by regular expressions."""
    found = (content.find(m) for m in ("[结论]", "---\n\n## 针对", "---\n\n## 一、", "## 针对子问题", "\n##"))
    text = content[next((at for at in found if at >= 0), 0) :]
    for pattern, flags in (
        (r"\*\*LLM Running.*?\n", 0),
        (r"<summary>.*?</summary>", re.DOTALL),
        (r"🛠️.*?(?=\n\n|\Z)", re.DOTALL),
        (r"````text\n.*?````", re.DOTALL),
        (r"\[ROUND END\].*", re.DOTALL),
    ):
        text = re.sub(pattern, "", text, flags=flags)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    if len(text) > max_chars:
        cut = text.rfind("\n\n", 0, max_chars)
        text = text[: cut if cut > 0 else max_chars] + "\n\n> *（内容已截断，完整结论见原始output.txt）*"
    return text


_PIECES = st.sampled_from(
    [
        *(
            "[结论]",
            "---\n\n## 针对",
            "---\n\n## 一、",
            "## 针对子问题",
            "\n##",
            "**LLM Running",
            "<summary>",
            "</summary>",
        ),
        *(
            "🛠️",
            "````text\n",
            "````",
            "[ROUND END]",
            "\n",
            "\n\n",
            "\n\n\n",
            "word ",
            "结论。",
            " ",
            "`````\n",
            "Turn 1 ...\n\n",
        ),
        *(
            "\nTurn 2 ...\n\n",
            "**Turn 1 ...**\n\n",
            "<thinking>",
            "</thinking>",
            "!!!Error: x",
            "{直接回答}",
            "\x00",
            "\x1b[3m",
        ),
        *("🛠️ ask_user(", "🛠️ Tool: `x`  📥 args:\n", "```\n", ")", "**", "【结论】", "\nLLM Running (Turn 1) ...\n\n"),
    ]
)
_TEXTS = st.lists(_PIECES, max_size=25).map("".join)


@steady
@given(_TEXTS, st.integers(1, 60))
def test_the_sops_function_result_for_result(text: str, max_chars: int) -> None:
    assert extract_conclusion(text) == sop(text)
    assert extract_conclusion(text, max_chars) == sop(text, max_chars)


def test_cuts() -> None:
    text = "[结论] " + "\n\n".join("字" * 900 for _ in range(6))
    assert extract_conclusion(text).startswith(text[: len("[结论] ") + 4 * 902 - 2] + output.CUT_NOTE)
    assert shorten(text) == text[: 5 + 3 * 902 - 2] + output.CUT_NOTE
    assert shorten("字" * 3000) == "字" * 3000
    assert shorten("字" * 3001) == "字" * 3000 + output.CUT_NOTE
    assert for_display(text) == text[:2000]
    assert extract(text).conclusion == text


# -- whatever comes ---------------------------------------------------------------------------------------------------


@steady
@given(_TEXTS | st.text())
def test_never_raises_and_is_consistent(text: str) -> None:
    found = extract(text)
    assert (found.conclusion is not None) == (found.verdict == "ok")
    assert found.finished == is_finished(text)
    assert found.conclusion is None or (found.conclusion.strip() == found.conclusion != "")
    last_answering_turn(text)


_PARAGRAPHS = st.lists(
    st.sampled_from(
        ["写入放大约为 3.2 倍。", "It says [ROUND END] here.", "The 🛠️ icon.", "`<summary>` is a tag.", "- a\n- b"]
    ),
    min_size=1,
    max_size=5,
).map("\n\n".join)


@steady
@given(_PARAGRAPHS, st.sampled_from(FORMS), st.lists(st.sampled_from([ECHO, DRAFT, Turn("Hm.")]), max_size=4))
def test_a_clean_conclusion_comes_back(body: str, form: tuple[Era, bool], earlier: list[Turn]) -> None:
    conclusion = f"[结论] {body}"
    assert extract(conclusion).conclusion == conclusion
    assert extract(form[0].render([*earlier, Turn(conclusion)], verbose=form[1])) == ok(conclusion)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit",
    [
        *(
            "````\n",
            "`````\n",
            "````text\n",
            "```a\n",
            "```\n",
            "~~~x\n",
            "<summary>",
            "<thinking>\n",
            "</thinking>",
            "[结论]\n",
        ),
        *(
            "🛠️ Tool: `x`  📥 args:\n````text\n",
            "\nTurn 1 ...\n\n",
            "[ROUND END]\n",
            "[ROUND END]",
            "**LLM Running",
            "🛠️ x(",
            "{",
        ),
        *(
            "[结论] {直接回答}\n",
            "!!!Error: ",
            "\n",
            " ",
            "\x1b]",
            "`````\n\n\n\n",
            "🛠️ ask_user(\n",
            "a",
            "```\nA: ",
            " @ x.py:1, ",
        ),
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    """Much of anything; what took quadratic time would not end within the limit."""
    text = unit * (400_000 // len(unit))
    extract(text)
    extract("\nTurn 1 ...\n\n" + text)
    extract_conclusion(text)
