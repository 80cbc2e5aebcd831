"""How near the runner schedules to the lower bound, against other engines, shuffled in one run; medians.

    python bench/orchestration.py --runs 5 --engines runner,make,doit,luigi,snakemake,dask

Nodes are compiled programs that sleep (bench/sleep_node.c, built here with cc), so that what is measured is the engine.
Engines that are not installed are left out, by name. Wall is the whole process, from its start to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Task:
    name: str
    seconds: float
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shape:
    """cap: how many tasks may run at a time."""

    name: str
    tasks: list[Task]
    cap: int

    def lower_bound(self) -> float:
        """The longer of the critical path and the work divided by the cap."""
        end: dict[str, float] = {}
        for task in self.tasks:
            end[task.name] = task.seconds + max((end[p] for p in task.parents), default=0.0)
        return max(max(end.values()), sum(t.seconds for t in self.tasks) / self.cap)


def shapes() -> list[Shape]:
    rng = random.Random(7)
    layers = [[f"L{i}x{j}" for j in range(20)] for i in range(5)]
    layered = [
        Task(n, round(rng.uniform(0.2, 2.0), 2), tuple(rng.sample(layers[i - 1], rng.randint(1, 3))) if i else ())
        for i, layer in enumerate(layers)
        for n in layer
    ]
    wide = [Task(f"W{i}", 5.0) for i in range(50)]
    chain = [Task(f"C{i}", 0.2, (f"C{i - 1}",) if i else ()) for i in range(20)]
    diamonds: list[Task] = []
    for i in range(10):
        top = (f"D{i - 1}z",) if i else ()
        diamonds += [Task(f"D{i}a", 0.2, top), Task(f"D{i}b", 0.2, (f"D{i}a",)), Task(f"D{i}c", 0.2, (f"D{i}a",))]
        diamonds.append(Task(f"D{i}z", 0.2, (f"D{i}b", f"D{i}c")))
    five = [Task(f"S{i}", 0.2, (f"S{i - 1}",) if i else ()) for i in range(5)]
    return [
        Shape("layered", layered, 32),
        Shape("wide", wide, 64),
        Shape("chain", chain, 8),
        Shape("diamonds", diamonds, 8),
        Shape("five", five, 8),
    ]


@dataclass(frozen=True)
class Measured:
    """wall and cpu in seconds, cpu without the nodes' own; hand: seconds from a parent's end to its child's start."""

    wall: float
    cpu: float
    hand: list[float]


def timed(argv: list[str], folder: Path, outputs: Callable[[str], Path], shape: Shape) -> Measured:
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    before = os.times()
    began = time.perf_counter()
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True)
    wall = time.perf_counter() - began
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{argv}: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    stamps = {}
    for task in shape.tasks:
        text = outputs(task.name).read_text(encoding="utf-8")
        stamps[task.name] = [float(x) for x in re.findall(r"(?:start|end)=([\d.]+)", text)]
    hand = [stamps[t.name][0] - max(stamps[p][1] for p in t.parents) for t in shape.tasks if t.parents]
    return Measured(wall, cpu, hand)


# -- engines -----------------------------------------------------------------------------------------------------------


def runner(shape: Shape, folder: Path, node: Path) -> Measured:
    lines = [f"# DR: {shape.name}", f"ROOT: {shape.name}", "", "## Nodes"]
    lines += [
        f"- [{task.name}] CODE | question: sleep {task.seconds} | depends: {','.join(task.parents) or '-'}"
        for task in shape.tasks
    ]
    (folder / "plan.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    argv = [sys.executable, str(PROJECT / "dr_runner.py"), "run", "--dag", "plan.md", "--task", "t", "--quiet"]
    argv += ["--root", str(folder), "--agent", str(node), "--max-rounds", "1", "--max-parallel", str(shape.cap)]
    argv += ["--mind", "offline"]
    return timed(argv, folder, lambda n: folder / "temp" / "dr_t" / n / "output.txt", shape)


def make(shape: Shape, folder: Path, node: Path) -> Measured:
    text = "all: " + " ".join(t.name for t in shape.tasks) + "\n"
    for task in shape.tasks:
        text += f"{task.name}: {' '.join(task.parents)}\n\t@{node} {task.seconds} {task.name}\n"
    (folder / "Makefile").write_text(text, encoding="utf-8")
    return timed(["make", "-s", f"-j{shape.cap}"], folder, lambda n: folder / n, shape)


def doit(shape: Shape, folder: Path, node: Path) -> Measured:
    tasks = [[t.name, t.seconds, list(t.parents)] for t in shape.tasks]
    (folder / "dodo.py").write_text(
        f"TASKS = {tasks!r}\n"
        "def task_node():\n"
        "    for name, seconds, parents in TASKS:\n"
        "        yield {'name': name, 'actions': [" + f"['{node}', str(seconds), name]" + "],\n"
        "               'task_dep': ['node:' + p for p in parents]}\n",
        encoding="utf-8",
    )
    argv = [sys.executable, "-m", "doit", "-n", str(shape.cap), "-P", "thread", "--verbosity", "0"]
    return timed(argv, folder, lambda n: folder / n, shape)


def luigi(shape: Shape, folder: Path, node: Path) -> Measured:
    tasks = {t.name: [t.seconds, list(t.parents)] for t in shape.tasks}
    (folder / "flow.py").write_text(
        "import luigi, subprocess\n"
        f"TASKS = {tasks!r}\n"
        "class Node(luigi.Task):\n"
        "    name = luigi.Parameter()\n"
        "    def requires(self): return [Node(name=p) for p in TASKS[self.name][1]]\n"
        "    def output(self): return luigi.LocalTarget(self.name)\n"
        f"    def run(self): subprocess.run(['{node}', str(TASKS[self.name][0]), self.name], check=True)\n"
        f"luigi.build([Node(name=n) for n in TASKS], workers={shape.cap}, local_scheduler=True, log_level='ERROR')\n",
        encoding="utf-8",
    )
    return timed([sys.executable, "flow.py"], folder, lambda n: folder / n, shape)


def snakemake(shape: Shape, folder: Path, node: Path) -> Measured:
    rules = [f"rule all:\n    input: {', '.join(repr(t.name) for t in shape.tasks)}\n"]
    for task in shape.tasks:
        inputs = f"    input: {', '.join(repr(p) for p in task.parents)}\n" if task.parents else ""
        rules.append(
            f"rule {task.name}:\n{inputs}    output: {task.name!r}\n    shell: '{node} {task.seconds} {task.name}'\n"
        )
    (folder / "Snakefile").write_text("\n".join(rules), encoding="utf-8")
    argv = [sys.executable, "-m", "snakemake", "-q", "all", "-c", str(shape.cap)]
    return timed(argv, folder, lambda n: folder / n, shape)


def dask(shape: Shape, folder: Path, node: Path) -> Measured:
    tasks = [[t.name, t.seconds, list(t.parents)] for t in shape.tasks]
    (folder / "flow.py").write_text(
        "import subprocess, dask\n"
        "from dask import delayed\n"
        f"TASKS = {tasks!r}\n"
        "def run(name, seconds, parents):\n"
        f"    subprocess.run(['{node}', str(seconds), name], check=True)\n"
        "made = {}\n"
        "for name, seconds, parents in TASKS:\n"
        "    made[name] = delayed(run, pure=False)(name, seconds, [made[p] for p in parents])\n"
        f"dask.compute(*made.values(), scheduler='threads', num_workers={shape.cap})\n",
        encoding="utf-8",
    )
    return timed([sys.executable, "flow.py"], folder, lambda n: folder / n, shape)


def sop_loop(shape: Shape, folder: Path, node: Path) -> Measured:
    """The SOP's literal loop: batches of ready nodes, 2 s of standing still a node, 2 s between sweeps."""
    tasks = [[t.name, t.seconds, list(t.parents)] for t in shape.tasks]
    (folder / "loop.py").write_text(
        "import os, subprocess, time\n"
        f"TASKS = {tasks!r}\n"
        "done = set()\n"
        "while len(done) < len(TASKS):\n"
        "    ready = [t for t in TASKS if t[0] not in done and all(p in done for p in t[2])]\n"
        f"    procs = [subprocess.Popen(['{node}', str(t[1]), t[0]]) for t in ready]\n"
        "    pending = {t[0] for t in ready}\n"
        "    while pending:\n"
        "        for n in list(pending):\n"
        "            if os.path.exists(n):\n"
        "                size = os.path.getsize(n)\n"
        "                time.sleep(2)\n"
        "                if os.path.getsize(n) == size:\n"
        "                    pending.remove(n)\n"
        "        time.sleep(2)\n"
        "    done |= {t[0] for t in ready}\n",
        encoding="utf-8",
    )
    return timed([sys.executable, "loop.py"], folder, lambda n: folder / n, shape)


ENGINES = {f.__name__: f for f in (runner, make, doit, luigi, snakemake, dask, sop_loop)}


def available(name: str) -> bool:
    if name in ("runner", "sop_loop"):
        return True
    if name == "make":
        return shutil.which("make") is not None
    found = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True)
    return found.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--engines", default="runner,make,doit,luigi,snakemake,dask")
    parser.add_argument("--shapes", default="layered,wide,chain,diamonds")
    parser.add_argument("--json", type=Path, default=None, help="also write every figure here")
    options = parser.parse_args()
    engines = [e for e in options.engines.split(",") if available(e)]
    chosen = [s for s in shapes() if s.name in options.shapes.split(",")]
    missing = sorted(set(options.engines.split(",")) - set(engines))
    print(f"engines: {', '.join(engines)}" + (f"; not installed: {', '.join(missing)}" if missing else ""))
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        node = base / "sleep_node"
        subprocess.run(["cc", "-O2", "-o", str(node), str(PROJECT / "bench" / "sleep_node.c")], check=True)
        jobs = [(s, e, i) for s in chosen for e in engines for i in range(options.runs)]
        random.Random(0).shuffle(jobs)
        found: dict[tuple[str, str], list[Measured]] = {}
        for shape, engine, i in jobs:
            folder = base / f"{shape.name}-{engine}-{i}"
            folder.mkdir()
            found.setdefault((shape.name, engine), []).append(ENGINES[engine](shape, folder, node))
            shutil.rmtree(folder)
    rows = []
    print(
        f"\n{'shape':<9} {'engine':<10} {'wall/bound':>10} {'cpu ms/node':>12} {'hand-off ms: median':>20} {'p95':>7}"
    )
    for shape in chosen:
        for engine in engines:
            measured = found[shape.name, engine]
            ratio = statistics.median(m.wall for m in measured) / shape.lower_bound()
            cpu = statistics.median(m.cpu for m in measured) / len(shape.tasks) * 1000
            hand = sorted(h * 1000 for m in measured for h in m.hand) or [float("nan")]
            median, p95 = statistics.median(hand), hand[int(0.95 * (len(hand) - 1))]
            rows.append({"shape": shape.name, "engine": engine, "ratio": ratio, "cpu": cpu, "hand": median, "p95": p95})
            print(f"{shape.name:<9} {engine:<10} {ratio:>10.3f} {cpu:>12.2f} {median:>20.1f} {p95:>7.1f}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
