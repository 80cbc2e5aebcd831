"""A launcher that starts itself again, prints `PID: n` and exits with 0 at once, as GA's does; the second one answers
after a while (pause=S, STANDIN_SECONDS, 0.3 s) and ends with [ROUND END]. Its text does not show the flag that it
itself uses, so nobody can ask it to stay in the foreground."""

import subprocess
import sys
from pathlib import Path

from standin import Node, node_of_command_line, stay

FLAG = "-".join(["", "", "nobg"])


def run(node: Node) -> None:
    if FLAG not in node.argv:
        out = (node.folder / "stdout.log").open("w", encoding="utf-8")
        err = (node.folder / "stderr.log").open("w", encoding="utf-8")
        argv = [sys.executable, str(Path(sys.argv[0]).resolve()), *node.argv, FLAG]
        with out, err:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        print("PID:", child.pid)
        child.returncode = 0  # left on purpose
        return
    node.record()
    if "overwrite" in node.question:
        print("agent: this line stands where the launcher's PID line was", flush=True)
    stay(node.seconds(0.3))
    node.finish("\n\n[ROUND END]\n")


if __name__ == "__main__":
    run(node_of_command_line())
