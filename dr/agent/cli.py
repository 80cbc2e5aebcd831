"""The subagent's command line: flags -> one request, run in the foreground. The only module of dr/agent that prints."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dr import files
from dr.agent import request
from dr.agent.main import finished, run_node, work
from dr.errors import EXIT_BUG, EXIT_INTERRUPTED, EXIT_OK, DrError, UsageError
from dr.layout import HOME, NodeFolder, Root
from dr.settings import Settings, load

if TYPE_CHECKING:
    from dr.agent.loop import Log

NAME = "dr.agent"


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(
        "agentmain.py", description="Answer one question from its sources.", allow_abbrev=False
    )
    flags.add_argument("--task", metavar="NAME", help="node folder below temp/, e.g. dr_task/N1")
    flags.add_argument("--input", metavar="TEXT", help="the question, instead of the folder's context.json")
    flags.add_argument(
        "--func", metavar="FILE", help="answer the question in FILE; writes FILE without suffix + .out.txt"
    )
    flags.add_argument("--nobg", action="store_true", help="accepted: the subagent is always in the foreground")
    flags.add_argument("--llm_no", metavar="N", type=int, help="number of the model")
    flags.add_argument("--verbose", action="store_true", help="log tool results too")
    flags.add_argument("--no-user-tools", action="store_true", help="accepted: the subagent never asks anybody")
    return flags


def main(argv: list[str] | None = None) -> int:
    """0, or the exit code of the error; its reason is on stderr. Wrong flags exit with 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)
    flags = parser().parse_args(argv)
    try:
        _run(flags, Root(Path(os.environ.get("DR_ROOT") or HOME).expanduser().resolve()))
    except DrError as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001  the one catch-all: what reaches it is a bug
        import traceback

        traceback.print_exc()
        print(f"{NAME}: {type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_BUG
    return EXIT_OK


def _run(flags: argparse.Namespace, root: Root) -> None:
    if (flags.task is None) == (flags.func is None):
        raise UsageError("start the subagent", "give either --task NAME or --func FILE", "see --help")
    if flags.func is not None and flags.input is not None:
        raise UsageError("start the subagent", "--input goes with --task", "write the text into the file of --func")
    log, warn = _printer(sys.stdout, verbose=flags.verbose), _printer(sys.stderr, f"{NAME}: ")
    if flags.func is not None:
        _answer_file(Path(flags.func), root, _settings(flags, root), log, warn)
        return
    folder = request.node_folder(root, flags.task)
    _drop_old_output(folder)  # before anything can fail: nobody may take it for the answer of this attempt
    if flags.input is not None:
        folder.path.mkdir(parents=True, exist_ok=True)
        files.write_text(folder.input, flags.input)
        asked = request.from_text(flags.input, folder.output, "--input")
    else:
        asked = request.from_folder(folder)
    run_node(asked, folder, root, _settings(flags, root), log, warn)


def _settings(flags: argparse.Namespace, root: Root) -> Settings:
    return load(root.path, {"llm_no": flags.llm_no})


def _drop_old_output(folder: NodeFolder) -> None:
    for path in folder.outputs():
        path.unlink()


def _answer_file(path: Path, root: Root, settings: Settings, log: Log, warn: Log) -> None:
    """--func: the answer goes next to the file; the working files are not kept."""
    import tempfile

    if not path.is_file():
        raise UsageError(f"read {path}", "there is no such file", "give the file that holds the question")
    output = path.with_suffix(".out.txt")
    output.unlink(missing_ok=True)
    asked = request.from_text(files.read_text(path), output, str(path))
    with tempfile.TemporaryDirectory(prefix="dr_func_") as folder:
        answer = work(asked, NodeFolder(Path(folder)), root, settings, log, warn)
    files.write_text(output, finished(answer.text))


def _printer(stream: TextIO, prefix: str = "", verbose: bool = False) -> Log:
    def log(line: str, detail: bool = False) -> None:
        if verbose or not detail:
            print(prefix + line, file=stream, flush=True)

    return log
