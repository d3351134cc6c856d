"""Decisions: the current one on a topic, superseding, outcomes; and checkpoints of the work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from enum import StrEnum

from mimo.call import Call
from mimo.errors import (
    AmbiguousId,
    Command,
    Hint,
    Invalid,
    NotFound,
    Option,
    StorageFailed,
    join_texts,
)
from mimo.frozen import frozen, replace
from mimo.memory import outcomes
from mimo.memory.model import SUPERSEDES, Filter, Kind, Link, Memory, Outcome, Record, Section
from mimo.operations import consent, disclosure, finding, lookup, refresh, saving
from mimo.project import git


@frozen
class Saved:
    """A new decision, and the ids of those that it supersedes."""

    record: Record
    supersedes: tuple[str, ...]
    already: bool = False
    """True if an identical decision existed, so that none was written."""
    notice: str | None = None


def find(call: Call, reference: str) -> Record:
    """Returns the memory with that id, the current decision on that topic, or that of a cut id.

    Raises `AmbiguousId` if several decisions on the topic compete, and `NotFound`.
    """
    index = refresh.up_to_date(call)
    exact = index.get(reference)
    if exact:
        return exact
    on_topic = index.current(reference)
    lookup.check_alone(call, reference, on_topic)
    if on_topic:
        return on_topic[0]
    try:
        return lookup.one(call, reference, surely=True)
    except NotFound as error:
        if not error.details["nearest"] and (near := lookup.like_topic(call, reference)):
            error.hint = near
        raise


def newest(call: Call, reference: str) -> Record:
    """Returns the memory that `find` returns, or the newest of the decisions that compete."""
    try:
        return find(call, reference)
    except AmbiguousId:
        on_topic = refresh.up_to_date(call).current(reference)
        if not on_topic:
            raise
        return on_topic[0]


def _chosen_reference(call: Call, reference: str) -> str:
    """Returns the reference to a decision, or the id of the one that the client's user chooses.

    The user is asked if several decisions on the topic compete; the chosen one supersedes them.
    """
    if not consent.can_ask(call) or (index := refresh.up_to_date(call)).get(reference):
        return reference
    on_topic = index.current(reference)
    if len(on_topic) < 2:
        return reference
    from mimo.features import review

    return review.choose(call, on_topic) or reference


def save(
    call: Call, draft: Memory, *, private: bool = False, keep: bool = False, again: bool = False
) -> Saved:
    """Stores a decision that supersedes the current ones on its topic, unless `keep` is set.

    An exact duplicate of a current decision, with the same reasons, is not stored unless `again` is
    set. A decision that is not approved is not superseded, unless the draft itself links to it: the
    user has not seen it, so it must not disappear silently. Neither is a private one, unless the
    new decision is private: the link would put its id into a file that git shares. The shared
    decision that a private one replaced is superseded then, since a clone has only the shared ones.
    """
    with saving.in_turn(call) if again else nullcontext():
        return _save(call, draft, private=private, keep=keep, again=again)


def _save(call: Call, draft: Memory, *, private: bool, keep: bool, again: bool) -> Saved:
    """Stores a decision as `save` does. To store it `again`, hold `in_turn`."""
    left: list[str] = []

    def write() -> Record:
        replaced = [link.to for link in draft.links if link.type == SUPERSEDES]
        other_links = [link for link in draft.links if link.type != SUPERSEDES]
        olds: tuple[Record, ...] = ()
        if draft.topic and not keep:
            # A document that was added elsewhere may be on the topic, too.
            (refresh.refresh if call.mind.store.include else refresh.refresh_roughly)(call)
            olds = call.index.current(draft.topic, unapproved=True)
            if refresh.reread(call, olds):
                olds = call.index.current(draft.topic, unapproved=True)
        for old in olds:
            id = old.memory.id
            reason: str | None = None
            if not call.mind.trust.trusted(old.place.approval):
                reason = Hint("it is not approved (", Command("review"), " shows it)")
            elif old.place.private and not private:
                reason = Hint(
                    "it is private, and a shared file must not name it (",
                    Option(private=True),
                    " supersedes it)",
                )
            if reason is None:
                replaced.append(id)
            elif id not in {link.to for link in draft.links}:
                name = disclosure.names_of(call, [id])[0]
                left.append(Hint(f"`{name}` is not superseded: ", reason))
        if draft.topic and not keep and not private:
            # These may be superseded by private decisions.
            in_clones = call.index.current(draft.topic, shared=True)
            approved = (old for old in in_clones if call.mind.trust.trusted(old.place.approval))
            replaced += [old.memory.id for old in approved]
        links = [Link(to=id, type=SUPERSEDES, confidence=1.0) for id in dict.fromkeys(replaced)]
        return saving.store(call, replace(draft, links=(*other_links, *links)), private=private)

    stored = saving.store_once(call, draft, write, private=private, again=again)
    links = () if stored.already else stored.record.memory.links
    return Saved(
        record=stored.record,
        supersedes=tuple(link.to for link in links if link.type == SUPERSEDES),
        already=stored.already,
        notice=join_texts(stored.notice, *left),
    )


def supersede(
    call: Call, reference: str, draft: Memory, *, reason: str | None, private: bool = False
) -> Saved:
    """Stores `draft` in place of a memory, with that memory's type, topic, tags and importance.

    The old memory stays unchanged. A memory that supersedes a private one is private, too. Of an
    unapproved memory only type and topic are copied. Raises `Invalid` if it is already superseded.
    """
    reference = _chosen_reference(call, reference)
    with saving.in_turn(call):
        old = find(call, reference)
        approved = call.mind.trust.trusted(old.place.approval)
        hidden = private or old.place.private
        # A clone does not have the private memories, so they do not count for a shared one.
        of_old = call.index.newer((old.memory.id,), shared=not hidden)[old.memory.id]
        if newer := of_old.successor:
            this, by = disclosure.names_of(call, [old.memory.id, newer])
            raise Invalid(
                f"`{this}` is superseded already, by `{by}`",
                hint=f"supersede `{by}`, or mark how it turned out",
                details={"superseded_by": by},
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
        return _save(call, new, private=hidden, keep=True, again=True)


def conclude(
    call: Call, reference: str, outcome: Outcome | None, reason: str | None
) -> tuple[Record, float]:
    """Records in its file how a decision turned out, and adjusts its confidence.

    Returns the changed decision, and its confidence before. Raises `Invalid` for a failure without
    a reason, for another memory than a decision, and for a document that mind only reads.
    """
    outcomes.check_reason(outcome, reason, field="reason")
    record = find(call, _chosen_reference(call, reference))
    saving.check_changeable(record)
    if not record.place.owned:
        raise Invalid(
            f"`{record.place.path}` is a document that mind only reads",
            hint=Hint(
                "note the outcome in it with ",
                Command("edit"),
                ", or save a decision that supersedes it",
            ),
        )
    memory, now = record.memory, call.mind.now()
    # An outcome that an earlier version noted for another memory can be removed.
    if memory.type is not Kind.DECISION and outcome is not None:
        raise Invalid(
            f"`{memory.id}` is not a decision but of the type {memory.type.value}",
            hint=Hint(
                "replace it with ",
                Command("evolve supersede"),
                ", or save a decision with its outcome",
            ),
        )
    previous = outcomes.DEFAULT_CONFIDENCE if memory.confidence is None else memory.confidence
    after = outcomes.confidence_after(memory, outcome, now)
    line = outcomes.entry(outcome, reason, on=now, previous=previous, after=after)
    sections = outcomes.with_entry(memory, line)
    confidence = after if after != previous else memory.confidence
    changed = saving.edit(call, record, outcome=outcome, confidence=confidence, sections=sections)
    return changed, previous


# Checkpoints.


ARCHIVED = "archived"
"""The status of a checkpoint that is not resumed any more."""

_PAGE = 100


class Whose(StrEnum):
    """The place where a checkpoint was made."""

    BRANCH = "this branch"
    MACHINE = "this machine"
    ELSEWHERE = "elsewhere"


@frozen
class Resumed:
    """The checkpoint to resume from, and where it was made."""

    record: Record
    whose: Whose
    author: str | None = None
    """The author of its commit, if it was made elsewhere."""
    branch: str | None = None
    """The branch that it was made on, if this machine recorded it."""


def save_checkpoint(call: Call, draft: Memory, *, private: bool = False) -> Record:
    """Stores a checkpoint and records, outside the project, that it was made here."""
    record = saving.store(call, draft, private=private)
    claim(call, (record.memory.id,), git.branch(call.mind.project.root))
    return record


def claim(call: Call, ids: Iterable[str], on: str | None) -> None:
    """Records that checkpoints were made on this machine, and on which branch if it is known."""
    try:
        call.mind.trust.add_checkpoints(ids, on)
    except StorageFailed as error:
        # The checkpoint itself is stored; it is only not recognised as made here.
        call.note("checkpoint", f"it will count as made elsewhere: {error.message}")


def latest_checkpoint(call: Call) -> Resumed | None:
    """Returns the newest checkpoint that is not archived.

    In order of preference: one made on this machine and branch, one made on this machine, an
    approved one of another author, one that is not approved.
    """
    branches, here = call.mind.trust.checkpoints(), git.branch(call.mind.project.root)
    trusted = call.mind.trust.checker()
    local = foreign = unapproved = None
    for record in _active(call):
        if not trusted(record.place.approval):
            unapproved = unapproved or record
            continue
        id = record.memory.id
        is_local = id in branches or record.place.private
        if is_local and branches.get(id, here) == here:
            return Resumed(record=record, whose=Whose.BRANCH, branch=here)
        local = local or (record if is_local else None)
        foreign = foreign or record
    if local:
        return Resumed(record=local, whose=Whose.MACHINE, branch=branches.get(local.memory.id))
    if fallback := foreign or unapproved:
        author = git.author_of(call.mind.project.root, fallback.place.path)
        return Resumed(record=fallback, whose=Whose.ELSEWHERE, author=author)
    return None


def _active(call: Call) -> Iterator[Record]:
    """Yields the checkpoints that can be resumed, newest first."""
    kinds, offset = Filter(types=frozenset({Kind.CHECKPOINT})), 0
    while True:
        page = finding.listing(call, finding.Options(filter=kinds, limit=_PAGE, offset=offset))
        for record in page.records:
            if (record.memory.status or "").lower() != ARCHIVED:
                yield record
        offset += _PAGE
        if offset >= page.total:
            return
