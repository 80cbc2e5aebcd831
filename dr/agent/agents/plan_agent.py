"""PlanAgent: the question -> the blocks of solve_memory.json."""

from __future__ import annotations

from typing import Any

from dr.agent.memory import InvestigateMemory, SolveMemory
from dr.agent.mind import Mind
from dr.settings import Settings


class PlanAgent:
    def __init__(self, settings: Settings, mind: Mind) -> None:
        self.enabled, self.mind = settings.agents.plan_agent.enabled, mind

    def process(
        self, question: str, investigate_memory: InvestigateMemory, solve_memory: SolveMemory
    ) -> dict[str, Any]:
        """{"num_blocks", "num_steps": 0, "blocks"}; a plan that exists is kept. Disabled: the question is the block."""
        if not solve_memory.plan.blocks:
            goals = self.mind.plan(investigate_memory, solve_memory) if self.enabled else []
            solve_memory.set_blocks(goals or [question])
        blocks = [{"block_id": b.block_id, "goal": b.goal, "steps": []} for b in solve_memory.plan.blocks]
        return {"num_blocks": len(blocks), "num_steps": 0, "blocks": blocks}
