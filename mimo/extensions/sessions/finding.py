"""Finding sessions: by a query, a project, a client, a time, or a file that they edited."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mimo.api import Filter, Hit, NamedTuple, disk, frozen, least
from mimo.extensions.sessions import store
from mimo.extensions.sessions.indexing import VISIBLE, Sessions, tag_of
from mimo.extensions.sessions.model import Kind
from mimo.extensions.sessions.store import KeptTurn, Session

if TYPE_CHECKING:
    from datetime import datetime

    from mimo.api import Connection

PLACES = 2
"""The number of places of a session that an answer shows, at most."""

_FILTERED = 200
"""The number of sessions that are ranked before those that edited a file are chosen."""

_RUNNING = timedelta(minutes=1)
"""The time since its last record for which a session may be the one that asks."""


@frozen
class Conditions:
    """The conditions that a session meets, all of them."""

    project: str = ""
    client: str = ""
    file: str = ""
    """The end of the path of a file that it edited, all of it, or a folder that holds it."""
    since: datetime | None = None
    until: datetime | None = None
    hidden: bool = False
    """True if sub-agents and runs of scripts count, too."""
    excluded: frozenset[str] = frozenset()
    """The ids of sessions that do not count."""


class Match(NamedTuple):
    """A session that answers a query, with its best exchange."""

    session: Session
    hit: Hit

    @property
    def score(self) -> float:
        """Returns the score of its best exchange."""
        return self.hit.score

    @property
    def turn(self) -> int:
        """Returns the number of the first turn of its best exchange."""
        return int(self.hit.record.memory.id.rpartition("#")[2])


def listed(sql: Connection, conditions: Conditions, limit: int) -> list[Session]:
    """Returns the sessions that meet conditions, the latest first."""
    where, values = _where(conditions)
    return store.sessions(sql, where=where, values=values, limit=limit)


def number(sql: Connection, conditions: Conditions) -> int:
    """Returns the number of the sessions that meet conditions."""
    where, values = _where(conditions)
    (number,) = sql.execute(f"SELECT count(*) FROM sessions WHERE {where}", values).fetchone()
    return int(number)


SHOWN = f"prompts > 0 AND kind = '{Kind.MAIN}'"
"""The condition of sessions with the user, as against sub-agents and runs of scripts."""


def with_prefix(sql: Connection, start: str, project: str, limit: int) -> list[Session]:
    """Returns the sessions whose id begins with a text, those of a project first."""
    values = (f"{store.literal(start)}%", project)
    where = rf"{SHOWN} AND id LIKE ? ESCAPE '\' AND project"
    first = store.sessions(sql, where=f"{where} = ?", values=values, limit=limit)
    others = limit - len(first)
    return first + store.sessions(sql, where=f"{where} <> ?", values=values, limit=others)


def _where(conditions: Conditions) -> tuple[str, list[Any]]:
    where, values = ["1"], list[Any]()
    if not conditions.hidden:
        where.append(SHOWN)
    for name in ("project", "client"):
        if value := getattr(conditions, name):
            where.append(f"{name} = ?")
            values.append(value)
    if conditions.since:
        where.append("ended >= ?")
        values.append(store.number_of(conditions.since))
    if conditions.until:
        where.append("started < ?")
        values.append(store.number_of(conditions.until))
    if conditions.file:
        where.append(f"key IN (SELECT session FROM edits WHERE {_EDITS})")
        values += _patterns(conditions.file)
    if conditions.excluded:
        where.append(f"id NOT IN ({', '.join('?' * len(conditions.excluded))})")
        values += conditions.excluded
    return " AND ".join(where), values


_EDITS = r"(path = ? OR path LIKE ? ESCAPE '\' OR path LIKE ? ESCAPE '\')"


def _patterns(file: str) -> tuple[str, str, str]:
    name = store.literal(file)
    return file, f"%/{name}", f"{name.rstrip('/')}/%"


def search(
    sessions: Sessions, text: str, conditions: Conditions, limit: int
) -> tuple[list[Match], float]:
    """Returns the sessions that best answer a query, best first: each by its best exchange.

    The second value is the score that even the nearest one must reach. Raises `StorageFailed`.
    """
    request = Filter(
        types=None if conditions.hidden else frozenset({VISIBLE}),
        tags=frozenset(map(tag_of, filter(None, (conditions.project, conditions.client)))),
        since=conditions.since,
        until=conditions.until,
    )
    ranked = _FILTERED if conditions.file else limit + len(conditions.excluded)
    answer = sessions.search(text, request, ranked)
    hits = {hit.record.place.path: hit for hit in answer.hits}
    with sessions.store.reading() as sql:
        marks = ", ".join("?" * len(hits))
        listing = store.sessions(sql, where=f"id IN ({marks})", values=list(hits))
        if conditions.file:
            editors = {session.id for session in listed(sql, conditions, -1)}
            listing = [session for session in listing if session.id in editors]
    matches = [Match(each, hits[each.id]) for each in listing if each.id not in conditions.excluded]
    best = sorted(matches, key=lambda match: -match.score)[:limit]
    return best, least(answer.considered)


def exchange(sql: Connection, session: Session, start: int) -> Sequence[KeptTurn]:
    """Returns a turn with those after it, up to the user's next one."""
    (following,) = sql.execute(
        "SELECT min(n) FROM turns WHERE session = ? AND n > ? AND role = 'user'",
        (session.key, start),
    ).fetchone()
    return store.turns(sql, session.key, start, (following or 1 << 40) - 1)


def edited_in(sql: Connection, session: Session, file: str) -> list[int]:
    """Returns the first turns of the exchanges of a session that edited a file, latest first."""
    prompt = (
        "SELECT coalesce(max(t.n), 1) FROM turns t"
        " WHERE t.session = e.session AND t.n <= e.n AND t.role = 'user'"
    )
    query = f"SELECT DISTINCT ({prompt}) AS n FROM edits e WHERE session = ? AND {_EDITS}"
    turns = sql.execute(
        f"{query} ORDER BY n DESC LIMIT {PLACES}", (session.key, *_patterns(file))
    ).fetchall()
    return [n for (n,) in turns]


def running(
    sql: Connection, client: str, project: str, now: datetime, named: frozenset[str]
) -> frozenset[str]:
    """Returns the ids of the sessions of an agent that may be the one that asks.

    They are those with a client's id in `named`; if there are none, those of its client in the
    project whose transcript changed a moment ago.
    """
    marks = ", ".join("?" * len(named))
    if sessions := store.sessions(sql, where=f"native_id IN ({marks})", values=list(named)):
        return frozenset(session.id for session in sessions)
    since = now - _RUNNING
    latest = store.sessions(
        sql, where="project = ? AND instr(?, client)", values=(project, client), limit=PLACES
    )
    return frozenset(
        session.id
        for session in latest
        if session.ended >= since
        or any(
            stamp is not None and stamp.mtime_ns >= since.timestamp() * 1e9
            for stamp in map(disk.stamp, store.paths_of(sql, session))
        )
    )
