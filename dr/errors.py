"""Every error a user can meet, and the exit codes. Messages say what was tried, what is wrong, what to do next."""

from __future__ import annotations

from typing import NamedTuple

EXIT_OK = 0
EXIT_FAILED = 1  # run, resume, synth: no finding at all
EXIT_USAGE = 2  # wrong usage or input; nothing was changed
EXIT_PARTIAL = 3  # run, resume, synth: a report with named gaps
EXIT_FATAL = 4  # a subagent: nothing later in the run can succeed either, such as wrong credentials
EXIT_BUG = 70  # a bug; a log that is a bug report was written
EXIT_INTERRUPTED = 130  # Ctrl-C or stop; resumable


class DrError(Exception):
    """Base: an error with a message for the user and a documented exit code."""

    exit_code = EXIT_USAGE

    def __init__(self, tried: str, wrong: str, next_step: str = "") -> None:
        self.tried, self.wrong, self.next_step = tried, wrong, next_step
        super().__init__(f"{tried}: {wrong}" + (f"\n  -> {next_step}" if next_step else ""))


class UsageError(DrError):
    """Wrong flags, names, files or settings given by the caller."""


class FormatError(DrError):
    """A file of ours that cannot be read: not JSON, wrong keys, or a newer format version."""


class FatalError(DrError):
    """Nothing later in the run can succeed either: no credentials, no disk space."""

    exit_code = EXIT_FAILED


class SourceError(DrError):
    """A source that cannot be read or holds no text; the reason of a failed node, never a finding."""

    exit_code = EXIT_FAILED


class ChatError(DrError):
    """The chat model gave no usable reply this time; a later call, or another mind, still can."""

    exit_code = EXIT_FAILED


class UnusableReply(ChatError):
    """The server works, but what the model says is none of what was asked for, however often it is asked."""


class ContextOverflow(ChatError):
    """The prompt is longer than the model can read; shorten it. Sizes in tokens, None where the server did not say."""

    def __init__(self, tried: str, wrong: str, prompt_tokens: int | None = None, limit: int | None = None) -> None:
        self.prompt_tokens, self.limit = prompt_tokens, limit
        super().__init__(tried, wrong, "shorten the prompt, or serve the model with a larger context")


class LockedError(DrError):
    """Another runner holds the task."""

    def __init__(self, task: str, pid: int | None) -> None:
        holder = f"process {pid} holds it" if pid else "another runner holds it"
        super().__init__(f"take the lock of task {task}", holder, f"wait for it, or: python dr_runner.py stop {task}")
        self.pid = pid


class LineError(NamedTuple):
    """One fault of a text file: line number from 1, message with the line and what was expected."""

    line: int
    message: str


class DagError(DrError):
    """A dag.md that does not describe a valid plan. `errors`: every fault found, by line."""

    def __init__(self, errors: list[LineError], path: str = "dag.md") -> None:
        self.errors = errors
        listing = "; ".join(f"line {e.line}: {e.message}" for e in errors)
        super().__init__(f"read {path}", listing, "correct the line, then: python dr_runner.py check " + path)
