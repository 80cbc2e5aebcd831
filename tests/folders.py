"""Whole run folders for tests of pages: 5 nodes, 40 or more, in Chinese or English, in every state a run can end in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dr.layout import RunFolder
from tests.run_folders import MARKS, passage

START = 1_796_000_000.0
KINDS = ("completed", "partial", "exhausted", "failed", "interrupted", "running")

_WORDS: dict[str, dict[str, Any]] = {
    "en": {
        "question": "How much heat did the harbour plant of Port Ellery deliver in 2024, why was it shut for weeks, "
        "and what did the council decide in spring 2025?",
        "ask": [
            "How much heat did the plant deliver in 2024?",
            "Why was the sea-water intake closed, and for how long?",
            "What did the council decide on 18 March 2025 about drum screens?",
            "Which figure does the feasibility study of 2019 give for the yearly output, and on what does it rest?",
        ],
        "say": [
            "The plant delivered 58.6 GWh of heat in 2024.",
            "The sea-water intake was closed for 37 days in 2024 because moon jellyfish blocked the screens.",
            "The council decided to buy two drum screens for 2.3 million euros.",
            "The study of 2019 expected 64.0 GWh of heat in an average year.",
        ],
        "around": "The figures below were read from the meters at the end of the year. {} Losses in the network "
        "are not part of them. The heat pumps ran on sea water taken in at a depth of nine metres.\n\n"
        "In the years before, the weather had been mild. Detailed tables are in the annex; they were compiled "
        "by the operator and have not been audited. The next report is due in February.",
        "title": "Annual operating report 2024",
        "deep": "What do the sources say about the jellyfish monitoring at the intake?",
        "added": "Which other towns have had their intake blocked?",
        "synth": "Bring it together",
        "labels": ("## Nodes", "question: ", "depends: ", "none", "## Status"),
        "deepening": "### Deepening {}: several conclusions mention jellyfish",
        "revision": "### Revision 1: the site refused the request",
        "failed": "the page answered 403 and no snapshot is stored",
        "quantity": "Heat delivered in 2024",
    },
    "zh": {
        "question": "埃勒里港的海水热泵站2024年供了多少热，为什么停运数周，市议会在2025年春天作了什么决定？",
        "ask": [
            "热泵站2024年供热量是多少？",
            "海水取水口为什么关闭，关闭了多久？",
            "市议会2025年3月18日关于转鼓格栅作了什么决定？",
            "2019年的可行性研究给出的年供热量是多少，依据是什么，与后来的实际运行数据相差多少？",
        ],
        "say": [
            "热泵站2024年共供热58.6吉瓦时。",
            "由于海月水母堵塞格栅，海水取水口2024年关闭了37天。",
            "市议会决定以230万欧元购买两台转鼓格栅。",
            "2019年的研究预计平均年份供热64.0吉瓦时。",
        ],
        "around": "以下数据于年末从计量表读取。{}管网损失不包括在内。热泵使用取自九米深处的海水。\n\n"
        "此前数年天气温和，详细表格见附录；附录由运营方编制，未经审计。下一份报告将于二月发布。",
        "title": "2024年度运行报告",
        "deep": "关于取水口的水母监测，资料中有哪些内容？",
        "added": "还有哪些城市的取水口曾被堵塞？",
        "synth": "汇总",
        "labels": ("## 节点列表", "子问题：", "依赖：", "无", "## 节点状态"),
        "deepening": "### 深化 {}：多个结论都提到水母",
        "revision": "### 修订 1：网站拒绝了请求",
        "failed": "网页返回 403，没有保存快照",
        "quantity": "2024年供热量",
    },
}


@dataclass
class Story:
    """A run being written down: nodes in the order of the plan, then events."""

    lang: str
    kind: str
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    deepening: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    def add(self, i: str, question: str, depends: Sequence[str], state: str, at: float, **more: Any) -> None:
        self.nodes[i] = {"question": question, "depends": list(depends), "state": state, "at": at, **more}


def story(temp: Path, *, size: int = 5, lang: str = "en", kind: str = "completed") -> RunFolder:
    """temp/dr_t of `size` nodes (5 or more) and SYNTH, with two deepenings and, but for a whole run, a revision."""
    words, told = _WORDS[lang], Story(lang, kind)
    first = max(2, (size * 3) // 5)
    for n in range(1, first + 1):
        depends = [] if n <= max(2, size // 4) else [f"N{1 + (n * 7) % max(2, size // 4)}"]
        if n % 5 == 0 and n > 5:
            depends = [*depends, f"N{n - 2}"]
        told.add(
            f"N{n}", words["ask"][(n - 1) % 4], depends, "done", 3.0 * (len(depends) > 0) + n % 3, said=(n - 1) % 4
        )
    while len(told.nodes) < size:
        n = len(told.nodes)
        i = f"N{1 + n % first}_{'fish' if n % 2 else 'detail'}{n}"
        revised = kind in ("partial", "exhausted") and n == size - 1
        depends = [f"N{1 + n % first}"] + ([f"N{1 + (n * 3) % first}"] if n % 3 == 0 else [])
        told.add(i, words["added" if revised else "deep"], list(dict.fromkeys(depends)), "done", 9.0, said=n % 4)
        (told.added if revised else told.deepening).append(i)
    _states(told)
    _log(told)
    return _write(temp, told)


def _states(told: Story) -> None:
    """How the run ended, told node by node."""
    names = list(told.nodes)
    failing = {
        **{"completed": [], "partial": names[1::6], "exhausted": names[1::7], "failed": names},
        **{"interrupted": names[3::9], "running": names[3::9]},
    }[told.kind]
    for i in failing:
        told.nodes[i]["state"] = "failed"
    if told.kind == "failed":
        for i in names[1::2]:
            told.nodes[i]["state"] = "skipped"
    if told.kind == "exhausted":
        for i in told.deepening[len(told.deepening) // 2 :]:
            told.nodes[i]["state"] = "skipped"
    if told.kind in ("interrupted", "running"):
        later = names[len(names) // 2 :]
        for number, i in enumerate(later):
            told.nodes[i]["state"] = "running" if told.kind == "running" and number < 3 else "pending"


def _log(told: Story) -> None:
    words, log = _WORDS[told.lang], told.events
    log.append({"ts": START, "type": "run.start", "task": "t"})
    for i, n in told.nodes.items():
        at = START + n["at"]
        if n["state"] in ("pending", "skipped"):
            continue
        if n["state"] == "failed":
            log.append({"ts": at, "type": "attempt.start", "node": i, "attempt": 1, "question": n["question"]})
            end = {"node": i, "attempt": 1, "outcome": "retry", "seconds": 1.5, "reason": words["failed"]}
            log.append({"ts": at + 1.5, "type": "attempt.end", **end})
            at += 1.8
        number = 2 if n["state"] == "failed" else 1
        log.append({"ts": at, "type": "attempt.start", "node": i, "attempt": number, "question": n["question"]})
        if n["state"] != "running":
            seconds = 1.2 + len(i) % 4
            reason = words["failed"] if n["state"] == "failed" else ""
            end = {"node": i, "attempt": number, "outcome": n["state"], "seconds": seconds, "reason": reason}
            log.append({"ts": at + seconds, "type": "attempt.end", **end})
            n["span"] = (at, at + seconds)
        else:
            n["span"] = (at, None)
    if told.added:
        log.append(
            {"ts": START + 8, "type": "attempt.start", "node": "N_old", "attempt": 1, "question": words["added"]}
        )
        log.append({"ts": START + 8, "type": "plan.commit", "steps": [{"id": "N_old", "tool": "WEB", "outcome": ""}]})
        ended = {"node": "N_old", "attempt": 1, "outcome": "ended", "seconds": 0.8, "reason": "replanned"}
        log.append({"ts": START + 8.8, "type": "attempt.end", **ended})
        log.append({"ts": START + 8.9, "type": "plan.diff", **_revision(told)})
    log.sort(key=lambda event: event["ts"])


def _revision(told: Story) -> dict[str, Any]:
    return {"revision": 1, "removed": ["N_old"], "added": told.added, "revised": []}


def _dag(told: Story) -> str:
    words = _WORDS[told.lang]
    nodes, question, depends, none, status = words["labels"]

    def line(i: str) -> str:
        n = told.nodes[i]
        kind = "LOCAL" if n["said"] % 2 == 0 else "WEB"
        return f"- [{i}] {kind} | {question}{n['question']} | {depends}{','.join(n['depends']) or none}"

    root = words["question"]
    later = {*told.deepening, *told.added}
    lines = [f"# DR: {root}", f"ROOT: {root}", "", nodes, *(line(i) for i in told.nodes if i not in later)]
    lines.append(f"- [S] SYNTH | {question}{words['synth']} | {depends}{','.join(told.nodes)}")
    for number, part in enumerate(_halves(told.deepening), 1):
        lines += ["", words["deepening"].format(number), *map(line, part)]
    if told.added:
        lines += ["", words["revision"], *map(line, told.added)]
    marks = {i: n["state"] for i, n in told.nodes.items()}
    marks["S"] = {"running": "pending", "interrupted": "pending", "failed": "failed"}.get(told.kind, "done")
    return "\n".join([*lines, "", status, *(f"{i}: [{MARKS[s]}]" for i, s in marks.items()), ""])


def _halves(ids: list[str]) -> list[list[str]]:
    middle = (len(ids) + 1) // 2
    return [part for part in (ids[:middle], ids[middle:]) if part]


def _run(told: Story) -> dict[str, Any]:
    words = _WORDS[told.lang]
    status, reason = {
        **{"completed": ("completed", "goal_met"), "partial": ("completed", "goal_met")},
        **{"exhausted": ("completed", "step_budget"), "failed": ("failed", "no_findings")},
        **{"interrupted": ("interrupted", "interrupted"), "running": ("running", "")},
    }[told.kind]
    first = [i for i in told.nodes if i not in {*told.deepening, *told.added}]
    rounds = [{"round": 1, "nodes": first, "why": ""}]
    for number, part in enumerate(_halves(told.deepening), 2):
        rounds.append({"round": number, "nodes": part, "why": words["deepening"].partition(": ")[2] or "水母"})
    return {
        **{"format": 1, "task": "t", "question": words["question"], "language": told.lang, "mind": "offline"},
        **{"agent": "own", "status": status, "reason": reason, "rounds": rounds, "usage": {}, "notes": []},
        **{"revisions": [_revision(told)] if told.added else [], "started": START, "original": len(first)},
        "ended": None if told.kind == "running" else START + 16.4,
    }


def _write(temp: Path, told: Story) -> RunFolder:
    folder = RunFolder(temp / "temp" / "dr_t")
    folder.path.mkdir(parents=True)
    folder.dag.write_text(_dag(told), encoding="utf-8")
    folder.run.write_text(json.dumps(_run(told), ensure_ascii=False), encoding="utf-8")
    folder.events.write_text("".join(json.dumps(e, ensure_ascii=False) + "\n" for e in told.events), encoding="utf-8")
    for number, (i, n) in enumerate(told.nodes.items()):
        of_node = folder.node(i)
        of_node.path.mkdir()
        _write_node(told, of_node.path, i, n, number)
    answered = [i for i, n in told.nodes.items() if n["state"] == "done" and n["said"] in (0, 3)]
    if len(answered) > 1:
        folder.conflicts.write_text(json.dumps([_conflict(told, answered[:2])], ensure_ascii=False), encoding="utf-8")
    return folder


def _conflict(told: Story, ids: Sequence[str]) -> dict[str, Any]:
    words = _WORDS[told.lang]
    values = []
    for i in ids:
        sentence = words["say"][told.nodes[i]["said"]]
        value = sentence.split(" GWh")[0].split()[-1] + " GWh" if told.lang == "en" else sentence[-9:-1]
        values.append({"value": value, "node": i, "citation": "local-1", "sentence": sentence})
    return {"quantity": words["quantity"], "values": values}


def _write_node(told: Story, path: Path, i: str, n: Mapping[str, Any], number: int) -> None:
    words = _WORDS[told.lang]
    span = n.get("span", (None, None))
    outcome = n["state"] if n["state"] in ("done", "failed", "skipped") else None
    error = {"failed": words["failed"], "skipped": "step_budget"}.get(n["state"])
    reservation = ["one_sentence"] if number == 2 else []
    record = {"argv": [], "attempt": 0 if n["state"] == "skipped" else 1, "start": span[0], "end": span[1]}
    record |= {"exit_code": 0, "outcome": outcome, "error": error, "reservation": reservation}
    if n["state"] != "pending":
        (path / "process.json").write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")
    if n["state"] != "done":
        return
    said, other = words["say"][n["said"]], words["say"][(n["said"] + 1) % 4]
    url = "https://example.org/port-ellery/minutes?year=2025&item=4"
    places = [f"/docs/operating-report-2024-{number % 3}.pdf", url]
    text = f"[结论] {said} [local-1]\n\n{other} [web-2]\n\n"
    text += f'来源：{places[0]}, p. {number + 3} — "{said}" [local-1]\n来源：{url} — "{other}" [web-2]\n'
    (path / "conclusion.md").write_text(text, encoding="utf-8")
    title = words["title"] if number else words["title"] + " · " + words["question"]
    evidence = [
        passage(1, places[0], words["around"].format(said), title=title, page=number + 3),
        passage(2, places[1], words["around"].format(other * (number != 1)), kind="web", title=words["title"]),
    ]
    lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in evidence)
    (path / "evidence.jsonl").write_text(lines, encoding="utf-8")
