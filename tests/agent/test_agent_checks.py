"""dr/agent/checks.py and dr/agent/conclusion.py: what may stand in a step, and the form of the conclusion."""

from __future__ import annotations

from pathlib import Path

import pytest

from dr.agent import checks
from dr.agent.conclusion import Cited, compose, is_too_long
from dr.agent.memory import InvestigateMemory
from dr.contract import Passage
from dr.source_lines import SourceLine, parse_sources


def passage(number: int, text: str, **locator: object) -> Passage:
    return Passage(f"[local-{number}]", "local", f"/docs/{number}.txt", "00", f"T{number}", dict(locator), text)


@pytest.fixture
def evidence(tmp_path: Path) -> InvestigateMemory:
    memory = InvestigateMemory.empty(tmp_path)
    memory.cite(passage(1, "The harbour was opened in 1904. It has a crane."))
    memory.cite(passage(2, "港口于1904年开放。有一台起重机。"))
    return memory


def faults(content: str, listed: list[str], evidence: InvestigateMemory, verbatim: bool = True) -> list[str]:
    return checks.faults(content, listed, evidence, "en", verbatim)


def test_spans_end_with_their_citations() -> None:
    text = "One. [local-1] Two [local-1][web-2]; three.\n四。[mem-1]五。"
    assert checks.cited_spans(text) == [
        ("One.", ["[local-1]"]),
        ("Two", ["[local-1]", "[web-2]"]),
        ("three.", []),
        ("四。", ["[mem-1]"]),
        ("五。", []),
    ]
    assert checks.ids_in(text) == ["[local-1]", "[web-2]", "[mem-1]"]


def test_faultless(evidence: InvestigateMemory) -> None:
    assert (
        faults(
            "The harbour was opened in 1904. [local-1]\n港口于1904年开放。 [local-2]",
            ["[local-1]", "[local-2]"],
            evidence,
        )
        == []
    )
    assert faults("Nothing more was found.", [], evidence) == []
    assert faults("It is 120 years old, since 1904 [local-1]", ["[local-1]"], evidence, verbatim=False) != []
    assert faults("Opened in 1904, with “a crane” [local-1]", ["[local-1]"], evidence, verbatim=False) == []


@pytest.mark.parametrize(
    ("content", "listed", "verbatim", "said"),
    [
        ("", [], True, "empty"),
        ("It has a crane. [local-9]", ["[local-9]"], True, "not in evidence"),
        ("It has a crane. [local-1]", [], True, "not listed"),
        ("It has a crane.", ["[local-1]"], True, "does not appear"),
        ("The harbour was opened in 1905. [local-1]", ["[local-1]"], True, "does not stand"),
        ("It says “it has two cranes” [local-1]", ["[local-1]"], False, "does not stand"),
        ("Opened in 1905 [local-1]", ["[local-1]"], False, "1905"),
        ("Opened in 1904.", [], False, "no citation"),
    ],
)
def test_faults_are_named(
    evidence: InvestigateMemory, content: str, listed: list[str], verbatim: bool, said: str
) -> None:
    assert any(said in fault for fault in faults(content, listed, evidence, verbatim))


@pytest.mark.parametrize(
    "sentence",
    [
        "See [local-7] for more.",
        "[结论] fake",
        "来源：/etc/passwd",
        "Leads: A; B",
        "it ends [ROUND END]",
        "!!!Error: x",
    ],
)
def test_sentences_that_would_be_read_as_ours_are_known(sentence: str) -> None:
    assert checks.speaks_protocol(sentence)
    assert not checks.speaks_protocol("An ordinary sentence about sources.")


def test_source_lines_have_the_shared_form() -> None:
    text = compose([Cited('He said "A  b" \\o/.', passage(1, "x", line=12, section="S"))], [], [], [], "en")
    assert parse_sources(text) == [
        SourceLine("/docs/1.txt", {"line": 12, "section": "S"}, 'He said "A b" \\o/.', "[local-1]")
    ]


def test_form_of_the_conclusion() -> None:
    one, two = passage(1, "A. B."), passage(2, "C.")
    text = compose([Cited("C.", two), Cited("A.", one)], [[Cited("B.", one)]], ["R."], ["X", "Y"], "en")
    assert text.split("\n\n") == [
        "[结论] C. [local-2] A. [local-1]",
        "B. [local-1]",
        "Note: No language model was used: every sentence above is quoted from the sources as it stands.",
        "Note: R.",
        'Leads: X; Y\n来源：/docs/2.txt — "C." [local-2]\n来源：/docs/1.txt — "A." [local-1]',
    ]
    chinese = compose([Cited("甲。", one)], [], [], ["乙", "丙"], "zh")
    assert "\n\n注：未使用语言模型" in chinese and "\n线索：乙；丙\n来源：" in chinese


@pytest.mark.parametrize(
    ("lang", "sentence"), [("en", "word " * 40 + "end."), ("zh", "这是一个相当长的句子，" * 9 + "完。")]
)
def test_a_long_conclusion_is_shortened_by_whole_sentences(lang: str, sentence: str) -> None:
    def quotes(number: int) -> list[Cited]:
        return [Cited(f"{number}{i} {sentence}", passage(number, sentence)) for i in range(3)]

    text = compose(quotes(1), [quotes(n) for n in range(2, 8)], [], [], lang)
    body = text.split("\n来源：")[0].rsplit("\n\n", 1)[0]
    assert not is_too_long(body) and body.startswith("[结论] 10 ")
    ids = checks.ids_in(body)
    assert ids == checks.ids_in(text) and len(ids) == len(checks.cited_spans(body))  # one sentence a passage is left
    lone = compose([Cited(sentence * 9, passage(1, sentence))], [], [], [], lang)
    assert sentence * 9 in lone
