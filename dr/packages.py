"""Which packages the program uses, and which of them a Python lacks. In: an interpreter; out: Package rows."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from dr.words import say


@dataclass(frozen=True)
class Package:
    """module: what is imported; name: what pip installs; why: key of dr/words.py; needed: nothing works without it."""

    module: str
    name: str
    why: str
    needed: bool = False


PACKAGES = (
    Package("psutil", "psutil", "package_psutil", needed=True),
    Package("filelock", "filelock", "package_filelock", needed=True),
    Package("pypdf", "pypdf", "package_pypdf"),
    Package("requests", "requests", "package_requests"),
    Package("trafilatura", "trafilatura", "package_trafilatura"),
    Package("lxml_html_clean", "lxml_html_clean", "package_lxml_html_clean"),
    Package("json_repair", "json-repair", "package_json_repair"),
    Package("yaml", "PyYAML", "package_yaml"),
)

# What a fresh interpreter of another environment is asked; nothing is imported there.
_PROBE = (
    "import importlib.util, json, sys; print(json.dumps([importlib.util.find_spec(m) is None for m in sys.argv[1:]]))"
)
_PROBE_S = 60.0


def missing(python: str = sys.executable) -> list[Package] | None:
    """Those that `python` lacks; None when it cannot be asked."""
    if Path(python) == Path(sys.executable):
        return [p for p in PACKAGES if importlib.util.find_spec(p.module) is None]
    try:
        done = subprocess.run(
            [python, "-c", _PROBE, *(p.module for p in PACKAGES)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_PROBE_S,
            check=True,
        )
        lacks = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return [p for p, lacking in zip(PACKAGES, lacks, strict=True) if lacking]


def told(python: str, lacking: list[Package] | None, lang: str) -> list[str]:
    """Lines for a reader; the command is the caller's to add."""
    if lacking is None:
        return [say(lang, "packages_unknown", python=python)]
    if not lacking:
        return [say(lang, "packages_none", python=python)]
    lines = []
    for key, chosen in (
        ("packages_needed", [p for p in lacking if p.needed]),
        ("packages_optional", [p for p in lacking if not p.needed]),
    ):
        names = ", ".join(f"{p.name} ({say(lang, p.why)})" for p in chosen)
        lines += [say(lang, key, python=python, names=names)] if names else []
    return lines


def command(python: str, packages: list[Package]) -> str:
    """What installs them there."""
    return f"{_quoted(python)} -m pip install {' '.join(p.name for p in packages)}"


def of_root(root: Path) -> str:
    """The interpreter of a folder: of its own virtual environment where there is one, else the one that runs us."""
    inside = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    for name in (".venv", "venv"):
        python = root / name / inside[0] / inside[1]
        if python.exists():
            return str(python)
    return sys.executable


def _quoted(path: str) -> str:
    return f'"{path}"' if " " in path else path
