"""JSON in a model's text, the schema check, and thinking left out: pure functions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dr.chat_json import candidates, faults, is_closed
from dr.chat_reply import without_thinking
from dr.tokens import estimate

PLAN = {"steps": [{"id": "N1", "depends": []}, {"id": "N2", "depends": ["N1"]}], "why": "两步"}


def first(text: str) -> Any:
    return next(candidates(text), None)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(PLAN),
        "\ufeff" + json.dumps(PLAN),
        f"Of course!\n\n```json\n{json.dumps(PLAN, indent=2)}\n```\n\nShall I go on?",
        f"Draft:\n```json\n{{}}\n```\nFinal:\n```json\n{json.dumps(PLAN)}\n```",
        f"My plan {json.dumps(PLAN)} has two steps.",
        json.dumps(PLAN)[:-1] + ",}",
        str(PLAN),
        json.dumps(PLAN)[:-1],
        json.dumps(PLAN).replace('"steps"', "steps").replace('"why"', "why"),
        json.dumps(PLAN, ensure_ascii=False).replace("两步", "两\n步").replace("两\n步", "两步"),
        '{"steps": [{"id": "N1", "depends": [],}, {"id": "N2", "depends": ["N1",]}], "why": "两步"}',
    ],
)
def test_the_likeliest_candidate_is_what_is_meant(text: str) -> None:
    assert first(text) == PLAN


@pytest.mark.parametrize("text", ["", "No.", "42", '"text"', "null", "a ] b } c"])
def test_no_object_no_candidate(text: str) -> None:
    assert first(text) is None


def test_a_part_of_a_broken_whole_comes_after_the_mended_whole() -> None:
    text = '{"steps": [{"id": "N1"}, {"id": "N2"}], "why": "it said "no""}'
    found = list(candidates(text))
    assert found[0]["steps"] == [{"id": "N1"}, {"id": "N2"}]
    assert {"id": "N1"} in found or [{"id": "N1"}, {"id": "N2"}] in found


def test_a_character_escaped_as_two_halves_stays_one() -> None:
    assert first(r'{"a": "\ud83d\ude00 \u4e24",}') == {"a": "😀 两"}


def test_several_objects_in_a_row_are_candidates_each() -> None:
    assert {"a": 1, "b": 2} in list(candidates('{"x": 1,}\n{"a": 1, "b": 2,}'))


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "[{" * 30, "{a " * 59, "{" * 50_000, '{"a":' * 3000, "[1] " * 20_000, '"' * 50_001 + "{"]
)
def test_hostile_text_ends(text: str) -> None:
    for number, _ in enumerate(candidates(text)):
        assert number < 100_000


def test_endless_brackets_are_not_mended() -> None:
    assert first('{"a": ' * 20 + "1,") is not None
    assert first('{"a": ' * 100 + "1,") is None


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers() | st.lists(st.text(max_size=5))))
def test_what_is_json_is_never_mended(value: dict[str, Any]) -> None:
    for text in (json.dumps(value), f"Here:\n```json\n{json.dumps(value)}\n```\nDone."):
        assert first(text) == value


@given(st.text(alphabet='{}[]",: \n`a1\\', max_size=60))
def test_any_text_gives_objects_and_arrays_or_nothing(text: str) -> None:
    assert all(isinstance(value, (dict, list)) for value in candidates(text))


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": ["WEB", "LOCAL"]},
                    "question": {"type": "string", "minLength": 3, "maxLength": 9},
                },
                "required": ["type", "question"],
                "additionalProperties": False,
            },
        },
        "score": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
    },
    "required": ["steps"],
}


def step(**changes: Any) -> dict[str, Any]:
    return {"type": "WEB", "question": "what", **changes}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"steps": [step()], "score": 0.5}, []),
        ({"steps": [step()], "score": None, "more": 1}, []),
        ([], ["the reply must be of type object, not []"]),
        ({}, ["the reply lacks the key 'steps'"]),
        ({"steps": []}, ["steps must be at least 1 items"]),
        ({"steps": [step()] * 4}, ["steps must be at most 3 items, not 4"]),
        ({"steps": [step(), step(type="PDF")]}, ["steps[1].type must be one of WEB, LOCAL", '"PDF"']),
        ({"steps": [step(question="ab"), step(question="x" * 10)]}, ["at least 3", "at most 9 characters, not 10"]),
        ({"steps": [step(x=1)]}, ["steps[0] has the unknown key 'x'"]),
        ({"steps": [step()], "score": 2}, ["score must be at most 1, not 2"]),
        ({"steps": [step()], "score": float("nan")}, ["score must be of type number or null"]),
        ({"steps": [step()], "score": True}, ["not true"]),
    ],
)
def test_schema(value: Any, words: list[str]) -> None:
    found = "; ".join(faults(value, SCHEMA))
    assert bool(found) is bool(words)
    assert all(word in found for word in words)


def test_a_keyword_that_is_not_checked_is_an_error() -> None:
    with pytest.raises(ValueError, match="pattern"):
        faults("x", {"type": "string", "pattern": "y"})


def test_strict_schemas() -> None:
    assert is_closed(SCHEMA["properties"]["steps"])
    assert not is_closed(SCHEMA)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("plain", "plain"),
        ("<think>a</think>\n\nb", "b"),
        ("<think>\n</think>\n<thinking>c</thinking>b", "b"),
        ("opened by the template\n</think>\n\nb", "b"),
        ("opened by the template</think>b", "b"),
        ("<think>never closed", ""),
        ("all of it thought </think>", ""),
        ("The tag `</think>` closes it.", "The tag `</think>` closes it."),
        ("Models write <think>x</think> first.", "Models write <think>x</think> first."),
        ("  \n", ""),
    ],
)
def test_thinking_is_left_out(raw: str, text: str) -> None:
    assert without_thinking(raw) == text


def test_estimates_know_both_scripts() -> None:
    assert (estimate(""), estimate("abcd" * 10), estimate("你好世界"), estimate("你好 ok")) == (0, 10, 4, 3)


def test_without_json_repair_what_is_json_as_it_stands_is_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "json_repair", None)
    assert list(candidates('Sure: {"a": 1} and {"b": ')) == [{"a": 1}]
