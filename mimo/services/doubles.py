"""Storing what is new: what is here already is pointed to, what is much like it is named."""

from mimo.domain import doubles, outcomes
from mimo.domain.memory import Memory, Record, check_content
from mimo.errors import MindError
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import capture, upkeep


@frozen
class Told:
    """A memory that was stored, or was here already."""

    record: Record
    already: bool = False
    notice: str | None = None
    """What whoever stores it must know: that it says the same as another one, or nearly."""


@frozen
class Known:
    """What is here of a draft."""

    same: Told | None = None
    """The memory that says all of it already."""
    alike: Record | None = None
    """One that says nearly the same, or the same to somebody else."""


def store(mind: Mind, draft: Memory, *, private: bool = False, again: bool = False) -> Told:
    """Stores a memory unless one in force says the same; `again` stores it all the same."""
    known = look_up(mind, draft, private=private, again=again)
    if known.same:
        return known.same
    record = capture.store(mind, draft, private=private)
    return Told(record=record, notice=much_like(known, draft))


def look_up(mind: Mind, draft: Memory, *, private: bool, again: bool) -> Known:
    """Returns what is here of a draft; nothing where that can't be known, which stops no writing.

    To say again what was superseded is a new statement. So is what only a private memory says
    where this one is not, and what only somebody else said whom nobody here has approved.
    Raises `Invalid` for a text that can't be stored.
    """
    check_content(draft.content)
    if again or not doubles.is_single(draft):
        return Known()
    try:
        found = upkeep.ask(mind, lambda index: index.doubles(draft))
    except (MindError, UnicodeEncodeError):
        return Known()
    for record in found.same:
        seen = private or not record.place.private
        approved = mind.trust.trusted(record.place.digest)
        if seen and approved and doubles.covers(record.memory, draft):
            notice = _already(record.memory, draft)
            return Known(same=Told(record=record, already=True, notice=notice))
    return Known(alike=found.alike)


def much_like(known: Known, stored: Memory) -> str | None:
    """Returns what to tell of a memory that is much like a new one which does not link to it."""
    if known.alike is None or known.alike.memory.id in {link.to for link in stored.links}:
        return None
    return f"much like {known.alike.memory.id}; if they say the same, remove one of them"


def _already(existing: Memory, draft: Memory) -> str:
    told = [f"{existing.id} says so already, so nothing was written"]
    if warning := outcomes.warning(existing):
        told.append(warning)
    if names := doubles.left_out(existing, draft):
        told.append(f"its {' and '.join(names)} stayed as they were; `mind edit` changes them")
    return "; ".join(told)


def notices(*told: str | None) -> str | None:
    """Returns what is to be told, as one text; None where there is nothing."""
    return "; ".join(one for one in told if one) or None
