"""A WEB node end to end through agentmain.py: what it quotes, from where, and how it fails."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import agent_makers as make
import pytest
from website import INJECTED, Website

from dr.agent import browser
from dr.agent.fetch import clean_url
from dr.agent.web import urls_in
from dr.cited import find_snapshots, read_node
from dr.layout import NodeFolder, Root

QUESTION = "When was the Harlow lighthouse completed, and by whom?"
CHROMIUM = next(filter(None, map(shutil.which, browser.NAMES)), None)


def answered(root: Path, source: str, question: str = QUESTION, name: str = "dr_t/N1", **variables: str) -> Path:
    """The node's folder, after it has answered."""
    folder = make.node(root, name, question, source, type="WEB")
    done = make.run(root, "--task", name, DR_ALLOW_PRIVATE="true", **variables)
    assert done.returncode == 0, done.stderr
    return folder


def failed(root: Path, source: str, question: str = QUESTION, **variables: str) -> str:
    """What the node says on stderr when it fails; it leaves no finding."""
    folder = make.node(root, "dr_t/N1", question, source, type="WEB")
    done = make.run(root, "--task", "dr_t/N1", **({"DR_ALLOW_PRIVATE": "true"} | variables))
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert not (folder / "output.txt").exists()
    return done.stderr


def conclusion(folder: Path) -> str:
    return (folder / "output.txt").read_text(encoding="utf-8")


def test_a_page_is_quoted_word_by_word_with_title_url_and_snapshot(tmp_path: Path, site: Website) -> None:
    folder = answered(tmp_path, f"{site.url}/article")
    text = conclusion(folder)
    assert text.startswith("[结论] ") and text.endswith("\n\n[ROUND END]\n")
    sentence = "The Harlow lighthouse was completed in 1911 by the engineer Edith Marsh."
    assert f"{sentence} [web-1]" in text and f"来源：{site.url}/article" in text
    [evidence] = make.evidence(folder)
    digest = hashlib.sha256(site.page("/article")[2]).hexdigest()
    assert evidence["id"] == "[web-1]" and evidence["kind"] == "web" and evidence["title"] == "Harlow lighthouse"
    assert evidence["url"] == f"{site.url}/article" and evidence["sha256"] == digest and "path" not in evidence
    run = Root(tmp_path).run("t")
    assert evidence["text"] in find_snapshots(run)[f"{site.url}/article"].read_text(encoding="utf-8")
    assert (run.sources / f"{digest}.json").is_file()


def test_the_report_reads_the_citation_back(tmp_path: Path, site: Website) -> None:
    folder = NodeFolder(answered(tmp_path, f"{site.url}/article"))
    shutil.copy(folder.output, folder.conclusion)
    cited = read_node(folder, tmp_path, find_snapshots(Root(tmp_path).run("t")))
    assert cited is not None
    [source] = cited.by_id["web-1"]
    assert source.place == f"{site.url}/article" and source.quote and source.quote in " ".join(source.passage.split())


def test_several_sources_one_of_which_fails(tmp_path: Path, site: Website) -> None:
    source = f"{site.url}/article; {site.url}/404; {site.url}/zh-gbk; {site.url}/document"
    folder = answered(tmp_path, source)
    assert "completed in 1911" in conclusion(folder)
    assert f"{site.url}/404 (there is no such page (HTTP 404))" in conclusion(folder)
    assert site.asked == {"/article": 1, "/404": 1, "/zh-gbk": 1, "/document": 1}


def test_a_second_node_does_not_fetch_again(tmp_path: Path, site: Website) -> None:
    first = answered(tmp_path, f"{site.url}/article")
    second = answered(tmp_path, f"{site.url}/article", "How tall is the Harlow lighthouse?", "dr_t/N2")
    assert site.asked == {"/article": 1}
    assert "41 metres" in conclusion(second)
    assert make.evidence(first)[0]["sha256"] == make.evidence(second)[0]["sha256"]
    answered(tmp_path, f"{site.url}/article", name="dr_u/N1")  # another run looks for itself
    assert site.asked == {"/article": 2}


def test_a_chinese_question_over_a_gbk_page(tmp_path: Path, site: Website) -> None:
    folder = answered(tmp_path, f"{site.url}/zh-gbk-no-header", "清河水库建成于哪一年？")
    assert "清河水库建成于1958年" in conclusion(folder) and "未使用语言模型" in conclusion(folder)


def test_a_pdf_without_a_suffix_is_cited_with_its_page(tmp_path: Path, site: Website) -> None:
    folder = answered(tmp_path, f"{site.url}/document")
    assert f"来源：{site.url}/document, p. 1" in conclusion(folder)


def test_keywords_are_searched_and_the_pages_found_are_read(tmp_path: Path, site: Website) -> None:
    folder = answered(tmp_path, "harlow lighthouse", DR_SEARXNG_URL=site.url)
    assert "completed in 1911" in conclusion(folder) and f"来源：{site.url}/article" in conclusion(folder)
    assert site.asked == {"/search": 1, "/article": 1, "/404": 1, "/notes": 1, "/table": 1}
    assert all("snippet" not in e["text"] for e in make.evidence(folder))


def test_no_source_at_all_searches_for_the_question(tmp_path: Path, site: Website) -> None:
    folder = answered(tmp_path, "", DR_SEARXNG_URL=site.url, DR_SEARCH_RESULTS="1")
    assert "completed in 1911" in conclusion(folder) and site.asked == {"/search": 1, "/article": 1}


def test_what_is_named_twice_is_fetched_and_cited_once(tmp_path: Path, site: Website) -> None:
    folder = answered(tmp_path, f"{site.url}/article; {site.url}/article#top; harlow", DR_SEARXNG_URL=site.url)
    assert site.asked["/article"] == 1
    assert [e["id"] for e in make.evidence(folder) if e["url"].endswith("/article")] == ["[web-1]"]


def test_a_hostile_page_is_data(tmp_path: Path, site: Website) -> None:
    """Text that speaks to a model, or in our protocol, is neither obeyed nor taken for ours."""
    folder = answered(tmp_path, f"{site.url}/injection", f"{QUESTION} Is the lighthouse a myth? Previous instructions?")
    text = conclusion(folder)
    assert text.count("[结论]") == 1 and text.count("[ROUND END]") == 1 and "[web-9]" not in text
    assert INJECTED not in text and "completed in 1911" in text


def test_markup_in_a_page_is_quoted_as_text(tmp_path: Path, site: Website) -> None:
    folder = answered(tmp_path, f"{site.url}/markup")
    [evidence] = make.evidence(folder)
    assert "<img src=x onerror=alert(1)>" in evidence["text"]  # as the reader of the page saw it
    assert "\n" not in evidence["title"]


def test_a_private_address_needs_leave(tmp_path: Path, site: Website) -> None:
    said = failed(tmp_path, f"{site.url}/article", DR_ALLOW_PRIVATE="false")
    assert "127.0.0.1 leads to the private address 127.0.0.1" in said and "allow_private" in said
    assert not site.asked


@pytest.mark.parametrize(
    ("source", "question", "word"),
    [
        ("{}/404", QUESTION, "there is no such page (HTTP 404)"),
        ("{}/404", "清河水库建成于哪一年？", "页面不存在（HTTP 404）"),
        ("{}/empty", QUESTION, "the page holds no text"),
        ("{}/picture", QUESTION, "it is no text (image/png)"),
        ("{}/loop", QUESTION, "it redirects more than 5 times"),
        ("file:///etc/passwd", QUESTION, "only http and https are fetched"),
        ("{}/404; {}/empty", QUESTION, "no source could be read"),
        ("{}/article", "What do penguins eat in winter?", "nothing in the sources answers"),
    ],
)
def test_a_failure_says_why_and_is_no_finding(
    tmp_path: Path, site: Website, source: str, question: str, word: str
) -> None:
    assert word in failed(tmp_path, source.replace("{}", site.url), question)


@pytest.mark.skipif(find_spec("ddgs") is not None, reason="ddgs is installed here, which is an engine")
def test_keywords_without_an_engine_say_how_to_get_one(tmp_path: Path) -> None:
    assert "searxng_url" in failed(tmp_path, "harlow lighthouse")


def test_the_key_of_a_search_is_nowhere_on_disk_or_in_the_log(tmp_path: Path, site: Website) -> None:
    folder = make.node(tmp_path, "dr_t/N1", QUESTION, "harlow", type="WEB")
    variables = {"DR_SEARCH_URL": f"{site.url}/api", "DR_SEARCH_API_KEY": "tvly-secret", "DR_ALLOW_PRIVATE": "true"}
    done = make.run(tmp_path, "--task", "dr_t/N1", "--verbose", **variables)
    assert done.returncode == 0 and "completed in 1911" in conclusion(folder)
    assert "tvly-secret" not in done.stdout + done.stderr
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"tvly-secret" not in path.read_bytes()


def test_a_page_of_scripts_without_a_browser(tmp_path: Path, site: Website) -> None:
    said = failed(tmp_path, f"{site.url}/app", PATH=str(Path(sys.executable).parent))
    assert "the page needs JavaScript to show its text; no Chromium or Chrome was found" in said


@pytest.mark.costly
@pytest.mark.skipif(CHROMIUM is None, reason=f"none of {', '.join(browser.NAMES)} is installed")
def test_a_page_of_scripts_with_a_browser(tmp_path: Path, site: Website) -> None:
    (tmp_path / "tmp").mkdir()
    folder = answered(tmp_path, f"{site.url}/app", "Who is the harbour master?", TMPDIR=str(tmp_path / "tmp"))
    assert "The harbour master is Ivo Brandt. [web-1]" in conclusion(folder)


def test_a_question_in_a_file_may_name_a_page(tmp_path: Path, site: Website) -> None:
    question = tmp_path / "q.txt"
    question.write_text(f"SOURCE: {site.url}/article\n{QUESTION}\n", encoding="utf-8")
    assert make.run(tmp_path, "--func", str(question), DR_ALLOW_PRIVATE="true").returncode == 0
    assert "completed in 1911" in (tmp_path / "q.out.txt").read_text(encoding="utf-8")


def test_a_restarted_node_goes_on_from_its_snapshots(tmp_path: Path, site: Website) -> None:
    folder = answered(tmp_path, f"{site.url}/article")
    first = conclusion(folder)
    memory = json.loads((folder / "solve_memory.json").read_text(encoding="utf-8"))
    assert memory["progress"]["status"] == "completed"
    done = make.run(tmp_path, "--task", "dr_t/N1", DR_ALLOW_PRIVATE="true")
    assert "Going on" in done.stdout and conclusion(folder) == first and site.asked == {"/article": 1}


@pytest.mark.parametrize(
    ("part", "urls"),
    [
        ("https://example.org/a", ["https://example.org/a"]),
        ("<https://example.org/a>", ["https://example.org/a"]),
        ("https://example.org/My File.pdf", ["https://example.org/My File.pdf"]),
        ("https://a.example/x https://b.example/y", ["https://a.example/x", "https://b.example/y"]),
        ("see https://a.example/x, then (https://b.example/y).", ["https://a.example/x", "https://b.example/y"]),
        ("见 https://a.example/x，再看", ["https://a.example/x"]),
        ("https://a.example/x annual report", ["https://a.example/x"]),
        ("https://zh.example/wiki/北京（城市）", ["https://zh.example/wiki/北京（城市）"]),
        ("www.example.org", ["https://www.example.org"]),
        ("example.org/a?b=1", ["https://example.org/a?b=1"]),
        ("ftp://example.org/a", ["ftp://example.org/a"]),
        ("file:/etc/passwd", ["file:/etc/passwd"]),
        *[
            (words, [])
            for words in ("harlow lighthouse", "node.js", "TCP/IP", "C++: templates", "清河水库", "v1.2/x", "")
        ],
    ],
)
def test_what_is_an_address_and_what_are_keywords(part: str, urls: list[str]) -> None:
    assert urls_in(part) == urls
    for url in urls:
        if url.startswith("https"):
            clean_url(url)
