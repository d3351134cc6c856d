"""Values under keys, wherever they are kept: in files those that last, apart those that pass."""

import hashlib
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

from mimo.domain.codec.value import MAX_BYTES, packed
from mimo.domain.names import is_passing
from mimo.errors import QuotaExceeded
from mimo.frozen import frozen
from mimo.store import files
from mimo.store.locking import lock
from mimo.store.passing import PassingValues
from mimo.store.value_files import Kept, ValueFiles
from mimo.store.walk import STORE

MOST_ITEMS = 1_000
MOST_BYTES = 10 * 1024 * 1024
"""How many values a namespace holds, and how many bytes."""


@frozen
class Found:
    """A value and where it is kept."""

    value: Any
    expires: datetime | None = None
    file: str | None = None
    """Its file, where it lasts."""
    digest: str | None = None


class Values:
    """The values of one project; may be used by several threads and processes at once."""

    def __init__(self, root: Path, owner: str) -> None:
        """Take a project's root and the user's secret; nothing is read yet."""
        self._root = root
        self.secret = hashlib.sha256(f"cursors {owner}".encode()).digest()
        self._files = ValueFiles(root)
        self._passing = PassingValues(root, owner)

    def get(self, namespace: str, key: str, now: datetime) -> Found | None:
        """Returns a value, or None. Raises `StorageFailed` where it can't be read."""
        passing = self._passing.read(namespace, key, now)
        if passing is not None:
            return Found(value=passing.value, expires=passing.expires)
        kept = None if is_passing(namespace) else self._files.read(namespace, key)
        return _found(kept) if kept else None

    def put(self, namespace: str, key: str, value: Any, ttl: int | None, now: datetime) -> Found:
        """Writes a value over what the key had; with a `ttl` of 0 it has expired by then.

        Raises `Invalid` for what is no JSON, `QuotaExceeded`, and `StorageFailed`; the key has what
        it had then.
        """
        text = packed(value)
        with self.locked():
            self._passing.sweep(now)
            self._check_room(namespace, key, len(text.encode()), now)
            # A broken file stops us here, before anything is written.
            in_file = not is_passing(namespace) and self._files.read(namespace, key) is not None
            if ttl is None and not is_passing(namespace):
                kept = self._files.write(namespace, key, value)
                self._passing.remove(namespace, key, now)
                return _found(kept)
            until = self._passing.write(namespace, key, text, ttl, now)
            if in_file:
                self._files.remove(namespace, key)
            self._passing.sweep(now)
            return Found(value=value, expires=until)

    def remove(self, namespace: str, key: str, now: datetime) -> bool:
        """Removes a value and returns whether there was one. Raises `StorageFailed`."""
        with self.locked():
            passing = self._passing.remove(namespace, key, now)
            kept = not is_passing(namespace) and self._files.remove(namespace, key)
            return passing or kept

    def keys(self, namespace: str, now: datetime) -> list[str]:
        """Returns the keys of a namespace, sorted."""
        kept = [] if is_passing(namespace) else self._files.keys(namespace)
        return sorted({*self._passing.keys(namespace, now), *kept})

    def expire(self, now: datetime) -> int:
        """Removes what has expired, and returns how many values that were."""
        return self._passing.sweep(now)

    def locked(self) -> AbstractContextManager[None]:
        """Keeps writers out, and waits for one that is at work."""
        return lock(files.safe_path(self._root, f"{STORE}/.local/values.lock"))

    def close(self) -> None:
        """Closes what is open."""
        self._passing.close()

    def _check_room(self, namespace: str, key: str, size: int, now: datetime) -> None:
        """Raises `QuotaExceeded` unless a value of that size fits beside all others."""
        if size > MAX_BYTES:
            raise _full(
                namespace, f"a value has {MAX_BYTES:,} bytes at most, not {size:,}", "value"
            )
        sizes = [self._passing.size(namespace, now, but=key)]
        if not is_passing(namespace):
            sizes.append(self._files.size(namespace, but=key))
        items, held = (sum(part) for part in zip(*sizes, strict=True))
        if items + 1 > MOST_ITEMS:
            raise _full(namespace, f"it holds {MOST_ITEMS:,} values at most", "items")
        if held + size > MOST_BYTES:
            told = f"it holds {MOST_BYTES:,} bytes at most; {held:,} are taken"
            raise _full(namespace, told, "bytes")


def _found(kept: Kept) -> Found:
    return Found(value=kept.value, file=kept.path, digest=kept.digest)


def _full(namespace: str, why: str, quota: str) -> QuotaExceeded:
    remove = "remove what is not needed (`mind value rm`); nothing is evicted by itself"
    return QuotaExceeded(
        f"there is no room in `{namespace}`: {why}",
        hint="split it over several keys" if quota == "value" else remove,
        details={"namespace": namespace, "quota": quota},
    )
