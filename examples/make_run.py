"""Make examples/run/: one finished run to browse, with the project's path written as <root>.

python examples/make_run.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
QUESTION = (
    "Why did the harbour heat plant of Port Ellery deliver less heat in 2024 than the feasibility study expected, "
    "and what did the town council decide?"
)
TASK = "port_ellery"
TEXT = {".md", ".json", ".jsonl", ".txt", ".log", ".html"}


def main() -> None:
    target = PROJECT / "examples" / "run" / f"dr_{TASK}"
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        argv = [sys.executable, str(PROJECT / "dr_runner.py"), QUESTION, "--source", "examples/documents"]
        done = subprocess.run([*argv, "--task", TASK, "--root", str(root)], cwd=PROJECT)
        if done.returncode not in (0, 3):
            raise SystemExit(done.returncode)
        shutil.rmtree(target.parent, ignore_errors=True)
        shutil.copytree(root / "temp" / f"dr_{TASK}", target, ignore=shutil.ignore_patterns("*.lock", "dag.seen.md"))
        for path in target.rglob("*"):
            if path.suffix in TEXT:
                text = path.read_text(encoding="utf-8")
                text = (
                    text.replace(str(root), "<root>").replace(str(PROJECT), "<root>").replace(sys.executable, "python")
                )
                text = re.sub(r'"boot": "[0-9a-f-]+"', '"boot": ""', text)
                path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
