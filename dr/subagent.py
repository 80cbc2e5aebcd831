"""Which agent runs the nodes, and how: in: root, --agent, the mind; out: Agent, the command line, the environment.

An agent is never imported (GenericAgent's does work at import): its text is read for what it can do.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dr.contract import ROUND_END
from dr.errors import UsageError
from dr.layout import HOME, NodeFolder, Root

NOBG = "--nobg"  # stay in the foreground: without it GA's launcher returns 0 at once and leaves a child behind
NO_USER_TOOLS = "--no-user-tools"
LLM_NO = "--llm_no"
FUNC = "--func"
VERBOSE = "--verbose"
REPLY = "reply.txt"  # after a round it waits for this file
CAPABILITIES = frozenset({ROUND_END, NOBG, NO_USER_TOOLS, LLM_NO, FUNC, VERBOSE, REPLY})
# What our own agent can do; it never lingers. A test holds this against its argument parser.
OWN_CAPABILITIES = CAPABILITIES - {REPLY}

_SCAN_BYTES = 8_000_000  # an agent may be a compiled program
_OWN_TEXT = re.compile(rb"\bdr\.agent\b")
_GA_TEXT = re.compile(rb"\bagent_runner_loop\b|\bGenericAgentHandler\b")
_COMMENT_LINE = re.compile(rb"(?m)^[ \t]*#.*$")


class Agent(NamedTuple):
    """argv: how it is started, without arguments. knows: what its text speaks of, of CAPABILITIES. own: it is ours.

    transcript: it writes its own transcript to output.txt, as GA does, so its answer has to go to answer.md.
    """

    argv: tuple[str, ...]
    knows: frozenset[str]
    own: bool = False
    transcript: bool = False

    @property
    def knows_round_end(self) -> bool:
        return ROUND_END in self.knows

    @property
    def may_detach(self) -> bool:
        """The started process may be a launcher only."""
        return not self.own and NOBG not in self.knows

    @property
    def waits_for_reply(self) -> bool:
        return REPLY in self.knows


def choose_agent(root: Root, choice: str, mind: str) -> Agent:
    """choice: auto, own, or a file. mind: the one in effect, not `auto`. UsageError says what is missing."""
    if choice == "own":
        return _own_agent(root)
    if choice == "auto":
        if not root.agentmain.is_file():
            return _own_agent(root)  # a folder that only holds temp/
        if root.is_genericagent and mind == "offline":
            return _own_agent(root)  # GA's cannot think without a model; ours can
        return _read_agent(root.agentmain, (sys.executable, root.agentmain.name))
    path = Path(choice).expanduser().absolute()
    tried = f"use {choice} as subagent"
    if not path.is_file():
        raise UsageError(tried, "there is no such file", "give a file, or auto or own, with --agent")
    if path.suffix.lower() in (".py", ".pyw"):
        # The interpreter itself: a version manager's shim before it would cost ten times its start-up.
        return _read_agent(path, (sys.executable, str(path)))
    if not os.access(path, os.X_OK):
        raise UsageError(tried, "it is no Python file and not executable", f"chmod +x {choice}")
    return _read_agent(path, (str(path),))


def _own_agent(root: Root) -> Agent:
    if root.agentmain.is_file() and _OWN_TEXT.search(_text(root.agentmain)):
        return Agent((sys.executable, root.agentmain.name), OWN_CAPABILITIES, own=True)
    return Agent((sys.executable, "-m", "dr.agent"), OWN_CAPABILITIES, own=True)


def _read_agent(path: Path, argv: tuple[str, ...]) -> Agent:
    text = _text(path)
    if _OWN_TEXT.search(text):
        return Agent(argv, OWN_CAPABILITIES, own=True)
    transcript = Root(path.parent).is_genericagent or _GA_TEXT.search(text) is not None
    return Agent(argv, frozenset(c for c in CAPABILITIES if _speaks_of(text, c)), transcript=transcript)


def _text(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            text = stream.read(_SCAN_BYTES)
    except OSError as error:
        raise UsageError(f"read the subagent {path}", str(error), "make it readable") from error
    return _COMMENT_LINE.sub(b"", text) if path.suffix.lower() in (".py", ".pyw") else text


def _speaks_of(text: bytes, capability: str) -> bool:
    return re.search(re.escape(capability.encode()) + rb"(?![\w-])", text) is not None


def command(agent: Agent, node: NodeFolder, *, llm_no: int | None = None, launch: str = "") -> list[str]:
    """The command line of one attempt; its working directory is the root. launch: a prefix such as `srun … {job}`."""
    argv = [*template(launch, node, "--launch"), *agent.argv, "--task", node.task_argument]
    argv += [flag for flag in (NOBG, NO_USER_TOOLS) if flag in agent.knows]
    if llm_no is not None and LLM_NO in agent.knows:
        argv += [LLM_NO, str(llm_no)]
    return argv


def job_name(node: NodeFolder) -> str:
    """Task and node, joined by a character that neither can hold and that cluster engines allow in names."""
    return node.task_argument.replace("/", "+")


def template(text: str, node: NodeFolder, flag: str) -> list[str]:
    """The words of a --launch or --cancel template for one node; [] for an empty one."""
    try:
        words = shlex.split(text, posix=sys.platform != "win32")
    except ValueError as error:
        raise UsageError(f"read {flag} {text!r}", str(error), "close the quotation") from error
    return [word.replace("{job}", job_name(node)) for word in words]


def environment(agent: Agent, settings: Mapping[str, str], base: Mapping[str, str] | None = None) -> dict[str, str]:
    """base (os.environ), plus for our own agent the effective settings as DR_* variables, keys included; another agent
    is given nothing it did not have."""
    env = dict(os.environ if base is None else base)
    env.setdefault("PYTHONIOENCODING", "utf-8")  # the logs, whatever the locale
    if agent.own:
        env.update(settings)
    if agent.argv[1:2] == ("-m",):
        env["PYTHONPATH"] = os.pathsep.join([str(HOME), *filter(None, [env.get("PYTHONPATH")])])
    return env
