"""Both languages: sentences are verbatim, terms meet, names and numbers are found, repetitions are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dr import language
from dr.language import content_terms, content_words, detect, names, normalise, numbers, repeats, sentences, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is a heat pump?", "en"),
        ("热泵的效率是多少？", "zh"),
        ("VIVA Media AG 的新缩写代表什么？", "zh"),
        ("Who wrote 《三体》 in English?", "en"),
        ("", "en"),
        ("2024", "en"),
    ],
)
def test_detect(text: str, expected: str) -> None:
    assert detect(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It cost 3.14 dollars. It was new.", ["It cost 3.14 dollars.", "It was new."]),
        ("Mr. J. K. Rowling met Dr. No. They spoke.", ["Mr. J. K. Rowling met Dr. No. They spoke."]),
        ("He lives in the U.S. The house is red.", ["He lives in the U.S.", "The house is red."]),
        ("The U.S. Navy came, e.g. by sea. Then it left.", ["The U.S. Navy came, e.g. by sea.", "Then it left."]),
        ("Acme Inc. was sold. See example.com for more.", ["Acme Inc. was sold.", "See example.com for more."]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("Really?! Yes! (Not at all.) Fine.", ["Really?!", "Yes!", "(Not at all.)", "Fine."]),
        ("他说：“好。”然后走了！真的？是。", ["他说：“好。”", "然后走了！", "真的？", "是。"]),
        ("效率为3.5。成本低。", ["效率为3.5。", "成本低。"]),
        ("It was built in 1990. 12 people came.", ["It was built in 1990.", "12 people came."]),
        ("a wrapped\nsentence goes on\nhere. Next one.", ["a wrapped\nsentence goes on\nhere.", "Next one."]),
        ("A title\nThe sentence of the body is longer than its title.", None),
        ("one paragraph without an end\n\nanother", ["one paragraph without an end", "another"]),
        ("", []),
        ("  \n ", []),
    ],
)
def test_sentences(text: str, expected: list[str] | None) -> None:
    assert sentences(text) == (expected if expected is not None else text.split("\n"))


@given(st.text(alphabet='Ab. !?\n，。”"3。《》(J.') | st.text())
def test_sentences_are_verbatim_and_in_order(text: str) -> None:
    at = 0
    for sentence in sentences(text):
        assert sentence == sentence.strip()
        at = text.index(sentence, at) + len(sentence)
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_tokens_meet_across_forms() -> None:
    assert tokens("Studies") == tokens("study")
    assert tokens("founded") == tokens("founding") == tokens("found")
    assert tokens("company's") == tokens("companies")
    assert tokens("Hradecká") == tokens("Hradecka")
    assert tokens("ＡＢＣ") == tokens("abc")
    assert tokens("status") != tokens("statu")


def test_tokens_of_chinese_are_characters_and_pairs() -> None:
    assert tokens("热泵A1") == ["热", "泵", "热泵", "a1"]
    assert tokens("") == []


def test_content_terms_leave_out_what_only_asks() -> None:
    assert content_terms("What is the name of the heat pumps?") == ["heat", "pump"]
    assert content_terms("热泵的效率是多少？") == ["热泵", "效率"]
    assert content_words("《三体》的作者是谁？") == ["三体", "作者"]
    assert content_terms("Who is it?") == []
    assert content_terms("What is said about the pump?") == ["pump"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Are Giuseppe Verdi and Ambroise Thomas both composers?", ["Giuseppe Verdi", "Ambroise Thomas"]),
        ("What is the University of Oxford's rival?", ["University of Oxford"]),
        ("Is it Pizza Inn or Papa Gino's?", ["Pizza Inn", "Papa Gino's"]),
        ('Who sang "Speed of Sound"?', ["Speed of Sound"]),
        ("《三体》和“流浪地球”的作者是谁？", ["三体", "流浪地球"]),
        ("阿尔伯特·爱因斯坦与中国科学院大学", ["阿尔伯特·爱因斯坦", "中国科学院大学"]),
        ("OpenAI 的看法", ["OpenAI"]),
        ("what is this about", []),
    ],
)
def test_names(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_numbers() -> None:
    assert numbers("In 2004, 1,234,567 people and 3.5 % of two towns") == ["2004", "1234567", "3.5", "2"]
    assert numbers("第三章有二十三页，共１２页") == ["第三", "二十三", "12"]
    assert numbers("none") == []


def test_normalise() -> None:
    assert normalise("  What is  X?! ") == "what is x"
    assert normalise("热泵 的 效率，是多少？") == "热泵的效率是多少"


def test_repetition_needs_the_same_numbers_and_names() -> None:
    asked = ["What was the revenue of Acme in 2004?", "热泵第三章的效率是多少？"]
    assert repeats("what was the revenue of Acme, in 2004", asked) == asked[0]
    assert repeats("What was then the revenue of Acme in 2004?", asked) == asked[0]
    assert repeats("What was the revenue of Acme in 2005?", asked) is None
    assert repeats("What was the revenue of Apex in 2004?", asked) is None
    assert repeats("热泵第三章的效率为多少", asked) == asked[1]
    assert repeats("热泵第二章的效率是多少？", asked) is None
    assert repeats("Where is Acme?", asked) is None
    assert repeats("anything", []) is None


def test_similar_is_between_0_and_1() -> None:
    assert language.similar("a b c", "A, b c!") == 1.0
    assert language.similar("abc", "xyz") == 0.0
    assert 0.85 < language.similar("what is the cost of it", "what is the cost of it now") < 1
