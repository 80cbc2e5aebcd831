"""Has an attempt ended, and how: in: the files of a node folder and whether its process is gone; out: Outcome or None.

The four rules, in order: the round's end is written; the process is gone; (an agent that knows no round end) the output
stands still and holds a conclusion; it takes too long. Time is a parameter, monotonic: a set clock changes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dr.contract import CONCLUSION_MARK, ROUND_END
from dr.layout import OUTPUT, NodeFolder
from dr.process import ExitInfo, Identity, Running, group_exists, running

FINISHED, CRASHED, TIMEOUT, STALLED = "finished", "crashed", "timeout", "stalled"

_END = re.escape(ROUND_END.encode())
# While it is written, a line that only speaks of the marker may be the last one for a moment.
_END_LINE = re.compile(rb"(?:^|\n)" + _END + rb"\s*\Z")
_END_ANYWHERE = re.compile(_END + rb"\s*\Z")
_CONCLUSION_LINE = re.compile(rb"(?m)^" + re.escape(CONCLUSION_MARK.encode()))
_PID_LINE = re.compile(rb"(?m)^PID:[ \t]*(\d+)[ \t]*\r?$")
_TAIL_BYTES = 4096
_HEAD_BYTES = 4_000_000
_REASON_LINES, _REASON_CHARS = 3, 400
_LOG_LOOKS = 20  # looks at the logs in a stall time; they only tell that it still works


class Limits(NamedTuple):
    """All in seconds. stable_s: how long the output of an agent that knows no round end has to stand still."""

    node_timeout_s: float = 1800
    stall_s: float = 1200
    stable_s: float = 2


class Outcome(NamedTuple):
    """kind: finished, crashed, timeout, stalled. reason: one line, "" when finished; the output may still be bad."""

    kind: str
    reason: str = ""
    exit_code: int | None = None


_Seen = tuple[str, int, int]  # path, size, mtime in ns


@dataclass
class Attempt:
    """One attempt under way. started: monotonic seconds; for an adopted one, now minus how long it has run.

    knows_round_end, may_detach: of the agent. first_round: of the outputs that belong to it, more than 0 for
    one begun by reply.txt.
    """

    node: NodeFolder
    started: float
    knows_round_end: bool = True
    may_detach: bool = False
    first_round: int = 0
    _round: int = field(default=-1, repr=False)  # -1: not looked yet
    _paths: tuple[str, str] = field(default=("", ""), repr=False)  # outputs of this round and of the next
    _seen: _Seen | None = field(default=None, repr=False)
    _since: float = field(default=0.0, repr=False)  # when _seen was first so
    _changed: float = field(default=0.0, repr=False)  # when anything last changed
    _logs: tuple[int, ...] | None = field(default=None, repr=False)
    _logs_looked: float = field(default=0.0, repr=False)
    _judged: tuple[_Seen, bool] | None = field(default=None, repr=False)
    _end: tuple[_Seen, bytes] | None = field(default=None, repr=False)  # the last bytes of the output as it was seen

    def __post_init__(self) -> None:
        self._changed = self._since = self._logs_looked = self.started


def look(attempt: Attempt, now: float, exited: ExitInfo | None, limits: Limits) -> Outcome | None:
    """One look. exited: how its process ended, None while it runs. Costs two os.stat when nothing changed.

    A launcher's exit is not the agent's: ask successor() first.
    """
    _not_before(attempt, now)
    same = _update(attempt, now)
    if exited is not None:
        return _judge_exit(attempt, exited)
    if attempt._seen is not None and same and _is_complete(attempt, attempt._seen, now, limits):
        return Outcome(FINISHED)
    if now - attempt.started > limits.node_timeout_s:
        return _too_long(attempt, TIMEOUT, f"not done after {limits.node_timeout_s:g} s (node_timeout_s)")
    _update_logs(attempt, now, limits)
    if now - attempt._changed > limits.stall_s:
        return _too_long(attempt, STALLED, f"nothing changed for {limits.stall_s:g} s (stall_s)")
    return None


def sweep(attempts: Iterable[Attempt], now: float, limits: Limits) -> list[tuple[Attempt, Outcome]]:
    """Those that ended among attempts whose processes still run."""
    return [(a, outcome) for a in attempts if (outcome := look(a, now, None, limits))]


def _not_before(attempt: Attempt, now: float) -> None:
    """Should time go backwards all the same, waiting starts anew; nothing ends early."""
    if now < attempt._changed or now < attempt._since or now < attempt.started:
        attempt.started = min(attempt.started, now)
        attempt._changed = attempt._since = attempt._logs_looked = now


def _update(attempt: Attempt, now: float) -> bool:
    """Whether the newest round's output is as it was at the last look."""
    first = attempt._round < 0  # what an adopted agent did before is not known: its standing still begins here
    seen = _newest(attempt)
    if seen == attempt._seen and not first:
        return True
    attempt._seen = seen
    attempt._since = attempt._changed = now
    return False


def _newest(attempt: Attempt) -> _Seen | None:
    if attempt._round < 0:
        present = [int(found[1] or 0) for p in attempt.node.outputs() if (found := OUTPUT.match(p.name))]
        _set_round(attempt, max([attempt.first_round, *present]))
    while _stat(attempt._paths[1]) is not None:
        _set_round(attempt, attempt._round + 1)
    return _stat(attempt._paths[0])


def _set_round(attempt: Attempt, number: int) -> None:
    attempt._round = number
    attempt._paths = (str(attempt.node.output_of_round(number)), str(attempt.node.output_of_round(number + 1)))


def _stat(path: str) -> _Seen | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - in the sweep over all nodes; a Path each would double its cost
    except OSError:
        return None
    return path, found.st_size, found.st_mtime_ns


def _update_logs(attempt: Attempt, now: float, limits: Limits) -> None:
    if attempt._logs is not None and now - attempt._logs_looked < limits.stall_s / _LOG_LOOKS:
        return
    node = attempt.node
    paths = (node.stdout, node.stderr, node.solve_memory, node.evidence, node.answer)
    logs = tuple(seen[1] if (seen := _stat(str(path))) else -1 for path in paths)
    if attempt._logs is not None and logs != attempt._logs:
        attempt._changed = now
    attempt._logs, attempt._logs_looked = logs, now


def _is_complete(attempt: Attempt, seen: _Seen, now: float, limits: Limits) -> bool:
    """Rules 1 and 3, for an output that two looks saw alike. The file is read once for each state of it."""
    if seen[1] == 0 or (not attempt.knows_round_end and now - attempt._since < limits.stable_s):
        return False
    if attempt._judged is None or attempt._judged[0] != seen:
        if attempt.knows_round_end:
            complete = _END_LINE.search(_tail(Path(seen[0]))) is not None
        else:
            complete = _has_conclusion(Path(seen[0]))
        attempt._judged = (seen, complete)
    return attempt._judged[1]


def _judge_exit(attempt: Attempt, exited: ExitInfo) -> Outcome:
    """Rule 2: nobody writes any more, so one look is enough."""
    if attempt._seen and _ended_well(attempt, attempt._seen, exited):
        return Outcome(FINISHED, exit_code=exited.code)
    reason = str(exited)
    if attempt._seen is None:
        reason += ", no output"
    elif attempt.knows_round_end:
        reason += f", output without {ROUND_END}"
    return Outcome(CRASHED, _with_stderr(attempt, reason), exited.code)


def _ended_well(attempt: Attempt, seen: _Seen, exited: ExitInfo) -> bool:
    path = Path(seen[0])
    if attempt.knows_round_end:
        if attempt._end is None or attempt._end[0] != seen:
            attempt._end = seen, _tail(path)
        return _END_ANYWHERE.search(attempt._end[1]) is not None
    # A program that says by its exit code that all is well has answered in its own form; dr/output.py judges that.
    return _has_conclusion(path) or (exited.code == 0 and _head(path).strip() != b"")


def _too_long(attempt: Attempt, kind: str, reason: str) -> Outcome:
    return Outcome(kind, _with_stderr(attempt, reason))


def _with_stderr(attempt: Attempt, reason: str) -> str:
    """The reason and the last lines of stderr.log, on one line whatever bytes it holds."""
    text = _tail(attempt.node.stderr).decode("utf-8", errors="replace")
    lines = [" ".join("".join(c if c.isprintable() else " " for c in line).split()) for line in text.splitlines()]
    last = " | ".join([line for line in lines if line][-_REASON_LINES:])
    if len(last) > _REASON_CHARS:
        last = "…" + last[1 - _REASON_CHARS :]
    return f"{reason}: {last}" if last else reason


def _tail(path: Path) -> bytes:
    """The last bytes, b"" for a file that cannot be read: it may be gone or locked for the moment."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _TAIL_BYTES))
            return stream.read(_TAIL_BYTES)
    except OSError:
        return b""


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError:
        return b""


def _has_conclusion(path: Path) -> bool:
    return _CONCLUSION_LINE.search(_head(path).removeprefix(b"\xef\xbb\xbf")) is not None


def successor(
    attempt: Attempt,
    exited: ExitInfo,
    group: int | None = None,
    processes: Callable[[], Iterable[Running]] = running,
) -> Identity | None:
    """The real agent, when the process that ended was only its launcher (GA's re-starts itself and returns 0): found by
    the `PID: n` line of stdout.log, which the agent's own output may have overwritten, or else by its command line.
    Either way it must work on this node, in this root. group: the launcher's process group."""
    if not attempt.may_detach or exited.code not in (0, None):
        return None
    seen = _newest(attempt)
    done = seen is not None and _ended_well(attempt, seen, exited)
    if done and (attempt.knows_round_end or group is None or not group_exists(group)):
        return None  # the usual case, kept free of a look at every process
    candidates = [p for p in processes() if _works_on(p.argv, p.cwd, attempt.node)]
    named = {int(n) for n in _PID_LINE.findall(_head(attempt.node.stdout) if candidates else b"")}
    best = [p for p in candidates if p.identity.pid in named] or candidates
    return best[-1].identity if best else None  # the newest


def _works_on(argv: Sequence[str], cwd: str, node: NodeFolder) -> bool:
    """Whether this is the command line of a subagent of the node. cwd "": not known."""
    root = node.path.parents[2]
    if node.task_argument not in argv:
        return False
    return not cwd or Path(cwd).resolve() == root.resolve()
