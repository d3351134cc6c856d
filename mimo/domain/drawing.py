"""A graph as text for programs that draw: Mermaid, which forges show, and Graphviz's DOT.

Titles and names of relations come from anybody's files, so nothing of them may end a label, be
taken for markup, or turn the direction of the text around it.
"""

import re
import unicodedata
from collections.abc import Sequence
from enum import StrEnum

from mimo.frozen import frozen

_MOST = 80
"""Characters of a label's line."""


class Mark(StrEnum):
    """What must be seen of a memory at a glance."""

    NONE = "none"
    FAILED = "failed"
    SUPERSEDED = "superseded"
    MISSING = "missing"


@frozen
class Box:
    """A memory as it is drawn."""

    id: str
    lines: tuple[str, ...]
    mark: Mark = Mark.NONE


@frozen
class Arrow:
    """A link as it is drawn, from the memory that holds it."""

    source: str
    target: str
    label: str


_MERMAID_STYLES = {
    Mark.FAILED: "stroke:#c00,stroke-width:3px",
    Mark.SUPERSEDED: "stroke-dasharray:4 4,opacity:0.7",
    Mark.MISSING: "stroke-dasharray:1 3,fill:none",
}
_DOT_STYLES = {
    Mark.FAILED: 'color="#cc0000", penwidth=3',
    Mark.SUPERSEDED: "style=dashed",
    Mark.MISSING: "style=dotted",
}


def mermaid(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> str:
    """Returns a flowchart, fenced as Markdown has it, ready to be pasted where that is read."""
    names = _names(boxes)
    body = ["flowchart LR"]
    for box in boxes:
        style = f":::{box.mark}" if box.mark in _MERMAID_STYLES else ""
        label = "<br/>".join(map(_in_mermaid, box.lines))
        body.append(f'  {names[box.id]}["{label}"]{style}')
    body += [
        f'  {names[arrow.source]} -->|"{_in_mermaid(arrow.label)}"| {names[arrow.target]}'
        for arrow in arrows
    ]
    used = {box.mark for box in boxes}
    body += [f"  classDef {mark} {how}" for mark, how in _MERMAID_STYLES.items() if mark in used]
    return "\n".join(["```mermaid", *body, "```"])


def dot(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> str:
    """Returns a directed graph in Graphviz's language."""
    names = _names(boxes)
    body = ["digraph memory {", "  rankdir=LR;", "  node [shape=box];"]
    for box in boxes:
        style = f", {_DOT_STYLES[box.mark]}" if box.mark in _DOT_STYLES else ""
        label = "\\n".join(map(_in_dot, box.lines))
        body.append(f'  {names[box.id]} [label="{label}"{style}];')
    body += [
        f'  {names[arrow.source]} -> {names[arrow.target]} [label="{_in_dot(arrow.label)}"];'
        for arrow in arrows
    ]
    return "\n".join([*body, "}"])


def _names(boxes: Sequence[Box]) -> dict[str, str]:
    """Returns a name for each box that both languages take as it is; an id may be a word of one."""
    return {box.id: f"n{number}" for number, box in enumerate(boxes)}


def _in_mermaid(text: str) -> str:
    """Returns text in which all but letters, digits and a few signs is written as its code."""
    # At the beginning, a dash or a number with a point would be taken for a list.
    signs = r"[!-+:-@\[-^`{-~]|^-|(?<=^\d)\.|(?<=^\d\d)\."
    return re.sub(signs, lambda sign: f"#{ord(sign[0])};", _plain(text))


def _in_dot(text: str) -> str:
    """Returns text as it stands within quotes, where HTML's entities count, too."""
    return _plain(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


def _plain(text: str) -> str:
    """Returns one line without control characters and those that change the direction."""
    spaced = " ".join(text.split())
    shown = "".join(c for c in spaced if unicodedata.category(c)[0] != "C")
    return shown if len(shown) <= _MOST else f"{shown[: _MOST - 1].rstrip()}…"
