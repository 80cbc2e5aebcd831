"""Part of an answer, a traceback on stderr, exit code 3, no [ROUND END]."""

import sys
import traceback

from standin import Node, node_of_command_line


def run(node: Node) -> None:
    node.write("Turn 1 ...\n\n[结论] half of an ans")
    try:
        raise ValueError("the stand-in was asked to crash")
    except ValueError:
        traceback.print_exc()
    sys.exit(3)


if __name__ == "__main__":
    run(node_of_command_line())
