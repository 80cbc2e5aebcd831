"""The direction of imports, read from the source: ranks go one way, runner and subagent never meet, pure stays pure."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dr.layout import PACKAGE

# Lowest first. A module imports its own rank (without a cycle) and lower ones. CONTRIBUTING.md shows the same table.
SHARED = {
    "words": {"errors", "contract", "layout", "words"},
    "tools": {
        *("files", "sentences", "language", "markdown", "settings", "gaps", "titles", "pairs", "quoting", "questions"),
        *("retrieval", "alterations", "quantities", "citations", "chat", "chat_http", "chat_reply", "chat_faults"),
        *(
            "model",
            "prompts",
            "chat_json",
            "tokens",
            "backoff",
            "process",
            "waiter",
            "trees",
            "source_lines",
            "shortlist",
        ),
    },
}
RUNNER = {
    "text": {"transcript", "output", "conclusion", "conflicts"},
    "plan": {
        *("dag_line", "dag_rules", "dag_text", "dag", "plan", "machine", "plan_execute", "planning"),
        *("deepening", "planner"),
    },
    "folders": {
        *("node_folder", "folder_readme", "run_folder", "dag_file", "events", "collect", "agent_usage", "spent"),
    },
    "processes": {"subagent", "watch", "launch", "attempts", "browser_lock", "agent_call"},
    "report": {
        *("cited", "references", "findings", "answer", "report_parts", "report"),
        *("layers", "picture", "timeline", "history", "excerpt", "page_text", "page_head", "page_view", "page"),
    },
    "run": {
        *(
            "restore",
            "edits",
            "revising",
            "runner",
            "publish",
            "preparation",
            "session",
            "overview",
            "polling",
            "changing",
        ),
        *("stopping", "verification"),
        *("agent_planner", "thinker", "synthesis", "thinking", "packages", "install", "doctor", "follow"),
    },
    "face": {"terminal", "commands", "cli"},
}
RANKS = {**SHARED, **RUNNER}
PURE = {*RUNNER["text"], *RUNNER["plan"], "language", "sentences", "retrieval", "citations", "quantities", "words"}
EFFECTS = {"os", "subprocess", "shutil", "tempfile", "socket", "threading", "psutil", "requests", "time"}
CLOCK_OF_PURE = {"machine", "plan_execute"}  # time.time as the default of a parameter


def imports(path: Path, *, with_types: bool = False) -> set[str]:
    """Top-level names and, for our own modules, `dr.x` or `dr.agent`; those for type checkers alone left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not with_types
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {_ours(a.name) for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "dr":
                found |= {f"dr.{a.name}" for a in node.names if a.name != "__version__"}
            else:
                found.add(_ours(node.module))
    return found


def _ours(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "dr" else parts[0]


MODULES = {p.stem: p for p in PACKAGE.glob("*.py") if p.stem != "__init__"}
ORDER = list(RANKS)
RANK_OF = {module: ORDER.index(rank) for rank, modules in RANKS.items() for module in modules}


def own(name: str) -> set[str]:
    return {i.removeprefix("dr.") for i in imports(MODULES[name]) if i.startswith("dr.")}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_imports_its_own_rank_and_lower_ones(name: str) -> None:
    assert name in RANK_OF, f"give dr/{name}.py a rank here and in CONTRIBUTING.md"
    upward = {i for i in own(name) if RANK_OF.get(i, 99) > RANK_OF[name]}
    assert not upward, f"dr/{name}.py ({ORDER[RANK_OF[name]]}) imports upward: {sorted(upward)}"


def test_there_is_no_cycle() -> None:
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path, name))
        if name not in done:
            for other in own(name) & MODULES.keys():
                visit(other, (*path, name))
            done.add(name)

    for name in MODULES:
        visit(name, ())


@pytest.mark.parametrize("path", sorted((PACKAGE / "agent").rglob("*.py")), ids=lambda p: p.stem)
def test_the_subagent_imports_shared_ranks_only(path: Path) -> None:
    shared = {f"dr.{m}" for modules in SHARED.values() for m in modules} | {"dr.agent"}
    strange = {i for i in imports(path, with_types=True) if i.startswith("dr.")} - shared
    assert not strange


@pytest.mark.parametrize("name", sorted(MODULES))
def test_the_runner_never_imports_the_subagent(name: str) -> None:
    assert "dr.agent" not in imports(MODULES[name], with_types=True)
    assert "agentmain" not in imports(MODULES[name], with_types=True)


@pytest.mark.parametrize("name", sorted(PURE & MODULES.keys()))
def test_pure_modules_touch_no_disk_clock_or_process(name: str) -> None:
    found = imports(MODULES[name]) & (EFFECTS | {"pathlib"})
    assert found <= ({"time"} if name in CLOCK_OF_PURE else set())


def test_one_module_uses_psutil() -> None:
    users = {p.name for p in PACKAGE.rglob("*.py") if "psutil" in imports(p)}
    assert users == {"process.py"}
