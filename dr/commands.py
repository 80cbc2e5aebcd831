"""The verbs: plain functions that return an exit code. They read and write through the parts below, and print nothing
themselves but what they hand to the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dr import files, run_folder, session
from dr.contract import State, check_name
from dr.dag import Dag
from dr.errors import EXIT_OK, EXIT_USAGE, DagError, UsageError
from dr.language import detect
from dr.layout import Root, RunFolder
from dr.settings import Settings, from_record, load
from dr.terminal import Terminal
from dr.words import say


def run(root: Root, terminal: Terminal, flags: dict[str, Any], **request: Any) -> int:
    """Plan, run, report: prints the answer, then the report's path."""
    folder, settings = _planned(root, terminal, flags, **request)
    return _drive(root, terminal, folder, settings)


def plan(root: Root, terminal: Terminal, flags: dict[str, Any], **request: Any) -> int:
    """Write dag.md and say how much the run can become at most; start nothing."""
    folder, settings = _planned(root, terminal, flags, **request)
    record = run_folder.read_record(folder)
    nodes, steps = record.original, session.max_steps(settings, record.original)
    bounds = {"nodes": nodes, "max_nodes": 3 * nodes if settings.max_rounds > 1 else nodes, "max_attempts": steps}
    next_step = f"python dr_runner.py resume {folder.task}"
    data = {"task": folder.task, "dag": str(folder.dag), **bounds, "notes": record.notes, "next": next_step}
    lines = [files.read_text(folder.dag).rstrip(), "", *record.notes, say(record.language, "plan_bounds", **bounds)]
    terminal.result(data, "\n".join([*lines, str(folder.dag), next_step]))
    return EXIT_OK


def resume(root: Root, terminal: Terminal, task: str, flags: dict[str, Any]) -> int:
    """Go on with a run that was planned, interrupted or killed."""
    folder = run_folder.folder_of(root, task)
    record = run_folder.read_record(folder)
    settings = _settings_of(root, record.settings, flags)
    terminal.language = record.language
    return _drive(root, terminal, folder, settings)


def stop(root: Root, terminal: Terminal, task: str) -> int:
    """End a run's processes, whoever drives it, and leave it resumable."""
    from dr import stopping

    folder = run_folder.folder_of(root, task)
    record = run_folder.read_record(folder)
    ended = stopping.stop(root, folder, _settings_of(root, record.settings, {}))
    next_step = f"python dr_runner.py resume {folder.task}"
    terminal.result({"task": folder.task, "ended": ended, "next": next_step}, next_step)
    return EXIT_OK


def status(root: Root, terminal: Terminal, task: str) -> int:
    from dr import overview

    data = overview.status(run_folder.folder_of(root, task))
    terminal.result(data, overview.status_text(data))
    return EXIT_OK


def trace(root: Root, terminal: Terminal, task: str) -> int:
    from dr import overview

    folder = run_folder.folder_of(root, task)
    record = run_folder.read_record(folder)
    lines = overview.trace(folder, record.language)
    terminal.result({"task": folder.task, "events": str(folder.events), "lines": lines[-40:]}, "\n".join(lines))
    return EXIT_OK


def list_(root: Root, terminal: Terminal) -> int:
    from dr import overview

    rows = [overview.row(folder) for folder in run_folder.tasks(root)]
    terminal.result({"runs": rows}, overview.rows_text(rows))
    return EXIT_OK


def check(root: Root, terminal: Terminal, file: Path, rewrite: bool) -> int:
    """A dag.md: the plan it means, or what is wrong with it, by line."""
    text = _read_input(file)
    try:
        dag = Dag.parse(text, str(file))
    except DagError as error:
        errors = [{"line": e.line, "message": e.message} for e in error.errors]
        data: dict[str, Any] = {"title": None, "root": None, "nodes": [], "errors": errors}
        if not terminal.as_json:
            raise
        terminal.whole(data, "")
        return EXIT_USAGE
    if rewrite:
        terminal.raw(dag.render())
        return EXIT_OK
    nodes = [
        {
            **{"id": n.id, "type": n.type.value, "sub_question": n.sub_question, "depends_on": list(n.depends_on)},
            **{"state": n.state.value, "source": n.source, "expected_outcome": n.expected_outcome},
        }
        for n in dag.nodes
    ]
    terminal.whole({"title": dag.title, "root": dag.root, "nodes": nodes, "errors": []}, _plan_text(dag, file))
    return EXIT_OK


def _plan_text(dag: Dag, file: Path) -> str:
    lines = [f"{n.id:<12} {n.type.value:<7} [{n.state.mark}] {n.sub_question}" for n in dag.nodes]
    ready = [n.id for n in dag.work_nodes if n.state is State.PENDING and _is_free(dag, n.depends_on)]
    return "\n".join([dag.title, *lines, f"ready: {', '.join(ready) or '-'}", f"python dr_runner.py run --dag {file}"])


def _is_free(dag: Dag, parents: tuple[str, ...]) -> bool:
    return all(dag.node(p).state.settled for p in parents)


def clean(root: Root, terminal: Terminal, file: Path) -> int:
    """An output.txt: whether it is finished, what it is worth, and its conclusion."""
    from dr.output import extract

    found = extract(_read_input(file))
    data = {"finished": found.finished, "verdict": found.verdict, "conclusion": found.conclusion}
    terminal.whole(data, found.conclusion or f"{found.verdict}: no conclusion")
    return EXIT_OK


# -- shared --------------------------------------------------------------------------------------------------------


def _read_input(file: Path) -> str:
    try:
        return files.read_text(file)
    except OSError as error:
        raise UsageError(f"read {file}", error.strerror or str(error), "give a file that can be read") from error


def _settings_of(root: Root, recorded: dict[str, Any], flags: dict[str, Any]) -> Settings:
    """Those of the run, with this machine's secrets, and flags given now over both."""
    from dr.settings import apply_flags

    return apply_flags(from_record(recorded, load(root.path, {})), flags)


def _planned(
    root: Root,
    terminal: Terminal,
    flags: dict[str, Any],
    *,
    question: str | None,
    source: list[str],
    task: str | None,
    dag: Path | None,
    replace: bool,
) -> tuple[RunFolder, Settings]:
    """A new run folder with its plan. Everything that can be wrong with the input is found before it is made."""
    settings = load(root.path, flags)
    sources = session.check_sources(source)
    if task is not None:
        check_name(task.removeprefix("dr_"), "task name")
    mind = session.choose_mind(root, settings)
    session.choose_agent(root, settings.agent, mind)
    if dag is not None:
        parsed = Dag.parse(_read_input(dag), str(dag))
        parsed = session.absolute_sources(parsed, Path.cwd(), dag.resolve().parent, root.path)
        why = ""
        language = parsed.lang
    else:
        text = (question or "").strip()
        if not text:
            raise UsageError("plan a run", "the question is empty", 'python dr_runner.py "QUESTION" --source FOLDER')
        from dr.planner import first_plan

        language = detect(text)
        memory = settings.memory is not None or root.memory.is_dir()
        found = first_plan(text, sources, memory)
        why = found.single_reason or ""
        from dr.planning import node_of

        parsed = Dag.new(text, text, [node_of(s) for s in found.steps], language)
    terminal.language = language
    name = task or run_folder.name_from(parsed.root, root)
    folder = session.new_run(root, name, parsed, settings, mind=mind, language=language, why=why, replace_old=replace)
    terminal.note(say(language, "line_planned", task=folder.task, mind=mind, nodes=len(parsed.work_nodes)))
    if why:
        terminal.note(why)
    return folder, settings


def _drive(root: Root, terminal: Terminal, folder: RunFolder, settings: Settings) -> int:
    with session.opened(root, folder, settings, terminal.event) as run_session:
        run_session.drive()
        if run_session.runner.interrupted:
            run_session.interrupt()
        else:
            run_session.finish()
        code = session.exit_code(run_session.run.record, run_session.runner.machine)
    record = run_folder.read_record(folder)
    if record.status == "interrupted":
        next_step = f"python dr_runner.py resume {folder.task}"
        terminal.result(
            {"task": folder.task, "status": record.status, "reason": record.reason, "next": next_step}, next_step
        )
        return code
    result = files.read_json(folder.result)
    terminal.result(result, f"{result['answer']}\n\n{folder.report}")
    return code
