"""The behaviour named by the first word of the sub-question that names one (ok when none does). Ends rounds with
[ROUND END]; `literal` and `detach` are not here, since they differ in what the agent's text shows."""

import importlib
import re

from standin import Node, node_of_command_line

BEHAVIOURS = (
    *("ok", "rewrite", "pause", "no_round_end", "linger", "hang", "crash", "garbage", "stubborn"),
    *("flaky", "model_error"),
)


def run(node: Node) -> None:
    named = re.search(rf"(?<!\w)(?:{'|'.join(BEHAVIOURS)})(?!\w)", node.question)
    importlib.import_module(named[0] if named else "ok").run(node)


if __name__ == "__main__":
    run(node_of_command_line())
