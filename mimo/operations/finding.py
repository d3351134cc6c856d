"""Lists of memories, their links, and the count of their uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from mimo.call import Call
from mimo.frozen import frozen, replace
from mimo.memory.decay import Use
from mimo.memory.model import Filter, Record, Sort
from mimo.operations import refresh

if TYPE_CHECKING:
    from mimo.memory.relations import Graph

T = TypeVar("T")


@frozen
class Options:
    """Which memories a search or a list returns, how many, and in which order."""

    filter: Filter = Filter()
    """Applied before the limit."""
    limit: int = -1
    """Maximum number of memories; -1 for all."""
    offset: int = 0
    sort: Sort = Sort.RECENT
    """The order of a list; a search sorts by relevance."""
    threshold: float | None = None
    """Minimum score of a match; None for the sure ones and some weak ones."""
    weak: int = 0
    """The most weak matches beside sure ones."""


EVERYTHING = Options()


@frozen
class Page:
    """A part of a list, and the number of memories in the whole list."""

    records: tuple[Record, ...]
    total: int
    """The number of memories; in a folded list, an ingested file counts as one."""
    chunks: Mapping[str, int] = MappingProxyType({})
    """The number of chunks of each ingested file on this page of a folded list."""
    all_chunks: int = 0
    """The number of chunks on all pages of a folded list."""


def newest(call: Call, filter: Filter, limit: int, *, documents: bool = True) -> tuple[Record, ...]:
    """Returns the newest memories, and `documents` only if there is nothing else."""
    records = call.index.records(replace(filter, whole=True), limit=limit)
    return records if records or not documents else call.index.records(filter, limit=limit)


# Uses of memories, which keep them from fading.


def uses(call: Call) -> dict[str, Use]:
    """Returns the number of uses of each memory on this machine, and the last one."""
    call.mind.accesses.flush()
    return call.mind.accesses.uses()


# Lists and links.


def listing(call: Call, options: Options = EVERYTHING) -> Page:
    """Returns one page of the memories that pass the filter, and the number of all that do."""
    index = refresh.up_to_date(call)
    records = _page(call, index.records, options)
    return Page(records=records, total=index.count(options.filter))


def _page(
    call: Call, query: Callable[..., tuple[Record, ...]], options: Options
) -> tuple[Record, ...]:
    """Returns one page of the memories, as their files are now."""
    page = partial(
        query, options.filter, sort=options.sort, limit=options.limit, offset=options.offset
    )
    records = page()
    return page() if refresh.reread(call, records) else records


def folded(call: Call, options: Options) -> Page:
    """Returns one page of the memories that pass the filter, an ingested file as one of them.

    Its first chunk that passes the filter represents it.
    """
    index = refresh.up_to_date(call)
    records = _page(call, index.folded_records, options)
    parents = [record.parent for record in records if record.parent is not None]
    numbers = index.folded(options.filter)
    return Page(
        records=records,
        total=numbers.rows,
        chunks=index.chunk_counts(parents, options.filter) if parents else {},
        all_chunks=numbers.chunks,
    )


def total(call: Call, *, shared: bool = False, roughly: bool = False) -> int:
    """Returns the number of memories of a project, an ingested file as one of them.

    With `shared`, private memories are left out. With `roughly`, it is the number when the project
    was last indexed, and no file is looked at.
    """
    if not roughly or call.index.changed_at() is None:
        refresh.refresh(call)
    return call.index.folded(Filter(shared=shared)).rows


def linked(
    call: Call,
    start: Sequence[str],
    *,
    depth: int,
    types: Collection[str] = (),
    limit: int | None = None,
    shared: bool = False,
) -> Graph:
    """Returns the memories within `depth` links of `start`, and the links between them.

    A start is an id or a title, as in a link. At most `MAX_DEPTH` links are followed, in both
    directions, only links of `types` if any are given, and the nearest `limit` memories are kept.
    With `shared`, private memories are left out, and with them what only they lead to.
    """
    from mimo.memory.relations import MAX_DEPTH

    steps, index = max(0, min(depth, MAX_DEPTH)), refresh.up_to_date(call)
    return index.graph(
        start, depth=steps, types=types, limit=limit, shared=shared, now=call.mind.now()
    )


def successor(call: Call, id: str) -> str | None:
    """Returns the id of the newest memory that supersedes this one, or None."""
    return call.index.superseded_by((id,)).get(id)
