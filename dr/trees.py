"""Ending whole process trees: in: roots and their process groups; out: nothing left running (or who would not go)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from dr.process import (
    HARD,
    SOFT,
    Child,
    Identity,
    Row,
    alive,
    group_exists,
    has_mark,
    marked,
    of_this_boot,
    send,
    table,
)
from dr.waiter import Waiter

SOFT_S = 3.0  # between the request to end and the kill
HARD_S = 2.0  # for the kernel to remove what was killed; only a process in uninterruptible I/O takes longer


class Tree(NamedTuple):
    """A process, everything below it, and its process group (None: there are no groups here).

    reaped_by_us: the root was our child and ended a moment ago, so the group is ours although the root is gone.
    gone: the root is known to have ended.
    """

    root: Identity
    group: int | None = None
    reaped_by_us: bool = False
    gone: bool = False

    @classmethod
    def of(cls, process: Child | Identity, group: int | None = None) -> Tree:
        """group: where it is not the process's own, as for an agent that re-started itself: its launcher's pid."""
        ours = isinstance(process, Child)
        root = process.identity if isinstance(process, Child) else process
        gone = isinstance(process, Child) and process.exit is not None
        return cls(root, (group or root.pid) if sys.platform != "win32" else None, ours, gone)

    def exists(self) -> bool:
        """Whether anything may be left to end; cheap, for the usual case that nothing is."""
        if not of_this_boot(self.root):
            return False
        return (not self.gone and alive(self.root)) or self.group is None or group_exists(self.group)


def end_trees(
    trees: Iterable[Tree],
    soft_s: float = SOFT_S,
    *,
    kill: Callable[[Identity, int], None] = send,
    clock: Callable[[], float] = time.monotonic,
) -> list[Identity]:
    """End whole trees at once: ask all, wait at most `soft_s` for all together, kill the rest. Blocks until nothing is
    left; returns the survivors, which are only what the kernel cannot end. Keeps no state, so it may run in a thread.
    """
    todo = [t for t in trees if t.exists()]
    if not todo:
        return []
    rows = table()
    groups = {t.group for t in todo if t.group is not None and _is_ours(t, rows)}
    orphans = [] if sys.platform != "win32" else _orphans({t.root for t in todo}, rows)
    targets = _members({t.root for t in todo}.union(orphans), groups, rows)
    for number, patience in ((SOFT, soft_s), (HARD, HARD_S), (HARD, HARD_S), (HARD, HARD_S)):
        if not targets:
            break
        deadline = clock() + patience
        for identity in targets:
            kill(identity, number)
        _wait(targets, deadline, clock)
        # Once more over the table: what was started meanwhile is in a group, or below one that still lives.
        targets = _members(targets, groups, table())
    return sorted(targets, key=lambda i: i.pid)


def end_tree(process: Child | Identity, group: int | None = None, soft_s: float = SOFT_S) -> list[Identity]:
    return end_trees([Tree.of(process, group)], soft_s)


def end_marked(folder: Path, soft_s: float = SOFT_S) -> list[Identity]:
    """End everything that was started with its output under `folder`, whatever its records say."""
    prefix = f"{folder}{os.sep}"
    rows = marked(lambda path: path.startswith(prefix))
    return end_trees([Tree(r.identity, r.group if sys.platform != "win32" else None) for r in rows], soft_s)


def _is_ours(tree: Tree, rows: list[Row]) -> bool:
    """Whether the group is the one that was started, not a later one with the same number."""
    if sys.platform != "win32" and tree.group == os.getpgrp():
        return False
    by_pid = {row.identity.pid: row for row in rows}
    root = by_pid.get(tree.root.pid)
    if root and root.identity == tree.root:
        return root.group == tree.group
    if tree.group in by_pid:  # a living leader: a stranger with the root's number, or the launcher of the root
        return tree.root.pid != tree.group and has_mark(tree.group)
    return tree.reaped_by_us or any(has_mark(r.identity.pid) for r in rows if r.group == tree.group)


def _orphans(roots: set[Identity], rows: list[Row]) -> set[Identity]:
    """Children of roots that are gone, on Windows, which keeps a dead parent's number in them."""
    living = {row.identity.pid for row in rows}
    gone = {root.pid for root in roots} - living
    return {r.identity for r in rows if r.parent in gone and has_mark(r.identity.pid)}


def _members(roots: set[Identity], groups: set[int], rows: list[Row]) -> set[Identity]:
    """Roots that live, their groups and sessions, and everything below any of them; never this process."""
    children: dict[int, list[Row]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
    found = [r for r in rows if r.identity in roots or r.group in groups or r.session in groups]
    members: dict[int, Identity] = {}
    while found:
        row = found.pop()
        if row.identity.pid in members or row.identity.pid == os.getpid():
            continue
        members[row.identity.pid] = row.identity
        # A child is never older than its parent; if it is, the parent's number was another's before.
        found += [c for c in children.get(row.identity.pid, []) if c.identity.create_time >= row.identity.create_time]
    return set(members.values())


def _wait(targets: Iterable[Identity], deadline: float, clock: Callable[[], float]) -> None:
    """Until all are gone or the deadline is over."""
    with Waiter() as waiter:
        for identity in targets:
            waiter.add(identity, identity)
        while len(waiter) and (rest := deadline - clock()) > 0:
            waiter.wait(rest)
