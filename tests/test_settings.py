"""Settings: the order of their sources, types, unknown keys, and that the example file is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import PROJECT

from dr.errors import UsageError
from dr.settings import SECRETS, Settings, from_record, keys, load, to_environment, to_record, variable


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, {}, {}).max_parallel == 8
    (tmp_path / "config.yaml").write_text("max_parallel: 2\nmax_rounds: 3\nmax_replans: 1\n", encoding="utf-8")
    environ = {"DR_MAX_PARALLEL": "3", "DR_MAX_ROUNDS": "2"}
    found = load(tmp_path, {"max_parallel": 4, "max_replans": None}, environ)
    assert (found.max_parallel, found.max_rounds, found.max_replans) == (4, 2, 1)


def test_nested_keys(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("agents:\n  code_agent:\n    timeout: 20\n", encoding="utf-8")
    assert load(tmp_path, {}, {}).agents.code_agent.timeout == 20
    assert load(tmp_path, {}, {"DR_AGENTS_CODE_AGENT_TIMEOUT": "30"}).agents.code_agent.timeout == 30


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("max_paralell: 2", "max_paralell"),
        ("agents: {code_agent: {timeout: soon}}", "timeout"),
        ("- a\n- b", "mapping"),
        ("a: [", "YAML"),
        ("mind: genius", "genius"),
        ("max_parallel: 0", "less than 1"),
        ("max_parallel: 1.5", "int"),
        ("max_parallel: true", "int"),
        ("max_parallel:", "empty"),
        ("allow_private: perhaps", "bool"),
        ("max_seconds: .inf", "float"),
    ],
)
def test_a_wrong_file_is_a_usage_error_that_names_the_fault(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=word):
        load(tmp_path, {}, {})


@pytest.mark.parametrize("text", ["max_parallel: .inf", "a: " + "[" * 5000, "a: 2024-99-99"])
def test_a_hostile_file_is_a_usage_error_too(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"config\.yaml"):
        load(tmp_path, {}, {})


def test_an_unknown_variable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="DR_MAX_PARALEL"):
        load(tmp_path, {}, {"DR_MAX_PARALEL": "3", "PATH": "/bin"})


def test_the_environment_of_a_subagent_reads_back_equal(tmp_path: Path) -> None:
    settings = load(tmp_path, {"max_seconds": 9.5, "memory": "笔记", "allow_private": True, "api_key": "k"}, {})
    assert load(tmp_path, {}, to_environment(settings)) == settings


def test_the_record_holds_no_secret_and_reads_back(tmp_path: Path) -> None:
    settings = load(tmp_path, {"api_key": "sk-secret", "max_rounds": 1}, {})
    record = to_record(settings)
    assert "sk-secret" not in str(record)
    assert from_record(record, Settings(api_key="sk-secret")) == settings


def test_the_example_file_shows_every_key_with_its_default() -> None:
    def flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in data.items():
            found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        return found

    example = flat(yaml.safe_load((PROJECT / "config.example.yaml").read_text(encoding="utf-8")))
    assert example == {key: value for key, value, _ in keys()}


def test_variables_are_unambiguous() -> None:
    names = [variable(key) for key, _, _ in keys()]
    assert len(names) == len(set(names))
    assert {k for k, _, _ in keys()} >= SECRETS
