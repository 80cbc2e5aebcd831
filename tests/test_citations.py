"""dr/citations.py and dr/alterations.py: numbering, and the check of a citation without a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dr.citations import (
    CONTRADICTED,
    NOT_CHECKED,
    REASONS,
    SUPPORTED,
    CitationManager,
    check_citation,
    numbers_stand,
    quote_stands,
)

CURIE = (
    "Marie Curie was born in Warsaw in 1867. She won the Nobel Prize in Physics in 1903 and in Chemistry in 1911. "
    "About 15% of her note-\nbooks are still radio-\nactive. Her husband was killed in 1906."
)
FIRM = "公司成立于1998年，总部位于深圳。2020年营业收入为35亿元，同比增长12%。员工共有三千人，不仅分布在国内。"


def test_manager_is_one_object_and_numbers_by_prefix() -> None:
    manager = CitationManager()
    manager.reset()
    assert CitationManager() is manager
    assert manager.add_citation("a", source="k001") == "[rag-1]"
    assert manager.add_citation("b", source="k002", prefix="web") == "[web-1]"
    assert manager.add_citation("c", source="k001") == "[rag-2]"
    assert manager.add_citation("a ", source="other") == "[rag-1]"
    assert manager.get_all_citations() == [
        {"id": "[rag-1]", "content": "a", "source": "k001"},
        {"id": "[web-1]", "content": "b", "source": "k002"},
        {"id": "[rag-2]", "content": "c", "source": "k001"},
    ]
    manager.get_all_citations()[0]["id"] = "changed"
    assert manager.get_all_citations()[0]["id"] == "[rag-1]"
    manager.reset()
    assert manager.get_all_citations() == [] and manager.add_citation("z", "s") == "[rag-1]"


@pytest.mark.parametrize(
    "quote",
    [
        "Marie Curie was born in Warsaw in 1867.",
        "“marie curie  was\nborn in Warsaw”",
        "15% of her notebooks are still radioactive",
        "Marie Curie was born … in Chemistry in 1911",
        "in Physics in 1903 [...] in Chemistry",
        "born in Warsaw in 1867 [local-1]",
    ],
)
def test_quotes_that_stand(quote: str) -> None:
    assert quote_stands(quote, CURIE)


@pytest.mark.parametrize(
    "quote", ["", "  ", "…", "born in Paris in 1867", "in Warsaw in 186", "in 1911 … in 1867", "She won the the Nobel"]
)
def test_quotes_that_do_not_stand(quote: str) -> None:
    assert not quote_stands(quote, CURIE)


def test_chinese_quotes_do_not_mind_width_and_marks() -> None:
    assert quote_stands("公司成立于１９９８年, 总部位于深圳", FIRM)
    assert quote_stands("「营业收入为 35 亿元」", FIRM)
    assert not quote_stands("营业收入为5亿元", FIRM)  # the end of another number


def test_numbers_stand() -> None:
    assert numbers_stand("It was 1903 and 15 percent.", CURIE)
    assert not numbers_stand("It was 1904.", CURIE)


@pytest.mark.parametrize(
    ("sentence", "quote", "passage"),
    [
        ("Marie Curie was born in Warsaw in 1867.", "", CURIE),
        ("Curie's first prize came in 1903 [local-1].", "", CURIE),
        ("She was honoured twice.", "won the Nobel Prize in Physics in 1903", CURIE),
        ("公司成立于1998年，总部位于深圳。", "", FIRM),
        ("员工有3000人。", "", FIRM),
        ("Its revenue was 3.5 billion in 2020.", "", FIRM),
    ],
)
def test_supported(sentence: str, quote: str, passage: str) -> None:
    assert check_citation(sentence, quote, passage).verdict == SUPPORTED


@pytest.mark.parametrize(
    ("sentence", "quote", "passage"),
    [
        ("Marie Curie was born in Warsaw in 1868.", "", CURIE),
        ("Marie Curie was born in Paris in 1867.", "", CURIE),
        ("Marie Curie was not born in Warsaw in 1867.", "", CURIE),
        ("She did well.", "won the Nobel Prize in Physics in 1913", CURIE),
        ("Born in Warsaw, Marie Curie saw the light in 1869.", "", CURIE),
        ("2020年营业收入为53亿元，同比增长12%。", "", FIRM),
        ("x", "总部不位于深圳", FIRM),
    ],
)
def test_contradicted_by_another_value_for_the_same_thing(sentence: str, quote: str, passage: str) -> None:
    check = check_citation(sentence, quote, passage)
    assert check.verdict == CONTRADICTED
    assert check.why("en") and check.why("zh")


@pytest.mark.parametrize(
    ("sentence", "quote", "passage", "reason"),
    [
        ("Curie was brave.", "", CURIE, "nothing"),
        ("She sailed in 1950.", "", CURIE, "numbers_missing"),
        ("She sailed.", "the ship went down with all hands", CURIE, "quote_missing"),
        ("Anything in 1867.", "", "", "no_passage"),
        ("公司成立于1998年，总部位于上海。", "", FIRM, "words"),
        ("The opera house burned in 1906.", "", "Totally unrelated text of 1906.", "mostly_missing"),
    ],
)
def test_not_checked_says_why(sentence: str, quote: str, passage: str, reason: str) -> None:
    check = check_citation(sentence, quote, passage)
    assert (check.verdict, check.reason) == (NOT_CHECKED, reason)


@pytest.mark.parametrize(
    "sentence",
    [
        "She received the Nobel Prize in Physics in 1903 and the one in Chemistry in 1911.",
        "Curie was born in Warsaw.",
        "Her prizes came in 1903 and 1911, eight years apart.",
        "Marie Sklodowska Curie was born in 1867 in the city of Warsaw.",
    ],
)
def test_honest_rewording_is_never_contradicted(sentence: str) -> None:
    assert check_citation(sentence, "", CURIE).verdict != CONTRADICTED


def test_derived_numbers_are_not_contradicted() -> None:
    passage = "The northern fleet had 10 ships in 1805. The southern fleet had 20 ships in 1805."
    assert check_citation("The two fleets had 30 ships in total in 1805.", "", passage).verdict != CONTRADICTED


def test_numbers_may_stand_in_another_passage_cited_by_the_same_sentence() -> None:
    sentence = "Ulm had 128,928 people and Bonn 331,885 people."
    ulm, bonn = "Ulm had 128,928 people in 2020.", "Bonn: 331,885 people."
    assert check_citation(sentence, "", ulm).verdict == NOT_CHECKED
    assert check_citation(sentence, "", ulm, also=[bonn]).verdict == SUPPORTED
    assert check_citation(sentence, "", bonn, also=[ulm]).verdict == SUPPORTED


def test_reasons_have_the_same_facts_in_both_languages() -> None:
    import string

    for chinese, english in REASONS.values():
        assert _facts(string.Formatter(), chinese) == _facts(string.Formatter(), english)


def _facts(formatter: object, text: str) -> set[str]:
    return {name for _, name, _, _ in formatter.parse(text) if name}  # type: ignore[attr-defined]


@given(st.text(), st.text(), st.text(max_size=400))
def test_any_text_gets_a_verdict(sentence: str, quote: str, passage: str) -> None:
    assert check_citation(sentence, quote, passage).verdict in (SUPPORTED, CONTRADICTED, NOT_CHECKED)


@given(st.text(alphabet="abc XYZ 012.,中文。", min_size=1, max_size=120))
def test_a_passage_never_contradicts_itself(text: str) -> None:
    assert check_citation(text, text, text).verdict != CONTRADICTED
