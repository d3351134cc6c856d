"""Statistics of a project's memories, and their decay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from mimo.call import Call
from mimo.errors import Command, Hint, Invalid
from mimo.frozen import NamedTuple, frozen, replace
from mimo.index import survey
from mimo.index.schema import to_number, to_time
from mimo.index.survey import Age, Origins
from mimo.memory import decay
from mimo.memory.decay import Use
from mimo.memory.ids import handle_of
from mimo.memory.model import Filter, Kind, Record
from mimo.operations import finding, lookup, refresh, saving
from mimo.operations.finding import Page
from mimo.project.walk import LOG, SUFFIXES

_SESSION_GAP = timedelta(minutes=30) // timedelta(microseconds=1)
"""Memories further apart than this belong to different sessions; in microseconds."""
STALE_AFTER = timedelta(days=14)
"""The memory of a project is stale if its newest memory is older."""

_STATEMENTS = frozenset({Kind.FACT, Kind.INSIGHT, Kind.ISSUE})
"""The types of statements in the log that fade unless their line begins with `KEY:`."""
_RESOLVED = frozenset({"resolved", "closed", "done", "fixed"})


class Health(StrEnum):
    """The state of a project's memory."""

    GOOD = "good"
    STALE = "stale"
    EMPTY = "empty"


@frozen
class Overview:
    """The counts of a project's memories."""

    by_type: dict[Kind, int]
    issues_resolved: int
    sessions: int
    oldest: datetime | None
    newest: datetime | None
    """The newest memory that is not dated in the future."""
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


def everything(call: Call) -> tuple[Record, ...]:
    """Returns every memory of the project, newest first."""
    return finding.listing(call).records


def overview(call: Call) -> Overview:
    """Returns exact counts over every memory of the project."""
    index = refresh.up_to_date(call)
    oldest = index.ask(survey.oldest)
    newest = index.latest(to_number(call.mind.now()))
    issues = index.records(Filter(types=frozenset({Kind.ISSUE})))
    return Overview(
        by_type=index.cached(survey.by_type),
        issues_resolved=sum((r.memory.status or "").lower() in _RESOLVED for r in issues),
        sessions=index.cached(survey.sessions, _SESSION_GAP),
        oldest=None if oldest is None else to_time(oldest),
        newest=None if newest is None else to_time(newest),
        origins=index.cached(survey.origins, SUFFIXES),
    )


# Decay: scores, memories at risk, and protection.


@frozen
class Strength:
    """The importance and strength of a project's memories."""

    importance: float
    """The mean; 0 without memories."""
    score: float
    """The mean decay score; 0 without memories."""
    at_risk: int


def strength(call: Call) -> Strength:
    """Returns exact averages over every memory of the project."""
    strengths = _strengths(call)
    return Strength(
        importance=_mean([age.importance for age, _, _ in strengths]),
        score=_mean([score for _, _, score in strengths]),
        at_risk=sum(score < decay.AT_RISK and not age.protected for age, _, score in strengths),
    )


def _strengths(call: Call) -> list[tuple[Age, Use | None, float]]:
    """Returns the age of every memory, its use, and its decay score."""
    ages = refresh.up_to_date(call).ask(survey.ages, call.mind.trust.reviewed())
    uses, rate, now = finding.uses(call), call.mind.config["decay.rate"], call.mind.now()
    strengths = []
    for age in ages:
        use, lasting = uses.get(age.id), 0.0 if age.protected else rate
        created = to_time(age.created)
        score = decay.strength(age.importance, created, now=now, use=use, rate=lasting)
        strengths.append((age, use, score))
    return strengths


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


class Fading(NamedTuple):
    """A memory at risk of being forgotten."""

    score: float
    id: str
    key: int
    days: float
    """The days until it is forgotten; infinite for never."""
    use: Use | None


@frozen
class AtRisk:
    """The memories at risk, weakest first, and how many memories were examined."""

    fading: tuple[Fading, ...]
    checked: int


class Strong(NamedTuple):
    """The strength of a memory."""

    score: float
    protected: bool
    """True if it never fades."""


def scores(call: Call, records: Sequence[Record]) -> list[Strong]:
    """Returns the decay score of each memory, 0..1, and whether it fades."""
    uses, rate, now = finding.uses(call), call.mind.config["decay.rate"], call.mind.now()
    reviewed = call.mind.trust.reviewed()
    results = []
    for record in records:
        memory, protected = record.memory, decay.is_protected(record, reviewed)
        score = decay.strength(
            memory.importance,
            memory.created,
            now=now,
            use=uses.get(memory.id),
            rate=0.0 if protected else rate,
        )
        results.append(Strong(score, protected))
    return results


def strongest_first(call: Call, options: finding.Options) -> Page:
    """Returns one page of the memories sorted by their decay score, strongest first."""
    everything = finding.listing(call, finding.Options(filter=options.filter))
    ranked = sorted(
        zip(everything.records, scores(call, everything.records), strict=True),
        key=lambda pair: -pair[1].score,
    )
    page = tuple(record for record, _ in ranked[options.offset : options.offset + options.limit])
    return Page(records=page, total=everything.total)


def at_risk(call: Call, threshold: float) -> AtRisk:
    """Returns all memories that are not protected and have a score below `threshold`."""
    strengths = _strengths(call)
    floor, rate = call.mind.config["decay.floor"], call.mind.config["decay.rate"]
    weak = [
        Fading(
            score=score,
            id=age.id,
            key=age.key,
            days=decay.days_until_forgotten(score, floor=floor, rate=rate),
            use=use,
        )
        for age, use, score in strengths
        if score < threshold and not age.protected
    ]
    # The weakest first, and equal ones by their ids.
    return AtRisk(fading=tuple(sorted(weak)), checked=len(strengths))


def with_records(call: Call, fading: Sequence[Fading]) -> list[tuple[Fading, Record]]:
    """Returns memories at risk with their records, except deleted ones."""
    records = call.index.ask(survey.records, [item.key for item in fading])
    return [(item, records[item.key]) for item in fading if item.key in records]


def keep(call: Call, reference: str, *, keep: bool) -> Record:
    """Protects a memory from fading, or ends the protection, and returns the changed memory.

    Its file states the protection only if that differs from the default, which an approval on this
    machine does not change. Raises `Invalid` for a file that mind only reads.
    """
    record = lookup.one(call, reference)
    _check_changeable(record, keep=keep)
    path = record.place.path
    if record.place.elsewhere and not record.place.owned:
        raise Invalid(
            f"`{path}` is a document of the project, which mind only reads",
            hint="such documents do not fade, unless their header has `protected: false`",
        )
    if not record.place.owned:
        raise Invalid(
            f"`{path}` is a document that mind only reads",
            hint=Hint(
                "add `protected: true` to its header: ",
                Command("edit", handle_of(record.memory.id)),
            ),
        )
    by_default = replace(record, memory=replace(record.memory, protected=None))
    is_reviewed = decay.is_protected(by_default, call.mind.trust.reviewed())
    is_stated = decay.is_protected(by_default) is not keep or is_reviewed is not keep
    protected = keep if is_stated else None
    if record.memory.protected is protected:
        return record
    return saving.edit(call, record, protected=protected)


def _check_changeable(record: Record, *, keep: bool) -> None:
    """Raises `Invalid` for a memory in a file that mind never changes, with the way to keep it."""
    memory = record.memory
    try:
        saving.check_changeable(record)
    except Invalid as error:
        is_statement = memory.type in _STATEMENTS and not (memory.topic or memory.category)
        if keep and record.place.path == LOG and is_statement:
            error.hint = f"begin line {record.place.line} with `KEY:`, and it does not fade"
        elif keep and decay.is_protected(record):
            error.hint = "it does not fade anyway"
        raise
