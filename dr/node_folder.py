"""One node's folder: what a subagent is told (context.json, input.txt), and what became of it (process.json)."""

from __future__ import annotations

import re
import shutil
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any

from dr import files
from dr.contract import CONCLUSION_MARK, INPUT_CHARS, Context, NodeType, State
from dr.errors import FormatError
from dr.layout import HOME, NodeFolder

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
    outcome: None while it runs, else done, failed, skipped or interrupted. error: why it failed.
    verdict: of the output's form (dr/output.py). reservation: codes of what is weak about a usable conclusion.
    """

    argv: list[str]
    attempt: int
    pid: int | None = None
    create_time: float | None = None
    boot: str = ""
    group: int | None = None  # its process group: the pid of what was started first
    tries: int = 1
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
        return State.PENDING if self.outcome == "interrupted" else State(self.outcome)


def write_record(folder: NodeFolder, record: ProcessRecord) -> None:
    files.write_json(folder.process, asdict(record))


def read_record(folder: NodeFolder) -> ProcessRecord | None:
    """None when no attempt was ever prepared. FormatError when the file is not ours."""
    try:
        data = files.read_json(folder.process)
    except FileNotFoundError:
        return None
    try:
        known = {f.name for f in fields(ProcessRecord)}
        record = ProcessRecord(**{k: v for k, v in data.items() if k in known})
        _ = record.state  # an unknown outcome is as wrong as an unknown shape
    except (TypeError, AttributeError, ValueError) as error:
        raise FormatError(f"read {folder.process}", f"not a process record ({error})") from error
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
    files.write_json(folder.context, context.to_dict())
    files.write_text(folder.input, input_text(folder, node_type, language, remark))
    return number


def put_away(folder: NodeFolder) -> None:
    """The newest attempt's files into attempt<k>/, as if the node had not run: for a node that is to run anew."""
    if folder.path.is_dir():
        _put_away(folder, keep_work=False)


def _put_away(folder: NodeFolder, keep_work: bool) -> int:
    names = set(_ATTEMPT_FILES) - (set(_WORK) if keep_work else set())
    present = [entry for entry in folder.path.iterdir() if entry.name in names or entry.name.startswith("output")]
    done = max((int(m[1]) for entry in folder.path.iterdir() if (m := _ATTEMPT.match(entry.name))), default=0)
    if not present:
        return done + 1
    target = folder.attempt(done + 1)
    target.mkdir()
    for entry in present:
        shutil.move(str(entry), str(target / entry.name))
    return done + 2


def attempts(folder: NodeFolder) -> int:
    """How many attempts of the node were prepared."""
    if not folder.path.is_dir():
        return 0
    earlier = sum(
        1 for entry in folder.path.iterdir() if _ATTEMPT.match(entry.name) and (entry / "process.json").exists()
    )
    return earlier + folder.process.exists()


def usage(path: Path) -> dict[str, int]:
    """The counts of a usage.json; {} when there is none or it is damaged: tokens are for information, not for control."""
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
