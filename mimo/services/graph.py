"""Following links from memory to memory, in both directions."""

from collections.abc import Collection, Sequence

from mimo.domain.graph import MAX_DEPTH, Edge, Graph, Node
from mimo.mind import Mind
from mimo.services import upkeep

__all__ = ["MAX_DEPTH", "Edge", "Graph", "Node", "traverse"]


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
    return upkeep.ask(
        mind,
        lambda index: index.graph(
            start, depth=max(0, min(depth, MAX_DEPTH)), types=types, most=most, now=mind.now()
        ),
    )
