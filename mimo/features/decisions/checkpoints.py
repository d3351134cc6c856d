"""Checkpoints: where work stopped, and where each was made."""

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


def save(mind: Mind, draft: Memory, *, private: bool = False) -> Record:
    """Stores a checkpoint and records, outside the project, that it was made here."""
    record = saving.store(mind, draft, private=private)
    claim(mind, (record.memory.id,), branch(mind.project.root))
    return record


def claim(mind: Mind, ids: Iterable[str], on: str | None) -> None:
    """Records that checkpoints were made on this machine, and on which branch if it is known."""
    try:
        Made(mind.trust).add(ids, on)
    except StorageFailed as error:
        # The checkpoint itself is stored; it is only not recognised as made here.
        mind.note("checkpoint", f"it will count as made elsewhere: {error.message}")


def latest(mind: Mind) -> Resumed | None:
    """Returns the newest checkpoint that is not archived.

    In order of preference: one made on this machine and branch, one made on this machine, an
    approved one of another author, one that is not approved.
    """
    made, here = Made(mind.trust).branches(), branch(mind.project.root)
    trusted = mind.trust.checker()
    own = foreign = unapproved = None
    for record in _active(mind):
        if not trusted(record.place.digest):
            unapproved = unapproved or record
            continue
        id = record.memory.id
        is_own = id in made or record.place.private
        if is_own and made.get(id, here) == here:
            return Resumed(record=record, whose=Whose.BRANCH, branch=here)
        own = own or (record if is_own else None)
        foreign = foreign or record
    if own:
        return Resumed(record=own, whose=Whose.MACHINE, branch=made.get(own.memory.id))
    if other := foreign or unapproved:
        author = git.author_of(mind.project.root, other.place.path)
        return Resumed(record=other, whose=Whose.ELSEWHERE, author=author)
    return None


def _active(mind: Mind) -> Iterator[Record]:
    """Yields the checkpoints that can be resumed, newest first."""
    kinds, offset = Filter(types=frozenset({Kind.CHECKPOINT})), 0
    while True:
        page = finding.listing(mind, finding.Options(filter=kinds, limit=_PAGE, offset=offset))
        for record in page.records:
            if (record.memory.status or "").lower() != ARCHIVED:
                yield record
        offset += _PAGE
        if offset >= page.total:
            return
