"""PlanExecuteAgent: every order of events and edge case of the plan-execute control flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from seed_planner import Recorder, make_deterministic_planner

from dr.plan import Step, plan_diff
from dr.plan_execute import PlanExecuteAgent, ToolFailure


def line(*tools: str, first: int = 1) -> list[Step]:
    return [Step(first + i, tool) for i, tool in enumerate(tools)]


class TestLinear:
    def test_a_line_completes(self) -> None:
        recorder = Recorder()
        result = PlanExecuteAgent(make_deterministic_planner(None), recorder).run("g")
        assert (result.status, result.reason) == ("completed", "goal_met")
        assert [s.id for s in result.history] == [1, 2, 3, 4]
        assert result.revisions == []

    def test_no_plan_at_first(self) -> None:
        result = PlanExecuteAgent(lambda *_: [], Recorder()).run("g")
        assert (result.status, result.reason) == ("failed", "no_plan")
        assert [e.type for e in result.events] == ["plan.commit", "session.complete"]
        assert result.events[0].payload == {"revision": 0, "steps": []}


class TestReplan:
    def test_once_on_a_transform_failure(self) -> None:
        recorder = Recorder()
        result = PlanExecuteAgent(make_deterministic_planner(2), recorder).run("g")
        assert result.status == "completed"
        modes = [args.get("mode") for tool, args in recorder.calls if tool == "transform"]
        assert modes == ["v1", "v2"]
        assert len(result.revisions) == 1

    def test_twice(self) -> None:
        recorder = Recorder(failures={("transform", "v1"): 1, ("submit", None): 1})
        plans = {"transform": [2, 3, 4], "submit": [9]}

        def planner(goal: str, history: Sequence[Step], error: str | None) -> list[Step]:
            if error is None:
                return make_deterministic_planner(None)(goal, history, None)
            if "transform" in error:
                return [Step(2, "transform", {"mode": "v2"}), *line("render", "submit", first=3)]
            return [Step(plans["submit"][0], "submit", {"again": True})]

        result = PlanExecuteAgent(planner, recorder).run("g")
        assert (result.status, result.reason) == ("completed", "goal_met")
        assert [d.revision for d in result.revisions] == [1, 2]
        assert [s.id for s in result.history] == [1, 2, 2, 3, 4, 9]
        assert result.revisions[1].to_dict() == {"revision": 2, "removed": [4], "added": [9], "revised": []}

    def test_the_diff_is_an_event(self) -> None:
        result = PlanExecuteAgent(make_deterministic_planner(2), Recorder()).run("g")
        diffs = [e for e in result.events if e.type == "plan.diff"]
        assert len(diffs) == 1
        assert diffs[0].payload["revision"] == 1
        assert set(diffs[0].payload) == {"revision", "removed", "added", "revised"}
        assert 2 in diffs[0].payload["revised"]

    def test_order_of_events_of_a_replan(self) -> None:
        result = PlanExecuteAgent(make_deterministic_planner(2), Recorder()).run("g")
        types = [e.type for e in result.events]
        failed = next(i for i, e in enumerate(result.events) if e.payload.get("outcome") == "error")
        assert types[failed - 1 : failed + 5] == [
            *("step.start", "step.end", "plan.draft", "plan.diff", "plan.commit", "step.start"),
        ]

    def test_exhaustion(self) -> None:
        recorder = Recorder(always_fail={"transform"})
        planner = make_deterministic_planner(None, always=True)
        result = PlanExecuteAgent(planner, recorder, max_replans=2, max_steps=50).run("g")
        assert (result.status, result.reason) == ("failed", "replan_budget")

    def test_an_identical_broken_plan_is_an_empty_diff_and_is_kept(self) -> None:
        result = PlanExecuteAgent(lambda *_: line("broken"), Recorder(always_fail={"broken"}), max_replans=2).run("g")
        assert [d.to_dict() for d in result.revisions] == [
            {"revision": n, "removed": [], "added": [], "revised": []} for n in (1, 2)
        ]
        assert len([e for e in result.events if e.type == "plan.diff"]) == 2

    def test_giving_up_gracefully(self) -> None:
        result = PlanExecuteAgent(make_deterministic_planner(2, recovery="give_up"), Recorder()).run("g")
        assert result.status == "completed"
        assert [s.id for s in result.history] == [1, 2, 98, 99]

    def test_nothing_to_replan_is_no_plan_without_diff_or_commit(self) -> None:
        result = PlanExecuteAgent(make_deterministic_planner(2, recovery="nothing"), Recorder()).run("g")
        assert (result.status, result.reason) == ("failed", "no_plan")
        assert [e.type for e in result.events][-2:] == ["plan.draft", "session.complete"]
        assert result.revisions == []

    def test_the_diff_is_against_what_was_left_of_the_plan(self) -> None:
        """Step 1 is done when 2 fails: that the new plan lacks it is no removal."""
        result = PlanExecuteAgent(make_deterministic_planner(2), Recorder()).run("g")
        assert result.revisions[0].to_dict() == {"revision": 1, "removed": [], "added": [], "revised": [2]}

    def test_the_planner_learns_history_and_error(self) -> None:
        seen: list[tuple[list[int], str | None]] = []

        def planner(goal: str, history: list[Step], error: str | None) -> list[Step]:
            seen.append(([s.id for s in history], error))
            history.clear()  # it may do what it likes with its copy
            return line("a", "b") if error is None else line("c", first=3)

        result = PlanExecuteAgent(planner, Recorder(always_fail={"b"})).run("g")
        assert seen == [([], None), ([1, 2], "ToolFailure: b")]
        assert [s.id for s in result.history] == [1, 2, 3]

    def test_one_object_returned_twice_does_not_rewrite_history(self) -> None:
        step = Step(1, "flaky")
        result = PlanExecuteAgent(lambda *_: [step], Recorder(failures={("flaky", None): 1})).run("g")
        assert [(s.error, s.result) for s in result.history] == [("ToolFailure: flaky", None), (None, "flaky")]


class TestBudgets:
    def test_the_step_budget_caps_execution(self) -> None:
        recorder = Recorder()
        result = PlanExecuteAgent(lambda *_: line(*"abcdefghijklmnopqrst"), recorder, max_steps=5).run("g")
        assert (result.status, result.reason) == ("failed", "step_budget")
        assert len(result.history) == len(recorder.calls) == 5

    def test_exactly_the_budget_completes(self) -> None:
        assert PlanExecuteAgent(lambda *_: line(*"abc"), Recorder(), max_steps=3).run("g").reason == "goal_met"

    def test_no_steps_at_all(self) -> None:
        recorder = Recorder()
        result = PlanExecuteAgent(lambda *_: line("a"), recorder, max_steps=0).run("g")
        assert (result.reason, recorder.calls) == ("step_budget", [])

    def test_no_replans_ends_at_the_first_failure(self) -> None:
        result = PlanExecuteAgent(lambda *_: line("x", "y"), Recorder(always_fail={"x"}), max_replans=0).run("g")
        assert (result.status, result.reason) == ("failed", "replan_budget")
        assert len(result.history) == 1

    def test_a_failure_on_the_last_permitted_step_asks_no_planner(self) -> None:
        calls: list[str | None] = []

        def planner(goal: str, history: Sequence[Step], error: str | None) -> list[Step]:
            calls.append(error)
            return line("a", "x")

        result = PlanExecuteAgent(planner, Recorder(always_fail={"x"}), max_steps=2).run("g")
        assert (result.reason, calls) == ("step_budget", [None])
        assert "plan.draft" not in [e.type for e in result.events]

    def test_both_budgets_spent_is_the_replan_budget(self) -> None:
        agent = PlanExecuteAgent(lambda *_: line("x"), Recorder(always_fail={"x"}), max_steps=1, max_replans=0)
        assert agent.run("g").reason == "replan_budget"


class TestPlannerError:
    @pytest.mark.parametrize("at", [0, 1])
    def test_it_ends_the_session(self, at: int) -> None:
        calls = []

        def planner(goal: str, history: Sequence[Step], error: str | None) -> list[Step]:
            calls.append(error)
            if len(calls) > at:
                raise RuntimeError("out of ideas")
            return line("x")

        result = PlanExecuteAgent(planner, Recorder(always_fail={"x"})).run("g")
        assert (result.status, result.reason) == ("failed", "planner_error")
        assert result.events[-1].payload["error"] == "RuntimeError: out of ideas"
        assert len(result.history) == at

    def test_ctrl_c_is_no_failure(self) -> None:
        def executor(tool: str, args: dict[str, Any]) -> Any:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            PlanExecuteAgent(lambda *_: line("a"), executor).run("g")


class TestEvents:
    def test_their_order(self) -> None:
        result = PlanExecuteAgent(make_deterministic_planner(None), Recorder()).run("g")
        types = [e.type for e in result.events]
        assert (types[0], types[-1]) == ("plan.commit", "session.complete")
        assert (types.count("step.start"), types.count("step.end")) == (4, 4)
        assert result.events[-1].payload == {"reason": "goal_met"}

    def test_as_data(self) -> None:
        result = PlanExecuteAgent(lambda *_: line("a"), Recorder(), clock=lambda: 7.0).run("g").to_dict()
        assert result["history"] == [{"id": 1, "tool": "a", "args": {}, "result": "a", "error": None}]
        assert result["events"][0] == {
            "type": "plan.commit",
            "payload": {"revision": 0, "steps": [{"id": 1, "tool": "a", "outcome": ""}]},
            "ts": 7.0,
        }


def test_order_and_expectation_are_no_revision() -> None:
    old = [Step(1, "a", {"x": 1, "y": 2}, "soon"), Step(2, "b")]
    new = [Step(2, "b"), Step(1, "a", {"y": 2, "x": 1}, "later")]
    assert plan_diff(1, old, new).to_dict() == {"revision": 1, "removed": [], "added": [], "revised": []}


def test_revised_ids_come_in_the_new_order_removed_and_added_sorted() -> None:
    old, new = line("a", "b", "c", "d"), [Step(7, "x"), Step(3, "C"), Step(1, "A"), Step(5, "y")]
    assert plan_diff(4, old, new).to_dict() == {"revision": 4, "removed": [2, 4], "added": [5, 7], "revised": [3, 1]}


def test_any_exception_is_a_failure_with_its_type() -> None:
    result = PlanExecuteAgent(lambda *_: line("a"), Recorder(error=ZeroDivisionError), max_replans=0).run("g")
    assert result.history[0].error == "ZeroDivisionError: a"
    assert issubclass(ToolFailure, Exception)
