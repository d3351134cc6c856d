"""Whether a chain of audit records is whole, and where it is not."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from mimo.errors import Invalid

# A chain of records, each sealed over the one before it, so that no change stays unseen.


INTERRUPTED = "interrupted"
"""The type of a record that closes a line that was torn by an interrupted write."""


class Link(NamedTuple):
    """One record of a chain; hashes are in hex."""

    event: dict[str, Any]
    prev: str | None
    """The hash of the record before, None for the first of all."""
    hash: str
    hmac: str

    @property
    def number(self) -> int:
        """Returns its place in the chain, from 1; 0 where it says none."""
        number = self.event.get("n")
        return number if isinstance(number, int) else 0

    @property
    def home(self) -> str | None:
        """Returns the mark of the key that the record claims, None in records of before marks."""
        home = self.event.get("home")
        return home if isinstance(home, str) else None


def sealed(event: Mapping[str, Any], prev: str | None, key: bytes) -> Link:
    """Returns an event as the next link of a chain."""
    own = _hash(event, prev)
    return Link(dict(event), prev, own, _keyed(own, key))


def mark_of(key: bytes) -> str:
    """Returns what names a key without revealing it."""
    import hashlib

    return hashlib.sha256(b"mind audit home " + key).hexdigest()[:12]


def fault(link: Link, key: bytes | None) -> str | None:
    """Returns what is wrong with a link by itself, or None; without a key its hash is checked."""
    if _hash(link.event, link.prev) != link.hash:
        return "it was changed"
    if key is not None and not _same(_keyed(link.hash, key), link.hmac):
        return "it was not sealed with this machine's key"
    return None


def line_of(link: Link) -> bytes:
    """Returns a link as a line of a file."""
    record = {"event": link.event, "prev": link.prev, "hash": link.hash, "hmac": link.hmac}
    return _canonical(record) + b"\n"


def link_of(line: bytes) -> Link:
    """Returns the link in a line, with or without its line end.

    Raises `Invalid` if it has none, or not in the exact form of `line_of`: of a key that occurs
    twice, other readers may see the other value.
    """
    try:
        record = json.loads(line)
        event, prev = record["event"], record["prev"]
        own, keyed = record["hash"], record["hmac"]
        exact = _canonical(record) == line.removesuffix(b"\n")
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Invalid("it is no record") from None
    texts = isinstance(own, str) and isinstance(keyed, str)
    linked = isinstance(event, dict) and (prev is None or isinstance(prev, str))
    if not (exact and texts and linked):
        raise Invalid("it is no record")
    return Link(event, prev, own, keyed)


def _canonical(value: Mapping[str, Any]) -> bytes:
    """Returns JSON with sorted keys and no spaces: the same bytes for the same record."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _hash(event: Mapping[str, Any], prev: str | None) -> str:
    import hashlib

    return hashlib.sha256((prev or "").encode() + _canonical(event)).hexdigest()


def _keyed(text: str, key: bytes) -> str:
    import hmac

    return hmac.digest(key, text.encode(), "sha256").hex()


def _same(first: str, second: str) -> bool:
    import hmac

    return hmac.compare_digest(first.encode(), second.encode("utf-8", "surrogatepass"))


_INTERRUPTED = "a write was interrupted before this record; what it left was removed"


class Placed(NamedTuple):
    """A line of the log; `link` is None where it holds no record."""

    file: str
    line: int
    link: Link | None


class Fault(NamedTuple):
    """A place where the chain is broken, or that a person should know of."""

    file: str
    line: int
    what: str
    is_broken: bool = True
    """Whether a record was changed, added or removed; False for a notice."""


def faults(
    lines: Iterable[Placed],
    key: bytes | None,
    *,
    count: int,
    last: str | None,
    from_start: bool = True,
) -> Iterator[Fault]:
    """Yields the faults and notices of a chain that should have at least `count` records.

    `last` is the hash of record `count`. Unless `lines` are `from_start`, earlier records may be
    missing. Without a key the hashes alone are checked. Records that
    another key sealed, and say so, are checked by their hashes and yield one notice for each key.
    """
    own = mark_of(key) if key else None
    before: Link | None = None
    where = Placed("the log", 0, None)
    lacking: Placed | None = None
    foreign: dict[str, tuple[Placed, int]] = {}
    dropped = 0
    for where in lines:
        link = where.link
        if link is None:
            yield Fault(where.file, where.line, "it is no record")
            continue
        is_foreign = link.home is not None and link.home != own
        forged = fault(link, None if is_foreign else key)
        if what := forged or _step(before, link) or _not_last(link, count, last):
            yield Fault(where.file, where.line, what)
        if is_foreign and not forged:
            first, number = foreign.get(str(link.home), (where, 0))
            foreign[str(link.home)] = (first, number + 1)
        if not forged and not is_foreign:
            dropped = max(dropped, _dropped(link))
            if link.event.get("event_type") == INTERRUPTED:
                yield Fault(where.file, where.line, _INTERRUPTED, is_broken=False)
        lacking = where if before is None and link.number != 1 else lacking
        before = link
    if from_start and lacking and lacking.link and lacking.link.number - 1 != dropped:
        yield Fault(lacking.file, lacking.line, _gone(1, lacking.link.number - 1))
    for home, (first, number) in foreign.items():
        yield _of_another(home, first, number)
    number = before.number if before else 0
    if number < count:
        what = f"{_gone(number + 1, count)}: the end was cut off"
        yield Fault(where.file, where.line, what)


def _step(before: Link | None, link: Link) -> str | None:
    """Returns what is wrong between a record and the one before it, or None."""
    if before is None or (link.number == before.number + 1 and link.prev == before.hash):
        return None
    if link.number > before.number + 1:
        return _gone(before.number + 1, link.number - 1)
    return "it does not follow the record before it"


def _not_last(link: Link, count: int, own: str | None) -> str | None:
    """Returns what is wrong with the record that was counted last, or None.

    A record after it is not a fault: its writer died before it could count it.
    """
    if link.number == count and link.hash != own:
        return "it is not the record that was written last"
    return None


def _of_another(home: str, first: Placed, number: int) -> Fault:
    plural = "s" if number > 1 else ""
    what = (
        f"{number:,} record{plural} from here on, sealed by another `$MIND_HOME` (key {home}): "
        "only the hashes were checked"
    )
    return Fault(first.file, first.line, what, is_broken=False)


def _dropped(link: Link) -> int:
    """Returns up to which record older logs were dropped, as a record of ours says; 0 for none."""
    through = link.event.get("through")
    return through if isinstance(through, int) else 0


def _gone(first: int, last: int) -> str:
    if first == last:
        return f"record {first:,} is gone"
    return f"records {first:,} to {last:,} are gone"
