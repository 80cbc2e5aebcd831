"""Unreadable: a source that cannot be read, and why, as facts that are told in the question's language. Pure."""

from __future__ import annotations

from dr.agent.words import say
from dr.errors import SourceError


class Unreadable(SourceError):
    """One source, or a part of one, that cannot be read. `reason`: a key of the subagent's words, with its facts."""

    def __init__(self, reason: str, place: str = "", **facts: object) -> None:
        self.reason, self.place, self.facts = reason, place, facts
        super().__init__(say("en", "tried_read", place=place or "the source"), self.why("en"))

    def why(self, lang: str) -> str:
        """The reason in a language; a fact that is itself a fault is told in the same one."""
        facts = {k: v.why(lang) if isinstance(v, Unreadable) else v for k, v in self.facts.items()}
        return say(lang, self.reason, **facts)

    def at(self, place: str) -> Unreadable:
        """The same fault, with the place that the reader of the bytes did not know."""
        return Unreadable(self.reason, place, **self.facts)
