"""Walks along the links between memories, in both directions."""

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

    A start is an id or a title, as in a link. At most `MAX_DEPTH` links are followed, only links of
    `types` if any are given, and the nearest `most` memories are kept.
    """
    return refresh.up_to_date(mind).graph(
        start, depth=max(0, min(depth, MAX_DEPTH)), types=types, most=most, now=mind.now()
    )


def newest_first(chain: Graph) -> list[Record]:
    """Returns the memories of a graph, newest first; of equal age, the superseding one first."""
    waiting = [node.record for node in chain.nodes]
    waiting.sort(key=lambda record: record.memory.created, reverse=True)
    newer: dict[str, set[str]] = {}
    for edge in chain.edges:
        if edge.type == SUPERSEDES:
            newer.setdefault(edge.target, set()).add(edge.source)
    records: list[Record] = []
    while waiting:
        moment, left = waiting[0].memory.created, {record.memory.id for record in waiting}
        equal = [record for record in waiting if record.memory.created == moment]
        free = [record for record in equal if not newer.get(record.memory.id, set()) & left]
        records.append((free or equal)[0])
        waiting.remove(records[-1])
    return records


def everything(mind: Mind, *, types: Collection[str] = (), most: int) -> Graph:
    """Returns up to `most` memories that are linked with others, and the links between them.

    The graph has no start, and every memory is at depth 0. If there are more, the newest are
    returned with their groups.
    """
    return refresh.up_to_date(mind).newest_linked(types, most)
