"""The offline mind: finds passages, quotes their best sentences word by word, checks what is covered. No model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dr import citations
from dr.agent import checks
from dr.agent.conclusion import Cited, compose, one_line, paragraph
from dr.agent.memory import InvestigateMemory, SolveBlock, SolveMemory, SolveStep
from dr.agent.mind import Draft, Opinion, Task
from dr.agent.tools import Toolbox, items_in
from dr.agent.words import say
from dr.contract import Passage
from dr.errors import SourceError
from dr.retrieval import Selection

_CLAUSE = re.compile(r"(?<=[?？;；])\s*")
_UNREAD_SHOWN, _TERMS_SHOWN = 3, 8
FIND, FOLLOW, COVER, ITEM = "step_find", "step_follow", "step_cover", "step_item"


@dataclass(frozen=True)
class _Role:
    """What a step does; told from its plan alone, so that a restarted subagent knows it too."""

    name: str
    goal: str
    item: str = ""


class OfflineMind:
    """Everything it says about the sources is a quotation; its own sentences say what was and was not found."""

    name = "offline"
    verbatim = True

    def __init__(self, task: Task, tools: Toolbox) -> None:
        self.task, self.tools = task, tools
        self._selections: dict[str, Selection] = {}

    def plan(self, investigate_memory: InvestigateMemory, solve_memory: SolveMemory) -> list[str]:
        """A block per question that the sub-question asks."""
        return [say(self.task.language, "goal", question=aspect) for aspect in self._aspects()]

    def _aspects(self) -> list[str]:
        clauses = [part.strip() for part in _CLAUSE.split(self.task.question) if part.strip()]
        return clauses if 1 < len(clauses) <= 4 and all(len(c) > 5 for c in clauses) else [self.task.question]

    def steps(self, block: SolveBlock, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> list[str]:
        return list(self._roles(block))

    def _roles(self, block: SolveBlock) -> dict[str, _Role]:
        """Plan of a step -> what it does."""
        lang = self.task.language
        index = int(block.block_id[1:]) - 1
        aspects = self._aspects()
        goal = aspects[index] if index < len(aspects) else self.task.question
        roles = {say(lang, FIND, question=goal): _Role(FIND, goal)}
        for _, item, _ in items_in(goal):
            roles[say(lang, ITEM, item=item)] = _Role(ITEM, goal, item)
        roles[say(lang, FOLLOW, question=goal)] = _Role(FOLLOW, goal)
        roles[say(lang, COVER, question=goal)] = _Role(COVER, goal)
        return roles

    def _role(self, step: SolveStep, solve_memory: SolveMemory) -> _Role:
        for block in solve_memory.plan.blocks:
            if step in block.steps:
                return self._roles(block).get(step.plan, _Role(FIND, step.plan))
        return _Role(FIND, step.plan)

    def solve(self, step: SolveStep, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> Draft:
        role, lang = self._role(step, solve_memory), self.task.language
        if role.name == ITEM:
            found = self.tools.query_item(role.item)[:2]
            quotes = [(passage, self._item_sentences(passage, role.item)) for passage in found]
            nothing = say(lang, "item_missing", item=role.item)
        else:
            selection = self._select(role.goal)
            chosen = [(quote.passage, list(quote.sentences)) for quote in selection.quotes]
            quotes = {FIND: chosen[:1], FOLLOW: chosen[1:]}.get(role.name, [])
            nothing = say(lang, "step_nothing_new")
            if role.name == COVER:
                terms = say(lang, "comma").join(selection.uncovered)
                nothing = say(lang, "step_uncovered", terms=terms) if terms else say(lang, "step_covered")
        lines: list[str] = []
        for passage, sentences in quotes:
            standing = [
                one_line(sentence)
                for sentence in sentences
                if citations.quote_stands(sentence, passage.text) and not checks.speaks_protocol(sentence)
            ]
            if standing:
                cited = investigate_memory.cite(passage)
                lines.append(paragraph([Cited(sentence, cited) for sentence in standing]))
        content = "\n".join(lines) or nothing
        return Draft(content, checks.ids_in(content), self.tools.take_logs())

    def _select(self, goal: str) -> Selection:
        if goal not in self._selections:
            self._selections[goal] = self.tools.select(goal)
        return self._selections[goal]

    def _item_sentences(self, passage: Passage, item: str) -> list[str]:
        from dr import language

        wanted = {key for key, _, _ in items_in(item)}
        sentences = language.sentences(passage.text)
        naming = [i for i, s in enumerate(sentences) if any(key in wanted for key, _, _ in items_in(s))]
        start = naming[0] if naming else 0
        return sentences[start : start + 2]

    def check(self, draft: Draft, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> Opinion:
        """Code has checked all that can be checked without a model."""
        return Opinion(passed=True)

    def conclude(self, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> str:
        lang = self.task.language
        quoted = self._quoted(solve_memory, investigate_memory)
        if not quoted:
            raise SourceError(
                say(lang, "tried_answer", question=self.task.question),
                "".join([say(lang, "nothing_answers"), *(f" {note}" for note in self._remarks([]))]),
                say(lang, "nothing_next"),
            )
        selections = [self._select(aspect) for aspect in self._aspects()]
        self.tools.take_logs()
        uncovered = list(dict.fromkeys(term for s in selections for term in s.uncovered))
        cited = {c.passage.title.casefold() for c in quoted}
        leads = list(dict.fromkeys(lead for s in selections for lead in s.leads if lead.casefold() not in cited))
        by_passage: dict[str, list[Cited]] = {}
        for sentence in quoted:
            by_passage.setdefault(sentence.passage.id, []).append(sentence)
        answering = {i for step in solve_memory.steps() if self._answers(step, solve_memory) for i in step.citations}
        answering = answering or set(list(by_passage)[:1])
        direct = [c for i, sentences in by_passage.items() if i in answering for c in sentences]
        further = [sentences for i, sentences in by_passage.items() if i not in answering]
        return compose(direct, further, self._remarks(uncovered), leads, lang)

    def _answers(self, step: SolveStep, solve_memory: SolveMemory) -> bool:
        return self._role(step, solve_memory).name in (FIND, ITEM)

    def _quoted(self, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> list[Cited]:
        """Every sentence that a step quoted and that stands in its passage, once, in the order of the steps."""
        found: list[Cited] = []
        for step in solve_memory.steps():
            for text, ids in checks.cited_spans(step.content):
                for passage in filter(None, map(investigate_memory.get, ids)):
                    cited = Cited(text, passage)
                    if cited not in found and citations.quote_stands(text, passage.text):
                        found.append(cited)
        return found

    def _remarks(self, uncovered: list[str]) -> list[str]:
        lang, notes = self.task.language, self.task.notes
        remarks = []
        if uncovered:
            remarks.append(say(lang, "step_uncovered", terms=say(lang, "comma").join(uncovered[:_TERMS_SHOWN])))
        if notes:
            shown = notes[:_UNREAD_SHOWN]
            if len(notes) > len(shown):
                shown = [*shown, say(lang, "unread_more", count=len(notes) - len(shown))]
            remarks.append(say(lang, "unread", reasons=say(lang, "separator").join(shown)))
        return remarks

    def precise(self, answer: str) -> str:
        """The direct answer alone: the first paragraph without the mark."""
        return answer.split("\n\n", 1)[0].removeprefix("[结论]").strip()

    def usage(self) -> dict[str, int]:
        return {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0}
