"""All settings in one frozen object: defaults < config.yaml < DR_* variables < flags. Unknown keys are errors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from dr.errors import UsageError

PREFIX = "DR_"
# Read from the environment by the entry points before there are settings; not settings themselves.
NOT_SETTINGS = {"DR_ROOT"}


def _setting(default: Any, help_: str, *, choices: tuple[str, ...] = (), least: float | None = None) -> Any:
    return field(default=default, metadata={"help": help_, "choices": choices, "least": least})


@dataclass(frozen=True)
class ModelAgent:
    """One agent of the Solve Loop that a chat model plays."""

    enabled: bool = True
    model: str = ""  # empty: the `model` of the settings
    temperature: float = 0.3


@dataclass(frozen=True)
class CodeAgentSettings:
    enabled: bool = True
    timeout: int = 10  # seconds for one script


@dataclass(frozen=True)
class Agents:
    plan_agent: ModelAgent = field(default_factory=ModelAgent)
    manager_agent: ModelAgent = field(default_factory=ModelAgent)
    solve_agent: ModelAgent = field(default_factory=lambda: ModelAgent(temperature=0.4))
    code_agent: CodeAgentSettings = field(default_factory=CodeAgentSettings)
    check_agent: ModelAgent = field(default_factory=ModelAgent)
    precision_answer_agent: ModelAgent = field(default_factory=lambda: ModelAgent(enabled=False, temperature=0.2))


@dataclass(frozen=True)
class System:
    max_solve_correction_iterations: int = _setting(3, "attempts in all for one step of the Solve Loop", least=1)


@dataclass(frozen=True)
class Settings:
    agent: str = _setting("auto", "who runs a node: auto, own, or a file")
    mind: str = _setting("auto", "who thinks", choices=("auto", "model", "agent", "offline"))
    max_parallel: int = _setting(8, "subagents at a time", least=1)
    min_rounds: int = _setting(2, "rounds before the report, unless one node answers everything", least=1)
    max_rounds: int = _setting(4, "rounds at most; 1 = no deepening", least=1)
    max_steps: int | None = _setting(None, "attempts at most (default: 3 x first plan + 6, at least 12)", least=0)
    max_replans: int = _setting(5, "calls of the planner after failures at most", least=0)
    max_seconds: float | None = _setting(None, "seconds for the run, 15 % kept for the report", least=1)
    max_tokens: int | None = _setting(None, "tokens for the run, 15 % kept for the report", least=1)
    on_failure: str = _setting("replan", "what a failed node leads to", choices=("replan", "skip", "abort"))
    node_attempts: int = _setting(3, "attempts of one node in all", least=1)
    node_timeout_s: float = _setting(1800.0, "seconds after which an attempt is ended", least=0.1)
    stall_s: float = _setting(1200.0, "seconds without any change after which an attempt is ended", least=0.1)
    stable_s: float = _setting(
        2.0, "seconds of standing still that mean done, for agents without [ROUND END]", least=0.1
    )
    grace_s: float = _setting(3.0, "seconds between asking a process to end and ending it", least=0)
    memory: str | None = _setting(None, "folder that MEMORY nodes read")
    launch: str | None = _setting(None, "command put in front of a subagent; {job} is the task and node")
    cancel: str | None = _setting(None, "command run after ending a launched subagent; {job} as above")
    llm_no: int | None = _setting(None, "number of the model for agents that know --llm_no", least=0)
    allow_private: bool = _setting(False, "WEB nodes may fetch private and link-local addresses")
    searxng_url: str = _setting("", "address of a SearXNG that answers in JSON, for WEB nodes whose source is keywords")
    search_api_key: str = _setting("", "key for search_url; never written anywhere")
    search_url: str = _setting("https://api.tavily.com/search", "address of a search API of Tavily's form")
    search_results: int = _setting(5, "pages of one search that are fetched", least=1)
    model: str = _setting("", "name of the chat model")
    base_url: str = _setting("", "address of an OpenAI-compatible API, up to and with /v1")
    api_key: str = _setting("", "key for base_url; never written anywhere")
    stream: bool = _setting(True, "ask the chat model for its reply piece by piece")
    model_timeout_s: float = _setting(
        300.0, "seconds without a word after which a call of the chat model is given up", least=1
    )
    system: System = field(default_factory=System)
    agents: Agents = field(default_factory=Agents)


SECRETS = frozenset({"api_key", "search_api_key"})


def keys(settings: Any = None, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(dotted key, value, dataclass field) of every leaf."""
    settings = Settings() if settings is None else settings
    for item in fields(settings):
        value = getattr(settings, item.name)
        if is_dataclass(value):
            yield from keys(value, f"{prefix}{item.name}.")
        else:
            yield prefix + item.name, value, item


def variable(key: str) -> str:
    """The environment variable of a dotted key."""
    return PREFIX + key.upper().replace(".", "_")


def load(root: Path, flags: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Settings:
    """The effective settings. `flags`: dotted key -> value, None meaning not given. UsageError on anything unknown."""
    environ = os.environ if environ is None else environ
    settings = Settings()
    config = root / "config.yaml"
    if config.is_file():
        settings = _apply(settings, _read_config(config), str(config))
    by_variable = {variable(key): key for key, _, _ in keys()}
    given = {n: v for n, v in environ.items() if n.startswith(PREFIX) and n not in NOT_SETTINGS}
    if unknown := [n for n in given if n not in by_variable]:
        raise UsageError(
            "read the settings from the environment", f"unknown {', '.join(unknown)}", "unset it, or correct its name"
        )
    settings = _apply(settings, {by_variable[n]: v for n, v in given.items()}, "the environment (DR_*)")
    return apply_flags(settings, flags)


def apply_flags(settings: Settings, flags: Mapping[str, Any]) -> Settings:
    """Flags over settings; None means not given."""
    return _apply(settings, {k: v for k, v in flags.items() if v is not None}, "the command line")


def _read_config(path: Path) -> dict[str, Any]:
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: bytes, or a date that does not exist
        raise UsageError(f"read {path}", f"not valid YAML ({error})", "compare with config.example.yaml") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise UsageError(f"read {path}", "a mapping of settings is expected", "compare with config.example.yaml")
    return dict(_flatten(data))


def _flatten(data: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _apply(settings: Settings, values: Mapping[str, Any], origin: str) -> Settings:
    known = {key: (value, item) for key, value, item in keys(settings)}
    for key, raw in values.items():
        if key not in known:
            near = ", ".join(k for k in known if key.split(".")[-1].replace("_s", "") in k) or "config.example.yaml"
            raise UsageError(f"read the settings of {origin}", f"unknown key {key!r}", f"known ones: see {near}")
        settings = _replaced(settings, key.split("."), _convert(key, raw, known[key][1], origin))
    return settings


def _replaced(node: Any, path: list[str], value: Any) -> Any:
    if len(path) == 1:
        return replace(node, **{path[0]: value})
    return replace(node, **{path[0]: _replaced(getattr(node, path[0]), path[1:], value)})


_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def _convert(key: str, raw: Any, item: Any, origin: str) -> Any:
    """`raw` as the type of the setting; its annotation is text like "int | None"."""
    kind = str(item.type)
    if raw is None or (isinstance(raw, str) and raw == "" and "None" in kind):
        if "None" in kind:
            return None
        raise UsageError(f"read {key} from {origin}", "it is empty", f"give a value of type {kind}")
    try:
        if kind.startswith("bool"):
            text = str(raw).strip().lower()
            if text not in _TRUE | _FALSE:
                raise ValueError
            value: Any = text in _TRUE
        elif kind.startswith("int"):
            if isinstance(raw, bool) or (isinstance(raw, float) and raw != int(raw)):
                raise ValueError
            value = int(raw)
        elif kind.startswith("float"):
            value = float(raw)
            if value != value or value in (float("inf"), float("-inf")):
                raise ValueError
        else:
            value = str(raw)
    except (ValueError, TypeError, OverflowError):
        raise UsageError(
            f"read {key} from {origin}", f"{raw!r} is not of type {kind.split(' ')[0]}", "correct the value"
        ) from None
    choices, least = item.metadata.get("choices"), item.metadata.get("least")
    if choices and value not in choices:
        raise UsageError(
            f"read {key} from {origin}", f"{value!r} is none of {', '.join(choices)}", "choose one of them"
        )
    if least is not None and value < least:
        raise UsageError(f"read {key} from {origin}", f"{value} is less than {least:g}", "give a larger value")
    return value


def to_environment(settings: Settings) -> dict[str, str]:
    """The settings as DR_* variables, for our own subagent: what it reads back is equal."""
    return {variable(key): "" if value is None else str(value) for key, value, _ in keys(settings)}


def to_record(settings: Settings) -> dict[str, Any]:
    """The settings as run.json keeps them: dotted keys, secrets left out."""
    return {key: value for key, value, _ in keys(settings) if key not in SECRETS}


def from_record(record: Mapping[str, Any], base: Settings) -> Settings:
    """The settings of an earlier run over `base` (which brings the secrets); keys no longer known are errors."""
    return _apply(base, record, "run.json")
