"""A node that a chat model answers: settings, task and sources -> its mind with the tools of the node's type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dr.agent import sources
from dr.agent.chat_mind import ChatMind
from dr.agent.chat_tools import Belt
from dr.agent.mind import Task
from dr.agent.tools import Toolbox
from dr.contract import NodeType
from dr.layout import NodeFolder, Root
from dr.model import open_chat
from dr.settings import Settings


def chat_mind(
    settings: Settings,
    task: Task,
    tools: Toolbox,
    *,
    folder: NodeFolder,
    root: Root,
    source: str,
    log: Callable[[str], None],
) -> ChatMind:
    """UsageError: no model is configured. tools: its sandbox is kept when it has one."""
    chat = open_chat(settings, root, folder.usage)
    web = None
    if task.node_type is NodeType.WEB:
        from dr.agent.web import open_web

        web = open_web(settings, sources.snapshot_folder(folder, root), root.hosts, log)
    if task.node_type is NodeType.LOCAL and tools.code_agent is None:
        from dr.agent.agents.code_agent import CodeAgent

        readable = _readable(source, folder, root)
        hidden = [root.temp, root.config]
        tools.code_agent = CodeAgent(settings, folder, task.language, read_only=readable, hidden=hidden)
    return ChatMind(task, Belt(task, tools, folder.artifacts, web, source), chat, settings)


def _readable(source: str, folder: NodeFolder, root: Root) -> list[Path]:
    fence = sources.Fence(root, folder)
    paths = sources.local_paths(source, root) if source.strip() else []
    return [path.absolute() for path in paths if path.exists() and fence(path.resolve())]
