"""Following links from memory to memory, in both directions."""

from collections.abc import Collection, Sequence

from mimo.memory.model import SUPERSEDES, Record
from mimo.memory.relations import MAX_DEPTH, Edge, Graph, Node
from mimo.mind import Mind
from mimo.operations import refresh

__all__ = ["MAX_DEPTH", "Edge", "Graph", "Node", "everything", "newest_first", "traverse"]


def traverse(
    mind: Mind,
    start: Sequence[str],
    *,
    depth: int,
    types: Collection[str] = (),
    most: int | None = None,
) -> Graph:
    """Returns the memories within `depth` links of `start`, and the links between them.

    A start is an id or a title, as in a link. No more than `MAX_DEPTH` links are followed whatever
    is asked; only links of `types`, where any are named; and the nearest `most` memories are kept.
    """
    return refresh.up_to_date(mind).graph(
        start, depth=max(0, min(depth, MAX_DEPTH)), types=types, most=most, now=mind.now()
    )


def newest_first(chain: Graph) -> list[Record]:
    """Returns the memories of a graph, newest first; of one second, what supersedes comes first."""
    waiting = sorted((n.record for n in chain.nodes), key=lambda r: r.memory.created, reverse=True)
    newer: dict[str, set[str]] = {}
    for edge in chain.edges:
        if edge.type == SUPERSEDES:
            newer.setdefault(edge.target, set()).add(edge.source)
    found: list[Record] = []
    while waiting:
        moment, left = waiting[0].memory.created, {record.memory.id for record in waiting}
        equal = [record for record in waiting if record.memory.created == moment]
        free = [record for record in equal if not newer.get(record.memory.id, set()) & left]
        found.append((free or equal)[0])
        waiting.remove(found[-1])
    return found


def everything(mind: Mind, *, types: Collection[str] = (), most: int) -> Graph:
    """Returns up to `most` memories that are linked with others, and the links between them.

    It starts nowhere, and every memory is at depth 0. Of more the newest come with their groups.
    """
    return refresh.up_to_date(mind).newest_linked(types, most)
