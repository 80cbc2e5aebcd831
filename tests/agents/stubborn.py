"""Never ends by itself and ignores SIGTERM, as do its grandchildren: one in its group, one in a session of its own, one
whose parent is gone. Would end with [ROUND END]."""

import signal
import subprocess
import sys

from standin import STUBBORN_SLEEPER, Node, node_of_command_line, stay

PARENT_THAT_GOES = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdout=subprocess.PIPE); "
    "child.stdout.readline(); print(child.pid, flush=True); child.returncode = 0"
)


def run(node: Node) -> None:
    if sys.platform != "win32":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    children = [node.spawn(STUBBORN_SLEEPER), node.spawn(STUBBORN_SLEEPER, session=True)]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()  # deaf by now
    gone = subprocess.run(
        [sys.executable, "-c", PARENT_THAT_GOES, STUBBORN_SLEEPER], stdout=subprocess.PIPE, check=True, text=True
    )
    node.write("Turn 1 ...\n\nworking\n")
    node.record(*(child.pid for child in children), int(gone.stdout))
    stay()


if __name__ == "__main__":
    run(node_of_command_line())
