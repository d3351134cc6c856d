"""Putting values under keys, getting and listing them."""

import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from mimo.errors import Invalid, NotFound, StorageFailed
from mimo.frozen import frozen
from mimo.guard.privacy import masked
from mimo.memory.ids import SUFFIX, check_key, check_prefix
from mimo.memory.model import Problem
from mimo.mind import Mind
from mimo.operations import saving
from mimo.operations.saving import approving
from mimo.store.values import Found, Kept, ValueFiles

# Where a listing goes on: the last key, sealed.


_MOST = 400
_SEAL = 16
_FORM = re.compile(r"[A-Za-z0-9_-]+")


def seal(secret: bytes, namespace: str, prefix: str, key: str) -> str:
    """Returns the cursor behind a key."""
    plain = key.encode()
    mark = _mark(secret, namespace, prefix, plain)
    return urlsafe_b64encode(mark + _mixed(secret, mark, plain)).decode().rstrip("=")


def unseal(secret: bytes, namespace: str, prefix: str, cursor: str) -> str:
    """Returns the key that a cursor stands behind; raises `Invalid` for one of another listing."""
    if len(cursor) <= _MOST and _FORM.fullmatch(cursor) and len(cursor) % 4 != 1:
        data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        mark, mixed = data[:_SEAL], data[_SEAL:]
        plain = _mixed(secret, mark, mixed)
        if hmac.compare_digest(mark, _mark(secret, namespace, prefix, plain)):
            return plain.decode()
    raise Invalid(
        "`cursor` is not one of this namespace and prefix",
        hint="begin again without it, or give the `cursor` of the page before as it was",
        details={"field": "cursor"},
    )


def _mark(secret: bytes, *parts: str | bytes) -> bytes:
    texts = [part.encode() if isinstance(part, str) else part for part in parts]
    joined = b"\0".join([b"mark", *texts])
    return hmac.digest(secret, joined, "sha256")[:_SEAL]


def _mixed(secret: bytes, mark: bytes, text: bytes) -> bytes:
    """Returns the text under a stream that only who has the secret can make; twice undoes it."""
    stream = hashlib.shake_256(secret + b"\0stream" + mark).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, stream, strict=True))


_REDACTED = re.compile(r"(?i:redacted)[A-Za-z0-9_.-]*[_-]([0-9a-f]{8})")


class Consistency(StrEnum):
    """What an answer is sure to hold.

    Values are read from where they are kept, so that each answer holds all that was written before
    it; a strong one waits, too, for what another process is writing at the time.
    """

    EVENTUAL = "EVENTUAL"
    READ_YOUR_WRITES = "READ_YOUR_WRITES"
    STRONG = "STRONG"


@frozen
class Page:
    """Some keys of a namespace."""

    keys: tuple[str, ...]
    cursor: str | None
    """Where the next page begins; None after the last key."""
    total: int
    """How many keys the namespace has."""
    problems: tuple[str, ...]
    """The files in the place of keys of this page that can't be read, with the reason."""


def put(mind: Mind, namespace: str, key: str, value: Any, ttl_seconds: int | None) -> Found:
    """Stores a value over what the key had, and returns how it is kept.

    Raises `Invalid`, `QuotaExceeded` and `StorageFailed`; the key has what it had then.
    """
    check_key(key)
    saving.check_format(mind)
    with approving(mind):
        done = mind.values.put(namespace, key, value, ttl_seconds, mind.now())
    return _shown(done, key)


def get(mind: Mind, namespace: str, key: str, level: Consistency) -> Found:
    """Returns a value; raises `NotFound`, and `StorageFailed` where it can't be read.

    A key that was listed redacted is found by what stood in its place.
    """
    check_key(key)
    with _waited(mind, level):
        found = _get(mind, namespace, key)
        if found is None and (behind := _behind(mind, namespace, key)):
            found = _get(mind, namespace, behind)
    if found is None:
        raise _missing(namespace, key)
    return found


def remove(mind: Mind, namespace: str, key: str) -> None:
    """Removes a value, named as `get` takes it; raises `NotFound` and `StorageFailed`."""
    check_key(key)
    behind = _behind(mind, namespace, key) or key
    try:
        removed = mind.values.remove(namespace, behind, mind.now())
    except StorageFailed as error:
        raise _without_key(error, behind) from error
    if not removed:
        raise _missing(namespace, key)


def page(
    mind: Mind,
    namespace: str,
    *,
    prefix: str,
    limit: int,
    cursor: str | None,
    level: Consistency,
) -> Page:
    """Returns the keys that begin with `prefix`, from where an earlier page ended.

    Raises `Invalid` for a cursor of another listing.
    """
    check_prefix(prefix)
    secret = mind.values.secret
    after = unseal(secret, namespace, prefix, cursor) if cursor else ""
    with _waited(mind, level):
        every = mind.values.keys(namespace, mind.now())
        wanted = [key for key in every if key.startswith(prefix) and key > after]
        shown = wanted[:limit]
        problems = {key: told for key in shown if (told := _problem(mind, namespace, key))}
    more = len(wanted) > len(shown)
    return Page(
        keys=tuple(key for key in shown if key not in problems),
        cursor=seal(secret, namespace, prefix, shown[-1]) if more else None,
        total=len(every),
        problems=tuple(problems.values()),
    )


def broken(mind: Mind) -> Iterator[Problem]:
    """Yields every file in the place of a value that can't be read; it is left as it is."""
    for one in _lasting(mind):
        if isinstance(one, Problem):
            stem = one.path.rpartition("/")[2].removesuffix(SUFFIX)
            path, reason = masked([one.path, one.reason], stem.partition("~")[0])
            yield replace(one, path=path, reason=reason)


def digests(mind: Mind) -> tuple[str, ...]:
    """Returns the digest of each file that holds a value."""
    return tuple(one.digest for one in _lasting(mind) if not isinstance(one, Problem))


def _lasting(mind: Mind) -> Iterator[Kept | Problem]:
    """Yields what lasts, without the user's secret: a home that can't be written has none."""
    return ValueFiles(mind.project.root).everything()


def is_trusted(mind: Mind, found: Found) -> bool:
    """Returns whether a value was written on this machine, or approved here."""
    return found.digest is None or mind.trust.trusted(found.digest)


def expire(mind: Mind, now: datetime | None = None) -> int:
    """Removes the values that have expired and returns how many; nobody needs to wait for it."""
    return mind.values.expire(now or mind.now())


def _problem(mind: Mind, namespace: str, key: str) -> str | None:
    try:
        _get(mind, namespace, key)
    except StorageFailed as error:
        return error.message
    return None


def _get(mind: Mind, namespace: str, key: str) -> Found | None:
    """Returns a value with its file as it may be shown. Raises `StorageFailed` likewise."""
    try:
        found = mind.values.get(namespace, key, mind.now())
    except StorageFailed as error:
        raise _without_key(error, key) from error
    return _shown(found, key) if found else None


def _shown(found: Found, key: str) -> Found:
    return replace(found, file=masked(found.file, key)) if found.file else found


def _without_key(error: StorageFailed, key: str) -> StorageFailed:
    """Returns an error that names a key, and its file, as they may be shown."""
    return StorageFailed(
        masked(error.message, key), hint=masked(error.hint, key), details=masked(error.details, key)
    )


def _behind(mind: Mind, namespace: str, key: str) -> str | None:
    """Returns the key that a redacted one stands for: the start of its digest ends it."""
    digest = _REDACTED.fullmatch(key)
    if digest is None:
        return None
    keys = mind.values.keys(namespace, mind.now())
    fits = [one for one in keys if sha256(one.encode()).hexdigest().startswith(digest[1])]
    return fits[0] if len(fits) == 1 and key not in keys else None


def _waited(mind: Mind, level: Consistency) -> Any:
    return mind.values.locked() if level is Consistency.STRONG else nullcontext()


def _missing(namespace: str, key: str) -> NotFound:
    return NotFound(
        f"there is no `{key}` in `{namespace}`",
        hint=f"`mind value list {namespace}` shows what there is; values with a TTL expire",
        details={"namespace": namespace, "key": key},
    )
