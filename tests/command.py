"""The real command in a real process, on a temporary root; used by the end-to-end tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
RUNNER = PROJECT / "dr_runner.py"


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        data = json.loads(self.out)
        assert isinstance(data, dict)
        return data


def environment() -> dict[str, str]:
    """Without settings of the person who runs the tests."""
    return {k: v for k, v in os.environ.items() if not k.startswith("DR_")}


def dr(root: Path, *arguments: str, cwd: Path | None = None, timeout: float = 100, **extra: str) -> Done:
    """`dr_runner.py ARGUMENTS --root ROOT`, to its end. extra: environment variables."""
    argv = [sys.executable, str(RUNNER), *arguments, "--root", str(root)]
    done = subprocess.run(
        argv,
        cwd=cwd or root,
        env={**environment(), **extra},
        capture_output=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
    return Done(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def start(root: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The same, not waited for."""
    argv = [sys.executable, str(RUNNER), *arguments, "--root", str(root)]
    return subprocess.Popen(
        argv,
        cwd=root,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def plan(path: Path, lines: Sequence[str], question: str = "What is going on?") -> Path:
    """A dag.md from lines like "A | ok | -" (id, question, dependencies)."""
    text = [f"# DR: {question}", f"ROOT: {question}", "", "## Nodes"]
    for line in lines:
        name, asked, parents = (part.strip() for part in line.split("|"))
        text.append(f"- [{name}] CODE | question: {asked} | depends: {parents}")
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def result(root: Path, task: str) -> dict[str, Any]:
    data = json.loads((root / "temp" / f"dr_{task}" / "result.json").read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data


def events(root: Path, task: str) -> list[dict[str, Any]]:
    text = (root / "temp" / f"dr_{task}" / "events.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
