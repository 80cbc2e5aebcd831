"""Kill, choke and confuse the runner at random moments, then let it go on: what is lost, run twice or left running?

    python bench/faults.py --runs 100 --seed 1
    python bench/faults.py --only kill --from 17 --runs 1 --keep     one run again, its folder kept

Judged by a log that the nodes write outside the run folder, by the final dag.md and result.json, and by the process
table; nothing of the runner's own records is believed. The same seed gives the same plans and the same faults; only
their moments depend on the machine. Prints a table and writes --json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from fault_lab import BENCH, COUNTS, FaultLab, Verdict

NODE = str(BENCH / "fault_node.py")
FLAGS = ("--agent", NODE, "--max-rounds", "1", "--mind", "offline", "--quiet")
WHOLE, PARTIAL, FAILED, USAGE, INTERRUPTED = 0, 3, 1, 2, 130


def expected(lab: FaultLab) -> dict[str, str]:
    """How each node has to end, from what the nodes themselves say."""
    answered = lab.answered()
    for node in lab.nodes:  # one that was killed between its last write and its log line has answered all the same
        with suppress(OSError):
            if (lab.run / node / "output.txt").read_bytes().endswith(b"[ROUND END]\n"):
                answered.add(node)
    states: dict[str, str] = {}
    for node, parents in lab.parents.items():
        alone = bool(parents) and all(states[p] != "done" for p in parents)
        states[node] = "done" if node in answered else "skipped" if alone else "failed"
    return states


def kill_somewhere(lab: FaultLab, *arguments: str, seconds: float) -> None:
    """The command, killed at a random moment, or before a random change of a file or start of a process."""
    rng = lab.rng
    if rng.random() < 0.5:
        runner = lab.start(*arguments, KILL=str(rng.randint(1, 30 + 14 * len(lab.nodes))))
        lab.finish(runner, arguments[0])
    else:
        runner = lab.start(*arguments)
        with suppress(subprocess.TimeoutExpired):
            runner.wait(rng.uniform(0, seconds))
        runner.kill()
        runner.wait()
    lab.verdict.counts["kills"] += runner.returncode == -signal.SIGKILL
    if rng.random() < 0.2:
        tear_event_line(lab)
    if rng.random() < 0.4:
        time.sleep(rng.uniform(0, 0.3))  # meanwhile the nodes go on


def tear_event_line(lab: FaultLab) -> None:
    path = lab.run / "events.jsonl"
    if path.exists() and (size := path.stat().st_size) > 10:
        os.truncate(path, size - lab.rng.randint(1, 9))


def go_on(lab: FaultLab, plan: Path, wanted: set[int], *, kills: int = 2) -> None:
    """Resume, killed again now and then, until it ends; a run that never came to be is run anew."""
    for left in range(kills + 2, 0, -1):
        again = ("resume", "t") if (lab.run / "run.json").exists() else anew(lab, plan)
        if left > 2 and lab.rng.random() < 0.4:
            kill_somewhere(lab, *again, seconds=1.2)
            continue
        code = lab.command(*again)
        if code not in wanted:
            lab.verdict.fault("lost", f"{again[0]} ended with {code}, not {wanted}")
        if code is None or (lab.run / "run.json").exists():
            return


def anew(lab: FaultLab, plan: Path) -> tuple[str, ...]:
    lab.verdict.fault("orphans", "nodes were started for a run without run.json", len(lab.entries()))
    return ("run", "--dag", str(plan), "--task", "t", "--replace", *(lab.flags or FLAGS))


def once(lab: FaultLab) -> dict[str, int]:
    return dict.fromkeys(lab.nodes, 1)


# -- scenarios ---------------------------------------------------------------------------------------------------------


def kill(lab: FaultLab) -> None:
    """The runner killed, then resumed, sometimes killed again while resuming: every node exactly once."""
    plan = lab.plan([lab.rng.choice(["ok"] * 7 + ["linger"]) for _ in range(lab.rng.randint(4, 12))], 0.12)
    kill_somewhere(lab, "run", "--dag", str(plan), "--task", "t", *FLAGS, seconds=1.6)
    if lab.rng.random() < 0.15:
        lab.move()
    go_on(lab, plan, {WHOLE})
    lab.judge_orphans()
    lab.judge_starts(once(lab))
    lab.judge_end(dict.fromkeys(lab.nodes, "done"))


def wide(lab: FaultLab) -> None:
    """Two hundred nodes, 64 at a time, killed twice."""
    plan = lab.plan(["ok"] * 200, 0.3)
    lab.flags = (*FLAGS, "--max-parallel", "64")
    for command in (("run", "--dag", str(plan), "--task", "t", *lab.flags), ("resume", "t")):
        runner = lab.start(*command)
        with suppress(subprocess.TimeoutExpired):
            runner.wait(lab.rng.uniform(1, 5))
        runner.kill()
        runner.wait()
        lab.verdict.counts["kills"] += 1
    go_on(lab, plan, {WHOLE}, kills=0)
    lab.judge_orphans()
    lab.judge_starts(once(lab))
    lab.judge_end(dict.fromkeys(lab.nodes, "done"))


def nodes(lab: FaultLab) -> None:
    """Nodes that crash, hang, write garbage, or are killed from outside; the runner is killed as well."""
    rng = lab.rng
    kinds = [rng.choice(["ok"] * 5 + ["crash", "hang", "garbage", "flaky", "linger"]) for _ in range(rng.randint(4, 9))]
    plan = lab.plan(["ok", *kinds], 0.12)
    flags = (*FLAGS, "--on-failure", rng.choice(["skip", "replan"]), "--node-timeout", "1.5")
    lab.flags = flags
    runner = lab.start("run", "--dag", str(plan), "--task", "t", *flags)
    deadline, killed = time.monotonic() + rng.uniform(0.2, 2.5), Counter[str]()
    while runner.poll() is None and time.monotonic() < deadline:
        time.sleep(rng.uniform(0.02, 0.2))
        starts = [(w[1], int(w[2])) for w in lab.entries() if w[0] == "start"]
        living = {p.pid for p in lab.living()}
        victims = [(node, pid) for node, pid in starts if pid in living and node not in lab.answered()]
        if victims and rng.random() < 0.3:
            node, pid = rng.choice(victims)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed[node] += 1
    if rng.random() < 0.6:
        runner.kill()
        lab.verdict.counts["kills"] += 1
    code = lab.finish(runner, "run")
    if code == -signal.SIGKILL:
        # The flags are those of the run, so resume needs none.
        go_on(lab, plan, {WHOLE, PARTIAL, FAILED}, kills=1)
    lab.verdict.counts["node kills"] += sum(killed.values())
    lab.judge_orphans()
    lab.judge_starts(dict.fromkeys(lab.nodes, 2))
    lab.judge_end(expected(lab))


def disk(lab: FaultLab) -> None:
    """The disk full for a while: the run ends with a message and no process, and goes on when there is room."""
    plan = lab.plan(["ok"] * lab.rng.randint(6, 12), 0.15)
    runner = lab.start("run", "--dag", str(plan), "--task", "t", *FLAGS)
    with suppress(subprocess.TimeoutExpired):
        runner.wait(lab.rng.uniform(0.3, 1.0))
    ballast = lab.root / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4096))
    code = lab.finish(runner, "run")
    if code not in (FAILED, PARTIAL, WHOLE):
        lab.verdict.fault("lost", f"on a full disk run ended with {code}")
    lab.judge_orphans()
    lab.verdict.counts["full"] += code == FAILED
    ballast.unlink()
    if code == FAILED:
        go_on(lab, plan, {WHOLE, PARTIAL, FAILED}, kills=0)
    # What a node could not write is a failure of that node; what was ended for want of space is run again.
    lab.judge_starts(dict.fromkeys(lab.nodes, 3))
    if (lab.run / "run.json").exists():
        lab.judge_end(expected(lab))


def clock(lab: FaultLab) -> None:
    """The system's clock jumps, during the run and between a kill and the resumption; limits are 30 s."""
    plan = lab.plan(["ok"] * lab.rng.randint(4, 10), 0.12)
    shifts = [-86400.0, -3600.0, -5.0, 3600.0, 86400.0]
    flags = (*FLAGS, "--node-timeout", "30")
    jump = f"{lab.rng.choice(shifts)},{lab.rng.uniform(0.2, 0.8):.2f}"
    runner = lab.start("run", "--dag", str(plan), "--task", "t", *flags, CLOCK=jump)
    with suppress(subprocess.TimeoutExpired):
        runner.wait(lab.rng.uniform(0.3, 1.5))
    runner.kill()
    runner.wait()
    lab.verdict.counts["kills"] += runner.returncode == -signal.SIGKILL
    again = ("resume", "t") if (lab.run / "run.json").exists() else anew(lab, plan)
    code = lab.command(*again, CLOCK=f"{lab.rng.choice(shifts)},0")
    if code != WHOLE:
        lab.verdict.fault("lost", f"{again[0]} ended with {code}")
    lab.judge_orphans()
    lab.judge_starts(once(lab))
    lab.judge_end(dict.fromkeys(lab.nodes, "done"))


def poll(lab: FaultLab) -> None:
    """start and poll from separate processes, killed at random; two resumes at once; ten polls at once."""
    rng = lab.rng
    plan = lab.plan([rng.choice(["ok"] * 7 + ["linger"]) for _ in range(rng.randint(4, 10))], 0.2)
    kill_somewhere(lab, "start", "t", "--dag", str(plan), *FLAGS, seconds=0.8)
    while not (lab.run / "run.json").exists():
        lab.verdict.fault("orphans", "nodes were started for a run without run.json", len(lab.entries()))
        lab.command("start", "t", "--dag", str(plan), "--replace", *FLAGS)
    for turn in range(60):
        if set(lab.states().values()) <= {"done", "failed", "skipped"}:
            break
        choice = rng.random()
        if choice < 0.4 and turn < 8:
            kill_somewhere(lab, "poll", "t", "--wait", "1", seconds=0.6)
        elif choice < 0.5 and turn < 8:
            many = [lab.start("poll", "t", "--wait", "0.3") for _ in range(10)]
            check(lab, many, {WHOLE}, "poll")
        else:
            check(lab, [lab.start("poll", "t", "--wait", "2")], {WHOLE}, "poll")
    if rng.random() < 0.3:
        check(lab, [lab.start("resume", "t"), lab.start("resume", "t")], {WHOLE, USAGE}, "resume")
    code = lab.command("synth", "t")
    if code != WHOLE:
        lab.verdict.fault("lost", f"synth ended with {code}")
    lab.judge_orphans()
    lab.judge_starts(once(lab))
    lab.judge_end(dict.fromkeys(lab.nodes, "done"))


def check(lab: FaultLab, commands: list[subprocess.Popen[bytes]], wanted: set[int], what: str) -> None:
    codes = [lab.finish(c, what) for c in commands]
    if any(c not in wanted for c in codes) or WHOLE not in codes:
        lab.verdict.fault("lost", f"{what} ended with {codes}")


def stop(lab: FaultLab) -> None:
    """Ended softly: SIGTERM, SIGINT or `stop`, at a random moment. Nothing may run on, and it goes on later."""
    rng = lab.rng
    plan = lab.plan([rng.choice(["ok"] * 6 + ["linger"]) for _ in range(rng.randint(4, 10))], 0.3)
    runner = lab.start("run", "--dag", str(plan), "--task", "t", *FLAGS)
    with suppress(subprocess.TimeoutExpired):
        runner.wait(rng.uniform(0.1, 1.5))
    way = rng.choice(["stop", "term", "int"])
    if way == "stop" and (lab.run / "run.json").exists():
        check(lab, [lab.start("stop", "t")], {WHOLE}, "stop")
    elif runner.poll() is None:
        runner.send_signal(signal.SIGTERM if way == "term" else signal.SIGINT)
    lab.finish(runner, "run")
    lab.verdict.counts["kills"] += 1
    lab.judge_orphans()
    go_on(lab, plan, {WHOLE}, kills=0)
    lab.judge_orphans()
    # What ran when it was stopped runs a second time; what had answered does not.
    lab.judge_starts(dict.fromkeys(lab.nodes, 2))
    lab.judge_end(dict.fromkeys(lab.nodes, "done"))


SCENARIOS: dict[str, Callable[[FaultLab], None]] = {f.__name__: f for f in (kill, wide, nodes, disk, clock, poll, stop)}
_PART = {"kill": 1.0, "wide": 0.04, "nodes": 0.5, "disk": 0.2, "clock": 0.3, "poll": 0.4, "stop": 0.4}


# -- running them ------------------------------------------------------------------------------------------------------


def one(name: str, number: int, seed: int, keep: bool) -> Verdict:
    folder = Path(tempfile.mkdtemp(prefix=f"faults_{name}_{number}_"))
    mounted = folder / "full" if name == "disk" else None
    lab: FaultLab | None = None
    try:
        if mounted:
            mounted.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(mounted)], check=True)
        root = mounted / "root" if mounted else None
        lab = FaultLab(folder, random.Random(f"{seed}/{name}/{number}"), root)
        SCENARIOS[name](lab)
        return lab.verdict
    finally:
        for process in lab.living() if lab else []:
            process.kill()
        if keep:
            print(f"{name} {number}: {folder}")
            if lab:
                print("\n".join(lab.verdict.said))
        else:
            if mounted:
                subprocess.run(["umount", "-l", str(mounted)], check=False)
            shutil.rmtree(folder, ignore_errors=True)


def can_mount() -> bool:
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode:
            return False
        subprocess.run(["umount", folder], check=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="runs of `kill`; the others are a part of it (100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=SCENARIOS, help="this scenario alone, --runs times")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="N", help="number of the first run (0)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (2)")
    parser.add_argument("--keep", action="store_true", help="keep the folders, and say where they are")
    parser.add_argument("--json", type=Path, default=None, help="write the figures there")
    options = parser.parse_args()
    chosen = {n: max(1, round(options.runs * part)) for n, part in _PART.items()}
    if options.only:
        chosen = {options.only: options.runs}
    if "disk" in chosen and not can_mount():
        print("disk: skipped, a small tmpfs cannot be mounted here (needs Linux and root)")
        del chosen["disk"]
    table: dict[str, dict[str, float]] = {}
    for name, runs in chosen.items():
        began = time.monotonic()
        with ThreadPoolExecutor(options.jobs) as pool:
            numbers = range(options.first, options.first + runs)
            verdicts = list(pool.map(lambda n, name=name: one(name, n, options.seed, options.keep), numbers))
        total: Counter[str] = Counter({"runs": runs})
        for number, verdict in zip(numbers, verdicts, strict=True):
            total.update(verdict.counts)
            for line in verdict.said:
                print(f"  {name} {number}: {line}")
        table[name] = {**total, "seconds": round(time.monotonic() - began, 1)}
    columns = ("runs", "kills", "full", "starts", *COUNTS, "seconds")
    print("\n| scenario | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, row in table.items():
        print(f"| {name} | " + " | ".join(str(row.get(c, 0)) for c in columns) + " |")
    if options.json:
        options.json.write_text(json.dumps({"seed": options.seed, "scenarios": table}, indent=1) + "\n", "utf-8")
    return int(any(row.get(c) for row in table.values() for c in COUNTS))


if __name__ == "__main__":
    raise SystemExit(main())
