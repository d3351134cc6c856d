"""The renderer of linked memories: a tree that contains each memory once."""

from collections.abc import Iterator
from typing import NamedTuple

from mimo.features.graph.commands import Arc, LinkedMemory, LinkGraph, named
from mimo.rendering.results import count, day, render, row_labels
from mimo.rendering.screen import Part, Screen, accent, dim, strong, warn


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
        screen.line("no memory is linked with another")
    if result.cut:
        which = "nearest" if result.start else "newest and those linked with them"
        screen.note(f"{len(result.nodes):,} are shown, the {which}; `--limit` shows more")
    if not result.links and not result.missing:
        screen.note(
            "links are made with `mind save decision … --link builds_on:ID`, by `links:` in a"
            " memory's header, or with [[ID]] or [[title]] in its text"
        )


class _Step(NamedTuple):
    """A link, seen from one of its ends."""

    arc: Arc
    other: str
    forward: bool


class _Tree:
    """Prints each memory below the first one that leads to it; other links only name it."""

    def __init__(self, result: LinkGraph, screen: Screen) -> None:
        """Find the parent of each memory."""
        self._screen = screen
        self._result = result
        self._nodes = {node.id: node for node in result.nodes}
        self._places = {id: place for place, id in enumerate(self._nodes)}
        self._steps: dict[str, list[_Step]] = {id: [] for id in self._nodes}
        for arc in result.links:
            self._steps[arc.source].append(_Step(arc, arc.target, forward=True))
            self._steps[arc.target].append(_Step(arc, arc.source, forward=False))
        self._roots: list[str] = []
        self._above: dict[str, str] = {}
        """The parent of each memory that has one."""
        self._order()

    def write(self) -> None:
        """Writes every tree."""
        for number, root in enumerate(self._roots):
            if number:
                self._screen.blank()
            self._memory(self._nodes[root], [], "", "")
            self._below(root, "")

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
                for other in self._others(id):
                    if other not in seen:
                        seen.add(other)
                        self._above[other] = id
                        waiting.append(other)

    def _others(self, id: str) -> list[str]:
        return sorted({step.other for step in self._steps[id]}, key=self._places.__getitem__)

    def _below(self, id: str, margin: str) -> None:
        """Writes the rows below a memory: its children, and links that lead elsewhere."""
        # Not recursive: a chain can be longer than the recursion limit.
        pending = [self._rows(id, margin)]
        while pending:
            if child := next(pending[-1], None):
                pending.append(self._rows(*child))
            else:
                pending.pop()

    def _rows(self, id: str, margin: str) -> Iterator[tuple[str, str]]:
        """Writes the rows directly below a memory; yields each child with its margin."""
        rows = [*self._children(id), *self._references(id)]
        for number, (other, parts, is_child) in enumerate(rows):
            last = number == len(rows) - 1
            branch, rest = ("└─ ", "   ") if last else ("├─ ", "│  ")
            if is_child:
                self._memory(self._nodes[other], parts, margin + branch, margin + rest)
                yield other, margin + rest
            else:
                self._screen.line(dim(margin + branch), *parts)

    def _children(self, id: str) -> Iterator[tuple[str, list[Part], bool]]:
        for other in self._others(id):
            if self._above.get(other) == id:
                arrows = [_arrow(step) for step in self._steps[id] if step.other == other]
                yield other, [dim(f"{', '.join(arrows)}  ")], True

    def _references(self, id: str) -> Iterator[tuple[str, list[Part], bool]]:
        """Yields the links that the tree does not follow, at the memory that holds them."""
        for step in self._steps[id]:
            along = self._above.get(step.other) == id or self._above.get(id) == step.other
            if step.forward and not along:
                where = dim("  (shown elsewhere)")
                yield step.other, [dim(f"{_arrow(step)}  "), accent(step.other), where], False
        for arc in self._result.missing:
            if arc.source == id:
                arrow = dim(f"{named(arc.type, arc.given)} →  ")
                yield arc.target, [arrow, arc.target, warn("  missing")], False

    def _memory(self, node: LinkedMemory, arrow: list[Part], first: str, rest: str) -> None:
        marks = row_labels(node)
        if node.warning:
            marks += ["  ", warn(node.warning)]
        self._screen.line(dim(first), *arrow, strong(node.title), *marks)
        has_rows = any(True for _ in (*self._children(node.id), *self._references(node.id)))
        bar = "│  " if has_rows else "   "
        about = dim(f"  {node.type}  {day(node.created_at)}")
        self._screen.line(dim(f"{rest}{bar}"), accent(node.id), about)


def _arrow(step: _Step) -> str:
    """Returns a link's type with an arrow for its direction."""
    type = named(step.arc.type, step.arc.given)
    return f"{type} →" if step.forward else f"← {type}"
