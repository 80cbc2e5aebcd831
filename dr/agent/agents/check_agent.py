"""CheckAgent: the result of a step -> pass or needs_revision. Code has the first word and a mind the second."""

from __future__ import annotations

from typing import Any

from dr.agent import checks
from dr.agent.memory import InvestigateMemory, SolveMemory
from dr.agent.mind import Draft, Mind
from dr.agent.words import say
from dr.settings import Settings

PASS, NEEDS_REVISION = "pass", "needs_revision"


class CheckAgent:
    def __init__(self, settings: Settings, mind: Mind, language: str) -> None:
        self.enabled, self.mind, self.language = settings.agents.check_agent.enabled, mind, language

    def process(
        self,
        question: str,
        current_step_result: dict[str, Any],
        solve_memory: SolveMemory,
        investigate_memory: InvestigateMemory,
    ) -> dict[str, Any]:
        """{"verdict", "comment", "integrated_content"?, "raw_response"}. Disabled: everything passes."""
        if not self.enabled:
            return {"verdict": PASS, "comment": "", "raw_response": ""}
        content, citations = current_step_result["step_content"], current_step_result["citations"]
        found = self._faults(content, citations, investigate_memory)
        if found:
            return {"verdict": NEEDS_REVISION, "comment": "\n".join(found), "raw_response": ""}
        draft = Draft(content, citations, current_step_result["tool_logs"])
        opinion = self.mind.check(draft, solve_memory, investigate_memory)
        result: dict[str, Any] = {
            "verdict": PASS if opinion.passed else NEEDS_REVISION,
            "comment": opinion.comment or say(self.language, "check_pass"),
            "raw_response": opinion.raw,
        }
        integrated = opinion.integrated_content if opinion.passed else None
        if integrated and not self._faults(integrated, checks.ids_in(integrated), investigate_memory):
            result["integrated_content"] = integrated
        return result

    def _faults(self, content: str, citations: list[str], evidence: InvestigateMemory) -> list[str]:
        return checks.faults(content, citations, evidence, self.language, self.mind.verbatim)
