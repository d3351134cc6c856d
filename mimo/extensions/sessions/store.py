"""The kept sessions: one database in $MIND_HOME, private to the user.

Its class is A: clients delete their transcripts after some weeks, and then only mind has the text.
What is in it was masked before. A database that is damaged is refused, and stays as it is.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import NoneType
from typing import Any

from mimo.api import (
    Command,
    Connection,
    Database,
    Hint,
    Invalid,
    NamedTuple,
    NotFound,
    StorageFailed,
    disk,
    frozen,
    locks,
    one_line,
)
from mimo.extensions.sessions.model import Facts, Kind, Progress, Role, Source, Turn
from mimo.extensions.sessions.readers import CLIENTS

FOLDER, FILE = "sessions", "sessions.db"
"""The folder in $MIND_HOME, and the file in it."""

_SCHEMA = """\
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, client TEXT NOT NULL, native_id TEXT NOT NULL,
    project TEXT NOT NULL, cwd TEXT NOT NULL, branch TEXT NOT NULL, title TEXT NOT NULL,
    kind TEXT NOT NULL, parent TEXT NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL,
    prompts INTEGER NOT NULL, answers INTEGER NOT NULL, copies INTEGER NOT NULL,
    bytes INTEGER NOT NULL, revision INTEGER NOT NULL, UNIQUE (client, native_id)
);
CREATE INDEX sessions_project ON sessions (project, ended);
CREATE TABLE turns (
    session INTEGER NOT NULL, n INTEGER NOT NULL, role TEXT NOT NULL, at INTEGER,
    text TEXT NOT NULL, error TEXT NOT NULL, native_id TEXT NOT NULL, digest BLOB NOT NULL,
    is_typed INTEGER NOT NULL, PRIMARY KEY (session, n)
) WITHOUT ROWID;
CREATE INDEX turns_native ON turns (native_id, session) WHERE native_id <> '';
CREATE INDEX turns_digest ON turns (digest, n) WHERE role <> 'tool';
CREATE TABLE edits (
    session INTEGER NOT NULL, n INTEGER NOT NULL, path TEXT NOT NULL,
    PRIMARY KEY (session, n, path)
) WITHOUT ROWID;
CREATE INDEX edits_path ON edits (path, session);
CREATE TABLE sources (
    path TEXT NOT NULL, key TEXT NOT NULL, client TEXT NOT NULL, native_id TEXT NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode TEXT NOT NULL,
    read INTEGER NOT NULL, state TEXT NOT NULL, digests BLOB NOT NULL,
    records INTEGER NOT NULL, unknown INTEGER NOT NULL, problem TEXT NOT NULL,
    omitted TEXT, missing_since INTEGER, PRIMARY KEY (path, key)
) WITHOUT ROWID;
CREATE INDEX sources_session ON sources (client, native_id);
CREATE TABLE forgotten (
    client TEXT NOT NULL, native_id TEXT NOT NULL, PRIMARY KEY (client, native_id)
) WITHOUT ROWID;
CREATE TABLE verdicts (
    digest BLOB PRIMARY KEY, cue TEXT NOT NULL, verdict TEXT NOT NULL, at INTEGER NOT NULL
) WITHOUT ROWID"""
# `copies` counts the turns that a session has from another one, its `parent`: they are kept once.
# `revision` rises with each change of a session, so that the index knows what it lacks. It begins
# with the time, since a removed session may have had the highest one.
# `forgotten` has the clients' ids of sessions, and those of their records, which forks repeat.

_PAUSE_SECONDS = 0.2
"""The time between two looks whether another process still reads."""

ABSENT = timedelta(hours=1)
"""The time after which a source that is still missing is deleted, not on a disk that is away."""

_TITLE = 120
"""The most characters of a title: it may be a prompt."""

_SHORT = 8
"""The number of characters of a client's id in ours, the last ones: UUIDs may begin with a time."""


@frozen
class Session:
    """A kept session."""

    key: int
    id: str
    client: str
    native_id: str
    project: str
    """The root of its project, or of the folder in which it worked; the main one of worktrees."""
    cwd: str
    branch: str
    title: str
    kind: Kind
    parent: str
    started: datetime
    ended: datetime
    prompts: int
    answers: int
    copies: int
    bytes: int
    revision: int


class KeptTurn(NamedTuple):
    """A turn of a kept session, and its number, from 1."""

    n: int
    turn: Turn


class SourceState(NamedTuple):
    """The state of a source that was read."""

    source: Source
    client: str
    native_id: str
    progress: Progress
    digests: bytes
    """Of the file's beginning, and of the bytes before `progress`, see `reading`."""
    records: int = 0
    unknown: int = 0
    problem: str = ""
    omitted: str | None = None
    """The folder whose sessions were not wanted, so that this one is not kept; None if it is."""
    missing_since: datetime | None = None


class _SessionsDatabase(Database):
    consequence = "; it stays as it is, and may be the only copy of these sessions"
    hint = (
        "put a backup of it in its place, or move it away: then mind reads again what clients still"
        " have"
    )


class Store:
    """The kept sessions of one home. Each method is one transaction; may be used by threads."""

    def __init__(self, home: Path) -> None:
        """Takes $MIND_HOME; nothing is opened yet."""
        self.path = home / FOLDER / FILE
        self.lock = home / FOLDER / "reading.lock"
        """Held by the process that reads, at whose start it is written."""
        self._database = _SessionsDatabase(self.path, _SCHEMA, 1)

    @contextmanager
    def exclusive(self, wait: Callable[[], object] | None = None) -> Iterator[None]:
        """Lets one process at a time read transcripts.

        While another one does, `wait` is called again and again. Raises `StorageFailed` without it.
        """
        while (process := locks.holder(self.lock)) is not None:
            if wait is None:
                raise StorageFailed(
                    f"process {process} reads the transcripts already",
                    hint="what it reads can be found as soon as it ends",
                )
            wait()
            time.sleep(_PAUSE_SECONDS)
        with locks.lock(self.lock, wait=1):
            yield

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yields the tables, empty ones if nothing was kept yet. Raises `StorageFailed`."""
        with self._database.reading() as kept:
            if kept is not None:
                yield kept
                return
        with closing(sqlite3.connect(":memory:", factory=Connection)) as empty:
            empty.executescript(_SCHEMA)
            yield empty

    def writing(self) -> AbstractContextManager[Connection]:
        """Yields the tables in a transaction that is committed. Raises `StorageFailed`."""
        return self._database.writing()


# Reading.


def sessions(
    sql: Connection,
    *,
    where: str = "1",
    values: Sequence[Any] = (),
    limit: int = -1,
) -> list[Session]:
    """Returns the sessions that meet a condition of SQL, the latest first."""
    query = f"SELECT * FROM sessions WHERE {where} ORDER BY ended DESC, key DESC LIMIT ?"
    with _possible():
        return [_session(row) for row in _typed(sql.execute(query, (*values, limit)), _SESSION)]


@contextmanager
def _possible() -> Iterator[None]:
    """Raises `sqlite3.DatabaseError` for values that mind never writes: the file is damaged."""
    try:
        yield
    except (ValueError, TypeError, OverflowError) as error:
        damage = sqlite3.DatabaseError(f"{error}")
        damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damage from error


def _typed(rows: Iterable[tuple[Any, ...]], types: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yields rows whose values have the types that mind writes. Raises `TypeError`."""
    for row in rows:
        if not all(map(isinstance, row, types)):
            raise TypeError("a value has another type")
        yield row


_SESSION = (int, *[str] * 9, *[int] * 7)
_NUMBER, _TEXT = (int, NoneType), (str, NoneType)
_TURN = (int, str, _NUMBER, str, str, str, int)
_SOURCE = (str, str, int, int, str, str, str, int, str, bytes, int, int, str, _TEXT, _NUMBER)
_VERDICT = (bytes, str, int)


def _session(row: Sequence[Any]) -> Session:
    fields = dict(zip(Session.__annotations__, row, strict=True))
    title, kind = one_line(fields["title"])[:_TITLE].rstrip(), Kind(fields["kind"])
    times = {name: time_of(fields[name]) for name in ("started", "ended")}
    return Session(**{**fields, **times, "title": title, "kind": kind})


def find(sql: Connection, reference: str) -> Session:
    """Returns the session that an id, its beginning or the client's own id names.

    `session:cc-1ccba294#12` names one, too. Raises `NotFound`, and `Invalid` if several match.
    """
    name = reference.removeprefix("session:").partition("#")[0].strip()
    matches: list[Session] = []
    if name:
        exact = sessions(sql, where="id = ?1 OR native_id = ?1", values=(name,))
        pattern = f"{literal(name)}%"
        like = r"id LIKE ?1 ESCAPE '\' OR native_id LIKE ?1 ESCAPE '\'"
        matches = exact or sessions(sql, where=like, values=(pattern,), limit=3)
    if len(matches) > 1:
        raise Invalid(
            f"several sessions begin with `{name}`",
            hint=f"one of them is `{matches[0].id}`, another `{matches[1].id}`",
        )
    if not matches:
        raise NotFound(
            f"there is no session `{reference}`", hint=Hint(Command("sessions"), " lists them")
        )
    return matches[0]


def turns(sql: Connection, session: int, start: int = 1, end: int = 1 << 40) -> list[KeptTurn]:
    """Returns the turns of a session, in order, with numbers from `start` to `end`."""
    edited: dict[int, list[str]] = {}
    between = (session, start, end)
    edits = sql.execute(
        "SELECT n, path FROM edits WHERE session = ? AND n BETWEEN ? AND ?", between
    )
    rows = sql.execute(
        "SELECT n, role, at, text, error, native_id, is_typed FROM turns"
        " WHERE session = ? AND n BETWEEN ? AND ? ORDER BY n",
        between,
    )
    with _possible():
        for n, path in _typed(edits, (int, str)):
            edited.setdefault(n, []).append(path)
        return [
            KeptTurn(
                n,
                Turn(
                    role=Role(role),
                    text=text,
                    at=None if at is None else time_of(at),
                    native_id=native_id,
                    files=tuple(edited.get(n, ())),
                    error=error,
                    is_typed=bool(is_typed),
                ),
            )
            for n, role, at, text, error, native_id, is_typed in _typed(rows, _TURN)
        ]


def with_subagents(sql: Connection, selected: Iterable[Session]) -> list[Session]:
    """Returns sessions with those of their sub-agents, and of theirs, each once."""
    pending, by_key = [*selected][::-1], dict[int, Session]()
    while pending:
        session = pending.pop()
        if session.key not in by_key:
            by_key[session.key] = session
            where = f"client = ? AND parent = ? AND kind = '{Kind.SUBAGENT}'"
            pending += sessions(sql, where=where, values=(session.client, session.native_id))
    return [*by_key.values()]


def turn_count(sql: Connection, session: int) -> int:
    """Returns the number of turns of a session."""
    (number,) = sql.execute("SELECT count(*) FROM turns WHERE session = ?", (session,)).fetchone()
    return int(number)


def session_count(sql: Connection) -> int:
    """Returns the number of kept sessions."""
    (number,) = sql.execute("SELECT count(*) FROM sessions").fetchone()
    return int(number)


def source_states(
    sql: Connection, client: str, native_id: str | None = None
) -> dict[tuple[str, str], SourceState]:
    """Returns the sources of a client, or of one session, that were read, by path and key."""
    query = (
        "SELECT path, key, size, mtime_ns, inode, client, native_id, read, state, digests,"
        " records, unknown, problem, omitted, missing_since FROM sources WHERE client = ?"
    )
    values = [client]
    if native_id is not None:
        query, values = f"{query} AND native_id = ?", [client, native_id]
    states = {}
    with _possible():
        for row in _typed(sql.execute(query, values), _SOURCE):
            path, key, size, mtime_ns, inode, client, id, offset, state, *counts, missing = row
            source = Source(Path(path), key, size, mtime_ns, int(inode))
            since = None if missing is None else time_of(missing)
            item = SourceState(source, client, id, Progress(offset, state), *counts)
            states[path, key] = item._replace(missing_since=since)
    return states


def verdicts(sql: Connection) -> dict[bytes, tuple[str, int]]:
    """Returns the user's verdicts on sentences, with their times, by the sentences' digests."""
    rows = sql.execute("SELECT digest, verdict, at FROM verdicts")
    with _possible():
        return {digest: (verdict, at) for digest, verdict, at in _typed(rows, _VERDICT)}


def paths_of(sql: Connection, session: Session) -> list[str]:
    """Returns the files that a session was read from."""
    query = "SELECT path FROM sources WHERE client = ? AND native_id = ?"
    return [path for (path,) in sql.execute(query, (session.client, session.native_id))]


def owners(
    sql: Connection, facts: Facts, native_ids: Iterable[str]
) -> dict[tuple[str, bytes], str]:
    """Returns the ids of other sessions of a client by what they have of records: ids, digests."""
    rows = sql.execute(
        "SELECT t.native_id, t.digest, s.native_id FROM json_each(?) j"
        " CROSS JOIN turns t ON t.native_id = j.value AND t.native_id <> ''"
        " JOIN sessions s ON s.key = t.session WHERE s.client = ? AND s.native_id <> ?",
        (json.dumps([*native_ids]), facts.client, facts.native_id),
    )
    return {(id, digest): session for id, digest, session in rows}


def forgotten(sql: Connection, client: str, native_ids: Iterable[str]) -> set[str]:
    """Returns those of the ids of sessions and records that the user forgot."""
    rows = sql.execute(
        "SELECT f.native_id FROM json_each(?) j"
        " CROSS JOIN forgotten f ON f.native_id = j.value AND f.client = ?",
        (json.dumps([*native_ids]), client),
    )
    return {id for (id,) in rows}


def beginnings(
    sql: Connection, facts: Facts, place: int, digest: bytes, limit: int
) -> Iterator[tuple[str, list[tuple[Role, bytes]]]]:
    """Yields other sessions in which a text has a place, with the first turns of each.

    These are their roles and digests. Of many, some are enough.
    """
    query = (
        "SELECT s.key, s.native_id FROM turns t JOIN sessions s ON s.key = t.session"
        " WHERE t.digest = ? AND t.n = ? AND t.role <> 'tool' AND s.client = ?"
        " AND s.native_id <> ? LIMIT 20"
    )
    values = (digest, place, facts.client, facts.native_id)
    for key, native_id in sql.execute(query, values).fetchall():
        turns = "SELECT role, digest FROM turns WHERE session = ? AND n <= ? ORDER BY n"
        yield native_id, [(Role(role), digest) for role, digest in sql.execute(turns, (key, limit))]


class ClientState(NamedTuple):
    """The counts of what was read of a client."""

    sessions: int = 0
    bytes: int = 0
    records: int = 0
    unknown: int = 0
    missing: int = 0
    """The sources that are no longer where they were, so that only mind has their sessions."""
    problems: Mapping[str, tuple[int, str]] = {}
    """The number of sources that can't be read, and the path of one of them, by the reason."""


def summary(sql: Connection, now: datetime) -> dict[str, ClientState]:
    """Returns the counts of each client that has any."""
    of_sources = (
        "SELECT client, sum(records), sum(unknown), sum(missing_since < ?) FROM sources"
        " WHERE omitted IS NULL GROUP BY client"
    )
    clients = {
        client: ClientState(records=records, unknown=unknown, missing=missing or 0)
        for client, records, unknown, missing in sql.execute(of_sources, (number_of(now - ABSENT),))
    }
    of_sessions = "SELECT client, count(*), sum(bytes) FROM sessions GROUP BY client"
    for client, count, bytes in sql.execute(of_sessions):
        state = clients.get(client, ClientState())
        clients[client] = state._replace(sessions=count, bytes=bytes)
    of_problems = (
        "SELECT client, problem, count(*), min(path) FROM sources"
        " WHERE problem <> '' AND omitted IS NULL GROUP BY client, problem"
    )
    for client, problem, count, path in sql.execute(of_problems):
        state = clients[client]
        clients[client] = state._replace(problems={**state.problems, problem: (count, path)})
    return clients


# Writing.


def key_of(sql: Connection, facts: Facts, *, make: bool = False) -> int | None:
    """Returns the key of a session; None if it is not kept, unless it is to be made."""
    row = sql.execute(
        "SELECT key FROM sessions WHERE client = ? AND native_id = ?",
        (facts.client, facts.native_id),
    ).fetchone()
    if row or not make:
        return int(row[0]) if row else None
    cursor = sql.execute(
        "INSERT INTO sessions VALUES (NULL, ?, ?, ?, '', '', '', '', ?, '', 0, 0, 0, 0, 0, 0, 0)",
        (_new_id(sql, facts), facts.client, facts.native_id, facts.kind),
    )
    return int(cursor.lastrowid or 0)


def numbers(sql: Connection, key: int) -> dict[int, tuple[bytes, str]]:
    """Returns the digests and errors of the turns of a session, by number."""
    query = "SELECT n, digest, error FROM turns WHERE session = ?"
    return {n: (digest, error) for n, digest, error in sql.execute(query, (key,))}


def end_of(sql: Connection, key: int) -> tuple[int, int]:
    """Returns the number of a session's last turn, 0 for none, and of those of another one."""
    last = "SELECT coalesce(max(n), 0) FROM turns WHERE session = ?1"
    number, copies = sql.execute(
        f"SELECT ({last}), copies FROM sessions WHERE key = ?1", (key,)
    ).fetchone()
    return int(number), int(copies)


_NEAR = 50
"""The number of turns within which one that moved up is found again."""


def put(
    sql: Connection,
    key: int,
    new: Sequence[Turn],
    number: int,
    previous: Mapping[int, tuple[bytes, str]],
) -> tuple[int, bool]:
    """Writes turns after a number, and returns the number of the last of them.

    They replace `previous` ones, which keep their numbers where the texts are equal; what is
    missing between two of these stays. The second value is True if any differs from what was kept.
    """
    rows, edits, is_changed, replaces = [], [], False, False
    for turn in new:
        digest, start = digest_of(turn.text), number + 1
        near = range(start, start + _NEAR if previous else start)
        n = next((n for n in near if n in previous and previous[n][0] == digest), start)
        if replaces and n > start:
            remove_turns(sql, key, start, n - 1)
        number, replaces = n, n in previous and previous[n][0] != digest
        if previous.get(n) == (digest, turn.error):
            continue
        is_changed = True
        if n in previous:
            remove_turns(sql, key, n, n)
        at = None if turn.at is None else number_of(turn.at)
        of_text = (turn.text, turn.error, turn.native_id, digest, turn.is_typed)
        rows.append((key, n, turn.role, at, *of_text))
        edits += [(key, n, path) for path in turn.files]
    sql.executemany("INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    sql.executemany("INSERT OR IGNORE INTO edits VALUES (?, ?, ?)", edits)
    return number, is_changed


def remove_turns(sql: Connection, key: int, start: int, end: int = 1 << 40) -> None:
    """Removes the turns of a session with numbers from `start` to `end`."""
    for table in ("turns", "edits"):
        sql.execute(
            f"DELETE FROM {table} WHERE session = ? AND n BETWEEN ? AND ?", (key, start, end)
        )


def _new_id(sql: Connection, facts: Facts) -> str:
    """Returns an id that no session has: the client's, and the end of its own id, made longer."""
    client = CLIENTS.get(facts.client)
    prefix = client.prefix if client else facts.client[:2]
    tail = "".join(char for char in facts.native_id if char.isalnum() or char == "_").lower()
    for length in range(_SHORT, len(tail) + 1):
        id = f"{prefix}-{tail[-length:]}"
        if not sql.execute("SELECT 1 FROM sessions WHERE id = ?", (id,)).fetchone():
            return id
    return f"{prefix}-{digest_of(facts.native_id).hex()[:16]}"


_SUMS = """
UPDATE sessions SET
    project = CASE WHEN ?2 = '' OR (project <> '' AND ?10) THEN project ELSE ?2 END,
    cwd = CASE cwd WHEN '' THEN ?3 ELSE cwd END,
    branch = CASE ?4 WHEN '' THEN branch ELSE ?4 END,
    title = CASE WHEN ?5 <> '' THEN ?5 WHEN title <> '' AND NOT EXISTS (
        SELECT 1 FROM turns WHERE session = ?1 AND text = title) THEN title ELSE coalesce((
        SELECT substr(text, 1, 200) FROM turns WHERE session = ?1 AND role = 'user'
        ORDER BY length(CAST(text AS BLOB)) < 9, n LIMIT 1), '') END,
    kind = ?6, parent = CASE ?7 WHEN '' THEN parent ELSE ?7 END,
    started = (SELECT coalesce(min(at), ?8) FROM turns WHERE session = ?1),
    ended = (SELECT coalesce(max(at), ?8) FROM turns WHERE session = ?1),
    prompts = (SELECT count(*) FROM turns WHERE session = ?1 AND role = 'user'),
    answers = (SELECT count(*) FROM turns WHERE session = ?1 AND role = 'agent'),
    bytes = (SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM turns WHERE session = ?1),
    copies = ?9
WHERE key = ?1
"""


def sum_up(sql: Connection, key: int, facts: Facts, project: str, *, at: int, copies: int) -> None:
    """Brings the facts and sums of a session up to its turns.

    `at` is its time if no turn has one. `copies` is the number of turns that were left out as those
    of another session. A missing folder replaces no project, which may be where it was moved to.
    """
    query = "SELECT * FROM sessions WHERE key = ?"
    previous = sql.execute(query, (key,)).fetchone()
    of_facts = (project, facts.cwd, facts.branch, facts.title, facts.kind, facts.parent)
    sql.execute(_SUMS, (key, *of_facts, at, copies, not is_folder(project)))
    if previous != sql.execute(query, (key,)).fetchone():
        note_change(sql, key)


def note_change(sql: Connection, key: int) -> None:
    """Lets the index read a session again."""
    highest = "SELECT max(1 + max(revision), CAST(1e8 * julianday('now') AS INTEGER)) FROM sessions"
    sql.execute(f"UPDATE sessions SET revision = ({highest}) WHERE key = ?", (key,))


def move(sql: Connection, old: str, new: str) -> int:
    """Gives the sessions of a folder, and of those in it, to another one; returns their number.

    That is 0 if no project of them is there: the folder that moved was not that one.
    """
    places = sql.execute("SELECT key, project FROM sessions").fetchall()
    inside = [(key, path) for key, path in places if f"{path}/".startswith(f"{old}/")]
    moved = [(key, f"{new}{path[len(old) :]}") for key, path in inside]
    if not any(is_folder(place) for place in {place for _, place in moved}):
        return 0
    for key, place in moved:
        sql.execute("UPDATE sessions SET project = ? WHERE key = ?", (place, key))
        note_change(sql, key)
    return len(moved)


def namesakes(sql: Connection, project: str) -> list[str]:
    """Returns the missing folders of sessions that have the name of a project's."""
    query = r"SELECT project FROM sessions WHERE project LIKE ? ESCAPE '\' GROUP BY 1 ORDER BY 1"
    pattern = f"%/{literal(Path(project).name)}"
    paths = [path for (path,) in sql.execute(query, (pattern,)) if Path(path).is_absolute()]
    return [path for path in paths if not is_folder(path)]


def note_source(sql: Connection, state: SourceState) -> None:
    """Notes how far a source was read, and what could not be."""
    source, progress = state.source, state.progress
    missing = state.missing_since
    sql.execute(
        f"INSERT OR REPLACE INTO sources VALUES ({', '.join('?' * 15)})",
        (
            *(*place_of(source), state.client, state.native_id),
            *(source.size, source.mtime_ns, str(source.inode)),
            *(progress.offset, progress.state, state.digests),
            *(state.records, state.unknown, state.problem, state.omitted),
            None if missing is None else number_of(missing),
        ),
    )


def place_of(source: Source) -> tuple[str, str]:
    """Returns the path and key of a source as the tables have them, also of a path in bytes."""
    path = str(source.path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return path, source.key


def other_sources(sql: Connection, facts: Facts, source: Source) -> list[SourceState]:
    """Returns the sources that hold a session, too: a copy, or where it was before it moved."""
    states = source_states(sql, facts.client, facts.native_id)
    return [state for place, state in states.items() if place != place_of(source)]


def remove_source(sql: Connection, source: Source) -> None:
    """Removes what is known of a source."""
    sql.execute("DELETE FROM sources WHERE path = ? AND key = ?", place_of(source))


def forget(
    sql: Connection, selected: Iterable[Session], *, marks: bool, rereads: bool = False
) -> int:
    """Removes sessions with their sub-agents, and returns their number.

    With `marks`, they are never read again, nor are their records in the fork of a session.
    Otherwise they are once their transcripts change, or with `rereads` at once.
    """
    removed = with_subagents(sql, selected)
    for session in removed:
        names = (session.client, session.native_id)
        if marks:
            sql.execute("INSERT OR IGNORE INTO forgotten VALUES (?, ?)", names)
            sql.execute(
                "INSERT OR IGNORE INTO forgotten SELECT ?, native_id FROM turns"
                " WHERE session = ? AND native_id <> ''",
                (session.client, session.key),
            )
        remove_turns(sql, session.key, 0)
        sql.execute("DELETE FROM sessions WHERE key = ?", (session.key,))
        reset = "UPDATE sources SET read = 0, state = '', digests = x''"
        change = "DELETE FROM sources" if rereads else reset
        sql.execute(f"{change} WHERE client = ? AND native_id = ?", names)
    return len(removed)


def outdated(sql: Connection, since: datetime, most_bytes: int) -> list[Session]:
    """Returns the sessions to remove: those that ended earlier, and the oldest if all are large."""
    (pages,) = sql.execute("PRAGMA page_count").fetchone()
    (free,) = sql.execute("PRAGMA freelist_count").fetchone()
    (size,) = sql.execute("PRAGMA page_size").fetchone()
    (texts,) = sql.execute("SELECT coalesce(sum(bytes), 0) FROM sessions").fetchone()
    used = (pages - free) * size
    share = used / max(texts, 1)  # What a byte of text takes in the file.
    removed = sessions(sql, where="ended < ?", values=(number_of(since),))
    used -= sum(session.bytes for session in removed) * share
    if used > most_bytes:
        for session in reversed(sessions(sql, where="ended >= ?", values=(number_of(since),))):
            removed.append(session)
            used -= session.bytes * share
            if used <= most_bytes:
                break
    return removed


# Values in the tables.


def is_folder(path: str) -> bool:
    """Returns whether a path is absolute, and of a folder that can be seen."""
    return Path(path).is_absolute() and os.path.isdir(path)  # noqa: PTH112 - raises nothing


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def number_of(time: datetime) -> int:
    """Returns a time as the tables have it: milliseconds since 1970."""
    return (time - _EPOCH) // timedelta(milliseconds=1)


def time_of(number: int) -> datetime:
    """Returns the time that a number in the tables means."""
    return _EPOCH + timedelta(milliseconds=number)


def literal(text: str) -> str:
    """Returns a text as a pattern of LIKE that only matches it."""
    return text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")


def digest_of(text: str) -> bytes:
    """Returns the digest of a text, in which spaces and line breaks do not count."""
    return bytes(disk.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass"))[:16])
