"""Counting what there is: for `status` and for the `memory` tool's stats."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from mimo.domain import decay
from mimo.domain.memory import Kind, Memory, Record
from mimo.domain.query import Filter
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import fading, recall

SESSION_GAP = timedelta(minutes=30)
"""Activity further apart than this belongs to different sessions."""
STALE_AFTER = timedelta(days=14)
"""A project with nothing newer than this has stale memory."""

_RESOLVED = frozenset({"resolved", "closed", "done", "fixed"})


class Health(StrEnum):
    """How alive a project's memory is."""

    GOOD = "good"
    STALE = "stale"
    EMPTY = "empty"


@frozen
class Origins:
    """Which memories are not kept by mind itself, each in a file of its own."""

    in_place: int
    """In documents that people wrote, read where they are."""
    included: int
    """Of these, outside `.mind/`."""
    ingested_files: int
    chunks: int

    @classmethod
    def of(cls, records: Sequence[Record]) -> "Origins":
        """Returns where memories come from."""
        whole = [one.place for one in records if one.parent is None]
        chunks = [one.place for one in records if one.parent is not None]
        return cls(
            in_place=sum(place.elsewhere or not place.owned for place in whole),
            included=sum(place.elsewhere for place in whole),
            ingested_files=len({place.path for place in chunks}),
            chunks=len(chunks),
        )


@frozen
class Overview:
    """What a project's memory holds."""

    by_type: dict[Kind, int]
    issues_resolved: int
    sessions: int
    oldest: datetime | None
    newest: datetime | None
    """The newest that is not dated in the future."""
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
    return recall.listing(mind, narrowed=Filter(), limit=-1).records


def overview(mind: Mind) -> Overview:
    """Returns exact counts and averages over every memory of the project."""
    records, now = everything(mind), mind.now()
    memories = [record.memory for record in records]
    times = sorted(memory.created for memory in memories)
    strengths = fading.scores(mind, records)
    return Overview(
        by_type=dict(Counter(memory.type for memory in memories)),
        issues_resolved=sum(_is_resolved(memory) for memory in memories),
        sessions=_sessions(times),
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


def _is_resolved(memory: Memory) -> bool:
    return memory.type is Kind.ISSUE and (memory.status or "").lower() in _RESOLVED


def _sessions(times: list[datetime]) -> int:
    """Returns how many groups the sorted times fall into, split at each gap."""
    gaps = sum(later - earlier > SESSION_GAP for earlier, later in pairwise(times))
    return gaps + 1 if times else 0


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
