"""The graph that memories and the links between them make, or a part of it around some memories."""

from typing import NamedTuple

from mimo.domain.memory import Record
from mimo.frozen import frozen

MAX_DEPTH = 5
"""Nobody is led further than so many links from where they started."""


class Node(NamedTuple):
    """A memory of the graph."""

    record: Record
    depth: int
    """How many links it is away from the nearest start; 0 for a start."""


class Edge(NamedTuple):
    """A link between two memories of the graph."""

    source: str
    """The id of the memory that holds the link."""
    target: str
    type: str
    given: str | None
    """The words that were given for the type, where they differ."""
    confidence: float | None


@frozen
class Graph:
    """Memories and every link between them."""

    start: tuple[str, ...]
    """The ids of the memories that it was walked from."""
    nodes: tuple[Node, ...]
    """The nearest first; those equally near by age, newest first, then by id."""
    edges: tuple[Edge, ...]
    """In the order of their sources and targets among the nodes, then by type."""
    missing: tuple[str, ...]
    """What is named by a link, or as a start, and is not there; sorted."""
    cut: bool = False
    """Whether there were more nodes than were asked for."""
