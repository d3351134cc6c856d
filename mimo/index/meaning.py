"""Memories whose vectors are near to a query's, and whether all have theirs."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from mimo.domain.query import Filter
from mimo.index import catalog, rows
from mimo.index.cosine import cosines
from mimo.index.embedding import Embedder
from mimo.index.vectors import Vectors

NEAR = 50
"""So many units are taken that are nearest to a query, where words find too little."""

_COMPARED_EACH = 2_000
"""Of so many units or fewer, those that pass the filter are compared one by one."""

_DEEPEST = 400 * NEAR
"""So many of all vectors are looked through, at most, for units that pass the filter."""


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
    if admitted <= _COMPARED_EACH:
        units = _units(sql, filter_)
        if len(units) <= 2 * _COMPARED_EACH:
            known = vectors.get({name for name, *_ in units})
            found = dict(zip(known, cosines(query, list(known.values())), strict=True))
            return _nearest(units, found)
    units, found = [], {}
    for depth in _depths(memories / max(admitted, 1)):
        found = dict(vectors.nearest(query, depth))
        units = _units(sql, filter_, list(found))
        if len(units) >= NEAR or len(found) < depth:
            break
    return _nearest(units, found)


def _depths(memories_each: float) -> tuple[int, ...]:
    """Returns how many of all vectors are looked through, in turn, where one in so many counts.

    With twice the fair share the first look is mostly the last one.
    """
    first = NEAR if memories_each <= 1 else int(2 * NEAR * memories_each)
    second = max(first, 20 * NEAR)
    return tuple(sorted({min(depth, _DEEPEST) for depth in (first, second, _DEEPEST)}))


_Unit = tuple[bytes, int, int, str]
"""The name of its vector, and of its memory the key, the time and the id."""


def _units(
    sql: sqlite3.Connection, filter_: Filter, names: Sequence[bytes] | None = None
) -> list[_Unit]:
    where, values = catalog.condition(filter_)
    tables = "memories m JOIN units u"
    if names is not None:
        tables = "units u CROSS JOIN memories m"
        where += f" AND u.vector IN ({rows.marks(names)})"
    return sql.execute(
        # A cross join is made from left to right: what is named is looked up in `units`.
        f"SELECT u.vector, m.key, m.created, m.id FROM {tables} ON m.key = u.memory WHERE {where}",
        (*values, *(names or ())),
    ).fetchall()


def _nearest(units: Iterable[_Unit], cosines: Mapping[bytes, float]) -> list[int]:
    close = [unit for unit in units if cosines.get(unit[0], 0.0) > 0]
    close.sort(key=lambda unit: (-cosines[unit[0]], -unit[2], unit[3]))
    return list(dict.fromkeys(key for _, key, *_ in close[:NEAR]))
