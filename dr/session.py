"""A run made or opened, driven, and brought to its end: who thinks, which agent, the runner's parts put together."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from dr import process, publish, run_folder
from dr.attempts import Attempts
from dr.contract import NodeType, State
from dr.dag_file import DagFile
from dr.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_PARTIAL
from dr.events import EventLog, Listener
from dr.folder_readme import say_state
from dr.launch import Launcher
from dr.layout import Root, RunFolder
from dr.machine import PlanMachine
from dr.planning import Planner, step_of
from dr.preparation import max_steps
from dr.restore import complete_intent, restore
from dr.run_folder import Run, RunRecord
from dr.runner import Runner
from dr.settings import Settings
from dr.subagent import Agent, choose_agent

if TYPE_CHECKING:
    from dr.agent_planner import AgentPlanner
    from dr.follow import Follower


class Session:
    """An open run with its lock held. Use as a context manager; nothing of it runs on afterwards unless `leave`."""

    def __init__(self, root: Root, folder: RunFolder, settings: Settings, listener: Listener, *, deepens: bool) -> None:
        self.root, self.folder, self.settings = root, folder, settings
        self.run = Run(folder, run_folder.read_record(folder))
        record = self.run.record
        self.agent: Agent = choose_agent(root, settings.agent, record.mind)
        self.log = EventLog(folder.events)
        self.log.listeners.append(listener)
        dag_file, edit = DagFile.open(folder)
        complete_intent(self.run, {*dag_file.dag.ids, *(edit.edits.removed if edit and edit.edits else ())})
        record = self.run.record
        steps = max_steps(settings, record.original)
        machine = PlanMachine(max_steps=steps, max_replans=settings.max_replans, on_failure=settings.on_failure)
        launcher = Launcher(root, self.agent, settings, record.language)
        attempts = Attempts(launcher, settings)
        self._closing, self._notes = threading.Event(), list[str]()
        self.thinker = self._thinker() if deepens else None
        planner: Planner | None = self.thinker
        ask = (lambda: planner) if planner is not None else _offline_planner
        self.runner = Runner(self.run, dag_file, machine, attempts, ask, self.log, settings, deepens=deepens)
        self.runner.revising.on_thought = self._say_notes
        self.follower: Follower | None = None
        if self.agent.transcript:  # GA's subagents leave no evidence: their source lines are followed meanwhile
            from dr.follow import Follower

            self.follower = Follower(root, folder, settings)
            self.runner.on_done = self.follower.wake
        unhandled: list[str] = []
        if record.status == "planned":
            machine.commit([step_of(n) for n in dag_file.dag.work_nodes])
        else:
            unhandled = self._restore(dag_file, machine, launcher)
        if settings.max_tokens is not None:
            self.runner.count_tokens()
        if edit is not None:
            from dr import edits

            edits.apply(self.runner, edit)
        for node_id in unhandled:  # after the edit, which may be about them, and before which nothing is written
            self.runner.decide(node_id)
        self._found = {"status": record.status, "reason": record.reason, "ended": record.ended}
        if record.status in ("completed", "failed") and machine.idle:
            self.run.change(runner=_myself())  # a poll does not undo the end of a run
        else:
            self.run.change(status="running", reason="", runner=_myself(), ended=None)
        self.log.log("run.start", task=record.task, question=record.question, mind=record.mind, agent=record.agent)

    def _restore(self, dag_file: DagFile, machine: PlanMachine, launcher: Launcher) -> list[str]:
        """Returns the failed nodes that are still to be decided about."""
        found = restore(self.folder, dag_file.dag, self.run.record, machine, launcher)
        for node in dag_file.dag.work_nodes:
            dag_file.mark(node.id, machine.states[node.id])
        for launched in found.leftover:
            self.runner.attempts.end_leftover(launched)
        for launched in found.live:
            self.runner.attempts.adopt(launched)
            self.log.log("attempt.adopted", node=launched.folder.node_id, pid=launched.record.pid)
        return found.unhandled

    def _thinker(self) -> AgentPlanner | None:
        """A model, for a run that is driven to its end: who calls start and poll thinks for itself."""
        if self.run.record.mind not in ("agent", "model"):
            return None
        from dr import thinker  # many runs never ask it

        gave_up = lambda: self._closing.is_set() or self.runner.interrupted  # noqa: E731
        mind = self.run.record.mind
        return thinker.of_run(self.root, self.folder, self.settings, mind, gave_up, self._notes.append)

    def _say_notes(self) -> None:
        """What the thinker's thread noted: for the reader of the report, and of the progress now."""
        while self._notes:
            text = self._notes.pop(0)
            self.run.change(notes=[*self.run.record.notes, text])
            self.log.log("mind.note", text=text)

    def _synthesize(self) -> None:
        """The thinker's answer into the SYNTH node's conclusion.md, where the report looks for it; without one it
        quotes."""
        assert self.thinker is not None
        dag, machine = self.runner.dag_file.dag, self.runner.machine
        self.folder.node(dag.last_synth.id).conclusion.unlink(missing_ok=True)
        done = {str(i): str(s.result) for i, s in machine.steps.items() if machine.states[i] is State.DONE}
        if text := self.thinker.synthesis(self.run.record.question, dag, done):
            from dr import thinker

            lang = self.run.record.language
            if kept := thinker.checked(text, self.folder, self.root, done, lang, self._notes.append):
                publish.keep_answer(self.folder, dag.last_synth.id, kept)
        self._say_notes()

    def drive(self, **how: Any) -> None:
        say_state(self.folder, self.run.record.language, "running")
        with publish.LivePage(self.folder), _signals(self.runner):
            self.runner.drive(**how)

    def interrupt(self) -> None:
        """End every process of the run and leave it resumable."""
        self.runner.put_back()
        self.run.change(status="interrupted", reason="interrupted", ended=time.time())
        say_state(self.folder, self.run.record.language, "interrupted")
        publish.last_page(self.folder)
        self.log.log("run.interrupted")

    def undo(self) -> None:
        """Nothing was done: the run's status is what it was when it was opened."""
        self.run.change(**self._found)

    def finish(self, answer: str | None = None) -> None:
        """Every node is settled, or never will be: status, report, marks of SYNTH."""
        status, reason = outcome(self.runner.machine)
        if answer is not None:
            publish.keep_answer(self.folder, self.runner.dag_file.dag.last_synth.id, answer)
        elif status == "completed" and self.thinker is not None:
            self._synthesize()
        self.run.change(status=status, reason=reason, usage=self.runner.usage(), ended=time.time())
        dag = self.runner.dag_file
        for node in dag.dag.nodes:
            if node.type is NodeType.SYNTH:
                dag.mark(node.id, State.DONE if status == "completed" else State.FAILED)
        dag.close()
        if self.follower is not None:
            self.follower.finish()
        publish.publish(self.folder, self.log)
        if self.runner.machine.ended is None:
            self.runner.machine.finish(status, reason)
        self.log.log("run.end", status=status, reason=reason, report=str(self.folder.report))

    def close(self, *, leave: bool = False) -> None:
        self._closing.set()
        self.runner.revising.forget_thought()
        if self.follower is not None:
            self.follower.end()
        self.runner.attempts.close(leave=leave)
        self.runner.dag_file.close()
        self.run.change(runner=None)
        self.log.close()


@cache
def _offline_planner() -> Planner:
    from dr.planner import OfflinePlanner  # many runs never ask it

    return OfflinePlanner()


def outcome(machine: PlanMachine) -> tuple[str, str]:
    """status and reason of a run whose machine has nothing left to do (SPEC 7, the table of ends)."""
    if machine.ended is not None and machine.ended[0] == "failed":
        return machine.ended
    if not any(s is State.DONE for s in machine.states.values()):
        return "failed", "no_findings"
    return "completed", machine.spent or "goal_met"


def exit_code(record: RunRecord, machine: PlanMachine) -> int:
    """Exit code of run, resume and synth."""
    if record.status == "interrupted":
        return EXIT_INTERRUPTED
    if record.status != "completed":
        return EXIT_FAILED
    whole = record.reason == "goal_met" and all(s is State.DONE for s in machine.states.values())
    return EXIT_OK if whole else EXIT_PARTIAL


@contextmanager
def opened(
    root: Root, folder: RunFolder, settings: Settings, listener: Listener, *, deepens: bool = True, leave: bool = False
) -> Iterator[Session]:
    """A session under the run's lock. An error or Ctrl-C ends its processes and leaves the run resumable.

    leave: subagents go on after it, whatever happens here, for a later session to adopt.
    """
    with run_folder.lock(folder), _term_is_ctrl_c():
        session = Session(root, folder, settings, listener, deepens=deepens)
        try:
            yield session
        except BaseException:
            if not leave:
                session.interrupt()
            raise
        finally:
            session.close(leave=leave)


@contextmanager
def _term_is_ctrl_c() -> Iterator[None]:
    """SIGTERM and SIGHUP end our processes as Ctrl-C does, also outside the loop, while a report is written for one."""
    before = {n: signal.signal(n, signal.default_int_handler) for n in _endings()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _endings() -> list[signal.Signals]:
    """How a system asks a program to end. A closed terminal counts, unless nohup has said that it does not."""
    found = [signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        found.append(signal.SIGHUP)
    return found


@contextmanager
def _signals(runner: Runner) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask the loop to leave; a second Ctrl-C does not wait for it."""

    def ask(number: int, frame: Any) -> None:
        if runner.interrupted and number == signal.SIGINT:
            raise KeyboardInterrupt
        runner.interrupt()

    numbers = [signal.SIGINT, *_endings()] + ([signal.SIGBREAK] if hasattr(signal, "SIGBREAK") else [])
    before = {n: signal.signal(n, ask) for n in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _myself() -> dict[str, Any]:
    identity = process.identify(os.getpid())
    return identity.to_dict() if identity else {"pid": os.getpid(), "create_time": 0.0}
