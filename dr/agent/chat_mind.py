"""The chat mind: an OpenAI-compatible model plans, chooses tools, writes and checks; code decides what of it holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dr import prompts
from dr.agent import chat_conclusion, checks
from dr.agent.chat_prompt import Asker, Text, of_passage
from dr.agent.chat_tools import Belt
from dr.agent.conclusion import is_too_long
from dr.agent.memory import InvestigateMemory, SolveBlock, SolveMemory, SolveStep
from dr.agent.mind import Draft, Opinion, Task
from dr.agent.words import say
from dr.chat import Chat
from dr.contract import CONCLUSION_CHARS_CJK, CONCLUSION_WORDS, Passage
from dr.errors import SourceError, UnusableReply
from dr.settings import Settings

USES = 3  # of tools in one attempt at a step, besides the search it begins with
_OVERVIEW = 4  # passages that a plan is made from
_UNREAD_SHOWN, _LEADS_SHOWN = 3, 4


def _text(most: int, least: int = 0) -> dict[str, Any]:
    return {"type": "string", "minLength": least, "maxLength": most}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _texts(most: int, chars: int, least: int = 1) -> dict[str, Any]:
    return {"type": "array", "items": _text(chars, 1), "minItems": least, "maxItems": most}


GOALS = _object(goals=_texts(4, 300))
STEPS = _object(steps=_texts(5, 300))
VERDICT = _object(verdict={"type": "string", "enum": ["pass", "needs_revision"]}, suggestions=_text(800))
CONCLUSION = _object(answer=_text(1600, 1), points=_texts(6, 800, least=0))
BRIEF = _object(brief=_text(800, 1))


class ChatMind:
    """Goes on from the memories alone; only the wording of an attempt that was refused is lost by a restart."""

    verbatim = False

    def __init__(self, task: Task, belt: Belt, chat: Chat, settings: Settings) -> None:
        self.task, self.belt, self.agents, self.chat = task, belt, settings.agents, chat
        self.asker = Asker(chat, task.language)
        self._refused: dict[str, str] = {}  # step -> its last draft
        self._given: set[str] = set()  # ids that the model has seen in the attempt at hand

    @property
    def name(self) -> str:
        return f"model {self.chat.model}"

    # -- plan ---------------------------------------------------------------------------------------------------------

    def plan(self, investigate_memory: InvestigateMemory, solve_memory: SolveMemory) -> list[str]:
        """The goals of the blocks; the question itself where the model gives none."""
        material = [*self._parents(), *self._overview(self.task.question)]
        root = self.task.root_question or self.task.question
        facts: dict[str, Any] = {"question": self.task.question, "root": root}
        try:
            found = self.asker.ask("solve_plan", self.agents.plan_agent, GOALS, material, **facts)
        except UnusableReply:
            return []
        return _lines(found["goals"])

    def steps(self, block: SolveBlock, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> list[str]:
        blocks = "; ".join(b.goal for b in solve_memory.plan.blocks)
        facts: dict[str, Any] = {"question": self.task.question, "goal": block.goal, "blocks": blocks}
        try:
            material = self._overview(block.goal)
            found = self.asker.ask("solve_steps", self.agents.manager_agent, STEPS, material, **facts)
        except UnusableReply:
            return []
        return _lines(found["steps"])

    def _overview(self, wanted: str) -> list[Text]:
        """Passages that a plan can be made from; nothing is cited yet, so they have no ids."""
        passages = self.belt.first(wanted)[:_OVERVIEW]
        self.belt.tools.take_logs()
        return [Text("", of_passage(p).text) for p in passages]

    def _parents(self) -> list[Text]:
        lang = self.task.language
        known = self.task.parent_conclusions.items()
        return [Text(say(lang, "known_of", node=node), prompts.harmless(text)) for node, text in known]

    # -- solve --------------------------------------------------------------------------------------------------------

    def solve(self, step: SolveStep, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> Draft:
        """Tools until the model writes. Whatever it is shown is in evidence.jsonl, so that it may be cited."""
        shown: dict[str, Passage] = {}
        said: list[str] = []
        self._give(self.belt.first(step.plan), shown, investigate_memory)
        before = [*self._parents(), *self._done(solve_memory)]
        reply: dict[str, Any] = {}
        for left in range(USES, -1, -1):
            names = [*self.belt.names, "none"] if left else ["none"]
            tool = {"type": "string", "enum": names}
            reply = self.asker.ask(
                "solve_step",
                self.agents.solve_agent,
                _object(tool=tool, input=_text(4000), content=_text(3000)),
                # What a tool complains of may repeat what a source says, so it stands inside the fence too.
                [*(Text("", prompts.harmless(line)) for line in said), *map(of_passage, shown.values()), *before],
                question=self.task.question,
                plan=step.plan,
                remarks=self._remarks(step),
                left=left,
                tools=self.belt.descriptions() if left else "-",
                example=next(iter(shown), f"[{self.task.kind}-1]"),
            )
            if reply["tool"] == "none":
                break
            found, remark = self.belt.use(reply["tool"], reply["input"])
            # What was found last is what was asked for, so it is shown first.
            earlier, shown = shown, {}
            self._give(found, shown, investigate_memory)
            shown |= {i: p for i, p in earlier.items() if i not in shown}
            if not found or remark:
                lang = self.task.language
                said.append(say(lang, "tool_said", tool=reply["tool"], remark=remark or say(lang, "tool_nothing")))
        content = chat_conclusion.cleaned(reply["content"])
        self._refused[step.step_id] = content
        self._given = {*shown, *(i for done in solve_memory.steps() for i in done.citations)}
        raw = json.dumps(reply, ensure_ascii=False)
        return Draft(content, checks.ids_in(content), self.belt.tools.take_logs(), raw)

    def _give(self, found: Sequence[Passage], shown: dict[str, Passage], evidence: InvestigateMemory) -> None:
        for passage in found:
            cited = evidence.cite(passage)
            shown[cited.id] = cited

    def _done(self, solve_memory: SolveMemory) -> list[Text]:
        """What earlier steps wrote, the newest first."""
        done = [s for s in solve_memory.steps() if s.content and s.status == "completed"]
        return [Text(self._heading(step), step.content) for step in reversed(done)]

    def _heading(self, step: SolveStep) -> str:
        return say(self.task.language, "step_done", step=step.step_id, plan=step.plan)

    def _remarks(self, step: SolveStep) -> str:
        comments = [e["comment"] for e in step.tool_logs if e.get("tool") == "check" and e.get("comment")]
        if not comments:
            return ""
        draft = self._refused.get(step.step_id) or "-"
        text = prompts.prompt("solve_remarks", self.task.language, draft=draft, remarks=comments[-1])
        return f"\n{text}\n"

    # -- check --------------------------------------------------------------------------------------------------------

    def check(self, draft: Draft, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> Opinion:
        """The model's opinion on what the checks of code let pass."""
        lang = self.task.language
        if strange := [i for i in draft.citations if i not in self._given]:
            return Opinion(False, "\n".join(say(lang, "check_not_given", id=i) for i in strange))
        step = next(s for s in solve_memory.steps() if s.status == "in_progress")
        cited = [p for i in draft.citations if (p := investigate_memory.get(i)) is not None]
        material = [Text(say(lang, "written"), draft.content), *map(of_passage, cited)]
        facts: dict[str, Any] = {"question": self.task.question, "plan": step.plan}
        try:
            found = self.asker.ask("solve_check", self.agents.check_agent, VERDICT, material, **facts)
        except UnusableReply:
            return Opinion(True, say(lang, "check_no_opinion"))
        raw = json.dumps(found, ensure_ascii=False)
        return Opinion(found["verdict"] == "pass", " ".join(found["suggestions"].split()), raw=raw)

    # -- conclude -----------------------------------------------------------------------------------------------------

    def conclude(self, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> str:
        lang = self.task.language
        sound: list[chat_conclusion.Statement] = []
        steps: list[Text] = []
        lost = 0
        for step in solve_memory.steps():
            found, faulty = chat_conclusion.statements(step.content, investigate_memory, lang)
            sound, lost = [*sound, *found], lost + faulty
            if found:
                steps.append(Text(self._heading(step), "\n".join(text for text, _ in found)))
        if not sound:
            tried = say(lang, "tried_answer", question=self.task.question)
            raise SourceError(
                tried, "".join([say(lang, "nothing_answers"), *self._unread(" ")]), say(lang, "nothing_next")
            )
        remarks = self._unread("")
        if lost:
            remarks.append(say(lang, "model_left_out", count=lost))
        known = {i for _, ids in sound for i in ids}
        limit = CONCLUSION_CHARS_CJK if lang == "zh" else CONCLUSION_WORDS
        words = say(lang, "words_at_most", count=limit - limit // 5)
        try:
            answer, points = self.asker.ask(
                "solve_format",
                self.agents.solve_agent,
                CONCLUSION,
                steps,
                lambda value: self._accepted(value, known, investigate_memory, words),
                question=self.task.question,
                example=next(iter(sorted(known))),
                words=words,
            )
        except UnusableReply:
            answer, points = chat_conclusion.by_code(sound)
            remarks.append(say(lang, "model_by_code"))
        leads = self._leads(f"{answer}\n{points}", investigate_memory)
        return chat_conclusion.write(answer, points, remarks, leads, investigate_memory, lang)

    def _accepted(self, value: Any, known: set[str], evidence: InvestigateMemory, words: str) -> tuple[str, list[str]]:
        """The conclusion when every statement of it holds; ValueError says what the model has to change."""
        lang = self.task.language
        answer = chat_conclusion.cleaned(value["answer"])
        points = [point for point in map(chat_conclusion.cleaned, value["points"]) if point]
        ids = checks.ids_in(whole := "\n".join([answer, *points]))
        found = [say(lang, "check_not_given", id=i) for i in ids if i not in known]
        found += checks.faults(whole, ids, evidence, lang, self.verbatim)
        if not checks.ids_in(answer):
            found.append(say(lang, "conclude_uncited"))
        if is_too_long(whole):
            found.append(say(lang, "conclude_long", words=words))
        if found:
            raise ValueError("; ".join(dict.fromkeys(found)))
        return answer, points

    def _unread(self, before: str) -> list[str]:
        notes, lang = self.task.notes, self.task.language
        if not notes:
            return []
        shown = notes[:_UNREAD_SHOWN]
        if len(notes) > len(shown):
            shown = [*shown, say(lang, "unread_more", count=len(notes) - len(shown))]
        return [before + say(lang, "unread", reasons=say(lang, "separator").join(shown))]

    def _leads(self, body: str, evidence: InvestigateMemory) -> list[str]:
        """Titles that the best passages mention and nobody has cited: for the planner, which sees no source."""
        if not self.belt.tools.passages:
            return []
        leads = self.belt.tools.select(self.task.question).leads
        self.belt.tools.take_logs()
        cited = {p.title.casefold() for i in checks.ids_in(body) if (p := evidence.get(i)) is not None}
        return list(dict.fromkeys(lead for lead in leads if lead.casefold() not in cited))[:_LEADS_SHOWN]

    def precise(self, answer: str) -> str:
        """In the model's words where they hold, else the direct answer alone."""
        body = answer.split("\n\n", 1)[0].removeprefix("[结论]").strip()
        evidence = InvestigateMemory.load(self.belt.artifacts.parent)
        ids = set(checks.ids_in(body))

        def validate(value: Any) -> str:
            brief = chat_conclusion.cleaned(value["brief"])
            used = checks.ids_in(brief)
            found = [*checks.faults(brief, used, evidence, self.task.language, self.verbatim)]
            found += [say(self.task.language, "check_not_given", id=i) for i in used if i not in ids]
            if found:
                raise ValueError("; ".join(found))
            return brief

        material, facts = [Text("", body)], {"question": self.task.question}
        agent = self.agents.precision_answer_agent
        try:
            return str(self.asker.ask("solve_brief", agent, BRIEF, material, validate, **facts))
        except UnusableReply:
            return body

    def usage(self) -> dict[str, int]:
        return self.chat.usage()


def _lines(texts: Sequence[str]) -> list[str]:
    """Each on one line, none twice, none empty."""
    return list(dict.fromkeys(line for text in texts if (line := " ".join(text.split()))))
