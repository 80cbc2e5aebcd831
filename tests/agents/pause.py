"""Writes the format it was asked for, stands still as in a model call (pause=S, STANDIN_SECONDS, 3 s), then answers.

Standing still is not done: only [ROUND END] is.
"""

from standin import Node, node_of_command_line, stay


def run(node: Node) -> None:
    node.write("Turn 1 ...\n\nI will read the context and answer like this:\n[结论] {direct answer}\n")
    stay(node.seconds(3))
    node.finish("\n\n[ROUND END]\n")


if __name__ == "__main__":
    run(node_of_command_line())
