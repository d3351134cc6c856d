"""`mind list`: browse the memories."""

from datetime import datetime
from typing import Annotated

from mimo.commands.common import (
    File,
    FromDate,
    Limit,
    Offset,
    TagFilter,
    TimeFilter,
    ToDate,
    Trust,
    Types,
    narrowed,
    trust_of,
)
from mimo.commands.spec import Arg, Effect, command
from mimo.commands.types import Omitted, Out
from mimo.domain.memory import Kind, Outcome, Record
from mimo.domain.query import Sort
from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import recall, upkeep


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
    private: Omitted[bool] = None


@frozen
class MemoryRows:
    """One page of the memories."""

    memories: tuple[MemoryRow, ...]
    total: Annotated[int, Out("How many memories pass the filters, on all pages")]
    offset: int
    unreadable: Annotated[Omitted[int], Out("Files that could not be read", omit=True)] = None


@command(
    "mind_list",
    cli="list",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid,),
    examples=("mind list --type decision", "mind list --tag api --when 'this week'"),
)
def list_(
    mind: Mind,
    *,
    types: Types = (),
    tags: TagFilter = (),
    limit: Limit = 50,
    offset: Offset = 0,
    sort: Annotated[Sort, Arg("Order of the list")] = Sort.RECENT,
    time_filter: TimeFilter = None,
    from_date: FromDate = None,
    to_date: ToDate = None,
) -> MemoryRows:
    """List the memories, newest first"""
    conditions = narrowed(
        mind,
        types=types,
        tags=tags,
        time_filter=time_filter,
        from_date=from_date,
        to_date=to_date,
    )
    page = recall.listing(mind, narrowed=conditions, sort=sort, limit=limit, offset=offset)
    rows = tuple(_row(mind, record) for record in page.records)
    unreadable = len(upkeep.problems(mind))
    return MemoryRows(memories=rows, total=page.total, offset=offset, unreadable=unreadable or None)


def _row(mind: Mind, record: Record) -> MemoryRow:
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
        private=record.place.private or None,
    )
