"""PrecisionAnswerAgent (off unless enabled): the final answer -> one or two short paragraphs."""

from __future__ import annotations

from typing import Any

from dr.agent.mind import Mind
from dr.settings import Settings


class PrecisionAnswerAgent:
    def __init__(self, settings: Settings, mind: Mind) -> None:
        self.enabled, self.mind = settings.agents.precision_answer_agent.enabled, mind

    def process(self, question: str, detailed_answer: str) -> dict[str, Any]:
        """{"needs_precision", "precision_answer", "final_answer"}; final_answer is the detailed one, unchanged."""
        brief = self.mind.precise(detailed_answer) if self.enabled else ""
        return {"needs_precision": bool(brief), "precision_answer": brief, "final_answer": detailed_answer}
