"""Decisions: the current one on a topic, how another supersedes it, and how it turned out."""

from collections.abc import Sequence
from dataclasses import replace

from mimo.errors import AmbiguousId, Invalid, NotFound
from mimo.frozen import frozen
from mimo.memory import outcomes
from mimo.memory.model import SUPERSEDES, Link, Memory, Outcome, Record, Section
from mimo.mind import Mind
from mimo.operations import finding, refresh, saving
from mimo.text.phrases import notices


@frozen
class Saved:
    """A new decision, and the ids of those that it supersedes."""

    record: Record
    supersedes: tuple[str, ...]
    already: bool = False
    """True if an identical decision existed, so that none was written."""
    notice: str | None = None


@frozen
class Concluded:
    """A decision with its new outcome, and its confidence before that."""

    record: Record
    before: float


def current(mind: Mind, topic: str) -> tuple[Record, ...]:
    """Returns the current decisions on a topic, newest first.

    There is one, unless two branches of git made one each. Those that are not approved are only
    returned if none is approved.
    """
    return refresh.up_to_date(mind).current(topic)


def find(mind: Mind, wanted: str) -> Record:
    """Returns the memory with that id, the current decision on that topic, or that of a cut id.

    Raises `AmbiguousId` if several decisions on the topic compete, and `NotFound`.
    """
    exact = refresh.up_to_date(mind).get(wanted)
    if exact:
        return exact
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
    """Returns the memory that `find` returns, or the newest of the decisions that compete."""
    try:
        return find(mind, wanted)
    except AmbiguousId:
        on_topic = current(mind, wanted)
        if not on_topic:
            raise
        return on_topic[0]


def save(
    mind: Mind, draft: Memory, *, private: bool = False, keep: bool = False, again: bool = False
) -> Saved:
    """Stores a decision that supersedes the current ones on its topic, unless `keep` is set.

    An exact duplicate of a current decision, with the same reasons, is not stored unless `again` is
    set. A decision that is not approved is not superseded, unless the draft itself links to it: the
    user has not seen it, so it must not disappear silently. Neither is a private one, unless the
    new decision is private: the link would put its id into a file that git shares.
    """
    left: dict[str, str] = {}

    def write() -> Record:
        older = current(mind, draft.topic) if draft.topic and not keep else ()
        reasons = {
            record.memory.id: _reason_to_leave(mind, record, private=private) for record in older
        }
        linked = {link.to for link in draft.links}
        left.clear()
        left.update((id, why) for id, why in reasons.items() if why and id not in linked)
        replaced = [id for id, why in reasons.items() if not why]
        return saving.store(mind, _superseding(draft, replaced), private=private)

    stored = saving.store_once(mind, draft, write, private=private, again=again)
    links = () if stored.already else stored.record.memory.links
    return Saved(
        record=stored.record,
        supersedes=tuple(link.to for link in links if link.type == SUPERSEDES),
        already=stored.already,
        notice=notices(
            stored.notice, *(f"`{id}` is not superseded: {why}" for id, why in left.items())
        ),
    )


def _reason_to_leave(mind: Mind, old: Record, *, private: bool) -> str | None:
    """Returns why a new decision does not supersede an older one on its topic; None if it does."""
    if not mind.trust.trusted(old.place.digest):
        return "it is not approved (`mind review` shows it)"
    if old.place.private and not private:
        return "it is private, and a shared file must not name it (`--private` supersedes it)"
    return None


def _superseding(draft: Memory, older: Sequence[str]) -> Memory:
    """Returns a draft that also supersedes the older decisions."""
    given = [link.to for link in draft.links if link.type == SUPERSEDES]
    links = [link for link in draft.links if link.type != SUPERSEDES]
    links += [
        Link(to=id, type=SUPERSEDES, confidence=1.0) for id in dict.fromkeys([*given, *older])
    ]
    return replace(draft, links=tuple(links))


def supersede(
    mind: Mind, wanted: str, draft: Memory, *, reason: str | None, private: bool = False
) -> Saved:
    """Stores `draft` in place of a memory, with that memory's type, topic, tags and importance.

    The old memory stays unchanged. A memory that supersedes a private one is private, too. Of an
    unapproved memory only type and topic are copied. Raises `Invalid` if it is already superseded.
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
    reasons = [text for text in (draft.sections.get(Section.REASONING), why) if text]
    new = replace(
        draft,
        type=old.memory.type,
        topic=old.memory.topic,
        tags=old.memory.tags if approved else draft.tags,
        importance=old.memory.importance if approved else draft.importance,
        sections={Section.REASONING: "\n\n".join(reasons)} if reasons else {},
        links=(*draft.links, Link(to=old.memory.id, type=SUPERSEDES, confidence=1.0)),
    )
    return save(mind, new, private=private or old.place.private, keep=True, again=True)


def conclude(mind: Mind, wanted: str, outcome: Outcome | None, reason: str | None) -> Concluded:
    """Records in its file how a decision turned out, and adjusts its confidence.

    Raises `Invalid` for a failure without a reason, and for a document that mind only reads.
    """
    if outcome is Outcome.FAILED and not (reason and reason.strip()):
        raise Invalid(
            "a failure needs a reason",
            hint="state what failed, so that it is not tried again",
            details={"field": "reason"},
        )
    record = find(mind, wanted)
    if not record.place.owned:
        raise Invalid(
            f"`{record.place.path}` is a document that mind only reads",
            hint="note the outcome in it with `mind edit`, or save a decision that supersedes it",
        )
    memory, now = record.memory, mind.now()
    before = outcomes.DEFAULT_CONFIDENCE if memory.confidence is None else memory.confidence
    after = outcomes.confidence_after(memory, outcome, now)
    line = outcomes.entry(outcome, reason, on=now, before=before, after=after)
    sections = outcomes.with_entry(memory, line)
    confidence = after if after != before else memory.confidence
    changed = saving.edit(mind, record, outcome=outcome, confidence=confidence, sections=sections)
    return Concluded(record=changed, before=before)
