"""Records as rows of the table `memories`, and back; paths as SQLite can hold them."""

import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from mimo.disk import Stamp
from mimo.frozen import frozen
from mimo.memory.model import (
    Filter,
    Kind,
    Link,
    Memory,
    Outcome,
    Place,
    Problem,
    Record,
    Section,
    Version,
)

# What the last changes of the index may have changed for somebody who follows links.


_MOST = 1_000
"""So many names are kept; after more, such as of a first index, nothing older is known."""


def names_of(sql: sqlite3.Connection, key: int) -> set[str]:
    """Returns the names of a row of `memories`."""
    found = sql.execute(
        "SELECT id FROM memories WHERE key = :key UNION SELECT title FROM memories WHERE key = :key"
        " AND title IS NOT NULL UNION SELECT target FROM links WHERE source = :key",
        {"key": key},
    )
    return {name for (name,) in found}


def note(sql: sqlite3.Connection, names: Iterable[str]) -> None:
    """Keeps what the change that made the index's present revision has touched."""
    ((revision,),) = sql.execute("SELECT revision FROM totals")
    found = [(revision, name) for name in names]
    ((kept,),) = sql.execute("SELECT count(*) FROM touched")
    if kept + len(found) > _MOST:
        forget(sql)
        return
    sql.executemany("INSERT INTO touched VALUES (?, ?)", found)


def forget(sql: sqlite3.Connection) -> None:
    """Lets nothing be known of the changes up to the present revision."""
    sql.execute("DELETE FROM touched")
    sql.execute("UPDATE totals SET touched_after = revision")


def since(sql: sqlite3.Connection, revision: int) -> set[str] | None:
    """Returns all that was touched after a revision; None where that is not known any more."""
    ((known_after, present),) = sql.execute("SELECT touched_after, revision FROM totals")
    if not known_after <= revision <= present:
        return None
    found = sql.execute("SELECT name FROM touched WHERE revision > ?", (revision,))
    return {name for (name,) in found}


# What a search is asked, and what it answers.


class Newer(NamedTuple):
    """What claims to supersede a memory; the ids are newest first."""

    superseded_by: tuple[str, ...] = ()
    claimed_by: tuple[str, ...] = ()
    """Memories that are not approved, while the older one is: what they claim has no effect."""

    @property
    def successor(self) -> str | None:
        """Returns the newest memory that supersedes it."""
        return next(iter(self.superseded_by), None)

    @property
    def claimant(self) -> str | None:
        """Returns the newest memory that claims to supersede it, without effect."""
        return next(iter(self.claimed_by), None)


@frozen
class Hit:
    """A memory that answers a query."""

    record: Record
    score: float
    """0..1; 0.3 parts related from unrelated."""
    passage: str
    """The part of its text that matches best."""
    line: int
    """The 1-based line of the file on which the passage begins."""
    newer: Newer
    embedded: bool
    """Whether it could be compared by meaning, and not by words alone."""


@frozen
class Found:
    """The answer to a query."""

    hits: tuple[Hit, ...]
    considered: int
    """How many memories passed the filter."""
    notice: str | None = None
    """Says so where the search was less than whole."""


class Request(NamedTuple):
    """What is looked for."""

    text: str
    filter: Filter
    limit: int
    threshold: float
    nearest: int
    """How many to answer with where none reaches the threshold."""
    now: datetime


# What the index is told about a file.


@frozen
class Change:
    """What a look at one file found."""

    path: str
    stamp: Stamp | None
    """None where the file is gone."""
    records: tuple[Record, ...] = ()
    problem: Problem | None = None


COLUMNS = (
    "id, path, line, digest, private, owned, type, title, topic, created, importance, confidence,"
    " outcome, parent, position, rest, checksum"
)
"""What `record` needs, in its order, of the table `memories`."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LINK_DEFAULTS = {"type": "relates_to", "given": None, "confidence": None, "by": None}


def row(record: Record) -> tuple[Any, ...]:
    """Returns the values of `COLUMNS`."""
    memory, place = record.memory, record.place
    values = (
        memory.id,
        to_sql(place.path),
        place.line,
        place.digest,
        int(place.private),
        int(place.owned),
        memory.type.value,
        memory.title,
        memory.topic,
        to_number(memory.created),
        float(memory.importance),
        None if memory.confidence is None else float(memory.confidence),
        memory.outcome.value if memory.outcome else None,
        record.parent,
        record.position,
        json.dumps(_rest(memory), ensure_ascii=False, separators=(",", ":"), default=str),
    )
    return (*values, _checksum(values))


def _checksum(values: Sequence[Any]) -> int:
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


def record(values: Sequence[Any]) -> Record:
    """Returns the record whose `COLUMNS` these values are; further ones are not looked at.

    Raises `ValueError` if a value is not what was written.
    """
    if _checksum(tuple(values[:16])) != values[16]:
        raise ValueError("checksum")
    rest = json.loads(values[15])
    memory = Memory(
        id=values[0],
        type=Kind(values[6]),
        title=values[7],
        topic=values[8],
        created=to_time(values[9]),
        importance=values[10],
        confidence=values[11],
        outcome=Outcome(values[12]) if values[12] else None,
        content=rest["content"],
        tags=tuple(rest.get("tags", ())),
        category=rest.get("category"),
        source=rest.get("source"),
        status=rest.get("status"),
        by=rest.get("by"),
        protected=rest.get("protected"),
        links=tuple(Link(**link) for link in rest.get("links", ())),
        sections={Section(name): text for name, text in rest.get("sections", {}).items()},
        competing=tuple(Version(field=f, text=t) for f, t in rest.get("competing", ())),
        extra=rest.get("extra", {}),
    )
    place = Place(
        path=from_sql(values[1]),
        line=values[2],
        digest=values[3],
        private=bool(values[4]),
        owned=bool(values[5]),
    )
    return Record(memory=memory, place=place, parent=values[13], position=values[14])


def to_number(time: datetime) -> int:
    """Returns microseconds since 1970; a time without a zone is taken as UTC."""
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def to_time(number: int) -> datetime:
    """Returns the time that so many microseconds since 1970 stand for, in UTC."""
    return _EPOCH + timedelta(microseconds=number)


def to_sql(path: str) -> str | bytes:
    """Returns a path as SQLite can hold it: bytes where the file's name is no valid Unicode."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogateescape")
    return path


def from_sql(path: str | bytes) -> str:
    """Returns the path that `to_sql` was given."""
    return path if isinstance(path, str) else path.decode("utf-8", "surrogateescape")


def marks(values: Sequence[object]) -> str:
    """Returns as many question marks, for `IN (…)`."""
    return ",".join("?" * len(values))


def select(connection: sqlite3.Connection, rest: str, values: Sequence[Any] = ()) -> list[Record]:
    """Returns the records of `SELECT … FROM memories m` continued by `rest`."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM memories m {rest}", values)
    return [record(found) for found in rows]


def by_key(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, Record]:
    """Returns the records of those rows of `memories`."""
    found = connection.execute(
        f"SELECT {COLUMNS}, key FROM memories WHERE key IN ({marks(keys)})", keys
    )
    return {values[-1]: record(values) for values in found}


def after(connection: sqlite3.Connection, key: int, limit: int) -> dict[int, Record]:
    """Returns the next records by key, at most `limit` of them."""
    found = connection.execute(
        f"SELECT {COLUMNS}, key FROM memories WHERE key > ? ORDER BY key LIMIT ?", (key, limit)
    )
    return {values[-1]: record(values) for values in found}


def _rest(memory: Memory) -> dict[str, Any]:
    """Returns the fields that have no column, those that say something."""
    fields: Mapping[str, Any] = {
        "content": memory.content,
        "tags": memory.tags,
        "category": memory.category,
        "source": memory.source,
        "status": memory.status,
        "by": memory.by,
        "protected": memory.protected,
        "links": [_link(link) for link in memory.links],
        "sections": {section.value: text for section, text in memory.sections.items()},
        "competing": [(one.field, one.text) for one in memory.competing],
        "extra": memory.extra,
    }
    said = {name: value for name, value in fields.items() if value not in (None, (), [], {})}
    return {"content": "", **said}


def _link(link: Link) -> dict[str, Any]:
    names = ("to", *_LINK_DEFAULTS)
    fields = {name: getattr(link, name) for name in names}
    return {n: v for n, v in fields.items() if n == "to" or v != _LINK_DEFAULTS[n]}
