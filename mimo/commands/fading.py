"""How strong the memories are: the `memory` tool's statistics and its check for fading ones."""

from datetime import datetime
from math import isfinite
from typing import Annotated

from mimo.commands.common import Limit, Trust, trust_of
from mimo.commands.memory import MEMORY
from mimo.commands.spec import Arg, Effect, command
from mimo.commands.types import Out
from mimo.domain import decay
from mimo.domain.memory import Category, Record
from mimo.domain.query import Filter
from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import overview, recall


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
    decay_score: float
    trust: Trust
    days_until_forgotten: Annotated[
        float | None, Out("From now; 0 where it already counts as forgotten, null for never")
    ]


@frozen
class DecayCheck:
    """The memories at risk, weakest first."""

    at_risk: tuple[FadingMemory, ...]
    threshold: float
    total_checked: Annotated[int, Out("How many memories were examined, whatever the limit")]


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
    mind: Mind,
    *,
    threshold: Annotated[float, Arg("Report memories below this score", ge=0, le=1)] = (
        decay.AT_RISK
    ),
    limit: Limit = 50,
) -> DecayCheck:
    """Show the memories that are about to be forgotten"""
    everything = recall.listing(mind, narrowed=Filter(), limit=-1)
    weak = [
        (strength, record)
        for record in everything.records
        if not decay.is_protected(record.memory)
        and (strength := recall.strength(mind, record)) < threshold
    ]
    weak.sort(key=lambda pair: (pair[0], pair[1].memory.id))
    rows = tuple(_fading(mind, strength, record) for strength, record in weak[:limit])
    return DecayCheck(at_risk=rows, threshold=threshold, total_checked=everything.total)


def _fading(mind: Mind, strength: float, record: Record) -> FadingMemory:
    config = mind.config
    left = decay.days_until_forgotten(
        strength, floor=config["decay.floor"], rate=config["decay.rate"]
    )
    return FadingMemory(
        id=record.memory.id,
        content=record.memory.text,
        decay_score=round(strength, 4),
        trust=trust_of(mind, record),
        days_until_forgotten=round(left, 2) if isfinite(left) else None,
    )
