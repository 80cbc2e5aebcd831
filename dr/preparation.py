"""What a user asks for -> a run folder that has not started: sources checked, mind and agent chosen, dag.md, run.json.

Everything that can be wrong with the input is found before anything is made.
"""

from __future__ import annotations

import importlib.util
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dr import files, run_folder
from dr.contract import NodeType, check_name, join_sources, split_sources
from dr.dag import Dag
from dr.dag_file import DagFile
from dr.errors import UsageError
from dr.folder_readme import readme
from dr.language import detect
from dr.layout import Root, RunFolder
from dr.run_folder import RunRecord
from dr.settings import Settings, apply_flags, from_record, load, to_record
from dr.subagent import choose_agent


class Prepared(NamedTuple):
    """A run folder and the settings that hold for it. why: why its plan is a single node, "" otherwise."""

    folder: RunFolder
    settings: Settings
    record: RunRecord
    why: str = ""


def planned(
    root: Root,
    flags: dict[str, Any],
    *,
    question: str | None,
    source: list[str],
    task: str | None,
    dag: Path | None,
    replace: bool,
) -> Prepared:
    """A new run folder with its plan. Everything that can be wrong with the input is found before it is made."""
    settings = load(root.path, flags)
    sources = check_sources(source)
    if task is not None:
        check_name(task.removeprefix("dr_"), "task name")
    mind = choose_mind(root, settings)
    choose_agent(root, settings.agent, mind)
    if dag is not None:
        plan = Dag.parse(files.read_given(dag), str(dag))
        plan, why = absolute_sources(plan, Path.cwd(), dag.resolve().parent, root.path), ""
    else:
        question = (question or "").strip()
        if not question:
            raise UsageError("plan a run", "the question is empty", 'python dr_runner.py "QUESTION" --source FOLDER')
        if task is not None and not replace:
            run_folder.check_new(root, task)  # before a planner takes its time
        if mind == "model" or (mind == "agent" and root.is_genericagent):
            return _planned_by_model(root, settings, mind, question, sources, task, replace)
        plan, why = _first_plan(root, settings, question, sources)
    name = task or run_folder.name_from(plan.root, root)
    folder = new_run(root, name, plan, settings, mind=mind, why=why, replace_old=replace)
    return Prepared(folder, settings, run_folder.read_record(folder), why)


def _planned_by_model(
    root: Root, settings: Settings, mind: str, question: str, sources: list[str], task: str | None, replace: bool
) -> Prepared:
    """The first plan by the chat model or GA's own; where none comes, the offline one, and why."""
    from dr import thinker
    from dr.planning import node_of

    notes: list[str] = []
    with thinker.of_plan(root, settings, mind, notes) as (planner, place):
        assert planner is not None  # the caller has seen to it
        found = planner.first_plan(question, sources, memory=settings.memory is not None or root.memory.is_dir())
        plan = Dag.new(question, question, [node_of(step) for step in found.steps], detect(question))
        plan = absolute_sources(plan, Path.cwd(), root.path)
        why = " ".join(filter(None, [found.single_reason, *notes]))
        name = task or run_folder.name_from(question, root)
        folder = new_run(root, name, plan, settings, mind=mind, why=why, replace_old=replace)
        thinker.keep(place, folder)
    return Prepared(folder, settings, run_folder.read_record(folder), why)


def _first_plan(root: Root, settings: Settings, question: str, sources: list[str]) -> tuple[Dag, str]:
    """The plan, and why it is a single node ("" when it is more)."""
    from dr.planner import first_plan
    from dr.planning import node_of

    found = first_plan(question, sources, memory=settings.memory is not None or root.memory.is_dir())
    nodes = [node_of(step) for step in found.steps]
    if any(n.type is NodeType.WEB and "://" not in n.source for n in nodes) and not _can_search(settings):
        raise UsageError(
            f"plan a run for {question!r}",
            "no source is given, and no search engine is configured",
            'python dr_runner.py "QUESTION" --source FOLDER_FILE_OR_URL, or set searxng_url (config.example.yaml)',
        )
    return Dag.new(question, question, nodes, detect(question)), found.single_reason or ""


def _can_search(settings: Settings) -> bool:
    return bool(settings.searxng_url or settings.search_api_key) or importlib.util.find_spec("ddgs") is not None


def startable(root: Root, task: str, dag: Path | None, replace: bool, flags: dict[str, Any]) -> Prepared:
    """The run of `start`: one that exists, one made from --dag, or one whose dag.md was written into its folder."""
    folder = run_folder.folder_of(root, task)
    if dag is None and folder.run.exists():
        return existing(root, task, flags)
    if dag is None and not folder.dag.exists():
        raise UsageError(
            f"start task {folder.task}", f"there is no {folder.dag}", "write it, or give one with --dag FILE"
        )
    if dag is None:
        return _adopt_dag(root, folder, flags)
    return planned(root, flags, question=None, source=[], task=task, dag=dag, replace=replace)


def _adopt_dag(root: Root, folder: RunFolder, flags: dict[str, Any]) -> Prepared:
    settings = load(root.path, flags)
    mind = choose_mind(root, settings)
    choose_agent(root, settings.agent, mind)
    parsed = Dag.parse(files.read_given(folder.dag), str(folder.dag))
    parsed = absolute_sources(parsed, Path.cwd(), root.path)
    record_plan(folder, parsed, settings, mind=mind, why="")
    return Prepared(folder, settings, run_folder.read_record(folder))


def existing(root: Root, task: str, flags: dict[str, Any]) -> Prepared:
    folder = run_folder.folder_of(root, task)
    record = run_folder.read_record(folder)
    return Prepared(folder, settings_of(root, record.settings, flags), record)


def settings_of(root: Root, recorded: dict[str, Any], flags: dict[str, Any]) -> Settings:
    """Those of the run, with this machine's secrets, and flags given now over both."""
    return apply_flags(from_record(recorded, load(root.path, {})), flags)


def choose_mind(root: Root, settings: Settings) -> str:
    """auto: the model when one is configured, else GA's in a GA root, else offline."""
    if settings.mind != "auto":
        return settings.mind
    if settings.model and settings.base_url:
        return "model"
    return "agent" if root.is_genericagent else "offline"


def max_steps(settings: Settings, original: int) -> int:
    """Attempts that the run may start in all; a retry counts as one."""
    return settings.max_steps if settings.max_steps is not None else max(12, 3 * original + 6)


def check_sources(sources: list[str]) -> list[str]:
    """Sources given on the command line, paths made absolute. UsageError for one that does not exist."""
    checked = []
    for source in sources:
        scheme, colon, rest = source.partition("://")
        if colon and scheme.lower() in ("http", "https"):
            checked.append(scheme.lower() + colon + rest)
            continue
        wrong, path = "", Path(source)
        try:
            path = path.expanduser()
            if not source.strip():
                wrong = "it is empty"
            elif not path.exists():
                wrong = f"{_short(str(path.absolute()))} does not exist"
            elif not (path.is_dir() or path.is_file()):
                wrong = "it is neither a file nor a folder"
            elif split_sources(name := str(path.resolve())) != [name]:
                wrong = "its path holds a ';' that would divide it into two"
            else:
                name.encode()  # one that is not UTF-8 could not be written into dag.md
        except (OSError, RuntimeError, ValueError) as error:  # too long; a home that is not known; a NUL; not UTF-8
            wrong = getattr(error, "strerror", None) or str(error)
        if wrong:
            raise UsageError(f"use source {_short(source)!r}", wrong, "give an existing file, folder or URL")
        checked.append(str(path.resolve()))
    return checked


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:199] + "…"


def absolute_sources(dag: Dag, *bases: Path) -> Dag:
    """Relative paths made absolute: against the first of `bases` under which they exist."""
    for node in dag.work_nodes:
        parts = [_absolute(s, bases) for s in split_sources(node.source)] if _has_paths(node.type) else []
        if parts and join_sources(parts) != node.source:
            dag = dag.with_node(replace(node, source=join_sources(parts)))
    return dag


def _has_paths(node_type: NodeType) -> bool:
    return node_type in (NodeType.LOCAL, NodeType.CODE, NodeType.MEMORY)


def _absolute(source: str, bases: tuple[Path, ...]) -> str:
    if "://" in source or Path(source).expanduser().is_absolute():
        return source
    found = next((base / source for base in bases if (base / source).exists()), None)
    return str(found.resolve()) if found else source


def new_run(
    root: Root, task: str, dag: Dag, settings: Settings, *, mind: str, why: str, replace_old: bool
) -> RunFolder:
    """The folder of a run that has not started: dag.md, run.json, README.md."""
    folder = run_folder.create(root, task, replace_old=replace_old)
    record_plan(folder, dag, settings, mind=mind, why=why)
    return folder


def record_plan(folder: RunFolder, dag: Dag, settings: Settings, *, mind: str, why: str) -> None:
    """Make a folder a run: its plan in canonical form and its record, run.json last."""
    nodes, language = [n.id for n in dag.work_nodes], detect(dag.root)
    record = RunRecord(
        task=folder.task,
        question=dag.root,
        language=language,
        mind=mind,
        agent=settings.agent,
        settings=to_record(settings),
        original=len(nodes),
        rounds=[{"round": 1, "nodes": nodes, "why": why}],
        notes=[why] if why else [],
        started=time.time(),
    )
    # A folder without run.json is no run, so a kill in between leaves nothing half made.
    DagFile.create(folder, dag)
    files.write_text(folder.readme, readme(language))
    run_folder.write_record(folder, record)
