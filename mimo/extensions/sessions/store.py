"""The kept sessions: one database in $MIND_HOME, private to the user.

Its class is A: clients delete their transcripts after some weeks, and then only mind has the text.
What is in it was masked before. A database that is damaged is refused, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mimo.api import Command, Database, Hint, Invalid, NamedTuple, NotFound, disk, frozen, one_line
from mimo.extensions.sessions.model import Facts, Kind, Progress, Role, Source, Turn

if TYPE_CHECKING:
    from mimo.api import Connection

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
CREATE INDEX turns_digest ON turns (digest, session) WHERE role = 'user';
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
    missing_since INTEGER, PRIMARY KEY (path, key)
) WITHOUT ROWID;
CREATE TABLE forgotten (
    client TEXT NOT NULL, native_id TEXT NOT NULL, PRIMARY KEY (client, native_id)
) WITHOUT ROWID;
CREATE TABLE verdicts (
    digest BLOB PRIMARY KEY, cue TEXT NOT NULL, verdict TEXT NOT NULL, at INTEGER NOT NULL
) WITHOUT ROWID"""
# `copies` counts the turns that a session has from another one: by a fork, they are kept once.
# `revision` rises with each change of a session, so that the index knows what it lacks.

PREFIXES = {
    "claude-code": "cc",
    "codex": "cx",
    "gemini": "gm",
    "opencode": "oc",
    "copilot": "cp",
    "cline": "cl",
    "cursor": "cu",
}
"""The beginnings of the ids of the clients' sessions."""

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


class Known(NamedTuple):
    """What is known of a source that was read."""

    source: Source
    client: str
    native_id: str
    progress: Progress
    digests: bytes
    """Of the file's beginning, and of the bytes before `progress`, see `reading`."""
    records: int
    unknown: int
    problem: str
    missing_since: datetime | None


class Store:
    """The kept sessions of one home. Each method is one transaction; may be used by threads."""

    def __init__(self, home: Path) -> None:
        """Takes $MIND_HOME; nothing is opened yet."""
        self.path = home / FOLDER / FILE
        self._database = Database(self.path, _SCHEMA, 1)

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def reading(self) -> AbstractContextManager[Connection | None]:
        """Yields the tables, or None if nothing was kept yet. Raises `StorageFailed`."""
        return self._database.reading()

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
    return [_session(row) for row in sql.execute(query, (*values, limit))]


def _session(row: Sequence[Any]) -> Session:
    names = (
        "key id client native_id project cwd branch title kind parent started ended prompts"
        " answers copies bytes revision"
    ).split()
    fields = dict(zip(names, row, strict=True))
    fields |= {
        "title": one_line(fields["title"])[:_TITLE].rstrip(),
        "kind": Kind(fields["kind"]),
        "started": time_of(fields["started"]),
        "ended": time_of(fields["ended"]),
    }
    return Session(**fields)


def find(sql: Connection | None, reference: str) -> Session:
    """Returns the session that an id, its beginning or the client's own id names.

    `session:cc-1ccba294#12` names one, too. Raises `NotFound`, and `Invalid` if several match.
    """
    name = reference.removeprefix("session:").partition("#")[0].strip()
    found: list[Session] = []
    if sql is not None and name:
        exact = sessions(sql, where="id = ?1 OR native_id = ?1", values=(name,))
        pattern = f"{literal(name)}%"
        like = r"id LIKE ?1 ESCAPE '\' OR native_id LIKE ?1 ESCAPE '\'"
        found = exact or sessions(sql, where=like, values=(pattern,), limit=3)
    if len(found) > 1:
        raise Invalid(
            f"several sessions begin with `{name}`",
            hint=f"one of them is `{found[0].id}`, another `{found[1].id}`",
        )
    if not found:
        raise NotFound(
            f"there is no session `{reference}`", hint=Hint(Command("sessions"), " lists them")
        )
    return found[0]


def turns(sql: Connection, session: int, first: int = 1, last: int = 1 << 40) -> list[KeptTurn]:
    """Returns the turns of a session, in order, with numbers from `first` to `last`."""
    edited: dict[int, list[str]] = {}
    between = (session, first, last)
    for n, path in sql.execute(
        "SELECT n, path FROM edits WHERE session = ? AND n BETWEEN ? AND ?", between
    ):
        edited.setdefault(n, []).append(path)
    rows = sql.execute(
        "SELECT n, role, at, text, error, native_id, is_typed FROM turns"
        " WHERE session = ? AND n BETWEEN ? AND ? ORDER BY n",
        between,
    )
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
        for n, role, at, text, error, native_id, is_typed in rows
    ]


def turn_count(sql: Connection, session: int) -> int:
    """Returns the number of turns of a session."""
    (number,) = sql.execute("SELECT count(*) FROM turns WHERE session = ?", (session,)).fetchone()
    return int(number)


def session_count(sql: Connection) -> int:
    """Returns the number of kept sessions."""
    (number,) = sql.execute("SELECT count(*) FROM sessions").fetchone()
    return int(number)


def known_sources(sql: Connection, client: str) -> dict[tuple[str, str], Known]:
    """Returns the sources of a client that were read, by path and key."""
    query = (
        "SELECT path, key, size, mtime_ns, inode, client, native_id, read, state, digests,"
        " records, unknown, problem, missing_since FROM sources WHERE client = ?"
    )
    return {
        (row[0], row[1]): Known(
            Source(Path(row[0]), row[1], row[2], row[3], int(row[4])),
            row[5],
            row[6],
            Progress(row[7], row[8]),
            row[9],
            row[10],
            row[11],
            row[12],
            None if row[13] is None else time_of(row[13]),
        )
        for row in sql.execute(query, (client,))
    }


def paths_of(sql: Connection, session: Session) -> list[str]:
    """Returns the files that a session was read from."""
    query = "SELECT path FROM sources WHERE client = ? AND native_id = ?"
    return [path for (path,) in sql.execute(query, (session.client, session.native_id))]


def is_forgotten(sql: Connection, client: str, native_id: str) -> bool:
    """Returns whether the user forgot a session, which is then never read again."""
    query = "SELECT 1 FROM forgotten WHERE client = ? AND native_id = ?"
    return sql.execute(query, (client, native_id)).fetchone() is not None


def has(sql: Connection, facts: Facts) -> bool:
    """Returns whether a session is kept."""
    query = "SELECT 1 FROM sessions WHERE client = ? AND native_id = ?"
    return sql.execute(query, (facts.client, facts.native_id)).fetchone() is not None


def is_elsewhere(sql: Connection, facts: Facts, native_id: str) -> bool:
    """Returns whether another session of the client has the record with an id."""
    query = (
        "SELECT 1 FROM turns t JOIN sessions s ON s.key = t.session"
        " WHERE t.native_id = ?1 AND ?1 <> '' AND s.client = ?2 AND s.native_id <> ?3"
    )
    return sql.execute(query, (native_id, facts.client, facts.native_id)).fetchone() is not None


def beginnings(
    sql: Connection, facts: Facts, first: bytes, most: int
) -> Iterator[list[tuple[Role, bytes]]]:
    """Yields the roles and digests of the first turns of other sessions that begin with a text."""
    query = (
        "SELECT s.key FROM turns t JOIN sessions s ON s.key = t.session WHERE t.digest = ?"
        " AND t.role = 'user' AND t.n = 1 AND s.client = ? AND s.native_id <> ?"
    )
    for (key,) in sql.execute(query, (first, facts.client, facts.native_id)).fetchall():
        turns = "SELECT role, digest FROM turns WHERE session = ? AND n <= ? ORDER BY n"
        yield [(Role(role), digest) for role, digest in sql.execute(turns, (key, most))]


# Writing.


def put(
    sql: Connection, facts: Facts, project: str, new: Sequence[Turn], *, replaces: bool, copies: int
) -> int:
    """Adds turns to a session, which is made if it is new, and returns its key.

    With `replaces`, they take the place of all its turns; a turn keeps its number where its text is
    at the same place. `copies` is the number of turns that were left out as those of another one.
    """
    row = sql.execute(
        "SELECT key FROM sessions WHERE client = ? AND native_id = ?",
        (facts.client, facts.native_id),
    ).fetchone()
    if row is None:
        id = _new_id(sql, facts)
        cursor = sql.execute(
            "INSERT INTO sessions VALUES (NULL, ?, ?, ?, ?, ?, ?, '', ?, ?, 0, 0, 0, 0, 0, 0, 0)",
            (id, facts.client, facts.native_id, project, facts.cwd, "", facts.kind, facts.parent),
        )
        key = int(cursor.lastrowid or 0)
    else:
        (key,) = row
    if replaces:
        sql.execute("DELETE FROM turns WHERE session = ?", (key,))
        sql.execute("DELETE FROM edits WHERE session = ?", (key,))
        sql.execute("UPDATE sessions SET copies = 0 WHERE key = ?", (key,))
    (last,) = sql.execute(
        "SELECT coalesce(max(n), 0) FROM turns WHERE session = ?", (key,)
    ).fetchone()
    for n, turn in enumerate(new, last + 1):
        sql.execute(
            "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(key, n, turn.role, None if turn.at is None else number_of(turn.at)),
                *(turn.text, turn.error, turn.native_id, digest_of(turn.text), turn.is_typed),
            ),
        )
        sql.executemany(
            "INSERT OR IGNORE INTO edits VALUES (?, ?, ?)", [(key, n, path) for path in turn.files]
        )
    _sum_up(sql, key, facts, project, copies)
    return key


def _new_id(sql: Connection, facts: Facts) -> str:
    """Returns an id that no session has: the client's, and the end of its own id, made longer."""
    tail = "".join(char for char in facts.native_id if char.isalnum() or char == "_").lower()
    for length in range(_SHORT, len(tail) + 1):
        id = f"{PREFIXES.get(facts.client, facts.client[:2])}-{tail[-length:]}"
        if not sql.execute("SELECT 1 FROM sessions WHERE id = ?", (id,)).fetchone():
            return id
    return f"{PREFIXES.get(facts.client, facts.client[:2])}-{digest_of(facts.native_id).hex()[:16]}"


_SUMS = """
UPDATE sessions SET
    project = CASE ?2 WHEN '' THEN project ELSE ?2 END,
    cwd = CASE cwd WHEN '' THEN ?3 ELSE cwd END,
    branch = CASE ?4 WHEN '' THEN branch ELSE ?4 END,
    title = CASE WHEN ?5 <> '' THEN ?5 WHEN title <> '' THEN title ELSE coalesce((
        SELECT substr(text, 1, 200) FROM turns
        WHERE session = ?1 AND role = 'user' ORDER BY n LIMIT 1), '') END,
    kind = ?6, parent = CASE ?7 WHEN '' THEN parent ELSE ?7 END,
    started = (SELECT coalesce(min(at), 0) FROM turns WHERE session = ?1),
    ended = (SELECT coalesce(max(at), 0) FROM turns WHERE session = ?1),
    prompts = (SELECT count(*) FROM turns WHERE session = ?1 AND role = 'user'),
    answers = (SELECT count(*) FROM turns WHERE session = ?1 AND role = 'agent'),
    bytes = (SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM turns WHERE session = ?1),
    copies = copies + ?8,
    revision = (SELECT 1 + max(revision) FROM sessions)
WHERE key = ?1
"""


def _sum_up(sql: Connection, key: int, facts: Facts, project: str, copies: int) -> None:
    of_facts = (project, facts.cwd, facts.branch, facts.title, facts.kind, facts.parent)
    sql.execute(_SUMS, (key, *of_facts, copies))


def note_source(sql: Connection, known: Known) -> None:
    """Notes how far a source was read, and what could not be."""
    source, progress = known.source, known.progress
    missing = known.missing_since
    sql.execute(
        "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(str(source.path), source.key, known.client, known.native_id),
            *(source.size, source.mtime_ns, str(source.inode)),
            *(progress.offset, progress.state, known.digests),
            *(known.records, known.unknown, known.problem),
            None if missing is None else number_of(missing),
        ),
    )


def forget(sql: Connection, sessions: Iterable[Session], *, marks: bool) -> int:
    """Removes sessions with all that is known of them, and returns their number.

    With `marks`, they are never read again.
    """
    count = 0
    for session in sessions:
        for table in ("turns", "edits"):
            sql.execute(f"DELETE FROM {table} WHERE session = ?", (session.key,))
        sql.execute("DELETE FROM sessions WHERE key = ?", (session.key,))
        own = (session.client, session.native_id)
        if marks:
            sql.execute("INSERT OR IGNORE INTO forgotten VALUES (?, ?)", own)
        else:
            sql.execute("DELETE FROM sources WHERE client = ? AND native_id = ?", own)
        count += 1
    return count


# Values in the tables.

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
