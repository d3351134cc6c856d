"""Removing memories: their files, and the links of those that superseded them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mimo.call import Call
from mimo.errors import Command, Conflict, Hint, Invalid
from mimo.memory.approval import claim
from mimo.memory.model import SUPERSEDES, Link, Record
from mimo.operations import lookup, refresh
from mimo.operations.saving import (
    approving,
    check_changeable,
    check_edit,
    edit,
    is_private,
    report,
)
from mimo.project.memories import check_whole

_Relinked = tuple[Record, tuple[Link, ...]]
"""A memory that supersedes others, and the links that it will have."""


def remove(call: Call, reference: str) -> Record:
    """Removes the memory's file and returns the memory; git keeps earlier commits.

    Memories that superseded it then supersede those that it superseded, so that no chain breaks.
    """
    return remove_record(call, lookup.one(call, reference, surely=True))


def remove_record(call: Call, record: Record) -> Record:
    """Removes the file of a memory, as `remove` does, and returns the memory."""
    relinked = check_removal(call, [record])
    is_part = record.parent is not None
    with approving(call, enabled=is_part and call.mind.trust.trusted(record.place.approval)):
        call.mind.store.delete(record)
    report(call, (record, None))
    refresh.note_change(call, record.place.path)
    _relink(call, relinked, [record])
    return record


def remove_source(call: Call, chunks: Sequence[Record]) -> None:
    """Removes an ingested file with all of its chunks. Raises `Conflict` and `StorageFailed`.

    Memories that superseded a chunk no longer do; other links to it stay, as links to any memory.
    """
    relinked = check_removal(call, chunks)
    call.mind.store.delete_source(chunks[0].place)
    call.mind.tell(
        "mimo.memory.deleted", {"count": len(chunks)}, id=chunks[0].parent, type="source"
    )
    refresh.note_change(call, chunks[0].place.path)
    _relink(call, relinked, chunks)


def remove_files(call: Call, records: Sequence[Record]) -> None:
    """Removes the files of memories as `remove` does, or none of them if one can't be removed."""
    for record in records:
        check_whole(record)
    relinked = check_removal(call, records)
    call.mind.store.delete_files(records)
    report(call, *((record, None) for record in records))
    refresh.note_change(call, *(record.place.path for record in records))
    _relink(call, relinked, records)


def check_removal(call: Call, removed: Sequence[Record]) -> list[_Relinked]:
    """Returns the successors of memories that will be removed, each with its links after that.

    Raises `Invalid` or `Conflict` if the memories can't be removed or a successor can't be changed.
    """
    for record in removed:
        check_changeable(record)
        if record.place.elsewhere:
            raise Invalid(
                f"mind does not remove `{record.place.path}`, a document of the project",
                hint=Hint(
                    "remove it with git, or name other documents with ",
                    Command("config", "include", "GLOBS"),
                ),
            )
    refresh.refresh(call)
    relinked = [(each, _links_without(call, each, removed)) for each in _successors(call, removed)]
    for successor, links in relinked:
        check_edit(call, successor, links=links)
    return relinked


def _relink(call: Call, relinked: Sequence[_Relinked], removed: Sequence[Record]) -> None:
    """Lets the successors of removed memories supersede what these superseded."""
    for successor, links in relinked:
        try:
            edit(call, successor, links=links)
        except Conflict:  # Another program has changed it meanwhile.
            refresh.refresh(call)
            if again := call.index.get(successor.memory.id):
                edit(call, again, links=_links_without(call, again, removed))


def _successors(call: Call, removed: Sequence[Record]) -> list[Record]:
    """Returns the other memories that supersede some that will be removed."""
    removed_ids = dict.fromkeys(record.memory.id for record in removed)
    claims = (call.index.newer((id,))[id] for id in removed_ids)
    newer = dict.fromkeys(id for claim in claims for id in claim.superseded_by)
    candidates = filter(None, (call.index.get(id) for id in newer if id not in removed_ids))
    return [successor for successor in candidates if successor.place.owned]


def _links_without(call: Call, successor: Record, removed: Sequence[Record]) -> tuple[Link, ...]:
    """Returns the links of a memory once others are removed, which it superseded.

    It then supersedes the memories that the removed ones supersede.
    """
    removed_by_id = {record.memory.id: record for record in removed}
    links: list[Link] = []
    passed = set[str]()
    waiting = list(successor.memory.links)
    while waiting:
        link = waiting.pop(0)
        old = removed_by_id.get(link.to) if link.type == SUPERSEDES else None
        if old is None:
            links.append(link)
        elif link.to not in passed:
            passed.add(link.to)
            waiting[:0] = _inherited(call, successor, old)
    return tuple(dict.fromkeys(links))


def _inherited(call: Call, successor: Record, removed: Record) -> Iterator[Link]:
    """Yields the links of a removed memory that its successor gets."""
    # A claim of an unapproved memory must not become one of an approved memory.
    is_trusted = call.mind.trust.trusted(removed.place.approval)
    for link in removed.memory.links:
        is_valid = is_trusted or call.mind.trust.approved(claim(removed.memory.id, link.to))
        is_visible = successor.place.private or not is_private(call, link.to)
        is_foreign = link.type == SUPERSEDES and link.to != successor.memory.id
        if is_foreign and is_valid and is_visible:
            yield link
