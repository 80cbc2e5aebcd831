"""The tools that a chat model may choose, by its node's type: name and input -> passages, or why there are none."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dr import prompts
from dr.agent import code_output
from dr.agent.code_words import say as say_of_code
from dr.agent.mind import Task
from dr.agent.tools import Toolbox
from dr.agent.unreadable import Unreadable
from dr.contract import NodeType, Passage
from dr.errors import DrError

if TYPE_CHECKING:
    from dr.agent.web import Web

RAG_SEARCH, QUERY_ITEM, RUN_CODE = "rag_search", "query_item", "run_python_code"
WEB_SEARCH, WEB_FETCH = "web_search", "web_fetch"
_BY_TYPE = {
    NodeType.LOCAL: (RAG_SEARCH, QUERY_ITEM, RUN_CODE),
    NodeType.MEMORY: (RAG_SEARCH, QUERY_ITEM),
    NodeType.WEB: (RAG_SEARCH, QUERY_ITEM, WEB_SEARCH, WEB_FETCH),
    NodeType.CODE: (RUN_CODE,),
}
_RESULTS, _OF_PAGE = 4, 3
_URL = re.compile(r"https?://[^\s<>\"“”「」《》，。；、（）]+")


class Belt:
    """web: None where there is none. notes: what the last use said besides passages."""

    def __init__(self, task: Task, tools: Toolbox, artifacts: Path, web: Web | None = None, source: str = "") -> None:
        self.task, self.tools, self.artifacts, self.web = task, tools, artifacts, web
        usable = {RUN_CODE: tools.code_agent is not None and tools.code_agent.enabled}
        usable |= dict.fromkeys((WEB_SEARCH, WEB_FETCH), web is not None)
        self.names = tuple(name for name in _BY_TYPE.get(task.node_type, ()) if usable.get(name, True))
        # A page may name others, but what a model puts together itself could carry data out to a stranger.
        self._known = f"{source}\n{task.question}\n{task.root_question}"
        self._found: set[str] = set()

    def descriptions(self) -> str:
        """The lines of sop/solve_tools.*.md for the tools that there are."""
        lines = prompts.page("solve_tools", self.task.language).splitlines()
        return "\n".join(line for line in lines if line.startswith(tuple(f"- {name}" for name in self.names))) or "-"

    def first(self, plan: str) -> list[Passage]:
        """What a step begins with: the passages that answer the question, then those that fit the step's plan."""
        if not self.tools.passages:
            return []
        selected = [quote.passage for quote in self.tools.select(self.task.question).quotes]
        found = [*selected, *self.tools.rag_search(plan, _RESULTS)]
        return list({(p.place, p.text): p for p in found}.values())

    def use(self, name: str, given: str) -> tuple[list[Passage], str]:
        """(passages without ids, a remark for the model). A tool that fails is a remark, never a passage."""
        given = given.strip()
        try:
            if name == RAG_SEARCH:
                return self.tools.rag_search(given, _RESULTS), ""
            if name == QUERY_ITEM:
                return self.tools.query_item(given)[:_RESULTS], ""
            if name == RUN_CODE:
                return self._run(given)
            return self._web(name, given)
        except Unreadable as error:
            return [], error.why(self.task.language)
        except DrError as error:
            return [], error.wrong

    def _run(self, code: str) -> tuple[list[Passage], str]:
        result = self.tools.run_python_code(_unfenced(code))
        lang, stem = self.task.language, result.script.stem
        title = say_of_code(lang, "output_of", script=result.script.name)
        found = code_output.keep(result.output, self.artifacts / f"{stem}.stdout.txt", title)
        if not result.ok:
            return [], result.failure(lang)  # what a failed program printed is no finding
        return found[:_RESULTS], "" if found else say_of_code(lang, "failed_silent")

    def _web(self, name: str, given: str) -> tuple[list[Passage], str]:
        assert self.web is not None
        web = self.web
        if name == WEB_SEARCH:
            hits = self.tools.timed(name, given, lambda: web.web_search(given))
            self._found.update(hit.url for hit in hits)
            urls = [hit.url for hit in hits[:_OF_PAGE]]
        else:
            if not self._may_fetch(given):
                return [], Unreadable("not_named", given).why(self.task.language)
            urls = [given]
        failed: list[str] = []
        fetched: list[Passage] = []
        for url in urls:
            try:
                fetched += self.tools.timed(WEB_FETCH, url, partial(web.web_fetch, url)).passages
            except Unreadable as error:
                failed.append(f"{url}: {error.why(self.task.language)}")
        held = {(p.place, p.text) for p in self.tools.passages}
        self.tools.passages += [p for p in fetched if (p.place, p.text) not in held]
        query = given if name == WEB_SEARCH else self.task.question
        places = {p.place for p in fetched}
        ranked = [p for p in self.tools.rag_search(query, 4 * _RESULTS) if p.place in places]
        return (ranked or fetched)[:_RESULTS], "; ".join(failed)

    def _may_fetch(self, url: str) -> bool:
        if url in self._found or url in _URL.findall(self._known):
            return True
        return any(url in _URL.findall(passage.text) for passage in self.tools.passages)


def _unfenced(code: str) -> str:
    match = re.search(r"(?ms)^```[ \t]*(?:python3?|py)?[ \t]*\n(.*?)^```", code)
    return match[1] if match else code
