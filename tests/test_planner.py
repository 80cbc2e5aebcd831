"""The offline planner: aspects and groups of sources, deepening from conclusions, a way around a failure."""

from __future__ import annotations

import pytest

from dr.contract import NodeType, check_name
from dr.dag import Dag, Node
from dr.deepening import deepen
from dr.language import repeats
from dr.plan import Step
from dr.planner import MAX_NODES, OfflinePlanner, first_plan, replan
from dr.planning import node_of, step_of
from dr.questions import aspects


def asked(question: str) -> list[str]:
    return [aspect.question for aspect in aspects(question)]


# -- aspects ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        "What is a heat pump?",
        "VIVA Media AG changed its name in 2004. What does their new acronym stand for?",
        "Who is a British physicist and also a chief scientific adviser?",
        'The creator of "Wallace and Gromit" also created what animation comedy?',
        "What is the birthday of this actress, who was the mother of the daughter of King William IV?",
        "The trophy of the game between University of Idaho Vandals and University of Montana Grizzlies is from where?",
        "In what year was the composer of Crime and Punishment born?",
        "谁发明了电话和电报？",
        "热泵的效率是多少？",
    ],
)
def test_one_question_stays_one(question: str) -> None:
    assert asked(question) == [question]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "Which restaurant chain's headquarters is further north, Pizza Inn or Papa Gino's?",
            [
                "What is said about Pizza Inn: restaurant chain's headquarters is further north?",
                "What is said about Papa Gino's: restaurant chain's headquarters is further north?",
            ],
        ),
        (
            "Which opera has more acts, La jolie fille de Perth or Mitridate, re di Ponto?",
            [
                "What is said about La jolie fille de Perth: opera has more acts?",
                "What is said about Mitridate, re di Ponto: opera has more acts?",
            ],
        ),
        (
            "Are both Coldplay and Pierre Bouvier from the same country?",
            [
                "What is said about Coldplay: from the same country?",
                "What is said about Pierre Bouvier: from the same country?",
            ],
        ),
        (
            "What are the populations of Paris and Rome respectively?",
            ["What are the populations of Paris?", "What are the populations of Rome?"],
        ),
        (
            "Compare the cost of wind power and solar power in Germany",
            ["The cost of wind power in Germany?", "The cost of solar power in Germany?"],
        ),
        (
            "What are the length and width of the Panama Canal?",
            ["What is the length of the Panama Canal?", "What is the width of the Panama Canal?"],
        ),
        (
            "What is the capacity of plant A? What did plant B cost?",
            ["What is the capacity of plant A?", "What did plant B cost?"],
        ),
        ("北京与上海的人口分别是多少？", ["北京的人口是多少？", "上海的人口是多少？"]),
        ("《红楼梦》和《西游记》的作者分别是谁？", ["《红楼梦》的作者是谁？", "《西游记》的作者是谁？"]),
        (
            "特斯拉的营收、利润和员工人数分别是多少？",
            ["特斯拉的营收是多少？", "特斯拉的利润是多少？", "特斯拉的员工人数是多少？"],
        ),
        ("北京和上海哪个人口更多？", ["关于北京有哪些说法：人口更多？", "关于上海有哪些说法：人口更多？"]),
        ("光合作用与呼吸作用有何区别？", ["关于光合作用有哪些说法？", "关于呼吸作用有哪些说法？"]),
        ("比较热泵和燃气锅炉的效率", ["关于热泵有哪些说法：效率？", "关于燃气锅炉有哪些说法：效率？"]),
    ],
)
def test_what_can_be_asked_apart_is(question: str, expected: list[str]) -> None:
    assert asked(question) == expected


def test_a_question_that_speaks_of_the_one_before_comes_after_it() -> None:
    first, second = aspects("Who wrote Dune, and where did he study?")
    assert (first.question, first.after) == ("Who wrote Dune?", None)
    assert (second.question, second.after) == ("Where did he study (after: Who wrote Dune)?", 0)
    first, second = aspects("《三体》的作者是谁，他毕业于哪所大学？")
    assert first.question == "《三体》的作者是谁？"
    assert (second.question, second.after) == ("他毕业于哪所大学（承接：《三体》的作者是谁）？", 0)


def test_a_questionnaire_is_not_taken_apart() -> None:
    many = " ".join(f"What is the cost of plant {c}?" for c in "ABCDEFGHIJ")
    assert asked(many) == [many]


@pytest.mark.parametrize(
    "question", ["", " ", "?", "？", "a", "和", "X or Y?", "或", "，，；", "A and B", "《", "{} or {}?"]
)
def test_odd_questions_make_no_fault(question: str) -> None:
    assert len(first_plan(question, ["/docs"], False).steps) >= 1


# -- the first plan ---------------------------------------------------------------------------------------------------


def test_one_source_and_one_step_are_a_single_node_and_said_so() -> None:
    plan = first_plan("What is a heat pump?", ["/docs"], False)
    (step,) = plan.steps
    assert (step.id, step.tool_name) == ("N1", "LOCAL")
    assert step.args == {"sub_question": "What is a heat pump?", "source": "/docs", "depends_on": []}
    assert plan.single_reason and "single node" in plan.single_reason
    assert "一个节点" in (first_plan("热泵是什么？", ["/docs"], False).single_reason or "")


def test_one_node_per_aspect_and_group_of_sources() -> None:
    sources = ["/docs", "/notes.txt", "https://a.example/1", "https://a.example/2", "https://b.example/"]
    plan = first_plan("What is the cost of plant A? Who owns plant B?", sources, False)
    made = [(s.tool_name, s.args["source"]) for s in plan.steps]
    assert made[: len(made) // 2] == [
        ("LOCAL", "/docs"),
        ("LOCAL", "/notes.txt"),
        ("WEB", "https://a.example/1; https://a.example/2"),
        ("WEB", "https://b.example/"),
    ]
    assert made[len(made) // 2 :] == made[: len(made) // 2]
    assert plan.single_reason is None
    assert [s.id for s in plan.steps] == [f"N{n}" for n in range(1, 9)]


def test_an_aspect_that_comes_after_another_depends_on_it_in_its_group() -> None:
    plan = first_plan("Who wrote Dune, and where did he study?", ["/a", "/b"], False)
    assert [s.args["depends_on"] for s in plan.steps] == [[], [], ["N1"], ["N2"]]


def test_many_sources_are_put_together() -> None:
    plan = first_plan("What is the cost? Who owns plant B?", [f"/f{n}.txt" for n in range(40)], False)
    assert len(plan.steps) <= MAX_NODES
    used = [s for step in plan.steps for s in step.args["source"].split("; ")]
    assert sorted(used) == sorted(2 * [f"/f{n}.txt" for n in range(40)])
    counts = [len(step.args["source"].split("; ")) for step in plan.steps]
    assert max(counts) - min(counts) <= 4


def test_without_a_source_the_web_is_searched() -> None:
    (step,) = first_plan("What is a heat pump?", [], False).steps
    assert (step.tool_name, step.args["source"]) == ("WEB", "")


def test_memory_is_asked_when_it_is_meant_or_nothing_else_is_there() -> None:
    def types(question: str, sources: list[str], memory: bool) -> list[str]:
        return [s.tool_name for s in first_plan(question, sources, memory).steps]

    assert types("What is a heat pump?", ["/docs"], True) == ["LOCAL"]
    assert types("What do I prefer?", ["/docs"], True) == ["LOCAL", "MEMORY"]
    assert types("我之前的偏好是什么？", ["/docs"], True) == ["LOCAL", "MEMORY"]
    assert types("What is a heat pump?", [], True) == ["WEB", "MEMORY"]
    assert types("What do I prefer?", ["/docs"], False) == ["LOCAL"]


def test_a_script_is_run_only_when_asked() -> None:
    assert first_plan("What is the output of the script?", ["/a.py"], False).steps[0].tool_name == "CODE"
    assert first_plan("What does the function parse do?", ["/a.py"], False).steps[0].tool_name == "LOCAL"
    assert first_plan("运行脚本的结果是什么？", ["/a.py", "/docs"], False).steps[0].tool_name == "CODE"


def test_a_plan_is_a_valid_dag_and_steps_survive_it() -> None:
    plan = first_plan("北京和上海哪个人口更多？", ["/docs", "https://a.example/x;y"], False)
    dag = Dag.new("t", "北京和上海哪个人口更多？", [node_of(s) for s in plan.steps], "zh")
    again = Dag.parse(dag.render())
    assert [step_of(n).signature for n in again.work_nodes] == [s.signature for s in plan.steps]


# -- deepening --------------------------------------------------------------------------------------------------------


def node(node_id: str, question: str, source: str = "/docs", parents: tuple[str, ...] = ()) -> Node:
    return Node(node_id, NodeType.LOCAL, question, parents, source=source)


def conclusion(body: str, leads: str = "", place: str = "/docs/p1.txt") -> str:
    lines = [f"Leads: {leads}"] if leads else []
    return f"[结论] {body} [local-1]\n\n" + "\n".join([*lines, f'来源：{place}, L1 — "{body}" [local-1]'])


ROOT = "Who directed the film with Ed Oxenbould?"
FIRST = [node("N1", ROOT)]


def test_a_lead_becomes_a_node() -> None:
    found = deepen(ROOT, FIRST, {"N1": conclusion("Ed Oxenbould is in The Visit.", "The Visit; Paper Planes")}, 2, 2)
    assert [s.id for s in found.steps] == ["N1_the_visit", "N1_paper_planes"]
    step = found.steps[0]
    assert step.tool_name == "LOCAL"
    assert step.args["source"] == "/docs"
    assert step.args["depends_on"] == ["N1"]
    assert step.args["sub_question"] == "What is said about The Visit, with regard to directed, film?"
    assert "The Visit" in found.reason


def test_chinese_leads() -> None:
    text = "[结论] 热泵由北岸能源公司建成。[local-1]\n\n线索：北岸能源公司；格伦湾市\n来源：/p1.txt — “热泵” [local-1]"
    root = "热泵的建造公司的总经理是谁？"
    found = deepen(root, [node("N1", root)], {"N1": text}, 2, 4)
    assert [s.args["sub_question"] for s in found.steps] == [
        "关于《北岸能源公司》有哪些说法（建造、总经理）？",
        "关于《格伦湾市》有哪些说法（建造、总经理）？",
    ]
    for step in found.steps:
        assert check_name(str(step.id), "node id").startswith("N1_")


def test_room_is_obeyed_and_the_best_lead_of_each_node_comes_first() -> None:
    nodes = [node("N1", "What is said about A?"), node("N2", "What is said about B?")]
    findings = {"N1": conclusion("A is a.", "Alpha One; Alpha Two"), "N2": conclusion("B is b.", "Beta One; Beta Two")}
    found = deepen("Is A or B bigger?", nodes, findings, 2, 3)
    assert [s.id for s in found.steps] == ["N1_alpha_one", "N2_beta_one", "N1_alpha_two"]
    assert deepen("Is A or B bigger?", nodes, findings, 2, 0).steps == []


def test_what_was_read_or_asked_is_not_asked_again() -> None:
    read = conclusion("Ed Oxenbould is in The Visit.", "The Visit", place="/docs/The Visit.txt")
    found = deepen(ROOT, FIRST, {"N1": read}, 2, 2)
    assert found.steps == []
    again = [*FIRST, node("N1_the_visit", "What is said about The Visit?", parents=("N1",))]
    leads = {
        "N1": conclusion("Ed.", "The Visit"),
        "N1_the_visit": conclusion("It was directed by M. Night.", "The Visit"),
    }
    assert deepen(ROOT, again, leads, 3, 1).steps == []


def test_no_new_node_has_a_reason_in_the_question_s_language() -> None:
    nothing = deepen(ROOT, FIRST, {"N1": conclusion("Ed Oxenbould is an actor.")}, 2, 2)
    assert nothing.steps == []
    assert "directed" in nothing.reason
    covered = deepen(ROOT, FIRST, {"N1": conclusion("M. Night directed the film with Ed Oxenbould.")}, 2, 2)
    assert covered.steps == []
    assert covered.reason and "directed" not in covered.reason
    assert deepen(ROOT, FIRST, {}, 2, 2).reason
    zh = deepen("热泵的效率是多少？", [node("N1", "热泵的效率是多少？")], {"N1": "[结论] 热泵很好。[local-1]"}, 2, 2)
    assert "效率" in zh.reason


def test_a_contradiction_is_looked_into_with_both_sources() -> None:
    nodes = [node("N1", "What is the capacity?", "/a"), node("N2", "How large is it?", "/b")]
    findings = {
        "N1": conclusion("The plant has a capacity of 12 MW in total."),
        "N2": conclusion("The plant has a capacity of 15 MW in total."),
    }
    (step,) = deepen("What is the capacity of the plant?", nodes, findings, 2, 4).steps
    assert step.id == "N1_conflict"
    assert step.args["depends_on"] == ["N1", "N2"]
    assert step.args["source"] == "/a; /b"
    assert "12" in step.args["sub_question"]
    assert "15" in step.args["sub_question"]
    later = [*nodes, node("N1_conflict", step.args["sub_question"], "/a; /b", ("N1", "N2"))]
    more = {**findings, "N1_conflict": conclusion("The plant has a capacity of 12 MW in total.")}
    assert deepen("What is the capacity of the plant?", later, more, 3, 4).steps == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The filter is cleaned every 30 days in summer.", "The filter is cleaned every 90 days in winter."),
        ("水温高于12度时，滤网每90天清洗一次。", "水温低于12度时，滤网每180天清洗一次。"),
    ],
)
def test_what_holds_under_other_conditions_is_no_contradiction(one: str, other: str) -> None:
    nodes = [node("N1", "How often is it cleaned?", "/a"), node("N2", "When is the filter cleaned?", "/b")]
    assert not deepen("filter", nodes, {"N1": conclusion(one), "N2": conclusion(other)}, 2, 4).steps


def test_a_note_covers_nothing() -> None:
    text = conclusion("The tank of Orrin is red.").replace("\n\n", "\n\nNote: Nothing on: lighthouse.\n\n", 1)
    assert "lighthouse" in text
    why = deepen("How tall is the lighthouse of Orrin?", [node("N1", "q", "/a")], {"N1": text}, 2, 4).reason
    assert "lighthouse" in why


def test_different_things_are_no_contradiction() -> None:
    nodes = [node("N1", "a?", "/a"), node("N2", "b?", "/b")]
    findings = {
        "N1": conclusion("The plant has a capacity of 12 MW."),
        "N2": conclusion("The boiler burns 15 tonnes of coal an hour."),
    }
    assert deepen("What is the capacity?", nodes, findings, 2, 4).steps == []


def test_names_that_two_searches_mention_are_searched_for() -> None:
    nodes = [Node(f"N{n}", NodeType.WEB, f"question {n}?", ()) for n in (1, 2)]
    findings = {"N1": "[结论] It was built by Nora Lind.", "N2": "[结论] The owner, Nora Lind, sold it."}
    (step,) = deepen("Who financed the tower?", nodes, findings, 2, 4).steps
    assert (step.id, step.tool_name, step.args["source"]) == ("N1_nora_lind", "WEB", "")
    assert step.args["depends_on"] == ["N1", "N2"]


def test_ids_stay_unique_and_valid() -> None:
    nodes = [*FIRST, node("N1_the_visit", "What else is there?")]
    long = "A Title That Is Longer Than Any Node Identifier Should Ever Be"
    found = deepen(ROOT, nodes, {"N1": conclusion("Ed.", f"The Visit; {long}")}, 2, 4)
    ids = [str(s.id) for s in found.steps]
    assert ids[0] == "N1_the_visit_2"
    assert len(set(ids)) == 2
    assert all(check_name(i, "node id") == i for i in ids)
    assert max(map(len, ids)) < 40


def test_the_planner_object_sees_the_dag() -> None:
    dag = Dag.new("t", ROOT, FIRST, "en")
    found = OfflinePlanner().deepen(ROOT, dag, {"N1": conclusion("Ed.", "The Visit")}, 2, 2)
    assert [s.id for s in found.steps] == ["N1_the_visit"]
    assert repeats(found.steps[0].args["sub_question"], [ROOT]) is None


# -- replanning -------------------------------------------------------------------------------------------------------


def step(step_id: str, question: str, source: str, result: str | None = None, error: str | None = None) -> Step:
    return Step(step_id, "LOCAL", {"sub_question": question, "source": source, "depends_on": []}, "", result, error)


def test_a_failed_question_goes_to_another_group_that_was_not_asked_it() -> None:
    history = [step("N1", "What is A?", "/a", "found"), step("N2", "What is B?", "/b", None, "no such file")]
    waiting = Step("N3", "LOCAL", {"sub_question": "What is C?", "source": "/a", "depends_on": ["N2"]})
    new = replan("goal", history, "no such file", [history[1], waiting])
    assert [s.id for s in new] == ["N2_other", "N3"]
    assert new[0].args == {"sub_question": "What is B?", "source": "/a", "depends_on": []}
    assert new[1].args["depends_on"] == ["N2_other"]
    assert waiting.args["depends_on"] == ["N2"]


def test_no_way_around_is_no_plan_and_the_failure_is_skipped() -> None:
    history = [step("N1", "What is B?", "/a", "found"), step("N2", "What is B?", "/b", None, "no such file")]
    assert replan("goal", history, "no such file", [history[1]]) == []
    assert OfflinePlanner().replan("goal", history, "no such file") == []
    again = [step("N1", "What is A?", "/a", "x"), step("N2_other", "What is B?", "/a", None, "e")]
    assert replan("goal", again, "e", [again[1]]) == []
