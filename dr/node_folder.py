"""One node's folder: what a subagent is told (context.json, input.txt), and what became of it (process.json)."""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any

from dr import files
from dr.contract import CONCLUSION_MARK, INPUT_CHARS, Context, NodeType, State
from dr.errors import FormatError
from dr.layout import HOME, OUTPUT, NodeFolder

# What a subagent of each type may use; shown to agents that are held by their prompt alone.
TOOLS = {
    NodeType.WEB: "fetch, search, browser",
    NodeType.LOCAL: "read files under `source`; code over them, read-only",
    NodeType.MEMORY: "read the memory folder",
    NodeType.CODE: "run code",
}
_WORK = ("solve_memory.json", "evidence.jsonl", "artifacts")  # what a restarted subagent goes on from
_ATTEMPT_FILES = (
    *("context.json", "input.txt", "reply.txt", "stdout.log", "stderr.log", "process.json", "conclusion.md"),
    *("answer.md", "final_answer.md", "usage.json", *_WORK),
)
_ATTEMPT = re.compile(r"attempt(\d+)\Z")


@dataclass(frozen=True)
class ProcessRecord:
    """process.json of the newest attempt. Times in epoch seconds, memory in bytes; pid None: not started (yet);
    create_time and boot: see dr/process.py Identity.

    attempt: how often the node was started at all; tries: how many of them count in `node_attempts`.
    outcome: None while it runs, else done, retry (another attempt follows), failed, skipped or interrupted.
    error: why it failed.
    verdict: of the output's form (dr/output.py). reservation: codes of what is weak about a usable conclusion.
    """

    argv: list[str]
    attempt: int
    pid: int | None = None
    create_time: float | None = None
    boot: str = ""
    group: int | None = None  # its process group: the pid of what was started first
    tries: int = 1
    round: int = 0  # of an agent that was answered through reply.txt: which of its outputs is this attempt's
    start: float | None = None
    end: float | None = None
    exit_code: int | None = None
    peak_memory: int | None = None
    outcome: str | None = None
    error: str | None = None
    verdict: str | None = None
    reservation: list[str] = field(default_factory=list)

    @property
    def state(self) -> State:
        """The state that the folder tells; a running record whose process is gone is for the runner to judge."""
        if self.outcome is None:
            return State.RUNNING
        return State.PENDING if self.outcome in ("interrupted", "retry") else State(self.outcome)

    @property
    def counts(self) -> bool:
        """Whether an attempt was made: not a node that was skipped, a start that never came about, an interruption."""
        never_started = self.start is None or (self.pid is None and self.outcome is None)
        return not never_started and self.outcome != "interrupted"


def write_record(folder: NodeFolder, record: ProcessRecord) -> None:
    files.write_json(folder.process, vars(record))


def read_record(folder: NodeFolder) -> ProcessRecord | None:
    """None when no attempt was ever prepared. FormatError when the file is not ours."""
    try:
        data = files.read_json(folder.process)
    except FileNotFoundError:
        return None
    try:
        record = files.record_of(ProcessRecord, data)
        _ = record.state  # an unknown outcome is as wrong as an unknown shape
    except (TypeError, ValueError) as error:
        next_step = "restore the file, or remove it to run the node again"
        raise FormatError(f"read {folder.process}", f"not a process record ({error})", next_step) from error
    return record


def prepare(
    folder: NodeFolder, context: Context, node_type: NodeType, language: str, *, keep_work: bool, remark: str = ""
) -> int:
    """Make the folder ready for a new attempt and return its number, from 1.

    Files of an earlier attempt are moved to attempt<k>/, never deleted; with `keep_work` the subagent's memory stays,
    so that it goes on at its first unfinished step. remark: what the earlier attempt did wrong.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    number = _put_away(folder, keep_work)
    # Nobody reads them before the start, which is recorded after them.
    files.write_new(folder.context, files.json_text(context.to_dict()))
    files.write_new(folder.input, input_text(folder, node_type, language, remark))
    return number


def put_away(folder: NodeFolder) -> None:
    """The newest attempt's files into attempt<k>/, as if the node had not run: for a node that is to run anew."""
    if folder.path.is_dir():
        _put_away(folder, keep_work=False)


def _put_away(folder: NodeFolder, keep_work: bool) -> int:
    """context.json goes first, so that without process.json it always means a start (see intent()), then process.json:
    a kill on the way leaves a node without a record. What a kill kept from moving follows at the next attempt."""
    names = set(_ATTEMPT_FILES) - (set(_WORK) if keep_work else set())
    entries = list(folder.path.iterdir())
    present = {e.name: e for e in entries if e.name in names or e.name.startswith("output")}
    done = max((int(m[1]) for e in entries if (m := _ATTEMPT.match(e.name)) and any(e.iterdir())), default=0)
    anew = {}  # of a start that came to nothing: written again
    if "process.json" not in present:
        anew = {name: present.pop(name) for name in ("context.json", "input.txt") if name in present}
    rest = folder.attempt(done)
    if done and present and not any((rest / name).exists() for name in present):
        _move({**present, **{n: e for n, e in anew.items() if not (rest / n).exists()}}, rest)
        return done + 1
    if not present:
        return done + 1
    _move(present, folder.attempt(done + 1))
    return done + 2


def last_reply(folder: NodeFolder) -> str:
    """What a person replied to the newest attempt that was put away: for the attempt that begins now."""
    numbers = [int(m[1]) for e in folder.path.glob("attempt*") if (m := _ATTEMPT.match(e.name))]
    reply = NodeFolder(folder.attempt(max(numbers, default=0))).reply
    return files.read_text(reply).strip() if reply.is_file() else ""


def put_round_away(folder: NodeFolder) -> tuple[int, int]:
    """The output of a round that is over into attempt<k>/, for an agent that goes on with the same task and logs.

    Returns the number of the attempt that begins, and that of the agent's next round.
    """
    entries = list(folder.path.iterdir())
    done = max((int(m[1]) for e in entries if (m := _ATTEMPT.match(e.name)) and any(e.iterdir())), default=0)
    record = read_record(folder)
    rounds = [int(m[1] or 0) for e in entries if (m := OUTPUT.match(e.name))]
    target = folder.attempt(done + 1)
    target.mkdir(exist_ok=True)
    if record is not None:
        write_record(NodeFolder(target), record)
    names = {folder.answer.name, folder.usage.name, folder.conclusion.name}
    _move({e.name: e for e in entries if e.name in names or OUTPUT.match(e.name)}, target)
    return done + 2, max([record.round if record else 0, *rounds]) + 1


def _move(entries: dict[str, Path], target: Path) -> None:
    target.mkdir(exist_ok=True)
    first = ("context.json", "process.json")
    for name in sorted(entries, key=lambda n: first.index(n) if n in first else len(first)):
        shutil.move(str(entries[name]), str(target / name))


def intent(folder: NodeFolder) -> ProcessRecord | None:
    """The attempt that was about to start, or had just started, when its runner was killed: context.json is written
    right before a start, process.json right after it. argv is not known."""
    if folder.process.exists() or not folder.context.exists():
        return None
    numbers = [int(m[1]) for e in folder.path.glob("attempt*") if (m := _ATTEMPT.match(e.name))]
    before, tries = None, 1
    with suppress(FormatError):
        before = read_record(NodeFolder(folder.attempt(max(numbers, default=0))))
    if before is not None and before.outcome in ("retry", "interrupted"):
        tries = before.tries + (before.outcome == "retry")
    return ProcessRecord([], max(numbers, default=0) + 1, tries=tries, start=folder.context.stat().st_mtime)


def attempts(folder: NodeFolder) -> int:
    """How many attempts of the node were made."""
    if not folder.path.is_dir():
        return 0
    earlier = [NodeFolder(entry) for entry in folder.path.iterdir() if _ATTEMPT.match(entry.name)]
    return sum(_counts(attempt) for attempt in [*earlier, folder])


def _counts(attempt: NodeFolder) -> bool:
    try:
        record = read_record(attempt)
    except FormatError:
        return True  # damaged, but it was one
    return record is not None and record.counts


def usage(path: Path) -> dict[str, int]:
    """The counts of a usage.json; {} when there is none or it is damaged: tokens are information, not control."""
    try:
        data = files.read_json(path)
    except (OSError, FormatError):
        return {}
    return {k: int(v) for k, v in data.items() if isinstance(v, (int, float))} if isinstance(data, dict) else {}


def usages(folder: NodeFolder) -> list[dict[str, int]]:
    """Of every attempt of a node."""
    return [usage(p) for p in (folder.usage, *folder.path.glob("attempt*/usage.json")) if p.exists()]


@lru_cache(maxsize=4)
def _template(language: str) -> Template:
    return Template((HOME / "sop" / f"node_input.{language}.md").read_text(encoding="utf-8"))


def input_text(folder: NodeFolder, node_type: NodeType, language: str, remark: str) -> str:
    """input.txt: under 1,500 characters whatever the remark; no procedure, no source text."""
    facts: dict[str, Any] = {
        "type": node_type.value,
        "context": str(folder.context),
        "tools": TOOLS[node_type],
        "mark": CONCLUSION_MARK,
    }
    room = INPUT_CHARS - 1 - len(_template(language).substitute(facts, remark=""))
    return _template(language).substitute(facts, remark=remark[: max(room, 0)]).rstrip() + "\n"


def context_of(sub_question: str, source: str, root: str, parents: dict[str, str], output: Path) -> Context:
    return Context(root, parents, sub_question, source, str(output))
