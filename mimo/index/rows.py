"""The values that go into the index and come out of it, and records as rows of `memories`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise

from mimo.data.disk import Stamp
from mimo.errors import Misread
from mimo.frozen import NamedTuple, frozen
from mimo.index.schema import (
    COLUMNS,
    checksum,
    from_digest,
    from_sql,
    marks,
    packed,
    to_digest,
    to_number,
    to_sql,
    to_time,
    unpacked,
)
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime
    from typing import Any, TypeVar

    from mimo.ranking import Candidate, Cosines, RankingQuery, Statistics

    K = TypeVar("K")


class Newer(NamedTuple):
    """The memories that claim to supersede a memory; the ids are newest first."""

    superseded_by: tuple[str, ...] = ()
    claimed_by: tuple[str, ...] = ()
    """Unapproved memories while the older one is approved: their claims have no effect."""

    @property
    def successor(self) -> str | None:
        """Returns the newest memory that supersedes it."""
        return next(iter(self.superseded_by), None)

    @property
    def claimant(self) -> str | None:
        """Returns the newest memory that claims to supersede it, if nothing supersedes it."""
        return None if self.superseded_by else next(iter(self.claimed_by), None)


def newer(keys: Iterable[K], claims: Iterable[tuple[K, str, bool]]) -> dict[K, Newer]:
    """Returns, for each key, the memories that claim to supersede it.

    A claim has a key, the id of the newer memory, and whether it has effect; the newest come first.
    """
    all_claims = dict.fromkeys(keys, Newer())
    for key, id, has_effect in claims:
        superseded_by, claimed_by = all_claims[key]
        if has_effect:
            all_claims[key] = Newer((*superseded_by, id), claimed_by)
        else:
            all_claims[key] = Newer(superseded_by, (*claimed_by, id))
    return all_claims


@frozen
class Hit:
    """A memory that matches a query."""

    record: Record
    score: float
    """The probability that it answers the query."""
    passage: str
    """The part of its text that matches best."""
    line: int
    """The 1-based line of the file on which the passage begins."""
    newer: Newer
    competing: tuple[str, ...] = ()
    """The other current decisions on its topic."""
    project: int = 0
    """The number of its project in an index of several."""
    key: int | None = None
    """The number of the memory in its index; None without a match of its own."""
    is_literal: bool = False
    """True if it holds all words of a short query, or has it as a name."""
    is_listed: bool = False
    """True in a list, by time or without a subject: the score is 0 or 1 and states no relevance."""


@frozen
class IndexStats:
    """The size of an index."""

    memories: int
    units: int
    vectors: int
    """The static vectors of all units, also of earlier texts."""
    files: int
    bytes: int
    format: int


SURE = 0.3
"""The score from which a match is sure; a match below it is weak."""

NEAR = 0.05
"""The score that the best match must reach; otherwise nothing is near.

In a store of fewer than five memories it is higher, half of `SURE` for a single one: some memory is
always the nearest, and the fewer there are, the less that means.
"""


def least(memories: int) -> float:
    """Returns the score that the best match must reach in a store."""
    return max(NEAR, SURE / (memories + 1))


class Evidence(NamedTuple):
    """The knowledge of one index about a query and its best candidates."""

    query: RankingQuery
    statistics: Statistics
    candidates: Mapping[int, Candidate]
    """By key, also the parts around candidates."""
    cosines: Cosines


@frozen
class Found:
    """The answer to a query."""

    hits: tuple[Hit, ...]
    considered: int
    """The number of memories that passed the filter."""
    notice: str | None = None
    """Reports an incomplete search."""
    filter: Filter = Filter()
    """The filter that the matches pass, and that a successor beside them must pass, too."""
    evidence: Evidence | None = None
    """The evidence by which its matches are scored beside those of other indexes."""


class Request(NamedTuple):
    """A query and its options."""

    text: str
    filter: Filter
    limit: int
    now: datetime | None
    """None if neither age nor a time in the query counts."""
    by_meaning: bool | None = None
    """True if meaning counts; None if it does unless words suffice."""
    folded: bool = False
    """True if an ingested file has one place: that of its best chunk."""


@frozen
class Change:
    """The state of one file, to be written to the index."""

    path: str
    stamp: Stamp | None
    """None if the file is missing."""
    records: tuple[Record, ...] = ()
    problem: Problem | None = None


Overtaken = Callable[[Sequence[Change]], frozenset[str]]
"""Returns the paths of files that have changed since the changes were read.

It is called within the transaction that writes them. Until then, another process may have written a
later text, which must stay.
"""


def none_is(_: Sequence[Change]) -> frozenset[str]:
    """Returns no paths: the files can't change."""
    return frozenset()


_LINK_DEFAULTS = {"type": "relates_to", "given": None, "confidence": None, "by": None}


# Completion loads this module, and not JSON.


@cache
def _to_json() -> Callable[[object], str]:
    from json import JSONEncoder

    return JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def from_json(text: str | bytes) -> Any:
    """Returns the data of a stored text. Raises `Misread` if it is not JSON."""
    from json import loads

    try:
        return loads(text)
    except ValueError as error:
        raise Misread("JSON") from error


def row(record: Record) -> tuple[Any, ...]:
    """Returns the values of `COLUMNS`."""
    memory, place = record.memory, record.place
    values = (
        memory.id,
        to_sql(place.path),
        place.line,
        to_digest(place.digest),
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
        _to_json()(_other_fields(memory)),
        packed(memory.content),
        to_digest(place.approval),
    )
    return (*values, checksum(values))


def record(values: Sequence[Any], *, has_checksum: bool = True) -> Record:
    """Returns the record with these values of `COLUMNS`; further values are ignored.

    Raises `Misread` if a value differs from what was written.
    """
    if has_checksum and checksum(values) != values[18]:
        raise Misread("checksum")
    rest = {} if values[15] == "{}" else from_json(values[15])
    memory = Memory(
        id=values[0],
        type=Kind(values[6]),
        title=values[7],
        topic=values[8],
        created=to_time(values[9]),
        importance=values[10],
        confidence=values[11],
        outcome=Outcome(values[12]) if values[12] else None,
        content=unpacked(values[16]),
        tags=tuple(rest.get("tags", ())),
        category=rest.get("category"),
        source=rest.get("source"),
        status=rest.get("status"),
        by=rest.get("by"),
        protected=rest.get("protected"),
        links=tuple(Link(**{"to": "", **link}) for link in rest.get("links", ())),
        sections={Section(name): text for name, text in rest.get("sections", {}).items()},
        competing=tuple(Version(field=f, text=t) for f, t in rest.get("competing", ())),
        extra=rest.get("extra", {}),
    )
    place = Place(
        path=from_sql(values[1]),
        line=values[2],
        digest=from_digest(values[3]),
        private=bool(values[4]),
        owned=bool(values[5]),
        approval=from_digest(values[17]),
    )
    return Record(memory=memory, place=place, parent=values[13], position=values[14])


def to_passages(passages: Sequence[str], units: Sequence[str]) -> str | None:
    """Returns the tokens of passages as the column `passages` holds them; None for no passages.

    If the units have the same tokens in the same order, only the lengths of the passages are kept.
    """
    if not passages:
        return None
    if " ".join(passages) == " ".join(units):
        return "=" + " ".join([str(passage.count(" ") + 1) for passage in passages])
    return "\n".join(passages)


def from_passages(stored: str | None, units: Sequence[str]) -> Sequence[str]:
    """Returns the passages that `to_passages` was given, from the tokens of the same units.

    Raises `Misread` if they have no lengths.
    """
    if not stored:
        return ()
    if stored[0] != "=":
        return stored.split("\n")
    try:
        lengths = list(map(int, stored[1:].split(" ")))
    except ValueError as error:
        raise Misread("passages") from error
    if len(lengths) == 1:
        return (" ".join(units),)
    tokens, ends = " ".join(units).split(" "), list(accumulate(lengths))
    return [" ".join(tokens[start:end]) for start, end in pairwise([0, *ends])]


def is_excerpt(stored: str | None) -> bool:
    """Returns whether stored passages leave tokens of the units out.

    They do so in a chat with an assistant, whose passages are the user's lines.
    """
    return bool(stored) and not str(stored).startswith("=")


def newest_first(record: Record) -> tuple[int, str, int, str]:
    """Returns the sort key of the order in `schema.newest_first`."""
    memory = record.memory
    return -to_number(memory.created), record.parent or "", record.position, memory.id


def select(connection: sqlite3.Connection, clause: str, values: Sequence[Any] = ()) -> list[Record]:
    """Returns the records of `SELECT … FROM memories m` continued by `clause`."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM memories m {clause}", values)
    return [record(row) for row in rows]


def by_key(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, Record]:
    """Returns the records of those rows of `memories`."""
    selected = connection.execute(
        f"SELECT {COLUMNS}, key FROM memories WHERE key IN ({marks(keys)})", keys
    )
    return {values[-1]: record(values) for values in selected}


def _other_fields(memory: Memory) -> dict[str, Any]:
    """Returns the fields that have no column and are not empty."""
    fields: Mapping[str, Any] = {
        "tags": memory.tags,
        "category": memory.category,
        "source": memory.source,
        "status": memory.status,
        "by": memory.by,
        "protected": memory.protected,
        "links": [
            {
                name: value
                for name in ("to", *_LINK_DEFAULTS)
                if (value := getattr(link, name)) != _LINK_DEFAULTS.get(name, "")
            }
            for link in memory.links
        ],
        "sections": {section.value: text for section, text in memory.sections.items()},
        "competing": [(version.field, version.text) for version in memory.competing],
        "extra": memory.extra,
    }
    return {name: value for name, value in fields.items() if value not in (None, (), [], {})}
