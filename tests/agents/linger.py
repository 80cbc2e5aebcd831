"""Finishes with [ROUND END] and lives on with a grandchild, waiting for reply.txt as GA does; a reply
gives output1.txt, the next output2.txt."""

import time

from standin import LONGEST_S, SLEEPER, Node, node_of_command_line


def run(node: Node) -> None:
    node.record(node.spawn(SLEEPER).pid)
    node.finish("\n\n[ROUND END]\n")
    replies, reply = 0, node.folder / "reply.txt"
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        time.sleep(0.05)
        if reply.exists():
            text = reply.read_text(encoding="utf-8").strip()
            reply.unlink()
            if text:
                replies += 1
                node.finish(f"\nThe reply was: {text}\n\n[ROUND END]\n", f"output{replies}.txt")


if __name__ == "__main__":
    run(node_of_command_line())
