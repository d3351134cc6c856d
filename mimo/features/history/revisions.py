"""The revisions of the memory: its log, blame, differences, and restoring earlier states."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from mimo.errors import Conflict, Invalid, NotFound
from mimo.frozen import frozen
from mimo.memory import changes
from mimo.memory.changes import VERBS, one_line
from mimo.memory.model import SUPERSEDES, Link, Memory, Problem, Record
from mimo.memory.relations import Relation
from mimo.mind import Mind
from mimo.operations import finding, refresh, saving
from mimo.operations.saving import approving
from mimo.operations.syncing import repository
from mimo.store import revisions
from mimo.store.memories import NewFile, records_of
from mimo.store.revisions import Commit, Step

_MARKUP = re.compile(r"([\\`*_\[\]<>|])")
_REFERENCES = re.compile(r"[@#!~&]")
"""Characters that begin a mention or a reference on a forge, which notifies users."""
_APART = "&#8203;"
"""A zero-width space, as an entity: forges find references after they have read the escapes."""
_MOST = 100
"""Memories that are listed of each sort."""


@frozen
class Changed:
    """A memory that differs between two states."""

    memory: Memory
    """Its newer state, or the last one if it was removed."""
    before: Memory | None
    after: Memory | None
    path: str
    fields: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    """Ids of the memories that it newly supersedes."""
    contradicts: tuple[str, ...] = ()

    @property
    def change(self) -> str:
        """Returns `added`, `changed` or `removed`."""
        if self.before is None:
            return "added"
        return "changed" if self.after else "removed"

    @property
    def turned_out(self) -> str | None:
        """Returns a description of a changed outcome, or None."""
        if not self.before or not self.after or self.before.outcome is self.after.outcome:
            return None
        return f"{self.before.outcome or 'open'} → {self.after.outcome or 'open'}"


def markdown(rows: Sequence[Changed]) -> str:
    """Returns a comment for a pull request, in which the text of memories is escaped."""
    if not rows:
        return "### Memory\n\nNothing changes in the memory.\n"
    return "\n".join(["### Memory", *_lists(rows)]) + "\n"


def escaped(text: str) -> str:
    """Returns text that Markdown shows as it is, on one line, without mentions and references."""
    return _MARKUP.sub(r"\\\1", _REFERENCES.sub(rf"\g<0>{_APART}", one_line(text)))


def _code(id: str) -> str:
    """Returns an id as code, in which forges look for no mention."""
    return f"`{one_line(id).replace('`', '')}`"


def _lists(rows: Sequence[Changed]) -> Iterator[str]:
    for change, verb in VERBS.items():
        chosen = [row for row in rows if row.change == change]
        if not chosen:
            continue
        yield f"\n**{verb}** ({len(chosen):,})\n"
        for row in chosen[:_MOST]:
            memory = row.memory
            yield f"- {memory.type.value}: {escaped(memory.heading)} ({_code(memory.id)})"
            yield from (f"  - {detail}" for detail in _details(row))
        if len(chosen) > _MOST:
            yield f"- and {len(chosen) - _MOST:,} more"


def _details(row: Changed) -> Iterator[str]:
    if row.turned_out:
        yield f"outcome: **{row.turned_out}**"
    if row.fields:
        yield f"changed: {', '.join(row.fields)}"
    for ids, verb in ((row.supersedes, "supersedes"), (row.contradicts, "contradicts")):
        yield from (f"**{verb}** {_code(name)}" for name in ids)


@frozen
class Comparison:
    """Two commits and the memories that differ."""

    before: Commit
    after: Commit
    changed: tuple[Changed, ...]


def compare(mind: Mind, wanted: str | None, *, branch: bool) -> Comparison:
    """Returns the differences between two revisions, `A..B`; `A...B` starts at their merge base.

    With `branch`, they are the changes of this branch since it left the main one. A single revision
    is compared with HEAD.
    """
    repo = repository(mind)
    if branch == bool(wanted):
        hint = "such as `mind diff v1.1..v1.2`, or `mind diff --branch` alone"
        raise Invalid("name two revisions, or this branch", hint=hint)
    first, dots, second = _ends(wanted or f"{revisions.main_branch(repo)}...HEAD")
    before = revisions.resolve(repo, first or "HEAD", now=mind.now())
    after = revisions.resolve(repo, second or "HEAD", now=mind.now())
    if dots == "...":
        parted = revisions.common(repo, before.id, after.id)
        before = revisions.resolve(repo, parted, now=mind.now())
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
    repo = repository(mind)
    files = revisions.differences(repo, before.id, after.id)
    blobs = revisions.blobs(
        repo, (name for file in files for name in (file.before, file.after) if name)
    )
    old: _State = {}
    new: _State = {}
    for file in files:
        old.update(_memories(blobs.get(file.before), file.path, before))
        new.update(_memories(blobs.get(file.after), file.path, after))
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


@frozen
class Blamed:
    """A line of a memory's file, and the commit that it comes from."""

    commit: Commit
    number: int
    text: str


@frozen
class Restored:
    """A restored memory, and the commit that it comes from."""

    record: Record
    commit: Commit


def log(mind: Mind, id: str | None, limit: int) -> tuple[Step, ...]:
    """Returns the commits that changed the memory, or one of it, newest first.

    A deleted memory is searched by the name of its file.
    """
    repo = repository(mind)
    return tuple(revisions.steps(repo, _path(mind, id) if id else None, limit))


def blame(mind: Mind, record: Record) -> tuple[Blamed, ...]:
    """Returns the lines of a memory's file as committed, each with its commit."""
    repo = repository(mind)
    if not any(revisions.steps(repo, record.place.path, 1)):
        raise NotFound(f"`{record.place.path}` was never committed", hint="`mind sync` commits it")
    lines = revisions.blame(repo, record.place.path)
    by_id = revisions.commits(repo, (line.commit for line in lines))
    return tuple(
        Blamed(commit=by_id[line.commit], number=line.number, text=line.text) for line in lines
    )


def restore(mind: Mind, id: str, revision: str) -> Restored:
    """Restores a memory: its file becomes the file of that commit.

    Raises `NotFound` if that commit does not have it.
    """
    then = finding.at(mind, revision)
    record = finding.one(then.mind, id, surely=True)
    if record.parent is not None:
        raise Invalid(
            f"`{record.memory.id}` is a part of an ingested file", hint="ingest the file again"
        )
    data = then.mind.store.raw(record)
    now = None
    with suppress(NotFound):
        now = finding.one(mind, record.memory.id)
    if now and now.memory.id == record.memory.id:
        restored = saving.rewrite(mind, now, data.decode())
    else:
        restored = _written(mind, record, data)
    return Restored(record=restored, commit=then.commit)


def _written(mind: Mind, record: Record, data: bytes) -> Record:
    """Writes the file of a deleted memory; a person who restores it approves it."""
    place = record.place
    saving.check_format(mind)
    with approving(mind, wanted=mind.author is None):
        taken = mind.store.create_all([NewFile(place.path, data, place.digest)])
    if taken:
        raise Conflict(f"`{place.path}` exists already", hint="it holds another memory by now")
    refresh.note_change(mind, place.path)
    return record


def _path(mind: Mind, id: str) -> str:
    try:
        return finding.one(mind, id).place.path
    except NotFound:
        repo = repository(mind)
        for step in revisions.steps(repo, None, -1):
            for file in step.files:
                if file.path.rpartition("/")[2] == f"{id}.md":
                    return file.path
        raise
