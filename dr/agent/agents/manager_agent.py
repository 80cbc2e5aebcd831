"""ManagerAgent: the next unfinished block -> its steps in solve_memory.json."""

from __future__ import annotations

from typing import Any

from dr.agent.memory import InvestigateMemory, SolveMemory
from dr.agent.mind import Mind
from dr.settings import Settings


class ManagerAgent:
    def __init__(self, settings: Settings, mind: Mind) -> None:
        self.enabled, self.mind = settings.agents.manager_agent.enabled, mind

    def process(
        self, question: str, solve_memory: SolveMemory, investigate_memory: InvestigateMemory
    ) -> dict[str, Any]:
        """{"has_block", "block_id", "steps_generated", "steps"}; a block that has steps keeps them (generated: 0).

        Disabled: the goal of the block is its only step.
        """
        block = solve_memory.next_block()
        if block is None:
            return {"has_block": False, "block_id": None, "steps_generated": 0, "steps": []}
        generated = 0
        if not block.steps:
            plans = self.mind.steps(block, solve_memory, investigate_memory) if self.enabled else []
            solve_memory.set_steps(block.block_id, plans or [block.goal])
            generated = len(block.steps)
        steps = [{"step_id": s.step_id, "plan": s.plan, "status": s.status} for s in block.steps]
        return {"has_block": True, "block_id": block.block_id, "steps_generated": generated, "steps": steps}
