"""What a run needs and what dead runs left -> checks, each with the command that mends it. Changes nothing."""

from __future__ import annotations

import os
import shutil
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dr import overview, packages, preparation, process, run_folder
from dr.browser_lock import BrowserLock
from dr.errors import DrError
from dr.layout import Root, RunFolder
from dr.settings import Settings, load
from dr.subagent import choose_agent

OK, WARN, BAD = "ok", "warn", "bad"
_MARKS = {OK: "[ok]  ", WARN: "[!]   ", BAD: "[bad] "}
_REACH_S = 8.0


@dataclass(frozen=True)
class Check:
    """what: what was looked at; state: ok, warn (parts do not work) or bad; said: what was found; mend: a command."""

    what: str
    state: str
    said: str
    mend: str = ""


Get = Callable[[str, dict[str, str]], tuple[int, str]]


def examine(root: Root, flags: dict[str, Any], get: Get | None = None) -> list[Check]:
    """Every check; none of them raises. get: fetches a URL, (status, text), for tests."""
    found = [_python(), _packages(root), _temp(root)]
    try:
        settings = load(root.path, flags)
    except DrError as error:
        return [*found, Check("settings", BAD, error.wrong, error.next_step), *_runs(root)]
    mind = preparation.choose_mind(root, settings)
    found += [_agent(root, settings, mind), _mind(root, settings, mind, get or _get), _search(settings, get or _get)]
    return [*found, *_programs(), _browser(), *_runs(root)]


def data(found: list[Check]) -> dict[str, Any]:
    rows = [{"what": c.what, "state": c.state, "said": c.said, **({"mend": c.mend} if c.mend else {})} for c in found]
    return {"checks": rows, "ok": all(c.state != BAD for c in found), "next": _next(found)}


def text(found: list[Check]) -> str:
    lines = []
    for check in found:
        lines.append(f"{_MARKS[check.state]}{check.what}: {check.said}")
        if check.mend:
            lines.append(f"        -> {check.mend}")
    return "\n".join([*lines, _next(found)])


def _next(found: list[Check]) -> str:
    mends = [c.mend for state in (BAD, WARN) for c in found if c.state == state and c.mend]
    return mends[0] if mends else 'python dr_runner.py "QUESTION" --source FOLDER'


# -- what a run needs --------------------------------------------------------------------------------------------------


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 10)
    return Check(
        "python", OK if good else BAD, f"{version} at {sys.executable}", "" if good else "use Python 3.10 or newer"
    )


def _packages(root: Root) -> Check:
    lacking = packages.missing() or []
    if not lacking:
        return Check("packages", OK, "all there")
    needed = [p.name for p in lacking if p.needed]
    said = "missing: " + ", ".join(p.name for p in lacking)
    return Check("packages", BAD if needed else WARN, said, packages.command(sys.executable, lacking))


def _temp(root: Root) -> Check:
    place = root.temp if root.temp.is_dir() else root.path
    if not os.access(place, os.W_OK):
        return Check("root", BAD, f"{place} cannot be written", "give another folder with --root")
    free = shutil.disk_usage(place).free // 1_000_000
    kind = "a GenericAgent root" if root.is_genericagent else "a root without GenericAgent"
    state = OK if free > 200 else WARN
    return Check("root", state, f"{root.path}, {kind}, {free} MB free", "" if state == OK else "free some disk space")


def _agent(root: Root, settings: Settings, mind: str) -> Check:
    try:
        agent = choose_agent(root, settings.agent, mind)
    except DrError as error:
        return Check("agent", BAD, error.wrong, error.next_step)
    who = "our own" if agent.own else "GenericAgent's" if agent.transcript else "another"
    knows = ", ".join(sorted(agent.knows)) or "none of the flags we use"
    return Check("agent", OK, f"{who}: {' '.join(agent.argv[1:] or agent.argv)}; it knows {knows}")


def _mind(root: Root, settings: Settings, mind: str, get: Get) -> Check:
    if mind == "offline":
        return Check("mind", OK, "offline: no model is used; set DR_BASE_URL and DR_MODEL for one")
    if mind == "agent":
        keys = [n for n in ("mykey.py", "mykey.json") if (root.path / n).is_file()]
        if not root.is_genericagent:
            return Check(
                "mind", BAD, "agent, but this is no GenericAgent root", "use --mind offline, or --root GA_ROOT"
            )
        if not keys:
            said = "agent, but GenericAgent has no mykey.py or mykey.json beside its agentmain.py"
            return Check("mind", WARN, said, "configure GenericAgent's model, or use --mind offline")
        return Check("mind", OK, f"agent: GenericAgent's own model ({keys[0]}, which is never read here)")
    if not settings.base_url or not settings.model:
        return Check("mind", BAD, "model, but base_url or model is not set", "set DR_BASE_URL and DR_MODEL")
    headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
    url = settings.base_url.rstrip("/") + "/models"
    return _reached("mind", f"model {settings.model} at {settings.base_url}", url, headers, settings.model, get)


def _search(settings: Settings, get: Get) -> Check:
    if settings.searxng_url:
        query = urllib.parse.urlencode({"q": "test", "format": "json"})
        url = f"{settings.searxng_url.rstrip('/')}/search?{query}"
        return _reached("search", f"SearXNG at {settings.searxng_url}", url, {}, "results", get)
    if settings.search_api_key:
        return Check("search", OK, f"a key for {settings.search_url} is set; not tried, a search may cost")
    said = "none configured: WEB nodes need URLs as sources"
    return Check("search", WARN, said, "set DR_SEARXNG_URL, or DR_SEARCH_API_KEY")


def _reached(what: str, name: str, url: str, headers: dict[str, str], word: str, get: Get) -> Check:
    try:
        status, body = get(url, headers)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return Check(what, BAD, f"{name} cannot be reached: {reason}", "check the address and the network")
    if status in (401, 403):
        hint = "enable the JSON format of SearXNG" if what == "search" else "check the key"
        return Check(what, BAD, f"{name} refused: HTTP {status}", hint)
    if status != 200:
        return Check(what, WARN, f"{name} answers, with HTTP {status} to {urllib.parse.urlsplit(url).path}")
    if word not in body:
        return Check(what, WARN, f"{name} answers, but does not speak of {word!r}", "check its name")
    return Check(what, OK, f"{name} answers")


def _get(url: str, headers: dict[str, str]) -> tuple[int, str]:
    if not url.startswith(("http://", "https://")):
        raise ValueError("not an http address")
    request = urllib.request.Request(url, headers={"User-Agent": "dr-runner", **headers})
    try:
        with urllib.request.urlopen(request, timeout=_REACH_S) as answer:
            return int(answer.status), answer.read(500_000).decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        error.close()
        return error.code, ""


def _programs() -> Iterator[Check]:
    browser = next((n for n in ("chromium", "chromium-browser", "google-chrome") if shutil.which(n)), None)
    said = browser or "no Chromium: pages that need JavaScript are read without it"
    yield Check("browser program", OK if browser else WARN, said)
    if sys.platform == "linux":
        found = shutil.which("bwrap")
        said = found or "no bubblewrap: CODE nodes run with limits only, and say so"
        yield Check("sandbox", OK if found else WARN, said, "" if found else "apt install bubblewrap")


# -- locks, and what dead runs left ------------------------------------------------------------------------------------


def _browser() -> Check:
    holder = BrowserLock().holder()
    if holder is None:
        return Check("browser lock", OK, "free")
    return Check("browser lock", OK, f"process {holder.identity.pid} has it, for {holder.node}")


def _runs(root: Root) -> Iterator[Check]:
    folders = run_folder.tasks(root)
    marks: dict[str, list[int]] = {}
    prefix = f"{root.temp}{os.sep}"
    for row, mark in process.marks() if folders or root.temp.is_dir() else ():
        if mark.startswith(prefix):
            marks.setdefault(Path(mark).relative_to(root.temp).parts[0], []).append(row.identity.pid)
    troubled = 0
    for folder in folders:
        check = _run(folder, marks.pop(folder.path.name, []))
        if check is not None:
            troubled += check.state != OK
            yield check
    for name, pids in marks.items():
        yield Check(f"temp/{name}", BAD, f"processes of a run that is gone: {_some(pids)}", _kill(pids))
    for left in _leftovers(root):
        yield Check(
            f"temp/{left.name}", WARN, "left by a run that was killed while it was made or removed", _remove(left)
        )
    if not troubled:
        yield Check("runs", OK, f"{len(folders)} in {root.temp}, none in trouble")


def _run(folder: RunFolder, pids: list[int]) -> Check | None:
    name = f"run {folder.task}"
    try:
        record = run_folder.read_record(folder)
    except DrError as error:
        return Check(name, WARN, error.wrong, error.next_step)
    now = overview.effective_status(record)
    driver = (record.runner or {}).get("pid")
    if now == "running" and driver:
        return Check(name, OK, f"process {driver} drives it, subagents: {_some(pids)}")
    if record.status in ("completed", "failed") and pids:
        return Check(
            name, BAD, f"it has ended, but processes are left: {_some(pids)}", f"python dr_runner.py stop {folder.task}"
        )
    if pids:
        said = f"subagents go on without a runner: {_some(pids)}"
        return Check(
            name, WARN, said, f"python dr_runner.py poll {folder.task}, or: python dr_runner.py stop {folder.task}"
        )
    if now == "interrupted" and record.status != "interrupted":
        return Check(name, WARN, "its runner died", f"python dr_runner.py resume {folder.task}")
    return None


def _leftovers(root: Root) -> list[Path]:
    if not root.temp.is_dir():
        return []
    return sorted(p for p in root.temp.iterdir() if p.name.startswith(".dr_") and p.name.endswith((".old", ".tmp")))


def _some(pids: list[int]) -> str:
    return ", ".join(map(str, pids[:8])) + (" …" if len(pids) > 8 else "") if pids else "none"


def _kill(pids: list[int]) -> str:
    numbers = " ".join(map(str, pids))
    return f"taskkill /T /F {' '.join(f'/PID {p}' for p in pids)}" if sys.platform == "win32" else f"kill {numbers}"


def _remove(path: Path) -> str:
    return f'rmdir /s /q "{path}"' if sys.platform == "win32" else f"rm -r '{path}'"
