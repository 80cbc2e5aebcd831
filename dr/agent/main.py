"""One request -> output.txt, evidence.jsonl, solve_memory.json, final_answer.md, usage.json of a node folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dr import files
from dr.agent import sources
from dr.agent.request import Request
from dr.agent.unreadable import Unreadable
from dr.contract import ROUND_END, NodeType
from dr.errors import UsageError
from dr.layout import NodeFolder, Root

# What thinks is imported once the sources are read: start-up CPU is what bounds a wide DAG.
if TYPE_CHECKING:
    from dr.agent.loop import Log
    from dr.agent.memory import InvestigateMemory, SolveMemory
    from dr.agent.mind import Mind, Task
    from dr.agent.tools import Toolbox
    from dr.contract import Passage
    from dr.settings import Settings

LoadSettings = Callable[[], "Settings"]


@dataclass(frozen=True)
class Answer:
    """text: the conclusion; brief: the short answer, "" unless it is enabled."""

    text: str
    brief: str


def run_node(request: Request, folder: NodeFolder, root: Root, load: LoadSettings, log: Log, warn: Log) -> None:
    """Answer `request` in `folder`. output.txt is written last, and only when there is a conclusion."""
    answer = work(request, folder, root, load, log, warn)
    given = Path(request.context.output_file)
    if given.name != folder.output.name:
        files.write_text(given, answer.text + "\n")
    files.write_text(folder.output, finished(answer.text))


def finished(text: str) -> str:
    return f"{text}\n\n{ROUND_END}\n"


def work(request: Request, folder: NodeFolder, root: Root, load: LoadSettings, log: Log, warn: Log) -> Answer:
    """The Solve Loop over the node's sources. SourceError when they cannot be read or do not answer.

    read_sources (CODE: code_node.prepare) -> memories -> mind -> loop.solve -> PrecisionAnswerAgent
    """
    if request.type is NodeType.CODE:
        from dr.agent import code_node

        settings = load()
        choose = _chooser(request, folder, root, log)
        task, mind, evidence, memory = code_node.prepare(request, folder, root, settings, choose, log)
    else:
        task, mind, evidence, memory = _prepare(request, folder, root, load, log, warn)
        settings = load()
    from dr.agent import loop
    from dr.agent.agents.precision_answer_agent import PrecisionAnswerAgent
    from dr.agent.words import say

    log(f"[Mind] {mind.name}")
    try:
        text = loop.solve(task, mind, memory, evidence, settings, log)
        precise = PrecisionAnswerAgent(settings, mind).process(task.question, text)
    finally:
        files.write_json(folder.usage, mind.usage())
    brief = precise["precision_answer"]
    heading = f"\n\n## {say(task.language, 'brief')}\n\n{brief}" if brief else ""
    files.write_text(folder.final_answer, f"{text}{heading}\n")
    return Answer(text, brief)


def _prepare(
    request: Request, folder: NodeFolder, root: Root, load: LoadSettings, log: Log, warn: Log
) -> tuple[Task, Mind, InvestigateMemory, SolveMemory]:
    """What the Solve Loop needs, from documents."""
    try:
        corpus = sources.read_sources(request, folder, root, load, log)
    except Unreadable:
        raise sources.type_error(request, _language(request)) from None
    from dr.agent.mind import Task
    from dr.agent.tools import Toolbox
    from dr.agent.words import say

    settings, lang = load(), _language(request)
    if not corpus.documents:
        raise sources.nothing_read(request, corpus, lang)
    unread = sources.notes(corpus, lang)
    for note in unread:
        warn(say(lang, "unread", reasons=note))
    log(f"[Sources] {len(corpus.documents)} document(s), {len(corpus.passages)} passage(s)")
    task = Task(
        request.context.sub_question,
        request.type,
        sources.KINDS[request.type],
        lang,
        request.context.root_question,
        request.context.parent_conclusions,
        unread,
    )
    evidence, memory = _memories(folder, task, corpus.passages, log)
    tools = Toolbox(corpus.passages, task.root_question, task.parent_conclusions)
    return task, _chooser(request, folder, root, log)(settings, task, tools), evidence, memory


def _language(request: Request) -> str:
    from dr import language

    return language.detect(request.context.sub_question)


def _memories(
    folder: NodeFolder, task: Task, passages: list[Passage], log: Log
) -> tuple[InvestigateMemory, SolveMemory]:
    """The memories in `folder` when they are of this question and these sources; else new ones."""
    from dr.agent.memory import InvestigateMemory, SolveMemory

    evidence = InvestigateMemory.load(folder.path)
    memory = SolveMemory.load_or_create(folder.path, task.question)
    held = {(p.place, p.sha256, p.text) for p in passages}
    fresh = not memory.plan.blocks
    extra = _extra(evidence.passages, passages, task)
    if fresh or any((p.place, p.sha256, p.text) not in held for p in evidence.passages if p not in extra):
        if not fresh:
            log("[Memory] The sources have changed: starting anew")
            folder.solve_memory.unlink()
            memory = SolveMemory.load_or_create(folder.path, task.question)
        evidence = InvestigateMemory.empty(folder.path)
    else:
        passages += [p for p in extra if p.kind == task.kind]  # pages that were found on the way
        log(f"[Memory] Going on: {memory.metadata['completed_steps']} of {memory.metadata['total_steps']} step(s) done")
    return evidence, memory


def _extra(evidence: list[Passage], held: list[Passage], task: Task) -> list[Passage]:
    """Evidence that does not come from the node's sources: what code printed, and pages that were found on the way."""
    places, web = {passage.place for passage in held}, task.node_type is NodeType.WEB
    return [p for p in evidence if p.kind != task.kind or (web and p.place not in places)]


def _chooser(request: Request, folder: NodeFolder, root: Root, log: Log) -> Callable[[Settings, Task, Toolbox], Mind]:
    """The mind that the settings ask for; `auto` is the model when one is configured, else the offline one."""

    def choose(settings: Settings, task: Task, tools: Toolbox) -> Mind:
        if not thinks_with_model(settings):
            from dr.agent.offline import OfflineMind

            return OfflineMind(task, tools)
        from dr.agent.model_node import chat_mind

        return chat_mind(settings, task, tools, folder=folder, root=root, source=request.context.source, log=log)

    return choose


def thinks_with_model(settings: Settings) -> bool:
    """UsageError: the mind that is asked for is none of ours."""
    if settings.mind == "agent":
        raise UsageError("use mind 'agent'", "this subagent has no such mind", "set DR_MIND=model or DR_MIND=offline")
    return settings.mind == "model" or (settings.mind == "auto" and bool(settings.model and settings.base_url))
