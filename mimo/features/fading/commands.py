"""How strong the memories are, which are about to be forgotten, and keeping them from it."""

from datetime import datetime
from math import isfinite
from typing import Annotated

from mimo.commands.common import MEMORY, File, Id, Limit, Trust, trust_of
from mimo.commands.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import AmbiguousId, Conflict, Invalid, NotFound, StorageFailed
from mimo.frozen import frozen
from mimo.memory import decay
from mimo.memory.model import Category, Kind
from mimo.mind import Mind
from mimo.operations import overview
from mimo.operations.overview import Fading

Threshold = Annotated[float, Arg("Report memories below this score", ge=0, le=1)]
Score = Annotated[float, Out("Strength that is left, 0 to 1")]
Days = Annotated[
    float | None, Out("From now; 0 where it already counts as forgotten, null for never")
]


@frozen
class CategoryCounts:
    """The number of memories in each category."""

    fact: int
    observation: int
    action: int
    plan: int


@frozen
class MemoryStats:
    """Exact counts and averages over every memory."""

    total_memories: int
    by_category: CategoryCounts
    avg_importance: float
    avg_decay_score: float
    at_risk_count: int
    oldest: datetime | None
    newest: datetime | None


@frozen
class FadingMemory:
    """A memory that is at risk of being forgotten."""

    id: str
    content: str
    decay_score: Score
    trust: Trust
    days_until_forgotten: Days


@frozen
class DecayCheck:
    """The memories at risk, weakest first."""

    at_risk: tuple[FadingMemory, ...]
    threshold: float
    total_checked: Annotated[int, Out("How many memories were examined, whatever the limit")]


@frozen
class FadingRow:
    """A memory that is about to be forgotten, and how it was used."""

    id: str
    type: Kind
    title: str
    strength: Score
    days_left: Days
    uses: Annotated[int, Out("How often it was found or shown on this machine")]
    last_used: Omitted[datetime]
    created_at: datetime
    trust: Trust
    file: File


@frozen
class FadingRows:
    """The memories that are about to be forgotten, weakest first."""

    memories: tuple[FadingRow, ...]
    threshold: float
    total: Annotated[int, Out("How many are below the threshold, whatever the limit")]
    forgotten: Annotated[int, Out("How many of those count as forgotten")]
    checked: Annotated[int, Out("How many memories were examined")]
    notice: Omitted[str] = None


@frozen
class Kept:
    """Whether a memory fades from now on."""

    id: str
    title: str
    protected: Annotated[bool, Out("Whether it never fades")]
    file: File
    notice: Omitted[str] = None


@command(
    MEMORY,
    operation="stats",
    effect=Effect.READ,
    toolset="memory",
    examples=("mind memory stats",),
)
def stats(mind: Mind) -> MemoryStats:
    """Count the memories and say how strong they are"""
    counted = overview.overview(mind)
    totals = {
        category.value: sum(counted.by_type.get(kind, 0) for kind in category.kinds)
        for category in Category
    }
    return MemoryStats(
        total_memories=counted.total,
        by_category=CategoryCounts(**totals),
        avg_importance=round(counted.average_importance, 4),
        avg_decay_score=round(counted.average_decay, 4),
        at_risk_count=counted.at_risk,
        oldest=counted.oldest,
        newest=counted.newest,
    )


@command(
    MEMORY,
    operation="decay_check",
    effect=Effect.READ,
    toolset="memory",
    errors=(Invalid,),
    examples=("mind memory decay-check --threshold 0.2",),
)
def decay_check(
    mind: Mind, *, threshold: Threshold = decay.AT_RISK, limit: Limit = 50
) -> DecayCheck:
    """Show the memories that are about to be forgotten"""
    weak = overview.at_risk(mind, threshold)
    rows = tuple(_at_risk(mind, one) for one in weak.fading[:limit])
    return DecayCheck(at_risk=rows, threshold=threshold, total_checked=weak.checked)


@command(
    "mind_fading",
    cli="fading",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid,),
    examples=("mind fading", "mind fading --threshold 0.3 -n 5"),
)
def fading(mind: Mind, *, threshold: Threshold = decay.AT_RISK, limit: Limit = 20) -> FadingRows:
    """Show what is about to be forgotten, weakest first

    A memory fades from the day on which it was last found or shown. Nothing is ever deleted for
    it: `mind keep ID` protects what still matters, `mind rm ID` removes what does not. Decisions,
    checkpoints, edges and documents outside `.mind/` do not fade.
    """
    weak = overview.at_risk(mind, threshold)
    return FadingRows(
        memories=tuple(_row(mind, one) for one in weak.fading[:limit]),
        threshold=threshold,
        total=len(weak.fading),
        forgotten=sum(one.days == 0 for one in weak.fading),
        checked=weak.checked,
        notice=mind.notice,
    )


@command(
    "mind_keep",
    cli="keep",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    errors=(Invalid, NotFound, AmbiguousId, Conflict, StorageFailed),
    examples=("mind keep k3v7mq", "mind keep k3v7mq --off"),
)
def keep(mind: Mind, id: Id, *, off: Annotated[bool, Arg("Let it fade again")] = False) -> Kept:
    """Protect a memory from fading

    Its file then says `protected: true`; with --off it says `protected: false` where its type
    would be protected, and nothing otherwise.
    """
    record = overview.keep(mind, id, keep=not off)
    return Kept(
        id=record.memory.id,
        title=record.memory.heading,
        protected=decay.is_protected(record),
        file=record.place.path,
        notice=mind.notice,
    )


def _at_risk(mind: Mind, one: Fading) -> FadingMemory:
    return FadingMemory(
        id=one.record.memory.id,
        content=one.record.memory.text,
        decay_score=round(one.score, 4),
        trust=trust_of(mind, one.record),
        days_until_forgotten=_days(one),
    )


def _row(mind: Mind, one: Fading) -> FadingRow:
    memory = one.record.memory
    return FadingRow(
        id=memory.id,
        type=memory.type,
        title=memory.heading,
        strength=round(one.score, 4),
        days_left=_days(one),
        uses=one.use.times if one.use else 0,
        last_used=one.use.last if one.use else None,
        created_at=memory.created,
        trust=trust_of(mind, one.record),
        file=one.record.place.path,
    )


def _days(one: Fading) -> float | None:
    return round(one.days, 2) if isfinite(one.days) else None
