"""Storing a memory unless it is a duplicate; near-duplicates are stored and reported."""

from collections.abc import Callable

from mimo.errors import MindError
from mimo.frozen import frozen
from mimo.memory import duplicates, outcomes
from mimo.memory.model import Memory, Record, check_content
from mimo.mind import Mind
from mimo.operations import refresh, saving
from mimo.store.locking import courtesy


@frozen
class Stored:
    """A new memory, or the memory of which it is a duplicate."""

    record: Record
    already: bool = False
    """True if it was stored before, and nothing was written."""
    notice: str | None = None
    """Names the duplicate or near-duplicate."""


def store(
    mind: Mind,
    draft: Memory,
    write: Callable[[], Record] | None = None,
    *,
    private: bool = False,
    again: bool = False,
) -> Stored:
    """Stores a memory unless it duplicates a current one; `again` stores a duplicate, too.

    `write` replaces `saving.store`. These are not duplicates: a statement that only superseded,
    unapproved or, unless this one is private, private memories make, and one in a document, which
    its author may change. An index that fails does not prevent storing. Raises `Invalid` for a text
    that can't be stored.
    """
    write = write or (lambda: saving.store(mind, draft, private=private))
    check_content(draft.content)
    saving.clean_tags(draft.tags)
    if again or not duplicates.is_single(draft):
        return Stored(record=write())
    from mimo.memory import codec

    normal = codec.normal(draft)
    if existing := _duplicate(mind, normal, private=private):
        return _already(existing, normal, private=private)
    alike = _answer(lambda: mind.index.much_like(normal))
    with courtesy(mind.project.root, "adding"):
        # Another process adds its memory to the index before it releases the lock.
        if existing := _answer(lambda: _indexed_duplicate(mind, normal, private=private)):
            return _already(existing, normal, private=private)
        record = write()
    if alike is None or alike.memory.id in {link.to for link in record.memory.links}:
        return Stored(record=record)
    notice = f"much like {alike.memory.id}; if they state the same, remove one of them"
    return Stored(record=record, notice=notice)


def _duplicate(mind: Mind, draft: Memory, *, private: bool) -> Record | None:
    """Returns the memory that states all of a draft, if there is one; checks its file."""

    def indexed() -> Record | None:
        refresh.refresh_roughly(mind)
        return _indexed_duplicate(mind, draft, private=private)

    record = _answer(indexed)
    if record and mind.store.digest(record.place.path) != record.place.digest:
        refresh.refresh(mind)
        record = _answer(indexed)
    return record


def _indexed_duplicate(mind: Mind, draft: Memory, *, private: bool) -> Record | None:
    for record in mind.index.saying(draft):
        is_own = record.place.owned and record.parent is None
        is_visible = private or not record.place.private
        is_approved = mind.trust.trusted(record.place.digest)
        if is_own and is_visible and is_approved and duplicates.covers(record.memory, draft):
            return record
    return None


def _answer(question: Callable[[], Record | None]) -> Record | None:
    """Returns an answer; None if the index fails."""
    try:
        return question()
    except (MindError, UnicodeEncodeError):
        return None


def _already(existing: Record, draft: Memory, *, private: bool) -> Stored:
    memory = existing.memory
    messages = [f"{memory.id} states this already, so nothing was written"]
    if warning := outcomes.warning(memory):
        messages.append(warning)
    if private and not existing.place.private:
        messages.append("it is not private")
    if names := duplicates.left_out(memory, draft):
        messages.append(f"its {' and '.join(names)} stayed as they were; `mind edit` changes them")
    return Stored(record=existing, already=True, notice="; ".join(messages))


def notices(*messages: str | None) -> str | None:
    """Returns the messages as one text; None if there are none."""
    return "; ".join(filter(None, messages)) or None
