"""Parameters that several commands share, and the labels that every row carries."""

from enum import StrEnum
from typing import Annotated

from mimo.commands.spec import Arg
from mimo.commands.types import Out
from mimo.domain import when
from mimo.domain.memory import Category, Kind, Record, kind_of
from mimo.domain.outcomes import outcome_of
from mimo.domain.query import Filter
from mimo.mind import Mind

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
