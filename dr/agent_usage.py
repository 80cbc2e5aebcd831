"""What GA's log lines say of tokens -> usage.json of a node. An agent that writes no such lines leaves no usage."""

from __future__ import annotations

import re
from pathlib import Path

from dr import files, node_folder
from dr.layout import NodeFolder
from dr.node_folder import ProcessRecord

# `[Cache] input=120 cached=80`, of Anthropic's API `[Cache] input=120 creation=10 read=80`, and `[Output] tokens=30`.
_INPUT = re.compile(r"(?m)^\[Cache\] input=(\d+)(?: cached=\d+)?(?: creation=(\d+) read=(\d+))?")
_OUTPUT = re.compile(r"(?m)^\[Output\] tokens=(\d+)")


def of_log(log: Path) -> dict[str, int]:
    """{} when nothing is said."""
    try:
        text = files.read_text(log)
    except OSError:
        return {}
    asked = [sum(int(n) for n in m.groups() if n) for m in _INPUT.finditer(text)]
    said = [int(m[1]) for m in _OUTPUT.finditer(text)]
    if not asked and not said:
        return {}
    return {
        **{"calls": len(asked), "prompt_tokens": sum(asked), "completion_tokens": sum(said)},
        "total_tokens": sum(asked) + sum(said),
    }


def note(folder: NodeFolder, record: ProcessRecord) -> None:
    """usage.json of the newest attempt, unless the agent wrote one itself. Attempts of the same process, begun by a
    reply, share one log: what came before is theirs."""
    if folder.usage.exists():
        return
    usage = of_log(folder.stdout)
    if not usage:
        return
    for number in range(record.attempt - record.round, record.attempt):
        earlier = node_folder.usage(NodeFolder(folder.attempt(number)).usage)
        usage = {key: max(0, value - earlier.get(key, 0)) for key, value in usage.items()}
    files.write_json(folder.usage, usage)
