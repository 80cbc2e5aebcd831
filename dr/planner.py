"""The offline planner: question and sources -> the first plan; a failure -> a way around it. Pure, no model.

It never sees source text. What later rounds ask is in dr/deepening.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dr import deepening
from dr.contract import NodeType, join_sources
from dr.dag import Dag
from dr.language import detect, normalise
from dr.plan import Step
from dr.planning import Deepening
from dr.questions import Aspect, aspects
from dr.words import say

MAX_NODES = 12  # of a first plan; more sources are put together in one node
_SCRIPT = re.compile(r"\.(?:py|sh|r|jl|js)$", re.I)
_RUNS = re.compile(r"\b(?:run|runs|execute|output of|result of running|simulate)\b|运行|执行|跑一[下遍]|输出结果", re.I)
_OWN = re.compile(
    r"\b(?:my|our|i|we|me|us|remember|remembered|memory|notes?)\b|我|我们|咱|记得|记忆|之前|上次|偏好", re.I
)


@dataclass(frozen=True)
class Plan:
    """single_reason: why the plan is a single node; None when it is more."""

    steps: list[Step]
    single_reason: str | None


@dataclass(frozen=True)
class _Group:
    """Sources that one subagent reads together."""

    type: NodeType
    source: str


def first_plan(question: str, sources: Sequence[str], memory: bool) -> Plan:
    """One node per aspect of the question and group of sources.

    A folder or file is a group, all URLs of a site are one. memory: there is a memory to ask; it is asked when the
    question is about the user's own things, or when there is no other source. Without any source the web is searched.
    """
    text = " ".join(question.split())
    lang = detect(text)
    asked = aspects(text)
    groups = _groups(text, sources, MAX_NODES // len(asked))
    own = memory and (not sources or _OWN.search(text) is not None)
    steps: list[Step] = []
    ids: dict[tuple[int, int], str] = {}
    for a, aspect in enumerate(asked):
        for g, group in enumerate(groups):
            ids[a, g] = node_id = f"N{len(steps) + 1}"
            parents = [] if aspect.after is None else [ids[aspect.after, g]]
            steps.append(_step(node_id, group, aspect, parents, lang))
    if own:
        steps.append(_step(f"N{len(steps) + 1}", _Group(NodeType.MEMORY, ""), Aspect(text), [], lang))
    return Plan(steps, say(lang, "plan_single") if len(steps) == 1 else None)


def _step(node_id: str, group: _Group, aspect: Aspect, parents: list[str], lang: str) -> Step:
    args = {"sub_question": aspect.question, "source": group.source, "depends_on": parents}
    return Step(node_id, group.type.value, args, say(lang, "plan_expected"))


def _groups(question: str, sources: Sequence[str], most: int) -> list[_Group]:
    """Sources put together: URLs by site, scripts that are to be run alone, at most `most` groups."""
    sites: dict[str, list[str]] = {}
    found: list[_Group] = []
    for source in dict.fromkeys(sources):
        if url := re.match(r"https?://([^/?#]+)", source, re.I):
            sites.setdefault(url[1].casefold(), []).append(source)
        elif _SCRIPT.search(source) and _RUNS.search(question):
            found.append(_Group(NodeType.CODE, source))
        else:
            found.append(_Group(NodeType.LOCAL, source))
    found += [_Group(NodeType.WEB, join_sources(urls)) for urls in sites.values()]
    if not found:
        return [_Group(NodeType.WEB, "")]
    while len(found) > max(1, most):
        kinds = [g.type for g in found]
        kind = max(set(kinds) - {NodeType.CODE} or {NodeType.CODE}, key=lambda k: (kinds.count(k), k.value))
        same = [i for i, g in enumerate(found) if g.type is kind]
        if len(same) < 2 or kind is NodeType.CODE:
            break
        # The two neighbours that hold the least, so that groups stay even.
        first, second = min(pairwise(same), key=lambda p: sum(_count(found[i].source) for i in p))
        found[first] = _Group(kind, join_sources([found[first].source, found[second].source]))
        del found[second]
    return found


def _count(source: str) -> int:
    return source.count("; ") + 1


def replan(goal: str, history: Sequence[Step], last_error: str, remaining: Sequence[Step] = ()) -> list[Step]:
    """The plan from the cursor on, after a failure; [] when there is no better one (then the failed node is skipped).

    A failed question goes to a group of sources that some other node has and that was not asked it yet. The steps of
    `remaining` go on. Without knowledge of them (it is not part of the history) nothing can be planned around.
    """
    failed = [s for s in history if s.error and not s.result]
    if not remaining or not failed:
        return []
    waiting = [s for s in remaining if s.id not in {f.id for f in failed}]
    known = [*history, *waiting]
    lost = failed[-1]
    question = str(lost.args.get("sub_question", goal))
    asked = {
        str(s.args.get("source", ""))
        for s in known
        if normalise(str(s.args.get("sub_question", ""))) == normalise(question)
    }
    for other in known:
        source = str(other.args.get("source", ""))
        # Only a source that has answered something is worth a try: its reader works.
        if source and source not in asked and other.result and other.tool_name == lost.tool_name:
            args = {**lost.args, "source": source}
            new = Step(f"{lost.id}_other", other.tool_name, args, lost.expected_outcome)
            if any(s.id == new.id for s in known):
                return []
            return [new, *(_instead(step, lost.id, new.id) for step in waiting)]
    return []


def _instead(step: Step, old: object, new: object) -> Step:
    """`step` with the new node where it depended on the failed one."""
    parents = [new if p == old else p for p in step.args.get("depends_on", ())]
    return Step(step.id, step.tool_name, {**step.args, "depends_on": parents}, step.expected_outcome)


class OfflinePlanner:
    """The planner (dr.planning.Planner) that needs no model."""

    slow = False

    def replan(self, goal: str, history: Sequence[Step], last_error: str, remaining: Sequence[Step] = ()) -> list[Step]:
        return replan(goal, history, last_error, remaining)

    def deepen(self, question: str, dag: Dag, findings: Mapping[str, str], number: int, room: int) -> Deepening:
        return deepening.deepen(question, dag.work_nodes, findings, number, room)
