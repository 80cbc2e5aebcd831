"""The plan of a run changes: a failure is replanned, a round is deepened; dag.md, run.json and the machine together.

A planner that takes long is asked in a thread: the other nodes go on, and what happened meanwhile is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from dr import node_folder
from dr.contract import State, fold
from dr.dag import Dag
from dr.dag_file import DagFile
from dr.events import EventLog
from dr.machine import Failure, PlanMachine
from dr.plan import Step
from dr.planning import Deepening, Planner, node_of
from dr.run_folder import Run
from dr.settings import Settings
from dr.thinking import Thought
from dr.words import say


class Hands(NamedTuple):
    """What a change of the plan does to the attempts that run. wake: end the loop's wait, from a thread."""

    end: Callable[[Iterable[str], str], None]
    unsettled: Callable[[], list[str]]
    wake: Callable[[], None]


class Revising:
    """Asks the planner and carries its answers out."""

    def __init__(
        self,
        run: Run,
        dag_file: DagFile,
        machine: PlanMachine,
        planner: Callable[[], Planner],
        log: EventLog,
        settings: Settings,
        hands: Hands,
    ) -> None:
        self.run, self.dag_file, self.machine, self.planner = run, dag_file, machine, planner
        self.log, self.settings, self.hands = log, settings, hands
        self.folder, self.language = run.folder, run.record.language
        self.on_thought: Callable[[], None] = lambda: None
        self.said_enough = False  # the planner saw no need to deepen, and nothing has happened since
        self._thought: Thought | None = None  # a planner that takes long is at work
        self._asked: list[str] = []  # failed nodes that it is asked about

    @property
    def thinking(self) -> bool:
        return self._thought is not None

    def act_on(self, node_id: str, reason: str, decision: Failure) -> None:
        """What the machine decided about a failed node."""
        if decision is Failure.ASK_PLANNER and self.planner().slow:
            self._asked.append(node_id)
            if self._thought is None:
                self._ask_planner()
            return
        handled = [*self.run.record.handled, node_id]
        if decision is Failure.ASK_PLANNER:
            self._replan(reason, handled)
        self.run.change(handled=handled, replans_used=self.machine.replans_used)
        if self.machine.ended:
            self.hands.end(self.hands.unsettled(), self.machine.ended[1])

    def _replan(self, error: str, handled: list[str]) -> None:
        try:
            known = list(self.machine.history), error, self.machine.remaining()
            new = self.planner().replan(self.run.record.question, *known)
        except Exception as failure:  # noqa: BLE001 - a planner is foreign code; the run ends and says why
            self.machine.planner_failed(f"{type(failure).__name__}: {failure}")
            return
        self._revise(new, error, handled)

    def _ask_planner(self) -> None:
        """A planner that takes long: the other nodes go on; what they and a person did meanwhile is kept."""
        asked, question = list(self._asked), self.run.record.question
        error = self.machine.steps[asked[-1]].error or ""
        history, remaining = ([replace(s) for s in steps] for steps in (self.machine.history, self.machine.remaining()))
        known = {step.id for step in remaining}

        def ask() -> list[Step]:
            return self.planner().replan(question, history, error, remaining)

        def apply(answer: Callable[[], list[Step]]) -> None:
            self._asked = [i for i in self._asked if self.machine.awaits(i)]
            if not self._asked:
                return  # an edit has dealt with it
            if set(self._asked) - set(asked):
                self._ask_planner()  # more failed meanwhile, of which it did not know
                return
            handled, self._asked = [*self.run.record.handled, *self._asked], []
            try:
                new = [s for s in answer() if s.id not in known or s.id in self.machine.steps]
            except Exception as failure:  # noqa: BLE001 - as in _replan
                self.machine.planner_failed(f"{type(failure).__name__}: {failure}")
            else:
                meanwhile = [s for s in self.machine.remaining() if s.id not in known]
                self._revise(new and [*new, *meanwhile], error, handled)
            self.run.change(handled=handled, replans_used=self.machine.replans_used)
            if self.machine.ended:
                self.hands.end(self.hands.unsettled(), self.machine.ended[1])

        self._thought = Thought(ask, self.hands.wake, apply)

    def take_thought(self) -> bool:
        """What a planner came to meanwhile, if it has come to something."""
        if self._thought is None or not self._thought.done:
            return False
        thought, self._thought = self._thought, None
        thought.apply()
        self.on_thought()
        return True

    def forget_thought(self) -> None:
        """Wait for a planner that was told to give up; its question is asked anew by the next runner."""
        if self._thought is not None:
            self._thought.join()
            self._thought = None

    def _revise(self, new: list[Step], error: str, handled: list[str]) -> None:
        unwanted = self.machine.revise(new)
        self.hands.end(unwanted, "replanned")
        if new:
            difference = self.machine.revisions[-1]
            dag = self.dag_file.dag.without([i for i in difference.removed if i not in self.machine.steps])
            revised = [node_of(self.machine.steps[i]) for i in difference.revised]
            for node in revised:  # first without what they wait for: that may be a node which is not there yet
                node_folder.put_away(self.folder.node(node.id))
                dag = dag.with_node(replace(node, depends_on=()))
            if added := [node_of(self.machine.steps[i]) for i in difference.added]:
                dag = dag.with_nodes(added, heading=dag.revision_heading(difference.revision, error))
            for node in revised:
                dag = dag.with_node(node)
            revisions = [*self.run.record.revisions, difference.to_dict()]
            facts = {"revisions": revisions, "handled": handled, "replans_used": self.machine.replans_used}
            self._change_plan(dag, difference.added, facts)

    def deepen(self) -> bool:
        """A further round, if the planner sees a need. False: none; True: nodes were added, or it is thinking."""
        rounds = self.run.record.rounds
        original = self.run.record.original
        room = 2 * original - (len(self.dag_file.dag.work_nodes) - original)
        if len(rounds) >= self.settings.max_rounds or room <= 0:
            why = "deepen_rounds" if len(rounds) >= self.settings.max_rounds else "deepen_room"
            return self._no_deepening(say(self.language, why))
        found = {str(i): str(s.result) for i, s in self.machine.steps.items() if self.machine.states[i] is State.DONE}
        planner, asked = self.planner(), (self.run.record.question, self.dag_file.dag, found, len(rounds) + 1, room)
        if not planner.slow:
            return self._deepened(planner.deepen(*asked), room)
        self._thought = Thought(
            lambda: planner.deepen(*asked), self.hands.wake, lambda answer: self._deepened_later(answer(), room)
        )
        return True

    def _deepened_later(self, deepening: Deepening, room: int) -> None:
        self.said_enough = self.machine.spent is not None or not self._deepened(deepening, room)

    def _deepened(self, deepening: Deepening, room: int) -> bool:
        rounds = self.run.record.rounds
        taken = {fold(i) for i in self.dag_file.dag.ids}  # also by nodes that a person added meanwhile
        steps = [s for s in deepening.steps if fold(str(s.id)) not in taken][:room]
        if not steps:
            return self._no_deepening(deepening.reason)
        dag = self.dag_file.dag
        heading = dag.deepening_heading(len(rounds), deepening.reason)
        new = {"round": len(rounds) + 1, "nodes": [s.id for s in steps], "why": deepening.reason}
        dag = dag.with_nodes([node_of(s) for s in steps], heading=heading)
        self._change_plan(dag, [s.id for s in steps], {"rounds": [*rounds, new]})
        self.machine.append(steps, deepening.reason)
        return True

    def _change_plan(self, dag: Dag, added: list[str], facts: dict[str, Any]) -> None:
        """dag.md and run.json together: of a kill in between the intent tells (restore.complete_intent)."""
        if added:
            self.run.change(intent={"nodes": added, "facts": facts})
        self.dag_file.replace(dag)
        self.run.change(**facts, intent=None)

    def _no_deepening(self, why: str) -> bool:
        self.log.log("deepen.end", why=why)
        self.run.change(notes=[*self.run.record.notes, why])
        return False
