"""Knows [ROUND END] but exits with 0 before writing it: the answer looks whole and is not."""

from standin import Node, node_of_command_line


def run(node: Node) -> None:
    node.finish("")


if __name__ == "__main__":
    run(node_of_command_line())
