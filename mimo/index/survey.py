"""Questions about all memories of a project, which read as few of their texts as possible.

`+shadowed = 0` keeps SQLite from choosing an index by `shadowed`, which nearly all rows have alike.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from mimo.disk import STORE
from mimo.frozen import NamedTuple, frozen
from mimo.index import rows
from mimo.index.schema import CURRENT, from_digest, from_sql, newest_first, portions
from mimo.index.vectors import Vectors, cosines
from mimo.memory import duplicates
from mimo.memory.decay import never_fades
from mimo.memory.duplicates import likeness
from mimo.memory.model import Kind, Record
from mimo.text.clean import compiled

_COMPARED_AT_ONCE = 1_000
_CELLS = 4_000_000
"""Numbers in the largest table of words, 16 MB: long documents have many different words."""
_LINE, _AFTER_DIGIT, _LINE_AFTER_DIGIT = r':(?<=[^\s"\d]:)\d', r":(?<=\d:)\d", r"\.[A-Za-z]\w*:\d"
_NAME = r"#[^ #]"
"""A place in a file, such as `a.py:3` or `a.py#name`; no colon of JSON, and no time.

All but the third begin with a certain character, which is found quickly.
"""


@frozen
class Origins:
    """The numbers of memories that are not in files of mind's own."""

    in_place: int
    """Memories in documents that people wrote, read in place."""
    included: int
    """Of these, memories outside `.mind/`."""
    ingested_files: int
    chunks: int


def by_type(sql: sqlite3.Connection) -> dict[Kind, int]:
    """Returns the number of memories of each type that occurs."""
    selected = sql.execute("SELECT type, count(*) FROM memories WHERE +shadowed = 0 GROUP BY type")
    return {Kind(type): number for type, number in selected}


def times(sql: sqlite3.Connection) -> list[int]:
    """Returns the time of each memory in microseconds since 1970, oldest first."""
    selected = sql.execute("SELECT created FROM memories WHERE shadowed = 0 ORDER BY created")
    return [created for (created,) in selected]


def origins(sql: sqlite3.Connection) -> Origins:
    """Returns how many memories come from documents and from ingested files."""
    whole = "FROM memories WHERE +shadowed = 0 AND parent IS NULL"
    inside = f"path >= '{STORE}/' AND path < '{STORE}0'"  # "0" follows "/".
    included, read_only = sql.execute(
        f"SELECT (SELECT count(*) {whole} AND path < '{STORE}/')"
        f" + (SELECT count(*) {whole} AND path >= '{STORE}0'),"
        f" (SELECT count(*) {whole} AND owned = 0 AND {inside})"
    ).fetchone()
    files, chunks = sql.execute(
        "SELECT count(DISTINCT path), count(*) FROM memories"
        " WHERE parent IS NOT NULL AND +shadowed = 0"
    ).fetchone()
    return Origins(
        in_place=included + read_only, included=included, ingested_files=files, chunks=chunks
    )


def digests(sql: sqlite3.Connection) -> tuple[str, ...]:
    """Returns the digests of the memories' files, each once."""
    return tuple(_digests(sql, "SELECT DISTINCT digest FROM memories WHERE shadowed = 0"))


def _digests(sql: sqlite3.Connection, selected: str) -> list[str]:
    """Returns the digests that a query selects. A row for each would take five times as long."""
    hexadecimal = "CASE typeof(digest) WHEN 'blob' THEN lower(hex(digest)) ELSE digest END"
    (joined,) = sql.execute(
        f"SELECT group_concat({hexadecimal}, char(10)) FROM ({selected})"
    ).fetchone()
    return joined.split("\n") if joined else []


class Age(NamedTuple):
    """The facts on which the fading of a memory depends."""

    key: int
    id: str
    importance: float
    created: int
    """In microseconds since 1970."""
    protected: bool
    """True if it never fades: by its file, or else by its type or place."""


def ages(sql: sqlite3.Connection) -> list[Age]:
    """Returns what the fading of every memory depends on, in no particular order."""
    selected = sql.execute(
        "SELECT key, id, importance, created, type, path,"
        " CASE WHEN instr(rest, '\"protected\":') THEN rest END"
        " FROM memories WHERE +shadowed = 0"
    )
    return [
        Age(key, id, importance, created, _never_fades(type, from_sql(path), rest))
        for key, id, importance, created, type, path, rest in selected
    ]


def _never_fades(type: str, path: str, rest: str | None) -> bool:
    given = json.loads(rest).get("protected") if rest else None
    return never_fades(given, Kind(type), elsewhere=not path.startswith(f"{STORE}/"))


def records(sql: sqlite3.Connection, keys: Sequence[int]) -> dict[int, Record]:
    """Returns the memories with these keys, by key."""
    selected: dict[int, Record] = {}
    for some in portions(keys):
        selected |= rows.by_key(sql, some)
    return selected


class Unapproved(NamedTuple):
    """A memory whose text is not approved."""

    key: int
    path: str
    digest: str
    type: Kind


def unapproved(sql: sqlite3.Connection) -> list[Unapproved]:
    """Returns the memories whose text is not approved, newest first."""
    selected = sql.execute(
        "SELECT key, path, digest, type FROM memories m"
        f" WHERE +shadowed = 0 AND NOT approved(digest) ORDER BY {newest_first('m')}"
    )
    return [
        Unapproved(key, from_sql(path), from_digest(digest), Kind(type))
        for key, path, digest, type in selected
    ]


def number_unapproved(sql: sqlite3.Connection, approves: Callable[[str], bool]) -> int:
    """Returns the number of texts that are not approved."""
    # Messages of commits share a path, and each has its own digest.
    texts = _digests(sql, "SELECT DISTINCT path, digest FROM memories WHERE shadowed = 0")
    return len(texts) - sum(map(approves, texts))


def disputed(sql: sqlite3.Connection) -> tuple[Record, ...]:
    """Returns the memories with several versions of a field, newest first."""
    records = _selected(sql, "instr(rest, '\"competing\":')")
    return tuple(record for record in records if record.memory.competing)


def rivals(sql: sqlite3.Connection) -> tuple[Record, ...]:
    """Returns the decisions on topics with several decisions, superseded ones too."""
    several = "SELECT topic_key FROM memories WHERE {} GROUP BY topic_key HAVING count(*) > 1"
    # Reads an index alone; few topics have several memories.
    topics = several.format("topic_key IS NOT NULL AND shadowed = 0")
    decision = "type = 'decision' AND shadowed = 0"
    topics = several.format(f"topic_key IN ({topics}) AND +{decision}")
    return _selected(sql, f"+m.type = 'decision' AND m.topic_key IN ({topics})")


def contradicting(sql: sqlite3.Connection) -> tuple[Record, ...]:
    """Returns the memories that link to one that they contradict, newest first."""
    return _selected(sql, "m.key IN (SELECT source FROM links WHERE type = 'contradicts')")


def ingested(sql: sqlite3.Connection) -> tuple[Record, ...]:
    """Returns one part of each ingested text, newest first."""
    first = (
        "SELECT min(key) FROM memories WHERE parent IS NOT NULL AND +shadowed = 0 GROUP BY +path"
    )
    return _selected(sql, f"m.key IN ({first})")


def citing(sql: sqlite3.Connection) -> tuple[Record, ...]:
    """Returns the memories that may cite a place in a file, newest first."""
    selected = sql.execute(
        "SELECT key, rest, title, unpacked(content) FROM memories m"
        f" WHERE parent IS NULL AND +shadowed = 0 ORDER BY {newest_first('m')}"
    )
    keys = [key for key, *texts in selected if may_cite("\n".join(filter(None, texts)))]
    by_key = records(sql, keys)
    return tuple(by_key[key] for key in keys)


def may_cite(text: str) -> bool:
    """Returns whether a text may name a place in a file."""
    if compiled(_NAME).search(text) or compiled(_LINE).search(text):
        return True
    if not compiled(_AFTER_DIGIT).search(text):
        return False
    return compiled(_LINE_AFTER_DIGIT).search(text) is not None


def doubles(
    sql: sqlite3.Connection, vectors: Vectors | None, most: int
) -> tuple[tuple[Record, Record], ...]:
    """Returns those of the newest memories that have a near-duplicate, each with the nearest one.

    The newest `most` memories without parts of ingested texts are compared with all others, in one
    pass. All are current, and none is a checkpoint: two of those may be the same.
    """
    current = f"m.shadowed = 0 AND m.type <> 'checkpoint' AND {CURRENT.format('m')}"
    newest = (
        f"SELECT m.key FROM memories m WHERE {current} AND m.parent IS NULL"
        f" ORDER BY {newest_first('m')} LIMIT ?"
    )
    keys = [key for (key,) in sql.execute(newest, (most,))]
    own = {text.key: text for text in _texts(sql, f"m.key IN ({newest})", (most,))}
    others = _texts(sql, current)
    pairs = [(a, b) for a, b in _sharing(list(own.values()), others) if a.key != b.key]
    stored = vectors.get({text.vector for pair in pairs for text in pair}) if vectors else {}
    nearest: dict[int, tuple[float, int]] = {}
    for text, other in pairs:
        a, b = stored.get(text.vector), stored.get(other.vector)
        alike = likeness(text.words, other.words, cosines(a, [b])[0] if a and b else None)
        if alike >= duplicates.ALIKE:
            nearest[text.key] = max(nearest.get(text.key, (0.0, 0)), (alike, -other.key))
    by_key = records(sql, list({*nearest, *(-other for _, other in nearest.values())}))
    return tuple((by_key[key], by_key[-nearest[key][1]]) for key in keys if key in nearest)


class _Text(NamedTuple):
    """A memory as it is compared with others."""

    key: int
    words: frozenset[str]
    vector: bytes
    """The name of its vector."""


def _texts(
    sql: sqlite3.Connection, condition: str, values: Sequence[object] = ()
) -> Iterator[_Text]:
    """Yields the memories that pass a condition."""
    selected = sql.execute(
        "SELECT m.key, m.title_tokens || ' ' || group_concat(u.tokens, ' '), m.vector"
        " FROM memories m CROSS JOIN units u ON u.memory = m.key"
        f" WHERE {condition} GROUP BY m.key",
        values,
    )
    for key, tokens, vector in selected:
        yield _Text(key, duplicates.words_of(tokens), vector)


def _sharing(texts: Sequence[_Text], others: Iterator[_Text]) -> Iterator[tuple[_Text, _Text]]:
    """Yields each text with those of the others that share half of the words of both.

    Other pairs are not near-duplicates, even if their cosine is 1.
    """
    import numpy as np

    columns: dict[str, int] = {}
    for text in texts:
        for word in text.words:
            columns.setdefault(word, len(columns))

    def table(some: Sequence[_Text]) -> Any:
        """Returns a row for each text, with 1 for each of its words that has a column."""
        has = np.zeros((len(some), len(columns)), dtype=np.float32)
        for row, text in enumerate(some):
            has[row, [columns[word] for word in text.words & columns.keys()]] = 1
        return has

    own, sizes = table(texts).T, np.array([len(text.words) for text in texts])
    most = min(_COMPARED_AT_ONCE, _CELLS // max(1, len(columns)) or 1)
    while batch := list(islice(others, most)):
        shared = table(batch) @ own
        every = sizes + np.array([[len(other.words)] for other in batch]) - shared
        least = np.maximum(1, (2 * duplicates.ALIKE - 1) * every)
        for row, place in np.argwhere(shared >= least):
            yield texts[place], batch[row]


def _selected(sql: sqlite3.Connection, condition: str) -> tuple[Record, ...]:
    rest = f"WHERE +m.shadowed = 0 AND {condition} ORDER BY {newest_first('m')}"
    return tuple(rows.select(sql, rest))
