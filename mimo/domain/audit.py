"""Whether a chain of audit records is whole, and where it is not."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mimo.domain.chain import Link, fault


class Placed(NamedTuple):
    """A line of the log; `link` is None where it holds no record."""

    file: str
    line: int
    link: Link | None


class Fault(NamedTuple):
    """A place where the chain is broken."""

    file: str
    line: int
    what: str


def faults(
    lines: Iterable[Placed], key: bytes | None, *, count: int, last: str | None
) -> Iterator[Fault]:
    """Yields everything that is wrong with a chain that should have `count` records.

    `last` is the hash of its last one. Without a key the hashes alone are checked.
    """
    before: Link | None = None
    where = Placed("the log", 0, None)
    lacking: Placed | None = None
    dropped = 0
    for where in lines:
        link = where.link
        if link is None:
            yield Fault(where.file, where.line, "it is no record")
            continue
        forged = fault(link, key)
        if what := forged or _step(before, link):
            yield Fault(where.file, where.line, what)
        if not forged:
            dropped = max(dropped, _dropped(link))
        lacking = where if before is None and link.number != 1 else lacking
        before = link
    if lacking and lacking.link and lacking.link.number - 1 != dropped:
        yield Fault(lacking.file, lacking.line, _gone(1, lacking.link.number - 1))
    if what := _end(before, count, last):
        yield Fault(where.file, where.line, what)


def _step(before: Link | None, link: Link) -> str | None:
    """Returns what is wrong between a record and the one before it, or None."""
    if before is None or (link.number == before.number + 1 and link.prev == before.hash):
        return None
    if link.number > before.number + 1:
        return _gone(before.number + 1, link.number - 1)
    return "it does not follow the record before it"


def _end(last: Link | None, count: int, own: str | None) -> str | None:
    """Returns what is wrong with the end of the chain, or None.

    A record more than were counted is no fault: its writer died before it could count it.
    """
    number = last.number if last else 0
    if number < count:
        return f"{_gone(number + 1, count)}: the end was cut off"
    if last is not None and number == count and last.hash != own:
        return "it is not the record that was written last"
    return None


def _dropped(link: Link) -> int:
    """Returns up to which record older logs were dropped, as a record of ours says; 0 for none."""
    through = link.event.get("through")
    return through if isinstance(through, int) else 0


def _gone(first: int, last: int) -> str:
    if first == last:
        return f"record {first:,} is gone"
    return f"records {first:,} to {last:,} are gone"
