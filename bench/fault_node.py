"""The subagent of bench/faults.py: does what its question says, and logs its start and end outside the run folder.

Question: `kind=K sleep=S`. Kinds: ok, linger (stays after its answer), crash, hang, garbage, flaky (fails once).
Log ($FAULT_LOG): `start|end|overlap NODE PID STARTTIME KIND`, one write a line; `end` is written when the whole answer
is, ending with [ROUND END]. `overlap`: an earlier process of the same node still lives.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

LOG = os.environ["FAULT_LOG"]
SOURCE = '\n\n来源：https://example.org/n — "The node says so."\n\n[ROUND END]\n'


def born(pid):
    """Start time of a process in clock ticks since boot, None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in b"ZX" else int(fields[19])


def log(*words):
    handle = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(handle, (" ".join(str(w) for w in words) + "\n").encode())
    os.close(handle)


def before(node):
    """Earlier starts of this node, as (pid, start time)."""
    lines = [line.split() for line in Path(LOG).read_text(encoding="utf-8").splitlines()] if Path(LOG).exists() else []
    return [(int(w[2]), int(w[3])) for w in lines if w[0] == "start" and w[1] == node]


def main():
    folder = Path("temp") / sys.argv[sys.argv.index("--task") + 1]
    node, me = folder.name, os.getpid()
    earlier = before(node)
    context = json.loads((folder / "context.json").read_text(encoding="utf-8"))
    words = dict(word.split("=", 1) for word in context["sub_question"].split() if "=" in word)
    kind = words.get("kind", "ok")
    log("start", node, me, born(me), kind)
    for pid, since in earlier:
        if born(pid) == since:
            log("overlap", node, me, born(me), kind)
    time.sleep(float(words.get("sleep", 0)))
    if kind == "crash" or (kind == "flaky" and not earlier):
        print("the node gives up", file=sys.stderr)
        return 3
    if kind == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(300)
    output = folder / "output.txt"
    if kind == "garbage":
        output.write_bytes(os.urandom(3000))
        return 0
    text = f"[结论] Node {node} answers with token-{node}. It builds on {len(context['parent_conclusions'])} others."
    with output.open("w", encoding="utf-8") as stream:  # in two parts, as agents write
        stream.write(text[:30])
        stream.flush()
        time.sleep(0.002)
        stream.write(text[30:] + SOURCE)
    log("end", node, me, born(me), kind)
    if kind == "linger":
        time.sleep(300)
    return 0


if __name__ == "__main__":
    sys.exit(main())
