"""The row that tells all of a memory that an agent needs, and the marks that nobody may miss."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from mimo.commands.common import Competing, File, Stale, Trust, Warning, trust_of
from mimo.commands.types import Omitted, Out
from mimo.domain import outcomes
from mimo.domain.memory import Kind, Outcome, Record, Section
from mimo.frozen import frozen
from mimo.index.found import Newer
from mimo.mind import Mind
from mimo.services import freshness

MOST_CONTENT = 2_000
"""Characters of a memory's text that a row carries; `load/context` and `mind show` have all."""


@frozen
class Remembered:
    """A memory with all that says whether it still holds."""

    id: str
    type: Kind
    title: str
    content: str
    topic: Omitted[str]
    reasoning: Omitted[str]
    confidence: Omitted[float]
    outcome: Omitted[Outcome]
    warning: Warning
    category: Omitted[str]
    source: Omitted[str]
    status: Omitted[str]
    tags: tuple[str, ...]
    created_at: datetime
    by: Omitted[str]
    related_to: Annotated[tuple[str, ...], Out("Ids of the memories that it links to")]
    superseded_by: Omitted[str]
    competing: Competing
    excerpt: Annotated[Omitted[bool], Out("Whether `content` is cut", omit=True)]
    private: Omitted[bool]
    trust: Trust
    file: File
    stale: Stale = None


def remembered(
    mind: Mind, records: Sequence[Record], *, most: int = MOST_CONTENT
) -> tuple[Remembered, ...]:
    """Returns the rows of records, in their order; no more than `most` characters of content."""
    ids = [record.memory.id for record in records]
    newer, others = mind.index.newer(ids), mind.index.competing(ids)
    stale = freshness.stale(mind, records)
    return tuple(
        _row(
            mind,
            record,
            newer=newer[record.memory.id],
            competing=others.get(record.memory.id),
            stale=stale.get(record.memory.id),
            most=most,
        )
        for record in records
    )


def _row(
    mind: Mind,
    record: Record,
    *,
    newer: Newer,
    competing: tuple[str, ...] | None,
    stale: str | None,
    most: int,
) -> Remembered:
    memory = record.memory
    long = len(memory.content) > most
    return Remembered(
        id=memory.id,
        type=memory.type,
        title=memory.heading,
        content=f"{memory.content[: most - 1]}…" if long else memory.content,
        topic=memory.topic,
        reasoning=memory.sections.get(Section.REASONING),
        confidence=memory.confidence,
        outcome=memory.outcome,
        warning=outcomes.warning(memory, claimed_by=newer.claimant),
        category=memory.category,
        source=memory.source,
        status=memory.status,
        tags=memory.tags,
        created_at=memory.created,
        by=memory.by,
        related_to=tuple(dict.fromkeys(link.to for link in memory.links)),
        superseded_by=newer.successor,
        competing=competing,
        excerpt=long or None,
        private=record.place.private or None,
        trust=trust_of(mind, record),
        file=record.place.path,
        stale=stale,
    )
