"""Crashes at the first attempt and answers, with [ROUND END], at the second."""

import crash
import ok
from standin import Node, node_of_command_line


def run(node: Node) -> None:
    (ok if (node.folder / "attempt1").is_dir() else crash).run(node)


if __name__ == "__main__":
    run(node_of_command_line())
