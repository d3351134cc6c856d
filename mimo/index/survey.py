"""Questions about all memories of a project, which read as few of their texts as possible.

`+shadowed = 0` keeps SQLite from choosing an index by `shadowed`, which nearly all rows have alike.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from datetime import tzinfo
from itertools import pairwise

from mimo.data.disk import STORE
from mimo.frozen import NamedTuple, frozen
from mimo.index import rows, schema
from mimo.index.schema import HOLDS, from_digest, from_sql, marks, newest_first, portions
from mimo.index.selection import condition, current_decision
from mimo.index.targets import named_links, resolved
from mimo.memory.decay import never_fades
from mimo.memory.model import Filter, Kind, Record
from mimo.text.calendar import in_zone

_QUARTER = 15 * 60 * 1_000_000
"""A quarter of an hour in microseconds."""


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
    """Returns the number of memories of each type that occurs; an ingested file is one memory."""
    # Each reads an index alone.
    of_all = "SELECT type, count(*) FROM memories WHERE +shadowed = 0 GROUP BY type"
    of_further_chunks = (
        "SELECT type, count(*) - count(DISTINCT parent) FROM memories"
        " WHERE parent IS NOT NULL AND +shadowed = 0 GROUP BY +type"
    )
    numbers = Counter[str](dict(sql.execute(of_all)))
    numbers.subtract(dict(sql.execute(of_further_chunks)))
    return {Kind(type): number for type, number in numbers.items()}


def tags(sql: sqlite3.Connection, limit: int) -> list[tuple[str, int]]:
    """Returns the tags of the most memories, each with their number, the most frequent first."""
    return sql.execute(
        "SELECT tag, count(*) FROM tags JOIN memories m ON m.key = memory"
        " WHERE +m.shadowed = 0 GROUP BY tag ORDER BY count(*) DESC, tag LIMIT ?",
        (limit,),
    ).fetchall()


def months(sql: sqlite3.Connection, zone: tzinfo) -> dict[str, int]:
    """Returns the number of memories created in each month, such as `2026-11`, oldest first.

    The months are those of the zone, whose offset is a multiple of a quarter of an hour.
    """
    selected = sql.execute(
        f"SELECT created / {_QUARTER} AS quarter, created % {96 * _QUARTER} = 0 AS is_day, count(*)"
        " FROM memories WHERE shadowed = 0 GROUP BY quarter, is_day ORDER BY quarter"
    )
    months: Counter[str] = Counter()
    for quarter, is_day, number in selected:
        moment = schema.to_time(quarter * _QUARTER)
        moment = moment if is_day else in_zone(moment, zone)
        months[f"{moment.year:04}-{moment.month:02}"] += number
    return dict(months)


class Standing(NamedTuple):
    """A memory's id, file and approval, by which an export chooses."""

    id: str
    type: Kind
    path: str
    parent: str | None
    private: bool
    approved: bool


def standings(sql: sqlite3.Connection, filter: Filter) -> list[Standing]:
    """Returns the memories that pass the filter, oldest first, without their texts."""
    where, values = condition(filter)
    selected = sql.execute(
        "SELECT m.id, m.type, m.path, m.parent, m.private, approved(m.approval) FROM memories m"
        f" WHERE {where} ORDER BY m.created, m.id",
        values,
    )
    return [
        Standing(id, Kind(type), from_sql(path), parent, bool(private), bool(approved))
        for id, type, path, parent, private, approved in selected
    ]


def sessions(sql: sqlite3.Connection, gap: int) -> int:
    """Returns the number of sessions; memories further apart than this belong to different ones.

    The gap is in microseconds.
    """
    selected = sql.execute("SELECT created FROM memories WHERE shadowed = 0 ORDER BY created")
    times: list[int] = [created for (created,) in selected]
    return sum(later - earlier > gap for earlier, later in pairwise(times)) + bool(times)


def oldest(sql: sqlite3.Connection) -> int | None:
    """Returns the time of the oldest memory in microseconds since 1970."""
    query = "SELECT min(created) FROM memories WHERE shadowed = 0"
    time: int | None = sql.execute(query).fetchone()[0]
    return time


def origins(sql: sqlite3.Connection, suffixes: Sequence[str]) -> Origins:
    """Returns how many memories come from documents and from ingested files.

    The documents of `include` have one of these suffixes; code and commits have none.
    """
    source = "FROM memories WHERE +shadowed = 0 AND parent IS NULL"
    inside = f"path >= '{STORE}/' AND path < '{STORE}0'"  # "0" follows "/".
    outside = f"(path < '{STORE}/' OR path >= '{STORE}0')"
    named = " OR ".join(f"lower(CAST(path AS TEXT)) LIKE '%{suffix}'" for suffix in suffixes)
    elsewhere, included, read_only = sql.execute(
        f"SELECT count(*), total({named}), (SELECT count(*) {source} AND owned = 0 AND {inside})"
        f" {source} AND {outside}"
    ).fetchone()
    files, chunks = sql.execute(
        "SELECT count(DISTINCT path), count(*) FROM memories"
        " WHERE parent IS NOT NULL AND +shadowed = 0"
    ).fetchone()
    return Origins(
        in_place=elsewhere + read_only, included=int(included), ingested_files=files, chunks=chunks
    )


def approvals(sql: sqlite3.Connection) -> dict[str, str]:
    """Returns the path of each text of a memory by the name that approves it.

    Also of those whose id an approved one has: approvals decide which of several memories has it.
    """
    selected = sql.execute("SELECT approval, path FROM memories")
    return {from_digest(name): from_sql(path) for name, path in selected}


class Approved(NamedTuple):
    """The numbers of approved texts of memories."""

    texts: int
    approved: int
    unapproved: int
    """The number of items to approve: an ingested text is one, with all of its parts."""


def approved(sql: sqlite3.Connection, approves: Callable[[str], bool]) -> Approved:
    """Returns how many texts of memories are approved."""
    query = "SELECT approval, path, parent FROM memories WHERE +shadowed = 0"
    rows = set(sql.execute(query))
    left = [row for row in rows if not approves(from_digest(row[0]))]
    items = {(path,) if parent else (path, name) for name, path, parent in left}
    return Approved(len(rows), len(rows) - len(left), len(items))


def left_out(sql: sqlite3.Connection, approves: Callable[[str], bool]) -> dict[str, int]:
    """Returns the number of memories in each file whose text is not approved, the most first."""
    query = "SELECT path, approval FROM memories WHERE +shadowed = 0"
    paths = (path for path, name in sql.execute(query) if not approves(from_digest(name)))
    return {from_sql(path): number for path, number in Counter(paths).most_common()}


class Age(NamedTuple):
    """The facts on which the fading of a memory depends."""

    key: int
    id: str
    importance: float
    created: int
    """In microseconds since 1970."""
    protected: bool
    """True if it never fades."""


def ages(sql: sqlite3.Connection, reviewed: Container[str]) -> list[Age]:
    """Returns what the fading of every memory depends on, in no particular order.

    `reviewed` has the names of the texts that the user approved.
    """
    selected = sql.execute(
        "SELECT key, id, importance, created, type, path, parent IS NOT NULL, approval,"
        " CASE WHEN instr(rest, '\"protected\":') THEN rest END"
        " FROM memories WHERE +shadowed = 0"
    )
    return [
        Age(
            key,
            id,
            importance,
            created,
            never_fades(
                type,
                from_sql(path),
                protected=rows.from_json(fields).get("protected") if fields else None,
                is_part=bool(is_part),
                is_reviewed=from_digest(name) in reviewed,
            ),
        )
        for key, id, importance, created, type, path, is_part, name, fields in selected
    ]


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
    approval: str
    type: Kind
    is_part: bool
    """True for a part of an ingested text, which is approved as a whole."""


def unapproved(sql: sqlite3.Connection) -> list[Unapproved]:
    """Returns the memories whose text is not approved, newest first."""
    selected = sql.execute(
        "SELECT key, path, approval, type, parent IS NOT NULL FROM memories m"
        f" WHERE +shadowed = 0 AND NOT approved(approval) ORDER BY {newest_first('m')}"
    )
    return [
        Unapproved(key, from_sql(path), from_digest(name), Kind(type), bool(is_part))
        for key, path, name, type, is_part in selected
    ]


def disputed(sql: sqlite3.Connection) -> tuple[Record, ...]:
    """Returns the memories with several versions of a field, newest first."""
    records = _selected(sql, "instr(rest, '\"competing\":')")
    return tuple(record for record in records if record.memory.competing)


def rivals(sql: sqlite3.Connection) -> list[list[int]]:
    """Returns the keys of the current decisions that compete with each other, a list to a topic.

    Approved decisions compete with each other, and so do unapproved ones. Newest first.
    """
    # The subquery reads an index alone; few topics have several memories. The plus keeps SQLite
    # from reading all memories by time.
    selected = sql.execute(
        "SELECT m.topic_key, approved(m.approval), m.key FROM memories m WHERE m.topic_key IN"
        " (SELECT topic_key FROM memories WHERE topic_key IS NOT NULL AND +shadowed = 0"
        f" GROUP BY topic_key HAVING count(*) > 1) AND {current_decision('m')}"
        f" ORDER BY +{newest_first('m')}"
    )
    alike: dict[tuple[str, bool], list[int]] = {}
    for topic, is_approved, key in selected:
        alike.setdefault((topic, is_approved), []).append(key)
    topics: dict[str, list[int]] = {}
    for (topic, _), keys in alike.items():
        if len(keys) > 1:
            topics.setdefault(topic, []).extend(keys)
    return list(topics.values())


def contradicting(sql: sqlite3.Connection) -> tuple[Record, ...]:
    """Returns the memories that link to one that they contradict, newest first."""
    return _selected(sql, "m.key IN (SELECT source FROM links WHERE type = 'contradicts')")


def shared_links(sql: sqlite3.Connection, ids: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the shared memories that link to some others, each with the id that it links to."""
    return sql.execute(
        "SELECT m.id, l.target FROM links l CROSS JOIN memories m ON m.key = l.source"
        f" WHERE l.target IN ({marks(ids)}) AND m.id NOT IN ({marks(ids)}) AND m.private = 0",
        (*ids, *ids),
    ).fetchall()


def superseding_names(sql: sqlite3.Connection) -> list[tuple[str, str, str, Record]]:
    """Returns the links that should supersede a memory but do not name its id, without effect.

    Each has the id of its memory, the name, the approval, and the memory that it should name.
    """
    links = named_links(sql, ["supersedes"])
    keys = resolved(sql, [link for _, link, _ in links])
    named = records(sql, [key for key, *_ in keys.values()])
    return [
        (source, link.target, approval, named[keys[link][0]])
        for source, link, approval in links
        if link in keys
    ]


def circles(sql: sqlite3.Connection) -> list[tuple[str, ...]]:
    """Returns the ids of memories that supersede each other, so that none of them is current.

    Each circle begins with its first id.
    """
    newer: dict[str, set[str]] = {}
    selected = sql.execute(
        "SELECT o.id, s.id FROM links l CROSS JOIN memories s ON s.key = l.source"
        " JOIN memories o ON o.id = l.target AND o.shadowed = 0 WHERE l.type = 'supersedes'"
        f" AND s.shadowed = 0 AND s.id <> o.id AND {HOLDS.format('o')}"
    )
    for old, new in selected:
        newer.setdefault(old, set()).add(new)
    while ends := {old for old, news in newer.items() if not news & newer.keys()}:
        newer = {old: news for old, news in newer.items() if old not in ends}
    distinct: dict[tuple[str, ...], None] = {}
    for start in newer:
        walked = [start]
        while (after := min(newer[walked[-1]] & newer.keys())) not in walked:
            walked.append(after)
        circle = walked[walked.index(after) :]
        offset = circle.index(min(circle))
        distinct[(*circle[offset:], *circle[:offset])] = None
    return sorted(distinct)


def ingested(sql: sqlite3.Connection) -> tuple[Record, ...]:
    """Returns one part of each ingested text, newest first."""
    subquery = (
        "SELECT min(key) FROM memories WHERE parent IS NOT NULL AND +shadowed = 0 GROUP BY +path"
    )
    return _selected(sql, f"m.key IN ({subquery})")


def named_like_sources(sql: sqlite3.Connection) -> tuple[Record, ...]:
    """Returns the memories that have the id of an ingested text, newest first."""
    return _selected(sql, "m.id IN (SELECT id FROM parents)")


def misread(sql: sqlite3.Connection) -> Iterator[tuple[Record, list[str]]]:
    """Yields the memories whose header is not read as it was meant, and the keys of mind in it.

    These have a value without a meaning, or capital letters. Without keys, the text begins with the
    header. Of a document elsewhere, only a time of creation counts: it may use other keys in its
    own way, as a concept of OKF uses `type`.
    """
    from mimo.memory.codec.file import DATES, KEYS, begins_with_header, is_misread

    # Imported memories have other keys there, so SQLite looks for those of mind.
    ours = ", ".join(f"'{key}'" for key in {*KEYS, *DATES})
    extra = f"SELECT 1 FROM json_each(m.rest, '$.extra') WHERE lower(json_each.key) IN ({ours})"
    for record in _selected(
        sql, f"m.parent IS NULL AND (m.owned = 0 AND m.path LIKE '.mind/%' OR EXISTS ({extra}))"
    ):
        elsewhere, unknown = record.place.elsewhere, record.memory.extra
        keys = [key for key in unknown if is_misread(key, unknown[key], is_ours=not elsewhere)]
        if keys or (not elsewhere and begins_with_header(record.memory.content)):
            yield record, keys


def citing(sql: sqlite3.Connection) -> tuple[Record, ...]:
    """Returns the memories that may cite a place in a file, newest first."""
    return _selected(sql, "m.cites = 1")


def _selected(sql: sqlite3.Connection, condition: str) -> tuple[Record, ...]:
    clause = f"WHERE +m.shadowed = 0 AND {condition} ORDER BY {newest_first('m')}"
    return tuple(rows.select(sql, clause))
