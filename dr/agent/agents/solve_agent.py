"""SolveAgent: one step -> its content with citations. What it cites is in evidence.jsonl by then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dr.agent.memory import InvestigateMemory, SolveMemory, SolveStep
from dr.agent.mind import Mind
from dr.settings import Settings


class SolveAgent:
    def __init__(self, settings: Settings, mind: Mind) -> None:
        self.enabled, self.mind = settings.agents.solve_agent.enabled, mind

    def process(
        self,
        question: str,
        current_step: SolveStep,
        solve_memory: SolveMemory,
        investigate_memory: InvestigateMemory,
        kb_name: str,
        output_dir: str | Path,
    ) -> dict[str, Any]:
        """{"step_content", "citations", "tool_logs", "raw_llm_response"}.

        kb_name: prefix of the sources that are searched; output_dir: where artefacts go. Disabled: empty content.
        """
        if not self.enabled:
            return {"step_content": "", "citations": [], "tool_logs": [], "raw_llm_response": ""}
        draft = self.mind.solve(current_step, solve_memory, investigate_memory)
        return {
            "step_content": draft.content,
            "citations": draft.citations,
            "tool_logs": draft.tool_logs,
            "raw_llm_response": draft.raw,
        }
