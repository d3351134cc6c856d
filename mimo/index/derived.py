"""Near-duplicates, and the memories that may cite a place in a file.

Reading all texts takes long, so a review keeps the keys of citing memories in the table `citing`,
which the first one creates, and reads only new texts the next time. `meta` has the revision and the
last key of that, and the near-duplicates of the last review.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING

from mimo.errors import StorageFailed
from mimo.frozen import NamedTuple
from mimo.index import rows, schema, survey, tracking, writing
from mimo.index.schema import CURRENT, marks, newest_first, portions
from mimo.memory import duplicates
from mimo.memory.model import Record
from mimo.text.clean import compiled

if TYPE_CHECKING:
    from mimo.index.index import Reader

_BATCH = 1_000
"""The number of memories that are read in one transaction."""

_MOST_PAIRS = 5_000
"""The number of pairs that are kept from one review to the next."""

_MOST_CHANGED = 200
"""The number of changed memories up to which near-duplicates of the last review are used."""

_LINE, _AFTER_DIGIT, _LINE_AFTER_DIGIT = r':(?<=[^\s"\d]:)\d', r":(?<=\d:)\d", r"\.[A-Za-z]\w*:\d"
_NAME = r"#[^ #]"
"""A place in a file, such as `a.py:3` or `a.py#name`; no colon of JSON, and no time.

All but the third begin with a certain character, which is found quickly.
"""


def may_cite(text: str) -> bool:
    """Returns whether a text may name a place in a file."""
    if compiled(_NAME).search(text) or compiled(_LINE).search(text):
        return True
    if not compiled(_AFTER_DIGIT).search(text):
        return False
    return compiled(_LINE_AFTER_DIGIT).search(text) is not None


# Memories that may cite a place.


def _stored(sql: sqlite3.Connection) -> tuple[int, set[int]]:
    """Returns the last key that was read, 0 for none, and the keys that changed since."""
    noted = sql.execute("SELECT value FROM meta WHERE name = 'citing'").fetchone()
    if noted:
        revision, last_key = rows.from_json(noted[0])
        changed = tracking.changed_since(sql, revision)
        if changed is not None:
            return last_key, set(changed)
    return 0, set()


def citing(reader: Reader) -> tuple[Record, ...]:
    """Returns the memories that may cite a place in a file, newest first."""
    _learn_all(reader)
    return reader.ask(_citing)


def _learn_all(reader: Reader) -> None:
    """Stores which of the new texts may cite a place, if the index can be written."""
    is_behind = reader.ask(_is_behind)
    reader.end()
    with suppress(StorageFailed):
        while is_behind:
            with reader.index.writing() as sql:
                is_behind = _learn(sql)


def _is_behind(sql: sqlite3.Connection) -> bool:
    """Returns whether some memories were not read yet."""
    last, changed = _stored(sql)
    newer = "SELECT 1 FROM memories WHERE key > ? LIMIT 1"
    return bool(changed or sql.execute(newer, (last,)).fetchone())


def _learn(sql: sqlite3.Connection) -> bool:
    """Reads more memories in an open transaction, and returns whether some are left."""
    last, changed = _stored(sql)
    if not last:
        sql.execute("CREATE TABLE IF NOT EXISTS citing (memory INTEGER PRIMARY KEY)")
        sql.execute("DELETE FROM citing")
    read = [*_again(sql, changed, last), *_after(sql, last)]
    sql.executemany("DELETE FROM citing WHERE memory = ?", [(key,) for key in changed])
    sql.executemany("INSERT INTO citing VALUES (?)", [(key,) for key, cites in read if cites])
    last = max([last, *(key for key, _ in read)])
    noted = "INSERT OR REPLACE INTO meta SELECT 'citing', '[' || revision || ', ' || ? || ']'"
    sql.execute(f"{noted} FROM totals", (last,))
    return _is_behind(sql)


def _citing_keys(sql: sqlite3.Connection) -> Iterator[int]:
    """Yields the memories that may cite a place, of those that were not read yet, too."""
    last_key, changed = _stored(sql)
    if last_key:
        yield from (
            key for (key,) in sql.execute("SELECT memory FROM citing") if key not in changed
        )
    yield from (key for key, cites in _again(sql, changed, last_key) if cites)
    while batch := list(_after(sql, last_key)):
        yield from (key for key, cites in batch if cites)
        last_key = batch[-1][0]


def _again(
    sql: sqlite3.Connection, changed: Collection[int], last_key: int
) -> Iterator[tuple[int, bool]]:
    """Yields changed memories up to the last key that was read, as `_read`."""
    for keys in portions([key for key in changed if key <= last_key]):
        yield from _read(sql, f"WHERE m.key IN ({marks(keys)})", keys)


def _after(sql: sqlite3.Connection, last_key: int) -> Iterator[tuple[int, bool]]:
    """Yields the next memories by key, as `_read`."""
    return _read(sql, "WHERE m.key > ? ORDER BY m.key LIMIT ?", (last_key, _BATCH))


def _read(
    sql: sqlite3.Connection, clauses: str, values: Sequence[int]
) -> Iterator[tuple[int, bool]]:
    """Yields the keys of some memories, and whether their texts may cite a place in a file."""
    # The parts of an ingested text cite places that its author had.
    template = "CASE WHEN m.parent IS NULL THEN {} END"
    texts = (template.format(column) for column in ("m.rest", "m.title", "unpacked(m.content)"))
    for key, *parts in sql.execute(
        f"SELECT m.key, {', '.join(texts)} FROM memories m {clauses}", values
    ):
        yield key, may_cite("\n".join(filter(None, parts)))


def _citing(sql: sqlite3.Connection) -> tuple[Record, ...]:
    """Returns the memories that may cite a place in a file, newest first."""
    records: list[Record] = []
    for keys in portions(list(_citing_keys(sql))):
        records += rows.select(sql, f"WHERE m.key IN ({marks(keys)}) AND +m.shadowed = 0", keys)
    return tuple(sorted(records, key=rows.newest_first))


# Near-duplicates.


class Doubles(NamedTuple):
    """The near-duplicates of the newest memories at a revision."""

    revision: int
    compared: list[int]
    pairs: list[tuple[int, int, float]]
    """Those of the compared memories, another one each, and how much they are alike."""


def doubles(reader: Reader, limit: int) -> tuple[tuple[Record, Record], ...]:
    """Returns near-duplicates among the newest `limit` memories, each with the nearest."""
    identity, pairs, now = reader.ask(lambda sql: (sql.identity, *_doubles(sql, limit)))
    if now:
        reader.end()
        with suppress(StorageFailed), reader.index.writing() as sql:
            if sql.identity == identity:
                _keep(sql, now)
    return pairs


def _doubles(
    sql: sqlite3.Connection, most: int
) -> tuple[tuple[tuple[Record, Record], ...], Doubles | None]:
    """Returns those of the newest memories that have a near-duplicate, each with the nearest one.

    The newest `most` memories without parts of ingested texts are compared with all others. All are
    current, and none is a checkpoint: two of those may be the same. Also returns what `keep` keeps
    for the next time, if it has changed.
    """
    current = f"m.shadowed = 0 AND m.type <> 'checkpoint' AND {CURRENT.format('m')}"
    newest = (
        f"SELECT m.key FROM memories m WHERE {current} AND m.parent IS NULL"
        f" ORDER BY {newest_first('m')} LIMIT ?"
    )
    keys = [key for (key,) in sql.execute(newest, (most,))]
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


def _keep(sql: sqlite3.Connection, now: Doubles) -> None:
    """Keeps near-duplicates for the next review, unless the index has changed since."""
    note = "INSERT OR REPLACE INTO meta SELECT 'doubles', ? FROM totals WHERE revision = ?"
    sql.execute(note, (json.dumps(now), now.revision))


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
