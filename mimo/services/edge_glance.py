"""Edges at a glance: for a hook, which may neither refresh nor embed anything.

The edges of the project are given, as they stood in the index at its last refresh; everybody's are
read here. Whose text nobody approved is the caller's to leave out.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from mimo.domain import edges
from mimo.domain.diffs import Added, whole
from mimo.domain.edges import Edge
from mimo.domain.edges.checking import check
from mimo.domain.memory import Memory
from mimo.frozen import frozen
from mimo.store.global_edges import GlobalEdges

_SURE = 0.5
"""An edge of which only one thing speaks is too often not meant to be told unasked."""


@frozen
class Met:
    """An edge that somebody runs into, and why."""

    edge: Edge
    of_project: bool
    matched_on: str
    line: int | None = None
    """The 1-based line of the code that runs into it; None where the intent alone does."""


def of_everybody(home: Path) -> tuple[Memory, ...]:
    """Returns the edges of the user's own home, which hold in every project."""
    return tuple(record.memory for record in GlobalEdges(home).all()[0])


def met(
    of_project: Iterable[Memory],
    of_everybody: Iterable[Memory],
    *,
    intent: str = "",
    code: str = "",
    path: str = "",
    stack: Sequence[str] = (),
) -> list[Met]:
    """Returns the edges that code for a file at `path` runs into, then those that an intent does.

    Each is told once. `path` is relative to the project, and need not exist.
    """
    known = [(edges.edge_of(memory), True) for memory in of_project]
    known += [(edges.edge_of(memory), False) for memory in of_everybody]
    found = [*_in_code(known, whole(path, code) if code else None, stack)]
    found += _meant(known, intent, stack) if intent.strip() else []
    first: dict[int, Met] = {}
    for one in found:
        first.setdefault(id(one.edge), one)
    return list(first.values())


def _in_code(
    known: list[tuple[Edge, bool]], added: Added | None, stack: Sequence[str]
) -> Iterable[Met]:
    whose = {id(edge): own for edge, own in known}
    for warned in check(known, [added] if added else [], stack=stack):
        yield Met(
            edge=warned.edge,
            of_project=whose[id(warned.edge)],
            matched_on=warned.matched_on,
            line=warned.line,
        )


def _meant(known: list[tuple[Edge, bool]], intent: str, stack: Sequence[str]) -> Iterable[Met]:
    question = edges.asked(intent, stack)
    matches = (
        (found, own)
        for edge, own in known
        if (found := edges.match(edge, question, of_project=own)) and found.confidence >= _SURE
    )
    for found, own in sorted(matches, key=lambda one: one[0].order):
        yield Met(edge=found.edge, of_project=own, matched_on=found.matched_on)
