"""Which passages are cited, which sentences are quoted, and where they lead; in every layout, in both languages."""

from __future__ import annotations

import pytest

from dr.contract import Passage
from dr.retrieval import answer_sentences, rank, select
from dr.titles import aliases, title_of

Texts = dict[str, str]

FILMS: Texts = {
    "Ed Oxenbould": "Ed Oxenbould (born 1 June 2001) is an Australian actor. He is best known for his roles in films "
    "such as Paper Planes and The Visit.",
    "The Visit": "The Visit is a 2015 American horror film written and directed by M. Night Shyamalan. It stars two "
    "children who stay with their grandparents.",
    "Paper Planes": "Paper Planes is a 2014 Australian family film. It tells of a boy who folds paper.",
    "Olivia DeJonge": "Olivia DeJonge is an Australian actress who won awards for short films.",
    "Night Train": "Night Train is a 2009 film directed by Brian King. A guard finds a box.",
    "Kathryn Hahn": "Kathryn Hahn is an American actress and comedian who has appeared in many films.",
}
BRIDGE = "Ed Oxenbould plays Tyler in a film directed by which famous director?"

HARBOUR: Texts = {
    "埃尔姆赛港热泵": "埃尔姆赛港热泵由北岸能源公司于2019年建成，装机容量为12兆瓦。热泵从海水中取热。",
    "北岸能源公司": "北岸能源公司成立于1987年，总部位于格伦湾市。公司现任总经理是林岚。",
    "格伦湾市": "格伦湾市是北部的港口城市，人口约八万。市内有两座博物馆。",
    "燃气锅炉": "燃气锅炉的热效率约为92%，安装费用较低。",
    "南港电厂": "南港电厂是一座燃煤电厂，2003年投产，装机容量为300兆瓦。",
    "海水水质": "海水水质监测每年进行两次，2024年的盐度为3.1%。",
}


def laid_out(texts: Texts, layout: str) -> list[Passage]:
    """The same documents as files that differ in where their title stands."""
    found = []
    for number, (title, text) in enumerate(texts.items(), 1):
        place, name, body = f"/docs/p{number:02}.txt", f"p{number:02}", text
        if layout == "titles":
            place, name = f"/docs/{title}.txt", title
        elif layout == "heading":
            name = title
        elif layout == "first line":
            body = f"{title}\n{text}"
        elif layout == "run in":
            body = f"{title} {text}"
        found.append(Passage("", "local", place, "", name, {"line": 1}, body))
    return found


def cited(question: str, passages: list[Passage], **more: str) -> list[str]:
    return [title_of(q.passage) for q in select(question, passages, **more).quotes]  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", ["titles", "heading", "first line", "run in", "text only"])
def test_two_hops_are_cited_in_every_layout(layout: str) -> None:
    found = cited(BRIDGE, laid_out(FILMS, layout))
    assert {"Ed Oxenbould", "The Visit"} <= set(found)
    assert len(found) <= 3


@pytest.mark.parametrize("layout", ["titles", "heading", "first line", "run in", "text only"])
def test_two_hops_in_chinese(layout: str) -> None:
    passages = laid_out(HARBOUR, layout)
    found = select("建成埃尔姆赛港热泵的公司的现任总经理是谁？", passages)
    texts = "".join(q.passage.text for q in found.quotes)
    assert len(found.quotes) == 2
    assert "2019年建成" in texts
    assert "林岚" in texts
    assert any("林岚" in s for q in found.quotes for s in q.sentences)


def test_quoted_sentences_are_verbatim_and_in_order() -> None:
    for quote in select(BRIDGE, laid_out(FILMS, "first line")).quotes:
        positions = [quote.passage.text.index(s) for s in quote.sentences]
        assert positions == sorted(positions)
        assert 1 <= len(quote.sentences) <= 3


def test_leads_are_other_documents_that_are_there() -> None:
    passages = laid_out(FILMS, "titles")
    found = select("Ed Oxenbould is best known for which films?", passages)
    named = {q.passage.title for q in found.quotes} | set(found.leads)
    assert {"Ed Oxenbould", "The Visit", "Paper Planes"} <= named
    assert not {q.passage.title for q in found.quotes} & set(found.leads)
    assert set(found.leads) <= set(FILMS)


def test_a_document_asked_for_by_name_is_cited_alone() -> None:
    passages = laid_out(FILMS, "first line")
    assert cited("What is said about The Visit, with regard to director?", passages, root_question=BRIDGE) == [
        "The Visit"
    ]
    zh = laid_out(HARBOUR, "titles")
    assert cited("关于《格伦湾市》有哪些说法（人口）？", zh, root_question="热泵所在城市有多少人口？") == ["格伦湾市"]


def test_a_lead_can_always_be_found_by_its_name() -> None:
    odd = {"With or Without You": "A song by a band.", "It": "It is a novel about a town.", **FILMS}
    passages = laid_out(odd, "titles")
    for title in odd:
        question = f"What is said about {title}, with regard to songs?"
        assert cited(question, passages, root_question="Which song?")[0] == title


def test_the_plain_title_comes_before_one_with_a_bracket() -> None:
    texts = {"Joe Buck (musician)": "Joe Buck is a musician.", "Joe Buck": "Joe Buck is a sportscaster.", **FILMS}
    passages = laid_out(texts, "titles")
    root = "Which team did the father of Joe Buck work for?"
    assert cited("What is said about Joe Buck?", passages, root_question=root) == ["Joe Buck"]
    assert cited("What is said about Joe Buck (musician)?", passages, root_question=root) == ["Joe Buck (musician)"]


def test_nothing_is_cited_when_nothing_fits() -> None:
    found = select("Which enzyme splits lactose?", laid_out(FILMS, "titles"))
    assert found.quotes == []
    assert found.leads == []
    assert found.uncovered == ["enzyme", "splits", "lactose"]
    assert select("Which film?", []).quotes == []
    assert select("", laid_out(FILMS, "titles")).quotes == []


def test_one_passage_that_answers_is_enough() -> None:
    texts = {"a": "The turbine has a capacity of 12 MW.", "b": "Cats sleep.", "c": "Dogs bark at night."}
    found = select("What is the capacity of the turbine?", laid_out(texts, "titles"))
    assert [q.passage.title for q in found.quotes] == ["a"]
    assert found.uncovered == []


def test_passages_of_one_long_document() -> None:
    texts = [
        "Dune is a novel by Frank Herbert. It was published in 1965.",
        "Moreover, the ecology of the planet matters.",
        "The film adaptation by Denis Villeneuve was released in 2021.",
    ]
    passages = [Passage("", "local", "/d/dune.md", "", "Dune", {"line": i}, t) for i, t in enumerate(texts)]
    found = select("When was the film adaptation of Dune released?", passages)
    assert found.quotes[0].passage.text == texts[2]
    assert found.leads == []


def test_each_aspect_gets_its_citation() -> None:
    passages = laid_out(HARBOUR, "titles")
    found = select("效率和容量", passages, aspects=["燃气锅炉的热效率是多少？", "南港电厂的装机容量是多少？"])
    assert {"燃气锅炉", "南港电厂"} <= {q.passage.title for q in found.quotes}
    places = [q.passage.place for q in found.quotes]
    assert len(places) == len(set(places))


def test_what_parents_found_draws_the_documents_they_name() -> None:
    passages = laid_out(HARBOUR, "titles")
    known = {"N1": "埃尔姆赛港热泵由北岸能源公司建成。"}
    found = select(
        "这家公司的总部在哪里？", passages, root_question="热泵的建造公司总部在哪里？", parent_conclusions=known
    )
    assert "北岸能源公司" in [q.passage.title for q in found.quotes]


def test_uncovered_words_stand_in_no_cited_passage() -> None:
    found = select("Who directed The Visit and composed its zither music?", laid_out(FILMS, "titles"))
    assert "zither" in found.uncovered
    assert "directed" not in found.uncovered
    texts = {"Reactor of Vell": "The reactor of Vell ran for 41 days.", "b": "Cats sleep."}
    assert select("How often did the reactor of Vell run?", laid_out(texts, "titles")).uncovered == []


def test_rank_is_best_first_and_knows_titles() -> None:
    ranked = rank("film The Visit", laid_out(FILMS, "titles"), 3)
    assert ranked[0].passage.title == "The Visit"
    assert len(ranked) == 3
    assert [r.score for r in ranked] == sorted((r.score for r in ranked), reverse=True)
    assert rank("zither", laid_out(FILMS, "titles"), 3) == []
    assert rank("装机容量", laid_out(HARBOUR, "titles"), 1)[0].passage.title in ("埃尔姆赛港热泵", "南港电厂")


def test_many_passages_find_the_same() -> None:
    noise = {f"Note {n}": f"Note {n} speaks of films, actors and weather number {n}." for n in range(400)}
    found = cited(BRIDGE, laid_out({**noise, **FILMS}, "titles"))
    assert {"Ed Oxenbould", "The Visit"} <= set(found)
    assert len(found) <= 3


@pytest.mark.parametrize(
    ("title", "place", "text", "expected"),
    [
        ("Beer stein", "/d/x.txt", "A beer stein is a mug.", "Beer stein"),
        ("p03", "/d/p03.txt", "Beer stein\nA beer stein is a mug.", "Beer stein"),
        ("p03", "/d/p03.txt", "Viva (UK) Viva (stylised as VIVA) is a channel.", "Viva (UK)"),
        ("p03", "/d/p03.txt", "Tim Kaine Timothy Michael Kaine (born 1958) is a politician.", "Tim Kaine"),
        ("p03", "/d/p03.txt", "Roller disco A roller disco is a rink.", "Roller disco"),
        ("p03", "/d/p03.txt", "Nick Park is an animator.", "Nick Park"),
        ("p03", "/d/Nick_Park.txt", "An animator.", "Nick Park"),
        ("p03", "/d/p03.txt", "in 1990 nothing happened", "p03"),
        ("文档3", "/d/文档3.txt", "北岸能源公司成立于1987年，总部位于格伦湾市。", "北岸能源公司"),
        ("X&amp;Y", "/d/1.txt", "An album.", "X&Y"),
    ],
)
def test_title_of(title: str, place: str, text: str, expected: str) -> None:
    assert title_of(Passage("", "local", place, "", title, {}, text)) == expected


def test_aliases() -> None:
    def of(title: str) -> list[str]:
        return [a.text for a in aliases(Passage("", "local", "/d/1.txt", "", title, {}, ""))]

    assert of("Shape (magazine)") == ["Shape"]
    assert of("Hilo, Hawaii") == ["Hilo, Hawaii", "Hilo"]


def test_answer_sentences_cover_the_question_and_give_what_is_asked_for() -> None:
    quoted = [
        "The plant stands at the harbour.",
        "The plant was opened in 1998 after a long dispute.",
        "Its owner is North Shore Energy.",
        "The plant stands at the harbour.",
    ]
    assert answer_sentences("When was the plant opened?", quoted)[0] == quoted[1]
    assert answer_sentences("Who is the owner of the plant?", quoted)[0] == quoted[2]
    assert len(answer_sentences("plant?", quoted, limit=2)) <= 2
    assert answer_sentences("plant?", []) == []
    assert answer_sentences("谁是总经理？", ["公司成立于1987年。", "公司总经理是林岚。"])[0] == "公司总经理是林岚。"


def test_headings_and_titles_are_not_quoted_where_there_are_sentences() -> None:
    text = "Annual Operating Report\nThe year in brief\n\nThe plant delivered 58.6 GWh of heat in 2024. It was new."
    report = Passage("", "local", "/d/r.pdf", "", "Annual Operating Report", {"page": 1}, text)
    title = Passage("", "local", "/d/r.pdf", "", "Annual Operating Report", {"page": 1}, "Annual Operating Report")
    found = select("What does the annual operating report say of the heat of the plant in 2024?", [title, report])
    assert [q.passage.text for q in found.quotes] == [text]
    assert "The plant delivered 58.6 GWh of heat in 2024." in found.quotes[0].sentences
    assert not any("Report" in s or "brief" in s for s in found.quotes[0].sentences)


def test_a_table_that_came_as_lines_is_quoted_as_one() -> None:
    text = "Quantity\nThermal capacity\n12 MW\nSeasonal COP\n3.1\n\nThe table shows design values."
    found = select("What is the thermal capacity?", [Passage("", "local", "/d/r.pdf", "", "Plant", {}, text)])
    assert any("Thermal capacity\n12 MW" in s for s in found.quotes[0].sentences)


def test_of_a_document_asked_for_by_name_the_passage_that_answers() -> None:
    texts = ["Annual Report", "The annual report has four parts.", "Jellyfish closed the intake for 37 days."]
    passages = [Passage("", "local", "/d/r.pdf", "", "Annual Report", {"page": n}, t) for n, t in enumerate(texts, 1)]
    passages += laid_out(FILMS, "titles")
    root = "For how many days was the intake closed by jellyfish?"
    (quote,) = select("What is said about Annual Report?", passages, root_question=root).quotes
    assert quote.passage.text == texts[2]
