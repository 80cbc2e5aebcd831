"""The planner that asks a model (`model`: a chat API; `agent`: the root's own agent), put together for a run, or for a
plan whose run has no folder yet."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from dr import agent_call, cited, synthesis
from dr.agent_call import AgentCall
from dr.agent_planner import AgentPlanner
from dr.chat import Chat
from dr.errors import ChatError
from dr.layout import Root, RunFolder
from dr.model import open_chat
from dr.settings import Settings
from dr.trees import end_marked
from dr.words import say


def of_run(
    root: Root,
    folder: RunFolder,
    settings: Settings,
    mind: str,
    stopped: Callable[[], bool],
    note: Callable[[str], None],
) -> AgentPlanner | None:
    """None where nobody could think. What an earlier runner's planner left running is ended."""
    if folder.thinking.is_dir():
        end_marked(folder.thinking, soft_s=0)
    return _planner(root, folder.thinking, settings, mind, stopped, note)


@contextmanager
def of_plan(root: Root, settings: Settings, mind: str, notes: list[str]) -> Iterator[tuple[AgentPlanner | None, Path]]:
    """For a first plan: what was asked lies in a folder that keep() moves into the run's, or that is removed."""
    place = root.temp / f".dr_thinking_{os.getpid()}"
    try:
        yield _planner(root, place, settings, mind, lambda: False, notes.append), place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def keep(place: Path, folder: RunFolder) -> None:
    if place.is_dir() and not folder.thinking.exists():
        shutil.move(str(place), str(folder.thinking))


def _planner(
    root: Root,
    place: Path,
    settings: Settings,
    mind: str,
    stopped: Callable[[], bool],
    note: Callable[[str], None],
) -> AgentPlanner | None:
    if mind == "model":
        chat = open_chat(settings, root, usage_file(place))
        return AgentPlanner(partial(_asked_in_chat, chat, place, settings, stopped), note, given_only=True)
    if mind != "agent":
        return None
    agent = agent_call.thinking_agent(root)
    if agent is None:
        return None
    call = AgentCall(root, agent, place, settings.llm_no, settings.node_timeout_s, stopped)
    return AgentPlanner(partial(agent_call.ask_json, call.ask), note)


def checked(
    text: str, folder: RunFolder, root: Root, nodes: Iterable[str], lang: str, note: Callable[[str], None]
) -> str | None:
    """What code lets stand of a model's answer; None: nothing of it. What was taken out is noted."""
    snapshots = cited.find_snapshots(folder)
    read = {node: cited.read_node(folder.node(node), root.path, snapshots) for node in nodes}
    found = synthesis.checked(text, {node: what for node, what in read.items() if what is not None})
    if found.contradicted:
        note(say(lang, "synthesis_contradicted", count=len(found.contradicted)))
    if found.unknown:
        note(say(lang, "synthesis_unknown", count=len(found.unknown)))
    if found.text is None:
        note(say(lang, "mind_no_synthesis", reason=say(lang, "synthesis_uncited")))
    return found.text


def usage_file(place: Path) -> Path:
    """Tokens of the planner's own calls of a chat API."""
    return place / "usage.json"


LOOK_S = 0.25
_REPLY = 8192  # tokens at most, thoughts included


def _asked_in_chat(
    chat: Chat,
    place: Path,
    settings: Settings,
    stopped: Callable[[], bool],
    prompt: str,
    validate: Callable[[Any], Any],
    language: str,
    schema: Mapping[str, Any],
) -> Any:
    """As dr.synthesis.AskJson. ChatError as soon as `stopped` says so, whatever the server is still at."""
    place.mkdir(parents=True, exist_ok=True)  # for its usage.json
    temperature = settings.agents.plan_agent.temperature
    found: list[Any] = []
    failed: list[BaseException] = []

    def work() -> None:
        messages = [{"role": "user", "content": prompt}]
        try:
            found.append(
                chat.ask_json(messages, schema=schema, validate=validate, temperature=temperature, max_tokens=_REPLY)
            )
        except BaseException as error:  # noqa: BLE001 - raised again below, in the thread that asked
            failed.append(error)

    thread = threading.Thread(target=work, name="chat", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_S)
        if thread.is_alive() and stopped():
            raise ChatError(f"ask {chat.model}", "the run was stopped meanwhile")
    if failed:
        raise failed[0]
    return found[0]
