"""PlanExecuteAgent: a line of steps, one planner, one executor, two budgets; usable without the rest of the project."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dr.machine import PlanMachine
from dr.plan import Event, PlanDiff, Step

# planner(goal, history, last_error) -> the plan from the cursor on; last_error is None on the first call.
Planner = Callable[[str, list[Step], "str | None"], Sequence[Step]]
# executor(tool_name, args) -> result; any exception is a failure that may be replanned.
Executor = Callable[[str, "dict[str, Any]"], Any]


class ToolFailure(Exception):
    """For executors that have nothing better to raise."""


@dataclass(frozen=True)
class SessionResult:
    """status: completed | failed. reason: goal_met | step_budget | replan_budget | no_plan | planner_error."""

    status: str
    reason: str
    history: list[Step]
    revisions: list[PlanDiff]
    events: list[Event]

    def to_dict(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "reason": self.reason,
            "history": [s.to_dict() for s in self.history],
            "revisions": [d.to_dict() for d in self.revisions],
            "events": [e.to_dict() for e in self.events],
        }


class PlanExecuteAgent:
    """run(goal) plans, executes step by step, hands failures back to the planner, and stops at either budget.

    A planner that raises ends the session as failed / planner_error; KeyboardInterrupt and SystemExit pass through.
    """

    def __init__(
        self,
        planner: Planner,
        executor: Executor,
        *,
        max_steps: int = 12,
        max_replans: int = 5,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.planner, self.executor = planner, executor
        self.max_steps, self.max_replans, self.clock = max_steps, max_replans, clock

    def run(self, goal: str) -> SessionResult:
        machine = PlanMachine(max_steps=self.max_steps, max_replans=self.max_replans, line=True, clock=self.clock)
        plan = self._ask(machine, goal, None)
        if plan is not None:
            machine.commit(plan)
        while ready := machine.ready():
            error = self._execute(machine, ready[0])
            if error is not None and machine.ended is None:
                plan = self._ask(machine, goal, error)
                if plan is not None:
                    machine.revise(plan)
        status, reason = machine.ended or ("failed", "no_plan")
        return SessionResult(status, reason, machine.history, machine.revisions, machine.events)

    def _ask(self, machine: PlanMachine, goal: str, last_error: str | None) -> Sequence[Step] | None:
        try:
            return list(self.planner(goal, list(machine.history), last_error))
        except Exception as error:  # noqa: BLE001 - a planner is foreign code; its failure is an outcome, not a crash
            machine.planner_failed(f"{type(error).__name__}: {error}")
            return None

    def _execute(self, machine: PlanMachine, step: Step) -> str | None:
        machine.start(step.id)
        try:
            result = self.executor(step.tool_name, dict(step.args))
        except Exception as error:  # noqa: BLE001 - the contract of an executor: any exception is a failed step
            text = f"{type(error).__name__}: {error}"
            machine.fail(step.id, text)
            return text
        machine.succeed(step.id, result)
        return None
