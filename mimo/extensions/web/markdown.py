"""Markdown as a tree of elements, from which the page is built without markup.

Text never becomes HTML here: a node is a text or `[tag, attributes, children]`, tags and attributes
are those below, and the browser makes each element by its name. Raw HTML in Markdown stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mimo.api import Unreadable, clean, limit_steps

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Node = Any
"""A text, or a list of a tag, a mapping of attributes and a list of nodes."""

TAGS = frozenset(
    "p h2 h3 h4 h5 h6 em strong s code pre blockquote ul ol li hr br a span"
    " table thead tbody tr th td".split()
)

SCHEMES = frozenset(("http", "https", "mailto"))

MOST = 200_000
"""Characters that are read as Markdown; a longer text is shown as it is."""

MOST_STEPS = 60_000
"""Steps and tokens of reading the texts of a page; a text with more is shown as it is."""

_PLAIN = "This text is shown as it is written: formatting it would take too long."

_HEADINGS = {"h1": "h2", "h2": "h3", "h3": "h4", "h4": "h5", "h5": "h6", "h6": "h6"}
"""The page has a heading of its own above the text."""

_REFERENCE = re.compile(
    r"\[\[([^\[\]\n|#^]{1,200})(?:[#^][^\[\]\n|]{0,200})?(?:\|([^\[\]\n]{1,200}))?\]\]"
)
"""The id of a memory, a place in it, and the title that is shown instead."""
_ALIGNED = re.compile(r"text-align:(left|center|right)")


def tree(text: str, steps: Iterator[int] | None = None) -> list[Node]:
    """Returns the nodes of a Markdown text; `steps` counts those of the texts of a page."""
    text = clean(text)
    if len(text) <= MOST:
        with suppress(Unreadable):
            return _nodes(_parser().parse(text, {"steps": steps or count()}))
    return [["p", {}, [_PLAIN]], ["pre", {}, [text]]]


def rendered(page: dict[str, Any]) -> dict[str, Any]:
    """Returns the JSON of a page with its Markdown as trees."""
    steps = count()
    content = tree(page["content"], steps)
    sections = {name: tree(text, steps) for name, text in page["sections"].items()}
    return {**page, "content": content, "sections": sections}


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 40})
    return limit_steps(parser.enable(["table", "strikethrough"]), MOST_STEPS)


def _nodes(tokens: Sequence[Token]) -> list[Node]:
    """Returns the nodes of a flat list of opening and closing tokens."""
    root: list[Node] = []
    above: list[list[Node]] = [root]
    for token in tokens:
        if token.nesting < 0:
            above.pop()
        elif token.nesting > 0:
            if token.hidden:  # A paragraph in a tight list.
                above.append(above[-1])
                continue
            node = _opened(token)
            above[-1].append(node)
            above.append(node[2])
        else:
            above[-1].extend(_single(token))
    return root


def _opened(token: Token) -> Node:
    tag = _HEADINGS.get(token.tag, token.tag)
    if tag == "a":
        href = str(token.attrs.get("href", ""))
        return ["a", {"href": href}, []] if is_safe(href) else ["span", {"title": href}, []]
    attributes: dict[str, str] = {}
    if tag == "ol" and "start" in token.attrs:
        attributes["start"] = str(token.attrs["start"])
    if aligned := _ALIGNED.fullmatch(str(token.attrs.get("style", ""))):
        attributes["align"] = aligned[1]
    return [tag if tag in TAGS else "span", attributes, []]


def _single(token: Token) -> list[Node]:
    match token.type:
        case "inline":
            return _nodes(token.children or ())
        case "text":
            return _with_references(token.content)
        case "softbreak":
            return ["\n"]
        case "hardbreak":
            return [["br", {}, []]]
        case "hr":
            return [["hr", {}, []]]
        case "code_inline":
            return [["code", {}, [token.content]]]
        case "code_block" | "fence":
            return [["pre", {}, [["code", {}, [token.content]]]]]
        case "image":
            return [_image(token.attrs, token.content)]
        case _:
            return [token.content] if token.content else []


def _image(attributes: Mapping[str, str | int | float], text: str) -> Node:
    """Returns a link to an image: loading it would show its server who reads the memory."""
    source = str(attributes.get("src", ""))
    label = [f"image: {text or source}"]
    return ["a", {"href": source}, label] if is_safe(source) else ["span", {"title": source}, label]


def _with_references(text: str) -> list[Node]:
    """Returns a text whose references to memories, such as `[[k3v7mq]]`, are links."""
    nodes: list[Node] = []
    end = 0
    for match in _REFERENCE.finditer(text):
        nodes += [text[end : match.start()]] if match.start() > end else []
        nodes.append(["a", {"memory": match[1].strip()}, [match[2] or match[1]]])
        end = match.end()
    nodes += [text[end:]] if end < len(text) else []
    return nodes


def is_safe(href: str) -> bool:
    """Returns whether a link leads to another site or to mail, and can't run a script."""
    try:
        parts = urlsplit(href)
    except ValueError:
        return False
    if parts.scheme == "mailto":
        return True
    return parts.scheme in SCHEMES and bool(parts.hostname)
