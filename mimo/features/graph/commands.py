"""`mind graph`: the links between memories as a tree, or as a Mermaid or Graphviz drawing."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Annotated

from mimo.call import Call
from mimo.call.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import AmbiguousId, Hint, Invalid, NotFound, Option, join_texts
from mimo.features.decisions import relations
from mimo.frozen import NamedTuple, frozen, replace
from mimo.guard.privacy import redacted
from mimo.index import links
from mimo.memory import outcomes
from mimo.memory.ids import with_handles
from mimo.memory.model import Link, Outcome
from mimo.memory.relations import Edge, Graph, Node, Relation
from mimo.operations import finding, lookup, refresh
from mimo.operations.rows import (
    Facts,
    Limit,
    LinkedMemory,
    TrustLabel,
    Untrusted,
    facts,
    row_of,
    untrusted,
)
from mimo.rendering import Part, Screen, dim, ident, titled, warn
from mimo.rendering.results import age, count, render, row_labels, type_mark
from mimo.text.clean import in_mermaid

_LABEL_LENGTH = 80
"""Characters of a line in a drawing."""
_STEPS = 2
"""The default depth."""


class Mark(StrEnum):
    """The highlighting of a memory in a drawing."""

    NONE = "none"
    FAILED = "failed"
    SUPERSEDED = "superseded"
    MISSING = "missing"


@frozen
class Box:
    """A memory in a drawing."""

    id: str
    lines: tuple[str, ...]
    mark: Mark = Mark.NONE


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


def mermaid(boxes: Sequence[Box], arcs: Sequence["Arc"]) -> str:
    """Returns a Mermaid flowchart in a fenced code block, ready to be pasted into Markdown."""
    names = _names(boxes)
    body = ["flowchart LR"]
    for box in boxes:
        style = f":::{box.mark}" if box.mark in _MERMAID_STYLES else ""
        label = "<br/>".join(in_mermaid(_plain(line)) for line in box.lines)
        body.append(f'  {names[box.id]}["{label}"]{style}')
    body += [
        f'  {names[arc.source]} -->|"{in_mermaid(_plain(named(arc)))}"| {names[arc.target]}'
        for arc in arcs
    ]
    used = {box.mark for box in boxes}
    styles = ((mark, style) for mark, style in _MERMAID_STYLES.items() if mark in used)
    body += [f"  classDef {mark} {style}" for mark, style in styles]
    return "\n".join(["```mermaid", *body, "```"])


def dot(boxes: Sequence[Box], arcs: Sequence["Arc"]) -> str:
    """Returns a directed graph in Graphviz's DOT language."""
    names = _names(boxes)
    body = ["digraph memory {", "  rankdir=LR;", "  node [shape=box];"]
    for box in boxes:
        style = f", {_DOT_STYLES[box.mark]}" if box.mark in _DOT_STYLES else ""
        label = "\\n".join(map(_in_dot, box.lines))
        body.append(f'  {names[box.id]} [label="{label}"{style}];')
    body += [
        f'  {names[arc.source]} -> {names[arc.target]} [label="{_in_dot(named(arc))}"];'
        for arc in arcs
    ]
    return "\n".join([*body, "}"])


def _names(boxes: Sequence[Box]) -> dict[str, str]:
    """Returns a safe name for each box; an id may be a keyword of the language."""
    return {box.id: f"n{number}" for number, box in enumerate(boxes)}


def _in_dot(text: str) -> str:
    """Returns text for a quoted string, in which DOT also expands HTML entities."""
    return _plain(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


def _plain(text: str) -> str:
    """Returns one line without control characters, including those that change direction."""
    spaced = " ".join(text.split())
    line = "".join(c for c in spaced if unicodedata.category(c)[0] != "C")
    return line if len(line) <= _LABEL_LENGTH else f"{line[: _LABEL_LENGTH - 1].rstrip()}…"


class Format(StrEnum):
    """The output format of the graph."""

    TREE = "tree"
    MERMAID = "mermaid"
    DOT = "dot"


@frozen
class Arc:
    """A link; `source` is the memory that holds it, whose trust the link has."""

    source: str
    target: str
    type: str
    given: Annotated[Omitted[str], Out("The words given for the type", "as")]
    confidence: Omitted[float]
    trust: Untrusted


@frozen
class LinkGraph:
    """Memories and the links between them."""

    start: tuple[str, ...]
    nodes: Annotated[tuple[LinkedMemory, ...], Out("The nearest first, then the newest")]
    links: tuple[Arc, ...]
    missing: Annotated[tuple[Arc, ...], Out("Links whose target does not exist")]
    cut: Annotated[bool, Out("Whether `limit` left memories out")]
    drawing: Annotated[Omitted[str], Out("The graph as text in the `format`")]
    notice: Annotated[Omitted[str], Out("Why links are missing, or what a drawing omits")] = None


@command(
    "mind_graph",
    cli="graph",
    effect=Effect.READ,
    toolset="extra",
    of_user=True,
    errors=(Invalid, NotFound, AmbiguousId),
    examples=(
        "mind graph",
        "mind graph k3v7mq --depth 3 --type supersedes",
        "mind graph k3v7mq --format mermaid",
    ),
)
def graph(
    call: Call,
    id: Annotated[
        str | None, Arg("Id of the memory to start from (default: all links)", complete="id")
    ] = None,
    *,
    depth: Annotated[
        int | None, Arg("Number of links to follow from the id, at most 5 (default 2)", ge=0)
    ] = None,
    types: Annotated[
        tuple[str, ...],
        Arg("Only links of these types, such as supersedes or builds_on", complete="kind"),
    ] = (),
    limit: Limit = 100,
    format: Annotated[Format, Arg("A tree, or text for a drawing program")] = Format.TREE,
    private: Annotated[bool, Arg("Also private memories in a drawing")] = False,
) -> LinkGraph:
    """Show how memories are linked

    Links are followed in both directions. Without an id, all groups of linked memories are shown;
    if there are too many, the newest. A drawing leaves private memories out.
    """
    names, types = types, tuple(_with_meanings(types))
    if id is None and depth is not None:
        raise Invalid(
            "`depth` is counted from a memory",
            hint="give the id of one, or leave the depth out",
            details={"field": "depth"},
        )
    start = None if id is None else lookup.one(call, id).memory.id
    steps = _STEPS if depth is None else depth

    def walked(*, shared: bool) -> LinkGraph:
        if start is None:
            walk = refresh.up_to_date(call).ask(links.newest, types, limit, shared=shared)
        else:
            walk = finding.linked(
                call, (start,), depth=steps, types=types, limit=limit, shared=shared
            )
        return _graph(call, walk, types, shared=shared)

    result, drawing, left_out = walked(shared=False), None, 0
    of_types = " or ".join(f"`{words}`" for words in names)
    usual = ", ".join(Relation)
    without_links = f"there is no link of the type {of_types}; the usual types are {usual}"
    if format is not Format.TREE:
        draws_all = private or call.mind.is_users
        drawing = _drawn(format, result if draws_all else walked(shared=True))
        left_out = 0 if draws_all else sum(node.private or False for node in result.nodes)
    return replace(
        result,
        drawing=drawing,
        notice=join_texts(
            without_links if names and not (result.links or result.missing) else None,
            Hint(f"left out: {left_out:,} private (", Option(private=True), ")")
            if left_out
            else None,
        ),
    )


def _graph(call: Call, walk: Graph, types: Sequence[str], *, shared: bool) -> LinkGraph:
    """Returns a graph for an answer; with `shared`, private memories change nothing in it."""
    memories = facts(call, [node.record for node in walk.nodes], LinkedMemory, shared=shared)
    trust = {node.record.memory.id: untrusted(call, node.record) for node in walk.nodes}
    return LinkGraph(
        start=walk.start,
        nodes=tuple(map(_node, walk.nodes, memories)),
        links=tuple(_arc(edge.source, edge.target, edge, trust) for edge in walk.edges),
        missing=tuple(
            _arc(node.record.memory.id, link.to, link, trust)
            for node in walk.nodes
            for link in node.record.memory.links
            if link.to in walk.missing and (not types or link.type in types)
        ),
        cut=walk.cut,
        drawing=None,
    )


def _with_meanings(types: Sequence[str]) -> Iterator[str]:
    """Yields types of links as they are written, and the relations that they mean.

    A file may have a type of its own.
    """
    for words in types:
        yield words
        with suppress(Invalid):  # "superseded by" is the other direction of a relation
            if relation := relations.named_by(words):
                yield relation.value


def _node(node: Node, memory: Facts) -> LinkedMemory:
    # A failure is drawn as the outcome; only a claim without effect needs words.
    claimant = memory.claimed_by
    warning = outcomes.without_effect(claimant) if claimant else None
    return memory.row(LinkedMemory, depth=node.depth, warning=warning)


def _arc(
    source: str, target: str, link: Edge | Link, trust: Mapping[str, TrustLabel | None]
) -> Arc:
    return row_of(link, Arc, source=source, target=target, trust=trust[source])


def _drawn(format: Format, graph: LinkGraph) -> str:
    """Returns the text of a drawing."""
    nodes, arcs = redacted((graph.nodes, (*graph.links, *graph.missing))).value
    boxes = list(map(_box, nodes))
    drawn = {box.id for box in boxes}
    absent = dict.fromkeys(arc.target for arc in arcs if arc.target not in drawn)
    boxes += [Box(id=name, lines=(name, "missing"), mark=Mark.MISSING) for name in absent]
    return mermaid(boxes, arcs) if format is Format.MERMAID else dot(boxes, arcs)


def named(arc: Arc) -> str:
    """Returns a link's type with the words given for it."""
    return f"{arc.type} ({arc.given})" if arc.given else arc.type


def _box(node: LinkedMemory) -> Box:
    mark, label = Mark.NONE, [node.trust.value] if node.trust is TrustLabel.UNTRUSTED else []
    about = [node.type.value, f"{node.created_at:%Y-%m-%d}", *label]
    if node.superseded_by:
        mark = Mark.SUPERSEDED
        about.append("superseded")
    if node.outcome:
        mark = Mark.FAILED if node.outcome is Outcome.FAILED else mark
        about.append(node.outcome.value)
    return Box(id=node.id, lines=(node.title, node.id, ", ".join(about)), mark=mark)


@render.register
def _(result: LinkGraph, screen: Screen) -> None:
    if result.drawing:
        screen.verbatim(result.drawing)
    elif result.nodes:
        _Tree(result, screen).write()
        links = len(result.links) + len(result.missing)
        screen.blank()
        memories = count(len(result.nodes), "memory", "memories")
        screen.line(dim(f"{memories}, {count(links, 'link')}"))
    else:
        missing = "no link of that type" if result.notice else "no memory is linked with another"
        screen.line(missing)
    if result.cut:
        which = "nearest" if result.start else "newest and those linked with them"
        screen.note(f"{len(result.nodes):,} are shown, the {which}; `--limit` shows more")
    if not (result.notice or result.links or result.missing):
        screen.note(
            "links are made with `mind link ID OTHER`, with `mind save decision … --link"
            " builds_on:ID`, by `links:` in a memory's header, or with [[ID]] or [[title]] in its"
            " text"
        )


class _Step(NamedTuple):
    """A link, seen from one of its ends."""

    arrow: str
    other: str
    forward: bool


class _Tree:
    """Prints each memory below the first one that leads to it; other links only name it."""

    def __init__(self, result: LinkGraph, screen: Screen) -> None:
        """Finds the parent of each memory."""
        self._screen = screen
        self._result = result
        self._nodes = {node.id: node for node in result.nodes}
        self._places = {id: place for place, id in enumerate(self._nodes)}
        self._steps: dict[str, list[_Step]] = {id: [] for id in self._nodes}
        for arc in result.links:
            out, back = (arrow_of(arc, forward=forward) for forward in (True, False))
            self._steps[arc.source].append(_Step(out, arc.target, forward=True))
            self._steps[arc.target].append(_Step(back, arc.source, forward=False))
        self._roots: list[str] = []
        self._above: dict[str, str] = {}
        """The parent of each memory that has one."""
        self._order()

    def write(self) -> None:
        """Writes every tree."""
        for number, root in enumerate(self._roots):
            if number:
                self._screen.blank()
            self._memory(self._nodes[root], [], "")
            # Not recursive: a chain can be longer than the recursion limit.
            pending = [self._rows(root, "")]
            while pending:
                if child := next(pending[-1], None):
                    pending.append(self._rows(*child))
                else:
                    pending.pop()

    def _order(self) -> None:
        """Walks from each start, or from the newest of each group, breadth first."""
        seen: set[str] = set()
        starts = [*self._result.start, *self._nodes]
        for root in (id for id in starts if id in self._nodes):
            if root in seen:
                continue
            self._roots.append(root)
            seen.add(root)
            waiting = [root]
            for id in waiting:  # The list grows while it is walked.
                for neighbour in self._others(id):
                    if neighbour not in seen:
                        seen.add(neighbour)
                        self._above[neighbour] = id
                        waiting.append(neighbour)

    def _others(self, id: str) -> list[str]:
        return sorted({step.other for step in self._steps[id]}, key=self._places.__getitem__)

    def _rows(self, id: str, margin: str) -> Iterator[tuple[str, str]]:
        """Writes the rows directly below a memory: its children, and links that lead elsewhere.

        Yields each child with its margin.
        """
        rows = [*self._children(id), *self._references(id)]
        for number, (neighbour, parts, is_child) in enumerate(rows):
            is_final = number == len(rows) - 1
            branch, trunk = ("└─ ", "   ") if is_final else ("├─ ", "│  ")
            if is_child:
                self._memory(self._nodes[neighbour], parts, margin + branch)
                yield neighbour, margin + trunk
            else:
                self._screen.line(dim(margin + branch), *parts)

    def _children(self, id: str) -> Iterator[tuple[str, list[Part], bool]]:
        for neighbour in self._others(id):
            if self._above.get(neighbour) == id:
                arrows = [step.arrow for step in self._steps[id] if step.other == neighbour]
                yield neighbour, [dim(f"{', '.join(arrows)}  ")], True

    def _references(self, id: str) -> Iterator[tuple[str, list[Part], bool]]:
        """Yields the links that the tree does not follow, at the memory that holds them."""
        for step in self._steps[id]:
            along = self._above.get(step.other) == id or self._above.get(id) == step.other
            if step.forward and not along:
                where = dim("  (shown elsewhere)")
                yield step.other, [dim(f"{step.arrow}  "), ident(step.other), where], False
        for arc in self._result.missing:
            if arc.source == id:
                arrow = dim(f"{arrow_of(arc, forward=True)}  ")
                yield arc.target, [arrow, arc.target, warn("  missing")], False

    def _memory(self, node: LinkedMemory, arrow: list[Part], prefix: str) -> None:
        marks = row_labels(node)
        if node.warning:
            marks += ["  ", warn(with_handles(node.warning))]
        title = titled(node.title)
        about = dim(f"  {type_mark(node.type).strip()} {age(node.created_at, self._screen)}")
        self._screen.line(dim(prefix), *arrow, ident(node.id), "  ", title, about, *marks)


def arrow_of(arc: Arc, *, forward: bool) -> str:
    """Returns a link's type with an arrow for its direction."""
    return f"{named(arc)} →" if forward else f"← {named(arc)}"
