"""Near-duplicates among all memories, for a review.

Looking up each memory takes long, so `meta` has those of the last review, and only memories that
changed since are looked up.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING

from mimo.errors import StorageFailed
from mimo.frozen import NamedTuple
from mimo.index import rows, schema, survey, tracking, writing
from mimo.index.schema import CURRENT, marks, newest_first, portions
from mimo.memory import duplicates
from mimo.memory.model import Record

if TYPE_CHECKING:
    from mimo.index.index import Reader

_MOST_PAIRS = 5_000
"""The number of pairs that are kept from one review to the next."""

_MOST_CHANGED = 200
"""The number of changed memories up to which near-duplicates of the last review are used."""


class Doubles(NamedTuple):
    """The near-duplicates of the newest memories at a revision."""

    revision: int
    compared: list[int]
    pairs: list[tuple[int, int, float]]
    """Those of the compared memories, another one each, and how much they are alike."""


def near_duplicates(reader: Reader, limit: int) -> tuple[tuple[Record, Record], ...]:
    """Returns near-duplicates among the newest `limit` memories, each with the nearest."""
    identity, pairs, now = reader.ask(lambda sql: (sql.identity, *_doubles(sql, limit)))
    if now:
        reader.end()
        with suppress(StorageFailed), reader.index.writing() as sql:
            if sql.identity == identity:
                tracking.note(sql, "doubles", json.dumps(now), now.revision)
    return pairs


def _doubles(
    sql: sqlite3.Connection, limit: int
) -> tuple[tuple[tuple[Record, Record], ...], Doubles | None]:
    """Returns those of the newest memories that have a near-duplicate, each with the nearest one.

    The newest `limit` memories without parts of ingested texts are compared with all others. All
    are current, and none is a checkpoint: two of those may be the same. Also returns what is
    kept for the next review, if it has changed.
    """
    current = f"m.shadowed = 0 AND m.type <> 'checkpoint' AND {CURRENT.format('m')}"
    newest = (
        f"SELECT m.key FROM memories m WHERE {current} AND m.parent IS NULL"
        f" ORDER BY {newest_first('m')} LIMIT ?"
    )
    keys = [key for (key,) in sql.execute(newest, (limit,))]
    kept, changed = _stored_doubles(sql)
    old = set(kept.compared).intersection(keys) - changed
    pairs = [pair for pair in kept.pairs if pair[0] in old and pair[1] not in changed]
    fresh = [key for key in keys if key not in old]
    if fresh or changed:
        pairs += _compared(sql, fresh, old, changed)
    ages: dict[int, tuple[int, str]] = {}
    for some in portions(list({key for pair in pairs for key in pair[:2]})):
        query = "SELECT m.created, m.id, m.key FROM memories m"
        selected = sql.execute(f"{query} WHERE m.key IN ({marks(some)}) AND {current}", some)
        ages |= {key: (created, id) for created, id, key in selected}
    nearest: dict[int, tuple[float, tuple[int, str], int]] = {}
    for key, other, alike in pairs:
        if other in ages:
            new = (-alike, ages[other], other)
            nearest[key] = min(nearest.get(key, new), new)
    by_key = survey.records(sql, list({*nearest, *(other for *_, other in nearest.values())}))
    named = tuple((by_key[key], by_key[nearest[key][-1]]) for key in keys if key in nearest)
    now = Doubles(schema.totals(sql).revision, keys, pairs)
    is_new = (fresh or changed) and len(pairs) <= _MOST_PAIRS
    return named, now if is_new else None


def _stored_doubles(sql: sqlite3.Connection) -> tuple[Doubles, set[int]]:
    """Returns the near-duplicates of the last review, and the memories that changed since."""
    noted = sql.execute("SELECT value FROM meta WHERE name = 'doubles'").fetchone()
    if noted:
        stored = Doubles(*rows.from_json(noted[0]))
        changed = tracking.changed_since(sql, stored.revision)
        if changed is not None and len(changed) <= _MOST_CHANGED:
            return stored, set(changed)
    return Doubles(0, [], []), set()


def _compared(
    sql: sqlite3.Connection, fresh: Sequence[int], old: Collection[int], changed: Collection[int]
) -> list[tuple[int, int, float]]:
    """Returns the near-duplicates of fresh memories, and those of old ones that have changed."""
    pairs: list[tuple[int, int, float]] = []
    query = (
        f"SELECT m.key, {writing.TOKENS} FROM memories m LEFT JOIN units u ON u.memory = m.key"
        " WHERE m.key IN ({}) GROUP BY m.key"
    )
    frequency = cache(partial(schema.frequency, sql))  # Counting a common word takes long.
    for keys in portions(list({*fresh, *changed})):
        for key, tokens in sql.execute(query.format(marks(keys)), keys).fetchall():
            words = duplicates.words_of(tokens)
            for twin, alike in writing.near_duplicates(sql, words, frequency, "m.key <> ?", key):
                pairs += [(key, twin, alike)] if key in fresh else []
                pairs += [(twin, key, alike)] if key in changed and twin in old else []
    return pairs
