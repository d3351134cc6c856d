"""Decisions: what is in force on a topic, how one replaces another, how it turned out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mimo.errors import AmbiguousId, Invalid, NotFound
from mimo.frozen import frozen
from mimo.memory import outcomes
from mimo.memory.model import SUPERSEDES, Link, Memory, Outcome, Record, Section
from mimo.mind import Mind
from mimo.operations import duplicates, finding, refresh, saving


@frozen
class Saved:
    """A new decision, and the ids of those that it supersedes."""

    record: Record
    supersedes: tuple[str, ...]
    already: bool = False
    """Whether it is not new at all."""
    notice: str | None = None


@frozen
class Concluded:
    """A decision of which is known how it turned out, and its confidence before."""

    record: Record
    before: float


def current(mind: Mind, topic: str) -> tuple[Record, ...]:
    """Returns the current decisions on a topic, newest first.

    There is one, unless two branches of git made one each. Those that are not approved are only
    returned if none is approved.
    """
    return refresh.up_to_date(mind).current(topic)


def save(
    mind: Mind, draft: Memory, *, private: bool = False, keep: bool = False, again: bool = False
) -> Saved:
    """Stores a decision that supersedes what was in force on its topic, unless that is kept.

    One in force that says the same, with the same reasons, is left as it is unless `again` is set.
    One that is not approved is left as it is, too, unless the draft itself supersedes it: the user
    has not seen it, so it can't be replaced in silence. So is a private one, unless the new
    decision is private: a link to it would put its id into a file that git shares.
    """
    left: dict[str, str] = {}

    def write() -> Record:
        known = current(mind, draft.topic) if draft.topic and not keep else ()
        reasons = {one.memory.id: _reason_to_leave(mind, one, private=private) for one in known}
        older = [one for one in known if not reasons[one.memory.id]]
        given = {link.to for link in draft.links}
        left.clear()
        left.update((id, reason) for id, reason in reasons.items() if reason and id not in given)
        return saving.store(mind, _superseding(draft, older), private=private)

    told = duplicates.store(mind, draft, write, private=private, again=again)
    links = () if told.already else told.record.memory.links
    return Saved(
        record=told.record,
        supersedes=tuple(link.to for link in links if link.type == SUPERSEDES),
        already=told.already,
        notice=duplicates.notices(told.notice, _left(left)),
    )


def _reason_to_leave(mind: Mind, old: Record, *, private: bool) -> str | None:
    """Returns why a new decision does not supersede an older one on its topic; None if it does."""
    if not mind.trust.trusted(old.place.digest):
        return "it is not approved (`mind review` shows it)"
    if old.place.private and not private:
        return "it is private, and a shared file must not name it (`--private` supersedes it)"
    return None


def _left(reasons: Mapping[str, str]) -> str | None:
    """Returns the notice for decisions on the topic that are not superseded."""
    return "; ".join(f"`{id}` is not superseded: {why}" for id, why in reasons.items()) or None


def _superseding(draft: Memory, older: Sequence[Record]) -> Memory:
    """Returns a draft whose links supersede what they say, and the older decisions."""
    given = [link.to for link in draft.links if link.type == SUPERSEDES]
    replaced = dict.fromkeys([*given, *(one.memory.id for one in older)])
    links = [link for link in draft.links if link.type != SUPERSEDES]
    links += [Link(to=id_, type=SUPERSEDES, confidence=1.0) for id_ in replaced]
    return replace(draft, links=tuple(links))


def find(mind: Mind, wanted: str) -> Record:
    """Returns the memory of that id, the decision in force on that topic, or that of a cut id.

    Raises `AmbiguousId` where several decisions of the topic compete, and `NotFound`.
    """
    whole = refresh.up_to_date(mind).get(wanted)
    if whole:
        return whole
    on_topic = current(mind, wanted)
    if len(on_topic) > 1:
        ids = [record.memory.id for record in on_topic]
        raise AmbiguousId(
            f"{len(ids)} decisions on `{wanted}` compete",
            hint=f"name one: {', '.join(ids[:5])}",
            details={"candidates": ids},
        )
    if on_topic:
        return on_topic[0]
    try:
        return finding.one(mind, wanted, surely=True)
    except NotFound as error:
        topics = mind.index.nearest_topics(wanted)
        if topics and not error.details["nearest"]:
            error.hint = f"did you mean the topic {' or '.join(topics)}?"
        raise


def newest(mind: Mind, wanted: str) -> Record:
    """Returns the memory that `find` finds, or the newest of the decisions that compete."""
    try:
        return find(mind, wanted)
    except AmbiguousId:
        on_topic = current(mind, wanted)
        if not on_topic:
            raise
        return on_topic[0]


def conclude(mind: Mind, wanted: str, outcome: Outcome | None, reason: str | None) -> Concluded:
    """Notes how a decision turned out, in its file, and what that does to its confidence.

    Raises `Invalid` for a failure without a reason, and for a document that mind doesn't keep.
    """
    if outcome is Outcome.FAILED and not (reason and reason.strip()):
        raise Invalid(
            "a failure needs a reason",
            hint="say what went wrong, so that nobody tries it again",
            details={"field": "reason"},
        )
    record = _kept_by_mind(find(mind, wanted))
    memory, now = record.memory, mind.now()
    before = outcomes.DEFAULT_CONFIDENCE if memory.confidence is None else memory.confidence
    after = outcomes.confidence_after(memory, outcome, now)
    line = outcomes.entry(outcome, reason, on=now, before=before, after=after)
    sections = outcomes.with_entry(memory, line)
    confidence = after if after != before else memory.confidence
    changed = saving.edit(mind, record, outcome=outcome, confidence=confidence, sections=sections)
    return Concluded(record=changed, before=before)


def supersede(
    mind: Mind, wanted: str, draft: Memory, *, reason: str | None, private: bool = False
) -> Saved:
    """Stores `draft` in the place of a memory, whose type, topic, tags and importance it takes on.

    The old one stays as it is. What supersedes a private memory is private, too. Of a memory that
    is not approved only type and topic are taken on. Raises `Invalid` where something supersedes it
    already.
    """
    old = find(mind, wanted)
    approved = mind.trust.trusted(old.place.digest)
    if newer := finding.successor(mind, old.memory.id):
        raise Invalid(
            f"`{old.memory.id}` is superseded already, by `{newer}`",
            hint=f"supersede `{newer}`, or mark how it turned out",
            details={"superseded_by": newer},
        )
    why = f"Replaces {old.memory.id}: {reason.strip()}" if reason and reason.strip() else None
    told = "\n\n".join(part for part in (draft.sections.get(Section.REASONING), why) if part)
    link = Link(to=old.memory.id, type=SUPERSEDES, confidence=1.0)
    new = replace(
        draft,
        type=old.memory.type,
        topic=old.memory.topic,
        tags=old.memory.tags if approved else draft.tags,
        importance=old.memory.importance if approved else draft.importance,
        sections={Section.REASONING: told} if told else {},
        links=(*draft.links, link),
    )
    return save(mind, new, private=private or old.place.private, keep=True, again=True)


def _kept_by_mind(record: Record) -> Record:
    if record.place.owned:
        return record
    raise Invalid(
        f"`{record.place.path}` is a document that mind only reads",
        hint="note the outcome in it with `mind edit`, or save a decision that supersedes it",
    )
