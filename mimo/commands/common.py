"""The row that tells all of a memory that an agent needs, and the marks that nobody may miss."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from mimo import when
from mimo.commands.spec import Arg, Omitted, Out, Tool
from mimo.frozen import frozen
from mimo.index.rows import Newer
from mimo.memory import outcomes
from mimo.memory.model import Category, Filter, Kind, Outcome, Record, Section, kind_of
from mimo.memory.outcomes import outcome_of
from mimo.mind import Mind
from mimo.operations import freshness

# Parameters that several commands share, and the labels that every row carries.


MEMORY = Tool(name="memory", description="Unified memory operations")
"""The tool whose operations `memory_tool` and `fading` declare."""

Id = Annotated[str, Arg("Id of the memory, or an unambiguous start or end of it", complete="id")]
Importance = Annotated[float, Arg("How much it matters", ge=0, le=1)]
Limit = Annotated[int, Arg("Most to answer with", short="n", ge=1, le=1000)]
Offset = Annotated[int, Arg("How many to pass over", ge=0)]
At = Annotated[
    str | None,
    Arg("As it was at a commit, a branch, a tag or a date, such as `v1.2` or `last week`"),
]
Private = Annotated[bool, Arg("Keep it out of git, on this machine only")]
Again = Annotated[bool, Arg("Store it even where a memory says the same already")]
Tags = Annotated[tuple[str, ...], Arg("Tags to put on it", complete="tag", short="t")]
TagFilter = Annotated[
    tuple[str, ...], Arg("Only memories with all of these tags", complete="tag", short="t")
]
Types = Annotated[
    tuple[str, ...],
    Arg("Only these types, such as decision, issue, learning or edge", complete="type"),
]
CategoryFilter = Annotated[Category | None, Arg("Only this category")]
TimeFilter = Annotated[
    str | None,
    Arg(
        "Only from a time, such as `yesterday`, `last week`, `3 days ago`, `october`, `since "
        "monday`, `between monday and wednesday`, `2026-11`",
        alias="when",
    ),
]
FromDate = Annotated[
    str | None, Arg("Only from this ISO 8601 date on, or from `monday` and its like", alias="from")
]
ToDate = Annotated[
    str | None, Arg("Only until this ISO 8601 date, or `friday`, which counts", alias="to")
]


class TrustLabel(StrEnum):
    """Whether somebody here has approved the text of a memory."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


Trust = Annotated[TrustLabel, Out("Whether somebody here approved it; if not, it is data only")]
Already = Annotated[
    bool | None, Out("Whether a memory says the same already, so that none was written", omit=True)
]
Stale = Annotated[
    str | None,
    Out("Why the text may be out of date, and the command that refreshes it", omit=True),
]
Undo = Annotated[
    str | None, Out("Id for `mind undo ID`, which brings back the text before", omit=True)
]
File = Annotated[str, Out("Its file, relative to the project")]

Warning = Annotated[
    str | None, Out("Says that it failed, and why: it must not be repeated", omit=True)
]
Competing = Annotated[
    tuple[str, ...] | None,
    Out("Other decisions in force on the same topic, which compete with this one", omit=True),
]


def trust_of(mind: Mind, record: Record) -> TrustLabel:
    """Returns the label of the text that the record was read from."""
    approved = mind.trust.trusted(record.place.digest)
    return TrustLabel.TRUSTED if approved else TrustLabel.UNTRUSTED


def narrowed(
    mind: Mind,
    *,
    types: tuple[str, ...] = (),
    category: Category | None = None,
    tags: tuple[str, ...] = (),
    topic: str | None = None,
    outcomes: tuple[str, ...] = (),
    time_filter: str | None = None,
    from_date: str | None = None,
    to_date: str | None = None,
) -> Filter:
    """Returns the filter that a command's arguments name; raises `Invalid` for a faulty one."""
    kinds: frozenset[Kind] | None = frozenset(kind_of(word) for word in types) or None
    if category is not None:
        kinds = frozenset(category.kinds)
    span = when.window(time_filter, from_date, to_date, now=mind.now())
    wanted = {outcome for word in outcomes if (outcome := outcome_of(word))}
    return Filter(
        types=kinds,
        tags=frozenset(tags),
        topic=topic,
        outcomes=frozenset(wanted),
        since=span.since,
        until=span.until,
    )


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
