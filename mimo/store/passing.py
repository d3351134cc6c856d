"""Values that pass: those with a time to live, and all of a session, in a database of this machine.

They are gone on time for every reader, whether or not anything is at work meanwhile: what has
expired is never answered with, and removed by whoever looks next. A clock that goes back gives
none of them more time than it had from the start.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mimo.errors import StorageFailed
from mimo.frozen import frozen
from mimo.store.local import LocalDatabase
from mimo.store.place import own_name

_SCHEMA = (
    "CREATE TABLE entries (namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, "
    "written REAL NOT NULL, ttl REAL, PRIMARY KEY (namespace, key)) WITHOUT ROWID"
)
_ALIVE = "(ttl IS NULL OR (written + ttl > :now))"
_LATEST = datetime.max.replace(tzinfo=UTC).timestamp() - 86_400


@frozen
class Passing:
    """A value that passes."""

    value: Any
    expires: datetime | None
    """None in a session, without a time to live."""


class PassingValues:
    """The database of one project and one user."""

    def __init__(self, root: Path, owner: str) -> None:
        """Take a project's root and the secret of its user; no file is opened yet."""
        self._database = LocalDatabase(root, f"{own_name('values', owner)}.db", _SCHEMA)

    def read(self, namespace: str, key: str, now: datetime) -> Passing | None:
        """Returns a value, or None. Raises `StorageFailed`."""
        self.sweep(now)
        rows = self._rows(
            f"SELECT value, written + ttl FROM entries WHERE namespace = :namespace AND key = :key "
            f"AND {_ALIVE}",
            namespace=namespace,
            key=key,
            now=now.timestamp(),
        )
        for value, expires in rows:
            until = None if expires is None else datetime.fromtimestamp(min(expires, _LATEST), UTC)
            return Passing(value=json.loads(value), expires=until)
        return None

    def keys(self, namespace: str, now: datetime) -> list[str]:
        """Returns the keys of a namespace that have not expired, in no order."""
        self.sweep(now)
        rows = self._rows(
            f"SELECT key FROM entries WHERE namespace = :namespace AND {_ALIVE}",
            namespace=namespace,
            now=now.timestamp(),
        )
        return [key for (key,) in rows]

    def size(self, namespace: str, now: datetime, *, but: str) -> tuple[int, int]:
        """Returns how many values have not expired and their bytes, without that of one key."""
        rows = self._rows(
            "SELECT COUNT(*), COALESCE(SUM(LENGTH(CAST(value AS BLOB))), 0) FROM entries "
            f"WHERE namespace = :namespace AND key <> :but AND {_ALIVE}",
            namespace=namespace,
            but=but,
            now=now.timestamp(),
        )
        for items, size in rows:
            return int(items), int(size)
        return 0, 0

    def write(
        self, namespace: str, key: str, packed: str, ttl: int | None, now: datetime
    ) -> datetime | None:
        """Writes a value over what the key had, and returns when it expires."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)",
                (namespace, key, packed, now.timestamp(), ttl),
            )
        if ttl is None:
            return None
        return datetime.fromtimestamp(min(now.timestamp() + ttl, _LATEST), UTC)

    def remove(self, namespace: str, key: str, now: datetime) -> bool:
        """Removes a value and returns whether it was there still. Raises `StorageFailed`."""
        if self.read(namespace, key, now) is None:
            return False
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM entries WHERE namespace = ? AND key = ?", (namespace, key)
            )
        return True

    def sweep(self, now: datetime) -> int:
        """Removes what has expired and returns how many; where it can't, nothing is lost by it.

        What seems to be written in the future counts from now on.
        """
        seen = {"now": now.timestamp()}
        old = f"NOT {_ALIVE}"
        due = self._rows(f"SELECT 1 FROM entries WHERE {old} OR written > :now LIMIT 1", **seen)
        if not any(due):
            return 0
        with suppress(StorageFailed), self._database.writing() as connection:
            removed = connection.execute(f"DELETE FROM entries WHERE {old}", seen).rowcount
            connection.execute("UPDATE entries SET written = :now WHERE written > :now", seen)
            return removed
        return 0

    def close(self) -> None:
        """Closes the database, if it was opened."""
        self._database.close()

    def _rows(self, question: str, **said: object) -> list[tuple[Any, ...]]:
        return list(self._asked(question, said))

    def _asked(self, question: str, said: dict[str, object]) -> Iterator[tuple[Any, ...]]:
        with self._database.reading() as connection:
            if connection is not None:
                yield from connection.execute(question, said).fetchall()
