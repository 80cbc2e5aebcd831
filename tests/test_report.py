"""dr/report.py, dr/findings.py, dr/answer.py: what a reader finds in report.md and a program in result.json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from dr import conflicts, report
from dr.contract import Passage
from dr.findings import collect
from dr.language import detect
from dr.layout import RunFolder
from dr.report import build, render, write
from dr.report_parts import place
from tests.run_folders import node, passage, run_folder

PLACE = "/docs/report.pdf"
DELIVERED = "The plant delivered 58.6 GWh of heat in 2024."
CLOSED = "The sea-water intake was closed for 37 days in 2024."
SCREENS = "The council decided to buy two drum screens for 2.3 million euros."


def quoting(*sentences: str, lead: str = "", place: str = PLACE, page: int = 1, kind: str = "local") -> dict[str, Any]:
    """conclusion and evidence of a node that quotes these sentences."""
    ids = [f"{kind}-{n}" for n in range(1, len(sentences) + 1)]
    body = lead + " ".join(f"{s} [{i}]" for s, i in zip(sentences, ids, strict=True))
    lines = [f'来源：{place}, p. {page} — "{s}" [{i}]' for s, i in zip(sentences, ids, strict=True)]
    evidence = [passage(n, place, s, kind=kind, title="Report", page=page) for n, s in enumerate(sentences, 1)]
    return {"conclusion": f"[结论] {body}\n\n" + "\n".join(lines) + "\n", "evidence": evidence}


def text_of(folder: RunFolder, **how: Any) -> str:
    return render(collect(folder), **how)


def section(text: str, title: str) -> str:
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return parts[parts.index(title) + 1].strip()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    nodes = {
        "N1": node("How much heat?", **quoting(DELIVERED, CLOSED), process={"reservation": ["one_sentence"]}),
        "N2": node("Which decision?", **quoting(SCREENS, place="/docs/minutes.md"), type="WEB"),
        "N3": node("Which fish?", state="failed", process={"error": "the file holds no text", "attempt": 3}),
        "N4": node("Which colour?", state="skipped", depends="N3", process={"attempt": 0}),
    }
    return run_folder(tmp_path, nodes, "How much heat was delivered, and what did the council decide?")


# -- report.md --------------------------------------------------------------------------------------------------------


def test_sections_in_order(folder: RunFolder) -> None:
    headings = re.findall(r"^#{1,2} (.+)$", text_of(folder), re.MULTILINE)
    assert headings == [
        "[Partial] How much heat was delivered, and what did the council decide?",
        *("Answer", "Findings", "Contradictions", "What is open, and why", "References", "How this report was made"),
    ]


def test_every_number_leads_to_its_reference(folder: RunFolder) -> None:
    text = text_of(folder)
    listed = [int(n) for n in re.findall(r"^\*\*\[(\d+)\]\*\* ", text, re.MULTILINE)]
    running = text[: text.index("## References")]
    used = list(dict.fromkeys(int(n) for n in re.findall(r"\[(\d+)\]", running)))
    assert listed == used == [1, 2, 3]
    for sentence in (DELIVERED, CLOSED, SCREENS):
        (number,) = set(re.findall(re.escape(sentence) + r" \[(\d+)\]", running))
        assert f"> {sentence}" in section(text, "References").split(f"**[{number}]** ")[1].split("**[")[0]


def test_the_answer_says_that_it_is_an_extract_and_cites(folder: RunFolder) -> None:
    answer = section(text_of(folder), "Answer")
    assert f"{DELIVERED} [1]" in answer and SCREENS in answer
    assert "No language model" in answer


def test_a_given_answer_stands_there_with_its_numbers(folder: RunFolder) -> None:
    text = text_of(folder, answer="Drum screens were chosen [N2/local-1]. Nobody knows the colour.")
    answer = section(text, "Answer")
    assert answer == "Drum screens were chosen. [1] Nobody knows the colour."
    assert "Sentences of the answer without a citation: 1" in section(text, "What is open, and why")
    assert "No language model wrote" not in text


def test_the_synth_node_holds_the_answer(folder: RunFolder) -> None:
    folder.node("S").path.mkdir()
    folder.node("S").conclusion.write_text("From SYNTH [N1/local-1].", encoding="utf-8")
    assert section(text_of(folder), "Answer") == "From SYNTH. [1]"


def test_findings_stand_in_topological_order(tmp_path: Path) -> None:
    nodes = {
        "N2": node("Second?", **quoting(SCREENS), depends="N1"),
        "N1": node("First?", **quoting(DELIVERED)),
        "N0": node("Third?", **quoting(CLOSED), depends="N2"),
    }
    headings = re.findall(r"^### (\S+)", text_of(run_folder(tmp_path, nodes)), re.MULTILINE)
    assert headings == ["N1", "N2", "N0"]


def test_a_repeated_sentence_is_shown_once(tmp_path: Path) -> None:
    nodes = {
        "N1": node(**quoting(DELIVERED, CLOSED)),
        "N2": node(**quoting(CLOSED, SCREENS)),
        "N3": node(**quoting(CLOSED)),
    }
    text = text_of(run_folder(tmp_path, nodes), answer="Short.")
    running = text[: text.index("## References")]
    for sentence in (DELIVERED, CLOSED, SCREENS):
        assert running.count(sentence) == 1
    assert running.count("(quoted above: [2])") == 2


def test_a_remark_that_every_node_makes_is_shown_once(tmp_path: Path) -> None:
    remark = "\n\nNote: No language model was used: every sentence is quoted."
    nodes = {}
    for name, sentence in (("N1", DELIVERED), ("N2", SCREENS)):
        nodes[name] = node(**quoting(sentence))
        nodes[name]["conclusion"] = nodes[name]["conclusion"].replace("\n\n", remark + "\n\n", 1)
    made = build(collect(run_folder(tmp_path, nodes)))
    assert made.markdown.count("every sentence is quoted") == 1
    assert all("every sentence is quoted" in n["conclusion"] for n in made.result["nodes"])


def test_what_was_said_is_referred_to_in_place(tmp_path: Path) -> None:
    nodes = {"N1": node(**quoting(DELIVERED)), "N2": node(**quoting(SCREENS, DELIVERED, CLOSED))}
    text = text_of(run_folder(tmp_path, nodes), answer="Short.")
    # The number differs: N2 quotes the same words as N1, of the same page, so it is the same reference.
    assert f"{SCREENS} [2] (quoted above: [1]) {CLOSED} [3]" in text


def test_reservations_are_words(folder: RunFolder) -> None:
    assert "*Reservation: the conclusion is a single sentence*" in text_of(folder)


def test_gaps_are_named_with_their_reasons(folder: RunFolder) -> None:
    gaps = section(text_of(folder), "What is open, and why")
    assert gaps.startswith("2 of 4 nodes answered, 1 failed, 1 skipped.")
    assert "N3 (failed, attempts: 1): Which fish? Why: the file holds no text" in gaps
    assert "N4 (skipped, attempts: 0): Which colour? Why: N3, on which it depends, came to no conclusion" in gaps


def test_a_budget_that_ended_the_run_is_named(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, {"N1": node(**quoting(DELIVERED))}, reason="time_budget")
    text = text_of(folder)
    assert text.startswith("# [Partial] ")
    assert "Why the run ended: the time budget was spent" in text


def test_terms_nobody_answered(tmp_path: Path) -> None:
    folder = run_folder(
        tmp_path, {"N1": node(**quoting(DELIVERED))}, "How much heat was delivered, and which tariff applies?"
    )
    gaps = section(text_of(folder), "What is open, and why")
    assert re.search(r"no conclusion mentions: .*tariff", gaps)
    assert not re.search(r"mentions: .*\b(heat|which|delivered)\b", gaps)


def test_terms_nobody_answered_in_chinese(tmp_path: Path) -> None:
    nodes = {"N1": node(**quoting("热泵站验收时测得的性能系数为 3.2。"))}
    folder = run_folder(tmp_path, nodes, "热泵站的性能系数是多少，电价是多少？", language="zh")
    gaps = section(text_of(folder), "尚未解决的问题及原因")
    assert "电价" in gaps.split("没有出现在任何结论里：")[1]
    assert "性能" not in gaps


def test_a_whole_run_has_no_gap(tmp_path: Path) -> None:
    text = text_of(run_folder(tmp_path, {"N1": node(**quoting(DELIVERED))}, "How much heat was delivered in 2024?"))
    assert text.startswith("# How much heat was delivered in 2024?\n")
    assert "No gap is known." in text


def test_no_finding_at_all(tmp_path: Path) -> None:
    nodes = {
        "N1": node("First?", state="failed", process={"error": "no such file"}),
        "N2": node("Second?", state="failed", files={"stderr.log": "Traceback\nValueError: bad page\n"}),
        "N3": node("Third?", conclusion=None),
    }
    folder = run_folder(tmp_path, nodes, status="failed", reason="no_findings")
    made = build(collect(folder), answer="An answer from nowhere.")
    headings = re.findall(r"^#{1,2} (.+)$", made.markdown, re.MULTILINE)
    assert headings == [
        "[Failed] What happened in Port Ellery?",
        "Answer",
        "What was tried",
        "How this report was made",
    ]
    assert "none of the 3 nodes" in made.markdown and "from nowhere" not in made.markdown
    for reason in ("no such file", "Traceback / ValueError: bad page", "First?", "Second?", "Third?"):
        assert reason in section(made.markdown, "What was tried")
    assert made.result["answer"] is None and made.result["references"] == []


def test_no_plan_at_all(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "temp" / "dr_t")
    folder.path.mkdir(parents=True)
    folder.run.write_text(
        '{"format": 1, "question": "Why?", "status": "failed", "reason": "no_plan"}', encoding="utf-8"
    )
    text = text_of(folder)
    assert text.startswith("# [Failed] Why?") and "there was no plan" in text


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    nodes = {
        "N1": node(**quoting(DELIVERED)),
        "N2": node("Later?", state="pending"),
        "N3": node("Now?", state="running"),
    }
    text = text_of(run_folder(tmp_path, nodes, status="running", reason=""))
    assert text.startswith("# [Unfinished] ")
    assert "1 of 3 nodes answered, 0 failed, 0 skipped. Not finished: 2." in text


def test_contradictions_are_shown_with_both_references(folder: RunFolder) -> None:
    values = [
        {"value": "37 days", "node": "N1", "citation": "[local-2]"},
        {"value": "52 days", "node": "N2", "citation": "[local-1]"},
    ]
    made = build(collect(folder), conflicts=[{"quantity": "days of closure", "values": values}])
    numbers = {r.quote: r.n for r in made.references}
    line = f"- days of closure: 37 days [{numbers[CLOSED]}] ↔ 52 days [{numbers[SCREENS]}]"
    assert line in section(made.markdown, "Contradictions")
    assert [v["references"] for v in made.conflicts[0]["values"]] == [[numbers[CLOSED]], [numbers[SCREENS]]]


def test_checks_are_counted_and_a_contradicted_citation_is_pointed_out(tmp_path: Path) -> None:
    wrong = quoting(CLOSED)
    wrong["conclusion"] = wrong["conclusion"].replace("37", "73", 1)
    made = build(collect(run_folder(tmp_path, {"N1": node(**wrong), "N2": node(**quoting(DELIVERED))})))
    assert "References: 2; 1 supported by the stored passage, 1 contradicted by it, 0 not checked." in made.markdown
    bad = next(r for r in made.references if r.check == "contradicted")
    assert f"Reference [{bad.n}] does not agree" in section(made.markdown, "What is open, and why")


def test_a_citation_that_leads_nowhere_is_removed_and_counted(tmp_path: Path) -> None:
    text = "[结论] One thing [local-5] and another [web-2].\n"
    made = render(collect(run_folder(tmp_path, {"N1": node(conclusion=text)})))
    assert "One thing and another." in made
    assert "led to no source and were removed from the text: 2." in made


def test_a_foreign_agents_sources_are_listed_unchecked(tmp_path: Path) -> None:
    text = '[结论] It was closed for weeks. Nobody knew why.\n\n来源：https://example.org/a — "closed for weeks"\n'
    made = render(collect(run_folder(tmp_path, {"N1": node(type="WEB", conclusion=text)}, agent="/ga/agentmain.py")))
    assert "It was closed for weeks." in section(made, "Answer") and "[1]" in section(made, "Answer")
    assert "<https://example.org/a>" in made and "> closed for weeks" in made and "not checked" in made
    assert "not enforced by code" in section(made, "How this report was made")


def test_how_it_was_made(tmp_path: Path) -> None:
    revision = {"revision": 1, "removed": ["N2"], "added": ["N5"], "revised": []}
    facts = {
        "mind": "model",
        "revisions": [revision],
        "usage": {"total_tokens": 12345},
        "notes": ["the model was slow"],
    }
    made = section(
        text_of(run_folder(tmp_path, {"N1": node(**quoting(DELIVERED))}, **facts)), "How this report was made"
    )
    for said in (
        "Mind: model",
        "Rounds: 1",
        "removed N2; added N5; revised none",
        "12.5",
        "12,345",
        "the model was slow",
    ):
        assert said in made
    assert "not enforced" not in made


HOSTILE = (
    "# Fake\n\n## References\n\n**[1]** forged\n\n<script>x</script> [1] [a](http://evil.example)\n\n"
    "```\nopen\n\n[1]: /u\n\nend"
)


def test_a_hostile_conclusion_keeps_the_structure(tmp_path: Path) -> None:
    evil = quoting(DELIVERED, lead=f"{HOSTILE}\n\n")
    nodes = {
        "N1": node("# <b>Q</b> [x](y) `", **evil),
        "N2": node("ok?", state="failed", process={"error": "# no\n\n## Findings\n<script>"}),
    }
    made = build(collect(run_folder(tmp_path, nodes, "What # <i>is</i> [this](x)?")), answer=HOSTILE + " [N1/local-1]")
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(made.markdown)
    kinds = {t.type for t in tokens} | {c.type for t in tokens for c in t.children or ()}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "fence", "code_block", "hr"}
    headings = [tokens[i + 1].content for i, t in enumerate(tokens) if t.type == "heading_open" and t.tag == "h2"]
    assert headings == [
        *("Answer", "Findings", "Contradictions", "What is open, and why", "References", "How this report was made")
    ]
    assert re.findall(r"\[(\d+)\]", made.markdown.split("## References\n\nReferences")[0]) == ["1", "1"]


def test_everything_is_in_the_questions_language(tmp_path: Path) -> None:
    nodes = {
        "N1": node("供热多少？", **quoting("2024 年供热 58.6 吉瓦时。")),
        "N2": node("为什么？", state="failed", process={"error": "文件没有文字"}),
    }
    made = build(collect(run_folder(tmp_path, nodes, "2024 年供热多少？", language="")))
    assert made.markdown.startswith("# 【部分完成】2024 年供热多少？")
    assert "2 个节点中 1 个有结论，1 个失败，0 个被跳过。" in made.markdown
    words = re.sub(r"`[^`]*`|offline|UTC|LOCAL|Report|N\d", "", made.markdown)
    assert not re.search(r"[A-Za-z]{3}", words), re.search(r"[A-Za-z]{3}.*", words)


# -- 80 KB ------------------------------------------------------------------------------------------------------------


def _long(name: str, characters: int) -> str:
    paragraph = f"{name} says a lot about the matter at hand, " + "and more, " * 30
    return "\n\n".join(f"{paragraph} part {i}." for i in range(characters // len(paragraph) + 1))


def _big(tmp_path: Path, characters: int) -> RunFolder:
    nodes = {
        "N1": node(**quoting(DELIVERED, lead=_long("Core", characters) + "\n\n")),
        "N2": node(**quoting(CLOSED, lead=_long("Secondary", characters) + "\n\n")),
        "N2_more": node(**quoting(SCREENS, lead=_long("Deepening", characters) + "\n\n"), depends="N2"),
    }
    rounds = [{"round": 1, "nodes": ["N1", "N2"]}, {"round": 2, "nodes": ["N2_more"]}]
    return run_folder(tmp_path, nodes, rounds=rounds)


def test_a_report_over_80_kb_cuts_secondary_nodes_only(tmp_path: Path) -> None:
    made = build(collect(_big(tmp_path, 30_000)), answer="So it is [N1/local-1].")
    bodies = re.split(r"^### .*$", section(made.markdown, "Findings"), flags=re.MULTILINE)[1:]
    core, secondary, deepening = (body.strip() for body in bodies)
    assert len(core) > 30_000 and len(deepening) > 30_000
    assert 2_000 < len(secondary) < 3_200
    assert "(cut here; the whole conclusion is in N2/conclusion.md)" in secondary
    assert secondary.split("\n\n> *")[0].endswith(".") and "cut here" not in core + deepening
    # The reference whose citation was cut off is still there, and still said to be the node's.
    number = next(r.n for r in made.references if r.quote == CLOSED)
    assert f"Sources: [{number}]" in secondary
    assert len(made.result["nodes"][1]["conclusion"]) > 30_000


def test_a_report_up_to_80_kb_is_whole(tmp_path: Path) -> None:
    made = build(collect(_big(tmp_path, 20_000)), answer="So it is [N1/local-1].")
    assert len(made.markdown.encode()) <= report.MAX_BYTES and "cut here" not in made.markdown


# -- result.json and the other files ----------------------------------------------------------------------------------


def test_result_json(folder: RunFolder) -> None:
    made = write(collect(folder))
    result = json.loads(folder.result.read_text(encoding="utf-8"))
    assert result == made.result
    assert list(result) == [
        *("task", "status", "reason", "question", "language", "mind", "answer", "coverage", "nodes", "references"),
        *("conflicts", "usage", "report"),
    ]
    assert result["coverage"] == {"nodes": 4, "answered": 2, "failed": 1, "skipped": 1}
    assert list(result["nodes"][0]) == [
        *("id", "type", "sub_question", "state", "attempts", "seconds", "conclusion", "reservation", "error")
    ]
    assert result["nodes"][0]["conclusion"] == f"{DELIVERED} [1] {CLOSED} [3]"
    assert result["nodes"][2]["error"] == "the file holds no text" and result["nodes"][2]["conclusion"] is None
    first = {
        "n": 1,
        "title": "Report",
        "path": PLACE,
        "locator": {"page": "1"},
        "quote": DELIVERED,
        "check": "supported",
    }
    assert result["references"][0] == first
    assert result["report"] == str(folder.report)


def test_the_answer_is_the_same_in_both(folder: RunFolder) -> None:
    for answer in (None, "As *said* <b>here</b> [N1/local-1], # so\n\n- one [N2]"):
        made = write(collect(folder), answer)
        assert section(folder.report.read_text(encoding="utf-8"), "Answer").startswith(made.result["answer"])


MAYOR = "The mayor of Ellery opened the plant."


@pytest.mark.parametrize(
    ("question", "sentence", "note", "gap"),
    [
        ("Who is the mayor of Orrin?", "The tank of Orrin is red.", "Note: Nothing on: mayor.", "mention: mayor."),
        ("奥林的市长是谁？", "奥林的水箱是红色的。", "注：引用的段落没有提到：市长。", "来源没有提到：市长。"),
    ],
)
def test_what_only_a_note_mentions_is_open(tmp_path: Path, question: str, sentence: str, note: str, gap: str) -> None:
    found = node(question, **quoting(sentence))
    found["conclusion"] = found["conclusion"].replace("\n\n", f"\n\n{note}\n\n", 1)
    made = build(collect(run_folder(tmp_path, {"N1": found}, question, language=detect(question))))
    assert made.result["answer"].split("\n\n")[0].endswith(gap) and sentence in made.result["answer"]
    assert made.markdown.count(note) == 1 and note in made.result["nodes"][0]["conclusion"]
    assert "No gap is known" not in made.markdown and "没有已知的缺口" not in made.markdown


def test_a_covered_question_has_no_gap_and_a_written_answer_no_line_of_ours(tmp_path: Path) -> None:
    question = "Who is the mayor of Ellery?"
    made = build(collect(run_folder(tmp_path, {"N1": node(question, **quoting(MAYOR))}, question)))
    assert made.result["answer"] == f"{MAYOR} [1]" and "No gap is known" in made.markdown
    asked = "Who is the butcher of Ellery?"
    folder = run_folder(tmp_path / "b", {"N1": node(asked, **quoting(MAYOR))}, asked)
    assert build(collect(folder), "Nobody says. [N1/local-1]").result["answer"] == "Nobody says. [1]"


@pytest.mark.parametrize(
    ("question", "said", "line"),
    [
        ("How many days did Vell run?", "Vell ran for {} days.", "Sources disagree: 41 days [1] ↔ 44 days [2]."),
        ("锅炉每几天清洗一次？", "锅炉每{}天清洗一次。", "来源说法不一：41 天 [1] ↔ 44 天 [2]。"),
    ],
)
def test_the_answer_ends_with_what_sources_disagree_on(tmp_path: Path, question: str, said: str, line: str) -> None:
    nodes = {f"N{n}": node(question, **quoting(said.format(n), place=f"/docs/{n}.txt")) for n in (41, 44)}
    found = collect(run_folder(tmp_path, nodes, question, language=detect(question)))
    answer = build(found, None, conflicts.find(found.statements())).result["answer"]
    assert answer.split("\n\n") == [f"{said.format(41)} [1]", f"{said.format(44)} [2]", line]


def test_conflicts_are_written_even_when_there_are_none(folder: RunFolder) -> None:
    write(collect(folder))
    assert json.loads(folder.conflicts.read_text(encoding="utf-8")) == []


def test_a_report_is_a_function_of_the_files(folder: RunFolder) -> None:
    assert build(collect(folder)) == build(collect(folder))


def test_the_readme_names_files_that_exist_in_the_layout(folder: RunFolder) -> None:
    write(collect(folder))
    text = folder.readme.read_text(encoding="utf-8")
    for path in (folder.dag, folder.report, folder.result, folder.node("N1").conclusion, folder.node("N1").evidence):
        assert path.name in text


def test_places() -> None:
    root = Path("/home/x/project")
    assert place("/home/x/project/a b/c.pdf", root) == "<root>/a b/c.pdf"
    assert place("/home/x/project2/c.pdf", root) == "/home/x/project2/c.pdf"
    assert place("https://example.org/home/x/project", root) == "https://example.org/home/x/project"
    assert place("/home/x/project/c.pdf") == "/home/x/project/c.pdf"


def test_paths_under_root_are_shown_as_such(folder: RunFolder) -> None:
    made = build(collect(folder), root=Path("/docs"))
    assert "`<root>/report.pdf`, p. 1" in made.markdown and made.result["references"][0]["path"] == "<root>/report.pdf"


# -- tolerance --------------------------------------------------------------------------------------------------------


def test_missing_and_damaged_records_make_gaps(folder: RunFolder) -> None:
    folder.run.write_text("{", encoding="utf-8")
    folder.node("N1").process.write_text("[]", encoding="utf-8")
    folder.node("N2").process.unlink()
    made = build(collect(folder))
    assert DELIVERED in made.markdown and made.result["nodes"][0]["attempts"] == 0
    assert made.result["question"].startswith("How much heat") and made.result["language"] == "en"


def test_an_invalid_edit_leaves_the_last_valid_plan(folder: RunFolder) -> None:
    folder.seen.write_text(folder.dag.read_text(encoding="utf-8"), encoding="utf-8")
    folder.dag.write_text("- [N1] WRONG", encoding="utf-8")
    assert [n.id for n in collect(folder).nodes] == ["N1", "N2", "N3", "N4"]


def test_attempts_and_seconds_count_earlier_attempts(folder: RunFolder) -> None:
    earlier = folder.node("N1").attempt(1)
    earlier.mkdir()
    (earlier / "process.json").write_text('{"start": 900.0, "end": 901.5}', encoding="utf-8")
    first = collect(folder).nodes[0]
    assert (first.attempts, first.seconds) == (2, 3.5)


def test_usage_is_summed_when_the_run_did_not(tmp_path: Path) -> None:
    nodes = {
        i: node(**quoting(DELIVERED), files={"usage.json": '{"total_tokens": 7, "model": "m"}'}) for i in ("N1", "N2")
    }
    assert collect(run_folder(tmp_path, nodes)).usage == {"total_tokens": 14}


def test_evidence_round_trip() -> None:
    record = passage(1, "https://example.org", "text", kind="web", title="T", section="Results")
    assert Passage.from_dict(record).to_dict() == record
