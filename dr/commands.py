"""The verbs: plain functions that return an exit code. They read and write through the parts below, and print nothing
themselves but what they hand to the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dr import files, preparation, run_folder
from dr.contract import State
from dr.dag import Dag
from dr.errors import EXIT_OK, EXIT_USAGE, DagError, UsageError
from dr.layout import Root, RunFolder
from dr.preparation import Prepared
from dr.settings import Settings
from dr.terminal import Terminal
from dr.words import say


def run(root: Root, terminal: Terminal, flags: dict[str, Any], **request: Any) -> int:
    """Plan, run, report: prints the answer, then the report's path."""
    folder, settings = _prepared(terminal, preparation.planned(root, flags, **request))
    return _drive(root, terminal, folder, settings)


def plan(root: Root, terminal: Terminal, flags: dict[str, Any], **request: Any) -> int:
    """Write dag.md and say how much the run can become at most; start nothing."""
    folder, settings = _prepared(terminal, preparation.planned(root, flags, **request))
    record = run_folder.read_record(folder)
    nodes, steps = record.original, preparation.max_steps(settings, record.original)
    bounds = {"nodes": nodes, "max_nodes": 3 * nodes if settings.max_rounds > 1 else nodes, "max_attempts": steps}
    next_step = f"python dr_runner.py resume {folder.task}"
    data = {"task": folder.task, "dag": str(folder.dag), **bounds, "notes": record.notes, "next": next_step}
    lines = [files.read_text(folder.dag).rstrip(), "", *record.notes, say(record.language, "plan_bounds", **bounds)]
    terminal.result(data, "\n".join([*lines, str(folder.dag), next_step]))
    return EXIT_OK


def resume(root: Root, terminal: Terminal, task: str, flags: dict[str, Any]) -> int:
    """Go on with a run that was planned, interrupted or killed."""
    folder, settings = _prepared(terminal, preparation.existing(root, task, flags))
    return _drive(root, terminal, folder, settings)


def start(
    root: Root, terminal: Terminal, task: str, dag: Path | None, detach: bool, replace: bool, flags: dict[str, Any]
) -> int:
    """Launch what is ready and return; `poll` collects. detach: a runner in the background goes on by itself."""
    from dr import polling

    folder, settings = _prepared(terminal, preparation.startable(root, task, dag, replace, flags))
    if detach:
        pid = polling.detach(folder, root, flags)
        data: dict[str, Any] = {"task": folder.task, "status": "running", "runner": pid, "log": str(folder.log)}
        data["next"] = f"python dr_runner.py poll {folder.task}"
        terminal.result(data, f"runner {pid}, log {folder.log}\n{data['next']}")
        return EXIT_OK
    _show(terminal, folder, polling.start(root, folder, settings, terminal.event))
    return EXIT_OK


def poll(root: Root, terminal: Terminal, task: str, wait: float, flags: dict[str, Any]) -> int:
    """Collect, launch what became ready; return when something changed, or after `wait` seconds."""
    from dr import polling

    folder, settings = _prepared(terminal, preparation.existing(root, task, flags))
    _show(terminal, folder, polling.poll(root, folder, settings, terminal.event, wait))
    return EXIT_OK


def _show(terminal: Terminal, folder: RunFolder, data: dict[str, Any]) -> None:
    from dr import overview

    terminal.result(data, overview.status_text(data))


def synth(root: Root, terminal: Terminal, task: str, from_: Path | None, now: bool, flags: dict[str, Any]) -> int:
    """The report of what is there. from_: the answer, written by the outer agent, checked and completed here."""
    from dr import session

    folder, settings = _prepared(terminal, preparation.existing(root, task, flags))
    answer = files.read_given(from_) if from_ else None
    with session.opened(root, folder, settings, terminal.event, deepens=False, leave=True) as opened:
        open_nodes = [str(s.id) for s in opened.runner.machine.remaining()]
        if open_nodes and not now:
            opened.undo()
            raise UsageError(
                f"report on {folder.task}",
                f"not settled yet: {', '.join(open_nodes[:10])}",
                f"python dr_runner.py poll {folder.task}, or synth --now to end and skip them",
            )
        opened.runner.end(opened.runner.attempts.live(), "by_hand")
        for node_id in open_nodes:
            if not opened.runner.machine.states[node_id].settled:
                opened.runner.machine.skip(node_id, "by_hand")
        opened.finish(answer)
        code = session.exit_code(opened.run.record, opened.runner.machine)
    _show_report(terminal, folder)
    return code


def add(
    root: Root,
    terminal: Terminal,
    task: str,
    type_: str,
    question: str,
    depends: str | None,
    source: str | None,
    id_: str | None,
) -> int:
    from dr import changing

    folder, _ = _prepared(terminal, preparation.existing(root, task, {}))
    sources = "; ".join(preparation.check_sources([s for s in (source or "").split("; ") if s]))
    node = changing.add(folder, type_, question, depends, sources, id_)
    return _changed(terminal, folder, node.id)


def retry(root: Root, terminal: Terminal, task: str, node: str) -> int:
    """Run a settled node again, then its descendants."""
    return _set(root, terminal, task, node, State.PENDING)


def skip(root: Root, terminal: Terminal, task: str, node: str) -> int:
    return _set(root, terminal, task, node, State.SKIPPED)


def _set(root: Root, terminal: Terminal, task: str, node: str, state: State) -> int:
    from dr import changing

    folder, _ = _prepared(terminal, preparation.existing(root, task, {}))
    changing.set_state(folder, node, state)
    return _changed(terminal, folder, node)


def reply(root: Root, terminal: Terminal, task: str, node: str, text: str) -> int:
    from dr import changing

    folder, _ = _prepared(terminal, preparation.existing(root, task, {}))
    changing.reply(folder, node, text)
    return _changed(terminal, folder, node)


def _changed(terminal: Terminal, folder: RunFolder, node: str) -> int:
    next_step = f"python dr_runner.py poll {folder.task}"
    terminal.result({"task": folder.task, "node": node, "next": next_step}, f"{node}\n{next_step}")
    return EXIT_OK


def stop(root: Root, terminal: Terminal, task: str) -> int:
    """End a run's processes, whoever drives it, and leave it resumable."""
    from dr import stopping

    folder = run_folder.folder_of(root, task)
    record = run_folder.read_record(folder)
    ended = stopping.stop(root, folder, preparation.settings_of(root, record.settings, {}))
    from dr import overview

    next_step = overview.status(folder)["next"]
    terminal.result({"task": folder.task, "ended": ended, "next": next_step}, f"{ended}\n{next_step}")
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


def verify(root: Root, terminal: Terminal, task: str) -> int:
    """The report's citations checked again, from files alone."""
    from dr import verification

    folder = run_folder.folder_of(root, task)
    data = verification.verify(folder)
    terminal.result(data, verification.text(data, run_folder.read_record(folder).language))
    return EXIT_OK


def list_(root: Root, terminal: Terminal) -> int:
    from dr import overview

    rows = sorted(map(overview.row, run_folder.tasks(root)), key=lambda row: row.get("started") or 0.0)
    terminal.result({"runs": rows}, overview.rows_text(rows))
    return EXIT_OK


def check(root: Root, terminal: Terminal, file: Path, rewrite: bool) -> int:
    """A dag.md: the plan it means, or what is wrong with it, by line."""
    text = files.read_given(file)
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

    found = extract(files.read_given(file))
    data = {"finished": found.finished, "verdict": found.verdict, "conclusion": found.conclusion}
    terminal.whole(data, found.conclusion or f"{found.verdict}: no conclusion")
    return EXIT_OK


def install(root: Root, terminal: Terminal, ga_root: Path, dry_run: bool, index: bool, uninstall: bool) -> int:
    """Into a GenericAgent root, again to upgrade, or out of it; what this program did not write is never touched."""
    from dr import install as installation
    from dr import packages

    target = Root(ga_root.expanduser().resolve())
    if uninstall:
        changes = installation.uninstall(target, dry_run=dry_run)
    else:
        changes = installation.install(target, index=index, dry_run=dry_run)
    lang = installation.language(target)
    python = packages.of_root(target.path)
    lacking = None if uninstall else packages.missing(python)
    lines, data = installation.told(changes, target, lang, dry_run=dry_run, out=uninstall)
    if not uninstall:
        lines += packages.told(python, lacking, lang)
        data["missing"] = [p.name for p in lacking] if lacking is not None else None
        doctor_there = f"{python} {target.path / 'dr_runner.py'} doctor"
        data["next"] = packages.command(python, lacking) if lacking else doctor_there
        lines.append(data["next"])
    terminal.result(data, "\n".join(lines))
    return EXIT_OK


def doctor(root: Root, terminal: Terminal, flags: dict[str, Any]) -> int:
    """What a run needs and what earlier ones left, each with the command that mends it."""
    from dr import doctor as checks

    found = checks.examine(root, flags)
    terminal.result(checks.data(found), checks.text(found))
    return EXIT_OK


# -- shared --------------------------------------------------------------------------------------------------------


def _prepared(terminal: Terminal, prepared: Prepared) -> tuple[RunFolder, Settings]:
    terminal.language = prepared.record.language
    if prepared.record.status == "planned":
        facts = {"task": prepared.folder.task, "mind": prepared.record.mind, "nodes": prepared.record.original}
        terminal.note(say(prepared.record.language, "line_planned", **facts))
    if prepared.why:
        terminal.note(prepared.why)
    return prepared.folder, prepared.settings


def _show_report(terminal: Terminal, folder: RunFolder) -> None:
    """The answer and the report's path; without an answer what was tried, node by node."""
    result = files.read_json(folder.result)
    answer = result["answer"] or "\n".join(f"{n['id']}: {n['error'] or n['state']}" for n in result["nodes"])
    terminal.result(result, f"{answer}\n\n{folder.report}")


def _drive(root: Root, terminal: Terminal, folder: RunFolder, settings: Settings) -> int:
    from dr import session

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
    _show_report(terminal, folder)
    return code
