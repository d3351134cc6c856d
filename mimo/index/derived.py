"""Facts about every text that only a review needs: whether it cites a place, and near-duplicates.

Reading all texts takes long, so a review keeps what it derives from each in the table `derived`,
which the first one creates, and reads only new texts the next time. `meta` has the revision and the
last key of that, and the near-duplicates of the last review.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

from mimo.errors import StorageFailed
from mimo.frozen import NamedTuple
from mimo.index import rows, schema, survey, tracking
from mimo.index.schema import CURRENT, marks, newest_first, portions
from mimo.memory import duplicates
from mimo.memory.duplicates import ALIKE, likeness
from mimo.memory.model import Record
from mimo.text.clean import compiled

if TYPE_CHECKING:
    from mimo.index.index import Reader

_TABLE = """
CREATE TABLE IF NOT EXISTS derived (
    memory INTEGER PRIMARY KEY, cites INTEGER NOT NULL, words INTEGER NOT NULL, sketch BLOB NOT NULL
)
"""

_BATCH = 1_000
"""The number of memories whose facts are written in one transaction."""

_MOST_PAIRS = 5_000
"""The number of pairs that are kept from one review to the next."""

_MOST_CLOSE = 24
"""The number of near-duplicates of a memory that are kept: the nearest may be superseded later."""

_LINE, _AFTER_DIGIT, _LINE_AFTER_DIGIT = r':(?<=[^\s"\d]:)\d', r":(?<=\d:)\d", r"\.[A-Za-z]\w*:\d"
_NAME = r"#[^ #]"
"""A place in a file, such as `a.py:3` or `a.py#name`; no colon of JSON, and no time.

All but the third begin with a certain character, which is found quickly.
"""


class Facts(NamedTuple):
    """The facts about the text of a memory."""

    key: int
    cites: bool
    """True if it may cite a place in a file."""
    words: int
    """The number of its distinct words."""
    sketch: bytes


def may_cite(text: str) -> bool:
    """Returns whether a text may name a place in a file."""
    if compiled(_NAME).search(text) or compiled(_LINE).search(text):
        return True
    if not compiled(_AFTER_DIGIT).search(text):
        return False
    return compiled(_LINE_AFTER_DIGIT).search(text) is not None


# Sketches.


def sketch(words: Collection[str]) -> int:
    """Returns a number whose bits are the parities of the words by their hashes.

    Two sketches of one width differ in at most as many bits as there are words in only one text.
    Words that are evenly spread over four times as many bits rarely hide each other.
    """
    mask, bits = width(len(words)) - 1, 0
    for word in words:
        bits ^= 1 << (_hash(word) & mask)
    return bits


@lru_cache(maxsize=20_000)
def _hash(word: str) -> int:
    return crc32(word.encode())


def width(words: int) -> int:
    """Returns the number of bits in the sketch of so many words, a power of two."""
    return max(64, 1 << (4 * words - 1).bit_length())


def narrowed(bits: int, width: int, narrow: int) -> int:
    """Returns the sketch of the same words with fewer bits."""
    while width > narrow:
        width //= 2
        bits = (bits >> width) ^ (bits & ((1 << width) - 1))
    return bits


_APART = (1 - ALIKE) / (1 + ALIKE) + 1e-9
"""The largest share of the words of two near-duplicates that only one of them has."""


def _finder(texts: Iterable[_Text]) -> Callable[[int, int], Iterator[int]]:
    """Returns a function that yields the texts that may be near-duplicates of another one.

    It takes the number of the other's words, and their sketch. If two texts share a part `ALIKE` of
    all their words, the words in only one of them are at most (1 - ALIKE) / (1 + ALIKE) of the
    words of one plus the other.
    """
    entries = [(text.key, len(text.words), sketch(text.words)) for text in texts if text.words]

    @cache
    def comparable(words: int) -> tuple[tuple[int, list[tuple[int, int, int]]], ...]:
        """Returns the texts of about as many words, by their width."""
        widths: dict[int, list[tuple[int, int, int]]] = {}
        for key, size, bits in entries:
            if min(size, words) >= ALIKE * max(size, words):
                common = min(width(size), width(words))
                same = narrowed(bits, width(size), common)
                widths.setdefault(common, []).append((key, same, int(_APART * (size + words))))
        return tuple(widths.items())

    def near(words: int, bits: int) -> Iterator[int]:
        for common, some in comparable(words):
            target = narrowed(bits, width(words), common)
            yield from [key for key, value, limit in some if (value ^ target).bit_count() <= limit]

    return near


# The facts of all memories.


def _stored(sql: sqlite3.Connection) -> tuple[int, set[int]]:
    """Returns the last key with stored facts, 0 for none, and the keys that changed since."""
    noted = sql.execute("SELECT value FROM meta WHERE name = 'derived'").fetchone()
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


def doubles(reader: Reader, limit: int) -> tuple[tuple[Record, Record], ...]:
    """Returns near-duplicates among the newest `limit` memories, each with the nearest."""
    _learn_all(reader)
    identity, pairs, now = reader.ask(lambda sql: (sql.identity, *_doubles(sql, limit)))
    if now:
        with suppress(StorageFailed), reader.index.writing() as sql:
            if sql.identity == identity:
                _keep(sql, now)
    return pairs


def _learn_all(reader: Reader) -> None:
    """Stores the facts that a review derives from new texts, if the index can be written."""
    is_behind = reader.ask(_is_behind)
    reader.end()
    with suppress(StorageFailed):
        while is_behind:
            with reader.index.writing() as sql:
                is_behind = _learn(sql)


def _is_behind(sql: sqlite3.Connection) -> bool:
    """Returns whether the facts of some memories are not stored yet."""
    last, changed = _stored(sql)
    newer = "SELECT 1 FROM memories WHERE key > ? LIMIT 1"
    return bool(changed or sql.execute(newer, (last,)).fetchone())


def _learn(sql: sqlite3.Connection) -> bool:
    """Stores the facts of more memories in an open transaction, and returns whether some lack."""
    last, changed = _stored(sql)
    if not last:
        sql.execute(_TABLE)
        sql.execute("DELETE FROM derived")
    facts = [*_again(sql, changed, last), *_after(sql, last)]
    sql.executemany("DELETE FROM derived WHERE memory = ?", [(key,) for key in changed])
    sql.executemany(f"INSERT INTO derived VALUES ({marks(range(4))})", facts)
    last = max([last, *(fact.key for fact in facts)])
    noted = "INSERT OR REPLACE INTO meta SELECT 'derived', '[' || revision || ', ' || ? || ']'"
    sql.execute(f"{noted} FROM totals", (last,))
    return _is_behind(sql)


def _facts(sql: sqlite3.Connection) -> Iterator[Facts]:
    """Yields the facts of all memories, of those that are not stored yet, too."""
    last_key, changed = _stored(sql)
    if last_key:
        stored = sql.execute("SELECT memory, cites, words, sketch FROM derived")
        yield from (Facts(*row) for row in stored if row[0] not in changed)
    yield from _again(sql, changed, last_key)
    while batch := list(_after(sql, last_key)):
        yield from batch
        last_key = batch[-1].key


def _again(sql: sqlite3.Connection, changed: Collection[int], last_key: int) -> Iterator[Facts]:
    """Yields the facts of changed memories up to the last key with stored facts."""
    for keys in portions([key for key in changed if key <= last_key]):
        yield from _derived(sql, f"WHERE m.key IN ({marks(keys)}) GROUP BY m.key", keys)


def _after(sql: sqlite3.Connection, last_key: int) -> Iterator[Facts]:
    """Yields the facts of the next memories by key."""
    clauses = "WHERE m.key > ? GROUP BY m.key ORDER BY m.key LIMIT ?"
    return _derived(sql, clauses, (last_key, _BATCH))


def _derived(sql: sqlite3.Connection, clauses: str, values: Sequence[int]) -> Iterator[Facts]:
    """Yields the facts of some memories, from their texts."""
    # The parts of an ingested text cite places that its author had.
    template = "CASE WHEN m.parent IS NULL THEN {} END"
    selected = sql.execute(
        f"SELECT m.key, {template.format('m.rest')}, {template.format('m.title')},"
        f" {template.format('unpacked(m.content)')}, {_TOKENS}"
        f" FROM memories m LEFT JOIN units u ON u.memory = m.key {clauses}",
        values,
    )
    for key, *texts, tokens in selected:
        words = duplicates.words_of(tokens)
        bits = sketch(words).to_bytes(width(len(words)) // 8, "little")
        yield Facts(key, may_cite("\n".join(filter(None, texts))), len(words), bits)


_TOKENS = "m.title_tokens || ' ' || coalesce(group_concat(u.tokens, ' '), '')"


def _citing(sql: sqlite3.Connection) -> tuple[Record, ...]:
    """Returns the memories that may cite a place in a file, newest first."""
    records: list[Record] = []
    for keys in portions([facts.key for facts in _facts(sql) if facts.cites]):
        records += rows.select(sql, f"WHERE m.key IN ({marks(keys)}) AND +m.shadowed = 0", keys)
    return tuple(sorted(records, key=rows.newest_first))


# Near-duplicates.


class _Text(NamedTuple):
    """A memory as it is compared with others."""

    key: int
    words: frozenset[str]
    age: tuple[int, str]
    """Its creation and its id."""


_Alike = tuple[float, tuple[int, str], int]
"""A text that is alike another one: the negative likeness, its age and its key."""


class Doubles(NamedTuple):
    """The near-duplicates of the newest memories at a revision."""

    revision: int
    compared: list[int]
    pairs: list[tuple[int, int, float]]
    """Those of the compared memories, another one each, and how much they are alike."""


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
        if changed is not None:
            return stored, set(changed)
    return Doubles(0, [], []), set()


def _compared(
    sql: sqlite3.Connection,
    fresh: Sequence[int],
    old: Collection[int],
    changed: Collection[int],
) -> list[tuple[int, int, float]]:
    """Returns the near-duplicates of fresh memories, and those of old ones that have changed."""
    texts = {text.key: text for text in _texts(sql, [*fresh, *old])}
    of_fresh = _finder(texts[key] for key in fresh if key in texts)
    of_old = _finder(texts[key] for key in old if key in texts)
    near: dict[int, list[int]] = {}
    for key, _, words, data in _facts(sql) if fresh else _again(sql, changed, max(changed)):
        bits = int.from_bytes(data, "little")
        ones = [*of_fresh(words, bits), *(of_old(words, bits) if key in changed else ())]
        if ones and ones != [key]:
            near[key] = ones
    close: dict[int, list[_Alike]] = {}
    for keys in portions(list(near)):
        for twin in _texts(sql, keys, " AND m.type <> 'checkpoint'"):
            for key in near[twin.key]:
                if key != twin.key and (alike := likeness(texts[key].words, twin.words)) >= ALIKE:
                    _keep_closest(close.setdefault(key, []), (-alike, twin.age, twin.key))
    return [
        (key, twin, -distance)
        for key, some in close.items()
        for distance, _, twin in sorted(some)[:_MOST_CLOSE]
    ]


def _keep_closest(some: list[_Alike], text: _Alike) -> None:
    """Adds a text to those that share the most words with another, the older ones of equal ones."""
    some.append(text)
    if len(some) > 4 * _MOST_CLOSE:
        some.sort()
        del some[_MOST_CLOSE:]


def _texts(sql: sqlite3.Connection, keys: Sequence[int], condition: str = "") -> Iterator[_Text]:
    """Yields the memories with these keys that pass a condition."""
    for some in portions(keys):
        selected = sql.execute(
            f"SELECT m.key, {_TOKENS}, m.created, m.id FROM memories m"
            f" LEFT JOIN units u ON u.memory = m.key WHERE m.key IN ({marks(some)}){condition}"
            " GROUP BY m.key",
            some,
        )
        for key, tokens, *age in selected:
            yield _Text(key, duplicates.words_of(tokens), (age[0], age[1]))
