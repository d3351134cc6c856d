"""How often tools are called and namespaces named: counted across processes.

Names are kept as hashes: a caller may put a secret into the name of a namespace.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from hashlib import sha256
from math import ceil
from pathlib import Path
from threading import Lock

from mimo.errors import RateLimited, StorageFailed
from mimo.frozen import frozen
from mimo.guard.policy import WINDOW_SECONDS, Limit
from mimo.store.local import LocalDatabase

# How often something was done lately, and whether it may be done once more.


@frozen
class Bucket:
    """What is known of one limit; times are seconds since 1970."""

    tokens: float
    at: float
    """When it was last looked at."""
    counts: Mapping[int, int]
    """By second, how often it was done."""


def full(limit: Limit, now: float) -> Bucket:
    """Returns the bucket of what was not done lately."""
    return Bucket(tokens=limit.burst, at=now, counts={})


def take(bucket: Bucket, limit: Limit, now: float) -> tuple[Bucket, float]:
    """Returns the bucket after one more call, and 0; or as it is now, and the seconds to wait."""
    bucket = _advanced(bucket, limit, now)
    if wait := _wait(bucket, limit, now):
        return bucket, wait
    second = int(now)
    counts = {**bucket.counts, second: bucket.counts.get(second, 0) + 1}
    return Bucket(tokens=bucket.tokens - 1, at=now, counts=counts), 0


def _advanced(bucket: Bucket, limit: Limit, now: float) -> Bucket:
    """Returns a bucket at another time; a clock that went back neither fills nor blocks it."""
    back = max(0, bucket.at - now)
    shift = ceil(back)
    passed = 0 if back else now - bucket.at
    counts = {
        second - shift: count
        for second, count in bucket.counts.items()
        if second - shift > now - WINDOW_SECONDS
    }
    tokens = min(limit.burst, bucket.tokens + passed * limit.sustained)
    return Bucket(tokens=tokens, at=now, counts=counts)


def _wait(bucket: Bucket, limit: Limit, now: float) -> float:
    missing = max(0.0, 1 - bucket.tokens) / limit.sustained
    most = max(1, int(limit.sustained * WINDOW_SECONDS))
    over = sum(bucket.counts.values()) - most + 1
    waits = [missing]
    for second in sorted(bucket.counts):
        if over <= 0:
            break
        over -= bucket.counts[second]
        waits.append(second + WINDOW_SECONDS - now)
    wait = max(waits)
    return ceil(wait * 10) / 10 if wait > 1e-9 else 0


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
