"""A planner that thinks with a model: question or conclusions -> prompt of sop/ -> JSON reply -> valid steps.

Pure but for what it is given to ask with. When no usable reply comes the offline planner takes over, and says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dr import planner as offline
from dr import prompts, synthesis
from dr.conclusion import parse, short_form
from dr.contract import NodeType, check_name, fold, split_sources
from dr.dag import Dag
from dr.errors import ChatError, ContextOverflow, DagError, DrError, FatalError
from dr.language import detect, repeats
from dr.plan import Step
from dr.planner import MAX_NODES, OfflinePlanner
from dr.planning import Deepening, node_of
from dr.synthesis import AskJson
from dr.words import say

T = TypeVar("T")
# AskJson: prompt, validate (raises ValueError or DrError with words a model can act on), language, schema (a wish) ->
# what validate returned; ChatError when no valid reply came, ContextOverflow when the prompt is too long.
_TYPES = tuple(t.value for t in NodeType if t is not NodeType.SYNTH)
_ERROR_CHARS = 400
_TEXT = {"type": "string", "maxLength": 400}
_ROW = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("id", "type", "question", "source", "expect"), _TEXT),
        "depends": {"type": "array", "items": {"type": "string", "maxLength": 80}},
    },
    "required": ["id"],
}
_PLAN = {
    "type": "object",
    "properties": {
        "nodes": {"type": "array", "items": _ROW, "maxItems": 2 * MAX_NODES},
        "reason": {"type": "string", "maxLength": 400},
    },
    "required": ["nodes", "reason"],
}
_SHORT = 200  # characters of a conclusion where all of them do not fit the model's window


@dataclass
class AgentPlanner:
    """Meets dr.planning.Planner. note: told, in the question's language, when the offline planner had to take over.

    slow: a call takes as long as a model does, so it is not made in the runner's own loop.
    """

    ask: AskJson
    note: Callable[[str], None] = lambda _: None
    otherwise: OfflinePlanner = field(default_factory=OfflinePlanner)
    slow: bool = True
    given_only: bool = False  # whether LOCAL nodes may read only what was given: a chat model knows no other files

    def first_plan(self, question: str, sources: Sequence[str], memory: bool) -> offline.Plan:
        """The plan of a new run; see dr.planner.first_plan."""
        lang = detect(question)
        facts = {"question": question, "sources": _sources(sources, memory, lang), "most": MAX_NODES}
        fallback = lambda: offline.first_plan(question, sources, memory)  # noqa: E731 - the other way, when this fails
        return self._try(
            lang, "plan_first", lambda _: facts, lambda v: _first(v, question, lang, self._allowed(sources)), fallback
        )

    def replan(self, goal: str, history: Sequence[Step], last_error: str, remaining: Sequence[Step] = ()) -> list[Step]:
        lang = detect(goal)

        def facts(most: int | None) -> dict[str, str]:
            done = _told([s for s in history if s.result and not s.error], most)
            # What a failure says may repeat what a source says, so it stands inside the fence too.
            error, failed = last_error[:_ERROR_CHARS], _listed([s for s in history if s.error], lang)
            word = prompts.fence([error, failed, *(text for _, text in done)])
            return {
                "question": goal,
                "fence": word,
                "error": prompts.fenced(error, word),
                "failed": prompts.fenced(failed, word),
                "done": prompts.material(done, word) or say(lang, "none"),
                "remaining": _listed([s for s in remaining if not s.error], lang),
            }

        given = self._allowed(str(s.args.get("source", "")) for s in (*history, *remaining))
        fallback = lambda: self.otherwise.replan(goal, history, last_error, remaining)  # noqa: E731
        return self._try(lang, "plan_again", facts, lambda v: _revised(v, history, remaining, given), fallback)

    def deepen(self, question: str, dag: Dag, findings: Mapping[str, str], number: int, room: int) -> Deepening:
        lang = detect(question)

        def facts(most: int | None) -> dict[str, object]:
            told = _findings(dag, findings, lang, most)
            word = prompts.fence([text for _, text in told])
            facts = {"question": question, "number": number, "room": room}
            return {**facts, "fence": word, "findings": prompts.material(told, word)}

        given = self._allowed(n.source for n in dag.work_nodes)
        fallback = lambda: self.otherwise.deepen(question, dag, findings, number, room)  # noqa: E731
        return self._try(lang, "plan_deeper", facts, lambda v: _deeper(v, dag, room, lang, given), fallback)

    def synthesis(self, question: str, dag: Dag, findings: Mapping[str, str]) -> str | None:
        """The answer's text, citing nodes as [N1]; None when none came (the report then quotes)."""
        lang = detect(question)
        try:
            return synthesis.write(self.ask, question, dag, findings, lang)
        except (ChatError, FatalError) as error:  # there are findings in hand, whatever became of the model
            self.note(say(lang, "mind_no_synthesis", reason=error.wrong))
            return None

    def _allowed(self, sources: Iterable[str]) -> set[str] | None:
        """Files and folders that nodes may read; None: any."""
        parts = {part for source in sources for part in split_sources(source) if "://" not in part}
        return parts if self.given_only else None

    def _try(
        self,
        lang: str,
        prompt: str,
        facts: Callable[[int | None], Mapping[str, object]],
        validate: Callable[[Any], T],
        otherwise: Callable[[], T],
    ) -> T:
        """facts: from the number of characters of each conclusion that are told, None for all."""
        try:
            try:
                found: T = self.ask(prompts.prompt(prompt, lang, **facts(None)), validate, lang, _PLAN)
            except ContextOverflow:
                found = self.ask(prompts.prompt(prompt, lang, **facts(_SHORT)), validate, lang, _PLAN)
            return found
        except ChatError as error:
            self.note(say(lang, "mind_fallback", reason=error.wrong))
            return otherwise()


# -- what the prompts are told: conclusions, never source text --------------------------------------------------------


def _sources(sources: Sequence[str], memory: bool, lang: str) -> str:
    lines = [f"- {source}" for source in sources]
    return "\n".join(lines + ([f"- MEMORY: {say(lang, 'prompt_memory')}"] if memory else [])) or say(lang, "none")


def _findings(dag: Dag, findings: Mapping[str, str], lang: str, most: int | None) -> list[tuple[str, str]]:
    """Every node with its conclusion's own words; its source lines, which quote, are left out."""
    parts = []
    for node in dag.work_nodes:
        text = _body(findings.get(node.id, ""), most) or f"({say(lang, 'state_' + node.state.value)})"
        parts.append((f"### {node.id} ({node.type.value}): {node.sub_question}\n", text))
    return parts


def _told(steps: Sequence[Step], most: int | None) -> list[tuple[str, str]]:
    return [
        (f"### {s.id} ({s.tool_name}): {s.args.get('sub_question', '')}\n", _body(str(s.result), most)) for s in steps
    ]


def _listed(steps: Sequence[Step], lang: str) -> str:
    rows = []
    for step in steps:
        row = {
            **{"id": str(step.id), "type": step.tool_name, "question": step.args.get("sub_question", "")},
            **{"depends": step.args.get("depends_on", []), "source": step.args.get("source", "")},
        }
        if step.error:
            row["error"] = step.error[:_ERROR_CHARS]
        rows.append("- " + json.dumps(row, ensure_ascii=False))
    return "\n".join(rows) or say(lang, "none")


def _body(conclusion: str, most: int | None) -> str:
    if most is not None:
        return short_form(conclusion, most) if conclusion.strip() else ""
    parts = parse(conclusion)
    leads = f"\n\n→ {'; '.join(parts.leads)}" if parts.leads else ""
    return ("\n\n".join([parts.body.strip(), *parts.notes]) + leads).strip()


# -- what a reply must be ---------------------------------------------------------------------------------------------


def _first(value: Any, question: str, lang: str, given: set[str] | None) -> offline.Plan:
    steps = _given(_steps(value, known=set(), most=MAX_NODES), given)
    if not steps:
        raise ValueError("nodes is empty; a plan has at least one node")
    Dag.new(question, question, [node_of(s) for s in steps], lang)
    reason = str(value.get("reason") or "").strip() or say(lang, "plan_single")
    return offline.Plan(steps, reason if len(steps) == 1 else None)


def _revised(value: Any, history: Sequence[Step], remaining: Sequence[Step], given: set[str] | None) -> list[Step]:
    """The rest of the plan. A node of the old rest that is named by its id alone goes on as it was."""
    old = {str(s.id): s for s in remaining}
    failed = {str(s.id) for s in history if s.error}
    done = {str(s.id) for s in history if s.result and not s.error}
    steps = _steps(value, known=done | failed, most=2 * MAX_NODES, old=old)
    steps = _given(steps, given)
    if again := [str(s.id) for s in steps if str(s.id) in done]:
        raise ValueError(f"{again[0]} is done already and cannot be asked again; give a new node another id")
    kept = {str(s.id) for s in steps}
    for step in steps:  # grows: what a kept node waits for is kept with it
        for parent in step.args["depends_on"]:
            if parent in old and parent not in kept | failed:
                steps.append(old[parent])
                kept.add(parent)
    for step in steps:
        lost = [p for p in step.args["depends_on"] if p not in kept | done | failed]
        if lost:
            raise ValueError(f"{step.id} depends on {lost[0]}, which is neither done nor in your nodes")
    _acyclic(steps)
    return steps


def _deeper(value: Any, dag: Dag, room: int, lang: str, given: set[str] | None) -> Deepening:
    steps = _given(_steps(value, known=set(dag.ids), most=room), given)
    asked = [n.sub_question for n in dag.work_nodes]
    for step in steps:
        if fold(str(step.id)) in {fold(i) for i in dag.ids}:
            raise ValueError(f"the id {step.id} is taken; give a new one, such as N1_detail")
        question = str(step.args["sub_question"])
        if (same := repeats(question, asked)) is not None:
            raise ValueError(f"{step.id} repeats a question that was asked already: {same}")
        asked.append(question)
    dag.with_nodes([node_of(s) for s in steps])
    reason = str(value.get("reason") or "").strip()
    if not reason:
        raise ValueError("reason is missing: say why these nodes are needed, or why none is")
    return Deepening(steps, " ".join(reason.split())[:300])


def _given(steps: list[Step], allowed: set[str] | None) -> list[Step]:
    """A model may not open files that nobody gave: what it read might have told it to."""
    if allowed is None:
        return steps
    for step in steps:
        for part in split_sources(str(step.args.get("source", ""))):
            inside = any(part == a or part.startswith((f"{a.rstrip('/')}/", f"{a}\\")) for a in allowed)
            if step.tool_name == NodeType.LOCAL.value and (not inside or ".." in part):
                some = f"; the files at hand are {'; '.join(sorted(allowed)[:5])}" if allowed else "; there is none"
                raise ValueError(f"{step.id} reads {part}, which is not among the files and folders given{some}")
    return steps


def _steps(value: Any, known: set[str], most: int, old: Mapping[str, Step] | None = None) -> list[Step]:
    if not isinstance(value, dict) or not isinstance(value.get("nodes"), list):
        raise ValueError('the reply must be one object {"nodes": […], "reason": "…"}')
    rows = value["nodes"]
    if len(rows) > most:
        raise ValueError(f"{len(rows)} nodes are too many; at most {most}")
    ids = [str(row.get("id")) for row in rows if isinstance(row, dict)]
    steps: list[Step] = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise ValueError(f"node {number} is no object")
        if old and str(row.get("id")) in old and not row.get("question"):
            steps.append(old[str(row["id"])])
            continue
        if str(row.get("id")) in known and not row.get("question") and not row.get("type"):
            continue  # settled, and named all the same
        if str(row.get("type", "")).upper() == NodeType.SYNTH.value:
            continue  # the runner adds it
        steps.append(_step(row, number, {*ids, *known}))
    if len({fold(str(s.id)) for s in steps}) < len(steps):
        raise ValueError("two nodes have the same id")
    return steps


def _step(row: Mapping[str, Any], number: int, known: set[str]) -> Step:
    node_id, kind = str(row.get("id") or f"N{number}"), str(row.get("type", "")).upper().split("-")[0]
    try:
        check_name(node_id, "node id")
    except DrError as error:
        raise ValueError(f"{node_id} cannot be an id: {error.wrong}") from error
    if kind not in _TYPES:
        raise ValueError(f"{node_id} has the type {row.get('type')!r}; use one of {', '.join(_TYPES)}")
    question = " ".join(str(row.get("question") or "").split())
    if not question:
        raise ValueError(f"{node_id} has no question")
    given = row.get("depends") or []
    depends = [str(d) for d in (given if isinstance(given, list) else [given])]
    for parent in depends:
        if parent not in known:
            raise ValueError(f"{node_id} depends on {parent}, which is no node")
    source = row.get("source") or ""
    source = "; ".join(map(str, source)) if isinstance(source, list) else " ".join(str(source).split())
    args = {"sub_question": question, "source": source, "depends_on": depends}
    return Step(node_id, kind, args, " ".join(str(row.get("expect") or "").split()))


def _acyclic(steps: Sequence[Step]) -> None:
    inside = {str(s.id) for s in steps}
    args = [{**s.args, "depends_on": [p for p in s.args["depends_on"] if p in inside]} for s in steps]
    nodes = [node_of(Step(s.id, s.tool_name, a)) for s, a in zip(steps, args, strict=True)]
    if nodes:
        try:
            Dag.new("plan", "plan", nodes, "en")
        except DagError as error:
            raise ValueError(error.wrong) from error
