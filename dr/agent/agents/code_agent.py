"""CodeAgent: code or a script -> its output and files. Runs in code/ of the node folder, keeps files in artifacts/."""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dr import files
from dr.agent import artefacts, sandbox
from dr.agent.artefacts import Artefact
from dr.agent.code_words import say, statement
from dr.agent.sandbox import ScriptResult
from dr.errors import UsageError
from dr.layout import NodeFolder
from dr.settings import Settings

_TAIL_LINES, _TAIL_CHARS = 3, 400


@dataclass(frozen=True)
class CodeResult:
    """One run. output, errors: what it printed. timeout: ended for its time. artefacts: its files, in artifacts/.

    script: the file that was run, sha256 of its bytes; seconds_allowed: its timeout.
    """

    output: str
    errors: str
    timeout: bool
    artefacts: list[Artefact]
    script: Path
    sha256: str
    seconds_allowed: float
    run: ScriptResult

    @property
    def ok(self) -> bool:
        return self.run.ok

    def statement(self, lang: str) -> str:
        """What held the script, in the question's language."""
        return statement(self.run.enforced, self.run.not_enforced, self.run.why_not, lang)

    def failure(self, lang: str) -> str:
        """Why it failed, with the last lines of its error output; "" when it did not."""
        if self.ok:
            return ""
        code = self.run.exit_code or 0
        if self.run.ended:
            why = say(lang, f"failed_{self.run.ended}", timeout=self.seconds_allowed)
        else:
            why = say(lang, "failed_signal", signal=code - 128) if code > 128 else say(lang, "failed_exit", code=code)
        # Without the lines of a traceback that only point.
        lines = [" ".join(line.split()) for line in self.errors.splitlines() if any(c.isalnum() for c in line)]
        tail = " | ".join("".join(c for c in line if c.isprintable()) for line in lines[-_TAIL_LINES:])
        tail = tail if len(tail) <= _TAIL_CHARS else "…" + tail[1 - _TAIL_CHARS :]
        return say(lang, "clause").join([why, say(lang, "stderr_tail", tail=tail)] if tail else [why])


class CodeAgent:
    """read_only: files and folders that a script may read, also by their names in its own folder; hidden: never."""

    def __init__(
        self,
        settings: Settings,
        folder: NodeFolder,
        language: str,
        *,
        read_only: Sequence[Path] = (),
        hidden: Sequence[Path] = (),
        isolation: str = sandbox.AUTO,
        interpreter: str = sys.executable,
    ) -> None:
        self.enabled, self.timeout = settings.agents.code_agent.enabled, settings.agents.code_agent.timeout
        self._folder, self._language, self._interpreter = folder, language, interpreter
        self._read_only, self._hidden, self._isolation = list(read_only), list(hidden), isolation
        artefacts.remove(folder.code)  # left by one that was killed

    def execute(self, code: str | Path, timeout: float | None = None) -> CodeResult:
        """Run Python code, or a script by its path; `timeout` in seconds (None: that of the settings).

        A run that fails is a result; UsageError when the agent is switched off, SourceError when it is no script.
        """
        if not self.enabled:
            lang = self._language
            raise UsageError(say(lang, "tried_node"), say(lang, "disabled"), say(lang, "next_enable"))
        allowed = self.timeout if timeout is None else timeout
        script = code.absolute() if isinstance(code, Path) else self._keep(code)
        digest = hashlib.sha256(script.read_bytes()).hexdigest()
        work = self._folder.code / "work"
        given = self._put(work, script)
        try:
            run = sandbox.run_script(
                script,
                timeout=allowed,
                work=work,
                read_only=self._read_only,
                hidden=self._hidden,
                isolation=self._isolation,
                interpreter=self._interpreter,
            )
            kept = [a for a in run.artefacts if given.get(a.name) != a.size]
            moved = artefacts.move(kept, self._folder.artifacts)
            run = replace(run, artefacts=moved, left_out=[name for name in run.left_out if name not in given])
        finally:
            artefacts.remove(self._folder.code)
        return CodeResult(run.stdout, run.stderr, run.ended == "time", moved, script, digest, allowed, run)

    def _keep(self, code: str) -> Path:
        """Code that is in no file yet, where a reader of the citation will find it; the same code in the same file."""
        self._folder.artifacts.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            script = self._folder.artifacts / f"code-{number}.py"
            if not os.path.lexists(script):
                files.write_text(script, code)
                break
            if script.is_file() and files.read_text(script) == code:
                break
        return script

    def _put(self, work: Path, script: Path) -> dict[str, int]:
        """Links in the script's folder to what it may read: name -> -1; a copy's size where there are no links."""
        work.mkdir(parents=True)
        put: dict[str, int] = {}
        for path in self._read_only:
            link = work / path.name
            if path == script or link.is_symlink() or link.exists():
                continue
            try:
                link.symlink_to(path.absolute(), target_is_directory=path.is_dir())
                put[artefacts.safe(link.name)] = -1
            except OSError:  # Windows without the right to make them
                if path.is_file():
                    import shutil

                    shutil.copyfile(path, link)
                    put[artefacts.safe(link.name)] = link.stat().st_size
        return put
