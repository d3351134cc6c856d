"""Edges for tests."""

from mimo.features.pitfalls.edge import Detection, Edge, Severity


def edge(*code: str, title: str = "An edge", tags: tuple[str, ...] = (), **fields) -> Edge:
    """Returns an edge with these patterns; `fields` replace its other fields."""
    plain = Edge(
        id="edge_x",
        title=title,
        description="What happens",
        workaround="Use another",
        detection=Detection(code=code),
        stack_tags=tags,
        severity=Severity.WARNING,
    )
    return plain._replace(**fields)
