"""Finishes a round, [ROUND END] and all, in which the model only failed: error text where the answer should be."""

from standin import Node, node_of_command_line


def run(node: Node) -> None:
    node.write("Turn 1 ...\n\n!!!Error: HTTP 401 Unauthorized\n\n\n[ROUND END]\n")


if __name__ == "__main__":
    run(node_of_command_line())
