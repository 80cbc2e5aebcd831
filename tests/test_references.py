"""dr/references.py and dr/cited.py: one number for one source, in order of appearance, each checked."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from dr import cited
from dr.findings import collect
from dr.layout import RunFolder
from dr.references import Numbering, Piece, name_nodes, pieces
from tests.run_folders import node, passage, run_folder

PLACE = "/docs/report.pdf"
DELIVERED = "The plant delivered 58.6 GWh of heat in 2024."
CLOSED = "The sea-water intake was closed for 37 days in 2024."
EVIDENCE = [
    passage(1, PLACE, f"Some words before. {DELIVERED} And after.", title="Operating Report", page=1),
    passage(2, PLACE, CLOSED, title="Operating Report", page=3),
]


def conclusion(*parts: tuple[str, str, str], place: str = PLACE) -> str:
    """(sentence, id, page) each quoted and listed, as our own subagent writes it."""
    body = " ".join(f"{sentence} [{i}]" for sentence, i, _ in parts)
    lines = [f'来源：{place}, p. {page} — "{sentence}" [{i}]' for sentence, i, page in parts]
    return "\n\n".join([f"[结论] {body}", "\n".join(lines)]) + "\n"


BOTH = conclusion((DELIVERED, "local-1", "1"), (CLOSED, "local-2", "3"))


def numbering(folder: RunFolder) -> Numbering:
    found = collect(folder)
    return Numbering({n.id: n.cited for n in found.nodes if n.cited}, found.language)


def numbered(numbering: Numbering, node_id: str | None, text: str) -> list[list[int]]:
    return [numbering.numbers(node_id, piece) for piece in pieces(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A is 5. [local-1] B is 6. [web-2]", [("A is 5. ", ("local-1",)), (" B is 6. ", ("web-2",))]),
        ("A is 5 [local-1]. B is 6 [web-2].", [("A is 5. ", ("local-1",)), (" B is 6. ", ("web-2",))]),
        ("甲是五[local-1]。乙是六。[local-2]", [("甲是五。", ("local-1",)), ("乙是六。", ("local-2",))]),
        ("A [local-1][local-2] [web-1] b", [("A ", ("local-1", "local-2", "web-1")), (" b", ())]),
        ("A [local-1, local-2].", [("A. ", ("local-1", "local-2"))]),
        ("A 【local-1】。", [("A。 ", ("local-1",))]),
        ("A [N1/local-1] b [N2:web-3]", [("A ", ("N1/local-1",)), (" b ", ("N2:web-3",))]),
        ("no citation, [1] is none, nor [note-1]", [("no citation, [1] is none, nor [note-1]", ())]),
    ],
)
def test_pieces(text: str, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert [(p.text, p.ids) for p in pieces(text)] == expected


def test_numbers_follow_the_first_appearance(tmp_path: Path) -> None:
    numbers = numbering(run_folder(tmp_path, {"N1": node(conclusion=BOTH, evidence=EVIDENCE)}))
    assert numbered(numbers, "N1", "Closed. [local-2] Delivered. [local-1] Closed. [local-2]") == [[1], [2], [1]]
    assert [(r.n, r.locator) for r in numbers.references()] == [(1, {"page": "3"}), (2, {"page": "1"})]


def test_a_reference_holds_what_it_rests_on(tmp_path: Path) -> None:
    numbers = numbering(run_folder(tmp_path, {"N1": node(conclusion=BOTH, evidence=EVIDENCE)}))
    numbered(numbers, "N1", f"{DELIVERED} [local-1]")
    (found,) = numbers.references()
    assert (found.title, found.place, found.quote) == ("Operating Report", PLACE, DELIVERED)
    assert found.passage == EVIDENCE[0]["text"]
    assert (found.check, found.nodes) == ("supported", ("N1",))


def test_the_same_words_of_the_same_place_are_one_reference(tmp_path: Path) -> None:
    other = conclusion((CLOSED, "local-1", "3"))
    evidence = [passage(1, PLACE, CLOSED, title="Operating Report", page=3)]
    nodes = {"N1": node(conclusion=BOTH, evidence=EVIDENCE), "N2": node(conclusion=other, evidence=evidence)}
    numbers = numbering(run_folder(tmp_path, nodes))
    assert numbered(numbers, "N1", "x [local-1] y [local-2]") == [[1], [2]]
    assert numbered(numbers, "N2", "z [local-1]") == [[2]]
    assert [r.nodes for r in numbers.references()] == [("N1",), ("N1", "N2")]


def test_the_same_place_with_another_quote_is_another_reference(tmp_path: Path) -> None:
    text = CLOSED + " " + DELIVERED
    nodes = {
        "N1": node(conclusion=conclusion((CLOSED, "local-1", "3")), evidence=[passage(1, PLACE, text, page=3)]),
        "N2": node(conclusion=conclusion((DELIVERED, "local-1", "3")), evidence=[passage(1, PLACE, text, page=3)]),
    }
    numbers = numbering(run_folder(tmp_path, nodes))
    assert numbered(numbers, "N1", "x [local-1]") + numbered(numbers, "N2", "y [local-1]") == [[1], [2]]


def test_unknown_ids_are_dropped_and_counted(tmp_path: Path) -> None:
    numbers = numbering(run_folder(tmp_path, {"N1": node(conclusion=BOTH, evidence=EVIDENCE)}))
    assert numbered(numbers, "N1", "x [local-1, local-9] y [web-1]") == [[1], []]
    assert list(numbers.dropped) == ["N1: local-9", "N1: web-1"]
    assert len(numbers.references()) == 1


def test_source_lines_without_evidence_are_references_not_checked(tmp_path: Path) -> None:
    text = '[结论] It was closed for weeks. Nobody knew why.\n\n来源：https://example.org/a — "closed for weeks"\n'
    numbers = numbering(run_folder(tmp_path, {"N1": node(type="WEB", conclusion=text)}))
    assert numbers.listed("N1") == [1]
    (found,) = numbers.references()
    assert (found.place, found.quote, found.check) == ("https://example.org/a", "closed for weeks", "not checked")
    assert found.title == "example.org/a"
    assert found.reason == "no passage is stored"


def test_a_snapshot_stands_in_for_missing_evidence(tmp_path: Path) -> None:
    lines = '来源：https://example.org/a/ — "closed for 37 days"\n'
    lines += '来源：https://example.org/a — "closed for 52 days in 2024"\n'
    folder = run_folder(tmp_path, {"N1": node(type="WEB", conclusion=f"[结论] It was closed. Long.\n\n{lines}")})
    folder.sources.mkdir()
    name = hashlib.sha256(b"x").hexdigest()
    (folder.sources / f"{name}.txt").write_text("The intake was closed for\n37 days in 2024.", encoding="utf-8")
    record = {"url": "https://example.org/a", "title": "A page", "fetched_at": 1, "media_type": "text/html"}
    (folder.sources / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    (folder.sources / "broken.json").write_text("{", encoding="utf-8")
    numbers = numbering(folder)
    numbers.listed("N1")
    first, second = numbers.references()
    assert (first.title, first.check) == ("A page", "supported")
    assert second.check != "supported"


def test_a_source_line_without_id_finds_the_passage_that_holds_its_quote(tmp_path: Path) -> None:
    text = f'[结论] It was closed. For long.\n\n来源：report.pdf — "{CLOSED}"\n'
    numbers = numbering(run_folder(tmp_path, {"N1": node(conclusion=text, evidence=EVIDENCE)}))
    numbers.listed("N1")
    (found,) = numbers.references()
    assert (found.place, found.locator, found.check) == (PLACE, {"page": "3"}, "supported")


def test_a_relative_path_is_made_absolute(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "facts.md").write_text("x", encoding="utf-8")
    text = '[结论] A fact. Two.\n\n来源：memory/facts.md, L3 — "x"\n来源：百度百科 — "y"\n'
    numbers = numbering(run_folder(tmp_path, {"N1": node(type="MEMORY", conclusion=text)}))
    numbers.listed("N1")
    first, second = numbers.references()
    assert (first.place, first.locator) == (str(tmp_path / "memory" / "facts.md"), {"line": "3"})
    assert second.place == "百度百科"


def test_another_value_in_the_passage_is_a_contradiction(tmp_path: Path) -> None:
    numbers = numbering(run_folder(tmp_path, {"N1": node(conclusion=BOTH, evidence=EVIDENCE)}))
    numbered(numbers, "N1", "The sea-water intake was closed for 73 days in 2024. [local-2]")
    (found,) = numbers.references()
    assert found.check == "contradicted"
    assert "37" in found.reason and "73" in found.reason


def test_one_wrong_sentence_spoils_a_reference(tmp_path: Path) -> None:
    numbers = numbering(run_folder(tmp_path, {"N1": node(conclusion=BOTH, evidence=EVIDENCE)}))
    numbered(numbers, "N1", f"{CLOSED} [local-2] The sea-water intake was closed for 73 days in 2024. [local-2]")
    assert [r.check for r in numbers.references()] == ["contradicted"]


def test_the_answer_names_the_node_of_a_citation(tmp_path: Path) -> None:
    nodes = {
        "N1": node(conclusion=BOTH, evidence=EVIDENCE),
        "N2": node(conclusion=conclusion((DELIVERED, "local-1", "1")), evidence=EVIDENCE[:1]),
        "N1_x": node(conclusion=conclusion((CLOSED, "web-7", "3")), evidence=[passage(7, PLACE, CLOSED, kind="web")]),
    }
    numbers = numbering(run_folder(tmp_path, nodes))
    assert numbered(numbers, None, "a [N2/local-1] b [N1: local-2] c [web-7]") == [[1], [2], [3]]
    assert numbered(numbers, None, "whose? [local-1]") == [[]]
    assert numbered(numbers, None, name_nodes("all of it [N1, N1_x]", numbers.nodes)) == [[1, 2, 3]]
    assert list(numbers.dropped) == ["local-1"]


def test_a_citation_vouches_for_the_sentence_before_it(tmp_path: Path) -> None:
    numbers = numbering(run_folder(tmp_path, {"N1": node(conclusion=BOTH, evidence=EVIDENCE)}))
    numbered(numbers, "N1", f"It cost 99 million euros in 1999. {CLOSED} [local-2]")
    assert [r.check for r in numbers.references()] == ["supported"]


def test_a_reference_quotes_all_that_the_report_says_of_its_passage(tmp_path: Path) -> None:
    text = "Before it all. The screen is fixed. The bars are 20 millimetres apart. Divers cleared it eleven times."
    lines = f'来源：{PLACE}, p. 3 — "The bars are 20 millimetres apart." [local-1]'
    nodes = {"N1": node(conclusion=f"[结论] x\n\n{lines}\n", evidence=[passage(1, PLACE, text, page=3)])}
    numbers = numbering(run_folder(tmp_path, nodes))
    numbered(numbers, "N1", "Divers cleared it eleven times. [local-1] In my words: bars. [local-1]")
    numbered(numbers, "N1", "The screen is fixed. The bars are 20 millimetres apart. [local-1]")
    (found,) = numbers.references()
    said = ("The screen is fixed.", "The bars are 20 millimetres apart.", "Divers cleared it eleven times.")
    assert found.quote == " … ".join(said)


def test_damaged_evidence_makes_gaps_not_errors(tmp_path: Path) -> None:
    nodes = {"N1": node(conclusion=BOTH, files={"evidence.jsonl": '{"id": 5}\nnot json\n{"id": "[x-1]", "kind"'})}
    numbers = numbering(run_folder(tmp_path, nodes))
    assert numbered(numbers, "N1", "x [local-1]") == [[1]]
    assert [(r.place, r.check) for r in numbers.references()] == [(PLACE, "not checked")]


def test_an_empty_conclusion_is_none(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, {"N1": node(conclusion=" \n")})
    assert cited.read_node(folder.node("N1"), tmp_path, {}) is None
    assert cited.read_node(folder.node("N9"), tmp_path, {}) is None


def test_pieces_lose_nothing_but_citations() -> None:
    text = "甲，乙 [local-1]。 Then\n- c [web-2]! d"
    assert "".join(p.text for p in pieces(text)).replace(" ", "") == "甲，乙。Then\n-c!d"
    assert list(pieces("")) == []
    assert list(pieces("[local-1]")) == [Piece("", ("local-1",))]
