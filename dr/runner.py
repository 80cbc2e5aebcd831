"""One run under way: launch what is ready, wait, settle what ended, deepen, until nothing is left.

drive ── take_edit        dag.md edited by hand -> machine
      ├─ launch_ready     machine.ready -> attempts.launch
      ├─ settle           attempts.wait -> conclusion.md | another attempt | failure -> replan or skip
      ├─ check_budgets    seconds, tokens
      └─ next_round       conclusions -> planner.deepen -> appended nodes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from dr import agent_usage, node_folder, spent, watch
from dr.attempts import Attempts, Ended
from dr.browser_lock import BrowserLock
from dr.collect import Collected, collect, conclude
from dr.conclusion import short_form
from dr.contract import Context, NodeType, State
from dr.dag_file import DagFile
from dr.errors import EXIT_FATAL, DrError, FatalError
from dr.events import EventLog
from dr.layout import RunFolder
from dr.machine import PlanMachine
from dr.node_folder import ProcessRecord
from dr.output import MODEL_ERROR
from dr.plan import Event, Step
from dr.planning import Planner
from dr.revising import Hands, Revising
from dr.run_folder import Run
from dr.settings import Settings
from dr.words import say

RESERVE = 0.85  # of the time and token budgets; the rest is kept for the report


class _Again(NamedTuple):
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
        self.log, self.settings, self.deepens = log, settings, deepens
        self.folder: RunFolder = run.folder
        self.language = run.record.language
        self.interrupted = False
        self.changes = 0  # launched or settled; lets a poll return when something changed
        self._again: dict[str, _Again] = {}
        self._tokens = self._planner_tokens = 0  # of the nodes that have ended; of the planner's own calls
        self.browser = BrowserLock()
        self._waiting: set[str] = set()  # nodes that wait for the browser
        self.on_done: Callable[[], None] = lambda: None
        self._cut: str | None = None  # the budget of the run as a whole that is spent
        hands = Hands(self.end, self.unsettled, attempts.wake)
        self.revising = Revising(run, dag_file, machine, planner, log, settings, hands)
        machine.listen(self._on_machine_event)

    # -- the loop -------------------------------------------------------------------------------------------------

    def drive(self, until: Callable[[], bool] = lambda: False) -> None:
        """Run until nothing is left to do, `until` says so, or somebody interrupts."""
        while not self.interrupted and not until():
            self.take_edit()
            self.launch_ready()
            if self._is_still() and (self.machine.idle or not self.attempts.ending):
                if not self.take_edit(at_once=True) and not self.next_round():
                    break
                continue
            for ended in self.attempts.wait():
                self.settle(ended)
                self.launch_ready()  # what waited for this one need not wait for the others as well
            if self.revising.take_thought():
                self._note_planner_tokens()
            self.check_budgets()
            self.dag_file.flush()

    def interrupt(self) -> None:
        """For signal handlers and other threads: leave the loop soon."""
        self.interrupted = True
        self.attempts.wake()

    def _is_still(self) -> bool:
        """Nothing runs, is thought about, or waits for what will come free by itself."""
        return not (self.attempts or self._again or self._waiting or self.revising.thinking)

    def launch_ready(self) -> None:
        waited, self._waiting = self._waiting, set()
        for node_id in [i for i in self._again if not self.attempts.busy(i)]:
            if self._may_start(self.machine.steps[node_id], waited):
                again = self._again.pop(node_id)
                self._launch(self.machine.steps[node_id], again)
        for step in self.machine.ready():
            if len(self.attempts) + len(self._again) >= self.settings.max_parallel:
                return
            if self.machine.ended:
                return
            if not self.attempts.busy(step.id) and self._may_start(step, waited):
                self.machine.start(step.id)
                self._launch(step, self._how(step.id))

    def _may_start(self, step: Step, waited: set[str]) -> bool:
        """GA's WEB nodes share a browser: one at a time, over all runs; the others wait, and nobody waits for them."""
        if not self.attempts.launcher.agent.transcript or step.tool_name != NodeType.WEB:
            return True
        if not self._waiting and self.browser.try_take():  # nobody overtakes who waits already
            return True
        self._waiting.add(step.id)
        if step.id not in waited:
            holder = self.browser.holder()
            self.log.log("browser.wait", node=step.id, holder=holder.node if holder else "")
        return False

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
        enough = self.machine.spent is not None or self.revising.said_enough
        return found and self.deepens and not enough and self.revising.deepen()

    def _how(self, node_id: str) -> _Again:
        """How a pending node starts: anew, or where an earlier runner was interrupted."""
        record = node_folder.read_record(self.folder.node(node_id))
        if record is None and (intended := node_folder.intent(self.folder.node(node_id))) is not None:
            return _Again(intended.tries, remark="", keep_work=True)
        if record is None or record.outcome not in ("retry", "interrupted"):
            given = node_folder.last_reply(self.folder.node(node_id)) if record is None else ""
            remark = say(self.language, "remark_reply", text=given) if given else ""
            return _Again(tries=1, remark=remark, keep_work=True)
        if record.outcome == "interrupted":
            return _Again(record.tries, remark="", keep_work=True)
        return self._another(record, record.error or "")

    def _another(self, record: ProcessRecord, reason: str) -> _Again:
        """A form that was bad is not to be built on; what a crash cut short is."""
        return _Again(record.tries + 1, say(self.language, "remark_retry", reason=reason), record.verdict is None)

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
        else:
            self.browser.hand_over(folder, record, self.settings.node_timeout_s)
        finally:
            self.browser.leave()
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
        self.revising.said_enough = False
        folder, outcome = self.folder.node(ended.node_id), ended.outcome
        found = Collected("no_answer", None)
        if outcome.kind == watch.FINISHED:
            found = collect(folder, offline=self._offline_agent)
        verdict = found.verdict if outcome.kind == watch.FINISHED else None
        record = replace(ended.record, verdict=verdict, reservation=found.reservation)
        if not self.attempts.launcher.agent.own:
            agent_usage.note(folder, record)
        self._tokens += spent.by_attempt(folder)
        fatal = self.attempts.launcher.agent.own and record.exit_code == EXIT_FATAL
        if found.usable and found.conclusion:
            self._done(ended.node_id, record, found.conclusion)
        elif not fatal and self._may_try_again(record, outcome):
            self._try_again(ended.node_id, record, self._reason(outcome, found))
        else:
            self._failed(ended.node_id, record, self._reason(outcome, found), fatal=fatal)

    def _done(self, node_id: str, record: ProcessRecord, conclusion: str) -> None:
        folder = self.folder.node(node_id)
        conclude(folder, conclusion)
        node_folder.write_record(folder, replace(record, outcome="done"))
        self.machine.succeed(node_id, conclusion)
        self.dag_file.mark(node_id, State.DONE)
        self._log_end(node_id, record, "done", "")
        self.on_done()

    def _may_try_again(self, record: ProcessRecord, outcome: watch.Outcome) -> bool:
        """Our agent without a model gives the same failure on the same input, unless something ended it."""
        by_itself = outcome.kind in (watch.FINISHED, watch.CRASHED) and (record.exit_code or 0) >= 0
        if self._offline_agent and by_itself and record.exit_code is not None:
            return False
        return record.tries < self.settings.node_attempts and self.machine.may_try_again()

    def _try_again(self, node_id: str, record: ProcessRecord, reason: str) -> None:
        node_folder.write_record(self.folder.node(node_id), replace(record, outcome="retry", error=reason))
        self._log_end(node_id, record, "retry", reason)
        self.machine.try_again(node_id)
        again = self._another(record, reason)
        # A session whose model failed may be what it fails on; any other is corrected where it stands.
        spoken = record.verdict not in (None, MODEL_ERROR)
        revised = self.attempts.revise(node_id, tries=again.tries, remark=again.remark) if spoken else None
        if revised is None:
            self._again[node_id] = again
        else:
            self.log.log("attempt.reply", node=node_id, attempt=revised.attempt, text=again.remark)

    def _failed(self, node_id: str, record: ProcessRecord, reason: str, *, fatal: bool = False) -> None:
        node_folder.write_record(self.folder.node(node_id), replace(record, outcome="failed", error=reason))
        self._log_end(node_id, record, "failed", reason)
        self.dag_file.mark(node_id, State.FAILED)
        self.revising.act_on(node_id, reason, self.machine.fail(node_id, reason, fatal=fatal))

    def decide(self, node_id: str) -> None:
        """A failure that an earlier runner recorded but did not live to deal with."""
        if self.machine.awaits(node_id):
            self.revising.act_on(node_id, self.machine.steps[node_id].error or "", self.machine.decide(node_id))
        elif self.machine.states.get(node_id) is State.FAILED:  # the plan for another one has dealt with it
            self.run.change(handled=[*self.run.record.handled, node_id])

    def unsettled(self) -> list[str]:
        """Nodes with an attempt that runs, or that wait for another one."""
        return [*self.attempts.live(), *self._again]

    def end(self, node_ids: Iterable[str], why: str) -> None:
        """End attempts that are no longer wanted; their nodes are skipped, for the reason given."""
        chosen = list(node_ids)
        for ended in self.attempts.end(chosen):
            self._ended(ended.node_id, ended.record, why)
        for node_id in chosen:
            if self._again.pop(node_id, None) and (record := node_folder.read_record(self.folder.node(node_id))):
                self._ended(node_id, record, why)

    def _ended(self, node_id: str, record: ProcessRecord, why: str) -> None:
        record = replace(record, outcome="skipped", error=why)
        node_folder.write_record(self.folder.node(node_id), record)
        self._log_end(node_id, record, "ended", why)
        # A node that a replan removed or revised is not running any more.
        if self.machine.states.get(node_id) is State.RUNNING:
            self.machine.skip(node_id, why)

    def drop(self, node_id: str) -> None:
        """End a node's attempt and forget that it was to be tried again, without a word: it begins anew."""
        self._again.pop(node_id, None)
        self.attempts.end([node_id])

    def put_back(self) -> None:
        """End every attempt; their nodes are pending again, and the interruption does not count as their failure."""
        for ended in self.attempts.end(self.attempts.live()):
            whole = ended.outcome.kind == watch.FINISHED
            if whole and collect(self.folder.node(ended.node_id), offline=self._offline_agent).usable:
                self.settle(ended)  # it had answered, and nobody had looked yet
                continue
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
        return spent.by_all(self.folder, self.machine.steps)

    def count_tokens(self) -> None:
        """What the first plan and an earlier runner's attempts have spent; those that run are counted at their end."""
        running = sum(spent.by_attempt(self.folder.node(i)) for i in self.attempts.live())
        self._note_planner_tokens()
        self._tokens = self.usage().get("total_tokens", 0) - running - self._planner_tokens

    def _note_planner_tokens(self) -> None:
        self._planner_tokens = spent.by_planner(self.folder).get("total_tokens", 0)

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
            asked = f" {found.question}" if found.question else ""
            return say(self.language, f"verdict_{found.verdict}") + asked
        _, _, said = outcome.reason.partition("dr.agent: ")
        return said if said and self.attempts.launcher.agent.own else outcome.reason

    def _log_end(self, node_id: str, record: ProcessRecord, outcome: str, reason: str) -> None:
        seconds = round(max(0.0, record.end - record.start), 3) if record.end and record.start else 0.0
        self.log.log(
            "attempt.end", node=node_id, attempt=record.attempt, outcome=outcome, seconds=seconds, reason=reason
        )

    def take_edit(self, *, at_once: bool = False) -> bool:
        """An edit of dag.md by hand, if there is one. See dr/edits.py for what each kind does."""
        edit = self.dag_file.take_edit(at_once=at_once)
        if edit is None:
            return False
        from dr import edits  # rarely needed

        edits.apply(self, edit)
        return True

    def check_budgets(self) -> None:
        """When the part of a budget that nodes may use is spent, end what runs and go to the report."""
        limits = self.settings
        used_up = None
        if limits.max_seconds is not None and self.run.seconds > limits.max_seconds * RESERVE:
            used_up = "time_budget"
        elif limits.max_tokens is not None and self._tokens + self._planner_tokens > limits.max_tokens * RESERVE:
            used_up = "token_budget"
        if used_up and self._cut is None:
            self._cut = used_up
            self.machine.spend(used_up)
            self.end(self.unsettled(), used_up)
