"""The strength of memories: `mind fading`, `mind keep`, and two operations of `memory`."""

from datetime import datetime
from math import isfinite
from typing import Annotated

from mimo.call import Call
from mimo.call.spec import Arg, Effect, Needs, Omitted, Out, command, to_json
from mimo.errors import AmbiguousId, Conflict, Invalid, NotFound, StorageFailed
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.memory import decay
from mimo.memory.model import Category, Record
from mimo.operations import overview
from mimo.operations.overview import Fading
from mimo.operations.rows import (
    MEMORY,
    Facts,
    File,
    Id,
    Limit,
    Untrusted,
    facts,
    result_of,
    view,
)
from mimo.rendering import BELOW, LEAST_OF_A_TITLE, Screen, dim, fitted, good, ident, titled, warn
from mimo.rendering.results import (
    count,
    day,
    render,
    row_labels,
    shown,
    type_mark,
)

Threshold = Annotated[float, Arg("Report memories below this score", agents="", ge=0, le=1)]
Score = Annotated[float, Out("Remaining strength, 0 to 1")]
Days = Annotated[float | None, Out("From now; 0 if already forgotten, null for never")]


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


@view("id content decay_score trust days_until_forgotten")
class FadingMemory(Facts):
    """A memory that is at risk of being forgotten."""

    decay_score: Score
    days_until_forgotten: Days


@frozen
class DecayCheck:
    """The memories at risk, weakest first."""

    at_risk: tuple[FadingMemory, ...]
    threshold: float
    total_checked: Annotated[int, Out("Number of memories examined, regardless of the limit")]


@view("id type title strength days_left uses last_used created_at trust private file")
class FadingRow(Facts):
    """A memory that is about to be forgotten, and its use."""

    strength: Score
    days_left: Days
    uses: Annotated[int, Out("Number of times it was found or shown on this machine")]
    last_used: Omitted[datetime]


@frozen
class FadingRows:
    """The memories that are about to be forgotten, weakest first."""

    memories: tuple[FadingRow, ...]
    threshold: float
    total: Annotated[int, Out("Number of memories below the threshold, regardless of the limit")]
    forgotten: Annotated[int, Out("Number of those that count as forgotten")]
    checked: Annotated[int, Out("Number of memories examined")]
    notice: Omitted[str] = None


@frozen
class Kept:
    """A memory that is protected from fading, or no longer is."""

    id: str
    title: str
    protected: Annotated[bool, Out("Whether it never fades")]
    trust: Untrusted
    file: File
    notice: Omitted[str] = None


@command(
    MEMORY,
    operation="stats",
    effect=Effect.READ,
    toolset="memory",
    examples=("mind memory stats",),
)
def stats(call: Call) -> MemoryStats:
    """Count the memories and average their strength"""
    counted, strength = overview.overview(call), overview.strength(call)
    totals = {
        category.value: sum(counted.by_type.get(kind, 0) for kind in category.kinds)
        for category in Category
    }
    return MemoryStats(
        total_memories=counted.total,
        by_category=CategoryCounts(**totals),
        avg_importance=round(strength.importance, 4),
        avg_decay_score=round(strength.score, 4),
        at_risk_count=strength.at_risk,
        oldest=counted.oldest,
        newest=counted.newest,
    )


@command(
    MEMORY,
    operation="decay_check",
    effect=Effect.READ,
    needs=Needs(Operation.READ, like="mind_fading"),
    toolset="memory",
    errors=(Invalid,),
    examples=("mind memory decay-check --threshold 0.2",),
)
def decay_check(
    call: Call, *, threshold: Threshold = decay.AT_RISK, limit: Limit = 50
) -> DecayCheck:
    """List memories that are about to be forgotten"""
    weak = overview.at_risk(call, threshold)
    rows = tuple(
        memory.row(
            FadingMemory,
            content=record.memory.text,
            decay_score=round(item.score, 4),
            days_until_forgotten=_days(item),
        )
        for item, record, memory in _weakest(call, weak, limit, FadingMemory)
    )
    return DecayCheck(at_risk=rows, threshold=threshold, total_checked=weak.checked)


@command(
    "mind_fading",
    cli="fading",
    effect=Effect.READ,
    toolset="extra",
    of_user=True,
    errors=(Invalid,),
    examples=("mind fading", "mind fading --threshold 0.3 -n 5"),
    is_long=True,
)
def fading(call: Call, *, threshold: Threshold = decay.AT_RISK, limit: Limit = 20) -> FadingRows:
    """List memories that are about to be forgotten, weakest first

    A memory fades from the day on which it was last found or shown, at the setting `decay.rate`.
    Fading deletes nothing: keep a memory to protect it, or remove it. Decisions, checkpoints,
    pitfalls, ingested files, documents outside `.mind/`, and memories that the user approved do not
    fade.
    """
    weak = overview.at_risk(call, threshold)
    return FadingRows(
        memories=tuple(
            memory.row(
                FadingRow,
                strength=round(item.score, 4),
                days_left=_days(item),
                uses=item.use.times if item.use else 0,
                last_used=item.use.last if item.use else None,
            )
            for item, _, memory in _weakest(call, weak, limit, FadingRow)
        ),
        threshold=threshold,
        total=len(weak.fading),
        forgotten=sum(item.days == 0 for item in weak.fading),
        checked=weak.checked,
        notice=call.notice,
    )


@command(
    "mind_keep",
    cli="keep",
    effect=Effect.WRITE,
    toolset="extra",
    of_user=True,
    errors=(Invalid, NotFound, AmbiguousId, Conflict, StorageFailed),
    examples=("mind keep k3v7mq", "mind keep k3v7mq --off"),
)
def keep(call: Call, id: Id, *, off: Annotated[bool, Arg("Let it fade again")] = False) -> Kept:
    """Protect a memory from fading

    Sets `protected: true` in its file. `off` removes that, or sets `protected: false` if it does
    not fade by default.
    """
    record = overview.keep(call, id, keep=not off)
    protected = decay.is_protected(record, call.mind.trust.reviewed())
    return result_of(call, record, Kept, protected=protected)


def _weakest(
    call: Call, weak: overview.AtRisk, limit: int, view: type[object]
) -> list[tuple[Fading, Record, Facts]]:
    """Returns the weakest memories, with what the view shows of each."""
    listed = overview.with_records(call, weak.fading[:limit])
    memories = facts(call, [record for _, record in listed], view)
    return [(*item, memory) for item, memory in zip(listed, memories, strict=True)]


def _days(item: Fading) -> float | None:
    return round(item.days, 2) if isfinite(item.days) else None


@render.register
def _(result: MemoryStats, screen: Screen) -> None:
    data = to_json(result)
    counts = data.pop("by_category")
    screen.pairs([(name.replace("_", " "), shown(value)) for name, value in data.items()])
    screen.blank()
    screen.heading("by category")
    screen.pairs([(name, shown(number)) for name, number in counts.items()], indent=2)


@render.register
def _(result: DecayCheck, screen: Screen) -> None:
    for row in result.at_risk:
        left = row.days_until_forgotten
        days = "lasts" if left is None else f"{left:.0f}d left"
        about = dim(f"  {row.decay_score:.2f}  {days:<9}  ")
        headline = row.content.partition("\n")[0]
        screen.line(ident(row.id), about, fitted(headline, LEAST_OF_A_TITLE))
    checked = count(result.total_checked, "memory", "memories")
    screen.line(dim(f"{len(result.at_risk):,} of {checked} below {result.threshold:g}"))


@render.register
def _(result: FadingRows, screen: Screen) -> None:
    for row in result.memories:
        about = (warn(f"  {_left(row):<9}"), dim(f"  {type_mark(row.type)}  "))
        title = fitted(row.title, LEAST_OF_A_TITLE)
        screen.line(ident(row.id), *about, title, *row_labels(row, brief=True))
        if screen.setting.details:
            screen.line(dim(f"strength {row.strength:.2f}, {_use(row)}"), indent=BELOW)
    of = f"{result.total:,} of {count(result.checked, 'memory', 'memories')}"
    lost = f", {result.forgotten:,} of them counted as forgotten" if result.forgotten else ""
    cut = len(result.memories) < result.total
    suffix = f"; the weakest {len(result.memories):,} are shown" if cut else ""
    screen.line(dim(f"{of} below {result.threshold:g}{lost}{suffix}"))
    if result.memories:
        screen.note("`mind keep ID` protects one, `mind rm ID` removes one; fading deletes nothing")


@render.register
def _(result: Kept, screen: Screen) -> None:
    state = "does not fade" if result.protected else "fades"
    title = titled(result.title)
    screen.line(good("✓ "), ident(result.id), "  ", title, *row_labels(result), f"  {state}")


def _left(row: FadingRow) -> str:
    if row.days_left is None:
        return "lasts"
    return f"{round(row.days_left) or 1}d left" if row.days_left else "forgotten"


def _use(row: FadingRow) -> str:
    if row.last_used is None:
        return f"never used here, made {day(row.created_at)}"
    return f"used {count(row.uses, 'time')}, last {day(row.last_used)}"
