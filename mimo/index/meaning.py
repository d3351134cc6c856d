"""Memories whose vectors are near to a query's, and whether all have theirs."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from mimo.index import catalog, rows
from mimo.index.embedding import Embedder
from mimo.index.vectors import Vectors
from mimo.memory.model import Filter

NEAR = 50
"""So many units are taken that are nearest to a query, where words find too little."""

_COMPARED_EACH = 10_000
"""Of so many memories or fewer, those that pass the filter are compared one by one at once."""


def is_complete(sql: sqlite3.Connection, embedder: Embedder, vectors: Vectors) -> bool:
    """Returns whether the vectors of all that the index holds are there, of this embedder's model.

    A few are looked up, for they are lost together or not at all.
    """
    few = [name for (name,) in sql.execute("SELECT vector FROM units ORDER BY key LIMIT 3")]
    (model,) = sql.execute("SELECT value FROM meta WHERE name = 'model'").fetchone()
    return not few or (model == embedder.model and bool(vectors.known(few)))


def memories_near(
    sql: sqlite3.Connection, vectors: Vectors, query: bytes, filter_: Filter
) -> list[int]:
    """Returns the keys of the memories whose units are nearest to a query's vector, nearest first.

    Only memories that pass the filter are looked at.
    """
    admitted, memories = catalog.count(sql, filter_), catalog.count(sql, Filter())
    for depth in _depths(memories, admitted):
        found = dict(vectors.nearest(query, depth))
        units = _units(sql, filter_, list(found))
        if len(units) >= NEAR or len(found) < depth:
            return _nearest(units, found)
    where, values = catalog.condition(filter_)
    names = sql.execute(f"SELECT u.vector {_JOINED} WHERE {where}", values)
    found = dict(vectors.among(query, (name for (name,) in names), NEAR))
    return _nearest(_units(sql, filter_, list(found)), found)


def _depths(memories: int, admitted: int) -> tuple[int, ...]:
    """Returns how many of all vectors are looked through, in turn, for some that pass a filter.

    None where a part passes that is soon compared. With twice the fair share the first look is
    mostly the last one; what a time has in common may be what the query is not about.
    """
    if admitted >= memories:
        return (NEAR, 20 * NEAR)
    if admitted <= _COMPARED_EACH:
        return ()
    first = 2 * NEAR * memories // admitted
    return tuple(sorted({first, max(first, 20 * NEAR)}))


_Unit = tuple[bytes, int, int, str]
"""The name of its vector, and of its memory the key, the time and the id."""


_JOINED = "FROM memories m CROSS JOIN units u ON u.memory = m.key"


def _units(sql: sqlite3.Connection, filter_: Filter, names: Sequence[bytes]) -> list[_Unit]:
    """Returns the units with one of these vectors, of memories that pass the filter."""
    where, values = catalog.condition(filter_)
    return sql.execute(
        # A cross join is made from left to right: what is named is looked up in `units`.
        "SELECT u.vector, m.key, m.created, m.id FROM units u CROSS JOIN memories m"
        f" ON m.key = u.memory WHERE {where} AND u.vector IN ({rows.marks(names)})",
        (*values, *names),
    ).fetchall()


def _nearest(units: Iterable[_Unit], cosines: Mapping[bytes, float]) -> list[int]:
    close = [unit for unit in units if cosines.get(unit[0], 0.0) > 0]
    close.sort(key=lambda unit: (-cosines[unit[0]], -unit[2], unit[3]))
    return list(dict.fromkeys(key for _, key, *_ in close[:NEAR]))
