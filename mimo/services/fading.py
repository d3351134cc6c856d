"""How strong memories are, which of them are about to be forgotten, and keeping them from it."""

from collections.abc import Mapping, Sequence

from mimo.domain import decay
from mimo.domain.decay import Use
from mimo.domain.memory import Record
from mimo.domain.query import Filter
from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import accesses, capture, recall
from mimo.services.recall import Page


@frozen
class Fading:
    """A memory that is at risk of being forgotten."""

    record: Record
    score: float
    days: float
    """Until it is forgotten, from now; infinite for never."""
    use: Use | None


@frozen
class AtRisk:
    """The memories at risk, weakest first, and how many memories were examined."""

    fading: tuple[Fading, ...]
    checked: int


def scores(mind: Mind, records: Sequence[Record]) -> list[float]:
    """Returns the decay score of each memory, 0..1."""
    return _scores(mind, records, accesses.uses(mind))


def _scores(mind: Mind, records: Sequence[Record], uses: Mapping[str, Use]) -> list[float]:
    rate, now = mind.config["decay.rate"], mind.now()
    return [decay.strength(one, now=now, use=uses.get(one.memory.id), rate=rate) for one in records]


def strongest_first(mind: Mind, *, narrowed: Filter, limit: int, offset: int = 0) -> Page:
    """Returns one page of the memories sorted by their decay score, strongest first."""
    everything = recall.listing(mind, narrowed=narrowed, limit=-1)
    ranked = sorted(
        zip(everything.records, scores(mind, everything.records), strict=True),
        key=lambda pair: -pair[1],
    )
    page = tuple(record for record, _ in ranked[offset : offset + limit])
    return Page(records=page, total=everything.total)


def at_risk(mind: Mind, threshold: float) -> AtRisk:
    """Returns all memories that are not protected and have a score below `threshold`."""
    config, uses = mind.config, accesses.uses(mind)
    records = recall.listing(mind, narrowed=Filter(), limit=-1).records
    weak = []
    for record, score in zip(records, _scores(mind, records, uses), strict=True):
        if score < threshold and not decay.is_protected(record):
            days = decay.days_until_forgotten(
                score, floor=config["decay.floor"], rate=config["decay.rate"]
            )
            use = uses.get(record.memory.id)
            weak.append(Fading(record=record, score=score, days=days, use=use))
    weak.sort(key=lambda one: (one.score, one.record.memory.id))
    return AtRisk(fading=tuple(weak), checked=len(records))


def keep(mind: Mind, wanted: str, *, keep: bool) -> Record:
    """Protects a memory from fading, or lets it fade, and returns it as it is now.

    Its file says so only where its type does not. Raises `Invalid` for what mind only reads.
    """
    record = recall.one(mind, wanted)
    if not record.place.owned:
        raise _only_read(record)
    protected = None if record.memory.type.protected is keep else keep
    if record.memory.protected is protected:
        return record
    return capture.edit(mind, record, protected=protected)


def _only_read(record: Record) -> Invalid:
    path = record.place.path
    if record.place.elsewhere:
        return Invalid(
            f"`{path}` is a document of the project, which mind only reads",
            hint="such documents do not fade, unless `protected: false` stands in their header",
        )
    return Invalid(
        f"`{path}` is a document that mind only reads",
        hint=f"write `protected: true` into its header: mind edit {record.memory.id}",
    )
