"""Arguments in, exit code out: each verb is a plain function of dr/commands.py."""

from __future__ import annotations

import argparse
import difflib
import errno
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dr import __version__, files
from dr.errors import EXIT_BUG, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, DrError, FatalError, UsageError
from dr.layout import HOME, Root
from dr.terminal import Terminal

# flag -> (settings key, type, help); each overrides the setting of the same meaning.
_SETTINGS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "--agent": ("agent", str, "who runs a node: auto (the root's agentmain.py), own, or a file"),
    "--mind": ("mind", str, "who thinks: auto, model, agent, offline"),
    "--max-parallel": ("max_parallel", int, "subagents at a time (8)"),
    "--min-rounds": ("min_rounds", int, "rounds before the report (2)"),
    "--max-rounds": ("max_rounds", int, "rounds at most; 1 = no deepening (4)"),
    "--max-steps": ("max_steps", int, "attempts at most (3 x first plan + 6, at least 12)"),
    "--max-replans": ("max_replans", int, "plans after failures at most (5)"),
    "--max-seconds": ("max_seconds", float, "seconds for the run"),
    "--max-tokens": ("max_tokens", int, "tokens for the run"),
    "--on-failure": ("on_failure", str, "replan, skip or abort"),
    "--node-timeout": ("node_timeout_s", float, "seconds for one attempt (1800)"),
    "--memory": ("memory", str, "folder that MEMORY nodes read"),
    "--launch": ("launch", str, 'put in front of a subagent, e.g. "srun --ntasks=1 --job-name={job}"'),
    "--cancel": ("cancel", str, 'run after ending one, e.g. "scancel --name={job}"'),
}

# What somebody did to a file or folder, and no bug: it became a folder, a file or a loop, is closed, its name too long.
_NOT_OURS = (
    *(errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG),
    *(errno.EACCES, errno.EPERM, errno.EROFS),
)


_NEEDED = ("psutil", "filelock")  # by whatever changes a run
_LIGHT = {"status", "list", "trace", "check", "clean", "verify", "install"}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError(self.prog, message, f"{self.prog} --help")


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, default=None, help="folder that holds temp/ (default: of dr_runner.py)")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, nothing on stderr")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def _settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("settings (also in config.yaml and as DR_* variables)")
    for flag, (key, kind, help_) in _SETTINGS.items():
        group.add_argument(flag, dest=f"set.{key}", type=kind, default=None, metavar="X", help=help_)


def _planning(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question", nargs="?", default=None)
    parser.add_argument("--source", action="append", default=[], metavar="S", help="file, folder or URL; repeatable")
    parser.add_argument("--task", default=None, help="name of the run (default: made from the question)")
    parser.add_argument("--dag", type=Path, default=None, help="a dag.md to run instead of planning")
    parser.add_argument("--replace", action="store_true", help="delete an earlier run of this name")


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="dr_runner.py",
        description="Split a question into sub-questions, answer each in a process of its own, report with citations.",
        epilog='A first word that is no verb is the question: dr_runner.py "QUESTION" --source docs/',
    )
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, help_: str, *parts: Callable[[argparse.ArgumentParser], None]) -> argparse.ArgumentParser:
        sub = verbs.add_parser(name, help=help_, description=help_)
        for part in (*parts, _common):
            part(sub)
        return sub

    verb("run", "plan, run, report; prints the answer, then the report's path", _planning, _settings)
    verb("plan", "write dag.md and the upper bounds of nodes and calls; start nothing", _planning, _settings)
    for name, help_ in (
        ("resume", "go on with a run that was interrupted or killed"),
        ("stop", "end a run's processes and leave it resumable"),
        ("status", "what a run is doing"),
        ("trace", "the story of a run: what happened, in order, with the plan's revisions"),
        ("verify", "check the report's citations again, from files alone"),
    ):
        sub = verb(name, help_, *((_settings,) if name == "resume" else ()))
        sub.add_argument("task")
    sub = verb("start", "launch what is ready and return within 5 s; then poll", _settings)
    sub.add_argument("task")
    sub.add_argument("--dag", type=Path, default=None, help="the plan (default: temp/dr_TASK/dag.md)")
    sub.add_argument("--detach", action="store_true", help="leave a runner in the background that goes on by itself")
    sub.add_argument("--replace", action="store_true", help="delete an earlier run of this name")
    sub = verb("poll", "collect, launch what became ready, return when something changed", _settings)
    sub.add_argument("task")
    sub.add_argument("--wait", type=float, default=45.0, metavar="S", help="seconds at most (45)")
    sub = verb("synth", "write the report of what is there", _settings)
    sub.add_argument("task")
    sub.add_argument("--from", dest="from_", type=Path, default=None, metavar="FILE", help="your own answer text")
    sub.add_argument("--now", action="store_true", help="end and skip what is not settled")
    sub = verb("add", "append a node")
    sub.add_argument("task")
    sub.add_argument("--type", dest="type_", required=True, metavar="T", help="WEB, LOCAL, MEMORY or CODE")
    sub.add_argument("--question", required=True, metavar="Q")
    sub.add_argument("--depends", default=None, metavar="A,B")
    sub.add_argument("--source", default=None, metavar="S")
    sub.add_argument("--id", dest="id_", default=None, metavar="I")
    for name, help_ in (("retry", "run a settled node and its descendants again"), ("skip", "skip or end a node")):
        sub = verb(name, help_)
        sub.add_argument("task")
        sub.add_argument("node")
    sub = verb("reply", "answer a node that asks a question")
    for name in ("task", "node", "text"):
        sub.add_argument(name)
    verb("list", "the runs of this root")
    sub = verb("check", "a dag.md: its plan, or its faults by line")
    sub.add_argument("file", type=Path)
    sub.add_argument("--rewrite", action="store_true", help="print the canonical text")
    sub = verb("clean", "an output.txt: its conclusion")
    sub.add_argument("file", type=Path)
    sub = verb("install", "put the runner, its prompts and the SOP into a GenericAgent root, or take them out again")
    sub.add_argument("ga_root", type=Path, metavar="GA_ROOT")
    sub.add_argument("--dry-run", action="store_true", help="say what would be done")
    sub.add_argument("--index", action="store_true", help="also write the one line into its memory's index")
    sub.add_argument("--uninstall", action="store_true", help="remove exactly what was written")
    verb("doctor", "packages, agent, model, search, locks, what dead runs left, and what to do about it", _settings)
    return parser


def _with_verb(argv: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """The first word is the verb if it is one; else everything belongs to `run`."""
    action = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    if len(argv) > 1 and argv[0].isalpha() and argv[0] not in action.choices:
        near = difflib.get_close_matches(argv[0], action.choices, n=1, cutoff=0.75)
        if near:
            raise UsageError(
                f"run the verb {argv[0]!r}",
                "there is no such verb",
                f"python dr_runner.py {near[0]}, or: run {argv[0]!r}",
            )
    if argv and (argv[0] in action.choices or argv[0] in ("-h", "--help", "--version")):
        return list(argv)
    return ["run", *argv] if argv else ["--help"]


def main(argv: Sequence[str]) -> int:
    """Run one verb. Returns the documented exit code; prints through the terminal only."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    parser = build_parser()
    try:
        options = vars(parser.parse_args(_with_verb(argv, parser)))
        root = Root(_resolved(Path(options.pop("root") or os.environ.get("DR_ROOT") or HOME)))
    except SystemExit as stop:  # argparse's way to say: usage was printed
        return int(stop.code or 0)
    except UsageError as error:
        Terminal(as_json="--json" in argv, quiet=False).error(error)
        return EXIT_USAGE
    verb = options.pop("verb")
    terminal = Terminal(as_json=options.pop("json"), quiet=options.pop("quiet"))
    flags = {k.removeprefix("set."): options.pop(k) for k in list(options) if k.startswith("set.")}
    from dr import commands

    if lacking := [n for n in _NEEDED if verb not in _LIGHT and importlib.util.find_spec(n) is None]:
        wrong = f"not installed for {sys.executable}: {', '.join(lacking)}"
        install = f"{sys.executable} -m pip install -r {HOME / 'requirements.txt'}, in a virtual environment"
        terminal.error(UsageError(f"run {verb}", wrong, install))
        return EXIT_USAGE
    function = getattr(commands, verb + "_" if verb in ("list",) else verb)
    if flags:
        options["flags"] = flags
    try:
        return int(function(root, terminal, **options))
    except DrError as error:
        terminal.error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_INTERRUPTED
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("", "dr"):
            raise
        wrong = f"the package {error.name} is not installed for {sys.executable}"
        terminal.error(
            UsageError(f"run {verb}", wrong, f"{sys.executable} -m pip install -r {HOME / 'requirements.txt'}")
        )
        return EXIT_USAGE
    except Exception as error:  # noqa: BLE001 - the one catch-all: a bug becomes a log that is a bug report
        if files.is_disk_full(error):  # where no module of ours was writing: a folder, a lock
            terminal.error(FatalError("write a file", "the disk is full", "free some space, then resume the task"))
            return EXIT_FAILED
        if isinstance(error, OSError) and error.errno in _NOT_OURS and error.filename is not None:
            path, wrong = os.fsdecode(error.filename), error.strerror or str(error)
            terminal.error(UsageError(f"use {path}", wrong, "restore it or make it accessible, then run this again"))
            return EXIT_USAGE
        terminal.bug(error, _write_bug_report(argv, root))
        return EXIT_BUG


def _open_closed_streams() -> None:
    """A caller may have closed stdin, stdout or stderr: then the next file that is opened would stand in its place."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            if os.open(os.devnull, os.O_RDWR) == number and getattr(sys, name) is None:
                setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # no current directory any more; a loop of links; a NUL
        wrong = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"use {path} as root", wrong, "give an absolute path of a folder with --root") from error


def _write_bug_report(argv: Sequence[str], root: Root) -> Path | None:
    import platform
    import tempfile

    text = (
        f"# Bug report\n\nversion: {__version__}\npython: {sys.version}\nplatform: {platform.platform()}\n"
        f"root: {root.path}\narguments: {list(argv)}\n\n```\n{traceback.format_exc()}```\n"
    )
    for folder in (root.temp, Path(tempfile.gettempdir())):
        try:
            handle, name = tempfile.mkstemp(prefix="dr_bug_", suffix=".md", dir=folder)
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
                stream.write(text)
        except OSError:
            continue
        return Path(name)
    return None
