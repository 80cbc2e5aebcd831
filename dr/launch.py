"""One attempt of one node started: its folder prepared, the process started and recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from dr import files, node_folder, process, subagent
from dr.contract import Context, NodeType
from dr.layout import NodeFolder, Root
from dr.node_folder import ProcessRecord
from dr.process import Child, Identity
from dr.settings import Settings, to_environment
from dr.subagent import Agent
from dr.trees import end_tree


class Launched(NamedTuple):
    """An attempt that runs. process: our child, or the identity of one that an earlier runner started."""

    folder: NodeFolder
    record: ProcessRecord
    process: Child | Identity

    @property
    def group(self) -> int | None:
        """The process group it was started in, also when the agent re-started itself under another pid."""
        return self.record.group


class Launcher:
    """Starts attempts with one agent under one root; the way (command line, environment) is the same for all."""

    def __init__(self, root: Root, agent: Agent, settings: Settings, language: str) -> None:
        self.root, self.agent, self.settings, self.language = root, agent, settings, language
        own = to_environment(settings) | {"DR_ROOT": str(root.path)}
        self._environment: Mapping[str, str] = subagent.environment(agent, own)

    def argv(self, folder: NodeFolder) -> list[str]:
        return subagent.command(self.agent, folder, llm_no=self.settings.llm_no, launch=self.settings.launch or "")

    def launch(
        self,
        folder: NodeFolder,
        node_type: NodeType,
        context: Context,
        *,
        tries: int = 1,
        remark: str = "",
        keep_work: bool = True,
    ) -> Launched:
        """DrError when the agent cannot be started at all."""
        # On disk before the start: a kill in between leaves a process that node_folder.intent() and find() tell of.
        attempt = node_folder.prepare(folder, context, node_type, self.language, keep_work=keep_work, remark=remark)
        record = ProcessRecord(argv=self.argv(folder), attempt=attempt, tries=tries, start=time.time())
        child = process.start(
            record.argv, cwd=self.root.path, env=self._environment, stdout=folder.stdout, stderr=folder.stderr
        )
        try:
            identity = child.identity
            record = replace(
                record, pid=identity.pid, create_time=identity.create_time, boot=identity.boot, group=identity.pid
            )
            node_folder.write_record(folder, record)
        except BaseException:  # nobody would know of it: it must not run on
            end_tree(child, soft_s=0)
            child.poll()
            raise
        return Launched(folder, record, child)

    def revise(self, launched: Launched, *, tries: int, remark: str) -> Launched:
        """Another attempt of an agent that waits for reply.txt: the remark is the reply. In this order, so that after
        a kill in between nobody takes the old round for the new one."""
        folder = launched.folder
        attempt, next_round = node_folder.put_round_away(folder)
        files.write_text(folder.reply, remark + "\n")
        record = replace(
            launched.record,
            attempt=attempt,
            tries=tries,
            round=next_round,
            start=time.time(),
        )
        node_folder.write_record(folder, record)
        return Launched(folder, record, launched.process)

    def answer_file(self, folder: NodeFolder) -> str:
        """Where the agent is told to write; one that keeps its transcript in output.txt would overwrite it there."""
        return str(folder.answer if self.agent.transcript else folder.output)

    def find(self, folder: NodeFolder, record: ProcessRecord) -> ProcessRecord | None:
        """The record completed for a start whose pid was never recorded; None when nothing of it runs."""
        # The command line is the second choice: a script's begins with its interpreter, not with what was started.
        started = process.marked(lambda path: path == str(folder.stdout))
        if started:
            found, group = started[0].identity, started[0].group
        else:
            cwd = str(self.root.path)
            same = process.find(lambda a, c: list(a) == record.argv and c in (cwd, ""))
            if not same:
                return None
            found, group = same[0], same[0].pid
        return replace(record, pid=found.pid, create_time=found.create_time, boot=found.boot, group=group)
