"""dr/answer.py and dr/gaps.py: which sentences of the conclusions answer, and which words nobody speaks of."""

from __future__ import annotations

import pytest

from dr.answer import Quoted, extractive
from dr.cited import Cited, Source
from dr.gaps import open_terms

SOURCE = (Source("Report", "/r.pdf", (), "", ""),)
QUESTION = "How much heat did the plant deliver in 2024, and what did the council decide?"
HEAT = "The plant delivered 58.6 GWh of heat in 2024."
COUNCIL = "The council decided to buy drum screens."


def cited(node: str, body: str) -> Cited:
    return Cited(node, body, by_id={f"local-{n}": SOURCE for n in range(1, 9)}, listed=SOURCE)


def texts(*nodes: Cited, question: str = QUESTION) -> list[str]:
    return [quote.text for quote in extractive(question, nodes)]


def test_every_part_of_the_question_is_heard() -> None:
    found = texts(cited("N1", f"{HEAT} [local-1] It rained. [local-2]"), cited("N2", f"{COUNCIL} [local-1]"))
    assert set(found) == {HEAT, COUNCIL}


def test_the_best_sentence_comes_first() -> None:
    found = texts(cited("N1", "The report has five pages. [local-1]"), cited("N2", f"{HEAT} [local-1]"))
    assert found[0] == HEAT


def test_a_later_sentence_is_taken_for_what_it_adds() -> None:
    body = f"{HEAT} [local-1]\n\nPipes are grey. [local-2]\n\n{COUNCIL} [local-3]"
    assert texts(cited("N1", body)) == [HEAT, COUNCIL]


def test_nothing_is_said_twice() -> None:
    assert texts(cited("N1", f"{HEAT} [local-1]"), cited("N2", f"{HEAT} [local-1]")) == [HEAT]


def test_sentences_keep_their_citations() -> None:
    (quote,) = extractive(QUESTION, [cited("N1", f"- {HEAT} [local-1][local-2], it seems")])
    assert quote == Quoted("N1", HEAT, ("local-1", "local-2"))


def test_a_conclusion_that_cites_as_a_whole_gives_its_beginning() -> None:
    (quote,) = extractive(QUESTION, [cited("N1", "One. Two. Three. Four.\n\nMore.")])
    assert quote == Quoted("N1", "One. Two. Three.", ())
    assert texts(cited("N1", "甲是一。乙是二。丙是三。丁是四。")) == ["甲是一。乙是二。丙是三。"]


def test_a_citation_that_leads_nowhere_does_not_count() -> None:
    (quote,) = extractive(QUESTION, [Cited("N1", "So it is [local-7]. And so.", by_id={})])
    assert quote == Quoted("N1", "So it is. And so.", ())


def test_a_node_is_heard_that_answers_its_own_question_in_other_words() -> None:
    nodes = [cited("N1", f"{HEAT} [local-1]"), cited("N1_maker", "Linhai makes the plates of titanium. [local-1]")]
    asked = {"N1": QUESTION, "N1_maker": "Who is Linhai?"}
    assert [q.node for q in extractive(QUESTION, nodes, asked)] == ["N1", "N1_maker"]
    assert [q.node for q in extractive(QUESTION, nodes, {"N1": QUESTION, "N1_maker": QUESTION})] == ["N1"]


def test_a_heading_is_no_sentence() -> None:
    assert texts(cited("N1", f"2024 Heat [local-1] {HEAT} [local-2]")) == [HEAT]


def test_the_answer_stays_short() -> None:
    nodes = [cited(f"N{i}", f"Heat number {i} of plant {i} in 2024. [local-1]") for i in range(50)]
    assert 1 <= len(texts(*nodes)) <= 8


def test_two_sentences_that_differ_in_a_number_both_stand() -> None:
    one, other = "The reactor of Vell ran for 41 days in 2022.", "The reactor of Vell ran for 44 days in 2022."
    nodes = [cited("N1", f"{one} [local-1]"), cited("N2", f"{other} [local-1]")]
    question = "How many days did the reactor of Vell run in 2022?"
    assert texts(*nodes, question=question) == [one, other]
    conflict = {
        "quantity": "The reactor ran",
        "values": [
            {"value": "41 days", "node": "N1", "citation": "local-1", "sentence": one},
            {"value": "44 days", "node": "N2", "citation": "local-1", "sentence": other},
        ],
    }
    assert [q.text for q in extractive(question, nodes, limit=1)] == [one]
    assert [q.text for q in extractive(question, nodes, limit=1, conflicts=[conflict])] == [one, other]


def test_nothing_fills_the_answer_up() -> None:
    said = [
        "The tank of Orrin is red.",
        "The tank of Orrin is round.",
        "The tank of Orrin is of steel.",
        "Grass is tall.",
    ]
    body = "\n\n".join(f"{s} [local-{n}]" for n, s in enumerate(said, 1))
    assert texts(cited("N1", body), question="Which colour is the tank of Orrin?") == said[:2]


def test_no_conclusion_gives_no_answer() -> None:
    assert extractive(QUESTION, []) == []


@pytest.mark.parametrize(
    ("question", "said", "expected"),
    [
        ("Which tariff applies in Port Ellery?", ["Port Ellery is a town."], ["tariff", "applies"]),
        ("How were plants delivered?", ["The plant delivers."], []),
        ("热泵站的性能系数是多少，电价是多少？", ["热泵站验收时测得的性能系数为 3.2。"], ["电价"]),
        ("埃勒里港热泵站验收时的 COP 是多少？", ["港口在埃勒里港。热泵站很大。"], ["验收时", "cop"]),
        ("How many days did the reactor run?", ["The reactor ran for 41 days."], []),
        ("Who wrote the book?", ["It is a book to write."], []),
        ("2024年实际发电量是多少？", ["发电量很大。"], ["2024"]),
        ("2024年实际发电量是多少？", ["2024 年很热。"], ["发电量"]),
        ("According to it, how often and after what happened is the boiler cleaned?", ["A boiler."], ["cleaned"]),
        ("", ["x"], []),
    ],
)
def test_open_terms(question: str, said: list[str], expected: list[str]) -> None:
    assert open_terms(question, said) == expected
