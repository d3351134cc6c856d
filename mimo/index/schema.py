"""The tables of the index.

`files` holds the state of each file when it was read, `memories` all that answers need without
opening one, `units` the stretches of text that are searched. `words` (FTS5) finds units,
`vocabulary` counts the units that hold a word, `names` has the names by which links mean memories.
`totals` holds sums over all memories, `touched` the names that changed last, and `changed` the keys
of the memories.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

from mimo.data import Schema, disk
from mimo.errors import Misread
from mimo.frozen import NamedTuple
from mimo.text.clean import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path
    from typing import TypeVar

    from mimo.data.cache import Cache
    from mimo.data.sqlite import Connection

    _T = TypeVar("_T")

FORMAT = 24
"""Rises with every change of the tables, of the tokens or of the stored values."""

_EARLIER = (
    r"(?:index|vectors|meanings)(?:-[0-9]+)?\.db(?:-wal|-shm|-journal|-sums)?"
    r"|(?:vectors|meanings)-[0-9a-f]+\.rows|draft-.*"
)
"""The names of the files of versions up to 1.1."""

Approves = Callable[[str], bool]
"""Returns whether the text with a name, see `memory.approval`, may be shown to an agent."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_AT_ONCE = 500
"""The number of values in one query; older builds of SQLite take 999 at most."""

_SHORT = 40
"""The number of bytes below which compressing a text saves nothing."""

_LEVEL, _WINDOW, _MEMORY = 4, 13, 6
"""Small tables: preparing the usual ones takes longer than compressing a note."""

_FREQUENT = __file__.rpartition("index")[0] + "model/frequent.txt"
"""Frequent words, to which compressed texts refer; made by `scripts/build_background.py`."""

VOUCHED = "(approved(s.approval) OR approved(claim(s.id, l.target)))"
"""The condition that an approved text of `s`, the source of a link `l`, supersedes the target.

It is the current text, or an earlier one: a change of it must not make the target current again.
"""
HOLDS = f"({VOUCHED} OR NOT approved({{0}}.approval))"
"""The condition that `s` supersedes a row of `memories`; format it with the row's alias."""
_SUPERSEDED = (
    "SELECT 1 FROM links l CROSS JOIN memories s ON s.key = l.source"
    " WHERE l.target = {0}.id AND l.type = 'supersedes' AND s.shadowed = 0 AND s.id <> {0}.id"
    f" AND {HOLDS}"
)
CURRENT = f"NOT EXISTS ({_SUPERSEDED})"
"""The condition that nothing supersedes a row of `memories`; format it with the row's alias.

This is the one definition of a current memory. An unapproved memory does not supersede an approved
one, unless an approved text of it did. `Approvals` adds the functions `approved` and `claim`.
"""
CURRENT_IF_SHARED = f"NOT EXISTS ({_SUPERSEDED} AND s.private = 0)"
"""The same among the memories that are not private, for files and answers that others get."""

# A name that equals its tail is empty in `names`. A search by path names `shadowed`, with which the
# index begins: it also finds and counts by that alone.
# `words` is contentless, since `units` and `memories` hold the same tokens. The `ascii` tokenizer
# does not change our tokens: unicode61 would cut Hindi and Thai words at vowel signs. The length of
# a unit is in its key (see `unit_key`): FTS5 looks lengths up in a table, one statement for each
# match, which is three quarters of the time of a search.
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE totals (
    revision INTEGER NOT NULL,
    changed_ns INTEGER,
    memories INTEGER NOT NULL,
    units INTEGER NOT NULL,
    unit_tokens INTEGER NOT NULL,
    passages INTEGER NOT NULL,
    passage_tokens INTEGER NOT NULL,
    shadowed INTEGER NOT NULL,
    words INTEGER NOT NULL,
    touched_after INTEGER NOT NULL
);
INSERT INTO totals VALUES (0, NULL, 0, 0, 0, 0, 0, 0, 0, 0);

CREATE TABLE files (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode TEXT NOT NULL,
    looked_at_ns INTEGER NOT NULL,
    reason TEXT,
    reason_line INTEGER
) WITHOUT ROWID;

CREATE TABLE memories (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    handle TEXT NOT NULL,
    path TEXT NOT NULL,
    line INTEGER NOT NULL,
    digest NOT NULL,
    private INTEGER NOT NULL,
    owned INTEGER NOT NULL,
    type TEXT NOT NULL,
    title TEXT,
    topic TEXT,
    created INTEGER NOT NULL,
    importance REAL NOT NULL,
    confidence REAL,
    outcome TEXT,
    parent TEXT,
    position INTEGER NOT NULL,
    rest TEXT NOT NULL,
    content NOT NULL,
    approval NOT NULL,
    checksum INTEGER NOT NULL,
    shadowed INTEGER NOT NULL DEFAULT 0,
    topic_key TEXT,
    title_tokens TEXT NOT NULL,
    topic_tokens TEXT NOT NULL,
    passages TEXT,
    statement BLOB NOT NULL,
    cites INTEGER NOT NULL
);
CREATE INDEX memories_id ON memories (id, shadowed);
CREATE INDEX memories_important ON memories (importance, created)
    WHERE shadowed = 0 AND parent IS NULL;
CREATE INDEX memories_parent ON memories (parent, position, shadowed) WHERE parent IS NOT NULL;

CREATE TABLE parents (
    path TEXT NOT NULL, id TEXT NOT NULL, tokens TEXT NOT NULL, is_chat INTEGER NOT NULL,
    handle TEXT NOT NULL,
    PRIMARY KEY (path, id)
) WITHOUT ROWID;
CREATE INDEX parents_handle ON parents (handle, id);

CREATE TABLE tags (
    memory INTEGER NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (memory, tag)
) WITHOUT ROWID;

CREATE TABLE links (
    source INTEGER NOT NULL, target TEXT NOT NULL, type TEXT NOT NULL,
    given TEXT, confidence REAL, tail TEXT,
    PRIMARY KEY (source, target, type)
) WITHOUT ROWID;
CREATE INDEX links_target ON links (target, type, source);
CREATE INDEX links_tail ON links (tail, type, source) WHERE tail IS NOT NULL;

CREATE TABLE names (
    tail TEXT NOT NULL, memory INTEGER NOT NULL, name TEXT NOT NULL, rank INTEGER NOT NULL,
    PRIMARY KEY (tail, memory, name)
) WITHOUT ROWID;
CREATE INDEX names_memory ON names (memory);

CREATE TABLE touched (
    revision INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (revision, name)
) WITHOUT ROWID;

CREATE TABLE changed (
    revision INTEGER NOT NULL, memory INTEGER NOT NULL, PRIMARY KEY (revision, memory)
) WITHOUT ROWID;

CREATE TABLE units (
    key INTEGER PRIMARY KEY,
    memory INTEGER NOT NULL,
    line INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,
    tokens NOT NULL,
    speakers TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE INDEX units_memory ON units (memory, vector);

CREATE INDEX memories_handle ON memories (handle);
CREATE INDEX memories_path ON memories (shadowed, path, approval, parent);
CREATE INDEX memories_created ON memories (shadowed, created);
CREATE INDEX memories_type ON memories (type, shadowed, created);
CREATE INDEX memories_topic ON memories (topic_key, shadowed, created) WHERE topic_key IS NOT NULL;
CREATE INDEX memories_outcome ON memories (outcome, shadowed, created) WHERE outcome IS NOT NULL;
CREATE INDEX memories_statement ON memories (statement);
CREATE INDEX memories_citing ON memories (created) WHERE cites = 1;
CREATE INDEX memories_read_only ON memories (path) WHERE owned = 0;
CREATE INDEX memories_disputed ON memories (created) WHERE instr(rest, '"competing":');
CREATE INDEX tags_tag ON tags (tag, memory);
CREATE INDEX units_vector ON units (vector);

CREATE VIRTUAL TABLE words USING fts5 (
    tokens, content = '', columnsize = 0, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);
"""

SCHEMA = Schema("index", FORMAT, _TABLES)


_SIZES = 1_024
"""A longer unit counts as one of one token less."""

_K0 = "SELECT CASE WHEN words > 4 * units THEN 0.3 - 0.9 * units / words ELSE 1e6 END FROM totals"
_SLOPE = "SELECT 0.9 * units / words FROM totals"
BM25 = f"coalesce(bm25(words, ({_K0}) / (0.3 + (words.rowid & {_SIZES - 1}) * ({_SLOPE}))), 0)"
"""The BM25 of a match in `words`, a negative number, with FTS5's constants k1 = 1.2 and b = 0.75.

Without stored lengths, FTS5 takes -1 for each. Its weight of a term that occurs f times in a unit
is then f / (f + k0). A column that counts w times turns it into f / (f + k0 / w), so w = k0 / k
makes that BM25, where k is its part that depends on the length. If a unit has hardly any tokens in
the mean, k0 may be negative: then only the terms count, not how often they occur, nor the length.
At three tokens it is 0, and a unit without one of the terms has no weight.
"""


BEST = (
    f"SELECT words.rowid AS unit, {BM25} AS weight FROM words"
    " WHERE words MATCH ? {} ORDER BY weight LIMIT ?"
)
"""The units that match best, before any filter; format it with a further condition."""


def unit_key(number: int, tokens: int) -> int:
    """Returns the key of a unit, from its number in the order of all, and its number of tokens."""
    return number * _SIZES + min(tokens, _SIZES - 1)


def unit_number(key: int) -> int:
    """Returns the number of the unit with a key."""
    return key // _SIZES


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
    """The number of memories whose id belongs to another one."""

    @property
    def visible(self) -> int:
        """Returns the number of memories without the shadowed ones."""
        return self.memories - self.shadowed


def totals(sql: sqlite3.Connection) -> Totals:
    """Returns the sums over the index."""
    return Totals(*sql.execute(f"SELECT {', '.join(Totals._fields)} FROM totals").fetchone())


def frequency(sql: sqlite3.Connection, term: str) -> int:
    """Returns the number of units that hold a term."""
    counted = sql.execute("SELECT doc FROM vocabulary WHERE term = ?", (term,)).fetchone()
    return int(counted[0]) if counted else 0


COLUMNS = (
    "id, path, line, digest, private, owned, type, title, topic, created, importance, confidence,"
    " outcome, parent, position, rest, content, approval, checksum"
)
"""The columns of `memories` that make a memory, in the order of a row."""


def checksum(values: Sequence[object]) -> int:
    """Returns the checksum of the values of a row, which begin with all of `COLUMNS` but the last.

    A row with another checksum is not as it was written.
    """
    return zlib.crc32(repr(tuple(values[:18])).encode("utf-8", "surrogatepass"))


class Approvals:
    """The check of approvals that the function `approved` of SQL asks."""

    def __init__(self, checker: Callable[[], Approves] = lambda: lambda _: True) -> None:
        """Takes a function that reads the approvals; the default approves all."""
        self.checker = checker
        self.approves: Approves | None = None
        """The check with the approvals that were read; None to read them when one is needed."""

    def add_functions(self, connection: Connection) -> None:
        """Adds the functions that queries use to a connection."""
        # SQLite's reference to a function is unknown to the garbage collector: by a strong one, an
        # idle connection would hold itself, and its file would stay open for good.
        of = weakref.ref(self)

        def approved(name: str | bytes | None) -> bool:
            approvals = of()
            if approvals is None:
                return False
            if approvals.approves is None:
                approvals.approves = cache(approvals.checker())  # A join asks for a text often.
            return approvals.approves(from_digest(name or ""))

        connection.add_function("approved", 1, approved)
        connection.add_function("claim", 2, _claim)
        connection.add_function("unpacked", 1, unpacked)


def open_cache(folder: Path | None, owner: str, approvals: Approvals) -> Cache:
    """Returns the tables in a folder, None for some in memory; the first use opens the file."""
    from mimo.data.cache import Cache

    return Cache(folder, SCHEMA, owner=owner, prepare=approvals.add_functions)


def remove_earlier(folder: Path) -> None:
    """Removes the files of versions of mind up to 1.1, as far as possible."""
    for path in folder.iterdir():
        if compiled(_EARLIER).fullmatch(path.name):
            disk.discard(path)


def newest_first(memory: str) -> str:
    """Returns the order of rows of `memories` from newest to oldest; `memory` is their alias.

    Memories of the same time, such as those of one file, keep their order there. Ids decide the
    rest, so that the order is the same on every machine.
    """
    columns = f"coalesce({memory}.parent, ''), {memory}.position, {memory}.id"
    return f"{memory}.created DESC, {columns}"


def to_sql(path: str) -> str | bytes:
    """Returns a path as SQLite can hold it: bytes if the file's name is not valid Unicode."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogateescape")
    return path


def from_sql(path: str | bytes) -> str:
    """Returns the path that `to_sql` was given. Raises `Misread` for another value."""
    if isinstance(path, str):
        return path
    if isinstance(path, bytes):
        return path.decode("utf-8", "surrogateescape")
    raise Misread("path")


def packed(text: str) -> str | bytes:
    """Returns a text as `content` and `units.tokens` hold it: compressed if that is shorter."""
    data = text.encode()
    if len(data) < _SHORT:
        return text
    compressor = _compressor().copy()
    small = compressor.compress(data) + compressor.flush()
    return small if len(small) < len(data) else text


def unpacked(value: str | bytes) -> str:
    """Returns the text that `packed` was given. Raises `Misread` for another value."""
    if isinstance(value, str):
        return value
    try:
        decompressor = zlib.decompressobj(-_WINDOW, _frequent())
        text = decompressor.decompress(value).decode()
    except (zlib.error, TypeError, ValueError) as error:
        raise Misread("content") from error
    if not decompressor.eof:
        raise Misread("content")
    return text


@cache
def _compressor() -> zlib._Compress:
    """Returns what a compressor of each text is copied from: preparing the words takes longer."""
    return zlib.compressobj(_LEVEL, wbits=-_WINDOW, memLevel=_MEMORY, zdict=_frequent())


@cache
def _frequent() -> bytes:
    with open(_FREQUENT, "rb") as file:  # noqa: PTH123 - pathlib is for files that change
        return file.read()


def to_digest(digest: str) -> str | bytes:
    """Returns a digest as the tables hold it: as bytes if it is 64 hexadecimal digits."""
    try:
        value = bytes.fromhex(digest)
    except ValueError:
        return digest
    return value if value.hex() == digest else digest


def from_digest(value: str | bytes) -> str:
    """Returns the digest that `to_digest` was given. Raises `Misread` for another value."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, str):
        return value
    raise Misread("digest")


def _claim(source: str, target: str) -> str:
    """Returns the name of a claim for SQL, which seldom needs one."""
    from mimo.memory.approval import claim

    return claim(source, target)


def to_number(time: datetime) -> int:
    """Returns microseconds since 1970; a time without a zone is taken as UTC."""
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def to_time(number: int) -> datetime:
    """Returns the time, UTC, for a number of microseconds since 1970.

    Raises `Misread` for another value.
    """
    try:
        return _EPOCH + timedelta(microseconds=number)
    except (OverflowError, TypeError) as error:
        raise Misread("time") from error


def marks(values: Collection[object]) -> str:
    """Returns one question mark for each value, for `IN (…)`."""
    return ",".join("?" * len(values))


def portions(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Yields parts of many values, each of them few enough for `marks`."""
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]


WORDS = {
    "handle": "SELECT handle, title, content FROM memories WHERE shadowed = 0"
    " AND substr(handle, 1, ?) = ? GROUP BY handle HAVING count(*) = 1"
    " ORDER BY created DESC, handle LIMIT ?",
    "id": "SELECT id, title, content FROM memories WHERE shadowed = 0"
    " AND substr(id, 1, ?) = ? ORDER BY created DESC, id LIMIT ?",
    "of_handle": "SELECT id, title, content FROM memories WHERE shadowed = 0"
    " AND substr(handle, 1, ?) = ? ORDER BY created DESC, id LIMIT ?",
    "tag": "SELECT tag, '', '' FROM tags WHERE substr(tag, 1, ?) = ?"
    " GROUP BY tag ORDER BY count(*) DESC, tag LIMIT ?",
    "topic": "SELECT topic, title, content, max(created) FROM memories WHERE shadowed = 0"
    " AND topic_key IS NOT NULL AND substr(topic, 1, ?) = ?"
    " GROUP BY topic_key ORDER BY max(created) DESC, topic_key LIMIT ?",
}
"""Queries for words by their beginning, each with the title and the content that describe it.

They take the length of the beginning, the beginning, and the number of words.
"""
