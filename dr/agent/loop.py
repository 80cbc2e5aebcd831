"""The Solve Loop: plan -> (manager -> (solve <-> check) per step) -> format. Its state is in the two memories."""

from __future__ import annotations

from typing import Any, Protocol

from dr.agent import checks
from dr.agent.agents.check_agent import PASS, CheckAgent
from dr.agent.agents.manager_agent import ManagerAgent
from dr.agent.agents.plan_agent import PlanAgent
from dr.agent.agents.solve_agent import SolveAgent
from dr.agent.memory import COMPLETED, InvestigateMemory, SolveMemory, SolveStep
from dr.agent.mind import Mind, Task
from dr.settings import Settings


class Log(Protocol):
    def __call__(self, line: str, detail: bool = False) -> None:
        """One line for the log; a detail is for those who asked for more."""
        ...


def solve(
    task: Task, mind: Mind, solve_memory: SolveMemory, evidence: InvestigateMemory, settings: Settings, log: Log
) -> str:
    """The conclusion. Goes on at the first unfinished step of `solve_memory`.

    PlanAgent.process -> ManagerAgent.process -> per step: SolveAgent.process, CheckAgent.process -> mind.conclude
    """
    planned = PlanAgent(settings, mind).process(task.question, evidence, solve_memory)
    log(f"[Plan] {planned['num_blocks']} block(s)")
    manager = ManagerAgent(settings, mind)
    while solve_memory.progress.status != COMPLETED:
        managed = manager.process(task.question, solve_memory, evidence)
        if not managed["has_block"]:
            break
        if managed["steps_generated"]:
            log(f"[Manager] {managed['block_id']}: {managed['steps_generated']} step(s)")
        step = solve_memory.get_current_step()
        if step is not None:
            _solve_step(task, step, mind, solve_memory, evidence, settings, log)
    log("[Format] Writing the conclusion...")
    return mind.conclude(solve_memory, evidence)


def _solve_step(
    task: Task,
    step: SolveStep,
    mind: Mind,
    solve_memory: SolveMemory,
    evidence: InvestigateMemory,
    settings: Settings,
    log: Log,
) -> None:
    """One step until it passes or its attempts are spent; it is completed either way, with its reservation logged."""
    solver, checker = SolveAgent(settings, mind), CheckAgent(settings, mind, task.language)
    attempts = settings.system.max_solve_correction_iterations
    log(f"--- Step {int(step.step_id[1:])}: {step.step_id} ---")
    log(f"  Plan: {step.plan}")
    spent = sum(1 for entry in step.tool_logs if entry.get("tool") == "check")  # before a restart
    for attempt in range(min(spent + 1, attempts), attempts + 1):
        log("  [Solve] Generating content...")
        result = solver.process(task.question, step, solve_memory, evidence, task.kind, solve_memory.output_dir)
        for use in result["tool_logs"]:
            log(f"    [{use['tool']}] {use['status']}, {use['elapsed_ms']} ms: {use.get('query', '')}", detail=True)
        check = checker.process(task.question, result, solve_memory, evidence)
        log(f"  [Check] Verdict: {check['verdict']}")
        passed = check["verdict"] == PASS
        entry: dict[str, Any] = {"tool": "check", "status": check["verdict"], "comment": check["comment"]}
        logs = [*step.tool_logs, *result["tool_logs"], entry]
        if passed or attempt == attempts:
            if not passed:
                entry["unresolved"] = True
                log(f"  ! Reservation after {attempts} attempt(s): {check['comment']}")
            content, cited = result["step_content"], result["citations"]
            if integrated := check.get("integrated_content"):
                content, cited = integrated, checks.ids_in(integrated)
            solve_memory.complete_step(step.step_id, content, cited, logs)
            log(f"  ✓ Step {step.step_id} completed")
            return
        log(f"  [Check] {check['comment']}")
        step.tool_logs = logs
        solve_memory.save()
