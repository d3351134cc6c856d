"""Selects memories: by id, by a filter, in lists, and as candidates for a query.

The candidates hold a word of the query, or have a vector near to its vector.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal

from mimo.frozen import NamedTuple
from mimo.index import rows
from mimo.index.rows import Newer
from mimo.index.schema import (
    BEST,
    BM25,
    CURRENT,
    CURRENT_IF_SHARED,
    HOLDS,
    from_digest,
    from_sql,
    marks,
    newest_first,
    portions,
    to_number,
    to_sql,
    to_time,
    totals,
)
from mimo.index.vectors import Vectors
from mimo.memory.model import Filter, Problem, Record, Sort, tag_key, topic_key

_ORDERS = {
    Sort.RECENT: newest_first("m"),
    Sort.IMPORTANCE: f"m.importance DESC, {newest_first('m')}",
}


_DAY = 86_400_000_000
"""A day in the unit of the stored times."""


class Chunks(NamedTuple):
    """The parts of a source: their ids in order, their file, its digest, and their time."""

    ids: tuple[str, ...]
    path: str
    digest: str
    created: datetime


def get(sql: sqlite3.Connection, id: str) -> Record | None:
    """Returns the memory with that id."""
    records = rows.select(sql, "WHERE m.id = ? AND m.shadowed = 0", (to_sql(id),))
    return records[0] if records else None


def parts(sql: sqlite3.Connection, parent: str) -> tuple[Record, ...]:
    """Returns the parts of a source, in their order."""
    clause = "WHERE m.parent = ? AND m.shadowed = 0 ORDER BY m.position"
    return tuple(rows.select(sql, clause, (parent,)))


def chunks(sql: sqlite3.Connection, parent: str) -> Chunks | None:
    """Returns the names of a source's parts; None if it has none."""
    selected = sql.execute(
        "SELECT id, path, digest, created FROM memories WHERE parent = ? AND shadowed = 0"
        " ORDER BY position",
        (parent,),
    ).fetchall()
    if not selected:
        return None
    _, path, digest, created = selected[0]
    ids = tuple(id for id, *_ in selected)
    return Chunks(ids, from_sql(path), from_digest(digest), to_time(created))


class Dialect(NamedTuple):
    """The conditions on a row of `memories` that a database has in its own way.

    Format them with the alias of the row.
    """

    visible: str
    """Its id belongs to it, and not to another file."""
    approved: str
    current: str
    tags: str
    """The name of the table of tags."""


SQLITE = Dialect("{0}.shadowed = 0", "approved({0}.approval)", CURRENT, "tags")


def condition(
    filter: Filter, row: str = "m", dialect: Dialect = SQLITE
) -> tuple[str, list[str | int]]:
    """Returns a filter as SQL over `memories`, whose alias is `row`, and the values to bind.

    The SQL has a question mark for each value, and no other.
    """
    approved = dialect.approved.format(row)
    switches = {
        "shared": f"NOT {row}.private",
        "private": f"{row}.private",
        "approved": approved,
        "unapproved": f"NOT {approved}",
        "current": dialect.current.format(row),
        "whole": f"{row}.parent IS NULL AND substr(CAST({row}.path AS TEXT), 1, 6) = '.mind/'",
    }
    terms = [dialect.visible.format(row)]
    terms += [term for name, term in switches.items() if getattr(filter, name)]
    values: list[str | int] = []
    if filter.ids is not None:
        terms.append(f"{row}.id IN ({marks(filter.ids)})" if filter.ids else "1 = 0")
        values += sorted(filter.ids)
    if filter.types is not None:
        terms.append(f"{row}.type IN ({marks(filter.types)})" if filter.types else "1 = 0")
        values += sorted(kind.value for kind in filter.types)
    for tag in sorted(filter.tags):
        # `auth` also finds `auth/jwt`; `0` is the character after the slash.
        tagged = f"SELECT 1 FROM {dialect.tags} t WHERE t.memory = {row}.key"
        terms.append(f"EXISTS ({tagged} AND (t.tag = ? OR (t.tag >= ? AND t.tag < ?)))")
        key = tag_key(tag)
        values += (key, f"{key}/", f"{key}0")
    if filter.topic is not None:
        terms.append(f"{row}.topic_key = ?")
        values.append(topic_key(filter.topic))
    if filter.outcomes:
        outcomes = sorted(outcome.value for outcome in filter.outcomes if outcome)
        either = [f"{row}.outcome IN ({marks(outcomes)})"] if outcomes else []
        if None in filter.outcomes:
            either.append(f"{row}.type = 'decision' AND {row}.outcome IS NULL")
        terms.append(f"({' OR '.join(either)})")
        values += outcomes
    for end, order in ((filter.since, ">="), (filter.until, "<")):
        if end is not None:
            # A date without a time is that day in the zone.
            term = f"{row}.created {order} ?"
            is_day = f"{row}.created = {row}.created / {_DAY} * {_DAY}"
            terms.append(
                f"CASE WHEN {is_day} THEN {term} ELSE {term} END" if end.utcoffset() else term
            )
            values += [to_number(end.replace(tzinfo=UTC))] * bool(end.utcoffset()) + [
                to_number(end)
            ]
    return " AND ".join(terms), values


def records(
    sql: sqlite3.Connection,
    filter: Filter,
    *,
    sort: Sort = Sort.RECENT,
    limit: int = -1,
    offset: int = 0,
) -> tuple[Record, ...]:
    """Returns one page of the memories that pass the filter; a negative limit means all."""
    where, values = condition(filter)
    clause = f"WHERE {where} ORDER BY {_ORDERS[sort]} LIMIT ? OFFSET ?"
    return tuple(rows.select(sql, clause, (*values, limit, offset)))


class Folded(NamedTuple):
    """The numbers of memories that pass a filter if an ingested file counts as one."""

    rows: int
    """Memories and files."""
    chunks: int
    """The chunks in these files."""


def folded(sql: sqlite3.Connection, filter: Filter) -> Folded:
    """Returns how many memories pass the filter, and how many of them are chunks."""
    # The plus lets SQLite read the index of the chunks alone.
    where, values = ("+m.shadowed = 0", []) if filter == Filter() else condition(filter)
    chunks, files = sql.execute(
        "SELECT count(*), count(DISTINCT m.parent) FROM memories m"
        f" WHERE m.parent IS NOT NULL AND {where}",
        values,
    ).fetchone()
    return Folded(count(sql, filter) - chunks + files, chunks)


def folded_records(
    sql: sqlite3.Connection, filter: Filter, *, sort: Sort, limit: int, offset: int
) -> tuple[Record, ...]:
    """Returns a page as `records`, with the first chunk alone of each ingested file."""
    where, values = condition(filter)
    earlier, same = condition(filter, "p")
    clause = (
        f"WHERE {where} AND NOT EXISTS (SELECT 1 FROM memories p WHERE p.parent = m.parent"
        f" AND p.position < m.position AND {earlier}) ORDER BY {_ORDERS[sort]} LIMIT ? OFFSET ?"
    )
    return tuple(rows.select(sql, clause, (*values, *same, limit, offset)))


def chunk_counts(sql: sqlite3.Connection, parents: Sequence[str], filter: Filter) -> dict[str, int]:
    """Returns the number of chunks that pass the filter in each of these ingested files."""
    where, values = condition(filter)
    selected = sql.execute(
        f"SELECT m.parent, count(*) FROM memories m WHERE m.parent IN ({marks(parents)})"
        f" AND {where} GROUP BY m.parent",
        (*parents, *values),
    )
    return dict(selected.fetchall())


def among(sql: sqlite3.Connection, ids: Sequence[str], filter: Filter) -> tuple[Record, ...]:
    """Returns the memories with these ids that pass the filter, newest first."""
    where, values = condition(filter)
    clause = f"WHERE m.id IN ({marks(ids)}) AND {where} ORDER BY {newest_first('m')}"
    return tuple(rows.select(sql, clause, (*ids, *values)))


def count(sql: sqlite3.Connection, filter: Filter) -> int:
    """Returns the number of memories that pass the filter."""
    if filter == Filter():
        return totals(sql).visible
    where, values = condition(filter)
    return int(sql.execute(f"SELECT count(*) FROM memories m WHERE {where}", values).fetchone()[0])


def current_decision(memory: str, *, shared: bool = False) -> str:
    """Returns the condition that a row of `memories` is a decision that nothing supersedes.

    With `shared`, it is not private, and private memories supersede nothing.
    """
    current = f"{CURRENT_IF_SHARED} AND {{0}}.private = 0" if shared else CURRENT
    # The plus keeps SQLite from reading all decisions in order to find those of a few ids.
    return f"+{memory}.type = 'decision' AND {memory}.shadowed = 0 AND {current.format(memory)}"


def current(
    sql: sqlite3.Connection, topic: str, *, shared: bool = False, unapproved: bool = False
) -> tuple[Record, ...]:
    """Returns the current decisions on a topic, newest first; two after a merge of branches.

    Unapproved decisions are returned only if no decision on the topic is approved, or with
    `unapproved` beside the approved ones. With `shared`, private memories do not matter.
    """
    of_topic = f"WHERE m.topic_key = ? AND {current_decision('m', shared=shared)}"
    for approved in ("1",) if unapproved else ("approved(m.approval)", "1"):
        clause = f"{of_topic} AND {approved} ORDER BY {newest_first('m')}"
        if decisions := tuple(rows.select(sql, clause, (topic_key(topic),))):
            return decisions
    return ()


def competing(
    sql: sqlite3.Connection, ids: Sequence[str], *, shared: bool = False
) -> dict[str, tuple[str, ...]]:
    """Returns the decisions that compete with others of their topic, each with the others' ids.

    All are current; the others come newest first. An approved decision does not compete with an
    unapproved one, which competes with each approved one that it does not follow. With `shared`,
    private memories do not matter.
    """
    follows = (
        "WITH RECURSIVE past(id) AS (SELECT m.id UNION SELECT l.target FROM past p"
        " JOIN memories s ON s.id = p.id JOIN links l ON l.source = s.key"
        " AND l.type = 'supersedes') SELECT 1 FROM past WHERE id = o.id"
    )
    selected = sql.execute(
        "SELECT m.id, o.id FROM memories m CROSS JOIN memories o"
        " ON o.topic_key = m.topic_key AND o.key <> m.key"
        f" WHERE m.id IN ({marks(ids)})"
        f" AND {current_decision('m', shared=shared)} AND {current_decision('o', shared=shared)}"
        " AND (NOT approved(m.approval) = NOT approved(o.approval)"
        f" OR approved(o.approval) AND NOT EXISTS ({follows}))"
        f" ORDER BY {newest_first('o')}",
        ids,
    )
    rivals: dict[str, tuple[str, ...]] = {}
    for id, rival in selected:
        rivals[id] = (*rivals.get(id, ()), rival)
    return rivals


def newer(sql: sqlite3.Connection, ids: Sequence[str], *, shared: bool = False) -> dict[str, Newer]:
    """Returns, for each of these ids, the memories that claim to supersede it.

    With `shared`, those that are not private.
    """
    among = "AND s.private = 0" if shared else ""
    selected = sql.execute(
        f"SELECT l.target, s.id, {HOLDS.format('o')}"
        " FROM links l CROSS JOIN memories s ON s.key = l.source"
        " LEFT JOIN memories o ON o.id = l.target AND o.shadowed = 0"
        f" WHERE l.type = 'supersedes' AND l.target IN ({marks(ids)})"
        f" AND s.shadowed = 0 AND s.id <> l.target {among} ORDER BY {newest_first('s')}",
        ids,
    )
    return rows.newer(ids, selected)


def problems(sql: sqlite3.Connection) -> tuple[Problem, ...]:
    """Returns why files, or memories in them, can't be selected, sorted by path."""
    unread = sql.execute("SELECT path, reason_line, reason FROM files WHERE reason IS NOT NULL")
    reasons = [
        Problem(path=from_sql(path), line=line, reason=reason) for path, line, reason in unread
    ]
    shadowed = sql.execute(
        "SELECT s.path, s.line, s.id, o.path FROM memories s"
        " JOIN memories o ON o.id = s.id AND o.shadowed = 0 WHERE s.shadowed = 1"
    )
    for path, line, id, owner in shadowed:
        place = "another part of it" if owner == path else f"`{from_sql(owner)}`"
        reason = f"its id `{id}` belongs to {place}"
        reasons.append(Problem(path=from_sql(path), line=line, reason=reason))
    return tuple(sorted(reasons, key=lambda problem: (problem.path, problem.line or 0)))


def count_unread(sql: sqlite3.Connection) -> int:
    """Returns the number of files that can't be read as memories."""
    query = "SELECT count(*) FROM files WHERE reason IS NOT NULL"
    return int(sql.execute(query).fetchone()[0])


# The memories that a query may mean.

UNITS = 200
"""The number of units that words find, by BM25."""

READ = 250
"""The number of units that are read: these, and a margin for ties."""

_READ_FIRST = 120
"""The number of units that are read if they are of enough memories, as those of notes are."""

DOCUMENTS = 60
"""The number of their memories that are ranked; more changed no measurement by 0.1."""

NEAR = 50
"""The number of units that vectors find."""

_PRUNED_FROM = 50_000
_PRUNED_SHARE = 10
_PRUNED_LEAST = 1_000
_PRUNED_TERMS = 2

_ENOUGH = 2
"""Among this many times a fair share of units, enough are expected to pass the filter."""

_MANY = 4
"""That is tried if at least one of this many memories passes the filter."""

_COMPARED_EACH = 20
"""If fewer than one in so many memories pass the filter, their vectors are compared one by one."""

_Near = tuple[float, list[Any], int]
"""A unit: its negative cosine, its place in the order from newest to oldest, and its memory."""


def pruned(terms: Sequence[str], frequencies: Mapping[str, int], units: int) -> list[str]:
    """Returns the terms that memories are looked up by: all of them, unless the store is large.

    In a large store these are the rarest ones, at least two, that match up to a tenth of the units.
    This lost nothing in measurements and avoids reading the long lists of common words.
    """
    if units < _PRUNED_FROM:
        return list(terms)
    rarest: list[str] = []
    matches = 0
    for term in sorted(terms, key=lambda term: frequencies[term]):
        matches += frequencies[term]
        if len(rarest) >= _PRUNED_TERMS and matches > max(units // _PRUNED_SHARE, _PRUNED_LEAST):
            break
        if frequencies[term]:
            rarest.append(term)
    return rarest


# The same units of memories that pass a filter, in three ways. Looking up the memory of a match
# costs more than finding the match, so the fastest way depends on what is rare.
_AMONG_THE_BEST = (
    f"SELECT w.unit, w.weight FROM ({BEST.format('')}) w JOIN units n ON n.key = w.unit"
    " JOIN memories m ON m.key = n.memory AND {} ORDER BY w.weight LIMIT ?"
)
_OF_THE_ADMITTED = (
    f"SELECT words.rowid AS unit, {BM25} AS weight FROM words"
    " WHERE words MATCH ? AND +words.rowid IN"
    " (SELECT n.key FROM memories m CROSS JOIN units n ON n.memory = m.key WHERE {})"
    " ORDER BY weight LIMIT ?"
)
_ONE_BY_ONE = (
    f"SELECT words.rowid AS unit, {BM25} AS weight FROM words"
    " JOIN units n ON n.key = words.rowid JOIN memories m ON m.key = n.memory AND {}"
    " WHERE words MATCH ? ORDER BY weight LIMIT ?"
)
# All of them up to a weight. The inner limit keeps SQLite from computing each weight twice.
_UP_TO = (
    f"SELECT w.unit, w.weight FROM (SELECT words.rowid AS unit, {BM25} AS weight FROM words"
    " WHERE words MATCH ? LIMIT -1) w JOIN units n ON n.key = w.unit"
    " JOIN memories m ON m.key = n.memory AND {} WHERE w.weight <= ?"
)


def memories_with(
    sql: sqlite3.Connection,
    terms: Sequence[str],
    filter: Filter,
    *,
    memories: int,
    admitted: int,
    matches: int,
) -> list[int]:
    """Returns the keys of at most `DOCUMENTS` memories that hold any of the terms, best first.

    Only memories that pass the filter are returned: `admitted` of all `memories`. At most `matches`
    units hold a term. Memories of equal weight are sorted by age, youngest first, then by id.
    """
    if not terms:
        return []
    match = " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
    where, values = condition(filter)
    weighed: list[tuple[int, float]] = []
    depth = _ENOUGH * UNITS * memories // max(admitted, 1)
    if admitted >= memories:
        for limit in (_READ_FIRST, READ):
            weighed = _matched(sql, BEST.format(""), (match, limit))
            surely = {memory for memory, weight in weighed if weight < weighed[-1][1]}
            if len(weighed) < limit or len(surely) >= DOCUMENTS:
                break
    elif admitted * _MANY >= memories and depth < matches:
        weighed = _matched(sql, _AMONG_THE_BEST.format(where), (match, depth, *values, READ))
    if admitted < memories and len(weighed) < UNITS:
        if admitted < matches:
            weighed = _matched(sql, _OF_THE_ADMITTED.format(where), (match, *values, READ))
        else:
            weighed = _matched(sql, _ONE_BY_ONE.format(where), (*values, match, READ))
    if len(weighed) >= UNITS and weighed[UNITS - 1][1] == weighed[-1][1]:
        # Which of the units that equal these were read depends on the history of the index.
        least = weighed[-1][1]
        if len({memory for memory, weight in weighed if weight < least}) < DOCUMENTS:
            weighed = _matched(sql, _UP_TO.format(where), (match, *values, least))
    return list(dict.fromkeys(memory for memory, _ in weighed[:UNITS]))[:DOCUMENTS]


def _matched(
    sql: sqlite3.Connection, units: str, values: Sequence[object]
) -> list[tuple[int, float]]:
    """Returns the memory and the weight of the best units that a query selects, best first.

    The weight of FTS5 is a negative number.
    """
    selected = sql.execute(
        f"SELECT u.memory, w.weight FROM ({units}) w"
        " JOIN units u ON u.key = w.unit JOIN memories a ON a.key = u.memory"
        f" ORDER BY w.weight, {newest_first('a')} LIMIT {READ}",
        values,
    )
    return selected.fetchall()


def memories_near(
    sql: sqlite3.Connection,
    vectors: Vectors,
    query: bytes,
    filter: Filter,
    limit: int = NEAR,
    *,
    of: Literal["units", "memories"] = "units",
) -> dict[int, float]:
    """Returns the memories of the `limit` units nearest to a query's vector, nearest first.

    Their cosines are positive. Or the `limit` nearest memories, each by its nearest unit. All pass
    the filter, and have their cosine. If few memories pass, or the query's subject hardly occurs
    among them, their vectors are compared one by one.
    """
    where, values = condition(filter)
    columns = "u.vector, -m.created, coalesce(m.parent, ''), m.position, m.id, m.key"

    def ranked(near: Mapping[bytes, float], units: Iterable[tuple[Any, ...]]) -> list[_Near]:
        return sorted((-near[name], age, key) for name, *age, key in units if name in near)

    def fetched(depth: int) -> tuple[list[_Near], bool]:
        """Returns the units with the nearest vectors, and whether they are enough."""
        near = dict(vectors.nearest(query, depth))
        units: list[tuple[Any, ...]] = []
        for some in portions(list(near)):
            # SQLite makes a cross join from left to right: vectors are looked up in `units`.
            units += sql.execute(
                f"SELECT {columns} FROM units u CROSS JOIN memories m ON m.key = u.memory"
                f" WHERE {where} AND u.vector IN ({marks(some)})",
                (*values, *some),
            )
        matches = ranked(near, units)
        least = min(near.values(), default=0.0)  # Some that equal this one may be missing.
        sure = [key for distance, _, key in matches if -distance > least]
        return matches, len(near) < depth or len(sure if of == "units" else {*sure}) >= limit

    for depth in _depths(sql, filter, limit):
        matches, is_enough = fetched(depth)
        if is_enough:
            break
    else:
        units = sql.execute(
            f"SELECT {columns} FROM memories m CROSS JOIN units u ON u.memory = m.key"
            f" WHERE {where}",
            values,
        ).fetchall()
        matches = ranked(vectors.cosines(query, {name for name, *_ in units}), units)
    nearest: dict[int, float] = {}
    for distance, _, key in matches[:limit] if of == "units" else matches:
        if of == "memories" or distance < 0:
            nearest.setdefault(key, -distance)
    return dict(islice(nearest.items(), limit))


def _depths(sql: sqlite3.Connection, filter: Filter, limit: int) -> Iterator[int]:
    """Yields how many of the nearest vectors of all are fetched, until enough are of memories.

    At first so many that enough pass most filters; the last are twice a fair share.
    """
    yield from (2 * limit, 4 * limit)  # Many units are of one memory, or do not pass.
    admitted, memories = count(sql, filter), count(sql, Filter())
    if admitted * _COMPARED_EACH >= memories:
        yield max(20 * limit, 2 * limit * memories // max(admitted, 1))
