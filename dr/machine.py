"""Plan, history and budgets of a run as a pure state machine: steps and outcomes in, events and the next steps out.

The same machine serves a line of steps (dr/plan_execute.py) and a DAG of nodes (dr/runner.py).
It knows no process, no file and no clock but the one it is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from dr.contract import State
from dr.plan import Event, PlanDiff, Step, StepId, plan_diff


class Failure(Enum):
    """What a failed step leads to."""

    GO_ON = "go on"  # its dependants run with the parents that are left, or are skipped
    ASK_PLANNER = "ask the planner"  # call the planner, then revise() with what it returns
    END = "end"  # the session is over


class PlanMachine:
    """The plan from the cursor on, the history, and two hard budgets.

    max_steps: how many attempts may be started, failed ones included. max_replans: how often the planner may be asked
    again. on_failure: "replan", "skip" or "abort". line: steps run one at a time and a failure that is not replanned
    ends the session (the seed's executor); otherwise a failure only takes away what depends on it alone.
    """

    def __init__(
        self,
        *,
        max_steps: int = 12,
        max_replans: int = 5,
        on_failure: str = "replan",
        line: bool = False,
        emit: Callable[[Event], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.max_steps, self.max_replans, self.on_failure, self.line = max_steps, max_replans, on_failure, line
        self._emit_to, self._clock = emit, clock
        self.steps: dict[StepId, Step] = {}
        self.states: dict[StepId, State] = {}
        self.history: list[Step] = []
        self.revisions: list[PlanDiff] = []
        self.events: list[Event] = []
        self.steps_taken = 0
        self.replans_used = 0
        self.ended: tuple[str, str] | None = None
        self.spent: str | None = None  # the first budget that kept something from being done
        self._awaiting_planner: set[StepId] = set()
        self._children: dict[StepId, list[StepId]] = {}
        self._waiting: dict[StepId, int] = {}
        self._ready: dict[StepId, None] = {}
        self._unsettled = 0

    # -- the plan -------------------------------------------------------------------------------------------------

    def commit(self, plan: Sequence[Step]) -> None:
        """Revision 0. An empty plan ends the session."""
        self._install(plan)
        self._emit("plan.commit", revision=0, steps=_outline(plan))
        if not plan:
            self._end("failed", "no_plan")

    def restore(
        self,
        plan: Sequence[Step],
        states: dict[StepId, State],
        *,
        steps_taken: int,
        replans_used: int,
        revisions: Sequence[PlanDiff],
        undecided: Sequence[StepId],
    ) -> None:
        """The machine as the files of a run tell it; emits nothing. Results and errors are those of the steps given.

        undecided: failed steps for which decide() has yet to be called.
        """
        self.steps = {s.id: s for s in plan}
        self.states = {s.id: states.get(s.id, State.PENDING) for s in plan}
        self.history = [s for s in plan if self.states[s.id] in (State.DONE, State.FAILED)]
        self.steps_taken, self.revisions, self.replans_used = steps_taken, list(revisions), replans_used
        self._awaiting_planner = set(undecided)
        self._reindex()

    def append(self, plan: Sequence[Step], why: str) -> None:
        """A deepening round, or nodes added by hand: new steps behind the plan, nothing removed."""
        self._install(plan)
        self._emit("plan.append", why=why, steps=_outline(plan))

    def remaining(self) -> list[Step]:
        """The plan from the cursor on: what is not settled, and what failed and waits for the planner."""
        return [s for i, s in self.steps.items() if not self.states[i].settled or i in self._awaiting_planner]

    def revise(self, new: Sequence[Step]) -> list[StepId]:
        """The planner's answer to a failure. Returns the ids of running steps that are no longer wanted.

        Completed steps never run again, whatever the planner repeats. An empty answer ends a line with no_plan and
        is a skip in a DAG.
        """
        self.replans_used += 1
        revision = len(self.revisions) + 1
        self._emit("plan.draft", revision=revision, steps=_outline(new))
        if not new:
            if self.line:
                self._end("failed", "no_plan")
            self._give_up_planning()
            return []
        if not self.line:
            new = [s for s in new if self.states.get(s.id) is not State.DONE]
        remaining = self.remaining()
        difference = plan_diff(revision, remaining, new)
        self.revisions.append(difference)
        self._emit("plan.diff", **difference.to_dict())
        unwanted = [i for i in [*difference.removed, *difference.revised] if self.states[i] is State.RUNNING]
        failed = {s.id for s in remaining if self.states[s.id] is State.FAILED}
        for step_id in difference.removed:
            if step_id not in failed:  # a failed step stays in the record; one that never ran leaves the plan
                del self.steps[step_id], self.states[step_id]
        self._awaiting_planner.clear()
        self._install([s for s in new if self._is_new_work(s)])
        self._emit("plan.commit", revision=revision, steps=_outline(new))
        return unwanted

    def _is_new_work(self, step: Step) -> bool:
        known = self.steps.get(step.id)
        return self.line or known is None or self.states[step.id] is State.FAILED or known.signature != step.signature

    def _install(self, plan: Sequence[Step]) -> None:
        if self.line:
            self.steps, self.states = {}, {}
        for step in plan:
            # A copy, so that a planner that returns one object twice cannot rewrite history.
            self.steps[step.id] = replace(step, args=dict(step.args), result=None, error=None)
            self.states[step.id] = State.PENDING
        self._reindex()

    # -- execution ------------------------------------------------------------------------------------------------

    def ready(self) -> list[Step]:
        """Steps that may start now, in plan order of becoming ready; none when the step budget is spent."""
        if self.ended:
            return []
        if self.line:
            return self._next_of_line()
        room = self.max_steps - self.steps_taken
        if self._ready and room <= 0:
            self.spent = self.spent or "step_budget"
        return [self.steps[i] for i in list(self._ready)[: max(room, 0)]]

    def _next_of_line(self) -> list[Step]:
        if any(s is State.RUNNING for s in self.states.values()):
            return []
        pending = [s for i, s in self.steps.items() if self.states[i] is State.PENDING]
        if pending and self.steps_taken >= self.max_steps:
            self._end("failed", "step_budget")
            return []
        if not pending:
            self._end("completed", "goal_met")
        return pending[:1]

    def start(self, step_id: StepId) -> None:
        """One attempt of a step begins; it counts in max_steps whatever becomes of it."""
        self.steps_taken += 1
        self.states[step_id] = State.RUNNING
        self._ready.pop(step_id, None)
        self._emit("step.start", step_id=step_id, tool=self.steps[step_id].tool_name)

    def may_try_again(self) -> bool:
        return self.steps_taken < self.max_steps

    @property
    def spent_on_starts(self) -> str | None:
        """The budget that keeps a ready step from starting, if any."""
        if self.may_try_again():
            return None
        return self.spent if self.spent in ("time_budget", "token_budget") else "step_budget"

    def try_again(self, step_id: StepId) -> None:
        """Another attempt of a running step."""
        self.steps_taken += 1
        self._emit("step.retry", step_id=step_id)

    def put_back(self, step_id: StepId) -> None:
        """A running step whose attempt was interrupted, through no fault of its own, is pending again."""
        self.states[step_id] = State.PENDING
        self._reindex()

    def succeed(self, step_id: StepId, result: Any) -> None:
        step = self.steps[step_id]
        step.result, step.error = result, None
        self.states[step_id] = State.DONE
        self._emit("step.end", step_id=step_id, outcome="ok")
        self.history.append(step)
        self._settled(step_id)

    def fail(self, step_id: StepId, error: str, *, fatal: bool = False) -> Failure:
        """A step failed for good, its attempts used up."""
        step = self.steps[step_id]
        step.error = error
        self.states[step_id] = State.FAILED
        self._emit("step.end", step_id=step_id, outcome="error", error=error)
        self.history.append(step)
        self._awaiting_planner.add(step_id)
        return self.decide(step_id, fatal=fatal)

    def decide(self, step_id: StepId, *, fatal: bool = False) -> Failure:
        """What the failure of a step leads to; the budgets are looked at in the order of SPEC 7."""
        self._awaiting_planner.discard(step_id)
        if fatal or self.on_failure == "abort":
            self._end("failed", "aborted")
            return Failure.END
        if self.on_failure == "skip":
            self._settled(step_id)
            return Failure.GO_ON
        for budget, used, limit in (
            ("replan_budget", self.replans_used + bool(self._awaiting_planner), self.max_replans),
            ("step_budget", self.steps_taken, self.max_steps),
        ):
            if used >= limit:
                self.spent = self.spent or budget
                if self.line:
                    self._end("failed", budget)
                    return Failure.END
                self._settled(step_id)
                return Failure.GO_ON
        self._awaiting_planner.add(step_id)
        return Failure.ASK_PLANNER

    def planner_failed(self, error: str) -> None:
        """The planner itself raised: the session ends, and says why."""
        self._end("failed", "planner_error", error=error)

    def skip(self, step_id: StepId, why: str) -> None:
        """Settle a step that has not ended by itself; `why` is a key of dr/words.py or a text."""
        self._mark_skipped(step_id, why)
        self._settled(step_id)

    def reopen(self, step_id: StepId) -> list[StepId]:
        """Run a settled step again, then its descendants. Returns the ids that are pending again, its own first."""
        again, stack = {step_id}, [step_id]
        while stack:
            new = [c for c in self._children.get(stack.pop(), ()) if c not in again]
            again.update(new)
            stack.extend(new)
        for other in again:
            self.states[other] = State.PENDING
            self.steps[other].error = self.steps[other].result = None
        self._awaiting_planner -= again
        self._reindex()
        return [step_id, *(i for i in self.steps if i in again and i != step_id)]

    def remove(self, step_id: StepId) -> None:
        """Take a step out of the plan, as an edit by hand asks; what depended on it must have been changed first."""
        self.steps.pop(step_id, None)
        self.states.pop(step_id, None)
        self._awaiting_planner.discard(step_id)
        self._reindex()

    def change(self, step: Step) -> list[StepId]:
        """Another question, source, type or dependency for a known step. Returns what has to run again."""
        self.steps[step.id] = step
        self._reindex()
        return self.reopen(step.id)

    @property
    def awaits_planner(self) -> bool:
        return bool(self._awaiting_planner)

    def awaits(self, step_id: StepId) -> bool:
        """The step failed, and what that leads to is not decided yet."""
        return step_id in self._awaiting_planner

    @property
    def idle(self) -> bool:
        """Nothing runs, nothing is pending, no failure waits for the planner."""
        return self._unsettled == 0

    # -- which steps wait for which: kept as counts, so that settling a step costs its children, not the whole plan --

    def _reindex(self) -> None:
        if self.line:
            return
        self._children, self._waiting, self._ready = {}, {}, {}
        self._unsettled = sum(not self._is_settled(i) for i in self.steps)
        for step in self.steps.values():
            parents = [p for p in step.args.get("depends_on", ()) if p in self.steps]
            for parent in parents:
                self._children.setdefault(parent, []).append(step.id)
            self._waiting[step.id] = sum(not self._is_settled(p) for p in parents)
        for step_id in list(self.steps):
            if self._consider(step_id):
                self._settled(step_id)

    def _is_settled(self, step_id: StepId) -> bool:
        return self.states[step_id].settled and step_id not in self._awaiting_planner

    def _settled(self, step_id: StepId) -> None:
        """Tell the children; a skip settles in turn, so this is a work list (a chain may be a thousand long)."""
        if self.line:
            return
        work = [step_id]
        while work:
            self._unsettled -= 1
            for child in self._children.get(work.pop(), ()):
                self._waiting[child] -= 1
                if self._consider(child):
                    work.append(child)

    def _consider(self, step_id: StepId) -> bool:
        """Make a pending step ready if nothing holds it; True when it had to be skipped instead."""
        if self.states[step_id] is not State.PENDING or self._waiting[step_id] > 0:
            return False
        parents = [p for p in self.steps[step_id].args.get("depends_on", ()) if p in self.steps]
        if parents and all(self.states[p] is not State.DONE for p in parents):
            self._mark_skipped(step_id, "no_parent_answered")
            return True
        self._ready[step_id] = None
        return False

    def _mark_skipped(self, step_id: StepId, why: str) -> None:
        self.states[step_id] = State.SKIPPED
        self.steps[step_id].error = why
        self._ready.pop(step_id, None)
        self._emit("step.skip", step_id=step_id, why=why)

    def _give_up_planning(self) -> None:
        """The planner has no better plan: what failed stays failed, and its dependants go on without it."""
        failed, self._awaiting_planner = self._awaiting_planner, set()
        for step_id in failed:
            self._settled(step_id)

    def finish(self, status: str, reason: str, **facts: Any) -> None:
        """The driver of a DAG says how the session ended."""
        self._end(status, reason, **facts)

    def listen(self, emit: Callable[[Event], None]) -> None:
        """From now on every event also goes to `emit`, when it happens."""
        self._emit_to = emit

    def spend(self, budget: str) -> None:
        """A budget that the machine does not count itself (time, tokens) is used up: nothing more may start."""
        self.spent = self.spent or budget
        self.max_steps = self.steps_taken

    # -- events ---------------------------------------------------------------------------------------------------

    def _end(self, status: str, reason: str, **facts: Any) -> None:
        if self.ended is None:
            self.ended = (status, reason)
            self._emit("session.complete", reason=reason, **facts)

    def _emit(self, type_: str, **payload: Any) -> None:
        event = Event(type_, payload, self._clock())
        self.events.append(event)
        if self._emit_to is not None:
            self._emit_to(event)


def _outline(plan: Sequence[Step]) -> list[dict[str, Any]]:
    return [{"id": s.id, "tool": s.tool_name, "outcome": s.expected_outcome} for s in plan]
