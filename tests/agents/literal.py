"""An agent that knows no marker for the end of a round: it writes its conclusion and keeps running."""

from standin import Node, node_of_command_line, stay


def run(node: Node) -> None:
    node.finish("")
    stay()


if __name__ == "__main__":
    run(node_of_command_line())
