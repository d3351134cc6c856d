"""Storing what is new: what is here already is pointed to, what is much like it is named."""

from collections.abc import Callable

from mimo.errors import MindError
from mimo.frozen import frozen
from mimo.memory import duplicates, outcomes
from mimo.memory.model import Memory, Record, check_content
from mimo.mind import Mind
from mimo.operations import refresh, saving
from mimo.store.locking import courtesy


@frozen
class Told:
    """A memory that was stored, or was here already."""

    record: Record
    already: bool = False
    notice: str | None = None
    """What whoever stores it must know: that it says the same as another one, or nearly."""


def store(mind: Mind, draft: Memory, *, private: bool = False, again: bool = False) -> Told:
    """Stores a memory unless one in force says the same; `again` stores it all the same."""
    return unless_said(
        mind,
        draft,
        lambda: saving.store(mind, draft, private=private),
        private=private,
        again=again,
    )


def unless_said(
    mind: Mind, draft: Memory, write: Callable[[], Record], *, private: bool, again: bool
) -> Told:
    """Returns what `write` stores of a draft, or the memory in force that says the same.

    To say again what was superseded is a new statement. So is what only a private memory says
    where this one is not, what only somebody else said whom nobody here has approved, and what
    stands in a document, which its author may change. What can't be known stops no writing.
    Raises `Invalid` for a text that can't be stored.
    """
    check_content(draft.content)
    saving.clean_tags(draft.tags)
    if again or not duplicates.is_single(draft):
        return Told(record=write())
    from mimo.memory import codec

    draft = codec.normal(draft)
    if said := _said(mind, draft, private=private):
        return _already(said, draft, private=private)
    alike = _answer(lambda: mind.index.much_like(draft))
    with courtesy(mind.project.root, "adding"):
        # Whoever was quicker has made its memory findable before it let go of the lock.
        if said := _answer(lambda: _holding(mind, draft, private=private)):
            return _already(said, draft, private=private)
        record = write()
    return Told(record=record, notice=_much_like(alike, record))


def _said(mind: Mind, draft: Memory, *, private: bool) -> Record | None:
    """Returns the memory that says all of a draft, if one does, as its file stands now."""

    def known() -> Record | None:
        return refresh.glance(mind, lambda _: _holding(mind, draft, private=private))

    found = _answer(known)
    if found and mind.store.digest(found.place.path) != found.place.digest:
        refresh.refresh(mind)
        found = _answer(known)
    return found


def _holding(mind: Mind, draft: Memory, *, private: bool) -> Record | None:
    for record in mind.index.saying(draft):
        kept = record.place.owned and record.parent is None
        seen = private or not record.place.private
        approved = mind.trust.trusted(record.place.digest)
        if kept and seen and approved and duplicates.covers(record.memory, draft):
            return record
    return None


def _answer(question: Callable[[], Record | None]) -> Record | None:
    """Returns an answer; None where the index can't give one."""
    try:
        return question()
    except (MindError, UnicodeEncodeError):
        return None


def _already(existing: Record, draft: Memory, *, private: bool) -> Told:
    memory = existing.memory
    told = [f"{memory.id} says so already, so nothing was written"]
    if warning := outcomes.warning(memory):
        told.append(warning)
    if private and not existing.place.private:
        told.append("it is not private")
    if names := duplicates.left_out(memory, draft):
        told.append(f"its {' and '.join(names)} stayed as they were; `mind edit` changes them")
    return Told(record=existing, already=True, notice="; ".join(told))


def _much_like(alike: Record | None, stored: Record) -> str | None:
    """Returns what to tell of a memory that is much like a new one which does not link to it."""
    if alike is None or alike.memory.id in {link.to for link in stored.memory.links}:
        return None
    return f"much like {alike.memory.id}; if they say the same, remove one of them"


def notices(*told: str | None) -> str | None:
    """Returns what is to be told, as one text; None where there is nothing."""
    return "; ".join(one for one in told if one) or None
