"""Tokens that a run has used, as its nodes and its planner noted them: a run folder -> counts"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dr import agent_usage, node_folder
from dr.layout import NodeFolder, RunFolder


def by_all(folder: RunFolder, node_ids: Iterable[object]) -> dict[str, int]:
    """The counts of usage.json, summed over nodes, attempts and the planner's calls."""
    total = Counter(by_planner(folder))
    for node_id in node_ids:
        for usage in node_folder.usages(folder.node(str(node_id))):
            total.update(usage)
    return dict(total)


def by_planner(folder: RunFolder) -> dict[str, int]:
    """Its calls of a chat API, or what the logs of the root's own agent say."""
    total = Counter(node_folder.usage(folder.thinking / "usage.json"))
    for log in folder.thinking.glob("*/stdout.log"):
        total.update(agent_usage.of_log(log))
    return dict(total)


def by_attempt(folder: NodeFolder) -> int:
    """Tokens of a node's newest attempt, 0 when the agent notes none."""
    return node_folder.usage(folder.usage).get("total_tokens", 0)
