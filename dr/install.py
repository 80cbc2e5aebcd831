"""dr_runner.py, dr/ and sop/ into a GenericAgent root, the SOP into its memory; again: an upgrade; and out again.

In: this program's folder and the root. Out: Changes. dr/.installed.json there holds the hash of every file written:
what is not in it, or was changed since, is never touched.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dr import __version__, files
from dr.errors import FormatError, UsageError
from dr.layout import HOME, Root
from dr.words import say

FORMAT = 1
MANIFEST = "dr/.installed.json"
SOP = "memory/deep_research_sop.md"
INDEX = "memory/global_mem_insight.txt"
INDEX_NAME = "deep_research_sop"
# The root's own, written beside what it had; everything else that is in the way ends an installation before it began.
_ROOT_MAY_HAVE_ITS_OWN = {SOP}
_INDEX_LINES = {
    "zh": f"深度研究(多来源/单次检索答不全的问题): {INDEX_NAME}(python ../dr_runner.py, 拆DAG并行subagent, 报告带引用)",
    "en": f"Deep research (several sources, no single look-up answers): {INDEX_NAME} (python ../dr_runner.py: DAG of "
    "subagents, report with citations)",
}
_CHINESE = 0.04  # share of characters in an index whose names of files are English in any case
_BEFORE = b"[RULES]"  # where GA's index has its rules: the lists of SOPs end above


@dataclass(frozen=True)
class Changes:
    """Paths relative to the root. kept: left as they are, each with the reason, a key of dr/words.py.

    index: "" nothing to do, "offered", "added", "removed", "there", or "missing" (GA has not made the file yet).
    """

    added: list[str] = field(default_factory=list)
    upgraded: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: int = 0
    kept: list[tuple[str, str]] = field(default_factory=list)
    index: str = ""
    index_line: str = ""


def install(root: Root, *, index: bool, dry_run: bool, source: Path = HOME) -> Changes:
    """Write what is missing or older. UsageError, before anything is written, when it is no GA root or files that
    are not ours are in the way."""
    _check_root(root, source)
    lang = language(root)
    wanted = dict(_wanted(source, lang))
    known = _read_manifest(root)
    changes = Changes(index_line=_INDEX_LINES[lang])
    todo: dict[str, bytes] = {}
    for name, data in wanted.items():
        target = root.path / name
        there = _hash_of(target)
        if there is None:
            changes.added.append(name)
            todo[name] = data
        elif there == _hash(data):
            pass
        elif there in known["files"].get(name, ()):
            changes.upgraded.append(name)
            todo[name] = data
        else:
            changes.kept.append((name, "install_changed" if name in known["files"] else "install_not_ours"))
    foreign = [n for n, why in changes.kept if why == "install_not_ours" and n not in _ROOT_MAY_HAVE_ITS_OWN]
    if foreign:
        raise UsageError(
            f"install into {root.path}",
            f"files that this program did not write are in the way: {', '.join(foreign[:5])}"
            + (f" and {len(foreign) - 5} more" if len(foreign) > 5 else ""),
            "move them away, then install again; nothing was changed",
        )
    old = {n: hashes for n, hashes in known["files"].items() if n not in wanted}
    gone, changed = _sorted_out(root, old)
    changes.removed.extend(gone)
    changes.kept.extend((n, "install_changed") for n in changed)
    unchanged = len(wanted) - len(todo) - sum(n in wanted for n, _ in changes.kept)
    line = _index(root, changes.index_line, write=index and not dry_run, wanted=index)
    changes = replace(changes, unchanged=unchanged, index=line)
    if dry_run:
        return changes
    index_line = changes.index_line if changes.index == "added" else known.get("index_line")
    ours = {n: [*known["files"].get(n, ()), _hash(wanted[n])] for n in (*todo, *(known["files"].keys() & wanted))}
    # Before the files: of a kill in between every file is known by its old or its new hash.
    _write_manifest(root, {**old, **ours}, index_line)
    for name, data in todo.items():
        _write(root.path / name, data)
    for name in gone:
        (root.path / name).unlink()
    kept = {n for n, _ in changes.kept}
    now = {n: known["files"][n] if n in kept else hashes[-1:] for n, hashes in ours.items()}
    _write_manifest(root, now, index_line)
    _remove_empty(root, gone)
    return changes


def uninstall(root: Root, *, dry_run: bool) -> Changes:
    """Remove exactly what was written; what was changed since is kept and named."""
    manifest = root.path / MANIFEST
    if not manifest.is_file():
        raise UsageError(
            f"uninstall from {root.path}", f"there is no {MANIFEST}: nothing was installed there", "check the path"
        )
    known = _read_manifest(root)
    gone, changed = _sorted_out(root, known["files"])
    line = str(known.get("index_line") or "")
    there = bool(line) and line in _index_text(root).splitlines()
    changes = Changes(
        removed=gone,
        kept=[(n, "install_changed") for n in changed],
        index="removed" if there else "",
        index_line=line,
    )
    if dry_run:
        return changes
    if there:
        _remove_line(root, line)
    for name in gone:
        (root.path / name).unlink()
    manifest.unlink()
    _remove_empty(root, gone)
    return changes


def language(root: Root) -> str:
    """Of the root's own index, which its agent reads first; Chinese where there is none, as in GA's other SOPs."""
    text = "".join(_index_text(root).split())
    chinese = sum("\u3400" <= c <= "\u9fff" for c in text)
    return "zh" if chinese >= _CHINESE * len(text) else "en"


def told(changes: Changes, root: Root, lang: str, *, dry_run: bool, out: bool) -> tuple[list[str], dict[str, Any]]:
    """What was done, as lines for a reader and as an object."""
    lines = [say(lang, "install_title_out" if out else "install_title", root=root.path)]
    for key, names in (("added", changes.added), ("upgraded", changes.upgraded), ("removed", changes.removed)):
        if names:
            lines.append(say(lang, f"install_{key}", count=len(names), names=_summary(names)))
    if changes.unchanged:
        lines.append(say(lang, "install_unchanged", count=changes.unchanged))
    lines += [say(lang, "install_kept", name=name, why=say(lang, why)) for name, why in changes.kept]
    if changes.index:
        lines.append(say(lang, f"install_index_{changes.index}", file=INDEX))
        lines += [f"  {changes.index_line}"] if changes.index in ("offered", "added", "removed") else []
    lines += [say(lang, "install_dry")] if dry_run else []
    data = {
        **{"root": str(root.path), "dry_run": dry_run, "added": changes.added, "upgraded": changes.upgraded},
        **{"removed": changes.removed, "unchanged": changes.unchanged, "kept": [list(k) for k in changes.kept]},
        **{"index": changes.index, "index_line": changes.index_line},
    }
    return lines, data


def _summary(names: list[str]) -> str:
    """Folders and single files: `dr/ (86), sop/ (14), dr_runner.py`."""
    tops: dict[str, int] = {}
    for name in names:
        top = name.split("/")[0] + "/" if "/" in name and not name.startswith("memory/") else name
        tops[top] = tops.get(top, 0) + 1
    return ", ".join(f"{top} ({n})" if top.endswith("/") else top for top, n in tops.items())


# -- what is wanted and what is there ----------------------------------------------------------------------------------


def _check_root(root: Root, source: Path) -> None:
    tried = f"install into {root.path}"
    if not root.path.is_dir():
        raise UsageError(tried, "there is no such folder", "give the folder that holds GenericAgent's agentmain.py")
    missing = [n for n in ("agentmain.py", "ga.py") if not (root.path / n).is_file()]
    missing += [] if root.memory.is_dir() else ["memory/"]
    if missing:
        raise UsageError(
            tried, f"it is no GenericAgent root: {', '.join(missing)} missing", "give the folder that holds them"
        )
    if root.path.resolve() == source.resolve():
        raise UsageError(tried, "this program runs from there already", "install from a checkout of its own")
    for name in ("dr", "sop"):
        if (root.path / name).is_symlink():
            raise UsageError(tried, f"{name} is a link there", "remove the link: a copy is made")


def _wanted(source: Path, lang: str) -> Iterator[tuple[str, bytes]]:
    """Path in the root -> content: the runner, its package and prompts, and the SOP where GA's agent looks for it."""
    yield "dr_runner.py", (source / "dr_runner.py").read_bytes()
    for folder in ("dr", "sop"):
        for path in sorted((source / folder).rglob("*")):
            name = path.relative_to(source).as_posix()
            if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
                yield name, path.read_bytes()
    yield SOP, (source / "sop" / f"deep_research_sop.{lang}.md").read_bytes()


def _read_manifest(root: Root) -> dict[str, Any]:
    path = root.path / MANIFEST
    if not path.is_file():
        return {"files": {}}
    known = files.read_json(path)
    if not isinstance(known, dict) or known.get("format") != FORMAT or not isinstance(known.get("files"), dict):
        raise FormatError(f"read {path}", "not a list of installed files of this version", "use the version it is of")
    bad = [n for n in known["files"] if not _is_inside(n)]
    if bad:
        raise FormatError(f"read {path}", f"{bad[0]!r} leads out of the root", "restore the file")
    return known


def _is_inside(name: str) -> bool:
    return not name.startswith("/") and ":" not in name and ".." not in Path(name).parts


def _write_manifest(root: Root, hashes: dict[str, list[str]], index_line: Any) -> None:
    path = root.path / MANIFEST
    path.parent.mkdir(exist_ok=True)
    listed = {n: list(dict.fromkeys(hashes[n])) for n in sorted(hashes)}
    data = {"format": FORMAT, "version": __version__, "index_line": index_line, "files": listed}
    files.write_text(path, json.dumps(data, ensure_ascii=False, indent=1) + "\n")


def _sorted_out(root: Root, known: dict[str, list[str]]) -> tuple[list[str], list[str]]:
    """Files of the manifest that may be removed, and those changed since; what is gone already is neither."""
    gone: list[str] = []
    changed: list[str] = []
    for name, hashes in known.items():
        there = _hash_of(root.path / name)
        if there is not None:
            (gone if there in hashes else changed).append(name)
    return gone, changed


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hash_of(path: Path) -> str | None:
    """None: nothing is there. A folder or link in its place is something of the user's."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return "not a file"
    return _hash(path.read_bytes()) if path.exists() else None


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.dr-install.tmp")
    try:
        temporary.write_bytes(data)
        files.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _remove_empty(root: Root, names: list[str]) -> None:
    """Folders that hold nothing any more; Python's caches of our modules count as nothing."""
    folders = {parent for n in names for parent in (root.path / n).parents if root.path in parent.parents}
    for folder in sorted(folders, key=lambda f: len(f.parts), reverse=True):
        if folder == root.memory or not folder.is_dir():
            continue
        cache = folder / "__pycache__"
        if cache.is_dir():
            stems = {Path(n).stem for n in names if (root.path / n).parent == folder}
            for compiled in cache.iterdir():
                if compiled.name.split(".")[0] in stems:
                    compiled.unlink()
            if not any(cache.iterdir()):
                cache.rmdir()
        if not any(folder.iterdir()):
            folder.rmdir()


# -- the line in GA's index --------------------------------------------------------------------------------------------


def _index_text(root: Root) -> str:
    try:
        return files.read_text(root.path / INDEX)
    except OSError:
        return ""


def _index(root: Root, line: str, *, write: bool, wanted: bool) -> str:
    """What is done about the one line; it is written only when asked for."""
    path = root.path / INDEX
    if INDEX_NAME in _index_text(root):
        return "there"
    if not wanted:
        return "offered"
    if not path.is_file():
        return "missing"  # GA fills it from a template at its first start, but only where there is none
    if write:
        data = path.read_bytes()
        end = b"\r\n" if b"\r\n" in data else b"\n"
        new = line.encode("utf-8") + end
        at = data.find(_BEFORE)
        if at > 0 and data[at - 1 : at] == b"\n":
            while at >= 2 * len(end) and data[at - 2 * len(end) : at] == end * 2:
                at -= len(end)  # above the empty line that sets the rules apart
            data = data[:at] + new + data[at:]
        else:
            data = data + (end if data and not data.endswith(b"\n") else b"") + new
        _write(path, data)
    return "added"


def _remove_line(root: Root, line: str) -> None:
    path = root.path / INDEX
    kept = [row for row in path.read_bytes().splitlines(keepends=True) if row.rstrip(b"\r\n") != line.encode("utf-8")]
    _write(path, b"".join(kept))
