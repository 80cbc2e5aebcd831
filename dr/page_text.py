"""Markdown of a report -> HTML for its page: nothing of it acts, and each citation number leads to its reference.

The Markdown was made safe before (dr/markdown.py); here HTML, links and images are off once more.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as percent
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markupsafe import Markup

_NUMBER = re.compile(r"\[(\d{1,6})\]")
_OFF = ["html_block", "html_inline", "link", "image", "autolink", "reference", "heading", "lheading", "entity", "hr"]


class Texts:
    """Renders the texts of one page and remembers where each reference was cited.

    places: reference number -> ids of the elements that cite it, in the order of the page.
    """

    def __init__(self, references: int) -> None:
        self.references = references
        self.places: dict[int, list[str]] = defaultdict(list)

    def html(self, markdown: str) -> Markup:
        from markupsafe import Markup

        return Markup(_parser().render(markdown, {"texts": self}))  # HTML is off in the parser

    def cite(self, number: int) -> Markup:
        """The link of one citation."""
        from markupsafe import Markup

        name = f"c{number}-{len(self.places[number]) + 1}"
        self.places[number].append(name)
        return Markup('<a class="cite" id="{}" href="#ref-{}" role="doc-noteref">{}</a>').format(name, number, number)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable(_OFF)
    parser.inline.ruler.push("cite", _read_citation)
    parser.add_render_rule("cite", _write_citation)
    return parser


def _read_citation(state: StateInline, silent: bool) -> bool:
    match = _NUMBER.match(state.src, state.pos)
    if match is None or not 1 <= int(match[1]) <= state.env["texts"].references:
        return False
    if not silent:
        if state.pending:  # the number stays on the line of the word it belongs to
            state.pending = state.pending.rstrip(" ") + "\u2060"
        state.push("cite", "", 0).meta = {"number": int(match[1])}
    state.pos = match.end()
    return True


def _write_citation(self: Any, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
    return str(env["texts"].cite(tokens[index].meta["number"]))


def web_link(place: str) -> str | None:
    """`place` when it is an http or https URL that a reader may follow."""
    try:
        parts = urlsplit(place)
    except ValueError:
        return None
    return place if parts.scheme in ("http", "https") and parts.hostname and not re.search(r"\s", place) else None


def file_link(path: str, folder: PurePath, page: str = "") -> str | None:
    """A link from a file in `folder` to an absolute path, relative so that a moved tree keeps its links."""
    import os.path

    if not PurePath(path).is_absolute() or "\n" in path:
        return None
    try:
        relative = os.path.relpath(path, folder)
    except ValueError:  # another drive
        return None
    link = percent(relative.replace("\\", "/"))
    return f"{link}#page={percent(page)}" if page and path.lower().endswith(".pdf") else link
