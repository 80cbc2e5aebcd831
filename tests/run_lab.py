"""A runner over attempts that a test begins and ends as it likes: no process, no waiting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from dr import node_folder
from dr.attempts import Attempts, Ended
from dr.contract import Context, NodeType, State
from dr.dag import Dag
from dr.dag_file import DagFile
from dr.events import EventLog
from dr.launch import Launcher
from dr.layout import NodeFolder, Root
from dr.machine import PlanMachine
from dr.node_folder import ProcessRecord
from dr.plan import Step
from dr.planning import Deepening, step_of
from dr.restore import complete_intent, restore
from dr.run_folder import Run, RunRecord, read_record
from dr.runner import Runner
from dr.settings import Settings
from dr.subagent import Agent
from dr.watch import FINISHED, Outcome

ANSWER = '[结论] The stand-in answers. It says so twice.\n\n来源：https://example.org — "It says so."\n\n[ROUND END]\n'
AGENT = Agent(("x",), frozenset())


class FakeAttempts:
    """Begun attempts stay `live` until a test ends them."""

    def __init__(self, root: Root) -> None:
        self.launcher = Launcher(root, AGENT, Settings(), "en")
        self.running: dict[str, ProcessRecord] = {}
        self.began: list[tuple[str, int, str]] = []  # node, tries, remark
        self.ended: list[str] = []
        self.still_ending: set[str] = set()
        self.next: list[Ended] = []

    def __len__(self) -> int:
        return len(self.running)

    @property
    def ending(self) -> bool:
        return bool(self.still_ending)

    def busy(self, node_id: str) -> bool:
        return node_id in self.running or node_id in self.still_ending

    def live(self) -> Sequence[str]:
        return list(self.running)

    def launch(
        self, folder: NodeFolder, node_type: NodeType, context: Context, *, tries: int, remark: str, keep_work: bool
    ) -> ProcessRecord:
        assert not self.busy(folder.node_id)
        number = node_folder.prepare(folder, context, node_type, "en", keep_work=keep_work, remark=remark)
        record = ProcessRecord(["x"], number, pid=2**30, create_time=1.0, tries=tries, start=1.0)
        node_folder.write_record(folder, record)
        folder.stdout.touch()
        self.running[folder.node_id] = record
        self.began.append((folder.node_id, tries, remark))
        return record

    def end(self, node_ids: Iterable[str]) -> list[Ended]:
        chosen = [i for i in node_ids if i in self.running]
        self.ended += chosen
        return [Ended(i, self.running.pop(i), Outcome("ended")) for i in chosen]

    def wait(self) -> list[Ended]:
        found, self.next = self.next, []
        return found

    def revise(self, node_id: str, *, tries: int, remark: str) -> ProcessRecord | None:
        return None

    def wake(self) -> None: ...


class ScriptedPlanner:
    """Answers from lists; an empty list is an empty answer."""

    slow = False

    def __init__(self) -> None:
        self.plans: list[list[Step]] = []
        self.rounds: list[list[Step]] = []
        self.asked = 0

    def replan(self, goal: str, history: Sequence[Step], last_error: str, remaining: Sequence[Step] = ()) -> list[Step]:
        self.asked += 1
        return self.plans.pop(0) if self.plans else []

    def deepen(self, question: str, dag: Dag, findings: Any, number: int, room: int) -> Deepening:
        self.asked += 1
        return Deepening(self.rounds.pop(0) if self.rounds else [], "because")


def step(name: str, *parents: str, question: str = "what") -> Step:
    return Step(name, "LOCAL", {"sub_question": question, "source": "", "depends_on": list(parents)})


class RunLab:
    """One run folder. `restart` is a runner killed and another one that goes on from the files."""

    def __init__(self, path: Path, *nodes: Step, **settings: Any) -> None:
        self.root = Root(path)
        self.folder = self.root.run("t")
        self.folder.path.mkdir(parents=True)
        self.settings = Settings(**settings)
        self.planner = ScriptedPlanner()
        lines = [f"- [{s.id}] LOCAL | question: {s.args['sub_question']} | depends: {_parents(s)}" for s in nodes]
        dag = Dag.parse("\n".join(["# DR: Why?", "ROOT: Why?", "", "## Nodes", *lines]) + "\n")
        first = [{"round": 1, "nodes": [s.id for s in nodes], "why": ""}]
        record = RunRecord("t", "Why?", "en", "model", "x", status="running", original=len(nodes), rounds=first)
        self.run = Run(self.folder, record)
        self.run.change(reason="started")
        self.dag_file = DagFile.create(self.folder, dag)
        self._make()
        self.machine.commit([step_of(n) for n in dag.work_nodes])

    def _make(self) -> None:
        self.attempts = FakeAttempts(self.root)
        self.machine = PlanMachine(
            max_steps=self.settings.max_steps or 50,
            max_replans=self.settings.max_replans,
            on_failure=self.settings.on_failure,
        )
        attempts, log = cast(Attempts, self.attempts), EventLog(self.folder.events)
        self.runner = Runner(self.run, self.dag_file, self.machine, attempts, lambda: self.planner, log, self.settings)

    def restart(self) -> None:
        """As dr/session.py does it."""
        self.run = Run(self.folder, read_record(self.folder))
        self.dag_file, edit = DagFile.open(self.folder)
        complete_intent(self.run, {*self.dag_file.dag.ids, *(edit.edits.removed if edit and edit.edits else ())})
        self._make()
        found = restore(self.folder, self.dag_file.dag, self.run.record, self.machine, self.attempts.launcher)
        if edit is not None:
            from dr import edits

            edits.apply(self.runner, edit)
        for node_id in found.unhandled:
            self.runner.decide(node_id)

    def answer(self, node_id: str, text: str = ANSWER) -> None:
        """The attempt of a node wrote its output and ended."""
        self.folder.node(node_id).output.write_text(text, encoding="utf-8")
        self.runner.settle(Ended(node_id, self.attempts.running.pop(node_id), Outcome(FINISHED, exit_code=0)))

    def crash(self, node_id: str) -> None:
        self.runner.settle(Ended(node_id, self.attempts.running.pop(node_id), Outcome("crashed", "it fell over", -9)))

    def states(self) -> dict[str, str]:
        return {str(i): s.value for i, s in self.machine.states.items()}

    def written(self) -> dict[str, State]:
        dag = Dag.parse(self.folder.dag.read_text(encoding="utf-8"))
        return {n.id: n.state for n in dag.work_nodes}


def _parents(made: Step) -> str:
    return ", ".join(made.args["depends_on"]) or "-"
