"""One attempt of one node started: its folder prepared, the intent recorded, the process started and recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dr import node_folder, process, subagent
from dr.contract import Context, NodeType
from dr.layout import NodeFolder, Root
from dr.node_folder import ProcessRecord
from dr.process import Child, Identity
from dr.settings import Settings, to_environment
from dr.subagent import Agent


@dataclass(frozen=True)
class Launched:
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
        attempt = node_folder.prepare(folder, context, node_type, self.language, keep_work=keep_work, remark=remark)
        # On disk before the start: a kill in between leaves a process that can be found by its command line.
        record = ProcessRecord(argv=self.argv(folder), attempt=attempt, tries=tries, start=time.time())
        node_folder.write_record(folder, record)
        child = process.start(
            record.argv, cwd=self.root.path, env=self._environment, stdout=folder.stdout, stderr=folder.stderr
        )
        identity = child.identity
        record = replace(
            record, pid=identity.pid, create_time=identity.create_time, boot=identity.boot, group=identity.pid
        )
        node_folder.write_record(folder, record)
        return Launched(folder, record, child)

    def answer_file(self, folder: NodeFolder) -> str:
        """Where the agent is told to write; one that keeps its transcript in output.txt would overwrite it there."""
        return str(folder.answer if self.agent.transcript else folder.output)

    def find(self, folder: NodeFolder) -> Identity | None:
        """The process of an intent whose pid was never recorded."""
        argv, cwd = self.argv(folder), str(self.root.path)
        found = process.find(lambda a, c: list(a) == argv and c in (cwd, ""))
        return found[0] if found else None
