"""A stand-in for GenericAgent's agentmain.py, GenericAgentHandler: --task with [ROUND END], a wait for reply.txt,
and log lines of tokens; --func FILE [--nobg] [--no-user-tools] [--verbose] [--llm_no N] for whoever plans.

What it says is in script.json beside it: sub-question or piece of a prompt -> list of texts, one a round, the last one
again and again; a number is a pause before the next text. Which it asked for is in asked.jsonl.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
SCRIPT = json.loads((ROOT / "script.json").read_text(encoding="utf-8"))
END = "\n\n[ROUND END]\n"


def said(key: str, number: int) -> str:
    texts = SCRIPT[key]
    pauses = [t for t in texts if isinstance(t, (int, float))]
    texts = [t for t in texts if isinstance(t, str)]
    time.sleep(pauses[0] if pauses else 0)
    return texts[min(number, len(texts) - 1)]


def note(**facts: object) -> int:
    """How often the same was asked before."""
    path = ROOT / "asked.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    before = sum(json.loads(line)["key"] == facts["key"] for line in lines)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({**facts, "time": time.time()}, ensure_ascii=False) + "\n")
    return before


def func(path: Path) -> None:
    prompt = path.read_text(encoding="utf-8")
    key = next(k for k in SCRIPT if k in prompt)
    text = said(key, note(key=key, prompt=prompt))
    path.with_suffix(".out.txt").write_text(f"\n**LLM Running (Turn 1) ...**\n\n{text}{END}", encoding="utf-8")


def task(name: str) -> None:
    folder = ROOT / "temp" / name
    question = json.loads((folder / "context.json").read_text(encoding="utf-8"))["sub_question"]
    prompt, number = (folder / "input.txt").read_text(encoding="utf-8"), 0
    while True:
        text = said(question, note(key=question, prompt=prompt))
        print("[Cache] input=100 cached=0\n[Output] tokens=10", flush=True)
        output = folder / f"output{number or ''}.txt"
        output.write_text(f"\nTurn 1 ...\n\n{text}{END}", encoding="utf-8")
        reply = folder / "reply.txt"
        for _ in range(6000):
            time.sleep(0.02)
            if reply.exists() and (prompt := reply.read_text(encoding="utf-8")):
                reply.unlink()
                break
        else:
            return
        number += 1


if __name__ == "__main__":
    if "--func" in sys.argv:
        func(Path(sys.argv[sys.argv.index("--func") + 1]))
    else:
        task(sys.argv[sys.argv.index("--task") + 1])
