"""The offline mind of a CODE node: runs the scripts that were given, quotes their output line by line. No model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dr.agent import checks, code_output
from dr.agent.agents.code_agent import CodeResult
from dr.agent.code_words import say
from dr.agent.conclusion import Cited, compose, one_line, paragraph
from dr.agent.memory import InvestigateMemory, SolveBlock, SolveMemory, SolveStep
from dr.agent.mind import Draft, Opinion, Task
from dr.agent.tools import Toolbox
from dr.contract import Passage
from dr.errors import SourceError
from dr.layout import NodeFolder

TOOL = "run_python_code"
_RUN, _QUOTE, _RECORD = "step_run", "step_quote", "step_record"
_FILES_SHOWN = 8


class CodeMind:
    """A block per script: run it, quote what answers, record what it left. All it needs of a run is in the memories, so
    that a restarted subagent runs no script again that has been run."""

    name = "offline"
    verbatim = True

    def __init__(self, task: Task, question: str, scripts: Sequence[Path | str], tools: Toolbox) -> None:
        """question: the sub-question without its code."""
        self.task, self.question, self.scripts, self.tools = task, question, list(scripts), tools

    def _say(self, key: str, **facts: object) -> str:
        return say(self.task.language, key, **facts)

    def _name(self, index: int) -> str:
        script = self.scripts[index]
        return script.name if isinstance(script, Path) else f"code-{index + 1}.py"

    def plan(self, investigate_memory: InvestigateMemory, solve_memory: SolveMemory) -> list[str]:
        return [self._say("goal", script=self._name(i)) for i in range(len(self.scripts))]

    def steps(self, block: SolveBlock, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> list[str]:
        name = self._name(_index(block))
        return [self._say(key, script=name) for key in (_RUN, _QUOTE, _RECORD)]

    def solve(self, step: SolveStep, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> Draft:
        block = next(b for b in solve_memory.plan.blocks if step in b.steps)
        role, logs = block.steps.index(step), list[dict[str, Any]]()
        if role == 0 and not _ran(block):
            logs = self._run(_index(block), investigate_memory)
        output, record = self._evidence(block, investigate_memory, logs)
        quotes = self._quotes(output) if role == 1 else _record(record)
        content = paragraph(quotes)
        return Draft(content, checks.ids_in(content), logs)

    def _run(self, index: int, evidence: InvestigateMemory) -> list[dict[str, Any]]:
        """Its entry of tool_logs, with the ids of what it gave. SourceError when it failed or printed nothing."""
        name = self._name(index)
        result = self.tools.run_python_code(self.scripts[index])
        log = self.tools.take_logs()
        artifacts = NodeFolder(evidence.output_dir).artifacts
        stem = Path(name).stem
        output = code_output.keep(result.output, artifacts / f"{stem}.stdout.txt", self._say("output_of", script=name))
        errors = code_output.keep(result.errors, artifacts / f"{stem}.stderr.txt", self._say("errors_of", script=name))
        if not result.ok:
            key = "next_time" if result.timeout else "next_fix"
            raise SourceError(self._say("tried", script=name), result.failure(self.task.language), self._say(key))
        if not output:
            raise SourceError(self._say("tried", script=name), self._silent(result), self._say("next_print"))
        cited = [evidence.cite(passage) for passage in (*output, *errors)]
        title, text = self._say("run_of", script=name), self._record_text(name, result)
        record = evidence.cite(Passage("", code_output.KIND, str(result.script), result.sha256, title, {}, text))
        log[-1]["statement"] = result.statement(self.task.language) if result.run.not_enforced else ""
        log[-1]["record"] = record.id
        log[-1]["output"] = [p.id for p in cited[: len(output)]]
        return log

    def _silent(self, result: CodeResult) -> str:
        if result.artefacts:
            return self._say("failed_silent_files", files=self._files(result))
        return self._say("failed_silent")

    def _record_text(self, name: str, result: CodeResult) -> str:
        lines = [self._say("record", script=name, code=result.run.exit_code)]
        if result.artefacts:
            lines.append(self._say("record_files", files=self._files(result)))
        if result.run.left_out:
            lines.append(
                self._say("record_left_out", files=self._say("comma").join(result.run.left_out[:_FILES_SHOWN]))
            )
        return "\n".join(lines)

    def _files(self, result: CodeResult) -> str:
        shown = [self._say("file", name=a.path.name, size=f"{a.size:,}") for a in result.artefacts[:_FILES_SHOWN]]
        if rest := len(result.artefacts) - len(shown):
            shown.append(self._say("more", count=rest))
        return self._say("comma").join(shown)

    def _evidence(
        self, block: SolveBlock, evidence: InvestigateMemory, logs: list[dict[str, Any]]
    ) -> tuple[list[Passage], list[Passage]]:
        """(passages of its output, the record of its run)."""
        log = next(entry for entry in (*logs, *_logs(block)) if entry.get("tool") == TOOL and "record" in entry)
        found = [p for i in log["output"] if (p := evidence.get(i)) is not None]
        return found, [p for p in [evidence.get(log["record"])] if p is not None]

    def _quotes(self, output: list[Passage]) -> list[Cited]:
        lines = code_output.lines_to_quote(self.question, output, self.task.language)
        return [Cited(line, passage) for passage, line in lines]

    def check(self, draft: Draft, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> Opinion:
        """Code has checked all that can be checked without a model."""
        return Opinion(passed=True)

    def conclude(self, solve_memory: SolveMemory, investigate_memory: InvestigateMemory) -> str:
        direct: list[Cited] = []
        further: list[list[Cited]] = []
        statements: list[str] = []
        for block in solve_memory.plan.blocks:
            output, record = self._evidence(block, investigate_memory, [])
            quotes = self._quotes(output)
            if not quotes:
                name = self._name(_index(block))
                why = self._say("failed_unquotable")
                raise SourceError(self._say("tried", script=name), why, self._say("next_print"))
            direct += [quote for quote in quotes if quote not in direct]
            further.append(_record(record))
            statements += [entry["statement"] for entry in _logs(block) if entry.get("statement")]
        return compose(direct, further, list(dict.fromkeys(statements)), [], self.task.language)

    def precise(self, answer: str) -> str:
        """The direct answer alone: the first paragraph without the mark."""
        return answer.split("\n\n", 1)[0].removeprefix("[结论]").strip()

    def usage(self) -> dict[str, int]:
        return {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0}


def _index(block: SolveBlock) -> int:
    return int(block.block_id[1:]) - 1


def _logs(block: SolveBlock) -> list[dict[str, Any]]:
    return [entry for step in block.steps for entry in step.tool_logs]


def _ran(block: SolveBlock) -> bool:
    return any(entry.get("tool") == TOOL and "record" in entry for entry in _logs(block))


def _record(record: list[Passage]) -> list[Cited]:
    return [Cited(one_line(line), passage) for passage in record for line in passage.text.split("\n")]
