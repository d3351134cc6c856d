"""`mind graph`: how memories are linked, as a tree or drawn."""

import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from mimo.commands.common import Limit, Trust, Warning, trust_of
from mimo.commands.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import AmbiguousId, Invalid, NotFound
from mimo.features import graph as links
from mimo.frozen import frozen
from mimo.guard.privacy import redacted
from mimo.index.rows import Newer
from mimo.memory import outcomes
from mimo.memory.model import Kind, Outcome
from mimo.memory.relations import Graph, Node
from mimo.mind import Mind
from mimo.operations import finding

# A graph as text for programs that draw: Mermaid, which forges show, and Graphviz's DOT.


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


class Format(StrEnum):
    """How the graph is shown."""

    TREE = "tree"
    MERMAID = "mermaid"
    DOT = "dot"


@frozen
class LinkedMemory:
    """A memory of the graph."""

    id: str
    type: Kind
    title: str
    depth: Annotated[int, Out("How many links away it is from where the graph starts")]
    created_at: datetime
    trust: Trust
    outcome: Omitted[Outcome]
    warning: Warning
    superseded_by: Omitted[str]


@frozen
class Arc:
    """A link; `source` is the memory that holds it."""

    source: str
    target: str
    type: str
    given: Annotated[Omitted[str], Out("The words that were given for the type", "as", omit=True)]
    confidence: Omitted[float]


@frozen
class LinkGraph:
    """Memories and the links between them."""

    start: tuple[str, ...]
    nodes: Annotated[tuple[LinkedMemory, ...], Out("The nearest first, then the newest")]
    links: tuple[Arc, ...]
    missing: Annotated[tuple[Arc, ...], Out("Links whose target is not there")]
    cut: Annotated[bool, Out("Whether there is more than `limit` let through")]
    drawing: Annotated[Omitted[str], Out("The text of the graph in the `format`", omit=True)]


@command(
    "mind_graph",
    cli="graph",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, NotFound, AmbiguousId),
    examples=(
        "mind graph",
        "mind graph k3v7mq --depth 3 --type supersedes",
        "mind graph k3v7mq --format mermaid",
    ),
)
def graph(
    mind: Mind,
    id: Annotated[
        str | None, Arg("Id of the memory to start from; without it all links", complete="id")
    ] = None,
    *,
    depth: Annotated[int, Arg("Links to follow from there, 5 at most", ge=0)] = 2,
    types: Annotated[
        tuple[str, ...], Arg("Only links of these types, such as supersedes or builds_on")
    ] = (),
    limit: Limit = 100,
    format: Annotated[Format, Arg("A tree, or text for a program that draws")] = Format.TREE,
) -> LinkGraph:
    """Show how memories are linked

    Links are followed in both directions. Without an id all groups of linked memories are shown, or
    the newest of very many.
    """
    if id is None:
        found = links.everything(mind, types=types, most=limit)
    else:
        start = finding.one(mind, id).memory.id
        found = links.traverse(mind, (start,), depth=depth, types=types, most=limit)
    nodes, arcs, missing = _nodes(mind, found), _arcs(found), _missing(found, types)
    return LinkGraph(
        start=found.start,
        nodes=nodes,
        links=arcs,
        missing=missing,
        cut=found.cut,
        drawing=_drawn(format, *redacted((nodes, (*arcs, *missing))).value),
    )


def _nodes(mind: Mind, found: Graph) -> tuple[LinkedMemory, ...]:
    newer = mind.index.newer([node.record.memory.id for node in found.nodes])
    return tuple(_node(mind, node, newer[node.record.memory.id]) for node in found.nodes)


def _node(mind: Mind, node: Node, newer: Newer) -> LinkedMemory:
    memory = node.record.memory
    return LinkedMemory(
        id=memory.id,
        type=memory.type,
        title=memory.heading,
        depth=node.depth,
        created_at=memory.created,
        trust=trust_of(mind, node.record),
        outcome=memory.outcome,
        warning=outcomes.without_effect(newer.claimant) if newer.claimant else None,
        superseded_by=newer.successor,
    )


def _arcs(found: Graph) -> tuple[Arc, ...]:
    return tuple(
        Arc(
            source=edge.source,
            target=edge.target,
            type=edge.type,
            given=edge.given,
            confidence=edge.confidence,
        )
        for edge in found.edges
    )


def _missing(found: Graph, types: tuple[str, ...]) -> tuple[Arc, ...]:
    return tuple(
        Arc(
            source=node.record.memory.id,
            target=link.to,
            type=link.type,
            given=link.given,
            confidence=link.confidence,
        )
        for node in found.nodes
        for link in node.record.memory.links
        if link.to in found.missing and (not types or link.type in types)
    )


def _drawn(format: Format, nodes: tuple[LinkedMemory, ...], arcs: tuple[Arc, ...]) -> str | None:
    """Returns the graph in a language of programs that draw; None for a tree."""
    if format is Format.TREE:
        return None
    boxes = [_box(node) for node in nodes]
    known = {box.id for box in boxes}
    absent = dict.fromkeys(arc.target for arc in arcs if arc.target not in known)
    boxes += [Box(id=name, lines=(name, "not there"), mark=Mark.MISSING) for name in absent]
    arrows = [
        Arrow(source=arc.source, target=arc.target, label=named(arc.type, arc.given))
        for arc in arcs
    ]
    return mermaid(boxes, arrows) if format is Format.MERMAID else dot(boxes, arrows)


def named(type: str, given: str | None) -> str:
    """Returns a link's type with the words that were given for it."""
    return f"{type} ({given})" if given else type


def _box(node: LinkedMemory) -> Box:
    about = [node.type.value, f"{node.created_at:%Y-%m-%d}"]
    mark = Mark.NONE
    if node.superseded_by:
        mark = Mark.SUPERSEDED
        about.append("superseded")
    if node.outcome:
        mark = Mark.FAILED if node.outcome is Outcome.FAILED else mark
        about.append(node.outcome.value)
    return Box(id=node.id, lines=(node.title, node.id, ", ".join(about)), mark=mark)
