"""README.md of a run folder: how far the run came, then what each file is."""

from __future__ import annotations

from pathlib import Path

from dr import files
from dr.layout import NodeFolder, RunFolder
from dr.words import has, say


def say_state(folder: RunFolder, language: str, status: str, reason: str = "", *, partial: bool = False) -> None:
    """README.md of the run folder: how far the run came, then what each file is."""
    words = say(language, f"run_{status}") if has(f"run_{status}") else status
    if partial and status == "completed":
        words = say(language, "run_partial")
    why = say(language, f"reason_{reason}") if reason and has(f"reason_{reason}") else reason
    title, rest = readme(language).split("\n", 1)
    files.write_text(folder.readme, f"{title}\n\n**{words}**" + (f" ({why})" if why else "") + f"\n{rest}")


def readme(lang: str) -> str:
    """README.md of a run folder: what each file is."""
    run, node = RunFolder(Path("run")), NodeFolder(Path("run/N1"))
    of_run = [
        ("report", run.report),
        ("report_html", run.report_html),
        ("result", run.result),
        ("conflicts", run.conflicts),
        ("dag", run.dag),
        ("run", run.run),
        ("events", run.events),
        ("index", run.index_html),
        ("sources", run.sources),
    ]
    of_node = [
        ("conclusion", [node.conclusion]),
        ("evidence", [node.evidence]),
        ("context", [node.context]),
        ("input", [node.input]),
        ("output", [node.output, node.answer]),
        ("logs", [node.stdout, node.stderr]),
        ("process", [node.process]),
        ("memory", [node.solve_memory, node.final_answer, node.usage, node.artifacts]),
    ]
    lines = [f"`{path.name}`: {say(lang, f'readme_{key}')}" for key, path in of_run]
    for key, paths in of_node:
        names = ", ".join(f"`<node>/{path.name}`" for path in paths)
        lines.append(f"{names}: {say(lang, f'readme_{key}')}")
    lines.append(f"`<node>/attempt<k>/`: {say(lang, 'readme_attempts')}")
    items = "\n".join(f"- {line}" for line in lines)
    return f"# {say(lang, 'readme_title')}\n\n{say(lang, 'readme_intro')}\n\n{items}\n"
