"""Values: any JSON under a key in a namespace, and the listing of keys in pages."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from enum import StrEnum
from typing import Any

from mimo.call import Call
from mimo.data import disk
from mimo.errors import Command, Hint, Invalid, NotFound, StorageFailed
from mimo.frozen import frozen, replace
from mimo.guard.privacy import masked
from mimo.memory.ids import SUFFIX, check_prefix
from mimo.memory.model import Problem
from mimo.operations import disclosure, refresh
from mimo.operations.saving import approving
from mimo.project.values import Found, ValueFiles

_MAX_CURSOR = 400
_SEAL = 16
_CURSOR = re.compile(r"[A-Za-z0-9_-]+")
_HIDDEN = "~"
"""Begins a position that has the keyed digest of a key; no key begins so."""
_REDACTED = re.compile(r"(?i:redacted)[A-Za-z0-9_.-]*[_-]([0-9a-f]{8})")


class Consistency(StrEnum):
    """The guarantee of an answer.

    Values are read from their files, so every answer contains all earlier writes. A strong answer
    also waits for a write that another process has begun.
    """

    EVENTUAL = "EVENTUAL"
    READ_YOUR_WRITES = "READ_YOUR_WRITES"
    STRONG = "STRONG"


@frozen
class Page:
    """One page of the keys of a namespace."""

    keys: tuple[str, ...]
    cursor: str | None
    """The start of the next page; None after the last key."""
    total: int
    """The number of keys in the namespace."""
    problems: tuple[str, ...]
    """Files of this page that can't be read, with the reason."""


def put(call: Call, namespace: str, key: str, value: Any, ttl_seconds: int | None) -> Found:
    """Stores a value, replacing an earlier one, and returns where it is kept.

    Raises `Invalid`, `QuotaExceeded` and `StorageFailed`; the earlier value is kept then.
    """
    with _errors(call, key), approving(call):
        stored = call.mind.values.put(namespace, key, value, ttl_seconds, call.mind.now())
    refresh.commit_soon(call)
    return _mask_file(stored, key)


def get(call: Call, namespace: str, key: str, level: Consistency) -> Found:
    """Returns a value. Raises `NotFound`, and `StorageFailed` if it can't be read.

    `key` may also be the redacted form that a listing shows.
    """
    with _waited(call, level):
        value = _get(call, namespace, key)
        if value is None and (behind := _behind(call, namespace, key)):
            value = _get(call, namespace, behind)
    if value is None:
        raise _missing(namespace, key)
    return value


def remove(call: Call, namespace: str, key: str) -> None:
    """Removes a value; `key` is as in `get`. Raises `NotFound` and `StorageFailed`."""
    behind = _behind(call, namespace, key) or key
    with _errors(call, behind):
        removed = call.mind.values.remove(namespace, behind, call.mind.now())
    if not removed:
        raise _missing(namespace, key)
    refresh.commit_soon(call)


def page(
    call: Call,
    namespace: str,
    *,
    prefix: str,
    limit: int,
    cursor: str | None,
    level: Consistency,
) -> Page:
    """Returns the keys that begin with `prefix`, after the page that `cursor` came from.

    Raises `Invalid` for a cursor of another listing.
    """
    check_prefix(prefix)
    position = _position(call, cursor, namespace, prefix) if cursor else ""
    with _waited(call, level):
        all_keys = call.mind.values.keys(namespace, call.mind.now())
        after = _key_at(call, position, all_keys)
        matches = [key for key in all_keys if key.startswith(prefix) and key > after]
        keys = matches[:limit]
        problems = {}
        for key in keys:
            try:
                _get(call, namespace, key)
            except StorageFailed as error:
                problems[key] = error.message
    more = len(matches) > len(keys)
    return Page(
        keys=tuple(key for key in keys if key not in problems),
        cursor=_cursor(call, keys[-1], namespace, prefix) if more else None,
        total=len(all_keys),
        problems=tuple(problems.values()),
    )


def broken(call: Call) -> Iterator[Problem]:
    """Yields the files of values that can't be read; they are left as they are."""
    # Not from `mind.values`, which needs a secret that a read-only home may not have.
    for problem in ValueFiles(call.mind.project.root).everything():
        if isinstance(problem, Problem):
            stem = problem.path.rpartition("/")[2].removesuffix(SUFFIX)
            reason = disclosure.reason_for(call, problem.path, problem.reason)
            path, reason = masked([problem.path, reason], stem.partition("~")[0])
            yield replace(problem, path=path, reason=reason)


def approvals(call: Call) -> dict[str, str]:
    """Returns the path of each file that holds a value, by the name that approves it."""
    entries = ValueFiles(call.mind.project.root).everything()
    return {
        entry.approval: entry.file
        for entry in entries
        if isinstance(entry, Found) and entry.file and entry.approval
    }


def is_trusted(call: Call, value: Found) -> bool:
    """Returns whether the user wrote a value on this machine, or approved it."""
    return value.approval is None or call.mind.trust.trusted(value.approval)


def expire(call: Call, now: datetime | None = None) -> int:
    """Removes the values that have expired and returns their number."""
    return call.mind.values.expire(now or call.mind.now())


def _get(call: Call, namespace: str, key: str) -> Found | None:
    """Returns a value with the path of its file masked. Raises `StorageFailed`, masked too."""
    with _errors(call, key):
        value = call.mind.values.get(namespace, key, call.mind.now())
    return _mask_file(value, key) if value else None


def _mask_file(value: Found, key: str) -> Found:
    return replace(value, file=masked(value.file, key)) if value.file else value


@contextmanager
def _errors(call: Call, key: str) -> Iterator[None]:
    """Raises an error of the block with a key and its file masked.

    An agent gets the reason for which a file can't be read only if the file is approved.
    """
    try:
        yield
    except StorageFailed as error:
        message, file = error.message, error.details.get("file")
        if isinstance(file, str) and disclosure.reason_for(call, file, message) != message:
            message = f"`{file}`: {disclosure.WITHHELD}"
        raise StorageFailed(
            masked(message, key), hint=masked(error.hint, key), details=masked(error.details, key)
        ) from error


def _behind(call: Call, namespace: str, key: str) -> str | None:
    """Returns the key of a redacted form, which ends with the start of the key's digest."""
    digest = _REDACTED.fullmatch(key)
    if digest is None:
        return None
    keys = call.mind.values.keys(namespace, call.mind.now())
    matches = [name for name in keys if disk.sha256(name.encode()).hex().startswith(digest[1])]
    return matches[0] if len(matches) == 1 and key not in keys else None


def _waited(call: Call, level: Consistency) -> Any:
    return call.mind.values.locked() if level is Consistency.STRONG else nullcontext()


def _missing(namespace: str, key: str) -> NotFound:
    return NotFound(
        f"there is no `{key}` in `{namespace}`",
        hint=Hint(Command("value list", namespace), " lists the keys; values with a TTL expire"),
        details={"namespace": namespace, "key": key},
    )


# A cursor is the last key of a page behind a keyed digest of itself and its listing. A key that
# is redacted in answers has a keyed digest in its place.


def _cursor(call: Call, key: str, namespace: str, prefix: str) -> str:
    hidden = masked(key, key) != key
    position = f"{_HIDDEN}{_digest(call, key).hex()}" if hidden else key
    seal = _digest(call, namespace, prefix, position)
    return urlsafe_b64encode(seal + position.encode()).decode().rstrip("=")


def _position(call: Call, cursor: str, namespace: str, prefix: str) -> str:
    """Returns the position in a cursor. Raises `Invalid` for a cursor of another listing."""
    if len(cursor) <= _MAX_CURSOR and _CURSOR.fullmatch(cursor) and len(cursor) % 4 != 1:
        data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        seal, position = data[:_SEAL], data[_SEAL:].decode("utf-8", "replace")
        from hmac import compare_digest

        if compare_digest(seal, _digest(call, namespace, prefix, position)):
            return position
    raise _wrong_cursor("`cursor` is not from this namespace and prefix")


def _key_at(call: Call, position: str, keys: Iterable[str]) -> str:
    """Returns the key at a position. Raises `Invalid` if a hidden key was removed meanwhile."""
    if not position.startswith(_HIDDEN):
        return position
    for key in keys:
        if _digest(call, key).hex() == position.removeprefix(_HIDDEN):
            return key
    raise _wrong_cursor("the key of `cursor` was removed")


def _wrong_cursor(message: str) -> Invalid:
    return Invalid(
        message,
        hint="start again without it, or pass the `cursor` of the previous page unchanged",
        details={"field": "cursor"},
    )


def _digest(call: Call, *parts: str) -> bytes:
    joined = b"\0".join([b"mark", *(part.encode() for part in parts)])
    return disk.hmac_sha256(call.mind.values.secret, joined)[:_SEAL]
