"""dr/page.py, dr/page_view.py, dr/page_text.py: what stands in report.html and index.html; nothing in it acts."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from dr import page, page_text, report
from dr.findings import collect
from dr.layout import PACKAGE, RunFolder
from tests.folders import KINDS, START, story
from tests.run_folders import node, passage, run_folder

VOID = {"meta", "br", "hr", "img", "link", "input"}
LABELS = {
    **{"completed": "Complete", "partial": "Partial", "exhausted": "Partial: budget spent", "failed": "Failed"},
    **{"interrupted": "Interrupted", "running": "Running"},
}


class Parsed(HTMLParser):
    """Tags, attributes and text of a page. Fails on tags that do not nest."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[tuple[str, str]] = []
        self.texts: list[tuple[str, str]] = []  # class of the nearest element, text
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {k: v or "" for k, v in attrs}
        self.tags.append((tag, found))
        if tag not in VOID:
            self.open.append((tag, found.get("class", "")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {k: v or "" for k, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1][0] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip() and not any(tag == "style" for tag, _ in self.open):
            self.texts.append((self.open[-1][1] if self.open else "", data))

    @property
    def text(self) -> str:
        return " ".join(" ".join(text for _, text in self.texts).split())

    def ids(self) -> list[str]:
        return [attrs["id"] for _, attrs in self.tags if "id" in attrs]

    def links(self) -> list[dict[str, str]]:
        return [attrs for tag, attrs in self.tags if tag == "a"]

    def of_class(self, name: str) -> list[str]:
        return [text.strip() for classes, text in self.texts if name in classes.split()]


def made(folder: RunFolder) -> str:
    return page.page(folder, clock=lambda: START + 14)


def check_structure(html: str) -> Parsed:
    """What holds for every page."""
    parsed = Parsed(html)
    ids = parsed.ids()
    assert len(ids) == len(set(ids))
    for attrs in parsed.links():
        link = attrs["href"]
        if link.startswith("#"):
            assert link in ("#_",) or unquote(link[1:]) in ids, link
        elif link.startswith(("http://", "https://")):
            assert set(attrs["rel"].split()) == {"noreferrer", "noopener"}
        else:
            assert ":" not in link.split("/")[0], link
    tags = {tag for tag, _ in parsed.tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "video", "audio", "use"}
    for _, attrs in parsed.tags:
        assert not {k for k in attrs if k.startswith("on") or k in ("src", "srcset", "srcdoc", "action", "poster")}
    policy = next(a["content"] for t, a in parsed.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert not re.search(r"@import|url\((?!#)", html.split("</style>")[0])
    return parsed


@pytest.mark.parametrize(("kind", "lang", "size"), [*product(KINDS, ["en", "zh"], [5]), ("partial", "zh", 40)])
def test_structure_of_every_kind_of_page(tmp_path: Path, kind: str, lang: str, size: int) -> None:
    folder = story(tmp_path, size=size, lang=lang, kind=kind)
    parsed = check_structure(made(folder))
    findings = collect(folder)
    for found in findings.nodes:
        assert f"node-{found.id}" in parsed.ids()
        assert [a for a in parsed.links() if a["href"] == f"#node-{found.id}" and "box" in a.get("class", "")]
        assert found.sub_question in parsed.text
    (html,) = [attrs for tag, attrs in parsed.tags if tag == "html"]
    assert html == {"lang": "zh-Hans" if lang == "zh" else "en", "class": f"k-{kind}"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_a_run_is_told_at_first_glance(tmp_path: Path, kind: str) -> None:
    parsed = Parsed(made(story(tmp_path, kind=kind)))
    assert parsed.of_class("banner-kind") == [LABELS[kind]]
    (mark,) = parsed.of_class("banner-mark")
    title = next(text for _, text in parsed.texts)
    assert title.startswith(f"{mark} {LABELS[kind]} · ")
    reloads = [a["content"] for _, a in parsed.tags if a.get("http-equiv") == "refresh"]
    assert reloads == (["5"] if kind == "running" else [])
    assert ("python dr_runner.py resume t" in parsed.text) == (kind in ("interrupted", "running"))


def test_marks_and_words_of_the_ends_differ() -> None:
    from dr.page_head import MARKS
    from dr.words import say

    assert len(set(MARKS.values())) == len(MARKS)
    for lang in ("zh", "en"):
        assert len({say(lang, f"page_kind_{kind}") for kind in MARKS}) == len(MARKS)


def test_a_claim_opens_its_passage(tmp_path: Path) -> None:
    parsed = Parsed(made(story(tmp_path)))
    cites = [a for a in parsed.links() if a.get("class") == "cite"]
    assert cites
    for cite in cites:
        back = [a for a in parsed.links() if a["href"] == f"#{cite['id']}"]
        assert len(back) == 1 and back[0]["role"] == "doc-backlink"
        assert cite["href"] in {f"#{i}" for i in parsed.ids() if i.startswith("ref-")}
    html = made(story(tmp_path / "again"))
    first = html[html.index('<li id="ref-1"') :].split("</li>")[0]
    assert "<mark>The plant delivered 58.6 GWh of heat in 2024.</mark>" in first
    assert "Losses in the network" in first and "p. 3" in first and "/docs/operating-report-2024-0.pdf" in first
    assert 'class="check c-supported"' in first
    assert 'docs/operating-report-2024-0.pdf#page=3"' in first


def test_a_quote_that_does_not_stand_in_its_passage_is_shown_as_such(tmp_path: Path) -> None:
    nodes = {
        "N1": node(
            conclusion='[结论] It was 70 GWh of heat. [local-1]\n\n来源：/d/a — "It was 70 GWh of heat." [local-1]\n',
            evidence=[passage(1, "/d/a", "It was 58 GWh of heat.")],
        )
    }
    html = made(run_folder(tmp_path, nodes))
    check_structure(html)
    reference = html[html.index('<li id="ref-1"') :].split("</li>")[0]
    assert "c-contradicted" in reference and "<mark>" not in reference
    assert "passage lost" in reference and "It was 58 GWh of heat." in reference


def test_conflicts_stand_side_by_side(tmp_path: Path) -> None:
    html = made(story(tmp_path))
    conflict = html[html.index('class="conflict"') :].split("</section>")[0]
    assert [side.count('class="value"') for side in conflict.split('class="side"')[1:]] == [1, 1]
    assert "58.6 GWh" in conflict and "64.0 GWh" in conflict and 'class="cite"' in conflict


def test_nodes_that_give_the_same_value_stand_on_the_same_side(tmp_path: Path) -> None:
    folder = story(tmp_path)
    (conflict,) = json.loads(folder.conflicts.read_text(encoding="utf-8"))
    conflict["values"].append({**conflict["values"][0], "node": "N2", "citation": "web-2", "value": "58.6 gwh"})
    folder.conflicts.write_text(json.dumps([conflict]), encoding="utf-8")
    html = made(folder)
    first, second = html[html.index('class="conflict"') :].split("</section>")[0].split('class="side"')[1:]
    assert 'href="#node-N1"' in first and 'href="#node-N2"' in first and first.count('class="cite"') == 2
    assert "64.0 GWh" in second


def test_removed_nodes_are_struck_through_and_added_ones_marked(tmp_path: Path) -> None:
    html = made(story(tmp_path, size=12, kind="partial"))
    parsed = check_structure(html)
    (removed,) = [a for a in parsed.links() if "s-removed" in a.get("class", "")]
    assert removed["href"] == "#node-N_old" and removed["aria-label"].startswith("N_old, WEB, removed from the plan")
    assert '<p class="removed" id="node-N_old"><del>N_old</del>' in html
    assert "added, revision 1" in parsed.text and "deepening 1" in parsed.text and "deepening 2" in parsed.text


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><script>alert(1)</script>",
    "</title></svg><svg onload=alert(1)>",
    "[click](javascript:alert(1)) ![](http://evil.example/x.png) <http://evil.example/>",
    "{{ 7*7 }}{% raw %}",
    "\u202eevil\u2066 \u0000 \x08",
    "x" * 10_240,
    "[1] [99] `[1]` ```\n## References\n```",
    "&lt;b&gt; &#60;script&#62;",
]


def hostile_folder(temp: Path) -> RunFolder:
    """Every field that comes from outside holds hostile text."""
    nodes: dict[str, dict[str, Any]] = {}
    for number, text in enumerate(HOSTILE):
        line = " ".join(text.replace("\x00", "").replace("|", "/").split())
        said = text[:1000]
        facts: dict[str, Any] = {
            "conclusion": f"[结论] {said} It was 5 GWh. [web-1]\n\n{said}\n\n"
            f'来源：javascript:alert({number}), p. <b>1</b> — "{line[:200]} 5 GWh" [web-1]\n',
            "evidence": [
                passage(1, f"http://evil.example/{number}?{line[:80]}", f"{said} 5 GWh", kind="web", title=text),
                passage(2, f"javascript:alert({number})", said, title=text, page="<i>3"),
            ],
        }
        process = {"error": text, "reservation": [text], "attempt": 1}
        nodes[f"N{number}"] = node(line, **facts, process=process)
        nodes[f"F{number}"] = node(line, state="failed", process=process)
    folder = run_folder(temp, nodes, " ".join(HOSTILE[0].split()), mind="<b>", agent="</code><script>", notes=HOSTILE)
    record = json.loads(folder.run.read_text(encoding="utf-8"))
    record["question"] = " ".join(HOSTILE)
    record["rounds"] += [{"round": 2, "nodes": ["N1", '"><script>'], "why": HOSTILE[1]}]
    record["revisions"] = [{"revision": 1, "removed": ['<script>"', "old"], "added": ["N2"], "revised": [HOSTILE[2]]}]
    folder.run.write_text(json.dumps(record), encoding="utf-8")
    lines = [
        {"ts": 1000.0, "type": "attempt.start", "node": 'a"b<script>', "attempt": 1, "question": HOSTILE[0]},
        {"ts": 1e300, "type": "attempt.end", "node": "N1", "attempt": 1, "outcome": HOSTILE[1], "reason": HOSTILE[2]},
        {"ts": 1.0, "type": "plan.commit", "steps": [{"id": "old", "tool": HOSTILE[1]}, 7]},
        {"ts": "no", "type": "edit", "added": 7, "removed": [HOSTILE[3]]},
    ]
    folder.events.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{cut", encoding="utf-8")
    values = [{"value": text, "node": "N0", "citation": "web-1", "sentence": text} for text in HOSTILE[:3]]
    folder.conflicts.write_text(json.dumps([{"quantity": HOSTILE[1], "values": values}]), encoding="utf-8")
    return folder


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    html = made(hostile_folder(tmp_path))
    parsed = check_structure(html)
    assert "<script>alert(1)</script>" in parsed.text and "{{ 7*7 }}" in parsed.text
    links = {a["href"] for a in parsed.links()}
    assert not [link for link in links if "javascript" in link.split("/")[0].casefold()]
    assert all("evil.example/" in link for link in links if link.startswith("http"))
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08]", html)
    assert html.count("<style>") == html.count("</style>") == 2  # the page's and the picture's


@pytest.mark.parametrize(
    ("place", "link"),
    [
        ("https://a.example/x?y=1#z", "https://a.example/x?y=1#z"),
        *((p, None) for p in ("javascript:alert(1)", "data:text/html,x", "http://", "http://[", "ftp://a/b", "a b")),
    ],
)
def test_only_web_addresses_are_links(place: str, link: str | None) -> None:
    assert page_text.web_link(place) == link


def test_a_file_is_linked_from_where_the_page_lies() -> None:
    folder = Path("/r/temp/dr_t")
    assert page_text.file_link("/r/docs/a b.pdf", folder, "3") == "../../docs/a%20b.pdf#page=3"
    assert page_text.file_link("/r/temp/dr_t/javascript:x", folder) == "javascript%3Ax"
    assert page_text.file_link("docs/a.pdf", folder) is None


def test_citations_are_links_only_where_the_report_put_them() -> None:
    texts = page_text.Texts(2)
    html = texts.html("One [1] two \\[2\\] `[1]` [3].")
    assert html.count('class="cite"') == 1 and dict(texts.places) == {1: ["c1-1"]}
    assert "two [2] <code>[1]</code> [3]." in html


def test_an_empty_or_damaged_folder_makes_a_page(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "temp" / "dr_t")
    folder.path.mkdir(parents=True)
    check_structure(made(folder))
    folder.run.write_text("{", encoding="utf-8")
    folder.dag.write_text("no plan", encoding="utf-8")
    folder.events.write_text("\x00", encoding="utf-8")
    folder.conflicts.write_text('{"a": 1}', encoding="utf-8")
    check_structure(made(folder))


def test_the_sections_of_report_md_are_taken_whole(tmp_path: Path) -> None:
    fence = "[结论] It rained. [local-1]\n\n```\n\n## What is open, and why\n\nnothing\n```\n"
    nodes = {"N1": node(conclusion=fence, evidence=[passage(1, "/d/a.md", "It rained.")]), "N2": node(state="failed")}
    html = made(run_folder(tmp_path, nodes))
    open_ = html[html.index('<section id="open"') :].split("</section>")[0]
    assert "1 of 2 nodes answered, 1 failed" in open_ and "nothing" not in open_


def test_files_are_written_and_a_report_at_hand_is_used(tmp_path: Path) -> None:
    folder = story(tmp_path)
    done = report.write(collect(folder), "Only this [N1/local-1].")
    assert page.write_report_page(folder, done) == folder.report_html
    assert page.write_index(folder) == folder.index_html
    written = Parsed(folder.report_html.read_text(encoding="utf-8")).text
    assert "Only this." in written and "No language model wrote" not in written
    assert "No language model wrote" in Parsed(folder.index_html.read_text(encoding="utf-8")).text
    assert not list(folder.path.glob(".*.tmp"))


def test_the_live_page_is_written_rarely(tmp_path: Path) -> None:
    folder, now = story(tmp_path, kind="running"), [100.0]
    written: list[float] = []

    def clock() -> float:
        now[0] += 0.02  # a look at the clock before and after: each page takes 20 ms
        return now[0]

    live = page.LivePage(folder, clock=clock)
    while now[0] < 110:
        if live.update():
            written.append(now[0])
        now[0] += 0.1
    assert len(written) == 5, "20 ms of work leave 2 s of rest"
    folder.index_html.unlink()
    live.finish()
    assert folder.index_html.exists()


def test_a_very_large_run_still_has_a_page(tmp_path: Path) -> None:
    html = made(story(tmp_path, size=310, kind="partial"))
    assert len(html.encode("utf-8")) < page.MAX_BYTES
    check_structure(html)


def test_a_page_over_the_limit_shows_less_of_each_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = story(tmp_path, size=20)
    whole = made(folder)
    monkeypatch.setattr(page, "MAX_BYTES", len(whole.encode("utf-8")) - 1)
    less = made(folder)
    assert len(less) < len(whole)
    assert Parsed(less).ids() == Parsed(whole).ids()


# -- colours ----------------------------------------------------------------------------------------------------------


def _colours() -> dict[str, dict[str, str]]:
    css = (PACKAGE / "templates" / "page.css").read_text(encoding="utf-8")
    light, dark = css.split("prefers-color-scheme: dark")[0], css.split("prefers-color-scheme: dark")[1].split("}")[0]
    schemes = {
        name: dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})\b", text)) for name, text in (("l", light), ("d", dark))
    }
    return {"light": schemes["l"], "dark": {**schemes["l"], **schemes["d"]}}


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


TONES = ("done", "failed", "running", "partial", "skipped", "pending", "deep")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(scheme: str) -> None:
    """WCAG AA: 4.5 to 1."""
    colours = _colours()[scheme]
    pairs = [
        *product(("ink", "soft", "accent"), ("paper", "card", "fill")),
        ("mark-ink", "mark"),
        ("accent", "running-fill"),
    ]
    pairs += [(tone, f"{tone}-fill") for tone in TONES] + [(tone, "card") for tone in TONES]
    pairs += [("soft", f"{tone}-fill") for tone in TONES] + [("ink", f"{tone}-fill") for tone in TONES]
    for text, ground in pairs:
        high, low = sorted((_luminance(colours[text]), _luminance(colours[ground])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, f"{text} on {ground}"
