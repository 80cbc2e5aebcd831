"""The first moment of a script: python -I -S limited.py HOW PARENT LIMITS COMMAND… -> COMMAND in a process group of its
own, under resource limits. Run as a file, by dr/agent/sandbox.py; imports nothing of the project. POSIX only.

HOW: `exec` becomes the command; `fork` stays between it and us, so that its parent is not the subagent. PARENT: the pid
of the subagent, with which all ends; asked here it would be init's when the subagent is gone already.
LIMITS: `AS=2147483648,CPU=11`, names of resource.RLIMIT_*; the command's exit code is returned, 128+N for a signal N.
"""

from __future__ import annotations

import os
import signal
import sys


def main(argv: list[str]) -> int:
    if sys.platform == "win32":
        return 126
    how, parent, limits, command = argv[0], int(argv[1]), argv[2], argv[3:]
    os.setpgid(0, 0)  # not a session of its own: should the subagent be killed, its runner ends its whole session
    _end_with_parent(parent)
    if how == "fork":
        me = os.getpid()
        child = os.fork()
        if child:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            return code if code >= 0 else 128 - code
        _end_with_parent(me)
    try:
        _limit(limits)
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by this interpreter; the command expects the default
            signal.signal(ignored, signal.SIG_DFL)
        os.execv(command[0], command)
    except (OSError, ValueError) as error:
        os.write(2, f"{command[0]}: {error}\n".encode(errors="replace"))
        os._exit(126)


def _limit(limits: str) -> None:
    if sys.platform != "win32":
        import resource

        for name, _, value in (pair.partition("=") for pair in limits.split(",") if pair):
            kind = getattr(resource, f"RLIMIT_{name}")
            hard = resource.getrlimit(kind)[1]
            wanted = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
            resource.setrlimit(kind, (wanted, wanted))


def _end_with_parent(parent: int) -> None:
    """Linux: be killed when the parent is."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(126)  # it was gone already


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
