"""The memories that a query may mean: those that hold its words, or have a vector near to its."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mimo.index import catalog
from mimo.index.schema import marks, newest_first
from mimo.index.vectors import Vectors
from mimo.memory.model import Filter

UNITS = 200
"""The number of units that words find, by BM25."""

DOCUMENTS = 60
"""The number of their memories that are ranked; more changed no measurement by 0.1."""

NEAR = 50
"""The number of units that vectors find."""

_PRUNED_FROM = 50_000
_PRUNED_SHARE = 10
_PRUNED_LEAST = 1_000
_PRUNED_TERMS = 2

_ENOUGH = 2
"""Among this many times a fair share of units, enough are expected to pass the filter."""

_MANY = 4
"""That is tried if at least one of this many memories passes the filter."""

_COMPARED_EACH = 10_000
"""If no more memories than this pass the filter, their vectors are compared one by one."""


class Totals(NamedTuple):
    """Sums over the whole index."""

    revision: int
    """Rises with each change by any process."""
    memories: int
    units: int
    unit_tokens: int
    passages: int
    passage_tokens: int
    shadowed: int


class Reach(NamedTuple):
    """The number of rows that a search by words may have to read."""

    memories: int
    """All memories in the index, also those whose id belongs to another memory."""
    admitted: int
    """The memories that pass the filter."""
    matches: int
    """An upper bound of the units that hold a term."""


def totals(sql: sqlite3.Connection) -> Totals:
    """Returns the sums over the index."""
    return Totals(*sql.execute(f"SELECT {', '.join(Totals._fields)} FROM totals").fetchone())


def frequency(sql: sqlite3.Connection, term: str) -> int:
    """Returns the number of units that hold a term."""
    counted = sql.execute("SELECT doc FROM vocabulary WHERE term = ?", (term,)).fetchone()
    return int(counted[0]) if counted else 0


def pruned(terms: Sequence[str], frequencies: Mapping[str, int], units: int) -> list[str]:
    """Returns the terms that memories are looked up by: all of them, unless the store is large.

    In a large store these are the rarest ones, at least two, that match up to a tenth of the units.
    This lost nothing in measurements and avoids reading the long lists of common words.
    """
    if units < _PRUNED_FROM:
        return list(terms)
    kept: list[str] = []
    matches = 0
    for term in sorted(terms, key=lambda term: frequencies[term]):
        matches += frequencies[term]
        if len(kept) >= _PRUNED_TERMS and matches > max(units // _PRUNED_SHARE, _PRUNED_LEAST):
            break
        if frequencies[term]:
            kept.append(term)
    return kept


# The units that match best, before any filter.
_BEST = (
    "SELECT words.rowid AS unit, bm25(words) AS weight FROM words"
    " WHERE words MATCH ? ORDER BY weight LIMIT ?"
)
# The same units of memories that pass a filter, in three ways. Looking up the memory of a match
# costs more than finding the match, so the fastest way depends on what is rare.
_AMONG_THE_BEST = (
    f"SELECT w.unit, w.weight FROM ({_BEST}) w JOIN units n ON n.key = w.unit"
    " JOIN memories m ON m.key = n.memory AND {} ORDER BY w.weight LIMIT ?"
)
_OF_THE_ADMITTED = (
    "SELECT words.rowid AS unit, bm25(words) AS weight FROM words"
    " WHERE words MATCH ? AND +words.rowid IN"
    " (SELECT n.key FROM memories m CROSS JOIN units n ON n.memory = m.key WHERE {})"
    " ORDER BY weight LIMIT ?"
)
_ONE_BY_ONE = (
    "SELECT words.rowid AS unit, bm25(words) AS weight FROM words"
    " JOIN units n ON n.key = words.rowid JOIN memories m ON m.key = n.memory AND {}"
    " WHERE words MATCH ? ORDER BY weight LIMIT ?"
)


def memories_with(
    sql: sqlite3.Connection, terms: Sequence[str], filter: Filter, reach: Reach
) -> list[int]:
    """Returns the keys of at most `DOCUMENTS` memories that hold any of the terms, best first.

    Only memories that pass the filter are returned. Memories of equal weight are sorted by age,
    youngest first, then by id.
    """
    if not terms:
        return []
    match = " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
    if reach.admitted >= reach.memories:
        memories = _matched(sql, _BEST, (match, UNITS))
    else:
        memories = _matched_and_admitted(sql, match, filter, reach)
    return list(dict.fromkeys(memories))[:DOCUMENTS]


def _matched_and_admitted(
    sql: sqlite3.Connection, match: str, filter: Filter, reach: Reach
) -> list[int]:
    where, values = catalog.condition(filter)
    first = _ENOUGH * UNITS * reach.memories // max(reach.admitted, 1)
    if reach.admitted * _MANY >= reach.memories and first < reach.matches:
        among_best = (match, first, *values, UNITS)
        memories = _matched(sql, _AMONG_THE_BEST.format(where), among_best)
        if len(memories) >= UNITS:
            return memories
    if reach.admitted < reach.matches:
        return _matched(sql, _OF_THE_ADMITTED.format(where), (match, *values, UNITS))
    return _matched(sql, _ONE_BY_ONE.format(where), (*values, match, UNITS))


def _matched(sql: sqlite3.Connection, units: str, values: Sequence[object]) -> list[int]:
    """Returns the memory of each unit that a query selects, best first."""
    selected = sql.execute(
        f"SELECT u.memory FROM ({units}) w"
        " JOIN units u ON u.key = w.unit JOIN memories a ON a.key = u.memory"
        f" ORDER BY w.weight, {newest_first('a')}",
        values,
    )
    return [memory for (memory,) in selected]


def memories_near(
    sql: sqlite3.Connection, vectors: Vectors, query: bytes, filter: Filter
) -> list[int]:
    """Returns the keys of the memories whose units are nearest to a query's vector, nearest first.

    Only memories that pass the filter are returned.
    """
    admitted, memories = catalog.count(sql, filter), catalog.count(sql, Filter())
    for depth in _depths(memories, admitted):
        near = dict(vectors.nearest(query, depth))
        units = _units_of(sql, filter, list(near))
        if len(units) >= NEAR or len(near) < depth:
            return _nearest(units, near)
    where, values = catalog.condition(filter)
    names = sql.execute(
        f"SELECT u.vector FROM memories m CROSS JOIN units u ON u.memory = m.key WHERE {where}",
        values,
    )
    near = dict(vectors.among(query, (name for (name,) in names), NEAR))
    return _nearest(_units_of(sql, filter, list(near)), near)


def _depths(memories: int, admitted: int) -> tuple[int, ...]:
    """Returns how many of the nearest vectors to fetch, in turn, to find some that pass a filter.

    If few memories pass it, none: these are compared one by one. Twice the fair share is mostly
    enough; if the filter is a span of time, the query's subject may hardly occur in it.
    """
    if admitted >= memories:
        return (NEAR, 20 * NEAR)
    if admitted <= _COMPARED_EACH:
        return ()
    first = 2 * NEAR * memories // admitted
    return tuple(sorted({first, max(first, 20 * NEAR)}))


_Unit = tuple[bytes, int, int, str]
"""The name of a unit's vector, and the key, time and id of its memory."""


def _units_of(sql: sqlite3.Connection, filter: Filter, vectors: Sequence[bytes]) -> list[_Unit]:
    """Returns the units that have one of these vectors, of memories that pass the filter."""
    where, values = catalog.condition(filter)
    return sql.execute(
        # SQLite makes a cross join from left to right: vectors are looked up in `units`.
        "SELECT u.vector, m.key, m.created, m.id FROM units u CROSS JOIN memories m"
        f" ON m.key = u.memory WHERE {where} AND u.vector IN ({marks(vectors)})",
        (*values, *vectors),
    ).fetchall()


def _nearest(units: Iterable[_Unit], cosines: Mapping[bytes, float]) -> list[int]:
    close = [unit for unit in units if cosines.get(unit[0], 0.0) > 0]
    close.sort(key=lambda unit: (-cosines[unit[0]], -unit[2], unit[3]))
    return list(dict.fromkeys(key for _, key, *_ in close[:NEAR]))
