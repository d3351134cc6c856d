"""Words -> memories that hold them, by FTS5."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mimo.index.catalog import condition
from mimo.index.schema import newest_first
from mimo.memory.model import Filter

UNITS = 200
"""So many units are taken, best BM25 first."""

DOCUMENTS = 60
"""So many of their documents are ranked: more changed no figure by 0.1."""

_PRUNED_FROM = 50_000
_PRUNED_SHARE = 10
_PRUNED_LEAST = 1_000
_PRUNED_TERMS = 2


class Totals(NamedTuple):
    """Sums over the whole index."""

    revision: int
    """Goes up with each change, whoever makes it."""
    memories: int
    units: int
    unit_tokens: int
    passages: int
    passage_tokens: int
    shadowed: int


def totals(sql: sqlite3.Connection) -> Totals:
    """Returns the sums as they stand."""
    found = sql.execute(
        "SELECT revision, memories, units, unit_tokens, passages, passage_tokens, shadowed"
        " FROM totals"
    ).fetchone()
    return Totals(*found)


def frequency(sql: sqlite3.Connection, term: str) -> int:
    """Returns the number of units that hold a term."""
    found = sql.execute("SELECT doc FROM vocabulary WHERE term = ?", (term,)).fetchone()
    return int(found[0]) if found else 0


def pruned(terms: Sequence[str], frequencies: Mapping[str, int], units: int) -> list[str]:
    """Returns the terms that candidates are looked up by: all of them in a store that is not large.

    In a large one the rarest come first, at least two, up to where they fit a tenth of the units:
    this lost nothing in the measurements, and spares reading the long lists of common words.
    """
    if units < _PRUNED_FROM:
        return list(terms)
    kept: list[str] = []
    total = 0
    for term in sorted(terms, key=lambda term: frequencies[term]):
        total += frequencies[term]
        if len(kept) >= _PRUNED_TERMS and total > max(units // _PRUNED_SHARE, _PRUNED_LEAST):
            break
        if frequencies[term]:
            kept.append(term)
    return kept


class Reach(NamedTuple):
    """How much a search by words has to look at."""

    memories: int
    """In the index, those that an id is hidden from among them."""
    admitted: int
    """Of these, those that pass the filter."""
    matches: int
    """Units that hold a term: not more than so many."""


def memories_with(
    sql: sqlite3.Connection, terms: Sequence[str], filter_: Filter, reach: Reach
) -> list[int]:
    """Returns the keys of at most `DOCUMENTS` memories that hold any of the terms, best first.

    Only memories that pass the filter are looked at. Equals are sorted by age, youngest first, then
    by id.
    """
    if not terms:
        return []
    match = " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
    if reach.admitted >= reach.memories:
        return _documents(sql, _BEST, (match, UNITS))
    where, values = condition(filter_)
    first = _ENOUGH * UNITS * reach.memories // max(reach.admitted, 1)
    if reach.admitted * _MANY >= reach.memories and first < reach.matches:
        found = _units(sql, _AMONG_THE_BEST.format(where), (match, first, *values, UNITS))
        if len(found) >= UNITS:
            return _first(found)
    if reach.admitted < reach.matches:
        return _documents(sql, _OF_THE_ADMITTED.format(where), (match, *values, UNITS))
    return _documents(sql, _ONE_BY_ONE.format(where), (*values, match, UNITS))


_ENOUGH = 2
"""Among twice as many units as a fair share would need, enough are expected to pass the filter."""

_MANY = 4
"""Where at least one in so many memories passes the filter, that is tried."""

_BEST = (
    "SELECT words.rowid AS unit, bm25(words) AS weight FROM words"
    " WHERE words MATCH ? ORDER BY weight LIMIT ?"
)
"""The units that match best, whatever a filter says."""

# The same units, best first, of memories that pass a filter, in three ways. To look up the memory
# of each match costs more than to find the match, so which way is short depends on what is rare.
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


def _units(sql: sqlite3.Connection, chosen: str, values: Sequence[object]) -> list[int]:
    """Returns the memory of each chosen unit, best first."""
    found = sql.execute(
        f"SELECT u.memory FROM ({chosen}) w"
        " JOIN units u ON u.key = w.unit JOIN memories a ON a.key = u.memory"
        f" ORDER BY w.weight, {newest_first('a')}",
        values,
    )
    return [memory for (memory,) in found]


def _documents(sql: sqlite3.Connection, chosen: str, values: Sequence[object]) -> list[int]:
    return _first(_units(sql, chosen, values))


def _first(memories: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(memories))[:DOCUMENTS]
