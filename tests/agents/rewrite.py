"""Writes its output from scratch again and again, empty for a moment each time, at last with [ROUND END]."""

import time

from standin import Node, node_of_command_line


def run(node: Node) -> None:
    text = node.conclusion()
    for part in range(1, 9):
        with node.output.open("w", encoding="utf-8") as stream:
            stream.flush()
            time.sleep(0.01)
            stream.write(text[: len(text) * part // 8])
        time.sleep(0.01)
    node.finish("\n\n[ROUND END]\n")


if __name__ == "__main__":
    run(node_of_command_line())
