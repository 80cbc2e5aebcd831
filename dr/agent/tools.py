"""The tools of a node over its sources: rag_search (ranked passages), query_item (numbered things) and run_python_code
(the sandbox). Each use is timed and becomes an entry of the step's tool_logs."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from dr import quantities, retrieval
from dr.contract import Passage
from dr.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from dr.agent.agents.code_agent import CodeAgent, CodeResult

T = TypeVar("T")


@dataclass
class Toolbox:
    """What a node of one type may do. logs: uses since `take_logs`. code_agent: None where no code may be run."""

    passages: list[Passage]
    root_question: str = ""
    parent_conclusions: dict[str, str] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    logs: list[dict[str, Any]] = field(default_factory=list)
    code_agent: CodeAgent | None = None

    def rag_search(self, query: str, k: int = 8) -> list[Passage]:
        """The `k` passages that fit `query` best, best first; fewer when fewer are relevant at all."""
        ranked = self.timed("rag_search", query, lambda: retrieval.rank(query, self.passages, k))
        return [hit.passage for hit in ranked]

    def select(self, question: str, aspects: list[str] | None = None) -> retrieval.Selection:
        """The passages and sentences that answer `question`, followed over several hops."""
        return self.timed(
            "rag_search",
            question,
            lambda: retrieval.select(
                question,
                self.passages,
                root_question=self.root_question,
                parent_conclusions=self.parent_conclusions,
                aspects=aspects,
            ),
        )

    def query_item(self, identifier: str) -> list[Passage]:
        """The passages that hold a numbered thing ("Table 3", "第3章"): where it stands first, then mentions."""
        return self.timed("query_item", identifier, lambda: find_item(identifier, self.passages))

    def run_python_code(self, code: str | Path, timeout: float | None = None) -> CodeResult:
        """Code, or a script by its path, in the sandbox; what it may read was given to the code_agent. A run that fails
        is a result; UsageError when this node may run no code."""
        if self.code_agent is None:
            raise UsageError("run code", "this node's type has no sandbox", "use a CODE or LOCAL node")
        start = self.clock()
        result = self.code_agent.execute(code, timeout)
        self._log("run_python_code", "success" if result.ok else "error", start, result.script.name)
        return result

    def take_logs(self) -> list[dict[str, Any]]:
        logs, self.logs = self.logs, []
        return logs

    def timed(self, tool: str, query: str, work: Callable[[], T]) -> T:
        """What `work` returns; the use is in the logs, however it ends."""
        start = self.clock()
        try:
            result = work()
        except BaseException:
            self._log(tool, "error", start, query)
            raise
        self._log(tool, "success", start, query)
        return result

    def _log(self, tool: str, status: str, start: float, query: str) -> None:
        elapsed = round((self.clock() - start) * 1000)
        self.logs.append({"tool": tool, "status": status, "elapsed_ms": elapsed, "query": query})


_KINDS = {
    "table": "table 表格 表",
    "figure": "figure fig 图表 图",
    "equation": "equation eqn eq formula 方程 公式 式",
    "chapter": "chapter ch 章",
    "section": "section sec 节",
    "article": "article art 条",
    "theorem": "theorem thm 定理",
    "algorithm": "algorithm alg 算法",
    "appendix": "appendix 附录",
    "example": "example 例",
    "definition": "definition 定义",
    "step": "步骤",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_NAMES = "|".join(sorted((n for n in _KIND_OF if n.isascii()), key=len, reverse=True))
_ZH_NAMES = "|".join(sorted((n for n in _KIND_OF if not n.isascii() and n not in "章节条"), key=len, reverse=True))
_NUMBER = r"\d+(?:\.\d+)*|[一二三四五六七八九十百]+"
_ITEM = re.compile(
    rf"\b(?P<en>{_NAMES})s?\.?\s*\(?(?P<n1>\d+(?:[.\-]\d+)*)\)?|第\s*(?P<n2>{_NUMBER})\s*(?P<zh>[章节条])"
    rf"|(?P<zh3>{_ZH_NAMES})\s*[（(]?(?P<n3>\d+(?:[.\-]\d+)*|[一二三四五六七八九十百]+)[)）]?",
    re.I,
)


def items_in(text: str) -> Iterator[tuple[tuple[str, str], str, int]]:
    """((kind, number), as written, position) of every numbered thing that `text` names; 第三章 is ("chapter", "3")."""
    text = unicodedata.normalize("NFKC", text)
    for match in _ITEM.finditer(text):
        name = (match["en"] or match["zh"] or match["zh3"]).casefold()
        number = match["n1"] or match["n2"] or match["n3"]
        values = quantities.quantities(number + "章")
        if not number[0].isdigit() and values:
            number = str(values[0].value)
        yield (_KIND_OF[name], number), match[0], match.start()


def find_item(identifier: str, passages: list[Passage]) -> list[Passage]:
    """Passages that hold the item: where a line or the section begins with it (a caption, a heading), then the rest."""
    wanted = {key for key, _, _ in items_in(identifier)}
    captions: list[Passage] = []
    mentions: list[Passage] = []
    for passage in passages:
        heading = str(passage.locator.get("section", ""))
        starts = [line.strip() for line in (heading, *passage.text.split("\n"))]
        if any(key in wanted and at <= 2 for line in starts for key, _, at in items_in(line[:80])):
            captions.append(passage)
        elif any(key in wanted for key, _, _ in items_in(passage.text)):
            mentions.append(passage)
    return captions + mentions
