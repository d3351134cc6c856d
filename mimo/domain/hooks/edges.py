"""Which edges a text that is about to be written runs into."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mimo.domain.context.note import Note
from mimo.domain.hooks.event import Edit

_MOST_READ = 200_000


class Known(NamedTuple):
    """An edge, and whether it is of the project."""

    note: Note
    of_project: bool = True


class Hit(NamedTuple):
    """An edge, and where a text meets it."""

    note: Note
    path: str
    line: int
    """1-based, in the text that is to be written."""


def met(known: Sequence[Known], edits: Iterable[Edit], stack: Sequence[str] = ()) -> list[Hit]:
    """Returns the edges that are met, the worst first, each where it is met first.

    When one is met is the same as for `mind edges check`.
    """
    # What most tools never need: an edge to hold their text against.
    from mimo.domain import diffs
    from mimo.domain.edges import checking, edge_of
    from mimo.domain.edges.edge import Told
    from mimo.domain.headings import heading

    edges = {}
    for one in known:
        note = one.note
        called = heading(note.title, note.text, note.topic or note.id)
        edge = edge_of(Told(note.id, called, note.text, note.extra))
        edges[id(edge)] = (edge, one)
    added = [diffs.whole(edit.path, edit.text[:_MOST_READ]) for edit in edits]
    held = [(edge, one.of_project) for edge, one in edges.values()]
    hits: dict[int, Hit] = {}
    for warned in checking.check(held, added, stack=stack):
        note = edges[id(warned.edge)][1].note
        hits.setdefault(id(warned.edge), Hit(note, warned.path, warned.line))
    return [hits[key] for key in sorted(hits, key=lambda key: edges[key][0].severity.rank)]
