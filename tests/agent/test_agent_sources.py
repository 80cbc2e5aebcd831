"""dr/agent/sources.py and dr/agent/request.py: which files a node may read, and what a call asks for."""

from __future__ import annotations

import sys
from pathlib import Path

import agent_makers as make
import pytest

from dr.agent import sources
from dr.agent.request import Request, from_folder, from_text, node_folder
from dr.contract import Context, NodeType
from dr.errors import FormatError, UsageError
from dr.layout import NodeFolder, Root
from dr.settings import Settings


def request(source: str, node_type: NodeType = NodeType.LOCAL) -> Request:
    return Request(Context("q", {}, "q", source, "/x"), node_type)


def texts(root: Path, asked: Request, own: Path | None = None, memory: str | None = None) -> list[str]:
    folder = NodeFolder(own) if own else None
    corpus = sources.read_sources(asked, folder, Root(root), lambda: Settings(memory=memory))
    return [p.text for p in corpus.passages]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_several_sources_relative_ones_below_the_root(tmp_path: Path) -> None:
    write(tmp_path / "docs" / "a.txt", "A.")
    other = write(tmp_path / "b;c.txt", "B.")
    assert texts(tmp_path, request(f"docs; {other}")) == ["A.", "B."]
    assert texts(tmp_path, request("b;c.txt")) == ["B."]


def test_another_nodes_folder_is_out_of_bounds_and_its_own_is_not(tmp_path: Path) -> None:
    own = make.node(tmp_path, "dr_t/N1", "q", "x")
    other = make.node(tmp_path, "dr_t/N2", "q", "x")
    write(other / "output.txt", "Secret.")
    write(own / "artifacts" / "mine.txt", "Mine.")
    write(tmp_path / "temp" / "dr_t" / "sources" / "s.txt", "Snapshot.")
    write(tmp_path / "temp" / "download.txt", "Download.")
    assert texts(tmp_path, request(str(other)), own) == []
    assert texts(tmp_path, request(str(other / "output.txt")), own) == []
    assert texts(tmp_path, request(str(own / "artifacts")), own) == ["Mine."]
    assert "Secret." not in texts(tmp_path, request(str(tmp_path)), own)
    assert texts(tmp_path, request("temp/download.txt"), own) == ["Download."]
    assert texts(tmp_path, request("temp/dr_t/sources"), own) == ["Snapshot."]


def test_memory_reads_the_index_then_what_it_names_then_the_rest(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    for name in ("zebra_sop.md", "apple.txt", "user_profile.txt", "tool.py", ".hidden.md", "skills/deep.md"):
        write(memory / name, f"Note {name}.")
    write(memory / "global_mem_insight.txt", "Index: for zebras read zebra_sop; code in tool.py; see /etc/passwd")
    assert texts(tmp_path, request("", NodeType.MEMORY)) == [
        "Index: for zebras read zebra_sop; code in tool.py; see /etc/passwd",
        *(f"Note {n}." for n in ("zebra_sop.md", "tool.py", "user_profile.txt", "apple.txt", "skills/deep.md")),
    ]
    assert texts(tmp_path, request("skills/deep.md", NodeType.MEMORY)) == ["Note skills/deep.md."]
    assert len(texts(tmp_path, request("../docs", NodeType.MEMORY))) == 6


def test_memory_folder_can_be_set_and_may_be_missing(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "a.md", "Set.")
    assert texts(tmp_path, request("", NodeType.MEMORY), memory="elsewhere") == ["Set."]
    corpus = sources.read_sources(request("", NodeType.MEMORY), None, Root(tmp_path), Settings)
    assert [e.reason for e in corpus.failed] == ["memory_missing"]


def test_reasons_are_told_in_the_question_language(tmp_path: Path) -> None:
    corpus = sources.read_sources(request("none.txt"), None, Root(tmp_path), Settings)
    assert "no such file" in str(sources.nothing_read(request("none.txt"), corpus, "en"))
    assert "没有这个文件" in str(sources.nothing_read(request("none.txt"), corpus, "zh"))


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc", "a//b", "", "con", "a\\b", "dr_t/.hidden"])
def test_node_names_are_checked(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        node_folder(Root(tmp_path), name)


@pytest.mark.skipif(sys.platform == "win32", reason="symlinks need rights on Windows")
def test_no_symlink_leads_a_node_folder_out_of_temp(tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    (tmp_path / "temp" / "dr_t").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="symlink"):
        node_folder(Root(tmp_path), "dr_t/N1")


def test_request_of_a_folder(tmp_path: Path) -> None:
    folder = make.node(tmp_path, "dr_t/N1", "问题？", "a.txt", type="web-static")
    asked = from_folder(NodeFolder(folder))
    assert asked.type is NodeType.WEB and asked.context.sub_question == "问题？"


@pytest.mark.parametrize("first", ["Goal", "TYPE: NONSENSE", "SOURCE: x", ""])
def test_a_folder_without_a_type_is_an_error(tmp_path: Path, first: str) -> None:
    folder = make.node(tmp_path, "dr_t/N1", "q", "a.txt")
    (folder / "input.txt").write_text(first, encoding="utf-8")
    with pytest.raises(FormatError):
        from_folder(NodeFolder(folder))


@pytest.mark.parametrize(
    "output", ["output.txt", "/tmp/output.txt", "../N2/output.txt", "{folder}/input.txt", "{folder}/a.py"]
)
def test_an_answer_file_elsewhere_is_an_error(tmp_path: Path, output: str) -> None:
    folder = make.node(tmp_path, "dr_t/N1", "q", "s", output_file=output.format(folder=tmp_path / "temp/dr_t/N1"))
    with pytest.raises(FormatError, match="output_file"):
        from_folder(NodeFolder(folder))


def test_request_of_a_text(tmp_path: Path) -> None:
    asked = from_text("TYPE: local\n来源：a.txt\n\nWhat is X?\nIn short.", tmp_path / "o.txt", "--input")
    assert (asked.type, asked.context.source) == (NodeType.LOCAL, "a.txt")
    assert asked.context.sub_question == "What is X?\nIn short."
    assert from_text("What is X?", tmp_path, "--input").type is NodeType.MEMORY
    assert from_text("SOURCE: a\nWhat?", tmp_path, "--input").type is NodeType.LOCAL
    with pytest.raises(UsageError):
        from_text("TYPE: LOCAL\n", tmp_path, "--input")
