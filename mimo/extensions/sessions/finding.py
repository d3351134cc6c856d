"""Finding sessions: by a query, a project, a client, a time, or a file that they edited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mimo.api import Filter, Hit, NamedTuple, frozen, least
from mimo.extensions.sessions import store
from mimo.extensions.sessions.indexing import VISIBLE, Sessions, tag_of
from mimo.extensions.sessions.model import Kind
from mimo.extensions.sessions.store import Session

if TYPE_CHECKING:
    from datetime import datetime

    from mimo.api import Connection

_BEST = 2
"""The number of exchanges of a session that an answer shows."""

_OVER = 8
"""The number of exchanges that are ranked for each session of an answer."""


@frozen
class Conditions:
    """The conditions that a session meets, all of them."""

    project: str = ""
    client: str = ""
    file: str = ""
    """The end of the path of a file that it edited, or all of it."""
    since: datetime | None = None
    until: datetime | None = None
    hidden: bool = False
    """Whether sub-agents and runs of scripts count, too."""


class Match(NamedTuple):
    """A session that answers a query, with its best exchanges, best first."""

    session: Session
    hits: tuple[Hit, ...]

    @property
    def score(self) -> float:
        """Returns the score of its best exchange."""
        return self.hits[0].score


def listed(sql: Connection, conditions: Conditions, limit: int) -> list[Session]:
    """Returns the sessions that meet conditions, the latest first."""
    where, values = ["prompts > 0"], list[Any]()
    if not conditions.hidden:
        where.append(f"kind = '{Kind.MAIN}'")
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
        where.append("key IN (SELECT session FROM edits WHERE path = ? OR path LIKE ? ESCAPE '\\')")
        values += [conditions.file, f"%/{store.literal(conditions.file)}"]
    return store.sessions(sql, where=" AND ".join(where), values=values, limit=limit)


def search(
    sessions: Sessions, text: str, conditions: Conditions, limit: int
) -> tuple[list[Match], float]:
    """Returns the sessions that best answer a query, best first: each by its best exchange.

    The second value is the score that even the nearest one must reach. Raises `StorageFailed`.
    """
    tags = {VISIBLE} if not conditions.hidden else set()
    for name in ("project", "client"):
        if value := getattr(conditions, name):
            tags.add(tag_of(name, value))
    filter = Filter(tags=frozenset(tags), since=conditions.since, until=conditions.until)
    found = sessions.search(text, filter, max(limit, 1) * _OVER)
    hits: dict[str, list[Hit]] = {}
    for hit in found.hits:
        hits.setdefault(hit.record.place.path, []).append(hit)
    with sessions.store.reading() as sql:
        if sql is None:
            return [], 0.0
        kept = {session.id: session for session in _named(sql, hits)}
        if conditions.file:
            admitted = {session.id for session in listed(sql, conditions, -1)}
            kept = {id: session for id, session in kept.items() if id in admitted}
    matches = [
        Match(kept[id], tuple(of_session[:_BEST])) for id, of_session in hits.items() if id in kept
    ]
    best = sorted(matches, key=lambda match: -match.score)[:limit]
    return best, least(found.considered)


def _named(sql: Connection, ids: Iterable[str]) -> list[Session]:
    names = list(ids)
    marks = ", ".join("?" * len(names))
    return store.sessions(sql, where=f"id IN ({marks})", values=names)
