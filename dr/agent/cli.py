"""The subagent's command line: flags -> one request, run in the foreground. The only module of dr/agent that prints."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dr import files
from dr.agent import request
from dr.agent.flags import USAGE, Flags, parse
from dr.agent.main import LoadSettings, finished, run_node, work
from dr.errors import EXIT_BUG, EXIT_FATAL, EXIT_INTERRUPTED, EXIT_OK, DrError, FatalError, UsageError
from dr.layout import HOME, NodeFolder, Root

if TYPE_CHECKING:
    from dr.agent.loop import Log
    from dr.settings import Settings

NAME = "dr.agent"


def main(argv: list[str] | None = None) -> int:
    """0, or the exit code of the error, whose reason is on stderr: 1 the sources, 2 wrong usage or files, 4 what no
    other node could do either, 70 a bug."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)
    try:
        flags = parse(sys.argv[1:] if argv is None else argv)
        if flags.help:
            print(USAGE, end="")
        else:
            _run(flags, Root(Path(os.environ.get("DR_ROOT") or HOME).expanduser().resolve()))
    except DrError as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return EXIT_FATAL if isinstance(error, FatalError) else error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001  the one catch-all: what reaches it is a bug
        import traceback

        traceback.print_exc()
        print(f"{NAME}: {type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_BUG
    return EXIT_OK


def _run(flags: Flags, root: Root) -> None:
    load = cache(lambda: _settings(root, flags))
    log, warn = _printer(sys.stdout, verbose=flags.verbose), _printer(sys.stderr, f"{NAME}: ")
    if flags.func is not None:
        _answer_file(Path(flags.func), root, load, log, warn)
        return
    folder = request.node_folder(root, flags.task or "")
    for path in folder.outputs():  # before anything can fail: nobody may take it for the answer of this attempt
        path.unlink()
    if flags.input is not None:
        folder.path.mkdir(parents=True, exist_ok=True)
        files.write_text(folder.input, flags.input)
        asked = request.from_text(flags.input, folder.output, "--input")
    else:
        asked = request.from_folder(folder)
    run_node(asked, folder, root, load, log, warn)


def _settings(root: Root, flags: Flags) -> Settings:
    from dr.settings import load  # late: a LOCAL node needs none of them before its sources are read

    return load(root.path, {"llm_no": flags.llm_no})


def _answer_file(path: Path, root: Root, load: LoadSettings, log: Log, warn: Log) -> None:
    """--func: the answer goes next to the file; the working files are not kept."""
    import tempfile

    if not path.is_file():
        raise UsageError(f"read {path}", "there is no such file", "give the file that holds the question")
    output = path.with_suffix(".out.txt")
    output.unlink(missing_ok=True)
    asked = request.from_text(files.read_text(path), output, str(path))
    with tempfile.TemporaryDirectory(prefix="dr_func_") as folder:
        answer = work(asked, NodeFolder(Path(folder)), root, load, log, warn)
    files.write_text(output, finished(answer.text))


def _printer(stream: TextIO, prefix: str = "", verbose: bool = False) -> Log:
    def log(line: str, detail: bool = False) -> None:
        if verbose or not detail:
            print(prefix + line, file=stream, flush=True)

    return log
