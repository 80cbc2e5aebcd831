"""`verify` by the real command: honest reports agree; planted faults are caught."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import dr, result


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "bridge.md").write_text(
        "# Harbour bridge\n\nThe harbour bridge was opened in 1932. It is 503 metres long and carries eight lanes.\n",
        encoding="utf-8",
    )
    done = dr(tmp_path, "When was the harbour bridge opened, and how long is it?", "--source", "docs", "--task", "t")
    assert done.code == 0, done.err
    return tmp_path


def verify(root: Path) -> dict[str, object]:
    done = dr(root, "verify", "t", "--json")
    assert (done.code, done.err) == (0, "")
    return done.json()


def conclusion(root: Path) -> Path:
    return root / "temp" / "dr_t" / "N1" / "conclusion.md"


def test_an_honest_report_agrees_with_itself(finished: Path) -> None:
    data = verify(finished)
    assert data["supported"] == len(result(finished, "t")["references"]) > 0
    assert (data["contradicted"], data["not_checked"], data["report_agrees"]) == (0, 0, True)
    assert set(data["sources"].values()) == {"same"}  # type: ignore[attr-defined]


def test_an_altered_number_is_contradicted(finished: Path) -> None:
    path = conclusion(finished)
    path.write_text(path.read_text(encoding="utf-8").replace("503 metres", "530 metres"), encoding="utf-8")
    data = verify(finished)
    assert data["contradicted"] == 1
    assert data["report_agrees"] is False


def test_a_misquoted_sentence_is_not_supported(finished: Path) -> None:
    path = conclusion(finished)
    text = path.read_text(encoding="utf-8")
    assert "carries eight lanes" in text
    path.write_text(text.replace("carries eight lanes", "was paid for by a lottery of the town"), encoding="utf-8")
    assert verify(finished)["supported"] == 0


def test_a_quote_from_another_source_is_not_supported(finished: Path) -> None:
    evidence = finished / "temp/dr_t/N1/evidence.jsonl"
    records = [json.loads(line) for line in evidence.read_text(encoding="utf-8").splitlines()]
    for record in records:
        record["text"] = "Tramways were given up in 1961 after a long dispute about fares."
    evidence.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    assert verify(finished)["supported"] == 0


def test_an_invented_id_leads_nowhere_and_is_counted(finished: Path) -> None:
    path = conclusion(finished)
    text = path.read_text(encoding="utf-8").replace("[local-1]", "[local-1] The mayor cut the ribbon. [local-77]", 1)
    path.write_text(text, encoding="utf-8")
    assert all("local-77" not in str(r) for r in verify(finished)["references"])  # type: ignore[attr-defined]


def test_a_changed_and_a_missing_source_are_said(finished: Path) -> None:
    source = finished / "docs" / "bridge.md"
    source.write_text(source.read_text(encoding="utf-8") + "\nIt was repainted in 2001.\n", encoding="utf-8")
    data = verify(finished)
    assert list(data["sources"].values()) == ["changed"]  # type: ignore[attr-defined]
    assert data["report_agrees"] is True  # the stored passage is what the report rests on
    source.unlink()
    assert "no longer there" in dr(finished, "verify", "t").out


def test_without_a_report_it_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Water boils at 100 degrees.", encoding="utf-8")
    dr(tmp_path, "plan", "When does water boil?", "--source", "a.txt", "--task", "t")
    done = dr(tmp_path, "verify", "t")
    assert done.code == 2
    assert "resume t" in done.err
