"""One question to the chat model: a page of sop/, facts, fenced material that fits the window -> checked JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dr import prompts
from dr.chat import Chat
from dr.contract import Passage
from dr.errors import ContextOverflow
from dr.settings import ModelAgent
from dr.tokens import estimate

ROOM = 2400  # tokens of material in one prompt, until the model's window turns out to be smaller
LEAST_ROOM = 150
REPLY = 4096  # tokens at most, thoughts included
_PASSAGE = 450  # tokens of one passage that are shown; a later part of it can be searched for


@dataclass(frozen=True)
class Text:
    """A piece of the material. title: our words before the fence; text: what stands inside it."""

    title: str
    text: str


class Asker:
    """Remembers how much material the window holds."""

    def __init__(self, chat: Chat, lang: str) -> None:
        self.chat, self.lang, self.room = chat, lang, ROOM

    def ask(
        self,
        name: str,
        agent: ModelAgent,
        schema: Mapping[str, Any],
        material: Sequence[Text],
        validate: Callable[[Any], Any] | None = None,
        **facts: object,
    ) -> Any:
        """The reply to the page `name`. material: the most important first; the rest is left out where it must be.

        ContextOverflow: not even a little of it fits.
        """
        while True:
            try:
                return self.chat.ask_json(
                    self._messages(name, material, facts),
                    schema=schema,
                    validate=validate,
                    temperature=agent.temperature,
                    max_tokens=REPLY,
                    model=agent.model,
                )
            except ContextOverflow:
                if self.room <= LEAST_ROOM:
                    raise
                self.room = max(LEAST_ROOM, self.room // 2)

    def _messages(self, name: str, material: Sequence[Text], facts: Mapping[str, object]) -> list[dict[str, str]]:
        shown = [text for text in fit(material, self.room) if text.text.strip()]
        texts = [text.text for text in shown]
        word = prompts.fence(texts)
        parts = [f"{text.title}\n{prompts.fenced(text.text, word)}".lstrip() for text in shown]
        user = prompts.prompt(name, self.lang, material="\n\n".join(parts) or "-", **facts)
        return [
            {"role": "system", "content": prompts.prompt("solve_system", self.lang, fence=word)},
            {"role": "user", "content": user},
        ]


def fit(material: Sequence[Text], room: int) -> list[Text]:
    """The first of `material` that fit into `room` tokens; one that is too long is cut at the end of a line or word."""
    found: list[Text] = []
    for text in material:
        cost = estimate(text.text)
        if cost > room and room >= LEAST_ROOM // 2:
            found.append(Text(text.title, _cut(text.text, room)))
        if cost > room:
            break
        found.append(text)
        room -= cost
    return found


def _cut(text: str, tokens: int) -> str:
    while estimate(text) > tokens:
        text = text[: min(len(text) - 1, max(1, int(len(text) * tokens / estimate(text))))]
    end = max(text.rfind("\n"), text.rfind(" "), text.rfind("。"))
    return (text[: end + 1] if end > len(text) // 2 else text).rstrip() + " …"


def of_passage(passage: Passage) -> Text:
    """A passage as the model sees it: its id and place, its text with nothing in it that looks like ours."""
    place = ", ".join([prompts.harmless(passage.title or ""), *(f"{k} {v}" for k, v in passage.locator.items())])
    text = passage.text if estimate(passage.text) <= _PASSAGE else _cut(passage.text, _PASSAGE)
    # Titles come from the source too, so they stand inside the fence.
    return Text(passage.id, f"({' '.join(place.split())[:160]})\n{prompts.harmless(text)}")
