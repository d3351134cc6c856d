"""Checkpoints: where work stopped, and whose work it was."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from mimo.errors import StorageFailed
from mimo.frozen import frozen
from mimo.memory.model import Filter, Kind, Memory, Record
from mimo.mind import Mind
from mimo.operations import finding, saving
from mimo.store import git
from mimo.store.git import branch
from mimo.store.trust import Made

ARCHIVED = "archived"
"""The status of a checkpoint that is not to be resumed any more."""

_PAGE = 100


class Whose(StrEnum):
    """Where a checkpoint was made."""

    BRANCH = "this branch"
    MACHINE = "this machine"
    ELSEWHERE = "elsewhere"


@frozen
class Resumed:
    """The checkpoint to go on from, and where it was made."""

    record: Record
    whose: Whose
    author: str | None
    """Who committed it, where it was made elsewhere."""
    branch: str | None
    """The branch that it was made on, as far as this machine knows."""


def save(mind: Mind, draft: Memory, *, private: bool = False) -> Record:
    """Stores a checkpoint and remembers, outside the project, that it was made here."""
    record = saving.store(mind, draft, private=private)
    claim(mind, (record.memory.id,), branch(mind.project.root))
    return record


def claim(mind: Mind, ids: Iterable[str], on: str | None) -> None:
    """Remembers that checkpoints were made on this machine, on a branch where that is known."""
    try:
        _made(mind).add(ids, on)
    except StorageFailed as error:
        # The checkpoint is safe; only that it is ours is not known later.
        mind.note("checkpoint", f"it will count as made elsewhere: {error.message}")


def latest(mind: Mind) -> Resumed | None:
    """Returns the newest checkpoint that is not archived; the user's own come first.

    That is one made on this machine and branch, else one made on this machine, else another
    author's: one that is approved, and only without any such one that is not.
    """
    made, here = _made(mind).branches(), branch(mind.project.root)
    trusted = mind.trust.checker()
    machine = anybody = stranger = None
    for record in _active(mind):
        if not trusted(record.place.digest):
            stranger = stranger or record
            continue
        name = record.memory.id
        own = name in made or record.place.private
        if own and made.get(name, here) == here:
            return Resumed(record=record, whose=Whose.BRANCH, author=None, branch=here)
        machine = machine or (record if own else None)
        anybody = anybody or record
    anybody = anybody or stranger
    if machine:
        known = made.get(machine.memory.id)
        return Resumed(record=machine, whose=Whose.MACHINE, author=None, branch=known)
    if anybody:
        author = git.author_of(mind.project.root, anybody.place.path)
        return Resumed(record=anybody, whose=Whose.ELSEWHERE, author=author, branch=None)
    return None


def _active(mind: Mind) -> Iterator[Record]:
    """Yields the checkpoints that may be resumed, newest first."""
    wanted, offset = Filter(types=frozenset({Kind.CHECKPOINT})), 0
    while True:
        page = finding.listing(mind, finding.Options(filter=wanted, limit=_PAGE, offset=offset))
        for record in page.records:
            if (record.memory.status or "").lower() != ARCHIVED:
                yield record
        offset += _PAGE
        if offset >= page.total:
            return


def _made(mind: Mind) -> Made:
    return Made(mind.trust)
