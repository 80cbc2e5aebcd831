"""Bytes that are no text in output.txt, stdout and stderr, then [ROUND END]: finished, and no answer. Exits with 0."""

import os

from standin import Node, node_of_command_line

GARBAGE = bytes(range(256)) * 8 + b"\x1b[31m\x00\xff\xfe\xed\xa0\x80\n"


def run(node: Node) -> None:
    os.write(1, GARBAGE)
    os.write(2, GARBAGE)
    node.output.write_bytes(GARBAGE + b"\n\n[ROUND END]\n")


if __name__ == "__main__":
    run(node_of_command_line())
