"""`mind list`: browse the memories."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from mimo.commands.common import (
    At,
    Competing,
    File,
    FromDate,
    Limit,
    Offset,
    Stale,
    TagFilter,
    TimeFilter,
    ToDate,
    Trust,
    Types,
    Warning,
    narrowed,
    trust_of,
)
from mimo.commands.spec import Arg, Effect, command
from mimo.commands.types import Omitted, Out
from mimo.domain import outcomes
from mimo.domain.memory import Kind, Outcome, Record
from mimo.domain.query import Sort
from mimo.errors import Invalid, NotFound
from mimo.frozen import frozen
from mimo.index.found import Newer
from mimo.mind import Mind
from mimo.services import freshness, past, recall, upkeep


@frozen
class MemoryRow:
    """A memory in a list."""

    id: str
    type: Kind
    title: str
    tags: tuple[str, ...]
    importance: float
    created_at: datetime
    trust: Trust
    file: File
    outcome: Omitted[Outcome] = None
    warning: Warning = None
    superseded_by: Omitted[str] = None
    competing: Competing = None
    private: Omitted[bool] = None
    stale: Stale = None


@frozen
class MemoryRows:
    """One page of the memories."""

    memories: tuple[MemoryRow, ...]
    total: Annotated[int, Out("How many memories pass the filters, on all pages")]
    offset: int
    unreadable: Annotated[Omitted[int], Out("Files that could not be read", omit=True)] = None
    notice: Annotated[Omitted[str], Out("Which past state this is", omit=True)] = None


@command(
    "mind_list",
    cli="list",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, NotFound),
    examples=("mind list --type decision", "mind list --tag api --when 'this week'"),
)
def list_(
    mind: Mind,
    *,
    types: Types = (),
    topic: Annotated[str | None, Arg("Only on this topic", complete="topic")] = None,
    outcomes_: Annotated[
        tuple[str, ...], Arg("Only what turned out so: SUCCESS, FAILED, PARTIAL", wire="outcomes")
    ] = (),
    tags: TagFilter = (),
    limit: Limit = 50,
    offset: Offset = 0,
    sort: Annotated[Sort, Arg("Order of the list")] = Sort.RECENT,
    time_filter: TimeFilter = None,
    from_date: FromDate = None,
    to_date: ToDate = None,
    at: At = None,
) -> MemoryRows:
    """List the memories, newest first"""
    then = past.at(mind, at) if at is not None else None
    mind = then.mind if then else mind
    conditions = narrowed(
        mind,
        types=types,
        topic=topic,
        outcomes=outcomes_,
        tags=tags,
        time_filter=time_filter,
        from_date=from_date,
        to_date=to_date,
    )
    page = recall.listing(mind, narrowed=conditions, sort=sort, limit=limit, offset=offset)
    ids = [record.memory.id for record in page.records]
    newer, others = mind.index.newer(ids), mind.index.competing(ids)
    stale = freshness.stale(mind, page.records)
    rows = tuple(
        replace(
            _row(mind, one, newer[one.memory.id], others.get(one.memory.id)),
            stale=stale.get(one.memory.id),
        )
        for one in page.records
    )
    unreadable = len(upkeep.problems(mind))
    return MemoryRows(
        memories=rows,
        total=page.total,
        offset=offset,
        unreadable=unreadable or None,
        notice=then.told if then else None,
    )


def _row(mind: Mind, record: Record, newer: Newer, others: tuple[str, ...] | None) -> MemoryRow:
    memory = record.memory
    return MemoryRow(
        id=memory.id,
        type=memory.type,
        title=memory.heading,
        tags=memory.tags,
        importance=memory.importance,
        created_at=memory.created,
        trust=trust_of(mind, record),
        file=record.place.path,
        outcome=memory.outcome,
        warning=outcomes.warning(memory, claimed_by=newer.claimant),
        superseded_by=newer.successor,
        competing=others,
        private=record.place.private or None,
    )
