"""How well the offline pipeline finds the evidence of multi-hop questions: all gold paragraphs cited, how many in all.

A data file is JSON, as made from HotpotQA: [{question, answer, type, paragraphs: [{title, text}], gold_titles}, ..].
Each question's paragraphs are laid out as files; the run is simulated in this process, or made with the real command.

    python bench/multihop.py DATA.json                        every layout, simulated, seconds
    python bench/multihop.py DATA.json --layout numbered      one layout
    python bench/multihop.py DATA.json --real --limit 20      the real dr_runner.py, one process tree per question
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dr.contract import Passage  # noqa: E402
from dr.dag import Dag  # noqa: E402
from dr.planner import OfflinePlanner, first_plan  # noqa: E402
from dr.planning import node_of  # noqa: E402
from dr.retrieval import Selection, answer_sentences, rank, select  # noqa: E402

LAYOUTS = ("titles", "numbered", "markdown", "headless")
MAX_ROUNDS = 4


@dataclass
class Outcome:
    """One question. cited: file names. quoted: the quoted sentences. answer: those of the answer section."""

    question: dict[str, Any]
    gold: set[str]
    cited: set[str] = field(default_factory=set)
    quoted: list[str] = field(default_factory=list)
    answer: str = ""
    nodes: int = 0
    status: str = ""

    @property
    def all_gold(self) -> bool:
        return self.gold <= self.cited

    @property
    def checkable(self) -> bool:
        """Whether the answer is a string of the text at all; yes and no are not."""
        return _plain(self.question["answer"]) not in ("yes", "no")

    def holds_answer(self, text: str) -> bool:
        return f" {_plain(self.question['answer'])} " in f" {_plain(text)} "


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", unescape(text)).casefold()))


# -- layouts ----------------------------------------------------------------------------------------------------------


def lay_out(question: dict[str, Any], layout: str, folder: Path) -> dict[str, str]:
    """Write the paragraphs of one question. Returns file name -> title."""
    names: dict[str, str] = {}
    for number, paragraph in enumerate(question["paragraphs"], 1):
        title, text = unescape(paragraph["title"]), paragraph["text"]
        if layout == "titles":
            name = f"{re.sub(r'[/:*?<>|]', '_', title)[:120]}.txt"
        else:
            name = f"p{number:02}.{'md' if layout == 'markdown' else 'txt'}"
        head = {"titles": "", "numbered": f"{title}\n", "markdown": f"# {title}\n\n", "headless": f"{title} "}[layout]
        (folder / name).write_text(head + text + "\n", encoding="utf-8")
        names[name] = paragraph["title"]
    return names


# -- the simulated run ------------------------------------------------------------------------------------------------


def simulate(question: dict[str, Any], layout: str, folder: Path, rounds: int) -> Outcome:
    """Plan, select, deepen as a run does; only the processes and files in between are left out."""
    from dr.agent.documents import read_corpus

    titles = lay_out(question, layout, folder)
    outcome = Outcome(question, {n for n, t in titles.items() if t in set(question["gold_titles"])})
    passages = read_corpus([folder], "local").passages
    root = question["question"]
    plan = first_plan(root, [str(folder)], False)
    dag = Dag.new(root, root, [node_of(step) for step in plan.steps], "en")
    planner, findings, original = OfflinePlanner(), dict[str, str](), len(plan.steps)
    for number in range(1, rounds + 1):
        for node in dag.work_nodes:
            if node.id in findings:
                continue
            known = {p: findings[p][:200] for p in node.depends_on if findings.get(p)}
            selection = select(node.sub_question, passages, root_question=root, parent_conclusions=known)
            outcome.cited |= {Path(q.passage.place).name for q in selection.quotes}
            outcome.quoted += [s for q in selection.quotes for s in q.sentences]
            findings[node.id] = _conclusion(selection)
        room = 2 * original - (len(dag.work_nodes) - original)
        if number == rounds or room <= 0:
            break
        deepening = planner.deepen(root, dag, {i: t for i, t in findings.items() if t}, number + 1, room)
        if not deepening.steps:
            break
        dag = dag.with_nodes([node_of(step) for step in deepening.steps[:room]])
    outcome.nodes = len(dag.work_nodes)
    outcome.answer = "\n".join(answer_sentences(root, outcome.quoted))
    outcome.status = "completed" if all(findings.values()) else "partial"
    return outcome


def _conclusion(selection: Selection) -> str:
    """As our own subagent writes it, without the remarks; empty for a node that fails."""
    if not selection.quotes:
        return ""
    body, lines = [], []
    for number, quote in enumerate(selection.quotes, 1):
        quoted = [" ".join(s.split()) for s in quote.sentences]
        body.append(" ".join(f"{s} [local-{number}]" for s in quoted))
        lines.append(f'来源：{quote.passage.place}, L1 — "{quoted[0]}" [local-{number}]')
    if selection.leads:
        lines.insert(0, f"Leads: {'; '.join(selection.leads)}")
    return "[结论] " + "\n\n".join(body) + "\n\n" + "\n".join(lines)


def single_query(question: dict[str, Any], layout: str, folder: Path, k: int) -> Outcome:
    """The base line: one BM25 query, the first `k` hits."""
    passages = [
        Passage("", "local", f"{n:03}", "", p["title"], {}, p["text"]) for n, p in enumerate(question["paragraphs"])
    ]
    gold = {p.place for p in passages if p.title in set(question["gold_titles"])}
    hits = rank(question["question"], passages, k)
    return Outcome(question, gold, {h.passage.place for h in hits}, [h.passage.text for h in hits])


# -- the real run -----------------------------------------------------------------------------------------------------


def run_command(question: dict[str, Any], layout: str, folder: Path, rounds: int) -> Outcome:
    """The real dr_runner.py on a root of its own; what it cited is read from result.json."""
    titles = lay_out(question, layout, folder)
    outcome = Outcome(question, {n for n, t in titles.items() if t in set(question["gold_titles"])})
    with tempfile.TemporaryDirectory(prefix="multihop-root-") as root:
        command = [sys.executable, str(ROOT / "dr_runner.py"), "run", question["question"], "--source", str(folder)]
        command += ["--root", root, "--task", "bench", "--mind", "offline", "--agent", "own", "--quiet"]
        command += ["--max-rounds", str(rounds)]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)
        path = Path(root) / "temp" / "dr_bench" / "result.json"
        if not path.is_file():
            raise SystemExit(f"no result.json (exit {done.returncode}): {done.stderr or done.stdout}")
        result = json.loads(path.read_text(encoding="utf-8"))
    for reference in result["references"]:
        outcome.cited.add(Path(reference.get("path") or reference.get("url") or "").name)
    outcome.quoted = [node["conclusion"] or "" for node in result["nodes"]]
    outcome.answer = result["answer"] or ""
    outcome.nodes = len(result["nodes"])
    outcome.status = "completed" if done.returncode == 0 else f"exit {done.returncode}"
    return outcome


# -- the table --------------------------------------------------------------------------------------------------------


def measure(questions: list[dict[str, Any]], layout: str, run: Callable[..., Outcome], last: int) -> Iterator[Outcome]:
    for question in questions:
        folder = Path(tempfile.mkdtemp(prefix="multihop-"))
        try:
            yield run(question, layout, folder, last)
        finally:
            shutil.rmtree(folder)


def row(name: str, outcomes: list[Outcome], seconds: float) -> str:
    count = len(outcomes)
    checkable = [o for o in outcomes if o.checkable] or outcomes
    cells = [
        f"{100 * sum(o.all_gold for o in outcomes) / count:5.1f}",
        f"{sum(len(o.cited) for o in outcomes) / count:5.2f}",
        f"{max(len(o.cited) for o in outcomes):3d}",
        f"{100 * sum(o.holds_answer(' '.join(o.quoted)) for o in checkable) / len(checkable):5.1f}",
        f"{100 * sum(o.holds_answer(o.answer) for o in checkable) / len(checkable):5.1f}",
        f"{sum(o.nodes for o in outcomes) / count:4.2f}",
        f"{sum(o.status == 'completed' for o in outcomes) / count:5.2f}",
        f"{1000 * seconds / count:7.1f}",
    ]
    return f"{name:28} {' '.join(cell.rjust(8) for cell in cells)}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="JSON file of questions with their paragraphs")
    parser.add_argument("--layout", choices=LAYOUTS, help="how the paragraphs are laid out as files (all)")
    parser.add_argument("--real", action="store_true", help="start the real command for every question")
    parser.add_argument("--limit", type=int, help="only the first N questions")
    parser.add_argument("--type", help="only questions of this type: bridge, comparison")
    parser.add_argument("--misses", action="store_true", help="list the questions whose evidence was not found")
    options = parser.parse_args(argv)
    questions = json.loads(options.data.read_text(encoding="utf-8"))
    questions = [q for q in questions if options.type in (None, q["type"])][: options.limit]
    columns = ("gold %", "cited", "most", "quoted %", "answer %", "nodes", "complete", "ms")
    print(f"{len(questions)} questions of {options.data.name}")
    print(f"{'':28} {' '.join(c.rjust(8) for c in columns)}")
    if not options.real:
        for k in (2, 4):
            start = time.perf_counter()
            outcomes = list(measure(questions, "", single_query, k))
            print(row(f"one query, first {k}", outcomes, time.perf_counter() - start))
    run = run_command if options.real else simulate
    for layout in [options.layout] if options.layout else LAYOUTS:
        for rounds, name in ((1, "no deepening"), (MAX_ROUNDS, "whole run")):
            start = time.perf_counter()
            outcomes = list(measure(questions, layout, run, rounds))
            print(row(f"{layout}, {name}", outcomes, time.perf_counter() - start), flush=True)
    if options.misses:
        for outcome in (o for o in outcomes if not o.all_gold):
            print(f"- {outcome.question['question']}\n    gold: {outcome.question['gold_titles']}")
            print(f"    cited: {sorted(outcome.cited)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
