"""Planning with a model: prompts without source text, replies validated and shown back, the offline planner behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dr.agent_call import ask_json
from dr.agent_planner import AgentPlanner
from dr.contract import State
from dr.dag import Dag
from dr.errors import ChatError
from dr.plan import Step
from dr.planner import OfflinePlanner, first_plan
from dr.planning import node_of
from dr.thinking import Thought

QUESTION = "How tall is the tower of Elmsay, and who built it?"
SECRET = "The tower is 81 m tall, says the survey."


class Model:
    """Replies in order; what it was asked is kept."""

    def __init__(self, *replies: str) -> None:
        self.replies, self.asked = list(replies), list[str]()

    def __call__(self, prompt: str) -> str:
        self.asked.append(prompt)
        return self.replies.pop(0) if self.replies else "no more replies"


def planner(*replies: str) -> tuple[AgentPlanner, Model, list[str]]:
    model, notes = Model(*replies), list[str]()

    def ask(prompt: str, validate: Callable[[Any], Any], language: str, schema: Any) -> Any:
        return ask_json(model, prompt, validate, language)

    return AgentPlanner(ask, notes.append), model, notes


def node(id_: str, question: str, depends: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {"id": id_, "type": "LOCAL", "question": question, "depends": depends or [], "source": "/d", **more}


def reply(*nodes: dict[str, Any], reason: str = "because") -> str:
    return json.dumps({"nodes": nodes, "reason": reason}, ensure_ascii=False)


def step(id_: str, question: str, depends: tuple[str, ...] = (), **outcome: Any) -> Step:
    args = {"sub_question": question, "source": "/d", "depends_on": list(depends)}
    return Step(id_, "LOCAL", args, "", **outcome)


def dag(*steps: Step) -> Dag:
    return Dag.new(QUESTION, QUESTION, [node_of(s, State.DONE) for s in steps], "en")


# -- the first plan ----------------------------------------------------------------------------------------------------


def test_makes_steps_of_a_reply_and_tells_the_model_question_and_sources() -> None:
    thinking, model, notes = planner(
        reply(node("N1", "How tall?"), node("N2", "Who built it?", ["N1"], expect="a name"))
    )
    found = thinking.first_plan(QUESTION, ["/docs/survey.pdf"], memory=True)
    assert [s.id for s in found.steps] == ["N1", "N2"] and found.single_reason is None
    assert found.steps[1].args == {"sub_question": "Who built it?", "source": "/d", "depends_on": ["N1"]}
    assert found.steps[1].expected_outcome == "a name"
    assert QUESTION in model.asked[0] and "/docs/survey.pdf" in model.asked[0] and "MEMORY" in model.asked[0]
    assert "$" not in model.asked[0] and notes == []


def test_a_single_node_says_why() -> None:
    thinking, _, _ = planner(reply(node("N1", "How tall?"), reason="one source answers"))
    assert thinking.first_plan(QUESTION, [], memory=False).single_reason == "one source answers"


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("I think we should look at the survey.", "no JSON"),
        ("[1, 2]", "one object"),
        ('{"nodes": []}', "at least one node"),
        (reply(node("N1", "")), "N1 has no question"),
        (reply({**node("N1", "q"), "type": "BOOK"}), "use one of"),
        (reply(node("../x", "q")), "cannot be an id"),
        (reply(node("N1", "q", ["N9"])), "N9, which is no node"),
        (reply(node("N1", "a", ["N2"]), node("N2", "b", ["N1"])), "cycle"),
        (reply(node("N1", "a"), node("n1", "b")), "same id"),
        (reply(*(node(f"N{i}", f"question number {i}") for i in range(1, 40))), "too many"),
    ],
)
def test_an_invalid_reply_is_shown_back_with_the_error(bad: str, words: str) -> None:
    thinking, model, notes = planner(bad, reply(node("N1", "How tall?")))
    assert [s.id for s in thinking.first_plan(QUESTION, [], memory=False).steps] == ["N1"]
    assert words in model.asked[1] and bad[:60] in model.asked[1] and model.asked[0] in model.asked[1]
    assert notes == []


def test_json_in_prose_fences_and_thinking_is_found() -> None:
    text = f"<think>{{not}} it</think>Sure!\n```json\n{reply(node('N1', 'How tall?'))}\n```\nDone."
    thinking, model, _ = planner(text)
    assert len(thinking.first_plan(QUESTION, [], memory=False).steps) == 1 and len(model.asked) == 1


def test_after_three_bad_replies_the_offline_planner_stands_in_and_says_so() -> None:
    thinking, model, notes = planner("a", "b", "c", reply(node("N1", "late")))
    found = thinking.first_plan(QUESTION, ["/docs"], memory=False)
    assert len(model.asked) == 3
    assert found.steps == first_plan(QUESTION, ["/docs"], False).steps
    assert len(notes) == 1 and "offline planner stands in" in notes[0]


def test_speaks_the_questions_language() -> None:
    thinking, model, notes = planner("不是 JSON", "x", "y")
    thinking.first_plan("灯塔有多高？是谁建造的？", [], memory=False)
    assert "你是深度研究的规划者" in model.asked[0] and "上一次回复无法使用" in model.asked[1]
    assert "离线规划器代替" in notes[0]


# -- after a failure ---------------------------------------------------------------------------------------------------


def history() -> list[Step]:
    return [
        step("N1", "How tall?", result=f'[结论] {SECRET}\n\n来源：/d — "{SECRET}"'),
        step("N2", "Who?", error="no page"),
    ]


def test_replans_what_is_left_and_keeps_what_is_named() -> None:
    thinking, model, _ = planner(reply(node("N2_other", "Who was the builder?"), {"id": "N4"}))
    waiting = [step("N2", "Who?", error="no page"), step("N3", "When?", ("N2",)), step("N4", "Where?", ("N3",))]
    new = thinking.replan(QUESTION, history(), "no page", waiting)
    # N3 goes with N4, which waits for it.
    assert [s.id for s in new] == ["N2_other", "N4", "N3"]
    assert new[1] is waiting[2]
    assert "no page" in model.asked[0] and "When?" in model.asked[0] and SECRET in model.asked[0]


def test_a_settled_node_named_once_more_is_passed_over() -> None:
    thinking, model, _ = planner(reply({"id": "N1"}, {"id": "N2"}, node("N2_other", "Who was the builder?")))
    assert [s.id for s in thinking.replan(QUESTION, history(), "no page", [])] == ["N2_other"]
    assert len(model.asked) == 1


def test_no_prompt_holds_the_quotes_of_source_lines() -> None:
    thinking, model, _ = planner(reply(), reply(), '{"answer": "It is 81 m tall [N1], and that is all."}')
    quoted = f'[结论] It is tall. It is stone.\n\n来源：/d — "{SECRET}"'
    done = [step("N1", "How tall?", result=quoted), step("N2", "Who?", error="no page")]
    thinking.replan(QUESTION, done, "no page", done[1:])
    thinking.deepen(QUESTION, dag(done[0]), {"N1": quoted}, 2, 2)
    thinking.synthesis(QUESTION, dag(done[0]), {"N1": quoted})
    assert len(model.asked) == 3
    assert all("It is stone." in prompt and SECRET not in prompt for prompt in model.asked)


def test_may_give_up_and_may_not_ask_again_what_is_done() -> None:
    assert planner(reply())[0].replan(QUESTION, history(), "no page", history()[1:]) == []
    thinking, model, _ = planner(reply(node("N1", "How tall once more?")), reply())
    assert thinking.replan(QUESTION, history(), "no page", history()[1:]) == []
    assert "N1 is done already" in model.asked[1]


def test_falls_back_to_the_offline_planner_of_the_same_failure() -> None:
    thinking, _, notes = planner()
    expected = OfflinePlanner().replan(QUESTION, history(), "no page", history()[1:])
    assert thinking.replan(QUESTION, history(), "no page", history()[1:]) == expected and notes


# -- deepening and the answer ------------------------------------------------------------------------------------------


def test_deepens_with_new_questions_only() -> None:
    repeated = reply(node("N1_detail", "How tall is it?"))
    taken = reply(node("N1", "Which stone is it of?"))
    good = reply(node("N1_stone", "Which stone is it of?", ["N1"]), reason="the material is open")
    thinking, model, _ = planner(repeated, taken, good)
    found = thinking.deepen(QUESTION, dag(step("N1", "How tall is it?")), {"N1": "[结论] 81 m."}, 2, 4)
    assert [s.id for s in found.steps] == ["N1_stone"] and found.reason == "the material is open"
    assert "asked already" in model.asked[1] and "is taken" in model.asked[2]


def test_no_deepening_needs_a_reason_and_room_is_kept() -> None:
    thinking, model, _ = planner(
        '{"nodes": []}', reply(node("A", "a b c?"), node("B", "d e f?")), reply(reason="all is said")
    )
    found = thinking.deepen(QUESTION, dag(step("N1", "How tall is it?")), {"N1": "[结论] 81 m."}, 3, 1)
    assert found.steps == [] and found.reason == "all is said"
    assert "reason is missing" in model.asked[1] and "at most 1" in model.asked[2]


def test_an_answer_cites_nodes_or_is_shown_back() -> None:
    findings = {"N1": "[结论] It is 81 m tall. It is stone."}
    thinking, model, notes = planner(
        '{"answer": "It is 81 m tall, as everybody knows."}', '{"answer": "It is 81 m tall [N1]."}'
    )
    assert thinking.synthesis(QUESTION, dag(step("N1", "How tall?")), findings) == "It is 81 m tall [N1]."
    assert "cites no node" in model.asked[1]
    thinking, _, notes = planner()
    assert thinking.synthesis(QUESTION, dag(step("N1", "How tall?")), findings) is None
    assert "quotes the conclusions" in notes[0]


def test_every_prompt_is_there_in_both_languages_with_the_same_facts() -> None:
    import re

    sop = Path(__file__).resolve().parent.parent / "sop"
    for name in ("plan_first", "plan_again", "plan_deeper", "synthesis"):
        facts = [
            set(re.findall(r"\$(\w+)", (sop / f"{name}.{lang}.md").read_text(encoding="utf-8")))
            for lang in ("zh", "en")
        ]
        assert facts[0] == facts[1] and facts[0], name


def test_a_thought_brings_its_answer_or_its_error_to_the_loop() -> None:
    told: list[str] = []
    seen: list[Any] = []

    def fails() -> None:
        raise ChatError("ask", "nobody answers")

    for ask in (lambda: 42, fails):
        thought = Thought(ask, lambda: told.append("told"), lambda answer: seen.append(answer))
        thought.join()
        assert thought.done
        thought.apply()
    assert told == ["told", "told"] and seen[0]() == 42
    with pytest.raises(ChatError):
        seen[1]()
