"""A CODE node: its source or its question -> the scripts to run, and the mind and memories to run them with."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dr import language
from dr.agent import sources
from dr.agent.agents.code_agent import CodeAgent
from dr.agent.code_mind import CodeMind
from dr.agent.code_output import KIND
from dr.agent.code_words import say
from dr.agent.memory import InvestigateMemory, SolveMemory
from dr.agent.mind import Mind, Task
from dr.agent.offline import OfflineMind
from dr.agent.request import Request
from dr.agent.sandbox import is_script
from dr.agent.tools import Toolbox
from dr.errors import SourceError
from dr.layout import NodeFolder, Root
from dr.settings import Settings

_FENCED = re.compile(r"(?ms)^[ \t]*```[ \t]*(?:python3?|py)[ \t]*\n(.*?)^[ \t]*```[ \t]*$")


@dataclass(frozen=True)
class Job:
    """scripts: paths, or code that stands in the question; given: all sources, readable for each of them."""

    question: str
    scripts: list[Path | str]
    given: list[Path]


def prepare(
    request: Request,
    folder: NodeFolder,
    root: Root,
    settings: Settings,
    model_mind: Callable[[Settings, Task, Toolbox], Mind],
    log: Callable[[str], None],
) -> tuple[Task, Mind, InvestigateMemory, SolveMemory]:
    """What the Solve Loop needs. SourceError when there is nothing to run; model_mind: for minds that write code."""
    context = request.context
    question = _FENCED.sub("", context.sub_question).strip() or context.sub_question
    lang = language.detect(question)
    job = find_job(request, folder, root, lang)
    task = Task(context.sub_question, request.type, KIND, lang, context.root_question, context.parent_conclusions, [])
    agent = CodeAgent(settings, folder, lang, read_only=job.given, hidden=[root.temp, root.config])
    tools = Toolbox([], task.root_question, task.parent_conclusions, code_agent=agent)
    if job.scripts:
        mind: Mind = CodeMind(task, question, job.scripts, tools)  # what a given script prints needs no model
    else:
        mind = model_mind(settings, task, tools)
        if isinstance(mind, OfflineMind):
            raise SourceError(say(lang, "tried_node"), say(lang, "no_code"), say(lang, "next_code"))
    log(f"[Code] {len(job.scripts)} script(s), {len(job.given)} source(s), read-only")
    evidence = InvestigateMemory.load(folder.path)
    memory = SolveMemory.load_or_create(folder.path, task.question)
    if memory.plan.blocks and not _unchanged(job, evidence):
        log("[Memory] The scripts have changed: starting anew")
        folder.solve_memory.unlink()
        memory = SolveMemory.load_or_create(folder.path, task.question)
    if not memory.plan.blocks:
        evidence = InvestigateMemory.empty(folder.path)
    return task, mind, evidence, memory


def find_job(request: Request, folder: NodeFolder, root: Root, lang: str) -> Job:
    """The scripts among the sources, else the ```python blocks of the question. SourceError: a source is missing, is
    another node's, or is the only one and nothing that can be run."""
    source = request.context.source
    paths = sources.local_paths(source, root) if source.strip() else []
    fence = sources.Fence(root, folder)
    tried = say(lang, "tried_node")
    for path in paths:
        if not path.exists():
            raise SourceError(tried, say(lang, "missing", path=path), say(lang, "next_code"))
        if not fence(path.resolve()):
            raise SourceError(tried, say(lang, "other_node", path=path), say(lang, "next_code"))
    paths = list(dict.fromkeys(path.absolute() for path in paths))
    found = [path for path in paths if is_script(path)]
    modules = _imported(found)
    scripts: list[Path | str] = [path for path in found if path not in modules] or [*found]
    blocks = [block for block in _FENCED.findall(request.context.sub_question) if block.strip()]
    if not scripts and not blocks and paths:
        raise SourceError(tried, say(lang, "not_runnable", path=paths[0]), say(lang, "next_runnable"))
    return Job(request.context.sub_question, scripts or [*blocks], paths)


def _imported(scripts: list[Path]) -> set[Path]:
    """Those that another one next to them imports: modules, not scripts to run."""
    by_name = {(path.parent, path.stem): path for path in scripts}
    found: set[Path] = set()
    for script in scripts:
        try:
            tree = ast.parse(script.read_bytes())
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # running it will say what is wrong
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            wanted = (by_name.get((script.parent, name.split(".")[0])) for name in names)
            found |= {path for path in wanted if path is not None and path != script}
    return found


def _unchanged(job: Job, evidence: InvestigateMemory) -> bool:
    """Whether every run so far was of a script that would be run now. Code in the question is part of the memory."""
    now = {hashlib.sha256(script.read_bytes()).hexdigest() for script in job.scripts if isinstance(script, Path)}
    runs = {passage.sha256 for passage in evidence.passages if not passage.locator}
    return runs <= now or not now
