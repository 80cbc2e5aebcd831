"""Renders transcripts as GenericAgent writes them, in every form since early 2026, plain and verbose; for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ROUND_END = "\n\n[ROUND END]\n"


@dataclass(frozen=True)
class Call:
    """A tool call of a turn. output: what the tool prints, "" when it prints nothing."""

    name: str
    args: dict[str, Any]
    output: str = ""


@dataclass(frozen=True)
class Turn:
    reply: str
    calls: Sequence[Call] = ()


@dataclass(frozen=True)
class Era:
    """The forms between two changes of the agent loop. short: `Turn N ...` instead of `LLM Running (Turn N) ...`."""

    name: str
    short: bool
    before_header: str
    icon: str
    chinese: bool
    pairs_always: bool = False  # a pair of fences even behind a reply without a call; plain calls show their arguments
    after_plain_call: str = "\n"

    def render(self, turns: Sequence[Turn], *, verbose: bool, end: str = ROUND_END) -> str:
        text = "".join(self._turn(number, turn, verbose) for number, turn in enumerate(turns, 1))
        return text + end

    def _turn(self, number: int, turn: Turn, verbose: bool) -> str:
        header = f"Turn {number} ..." if self.short else f"LLM Running (Turn {number}) ..."
        stars = "**" if verbose or self.pairs_always else ""
        text = f"{self.before_header}{stars}{header}{stars}\n\n"
        if verbose:
            text += turn.reply + "\n\n"
        elif self.pairs_always:
            text += turn.reply
        elif turn.reply:
            text += turn.reply.strip() + "\n"
        for call in turn.calls:
            text += self._verbose_call(call) if verbose else self._plain_call(call)
        if verbose and self.pairs_always and not turn.calls:
            text += "`````\n`````\n"
        return text

    def _args(self, call: Call) -> str:
        return json.dumps(call.args, indent=2, ensure_ascii=False).replace("\\n", "\n")

    def _call_head(self, call: Call) -> str:
        if self.pairs_always:
            return f"🛠️ **正在调用工具:** `{call.name}`  📥**参数:**\n"
        return f"{self.icon} " + (
            f"正在调用工具: `{call.name}`  📥参数:\n" if self.chinese else f"Tool: `{call.name}`  📥 args:\n"
        )

    def _verbose_call(self, call: Call) -> str:
        text = f"{self._call_head(call)}````text\n{self._args(call)}\n````\n"
        if call.output or self.pairs_always:
            text += f"`````\n{call.output}`````\n"
        return text

    def _plain_call(self, call: Call) -> str:
        if self.pairs_always:
            shown = self._args(call)
            return f"{self._call_head(call)}````text\n{shown[:200] + ' ...' if len(shown) > 200 else shown}\n````\n"
        shown = json.dumps(call.args, ensure_ascii=False)
        if call.name == "ask_user":
            shown = "\n".join(
                [call.args["question"], "candidates:", *(f"- {c}" for c in call.args.get("candidates", ()))]
            )
        elif len(shown) > 120:
            shown = shown[:120] + "..."
        return f"{self.icon} {call.name}({shown}){self.after_plain_call}"


ERAS = (
    Era("2026-03", short=False, before_header="", icon="🛠️", chinese=True, pairs_always=True),
    Era("2026-04-07", short=False, before_header="", icon="⚙️", chinese=True, after_plain_call="\n\n\n"),
    Era("2026-04-12", short=False, before_header="", icon="🛠️", chinese=True, after_plain_call="\n\n\n"),
    Era("2026-04-16", short=False, before_header="", icon="🛠️", chinese=False, after_plain_call="\n\n\n"),
    Era("2026-04-29", short=True, before_header="\n\n", icon="🛠️", chinese=False, after_plain_call="\n\n\n"),
    Era("2026-07-07", short=True, before_header="\n", icon="🛠️", chinese=False),
    Era("func", short=False, before_header="\n", icon="🛠️", chinese=False),
)
