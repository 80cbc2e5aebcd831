"""The deterministic planner of the plan-execute control flow, and an executor that records and fails as told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dr.plan import Step
from dr.plan_execute import ToolFailure

Planner = Callable[[str, Sequence[Step], "str | None"], "list[Step]"]


def make_deterministic_planner(
    fail_step_id: int | None, recovery: str = "route_around", *, always: bool = False
) -> Planner:
    """No error: four steps, `fail_step_id` told to fail. An error of the transform: three that route around it.

    recovery: route_around, give_up (two steps that say so) or nothing. always: every plan is the route around.
    """

    def planner(goal: str, history: Sequence[Step], last_error: str | None) -> list[Step]:
        if last_error is None:
            steps = [
                Step(1, "fetch", {"key": "input"}, "the input is there"),
                Step(2, "transform", {"mode": "v1"}, "it is transformed"),
                Step(3, "render", {}, "it can be read"),
                Step(4, "submit", {}, "it is handed in"),
            ]
            for step in steps:
                if step.id == fail_step_id:
                    step.args["_force_fail"] = True
            return steps
        if always or (recovery == "route_around" and "transform" in last_error):
            return [Step(2, "transform", {"mode": "v2"}), Step(3, "render"), Step(4, "submit")]
        if recovery == "give_up":
            return [Step(98, "log_failure", {"why": last_error}), Step(99, "notify_user")]
        return []

    return planner


@dataclass
class Recorder:
    """An executor. failures: (tool, mode) -> how often it fails first; always_fail: tools that never succeed."""

    failures: dict[tuple[str, str | None], int] = field(default_factory=dict)
    always_fail: set[str] = field(default_factory=set)
    error: type[Exception] | None = None
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, tool: str, args: dict[str, Any]) -> str:
        self.calls.append((tool, args))
        if self.error is not None:
            raise self.error(tool)
        key = (tool, args.get("mode"))
        if tool in self.always_fail or args.get("_force_fail") or self.failures.get(key, 0) > 0:
            self.failures[key] = self.failures.get(key, 0) - 1
            raise ToolFailure(tool)
        return tool
