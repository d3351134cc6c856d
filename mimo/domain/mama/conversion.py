"""A whole MAMA database as memories: each row's id, its links, and the rows that say nothing."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import starmap

from mimo.domain.mama import memories, names
from mimo.domain.mama.relations import LinkCounts, Related, relations
from mimo.domain.mama.values import Row, text
from mimo.domain.memory import Kind, Memory
from mimo.frozen import frozen

TABLES: Mapping[str, Kind] = {
    "decisions": Kind.DECISION,
    "checkpoints": Kind.CHECKPOINT,
    "sessions": Kind.CONTEXT,
    "error_patterns": Kind.INSIGHT,
}
"""The tables whose rows become memories, with the type that they become."""

EDGES = "decision_edges"
"""The table whose rows become links."""

_NUMBERED = {
    "checkpoints": "checkpoint_",
    "sessions": "session_",
    "error_patterns": "error_pattern_",
}
"""What stands before an id that is a number alone."""


@frozen
class Source:
    """Where a memory comes from: a row, which may say nothing."""

    table: str
    key: str
    """The row's own id, as text."""
    memory: Memory | None


@frozen
class Converted:
    """What all rows of a database become, in their order."""

    rows: tuple[Source, ...]
    links: LinkCounts


def convert(tables: Mapping[str, Sequence[Row]], *, now: datetime) -> Converted:
    """Returns the memories that a database's rows say.

    The same rows always become the same memories; only where none tells a time it is `now`.
    """
    rows = [(table, row) for table in TABLES for row in tables.get(table, ())]
    keys = list(starmap(_key, rows))
    wanted = ((TABLES[table], _raw(table, key)) for (table, _), key in zip(rows, keys, strict=True))
    ids = names.assigned(wanted)
    decisions = [
        (key, id_, row)
        for (table, row), key, id_ in zip(rows, keys, ids, strict=True)
        if table == "decisions" and memories.says_something(row)
    ]
    related = relations(
        [(key, row) for key, _, row in decisions],
        tables.get(EDGES, ()),
        {key: id_ for key, id_, _ in decisions},
    )
    # A row without a time of its own must not seem the newest of all.
    first = min(filter(None, (memories.told_time(row) for _, row in rows)), default=now)
    made = (
        Source(table=table, key=key, memory=_memory(table, row, id_, related.of(key), first))
        for (table, row), key, id_ in zip(rows, keys, ids, strict=True)
    )
    return Converted(rows=tuple(made), links=related.counts)


def _memory(table: str, row: Row, id_: str, related: Related, first: datetime) -> Memory | None:
    match TABLES[table]:
        case Kind.DECISION:
            made = memories.decision(row, id_, otherwise=first, related=related)
        case Kind.CHECKPOINT:
            made = memories.checkpoint(row, id_, otherwise=first)
        case Kind.CONTEXT:
            made = memories.session(row, id_, otherwise=first)
        case _:
            made = memories.error_pattern(row, id_, otherwise=first)
    return made if made.content.strip() or made.sections or made.topic else None


def _key(table: str, row: Row) -> str:
    """Returns a row's id; one without any gets a hash of what it says."""
    if told := text(row.get("id")):
        return told
    said = repr(sorted((name, value) for name, value in row.items() if value is not None))
    return f"{TABLES[table].value}_{sha256(said.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _raw(table: str, key: str) -> str:
    """Returns the id that a row asks for: a number alone needs a word before it."""
    return f"{_NUMBERED[table]}{key}" if table in _NUMBERED and key.isdigit() else key
