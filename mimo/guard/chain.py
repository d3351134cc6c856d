"""Chains of audit records: each record is sealed over the one before it.

Changing, removing or adding a record breaks the chain, and `faults` reports where.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from mimo.data import disk
from mimo.data.loads import loads
from mimo.data.state import check_format
from mimo.errors import Invalid
from mimo.frozen import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INTERRUPTED = "interrupted"
"""The type of the record that follows an incomplete one, which was removed."""
LOST = "lost"
"""The type of the record that follows a loss of power: records `after` a number may be missing."""
_MOST_RECORDS = 10**15
"""The record of a clone may have a number of thousands of digits."""
_INTERRUPTED = "a write was interrupted before this record; its incomplete record was removed"
_LOST = ": the machine stopped before it was on the disk"


class Link(NamedTuple):
    """A record of a chain. Hashes are in hexadecimal."""

    event: dict[str, Any]
    prev: str | None
    """The hash of the record before this one; None for the first record."""
    hash: str
    hmac: str

    @property
    def number(self) -> int:
        """Returns the position in the chain, from 1; 0 if the record has none."""
        number = self.event.get("n")
        return number if isinstance(number, int) and abs(number) < _MOST_RECORDS else 0

    @property
    def home(self) -> str | None:
        """Returns the mark of the key that sealed the record; old records have none."""
        home = self.event.get("home")
        return home if isinstance(home, str) else None


def sealed(event: Mapping[str, Any], prev: str | None, key: bytes) -> Link:
    """Returns an event as the next link of a chain."""
    hash_ = _hash(event, prev)
    return Link(dict(event), prev, hash_, _keyed(hash_, key))


def mark_of(key: bytes) -> str:
    """Returns a name for a key that does not reveal it."""
    return disk.sha256(b"mind audit home " + key).hex()[:12]


def fault(link: Link, key: bytes | None) -> str | None:
    """Returns the fault of a single link, or None. Without a key only its hash is checked."""
    from hmac import compare_digest

    if _hash(link.event, link.prev) != link.hash:
        return "it was changed"
    hmac = link.hmac.encode("utf-8", "surrogatepass")
    if key is not None and not compare_digest(_keyed(link.hash, key).encode(), hmac):
        return "it was not sealed with this machine's key"
    return None


def line_of(link: Link) -> bytes:
    """Returns a link as a line of a file."""
    record = {"event": link.event, "prev": link.prev, "hash": link.hash, "hmac": link.hmac}
    return _canonical(record) + b"\n"


def link_of(line: bytes) -> Link:
    """Returns the link in a line, with or without its line end.

    Raises `Invalid` unless the line has the exact form of `line_of`: of a key that occurred twice,
    another reader could use the other value, and another key would not be sealed. A later version
    of mind that writes another form adds a `format` beside the event: raises `StorageFailed`.
    """
    try:
        record = loads(line)
        check_format(record, "the audit log")
        event, prev = record["event"], record["prev"]
        hash_, hmac = record["hash"], record["hmac"]
        parts = {"event": event, "prev": prev, "hash": hash_, "hmac": hmac}
        exact = _canonical(parts) == line.removesuffix(b"\n")
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Invalid("it is not a record") from None
    texts = isinstance(hash_, str) and isinstance(hmac, str)
    linked = isinstance(event, dict) and (prev is None or isinstance(prev, str))
    if not (exact and texts and linked):
        raise Invalid("it is not a record")
    return Link(event, prev, hash_, hmac)


def _canonical(value: Mapping[str, Any]) -> bytes:
    """Returns JSON with sorted keys and no spaces: the same bytes for the same record."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _hash(event: Mapping[str, Any], prev: str | None) -> str:
    return disk.sha256((prev or "").encode("utf-8", "surrogatepass") + _canonical(event)).hex()


def _keyed(text: str, key: bytes) -> str:
    return disk.hmac_sha256(key, text.encode()).hex()


class Placed(NamedTuple):
    """A line of the log; `link` is None if the line is not a record."""

    file: str
    line: int
    link: Link | None


class Fault(NamedTuple):
    """A break of the chain, or a notice for the user."""

    file: str
    line: int
    what: str
    is_broken: bool = True
    """True if a record was changed, added or removed; False for a notice."""
    after: int = 0
    """The number of the last record before it."""
    is_lost: bool = False
    """True if a loss of power can be the cause."""


def faults(
    lines: Iterable[Placed],
    key: bytes | None,
    *,
    count: int,
    digest: str | None,
    from_start: bool = True,
    restarted: bool = False,
) -> Iterator[Fault]:
    """Yields the faults and notices of a chain that should have at least `count` records.

    `digest` is the hash of record `count`. Unless `lines` are `from_start`, earlier records may be
    missing. Without a key only hashes are checked. So are records with the mark of another key,
    which yield one notice for each key. If the machine `restarted` since the last record, missing
    records are a notice: only the first record of a file is flushed to the disk.
    """
    # Records after a number, and before another one, may be missing. After record `count` there are
    # only those of other keys.
    losses = [(1, _MOST_RECORDS)] if restarted else []
    noted = _noted(lines, key, losses)
    for place in list(_found(noted, key, count=count, digest=digest, from_start=from_start)):
        if place.is_lost and any(after <= place.after < number for after, number in losses):
            yield place._replace(what=f"{place.what}{_LOST}", is_broken=False)
        else:
            yield place


def _noted(
    lines: Iterable[Placed], key: bytes | None, losses: list[tuple[int, int]]
) -> Iterator[Placed]:
    """Yields lines, and adds the losses of power that were recorded with this key.

    Anyone who can write in the project can write such a record with the mark of another key.
    """
    for line in lines:
        link = line.link
        if key and link and link.event.get("event_type") == LOST and link.home == mark_of(key):
            after = link.event.get("after")
            if isinstance(after, int) and not fault(link, key):
                losses.append((after, link.number))
        yield line


def _found(
    lines: Iterable[Placed], key: bytes | None, *, count: int, digest: str | None, from_start: bool
) -> Iterator[Fault]:
    """Yields the faults and notices, without those that a loss of power explains."""
    own_mark = mark_of(key) if key else None
    previous: Link | None = None
    line = Placed("the log", 0, None)
    start, number = line, 1
    foreign: dict[str, tuple[Placed, int]] = {}
    dropped = 0
    for line in lines:
        link = line.link
        at = previous.number if previous else 0
        if link is None:
            yield Fault(line.file, line.line, "it is not a record", after=at, is_lost=True)
            continue
        is_foreign = link.home is not None and link.home != own_mark
        forged = fault(link, None if is_foreign else key)
        if what := forged or _step(previous, link) or _head_fault(link, count, digest):
            is_gap = not forged and previous is not None and link.number > at + 1
            yield Fault(line.file, line.line, what, after=at, is_lost=is_gap)
        if is_foreign and not forged:
            place, records = foreign.get(str(link.home), (line, 0))
            foreign[str(link.home)] = (place, records + 1)
        if not forged and not is_foreign:
            through = link.event.get("through")  # the last record of the logs that were removed
            dropped = max(dropped, through if isinstance(through, int) else 0)
            if link.event.get("event_type") == INTERRUPTED:
                yield Fault(line.file, line.line, _INTERRUPTED, is_broken=False)
        start, number = (line, link.number) if previous is None else (start, number)
        previous = link
    if from_start and number - 1 > dropped:
        yield Fault(start.file, start.line, _missing(1, number - 1))
    for home, (place, records) in foreign.items():
        what = (
            f"{records:,} record{'s' if records > 1 else ''} from here on, sealed by another "
            f"`$MIND_HOME` (key {home}): only the hashes were checked"
        )
        yield Fault(place.file, place.line, what, is_broken=False)
    end = previous.number if previous else 0
    if end < count:
        what = f"{_missing(end + 1, count)}: the end was cut off"
        yield Fault(line.file, line.line, what, after=end, is_lost=True)


def _step(previous: Link | None, link: Link) -> str | None:
    """Returns the fault between a record and the one before it, or None."""
    if previous is None or (link.number == previous.number + 1 and link.prev == previous.hash):
        return None
    if link.number > previous.number + 1:
        return _missing(previous.number + 1, link.number - 1)
    return "it does not follow the record before it"


def _head_fault(link: Link, count: int, digest: str | None) -> str | None:
    """Returns the fault of the record that this machine wrote last, or None.

    A record after it is not a fault: its writer was killed before it stored the new head.
    """
    if link.number == count and link.hash != digest:
        return "it is not the record that was written last"
    return None


def _missing(start: int, end: int) -> str:
    if start == end:
        return f"record {start:,} is missing"
    return f"records {start:,} to {end:,} are missing"
