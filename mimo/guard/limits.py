"""How often tools are called and namespaces named: counted across processes.

Names are kept as hashes: a caller may put a secret into the name of a namespace.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from threading import Lock

from mimo.domain.bucket import Bucket, full, take
from mimo.domain.policy import WINDOW_SECONDS, Limit
from mimo.errors import RateLimited, StorageFailed
from mimo.store.local import LocalDatabase

_SCHEMA = (
    "CREATE TABLE buckets (name TEXT PRIMARY KEY, tokens REAL NOT NULL, at REAL NOT NULL, "
    "counts TEXT NOT NULL) WITHOUT ROWID"
)


class Limits:
    """The buckets of one project."""

    def __init__(self, root: Path | None) -> None:
        """Take a project's root; without one, the calls of this process alone are counted."""
        self._database = (
            LocalDatabase(root, "limits.db", _SCHEMA, durable=False) if root is not None else None
        )
        self._own: sqlite3.Connection | None = None
        self._lock = Lock()

    def take(self, limits: Mapping[str, Iterable[Limit]], now: float, *, lasting: bool) -> None:
        """Counts one call against every limit, or against none where one is used up.

        Raises `RateLimited`. Where the counts can't be written only calls that are not `lasting`
        may go on, and are counted in this process.
        """
        with self._lock:
            if self._database is not None:
                try:
                    with self._database.writing() as connection:
                        return _take_all(connection, limits, now)
                except StorageFailed:
                    if lasting:
                        raise
            self._own = self._own or _in_memory()
            return _take_all(self._own, limits, now)

    def close(self) -> None:
        """Closes what is open."""
        if self._database is not None:
            self._database.close()


def _in_memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute(_SCHEMA)
    return connection


def _take_all(
    connection: sqlite3.Connection, limits: Mapping[str, Iterable[Limit]], now: float
) -> None:
    taken = {}
    for name, several in limits.items():
        for number, limit in enumerate(several):
            key = sha256(f"{name} {number}".encode()).hexdigest()
            bucket, wait = take(_bucket(connection, key, limit, now), limit, now)
            if wait:
                raise _too_often(name, limit, wait)
            taken[key] = bucket
    connection.execute("DELETE FROM buckets WHERE at < ?", (now - 2 * WINDOW_SECONDS,))
    connection.executemany(
        "INSERT OR REPLACE INTO buckets VALUES (?, ?, ?, ?)",
        [
            (key, one.tokens, one.at, json.dumps(list(one.counts.items())))
            for key, one in taken.items()
        ],
    )


def _bucket(connection: sqlite3.Connection, key: str, limit: Limit, now: float) -> Bucket:
    row = connection.execute(
        "SELECT tokens, at, counts FROM buckets WHERE name = ?", (key,)
    ).fetchone()
    if row is None:
        return full(limit, now)
    return Bucket(tokens=row[0], at=row[1], counts=dict(json.loads(row[2])))


def _too_often(name: str, limit: Limit, wait: float) -> RateLimited:
    kind, _, word = name.partition(" ")
    return RateLimited(
        f"too many calls for {kind} `{word}`",
        hint=f"wait {wait:g} seconds; {limit.burst:,} at once and {limit.sustained:g} a second "
        "are allowed",
        details={kind: word, "retry_after": wait},
    )
