"""Words -> memories that hold them, by FTS5."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mimo.domain.query import Filter
from mimo.index.catalog import condition

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


def memories_with(
    sql: sqlite3.Connection, terms: Sequence[str], filter_: Filter, *, shadowed: bool
) -> list[int]:
    """Returns the keys of at most `DOCUMENTS` memories that hold any of the terms, best first.

    Only memories that pass the filter are looked at. `shadowed` says whether some are in the
    index that an id is hidden from. Equals are sorted by age, youngest first, then by id.
    """
    if not terms:
        return []
    match = " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
    narrowed, values = "", list[object]()
    if shadowed or filter_ != Filter():
        where, values = condition(filter_)
        narrowed = (
            f"JOIN units n ON n.key = words.rowid JOIN memories m ON m.key = n.memory AND {where}"
        )
    found = sql.execute(
        "SELECT u.memory FROM"
        f" (SELECT words.rowid AS unit, bm25(words) AS weight FROM words {narrowed}"
        " WHERE words MATCH ? ORDER BY weight LIMIT ?) w"
        " JOIN units u ON u.key = w.unit JOIN memories a ON a.key = u.memory"
        " ORDER BY w.weight, a.created DESC, a.id",
        (*values, match, UNITS),
    )
    return list(dict.fromkeys(memory for (memory,) in found))[:DOCUMENTS]
