"""Answers that need no search: by id, in lists, counts, problems, what was seen of each file."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from mimo.disk import Stamp
from mimo.index import rows
from mimo.index.rows import Newer
from mimo.index.schema import IN_FORCE, newest_first
from mimo.memory.model import Filter, Problem, Record, Sort, topic_key

# Which decisions of a topic are in force: those that nothing supersedes.


_NEAREST = 200
"""How many topics a misspelt one is compared with."""


def _in_force(memory: str) -> str:
    """Returns the condition that a row of `memories` is a decision that nothing supersedes."""
    decision = f"{memory}.type = 'decision' AND {memory}.shadowed = 0"
    return f"{decision} AND {IN_FORCE.format(memory)}"


def current(sql: sqlite3.Connection, topic: str) -> tuple[Record, ...]:
    """Returns the current decisions on a topic, newest first; two after a merge of branches.

    Those that are not approved are only returned if none is approved.
    """
    of_topic = f"WHERE m.topic_key = ? AND {_in_force('m')}"
    for condition in ("approved(m.digest)", "1"):
        rest = f"{of_topic} AND {condition} ORDER BY {newest_first('m')}"
        if found := tuple(rows.select(sql, rest, (topic_key(topic),))):
            return found
    return ()


def competing(sql: sqlite3.Connection, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Returns, for those decisions that compete with others of their topic, the others' ids.

    Both are in force; the others come newest first. What is approved competes with nothing that is
    not.
    """
    found = sql.execute(
        "SELECT m.id, o.id FROM memories m CROSS JOIN memories o"
        " ON o.topic_key = m.topic_key AND o.key <> m.key"
        f" WHERE m.id IN ({rows.marks(ids)}) AND {_in_force('m')} AND {_in_force('o')}"
        " AND NOT approved(m.digest) = NOT approved(o.digest)"
        f" ORDER BY {newest_first('o')}",
        ids,
    )
    others: dict[str, tuple[str, ...]] = {}
    for id_, other in found:
        others[id_] = (*others.get(id_, ()), other)
    return others


def nearest_topics(sql: sqlite3.Connection, wrong: str, n: int) -> tuple[str, ...]:
    """Returns up to `n` topics that are spelled most like `wrong`, or that share a word with it."""
    from difflib import get_close_matches

    key = topic_key(wrong)
    words = [word for word in key.split("_") if len(word) > 2][:8]
    shared = " + ".join("(instr(topic_key, ?) > 0)" for _ in words) or "0"
    found = sql.execute(
        f"SELECT topic_key, max(topic), {shared} AS shared FROM memories"
        " WHERE topic_key IS NOT NULL AND shadowed = 0 GROUP BY topic_key"
        " ORDER BY shared DESC, max(created) DESC, topic_key LIMIT ?",
        (*words, _NEAREST),
    ).fetchall()
    known = {other: topic for other, topic, _ in found}
    spelled = get_close_matches(key, known, n=n, cutoff=0.6)
    alike = [other for other, _, count in found if count]
    return tuple(known[other] for other in dict.fromkeys([*spelled, *alike]))[:n]


_ORDERS = {
    Sort.RECENT: newest_first("m"),
    Sort.IMPORTANCE: f"m.importance DESC, {newest_first('m')}",
}

_COMPARED_IDS = 2_000
"""How many ids a misspelt one is compared with; difflib takes some 20 µs each."""


def condition(filter_: Filter) -> tuple[str, list[Any]]:
    """Returns a filter as SQL over `memories m`, with the values to bind."""
    parts, values = ["m.shadowed = 0"], list[Any]()
    if filter_.types is not None:
        parts.append(f"m.type IN ({rows.marks(tuple(filter_.types))})")
        values += sorted(kind.value for kind in filter_.types)
    for tag in sorted(filter_.tags):
        parts.append("EXISTS (SELECT 1 FROM tags WHERE memory = m.key AND tag = ?)")
        values.append(tag.casefold())
    if filter_.topic is not None:
        parts.append("m.topic_key = ?")
        values.append(topic_key(filter_.topic))
    if filter_.outcomes:
        parts.append(f"m.outcome IN ({rows.marks(tuple(filter_.outcomes))})")
        values += sorted(outcome.value for outcome in filter_.outcomes)
    if filter_.shared:
        parts.append("m.private = 0")
    if filter_.approved:
        parts.append("approved(m.digest)")
    if filter_.in_force:
        parts.append(IN_FORCE.format("m"))
    if filter_.since is not None:
        parts.append("m.created >= ?")
        values.append(rows.to_number(filter_.since))
    if filter_.until is not None:
        parts.append("m.created < ?")
        values.append(rows.to_number(filter_.until))
    return " AND ".join(parts), values


def stamps(sql: sqlite3.Connection) -> dict[str, tuple[Stamp, int]]:
    """Returns each file's stamp and the time (ns) at which it was looked at."""
    found = sql.execute("SELECT path, size, mtime_ns, ctime_ns, inode, looked_at_ns FROM files")
    return {
        rows.from_sql(path): (Stamp(size, mtime, ctime, int(inode)), looked_at)
        for path, size, mtime, ctime, inode, looked_at in found
    }


def get(sql: sqlite3.Connection, id_: str) -> Record | None:
    """Returns the memory of that id."""
    found = rows.select(sql, "WHERE m.id = ? AND m.shadowed = 0", (id_,))
    return found[0] if found else None


def matching(sql: sqlite3.Connection, abbreviation: str) -> tuple[str, ...]:
    """Returns the ids that begin or end so, sorted; a whole id stands for itself alone."""
    if sql.execute(
        "SELECT 1 FROM memories WHERE id = ? AND shadowed = 0", (abbreviation,)
    ).fetchone():
        return (abbreviation,)
    length = len(abbreviation)
    if not length:
        return ()
    found = sql.execute(
        "SELECT id FROM memories WHERE shadowed = 0 AND (substr(id, 1, ?) = ? OR substr(id, ?) = ?)"
        " ORDER BY id",
        (length, abbreviation, -length, abbreviation),
    )
    return tuple(id_ for (id_,) in found)


def parts(sql: sqlite3.Connection, parent: str) -> tuple[Record, ...]:
    """Returns the parts of a longer text, in their order."""
    rest = "WHERE m.parent = ? AND m.shadowed = 0 ORDER BY m.position"
    return tuple(rows.select(sql, rest, (parent,)))


def parents(sql: sqlite3.Connection, abbreviation: str) -> tuple[str, ...]:
    """Returns the ids of longer texts that begin or end so, sorted; a whole id stands alone."""
    length = len(abbreviation)
    if not length:
        return ()
    found = sql.execute(
        "SELECT DISTINCT parent FROM memories WHERE parent IS NOT NULL AND shadowed = 0"
        " AND (substr(parent, 1, ?) = ? OR substr(parent, ?) = ?) ORDER BY parent",
        (length, abbreviation, -length, abbreviation),
    )
    ids = tuple(id_ for (id_,) in found)
    return (abbreviation,) if abbreviation in ids else ids


def nearest_ids(sql: sqlite3.Connection, wrong: str, n: int) -> tuple[str, ...]:
    """Returns up to `n` ids that look most like `wrong`."""
    from difflib import get_close_matches

    # Ids that share a word with it come first, where there are more than can be compared.
    words = [word for word in wrong.replace("-", "_").split("_") if len(word) > 2][:8]
    shared = " + ".join("(instr(id, ?) > 0)" for _ in words) or "NULL"
    found = sql.execute(
        f"SELECT id FROM memories WHERE shadowed = 0 ORDER BY {shared} DESC, id LIMIT ?",
        (*words, _COMPARED_IDS),
    )
    # A cut id is compared with what is as long: the beginnings and the ends of the ids.
    whole: dict[str, str] = {}
    for (id_,) in found:
        ends = (id_[: len(wrong)], id_[-len(wrong) :]) if len(wrong) > 2 else ()
        for part in (id_, *ends):
            whole.setdefault(part, id_)
    near = get_close_matches(wrong, whole, n=3 * n, cutoff=0.6)
    return tuple(dict.fromkeys(whole[part] for part in near))[:n]


def records(
    sql: sqlite3.Connection, filter_: Filter, sort: Sort, limit: int, offset: int
) -> tuple[Record, ...]:
    """Returns one page of the memories that pass the filter; a negative limit means all."""
    where, values = condition(filter_)
    rest = f"WHERE {where} ORDER BY {_ORDERS[sort]} LIMIT ? OFFSET ?"
    return tuple(rows.select(sql, rest, (*values, limit, offset)))


def count(sql: sqlite3.Connection, filter_: Filter) -> int:
    """Returns how many memories pass the filter."""
    if filter_ == Filter():
        found = sql.execute("SELECT memories - shadowed FROM totals")
    else:
        where, values = condition(filter_)
        found = sql.execute(f"SELECT count(*) FROM memories m WHERE {where}", values)
    return int(found.fetchone()[0])


def problems(sql: sqlite3.Connection) -> tuple[Problem, ...]:
    """Returns what keeps files, or memories in them, from being found; sorted by path."""
    unread = sql.execute("SELECT path, reason_line, reason FROM files WHERE reason IS NOT NULL")
    shadowed = sql.execute(
        "SELECT s.path, s.line, s.id, o.path FROM memories s"
        " JOIN memories o ON o.id = s.id AND o.shadowed = 0 WHERE s.shadowed = 1"
    )
    found = [Problem(path=rows.from_sql(p), line=line, reason=reason) for p, line, reason in unread]
    found += [_taken(*values) for values in shadowed]
    return tuple(sorted(found, key=lambda problem: (problem.path, problem.line or 0)))


def dangling(sql: sqlite3.Connection) -> tuple[tuple[str, str], ...]:
    """Returns (id, target) of each link to what is neither an id nor a title here; sorted."""
    found = sql.execute(
        "SELECT m.id, l.target FROM links l CROSS JOIN memories m ON m.key = l.source"
        " WHERE m.shadowed = 0 AND l.target NOT IN (SELECT id FROM memories)"
        " AND l.target NOT IN (SELECT title FROM memories WHERE title IS NOT NULL)"
    )
    return tuple(sorted(set(found)))


def named(sql: sqlite3.Connection, target: str) -> Record | None:
    """Returns the memory that a link leads to: by its id, or else by its title."""
    rest = (
        "WHERE m.shadowed = 0 AND (m.id = ? OR m.title = ?)"
        " ORDER BY m.id <> ?, NOT approved(m.digest), m.id LIMIT 1"
    )
    return next(iter(rows.select(sql, rest, (target, target, target))), None)


def newer_versions(sql: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Newer]:
    """Returns what claims to supersede each of these ids."""
    found = sql.execute(
        "SELECT l.target, m.id, approved(m.digest) OR NOT approved(o.digest)"
        " FROM links l CROSS JOIN memories m ON m.key = l.source"
        " LEFT JOIN memories o ON o.id = l.target AND o.shadowed = 0"
        f" WHERE l.type = 'supersedes' AND l.target IN ({rows.marks(ids)})"
        f" AND m.shadowed = 0 AND m.id <> l.target ORDER BY {newest_first('m')}",
        ids,
    )
    newer = dict.fromkeys(ids, Newer())
    for old, new, holds in found:
        known = newer[old]
        if holds:
            newer[old] = known._replace(superseded_by=(*known.superseded_by, new))
        else:
            newer[old] = known._replace(claimed_by=(*known.claimed_by, new))
    return newer


def _taken(path: str | bytes, line: int, id_: str, owner: str | bytes) -> Problem:
    by = rows.from_sql(owner)
    where = "another part of it" if owner == path else f"`{by}`"
    return Problem(path=rows.from_sql(path), line=line, reason=f"its id `{id_}` belongs to {where}")
