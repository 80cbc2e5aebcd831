"""A prompt answered by the root's own agent, with its own models and keys: prompt file in, the text of its answer out.

`agentmain.py --func FILE --nobg` where the agent's text knows --func; an older one is given a --task folder instead.
What was asked and said stays in thinking/<n>/ of the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from dr import chat_json, files, output, process, subagent
from dr.contract import ROUND_END
from dr.errors import ChatError, DrError
from dr.layout import HOME, Root
from dr.process import Child
from dr.subagent import FUNC, LLM_NO, NO_USER_TOOLS, NOBG, VERBOSE, Agent
from dr.trees import end_tree
from dr.waiter import Waiter

T = TypeVar("T")
LOOK_S = 0.25
CORRECTIONS = 2  # times an invalid reply is shown back
_SHOWN_BACK = 6000  # characters of it


@dataclass(frozen=True)
class AgentCall:
    """One way to ask. folder: where thinking/<n>/ are made. stopped: asked twice a second whether to give up."""

    root: Root
    agent: Agent
    folder: Path
    llm_no: int | None = None
    timeout_s: float = 900.0
    stopped: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic

    def ask(self, prompt: str) -> str:
        """What the agent answers. ChatError: it gave no answer, in time or at all, and why."""
        place = self._place()
        by_file = FUNC in self.agent.knows
        asked = place / ("prompt.md" if by_file else "input.txt")
        said = place / ("prompt.out.txt" if by_file else "output.txt")
        files.write_text(asked, prompt)
        argv = [*self.agent.argv]
        argv += [FUNC, str(asked)] if by_file else ["--task", place.relative_to(self.root.temp).as_posix()]
        # Verbose, since GA cuts a fenced block of more than six lines out of what it else shows of a reply.
        argv += [flag for flag in (NOBG, NO_USER_TOOLS, VERBOSE) if flag in self.agent.knows]
        if self.llm_no is not None and LLM_NO in self.agent.knows:
            argv += [LLM_NO, str(self.llm_no)]
        child = process.start(
            argv,
            cwd=self.root.path,
            env=subagent.environment(self.agent, {"DR_ROOT": str(self.root.path)}),
            stdout=place / "stdout.log",
            stderr=place / "stderr.log",
        )
        try:
            self._wait(child, said)
        finally:
            end_tree(child, soft_s=1.0)
            child.poll()
        return self._answer(said, place)

    def _place(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        number = 1 + max((int(p.name) for p in self.folder.iterdir() if p.name.isdecimal()), default=0)
        place = self.folder / str(number)
        place.mkdir()
        return place

    def _wait(self, child: Child, said: Path) -> None:
        """Until it ends or its round is written and stands still: an agent with --task lingers for a reply."""
        deadline, size = self.clock() + self.timeout_s, -1
        with Waiter() as waiter:
            waiter.add("agent", child)
            while not waiter.wait(LOOK_S):
                if self.stopped():
                    raise ChatError(f"ask {self.agent.argv[-1]}", "the run was stopped meanwhile")
                if self.clock() > deadline:
                    raise ChatError(f"ask {self.agent.argv[-1]}", f"no answer after {self.timeout_s:g} s")
                before, size = size, said.stat().st_size if said.exists() else -1
                if size > 0 and size == before and output.is_finished(files.read_text(said)):
                    return

    def _answer(self, said: Path, place: Path) -> str:
        tried = f"ask {self.agent.argv[-1]}"
        text = files.read_text(said) if said.exists() else ""
        if ROUND_END in self.agent.knows and not output.is_finished(text):
            log = files.read_text(place / "stderr.log").strip().splitlines()
            raise ChatError(tried, f"it ended without an answer{': ' + log[-1][:300] if log else ''}", str(place))
        answer = output.last_answering_turn(text).strip()
        found = output.extract(text).verdict
        if not answer or found == output.MODEL_ERROR:
            raise ChatError(tried, "its model call failed" if answer else "it said nothing", str(place))
        # GA takes a reply that is one code block for an action it forgot and asks back: what counts was said before.
        return answer if "{" in answer else text


def ask_json(
    ask: Callable[[str], str], prompt: str, validate: Callable[[Any], T], language: str, schema: object = None
) -> T:
    """The value of a reply that `validate` accepts (it raises ValueError or DrError in words that a model can act on).
    An invalid reply is shown back with the error, twice; every question is a session of its own. Then ChatError."""
    shown = prompt
    wrong = ""
    for _ in range(1 + CORRECTIONS):
        reply = ask(shown)
        try:
            return _accepted(reply, validate)
        except (ValueError, DrError) as error:
            wrong = str(error)
        again = Template(files.read_text(HOME / "sop" / f"json_again.{language}.md")).substitute(error=wrong)
        shown = f"{prompt}\n\n---\n\n{reply[:_SHOWN_BACK]}\n\n---\n\n{again}"
    raise ChatError("ask for a plan", f"{1 + CORRECTIONS} replies could not be used; the last: {wrong}")


def _accepted(reply: str, validate: Callable[[Any], T]) -> T:
    """The first of the values a reply may mean that holds; else what is wrong with the likeliest one."""
    first: Exception | None = None
    for value in chat_json.candidates(reply):
        try:
            return validate(value)
        except (ValueError, DrError) as error:
            first = first or error
    raise first or ValueError("the reply holds no JSON")


def thinking_agent(root: Root) -> Agent | None:
    """The root's own GenericAgent, whoever runs the nodes; None where there is none."""
    return subagent.choose_agent(root, "auto", "agent") if root.is_genericagent else None
