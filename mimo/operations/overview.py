"""Statistics of a project's memories, and their decay."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.memory import decay
from mimo.memory.decay import Use
from mimo.memory.model import Kind, Record
from mimo.mind import Mind
from mimo.operations import finding, saving
from mimo.operations.finding import Page

SESSION_GAP = timedelta(minutes=30)
"""Memories further apart than this belong to different sessions."""
STALE_AFTER = timedelta(days=14)
"""The memory of a project is stale if its newest memory is older."""

_RESOLVED = frozenset({"resolved", "closed", "done", "fixed"})


class Health(StrEnum):
    """The state of a project's memory."""

    GOOD = "good"
    STALE = "stale"
    EMPTY = "empty"


@frozen
class Origins:
    """The numbers of memories that are not in files of mind's own."""

    in_place: int
    """Memories in documents that people wrote, read in place."""
    included: int
    """Of these, memories outside `.mind/`."""
    ingested_files: int
    chunks: int

    @classmethod
    def of(cls, records: Sequence[Record]) -> "Origins":
        """Returns the origins of some memories."""
        whole = [record.place for record in records if record.parent is None]
        chunks = [record.place for record in records if record.parent is not None]
        return cls(
            in_place=sum(place.elsewhere or not place.owned for place in whole),
            included=sum(place.elsewhere for place in whole),
            ingested_files=len({place.path for place in chunks}),
            chunks=len(chunks),
        )


@frozen
class Overview:
    """The counts and averages of a project's memories."""

    by_type: dict[Kind, int]
    issues_resolved: int
    sessions: int
    oldest: datetime | None
    newest: datetime | None
    """The newest memory that is not dated in the future."""
    average_importance: float
    average_decay: float
    at_risk: int
    origins: Origins

    @property
    def total(self) -> int:
        """Returns the number of memories."""
        return sum(self.by_type.values())

    def health(self, now: datetime) -> Health:
        """Returns the state of the memory at `now`."""
        if self.newest is None:
            return Health.EMPTY
        return Health.STALE if now - self.newest > STALE_AFTER else Health.GOOD


def everything(mind: Mind) -> tuple[Record, ...]:
    """Returns every memory of the project, newest first."""
    return finding.listing(mind).records


def overview(mind: Mind) -> Overview:
    """Returns exact counts and averages over every memory of the project."""
    records, now = everything(mind), mind.now()
    memories = [record.memory for record in records]
    times = sorted(memory.created for memory in memories)
    gaps = sum(later - earlier > SESSION_GAP for earlier, later in pairwise(times))
    strengths = scores(mind, records)
    return Overview(
        by_type=dict(Counter(memory.type for memory in memories)),
        issues_resolved=sum(
            memory.type is Kind.ISSUE and (memory.status or "").lower() in _RESOLVED
            for memory in memories
        ),
        sessions=gaps + 1 if times else 0,
        oldest=times[0] if times else None,
        newest=next((time for time in reversed(times) if time <= now), None),
        average_importance=_mean([memory.importance for memory in memories]),
        average_decay=_mean(strengths),
        at_risk=sum(
            strength < decay.AT_RISK and not decay.is_protected(record)
            for record, strength in zip(records, strengths, strict=True)
        ),
        origins=Origins.of(records),
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


# Decay: scores, memories at risk, and protection.


@frozen
class Fading:
    """A memory at risk of being forgotten."""

    record: Record
    score: float
    days: float
    """The days until it is forgotten; infinite for never."""
    use: Use | None


@frozen
class AtRisk:
    """The memories at risk, weakest first, and how many memories were examined."""

    fading: tuple[Fading, ...]
    checked: int


def scores(mind: Mind, records: Sequence[Record]) -> list[float]:
    """Returns the decay score of each memory, 0..1."""
    return _scores(mind, records, finding.uses(mind))


def _scores(mind: Mind, records: Sequence[Record], uses: Mapping[str, Use]) -> list[float]:
    rate, now = mind.config["decay.rate"], mind.now()
    return [
        decay.strength(record, now=now, use=uses.get(record.memory.id), rate=rate)
        for record in records
    ]


def strongest_first(mind: Mind, options: finding.Options) -> Page:
    """Returns one page of the memories sorted by their decay score, strongest first."""
    everything = finding.listing(mind, finding.Options(filter=options.filter))
    ranked = sorted(
        zip(everything.records, scores(mind, everything.records), strict=True),
        key=lambda pair: -pair[1],
    )
    page = tuple(record for record, _ in ranked[options.offset : options.offset + options.limit])
    return Page(records=page, total=everything.total)


def at_risk(mind: Mind, threshold: float) -> AtRisk:
    """Returns all memories that are not protected and have a score below `threshold`."""
    config, uses = mind.config, finding.uses(mind)
    records = finding.listing(mind).records
    weak = []
    for record, score in zip(records, _scores(mind, records, uses), strict=True):
        if score < threshold and not decay.is_protected(record):
            days = decay.days_until_forgotten(
                score, floor=config["decay.floor"], rate=config["decay.rate"]
            )
            use = uses.get(record.memory.id)
            weak.append(Fading(record=record, score=score, days=days, use=use))
    weak.sort(key=lambda fading: (fading.score, fading.record.memory.id))
    return AtRisk(fading=tuple(weak), checked=len(records))


def keep(mind: Mind, wanted: str, *, keep: bool) -> Record:
    """Protects a memory from fading, or ends the protection, and returns the changed memory.

    Its file states the protection only if that differs from its type's. Raises `Invalid` for a file
    that mind only reads.
    """
    record = finding.one(mind, wanted)
    path = record.place.path
    if record.place.elsewhere and not record.place.owned:
        raise Invalid(
            f"`{path}` is a document of the project, which mind only reads",
            hint="such documents do not fade, unless their header has `protected: false`",
        )
    if not record.place.owned:
        raise Invalid(
            f"`{path}` is a document that mind only reads",
            hint=f"add `protected: true` to its header: `mind edit {record.memory.id}`",
        )
    protected = None if record.memory.type.protected is keep else keep
    if record.memory.protected is protected:
        return record
    return saving.edit(mind, record, protected=protected)
