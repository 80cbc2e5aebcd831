"""The attempts that run now: started or adopted, watched, ended. Out: those that ended, each with its outcome, once.

No process outlives its attempt: the tree of one that lingers, hangs or has left children is ended in the background.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dr import node_folder, process, watch
from dr.contract import Context, NodeType
from dr.launch import Launched, Launcher
from dr.layout import NodeFolder
from dr.node_folder import ProcessRecord
from dr.process import Child, ExitInfo
from dr.settings import Settings
from dr.trees import Tree, end_trees
from dr.waiter import Waiter

SWEEP_S = 0.25  # between two looks at all outputs; an exit is noticed at once without it


@dataclass
class _Live:
    launched: Launched
    attempt: watch.Attempt
    outcome: watch.Outcome | None = None  # known; its tree is being ended
    complete_since: float | None = None


class Ended(NamedTuple):
    """record: with end, exit code and memory filled in; what it means is not decided yet."""

    node_id: str
    record: ProcessRecord
    outcome: watch.Outcome


class Attempts:
    """At most one attempt a node. wake() ends a wait from a signal handler or thread."""

    def __init__(self, launcher: Launcher, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.launcher, self.clock = launcher, clock
        self._grace_s = settings.grace_s
        self._limits = watch.Limits(settings.node_timeout_s, settings.stall_s, settings.stable_s)
        self._live: dict[str, _Live] = {}
        self._waiter = Waiter(signals=False)
        self._ending: dict[str, threading.Thread] = {}
        self._lingering: dict[str, Launched] = {}  # settled, and waiting for a reply until the next wait()
        self._swept = float("-inf")
        self.wake = self._waiter.wake

    def __len__(self) -> int:
        return len(self._live)

    def busy(self, node_id: str) -> bool:
        """An attempt of the node runs, or is still being ended."""
        return node_id in self._live or node_id in self._ending or node_id in self._lingering

    @property
    def ending(self) -> bool:
        """What is left of some attempt is still being ended."""
        return bool(self._ending or self._lingering)

    # -- beginning --------------------------------------------------------------------------------------------------

    def launch(
        self,
        folder: NodeFolder,
        node_type: NodeType,
        context: Context,
        *,
        tries: int = 1,
        remark: str = "",
        keep_work: bool = True,
    ) -> ProcessRecord:
        """DrError when the agent cannot be started."""
        launched = self.launcher.launch(folder, node_type, context, tries=tries, remark=remark, keep_work=keep_work)
        self._watch(launched, self.clock())
        return launched.record

    def revise(self, node_id: str, *, tries: int, remark: str) -> ProcessRecord | None:
        """Another attempt in the process that just settled, if it waits for a reply; None when it does not."""
        launched = self._lingering.get(node_id)
        if launched is None or not _runs(launched.process):
            return None
        launched = self.launcher.revise(launched, tries=tries, remark=remark)
        del self._lingering[node_id]
        self._watch(launched, self.clock())
        return launched.record

    def adopt(self, launched: Launched) -> None:
        """Go on watching an attempt that an earlier runner started."""
        identity = launched.process.identity if isinstance(launched.process, Child) else launched.process
        # Not from the record, whose clock may have been set since.
        ran = process.age(identity) if process.alive(identity) else 0.0
        self._watch(launched, self.clock() - ran)

    def end_leftover(self, launched: Launched) -> None:
        """End what is left of a settled attempt; its node is busy until then."""
        self._end_tree(launched.folder.node_id, launched)

    def _watch(self, launched: Launched, started: float) -> None:
        agent, node_id = self.launcher.agent, launched.folder.node_id
        first_round = launched.record.round
        attempt = watch.Attempt(launched.folder, started, agent.knows_round_end, agent.may_detach, first_round)
        self._live[node_id] = _Live(launched, attempt)
        self._waiter.add(node_id, launched.process)

    # -- watching ---------------------------------------------------------------------------------------------------

    def wait(self, longest: float = SWEEP_S) -> list[Ended]:
        """Sleep until something ends, `longest` seconds at most; everything that ended meanwhile."""
        self._let_go()
        ended: list[Ended] = []
        until_sweep = max(0.0, self._swept + SWEEP_S - self.clock())
        for gone in self._waiter.wait(min(longest, until_sweep)):
            self._exited(str(gone.key), gone.exit, ended)
        self._collect_endings(ended)
        now = self.clock()
        if now - self._swept >= SWEEP_S:
            self._swept = now
            self._sweep(now, ended)
        return ended

    def _exited(self, node_id: str, exited: ExitInfo, ended: list[Ended]) -> None:
        live = self._live.get(node_id)
        if live is None or live.outcome:
            return
        real = watch.successor(live.attempt, exited, live.launched.group)
        if real is not None:  # only the launcher is gone
            record = replace(live.launched.record, pid=real.pid, create_time=real.create_time, boot=real.boot)
            live.launched = Launched(live.launched.folder, record, real)
            node_folder.write_record(live.launched.folder, record)
            self._waiter.add(node_id, real)
            return
        outcome = watch.look(live.attempt, self.clock(), exited, self._limits)
        if outcome is None:  # look() judges every exit
            raise AssertionError(f"no outcome for the exit of {node_id}: {exited}")
        self._end_tree(node_id, live.launched)
        self._settle(node_id, outcome, exited, ended)

    def _sweep(self, now: float, ended: list[Ended]) -> None:
        for node_id, live in list(self._live.items()):
            outcome = None if live.outcome else watch.look(live.attempt, now, None, self._limits)
            if outcome is None or self._is_about_to_exit(live, outcome, now):
                continue
            self._waiter.discard(node_id)
            if outcome.kind == watch.FINISHED:  # it only lingers: nothing has to wait for its end
                if self.launcher.agent.waits_for_reply:
                    self._lingering[node_id] = live.launched
                else:
                    self._end_tree(node_id, live.launched)
                self._settle(node_id, outcome, None, ended)
            else:
                live.outcome = outcome
                self._end_tree(node_id, live.launched)

    def _is_about_to_exit(self, live: _Live, outcome: watch.Outcome, now: float) -> bool:
        """An agent that never waits for a reply ends by itself right after its last write, with its own exit code."""
        if outcome.kind != watch.FINISHED or self.launcher.agent.waits_for_reply:
            return False
        live.complete_since = live.complete_since or now
        return now - live.complete_since < self._grace_s

    def _settle(self, node_id: str, outcome: watch.Outcome, exited: ExitInfo | None, ended: list[Ended]) -> None:
        live = self._live.pop(node_id)
        if exited is None and isinstance(live.launched.process, Child):
            exited = live.launched.process.poll()
        record = replace(
            live.launched.record,
            end=time.time(),
            exit_code=exited.code if exited else None,
            peak_memory=exited.peak_bytes if exited else None,
        )
        ended.append(Ended(node_id, record, outcome))

    # -- ending -----------------------------------------------------------------------------------------------------

    def _end_tree(self, node_id: str, launched: Launched) -> None:
        """End what is left of an attempt without holding up the others."""
        root = launched.process
        trees = [Tree.of(root, launched.group)]

        def work() -> None:
            end_trees(trees, self._grace_s)
            if isinstance(root, Child):
                root.poll()  # reaped
            self.wake()

        if not any(t.exists() for t in trees):
            return
        thread = threading.Thread(target=work, name=f"end {node_id}", daemon=True)
        self._ending[node_id] = thread
        thread.start()

    def _let_go(self) -> None:
        """Nobody replied to them."""
        while self._lingering:
            node_id, launched = self._lingering.popitem()
            self._end_tree(node_id, launched)

    def _collect_endings(self, ended: list[Ended]) -> None:
        for node_id in [i for i, thread in self._ending.items() if not thread.is_alive()]:
            del self._ending[node_id]
            live = self._live.get(node_id)
            if live is not None and live.outcome:
                self._settle(node_id, self._last_look(live) or live.outcome, None, ended)

    def _last_look(self, live: _Live) -> watch.Outcome | None:
        """At an attempt that was ended: it may have written its whole answer by then. Only a round's end tells that."""
        if not live.attempt.knows_round_end:
            return None
        last = watch.look(live.attempt, self.clock(), ExitInfo(None), self._limits)
        return last if last is not None and last.kind == watch.FINISHED else None

    def end(self, node_ids: Iterable[str]) -> list[Ended]:
        """End attempts that are no longer wanted; what they wrote is kept. Returns when all are gone.

        One that had written its whole answer by then is FINISHED.
        """
        chosen = [i for i in node_ids if i in self._live]
        for node_id in chosen:
            self._waiter.discard(node_id)
        end_trees(
            [Tree.of(self._live[i].launched.process, self._live[i].launched.group) for i in chosen], self._grace_s
        )
        ended: list[Ended] = []
        for node_id in chosen:
            outcome = self._last_look(self._live[node_id]) or watch.Outcome("ended")
            self._settle(node_id, outcome, None, ended)
        return ended

    def live(self) -> Sequence[str]:
        return list(self._live)

    def close(self, *, leave: bool = False) -> None:
        """Wait for what is being ended. leave: attempts go on after us, for a later runner to adopt."""
        self._let_go()
        for thread in self._ending.values():
            thread.join()
        if leave:
            for live in self._live.values():
                if isinstance(live.launched.process, Child):
                    live.launched.process.release()
        self._waiter.close()


def _runs(started: Child | process.Identity) -> bool:
    return started.poll() is None if isinstance(started, Child) else process.alive(started)
