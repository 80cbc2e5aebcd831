"""One run under way: launch what is ready, wait, settle what ended, deepen, until nothing is left.

drive ── take_edit        dag.md edited by hand -> machine
      ├─ launch_ready     machine.ready -> attempts.launch
      ├─ settle           attempts.wait -> conclusion.md | another attempt | failure -> replan or skip
      ├─ check_budgets    seconds, tokens
      └─ next_round       conclusions -> planner.deepen -> appended nodes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from dr import node_folder, watch
from dr.attempts import Attempts, Ended
from dr.collect import Collected, collect, conclude
from dr.conclusion import short_form
from dr.contract import Context, NodeType, State
from dr.dag_file import DagFile
from dr.errors import DrError, FatalError
from dr.events import EventLog
from dr.layout import NodeFolder, RunFolder
from dr.machine import Failure, PlanMachine
from dr.node_folder import ProcessRecord
from dr.plan import Event, Step
from dr.planning import Planner, node_of
from dr.run_folder import Run
from dr.settings import Settings
from dr.words import say

RESERVE = 0.85  # of the time and token budgets; the rest is kept for the report


@dataclass(frozen=True)
class _Again:
    """Another attempt that waits for the end of the one before it."""

    tries: int
    remark: str
    keep_work: bool


class Runner:
    """Drives the machine over processes. It changes files and processes only through the parts it is given."""

    def __init__(
        self,
        run: Run,
        dag_file: DagFile,
        machine: PlanMachine,
        attempts: Attempts,
        planner: Callable[[], Planner],
        log: EventLog,
        settings: Settings,
        *,
        deepens: bool = True,
    ) -> None:
        self.run, self.dag_file, self.machine, self.attempts = run, dag_file, machine, attempts
        self.planner, self.log, self.settings, self.deepens = planner, log, settings, deepens
        self.folder: RunFolder = run.folder
        self.language = run.record.language
        self.interrupted = False
        self.changes = 0  # launched or settled; lets a poll return when something changed
        self._again: dict[str, _Again] = {}
        self._tokens = 0
        machine.listen(self._on_machine_event)

    # -- the loop -------------------------------------------------------------------------------------------------

    def drive(self, until: Callable[[], bool] = lambda: False) -> None:
        """Run until nothing is left to do, `until` says so, or somebody interrupts."""
        while not self.interrupted and not until():
            self.take_edit()
            self.launch_ready()
            if not self.attempts and not self._again:
                if not self.next_round():
                    break
                continue
            for ended in self.attempts.wait():
                self.settle(ended)
            self.check_budgets()
            self.dag_file.flush()

    def interrupt(self) -> None:
        """For signal handlers and other threads: leave the loop soon."""
        self.interrupted = True
        self.attempts.wake()

    def launch_ready(self) -> None:
        for node_id in [i for i in self._again if not self.attempts.busy(i)]:
            again = self._again.pop(node_id)
            self._launch(self.machine.steps[node_id], again)
        for step in self.machine.ready():
            if len(self.attempts) + len(self._again) >= self.settings.max_parallel:
                return
            if not self.attempts.busy(step.id):
                self.machine.start(step.id)
                self._launch(step, _Again(tries=1, remark="", keep_work=True))

    def next_round(self) -> bool:
        """Nothing runs: deepen, or end. False when the run is over."""
        if self.machine.ended:
            return False
        if not self.machine.idle:
            # What is pending can never start: a budget is spent. Said node by node, so that nothing is left open.
            for step in self.machine.remaining():
                if self.machine.states[step.id] is State.PENDING:
                    self.machine.skip(step.id, self.machine.spent_on_starts or "not_reached")
            return False
        found = any(s is State.DONE for s in self.machine.states.values())
        return found and self.deepens and self.machine.spent is None and self._deepen()

    # -- launching ------------------------------------------------------------------------------------------------

    def _launch(self, step: Step, how: _Again) -> None:
        folder = self.folder.node(step.id)
        try:
            record = self.attempts.launch(
                folder,
                NodeType(step.tool_name),
                self._context(step),
                tries=how.tries,
                remark=how.remark,
                keep_work=how.keep_work,
            )
        except FatalError:
            raise
        except DrError as error:  # the agent itself cannot be started: no other node could be either
            self._failed(step.id, ProcessRecord([], 0, tries=how.tries), error.wrong, fatal=True)
            return
        self.changes += 1
        self.dag_file.mark(step.id, State.RUNNING)
        question = str(step.args["sub_question"])
        self.log.log("attempt.start", node=step.id, attempt=record.attempt, pid=record.pid, question=question)

    def _context(self, step: Step) -> Context:
        parents = {}
        for parent in step.args.get("depends_on", ()):
            known = self.machine.steps.get(parent)
            if known is not None and self.machine.states[parent] is State.DONE and known.result:
                parents[str(parent)] = short_form(str(known.result))
        answer = self.attempts.launcher.answer_file(self.folder.node(step.id))
        root = self.run.record.question
        return Context(root, parents, str(step.args["sub_question"]), str(step.args.get("source", "")), answer)

    # -- settling -------------------------------------------------------------------------------------------------

    def settle(self, ended: Ended) -> None:
        """An attempt ended: a conclusion, another attempt, or a failed node."""
        self.changes += 1
        folder, outcome = self.folder.node(ended.node_id), ended.outcome
        found = Collected("no_answer", None)
        if outcome.kind == watch.FINISHED:
            found = collect(folder, offline=self._offline_agent)
        record = replace(ended.record, verdict=found.verdict, reservation=found.reservation)
        self._tokens += _tokens_of(folder)
        if found.usable and found.conclusion:
            self._done(ended.node_id, record, found.conclusion)
        elif self._may_try_again(record, outcome):
            self._try_again(ended.node_id, record, outcome, self._reason(outcome, found))
        else:
            self._failed(ended.node_id, record, self._reason(outcome, found))

    def _done(self, node_id: str, record: ProcessRecord, conclusion: str) -> None:
        folder = self.folder.node(node_id)
        conclude(folder, conclusion)
        node_folder.write_record(folder, replace(record, outcome="done"))
        self.machine.succeed(node_id, conclusion)
        self.dag_file.mark(node_id, State.DONE)
        self._log_end(node_id, record, "done", "")

    def _may_try_again(self, record: ProcessRecord, outcome: watch.Outcome) -> bool:
        """Our agent without a model gives the same failure on the same input, unless something ended it."""
        by_itself = outcome.kind in (watch.FINISHED, watch.CRASHED) and (record.exit_code or 0) >= 0
        if self._offline_agent and by_itself and record.exit_code is not None:
            return False
        return record.tries < self.settings.node_attempts and self.machine.may_try_again()

    def _try_again(self, node_id: str, record: ProcessRecord, outcome: watch.Outcome, reason: str) -> None:
        node_folder.write_record(self.folder.node(node_id), replace(record, outcome="failed", error=reason))
        self._log_end(node_id, record, "retry", reason)
        self.machine.try_again(node_id)
        remark = say(self.language, "remark_retry", reason=reason)
        self._again[node_id] = _Again(record.tries + 1, remark, keep_work=outcome.kind != watch.FINISHED)

    def _failed(self, node_id: str, record: ProcessRecord, reason: str, *, fatal: bool = False) -> None:
        node_folder.write_record(self.folder.node(node_id), replace(record, outcome="failed", error=reason))
        self._log_end(node_id, record, "failed", reason)
        self.dag_file.mark(node_id, State.FAILED)
        self._act_on(node_id, reason, self.machine.fail(node_id, reason, fatal=fatal))

    def decide(self, node_id: str) -> None:
        """A failure that an earlier runner recorded but did not live to deal with."""
        self._act_on(node_id, self.machine.steps[node_id].error or "", self.machine.decide(node_id))

    def _act_on(self, node_id: str, reason: str, decision: Failure) -> None:
        if decision is Failure.ASK_PLANNER:
            self._replan(reason)
        self.run.change(handled=[*self.run.record.handled, node_id], replans_used=self.machine.replans_used)
        if self.machine.ended:
            self.end(self.attempts.live(), self.machine.ended[1])

    def end(self, node_ids: Iterable[str], why: str) -> None:
        """End running attempts that are no longer wanted; their nodes are skipped, for the reason given."""
        for ended in self.attempts.end(node_ids):
            record = replace(ended.record, outcome="skipped", error=why)
            node_folder.write_record(self.folder.node(ended.node_id), record)
            self._log_end(ended.node_id, record, "ended", why)
            if ended.node_id in self.machine.steps:
                self.machine.skip(ended.node_id, why)

    def put_back(self) -> None:
        """End every attempt; their nodes are pending again, and the interruption does not count as their failure."""
        for ended in self.attempts.end(self.attempts.live()):
            record = replace(ended.record, outcome="interrupted")
            node_folder.write_record(self.folder.node(ended.node_id), record)
            self._log_end(ended.node_id, record, "interrupted", "")
            self._pending_again(ended.node_id)
        for node_id in list(self._again):
            del self._again[node_id]
            self._pending_again(node_id)

    def _pending_again(self, node_id: str) -> None:
        self.machine.put_back(node_id)
        self.dag_file.mark(node_id, State.PENDING)

    def usage(self) -> dict[str, int]:
        """What the subagents noted in usage.json, summed over nodes and attempts."""
        total: dict[str, int] = {}
        for node_id in self.machine.steps:
            for usage in node_folder.usages(self.folder.node(str(node_id))):
                for key, value in usage.items():
                    total[key] = total.get(key, 0) + value
        return total

    def _on_machine_event(self, event: Event) -> None:
        self.log.log(event.type, **event.payload)
        if event.type == "step.skip":
            node_id = str(event.payload["step_id"])
            folder = self.folder.node(node_id)
            record = node_folder.read_record(folder)
            if record is None or record.outcome != "skipped":
                folder.path.mkdir(parents=True, exist_ok=True)
                node_folder.put_away(folder)
                skipped = ProcessRecord([], 0, outcome="skipped", error=str(event.payload["why"]))
                node_folder.write_record(folder, skipped)
            self.dag_file.mark(node_id, State.SKIPPED)

    @property
    def _offline_agent(self) -> bool:
        return self.attempts.launcher.agent.own and self.run.record.mind == "offline"

    def _reason(self, outcome: watch.Outcome, found: Collected) -> str:
        if outcome.kind == watch.FINISHED:
            return say(self.language, f"verdict_{found.verdict}")
        _, _, said = outcome.reason.partition("dr.agent: ")
        return said if said and self.attempts.launcher.agent.own else outcome.reason

    def _log_end(self, node_id: str, record: ProcessRecord, outcome: str, reason: str) -> None:
        seconds = round(record.end - record.start, 3) if record.end and record.start else 0.0
        self.log.log(
            "attempt.end", node=node_id, attempt=record.attempt, outcome=outcome, seconds=seconds, reason=reason
        )

    # -- the plan changes -----------------------------------------------------------------------------------------

    def _replan(self, error: str) -> None:
        try:
            known = list(self.machine.history), error, self.machine.remaining()
            new = self.planner().replan(self.run.record.question, *known)
        except Exception as failure:  # noqa: BLE001 - a planner is foreign code; the run ends and says why
            self.machine.planner_failed(f"{type(failure).__name__}: {failure}")
            return
        unwanted = self.machine.revise(new)
        self.end(unwanted, "replanned")
        if new:
            difference = self.machine.revisions[-1]
            dag = self.dag_file.dag.without([i for i in difference.removed if i not in self.machine.steps])
            for node_id in difference.revised:
                node_folder.put_away(self.folder.node(node_id))
                dag = dag.with_node(node_of(self.machine.steps[node_id]))
            if added := [node_of(self.machine.steps[i]) for i in difference.added]:
                dag = dag.with_nodes(added, heading=dag.revision_heading(difference.revision, error))
            self.dag_file.replace(dag)
            self.run.change(revisions=[*self.run.record.revisions, difference.to_dict()])

    def _deepen(self) -> bool:
        rounds = self.run.record.rounds
        original = self.run.record.original
        room = 2 * original - (len(self.dag_file.dag.work_nodes) - original)
        if len(rounds) >= self.settings.max_rounds or room <= 0:
            why = "deepen_rounds" if len(rounds) >= self.settings.max_rounds else "deepen_room"
            return self._no_deepening(say(self.language, why))
        found = {str(i): str(s.result) for i, s in self.machine.steps.items() if self.machine.states[i] is State.DONE}
        deepening = self.planner().deepen(self.run.record.question, self.dag_file.dag, found, len(rounds) + 1, room)
        steps = deepening.steps[:room]
        if not steps:
            return self._no_deepening(deepening.reason)
        dag = self.dag_file.dag
        heading = dag.deepening_heading(len(rounds), deepening.reason)
        self.dag_file.replace(dag.with_nodes([node_of(s) for s in steps], heading=heading))
        new = {"round": len(rounds) + 1, "nodes": [s.id for s in steps], "why": deepening.reason}
        self.run.change(rounds=[*rounds, new])
        self.machine.append(steps, deepening.reason)
        return True

    def _no_deepening(self, why: str) -> bool:
        self.log.log("deepen.end", why=why)
        self.run.change(notes=[*self.run.record.notes, why])
        return False

    def take_edit(self) -> None:
        """An edit of dag.md by hand. See dr/edits.py for what each kind does."""
        edit = self.dag_file.take_edit()
        if edit is not None:
            from dr import edits  # rarely needed

            edits.apply(self, edit)

    def check_budgets(self) -> None:
        """When the part of a budget that nodes may use is spent, end what runs and go to the report."""
        limits = self.settings
        spent = None
        if limits.max_seconds is not None and self.run.seconds > limits.max_seconds * RESERVE:
            spent = "time_budget"
        elif limits.max_tokens is not None and self._tokens > limits.max_tokens * RESERVE:
            spent = "token_budget"
        if spent and not self.machine.spent:
            self.machine.spend(spent)
            self._again.clear()
            self.end(self.attempts.live(), spent)


def _tokens_of(folder: NodeFolder) -> int:
    """Tokens of the newest attempt, 0 when the agent notes none."""
    return node_folder.usage(folder.usage).get("total_tokens", 0)
