"""The machine over a DAG: readiness, failure policies, budgets, revisions; no order of events may dead-lock it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dr.contract import State
from dr.machine import Failure, PlanMachine
from dr.plan import Step


def node(name: str, *parents: str, question: str = "q") -> Step:
    return Step(name, "LOCAL", {"sub_question": question, "depends_on": list(parents)})


def machine(*steps: Step, **options: Any) -> PlanMachine:
    made = PlanMachine(**{"max_steps": 50, "on_failure": "skip", **options})
    made.commit(steps)
    return made


def ready(m: PlanMachine) -> list[str]:
    return [s.id for s in m.ready()]


def succeed(m: PlanMachine, *names: str) -> None:
    for name in names:
        m.start(name)
        m.succeed(name, f"answer of {name}")


def fail(m: PlanMachine, name: str, error: str = "broken") -> Failure:
    m.start(name)
    return m.fail(name, error)


def test_a_node_is_ready_as_soon_as_its_own_parents_are_settled() -> None:
    m = machine(node("A"), node("B"), node("C", "A"), node("D", "A", "B"))
    assert ready(m) == ["A", "B"]
    succeed(m, "A")
    assert ready(m) == ["B", "C"]
    succeed(m, "B")
    assert ready(m) == ["C", "D"]


def test_skip_lets_a_dependant_run_with_the_parents_that_are_left() -> None:
    m = machine(node("A"), node("B"), node("C", "A", "B"), node("D", "A"), node("E", "D"))
    assert fail(m, "A") is Failure.GO_ON
    assert m.states["D"] is State.SKIPPED
    assert m.states["E"] is State.SKIPPED
    assert ready(m) == ["B"]
    succeed(m, "B")
    assert ready(m) == ["C"]


def test_a_skipped_chain_of_a_thousand_needs_no_recursion() -> None:
    chain = [node("N0"), *(node(f"N{i}", f"N{i - 1}") for i in range(1, 1000))]
    m = machine(*chain)
    fail(m, "N0")
    assert m.idle
    assert sum(s is State.SKIPPED for s in m.states.values()) == 999


def test_abort_and_fatal_end_at_once() -> None:
    m = machine(node("A"), node("B"), on_failure="abort")
    assert fail(m, "A") is Failure.END
    assert m.ended == ("failed", "aborted")
    assert m.ready() == []
    m = machine(node("A"), on_failure="replan")
    m.start("A")
    assert m.fail("A", "no credentials", fatal=True) is Failure.END


def test_a_failure_waits_for_the_planner_and_holds_its_dependants_only() -> None:
    m = machine(node("A"), node("B"), node("C", "A"), node("D", "B"), on_failure="replan")
    assert fail(m, "A") is Failure.ASK_PLANNER
    assert [s.id for s in m.remaining()] == ["A", "B", "C", "D"]
    succeed(m, "B")
    assert ready(m) == ["D"]
    assert not m.idle
    unwanted = m.revise([node("A", question="other"), node("C", "A"), node("D", "B"), node("X")])
    assert unwanted == []
    assert m.revisions[0].to_dict() == {"revision": 1, "removed": [], "added": ["X"], "revised": ["A"]}
    assert set(ready(m)) == {"A", "D", "X"}


def test_completed_steps_never_run_again_whatever_the_planner_repeats() -> None:
    m = machine(node("A"), node("B"), on_failure="replan")
    succeed(m, "A")
    fail(m, "B")
    m.revise([node("A"), node("B2")])
    assert ready(m) == ["B2"]
    assert m.states["B"] is State.FAILED
    assert m.revisions[0].removed == ["B"]


def test_a_replan_can_drop_a_running_step() -> None:
    m = machine(node("A"), node("B"), node("C"), on_failure="replan")
    m.start("C")
    fail(m, "A")
    assert m.revise([node("B")]) == ["C"]


def test_an_empty_replan_is_a_skip() -> None:
    m = machine(node("A"), node("B", "A"), node("C"), on_failure="replan")
    fail(m, "A")
    m.revise([])
    assert m.states["B"] is State.SKIPPED
    assert ready(m) == ["C"]
    assert m.revisions == []
    assert m.replans_used == 1


def test_a_spent_replan_budget_is_a_skip_and_is_remembered() -> None:
    m = machine(node("A"), node("B", "A"), node("C"), on_failure="replan", max_replans=0)
    assert fail(m, "A") is Failure.GO_ON
    assert m.spent == "replan_budget"
    assert ready(m) == ["C"]


def test_the_step_budget_counts_every_attempt() -> None:
    m = machine(node("A"), node("B"), node("C"), max_steps=2)
    m.start("A")
    assert m.may_try_again()
    m.try_again("A")
    assert not m.may_try_again()
    m.succeed("A", "x")
    assert m.ready() == []
    assert m.spent == "step_budget"


def test_no_more_is_offered_than_the_step_budget_allows() -> None:
    m = machine(*(node(f"N{i}") for i in range(5)), max_steps=3)
    assert ready(m) == ["N0", "N1", "N2"]


def test_reopening_a_node_reopens_its_descendants() -> None:
    m = machine(node("A"), node("B", "A"), node("C", "B"), node("D"))
    for name in ("A", "B", "C", "D"):
        succeed(m, name)
    assert m.idle
    assert m.reopen("B") == ["B", "C"]
    assert ready(m) == ["B"]
    assert m.states["A"] is State.DONE


def test_restoring_gives_the_same_machine() -> None:
    steps = [node("A"), node("B"), node("C", "A"), node("D", "B")]
    states = {"A": State.DONE, "B": State.FAILED, "C": State.PENDING, "D": State.PENDING}
    m = PlanMachine(on_failure="skip")
    m.restore(steps, states, steps_taken=3, replans_used=1, revisions=[], undecided=["B"])
    assert ready(m) == ["C"]
    assert m.decide("B") is Failure.GO_ON
    assert m.states["D"] is State.SKIPPED
    assert (m.steps_taken, m.replans_used) == (3, 1)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 25), st.sampled_from(["replan", "skip", "abort"]))
def test_no_order_of_outcomes_and_edits_dead_locks(rng: random.Random, size: int, policy: str) -> None:
    """Whatever happens: something runs, is ready or is being replanned, or all is settled or a budget spent."""
    names = [f"N{i}" for i in range(size)]
    steps = [node(n, *rng.sample(names[:i], k=min(i, rng.randint(0, 3)))) for i, n in enumerate(names)]
    m = machine(*steps, on_failure=policy, max_steps=rng.randint(1, 3 * size), max_replans=rng.randint(0, 3))
    running: list[str] = []
    for _ in range(20 * size + 50):
        if m.ended:
            return
        for step in m.ready():
            if rng.random() < 0.7:
                m.start(step.id)
                running.append(step.id)
        if running:
            name = running.pop(rng.randrange(len(running)))
            if name not in m.states or m.states[name] is not State.RUNNING:
                continue
            if rng.random() < 0.6:
                m.succeed(name, "ok")
            elif m.fail(name, "broken") is Failure.ASK_PLANNER:
                new = [s for s in m.remaining() if rng.random() < 0.8]
                kept = {s.id for s in new} | {i for i, s in m.states.items() if s is State.DONE}
                new = [
                    Step(s.id, s.tool_name, {**s.args, "depends_on": [d for d in s.args["depends_on"] if d in kept]})
                    for s in new
                ]
                for unwanted in m.revise(new):
                    if unwanted in m.states and m.states[unwanted] is State.RUNNING:
                        m.skip(unwanted, "replanned")
        elif m.idle or not m.may_try_again():
            break
        if rng.random() < 0.05 and m.states:
            settled = [i for i, s in m.states.items() if s.settled]
            if settled:
                for again in m.reopen(rng.choice(settled)):
                    if again in running:
                        running.remove(again)
    blocked = [i for i, s in m.states.items() if not s.settled]
    assert not blocked or not m.may_try_again() or running or m.ready()


def test_every_event_carries_what_a_tracer_needs() -> None:
    seen: list[tuple[str, dict[str, Any]]] = []
    m = PlanMachine(on_failure="skip", emit=lambda e: seen.append((e.type, e.payload)), clock=lambda: 1.0)
    m.commit([node("A"), node("B", "A")])
    fail(m, "A", "ValueError: no")
    assert [t for t, _ in seen] == ["plan.commit", "step.start", "step.end", "step.skip"]
    assert seen[2][1] == {"step_id": "A", "outcome": "error", "error": "ValueError: no"}


def test_an_unknown_budget_order_is_replan_first() -> None:
    m = machine(node("A"), on_failure="replan", max_replans=0, max_steps=1)
    fail(m, "A")
    assert m.spent == "replan_budget"


@pytest.mark.parametrize("policy", ["replan", "skip"])
def test_a_single_failing_node_ends_idle(policy: str) -> None:
    m = machine(node("A"), on_failure=policy, max_replans=0)
    fail(m, "A")
    assert m.idle
