"""How linked memories look: a tree, in which each of them stands once."""

from collections.abc import Iterator
from typing import NamedTuple

from mimo.features.graph.commands import Arc, LinkedMemory, LinkGraph, named
from mimo.rendering.results import count, day, labels, render
from mimo.rendering.screen import Part, Screen, accent, dim, strong, warn


@render.register
def _(result: LinkGraph, screen: Screen) -> None:
    if result.drawing:
        screen.verbatim(result.drawing)
    elif result.nodes:
        _Tree(result, screen).write()
        links = len(result.links) + len(result.missing)
        told = f"{count(len(result.nodes), 'memory', 'memories')}, {count(links, 'link')}"
        screen.blank()
        screen.line(dim(told))
    else:
        screen.line("no memory is linked with another")
    if result.cut:
        which = "nearest" if result.start else "newest with what is linked to them"
        screen.note(f"{len(result.nodes):,} are shown, the {which}; `--limit` shows more")
    if not result.links and not result.missing:
        screen.note(
            "links are made with `mind save decision … --link builds_on:ID`, by `links:` in a"
            " memory's header, or with [[ID]] or [[title]] in its text"
        )


class _Step(NamedTuple):
    """A link as it is met from one of its ends."""

    arc: Arc
    other: str
    forward: bool


class _Tree:
    """Each memory stands below the first that leads to it; further links to it name it only."""

    def __init__(self, result: LinkGraph, screen: Screen) -> None:
        """Find what stands below what."""
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
        """Write every tree."""
        for number, root in enumerate(self._roots):
            if number:
                self._screen.blank()
            self._memory(self._nodes[root], [], "", "")
            self._below(root, "")

    def _order(self) -> None:
        """Spreads from each start, or from the newest of each group, nearest first."""
        seen: set[str] = set()
        starts = [*self._result.start, *self._nodes]
        for root in (id for id in starts if id in self._nodes):
            if root in seen:
                continue
            self._roots.append(root)
            seen.add(root)
            waiting = [root]
            for id in waiting:  # It grows meanwhile.
                for other in self._others(id):
                    if other not in seen:
                        seen.add(other)
                        self._above[other] = id
                        waiting.append(other)

    def _others(self, id: str) -> list[str]:
        return sorted({step.other for step in self._steps[id]}, key=self._places.__getitem__)

    def _below(self, id: str, margin: str) -> None:
        """Write what stands below a memory: those it leads to, and links that lead elsewhere."""
        # A chain may be longer than Python's stack is deep.
        pending = [self._rows(id, margin)]
        while pending:
            if child := next(pending[-1], None):
                pending.append(self._rows(*child))
            else:
                pending.pop()

    def _rows(self, id: str, margin: str) -> Iterator[tuple[str, str]]:
        """Writes the rows right below a memory; yields each memory that has rows of its own."""
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
        """Yields the links that the tree does not follow, each at the memory that holds it."""
        for step in self._steps[id]:
            along = self._above.get(step.other) == id or self._above.get(id) == step.other
            if step.forward and not along:
                where = dim("  (shown elsewhere)")
                yield step.other, [dim(f"{_arrow(step)}  "), accent(step.other), where], False
        for arc in self._result.missing:
            if arc.source == id:
                how = dim(f"{named(arc.type, arc.given)} →  ")
                yield arc.target, [how, arc.target, warn("  not there")], False

    def _memory(self, node: LinkedMemory, how: list[Part], first: str, rest: str) -> None:
        marks = labels(outcome=node.outcome, superseded_by=node.superseded_by, trust=node.trust)
        if node.warning:
            marks += ["  ", warn(node.warning)]
        self._screen.line(dim(first), *how, strong(node.title), *marks)
        has_rows = any(True for _ in (*self._children(node.id), *self._references(node.id)))
        bar = "│  " if has_rows else "   "
        about = dim(f"  {node.type}  {day(node.created_at)}")
        self._screen.line(dim(f"{rest}{bar}"), accent(node.id), about)


def _arrow(step: _Step) -> str:
    """Returns a link with its direction, as seen from where it is met."""
    how = named(step.arc.type, step.arc.given)
    return f"{how} →" if step.forward else f"← {how}"
