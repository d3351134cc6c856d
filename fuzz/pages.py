"""Pages in Markdown in which mind quotes texts: none of these is an element of the page.

The files of an export that hold a memory have its own Markdown, by design, as the resource of a
memory does. Of these, only the header is checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from mimo.memory.changes import VERBS
from mimo.memory.codec import front_matter
from mimo.memory.model import Outcome

_ITEM = re.compile(r"( *)[-*] ")
_TASK = re.compile(r"\[[ xX]\]\s", re.ASCII)
_PLACE = re.compile(r"[\w./%~-]+")
"""A link to a file of the export."""

_BLOCKS = frozenset({"heading", "paragraph", "bullet_list", "list_item"})
_WORDS = {"text", "text_special"}
_OUTCOME = "|".join(["open", *Outcome])
_VERBS = "|".join(VERBS.values())
_STRONG = re.compile(rf"{_VERBS}|supersedes|contradicts|(?:{_OUTCOME}) → (?:{_OUTCOME})")
_SWALLOWS = re.compile(
    r"(?i)</|<[!?]|<(?:title|textarea|style|xmp|iframe|noembed|noframes|script|plaintext)\b"
)
"""Tags that end an element, or take the rest of a page as their own text."""

PROJECT = r"(?:Decisions of )?(?:shop|outputs)"
"""The first heading of an export: the name of the project."""

_TITLES = frozenset(
    "Actions Checkpoints Context Decisions Facts Insights Issues Memory Notes Observations Optional"
    " Plans".split()
) | {"Known pitfalls"}


@cache
def _reader() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def check_page(page: str, title: str = "", *, formatted: bool = False) -> None:
    """Checks that a page has only headings and lists of ours, each text within its line.

    `title` matches the other headings. Lines that are `formatted` keep the inline Markdown of
    memories, as agents read it as text.
    """
    rows = page.split("\n")
    env: dict[str, Any] = {}
    tokens = _reader().parse(page, env)
    assert not env.get("references"), (env, page)
    items = [token for token in tokens if token.type == "list_item_open"]
    own = [number for number, row in enumerate(rows) if _ITEM.match(row)]
    assert [token.map and token.map[0] for token in items] == own, page
    for token, number in zip(items, own, strict=True):
        assert token.level == 1 + len(_ITEM.match(rows[number])[1]), page  # type: ignore[index]
    for number, token in enumerate(tokens):
        name = token.type.removesuffix("_open").removesuffix("_close")
        if name == "blockquote":
            assert rows[(token.map or [0])[0]].startswith("> The memory of ") or token.nesting < 0
        elif token.type != "inline":
            assert name in _BLOCKS, (token.type, page)
        elif tokens[number - 1].type == "heading_open":
            assert tokens[number - 1].level == 0, page
            assert token.content in _TITLES or re.fullmatch(title or r"(?!)", token.content), page
        else:
            assert token.map, page
            assert token.map[1] == token.map[0] + 1, page
        if token.type == "inline":
            # Tasks are an extension of GitHub, which this reader does not have.
            assert not _TASK.match(token.content), page
            _check_line(token, formatted=formatted)


def _check_line(line: Token, *, formatted: bool) -> None:
    """Checks the elements within a line."""
    children = line.children or []
    if formatted:
        html = [child.content for child in children if child.type == "html_inline"]
        assert not any(map(_SWALLOWS.search, html)), line.content
        return
    for number, child in enumerate(children):
        if child.type == "link_open":
            assert _PLACE.fullmatch(str(child.attrs["href"])), line.content
            assert not child.attrs.get("title"), line.content
        elif child.type == "strong_open":
            assert _STRONG.fullmatch(children[number + 1].content), line.content
        else:
            allowed = _WORDS | {"link_close", "strong_close", "code_inline"}
            assert child.type in allowed, (child.type, line.content)


def check_fence(page: str) -> None:
    """Checks that a page is one block of code."""
    (fence,) = _reader().parse(page)
    assert fence.type == "fence", page
    assert fence.content == "\n".join(page.rstrip("\n").split("\n")[1:-1]) + "\n", page


def check_export(files: Mapping[str, str]) -> None:
    """Checks the files of an export in a folder, by name."""
    for name, text in files.items():
        place = name.rpartition("/")[2]
        if place not in ("index.md", "MEMORY.md"):
            assert front_matter.read(text.split("\n---\n", 1)[0].removeprefix("---\n")).data, text
            continue
        header = '---\nokf_version: "0.2"\n---\n\n'
        check_page(text.removeprefix(header), PROJECT)
