"""Rate limits on tools and namespaces, counted across processes.

Names are stored as hashes, since a caller may put a secret into the name of a namespace.
"""

from __future__ import annotations

import json
from _thread import allocate_lock
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.data import Schema, files
from mimo.data.cache import Cache
from mimo.data.disk import STORE
from mimo.data.loads import loads
from mimo.errors import RateLimited, StorageFailed
from mimo.frozen import frozen
from mimo.guard.policy import WINDOW_SECONDS, Limit

if TYPE_CHECKING:
    import sqlite3

FOLDER = f"{STORE}/.index"
_SCHEMA = Schema(
    "limits",
    1,
    "CREATE TABLE buckets (name TEXT PRIMARY KEY, tokens REAL NOT NULL, at REAL NOT NULL,"
    " counts TEXT NOT NULL) WITHOUT ROWID",
)


@frozen
class Bucket:
    """The state of one limit: a token bucket and the calls of the last minute.

    Times are seconds since 1970.
    """

    tokens: float
    at: float
    """The time of the last update."""
    counts: Mapping[int, int]
    """Calls, by second."""


def full(limit: Limit, now: float) -> Bucket:
    """Returns the bucket of a limit without recent calls."""
    return Bucket(tokens=limit.burst, at=now, counts={})


def take(bucket: Bucket, limit: Limit, now: float) -> tuple[Bucket, float]:
    """Returns the bucket after one more call and 0, or the bucket now and the seconds to wait."""
    bucket = _advanced(bucket, limit, now)
    if wait := _wait(bucket, limit, now):
        return bucket, wait
    second = int(now)
    counts = {**bucket.counts, second: bucket.counts.get(second, 0) + 1}
    return Bucket(tokens=bucket.tokens - 1, at=now, counts=counts), 0


def _advanced(bucket: Bucket, limit: Limit, now: float) -> Bucket:
    """Returns a bucket at another time; setting the clock back neither fills nor blocks it."""
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


def _quota(limit: Limit) -> int:
    """Returns the number of calls that a limit allows in a minute."""
    return max(1, int(limit.sustained * WINDOW_SECONDS))


def _wait(bucket: Bucket, limit: Limit, now: float) -> float:
    missing = max(0.0, 1 - bucket.tokens) / limit.sustained
    over = sum(bucket.counts.values()) - _quota(limit) + 1
    waits = [missing]
    for second in sorted(bucket.counts):
        if over <= 0:
            break
        over -= bucket.counts[second]
        waits.append(second + WINDOW_SECONDS - now)
    wait = max(waits)
    return ceil(wait * 10) / 10 if wait > 1e-9 else 0


class Limits:
    """The buckets of one project, in a cache (class C): after damage, counting starts again."""

    def __init__(self, root: Path | None, owner: Callable[[], str]) -> None:
        """Takes a project's root, and a function that returns the user's secret.

        Without a root, only the calls of this process are counted.
        """
        self._root, self._owner = root, owner
        self._caches: dict[Path | None, Cache] = {}
        self._lock = allocate_lock()

    def take(self, limits: Mapping[str, Iterable[Limit]], now: float, *, lasting: bool) -> None:
        """Counts one call against every limit; against none if one of them is used up.

        Raises `RateLimited`. If the counts can't be written, only calls that are not `lasting` go
        on, and they are counted in this process.
        """
        with self._lock:
            if self._root is not None:
                try:
                    return self._take(files.safe_path(self._root, FOLDER), limits, now)
                except StorageFailed:
                    if lasting:
                        raise
            return self._take(None, limits, now)

    def _take(self, folder: Path | None, limits: Mapping[str, Iterable[Limit]], now: float) -> None:
        """Counts one call in the cache of a folder, None for the one in memory."""
        cache = self._caches.get(folder)
        if cache is None:
            owner = self._owner() if folder else ""
            cache = self._caches[folder] = Cache(folder, _SCHEMA, owner=owner)
        cache.attempt(cache.writing, _take_all, limits, now)

    def close(self) -> None:
        """Closes the caches."""
        for cache in self._caches.values():
            cache.close()


def _take_all(
    connection: sqlite3.Connection, limits: Mapping[str, Iterable[Limit]], now: float
) -> None:
    taken = {}
    for name, several in limits.items():
        for number, limit in enumerate(several):
            # A column for the seconds until the bucket is full would be a new format.
            seconds = max(2 * WINDOW_SECONDS, ceil(limit.burst / limit.sustained))
            key = f"{sha256(f'{name} {number}'.encode()).hexdigest()} {seconds}"
            row = connection.execute(
                "SELECT tokens, at, counts FROM buckets WHERE name = ?", (key,)
            ).fetchone()
            previous = full(limit, now)
            if row is not None:
                previous = Bucket(tokens=row[0], at=row[1], counts=dict(loads(row[2])))
            bucket, wait = take(previous, limit, now)
            if wait:
                raise _too_often(name, limit, wait)
            taken[key] = bucket
    connection.execute("DELETE FROM buckets WHERE at + substr(name, 65) < ?", (now,))
    connection.executemany(
        "INSERT OR REPLACE INTO buckets VALUES (?, ?, ?, ?)",
        [
            (key, bucket.tokens, bucket.at, json.dumps(list(bucket.counts.items())))
            for key, bucket in taken.items()
        ],
    )


def _too_often(name: str, limit: Limit, wait: float) -> RateLimited:
    from mimo.text.tool_names import underscored

    kind, _, value = name.partition(" ")
    # The number in a minute is lower than the burst if `sustained` is small.
    rates = f"{limit.burst:,} at once, {limit.sustained:g} a second and {_quota(limit):,} a minute"
    return RateLimited(
        f"too many calls for {kind} `{underscored(value)}`",
        hint=f"wait {wait:g} seconds; {rates} are allowed",
        details={kind: value, "retry_after": wait},
    )
