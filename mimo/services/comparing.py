"""What lies between two states of the memory: what a pull request does to it."""

from collections.abc import Iterator

from mimo.domain import changes
from mimo.domain.memory import SUPERSEDES, Link, Memory, Problem
from mimo.domain.relations import Relation
from mimo.domain.reviewing import Changed
from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services.syncing import repository
from mimo.store import revisions
from mimo.store.memories import records_of
from mimo.store.revisions import Commit


@frozen
class Comparison:
    """Two commits and what differs."""

    before: Commit
    after: Commit
    changed: tuple[Changed, ...]


def compare(mind: Mind, wanted: str | None, *, branch: bool) -> Comparison:
    """Returns what differs between two revisions, `A..B`; `A...B` is what B did since they parted.

    With `branch`, what this branch did since it left the main one. One revision stands for what
    came after it.
    """
    found = repository(mind)
    if branch == bool(wanted):
        hint = "such as `mind diff v1.1..v1.2`, or `mind diff --branch` alone"
        raise Invalid("name two revisions, or this branch", hint=hint)
    first, dots, second = _ends(wanted or f"{revisions.main_branch(found)}...HEAD")
    before = revisions.resolve(found, first or "HEAD", now=mind.now())
    after = revisions.resolve(found, second or "HEAD", now=mind.now())
    if dots == "...":
        parted = revisions.common(found, before.id, after.id)
        before = revisions.resolve(found, parted, now=mind.now())
    old, new = _states(mind, before, after)
    ids = sorted(old.keys() | new.keys())
    rows = (_compared(old.get(id_), new.get(id_)) for id_ in ids)
    return Comparison(before=before, after=after, changed=tuple(row for row in rows if row))


def _ends(wanted: str) -> tuple[str, str, str]:
    for dots in ("...", ".."):
        if dots in wanted:
            first, _, second = wanted.partition(dots)
            return first, dots, second
    return wanted, "..", "HEAD"


_State = dict[str, tuple[Memory, str]]


def _states(mind: Mind, before: Commit, after: Commit) -> tuple[_State, _State]:
    """Returns the memories by id, with their files, as far as their files differ."""
    found = repository(mind)
    files = revisions.differences(found, before.id, after.id)
    blobs = revisions.blobs(
        found, (name for one in files for name in (one.before, one.after) if name)
    )
    old: _State = {}
    new: _State = {}
    for one in files:
        old.update(_memories(blobs.get(one.before), one.path, before))
        new.update(_memories(blobs.get(one.after), one.path, after))
    return old, new


def _memories(
    data: bytes | None, path: str, commit: Commit
) -> Iterator[tuple[str, tuple[Memory, str]]]:
    records = records_of(data, path, commit.when) if data is not None else ()
    if not isinstance(records, Problem):
        for record in records:
            yield record.memory.id, (record.memory, path)


def _compared(old: tuple[Memory, str] | None, new: tuple[Memory, str] | None) -> Changed | None:
    newest = new or old
    before, after = old[0] if old else None, new[0] if new else None
    fields = changes.differing(before, after) if before and after else ()
    if newest is None or (old and new and not fields):
        return None
    fresh = [link for link in _links(after) if link not in _links(before)]
    return Changed(
        memory=newest[0],
        before=before,
        after=after,
        path=newest[1],
        fields=fields,
        supersedes=tuple(link.to for link in fresh if link.type == SUPERSEDES),
        contradicts=tuple(link.to for link in fresh if link.type == Relation.CONTRADICTS),
    )


def _links(memory: Memory | None) -> tuple[Link, ...]:
    return memory.links if memory else ()
