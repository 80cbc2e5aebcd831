"""The planner that asks the root's own agent, put together for a run, or for a plan whose run has no folder yet."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from dr import agent_call
from dr.agent_call import AgentCall
from dr.agent_planner import AgentPlanner
from dr.layout import Root, RunFolder
from dr.settings import Settings
from dr.trees import end_marked


def of_run(
    root: Root, folder: RunFolder, settings: Settings, stopped: Callable[[], bool], note: Callable[[str], None]
) -> AgentPlanner | None:
    """None where the root has no agent that could think. What an earlier runner's planner left running is ended."""
    if folder.thinking.is_dir():
        end_marked(folder.thinking, soft_s=0)
    return _planner(root, folder.thinking, settings, stopped, note)


@contextmanager
def of_plan(root: Root, settings: Settings, notes: list[str]) -> Iterator[tuple[AgentPlanner | None, Path]]:
    """For a first plan: what was asked lies in a folder that keep() moves into the run's, or that is removed."""
    place = root.temp / f".dr_thinking_{os.getpid()}"
    try:
        yield _planner(root, place, settings, lambda: False, notes.append), place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def keep(place: Path, folder: RunFolder) -> None:
    if place.is_dir() and not folder.thinking.exists():
        shutil.move(str(place), str(folder.thinking))


def _planner(
    root: Root, place: Path, settings: Settings, stopped: Callable[[], bool], note: Callable[[str], None]
) -> AgentPlanner | None:
    agent = agent_call.thinking_agent(root)
    if agent is None:
        return None
    call = AgentCall(root, agent, place, settings.llm_no, settings.node_timeout_s, stopped)
    return AgentPlanner(partial(agent_call.ask_json, call.ask), note)
