"""The subagent's flags -> Flags. Pure. Not argparse, whose import would be a fifth of the start-up CPU allowed."""

from __future__ import annotations

from dr.errors import UsageError

USAGE = """\
usage: agentmain.py (--task NAME [--input TEXT] | --func FILE) [--nobg] [--llm_no N] [--verbose] [--no-user-tools]

Answer one question from its sources.
  --task NAME      node folder below temp/, e.g. dr_task/N1; its context.json holds the question
  --input TEXT     the question, instead of context.json
  --func FILE      file that holds the question; the answer goes next to it, into .out.txt
  --llm_no N       number of the model
  --verbose        log the uses of tools too
  --nobg           accepted: the subagent is always in the foreground
  --no-user-tools  accepted: the subagent never asks anybody
"""
_VALUES = ("task", "input", "func", "llm_no")
_SWITCHES = ("nobg", "verbose", "no-user-tools", "help")


class Flags:
    """Values as given; None and False: not given."""

    task: str | None = None
    input: str | None = None
    func: str | None = None
    llm_no: int | None = None
    nobg = verbose = no_user_tools = help = False


def parse(argv: list[str]) -> Flags:
    """UsageError: an unknown flag, one without its value, or not exactly one of --task and --func."""
    flags, rest = Flags(), list(argv)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if word in ("-h", "--help"):
            flags.help = True
            return flags
        if word.startswith("--") and name in _VALUES:
            if not equals and not rest:
                raise _wrong(f"{word} wants a value")
            setattr(flags, name, value if equals else rest.pop(0))
        elif word.startswith("--") and name in _SWITCHES and not equals:
            setattr(flags, name.replace("-", "_"), True)
        else:
            raise _wrong(f"unknown argument {word!r}")
    if (flags.task is None) == (flags.func is None):
        raise _wrong("exactly one of --task NAME and --func FILE is needed")
    if flags.func is not None and flags.input is not None:
        raise _wrong("--input goes with --task; the file of --func holds its question")
    if flags.llm_no is not None:
        try:
            flags.llm_no = int(flags.llm_no)
        except ValueError:
            raise _wrong(f"--llm_no wants a number, not {flags.llm_no!r}") from None
    return flags


def _wrong(why: str) -> UsageError:
    return UsageError("read the command line", why, "see agentmain.py --help")
