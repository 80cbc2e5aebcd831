"""Writes a little and then nothing for ten minutes; it would end with [ROUND END]."""

from standin import Node, node_of_command_line, stay


def run(node: Node) -> None:
    node.write("Turn 1 ...\n\nStill thinking\n")
    stay()


if __name__ == "__main__":
    run(node_of_command_line())
