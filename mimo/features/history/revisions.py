"""The revisions of the memory: its log, blame, differences, and restoring earlier states."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mimo.errors import Conflict, Invalid, NotFound
from mimo.frozen import frozen
from mimo.memory import changes
from mimo.memory.changes import VERBS, one_line
from mimo.memory.model import SUPERSEDES, Memory, Problem, Record
from mimo.memory.relations import Relation
from mimo.mind import Mind
from mimo.operations import finding, refresh, saving
from mimo.operations.saving import approving
from mimo.operations.syncing import repository
from mimo.store import git, revisions
from mimo.store.git import Line
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
    def outcome_change(self) -> str | None:
        """Returns a description of a changed outcome, or None."""
        if not self.before or not self.after or self.before.outcome is self.after.outcome:
            return None
        return f"{self.before.outcome or 'open'} → {self.after.outcome or 'open'}"


def markdown(rows: Sequence[Changed]) -> str:
    """Returns a comment for a pull request, in which the text of memories is escaped."""
    lines = ["### Memory"]
    for change, verb in VERBS.items():
        chosen = [row for row in rows if row.change == change]
        if not chosen:
            continue
        lines.append(f"\n**{verb}** ({len(chosen):,})\n")
        for row in chosen[:_MOST]:
            memory = row.memory
            title = escaped(memory.heading)
            lines.append(f"- {memory.type.value}: {title} ({_code(memory.id)})")
            if row.outcome_change:
                lines.append(f"  - outcome: **{row.outcome_change}**")
            if row.fields:
                lines.append(f"  - changed: {', '.join(row.fields)}")
            lines += [f"  - **supersedes** {_code(name)}" for name in row.supersedes]
            lines += [f"  - **contradicts** {_code(name)}" for name in row.contradicts]
        if len(chosen) > _MOST:
            lines.append(f"- and {len(chosen) - _MOST:,} more")
    if not rows:
        lines.append("\nNothing changes in the memory.")
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Returns text that Markdown shows as it is, on one line, without mentions and references."""
    return _MARKUP.sub(r"\\\1", _REFERENCES.sub(rf"\g<0>{_APART}", one_line(text)))


def _code(id: str) -> str:
    """Returns an id as code, in which forges look for no mention."""
    return f"`{one_line(id).replace('`', '')}`"


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
    root = repository(mind)
    if branch == bool(wanted):
        hint = "such as `mind diff v1.1..v1.2`, or `mind diff --branch` alone"
        raise Invalid("name two revisions, or this branch", hint=hint)
    wanted = wanted or f"{revisions.main_branch(root)}...HEAD"
    dots = "..." if "..." in wanted else ".."
    first, _, second = wanted.partition(dots)
    before = revisions.resolve(root, first or "HEAD", now=mind.now())
    after = revisions.resolve(root, second or "HEAD", now=mind.now())
    if dots == "...":
        parted = revisions.merge_base(root, before.id, after.id)
        before = revisions.resolve(root, parted, now=mind.now())
    old, new = _states(root, before, after)
    ids = sorted(old.keys() | new.keys())
    rows = (_compared(old.get(id_), new.get(id_)) for id_ in ids)
    return Comparison(before=before, after=after, changed=tuple(row for row in rows if row))


_State = dict[str, tuple[Memory, str]]
"""Memories by id, each with its file."""


def _states(root: Path, before: Commit, after: Commit) -> tuple[_State, _State]:
    """Returns the memories of two commits, as far as their files differ."""
    files = list(revisions.differences(root, before.id, after.id))
    blobs = revisions.blobs(
        root, (name for _, *names in files for name in names if name.strip("0"))
    )
    old: _State = {}
    new: _State = {}
    for path, *names in files:
        for state, blob, commit in zip((old, new), names, (before, after), strict=True):
            records = records_of(blobs[blob], path, commit.when) if blob in blobs else ()
            if not isinstance(records, Problem):
                state |= {record.memory.id: (record.memory, path) for record in records}
    return old, new


def _compared(old: tuple[Memory, str] | None, new: tuple[Memory, str] | None) -> Changed | None:
    newest = new or old
    before, after = old[0] if old else None, new[0] if new else None
    fields = changes.differing(before, after) if before and after else ()
    if newest is None or (old and new and not fields):
        return None
    known = before.links if before else ()
    fresh = [link for link in after.links if link not in known] if after else []
    return Changed(
        memory=newest[0],
        before=before,
        after=after,
        path=newest[1],
        fields=fields,
        supersedes=tuple(link.to for link in fresh if link.type == SUPERSEDES),
        contradicts=tuple(link.to for link in fresh if link.type == Relation.CONTRADICTS),
    )


def log(mind: Mind, id: str | None, limit: int) -> Iterator[Step]:
    """Yields the commits that changed the memory, or one of it, newest first.

    A deleted memory is searched by the name of its file.
    """
    return revisions.steps(repository(mind), _path(mind, id) if id else None, limit)


def _path(mind: Mind, id: str) -> str:
    try:
        return finding.one(mind, id).place.path
    except NotFound:
        for step in revisions.steps(repository(mind), None, -1):
            for file in step.files:
                if file.path.rpartition("/")[2] == f"{id}.md":
                    return file.path
        raise


def blame(mind: Mind, record: Record) -> list[tuple[Line, Commit]]:
    """Returns the lines of a memory's file as committed, each with its commit."""
    root, path = repository(mind), record.place.path
    if not any(revisions.steps(root, path, 1)):
        raise NotFound(f"`{path}` was never committed", hint="`mind sync` commits it")
    lines = git.blame(root, path)
    commits = revisions.commits(root, (line.commit for line in lines))
    return [(line, commits[line.commit]) for line in lines]


def restore(mind: Mind, id: str, revision: str) -> tuple[Record, Commit]:
    """Restores a memory: its file becomes the file of that commit.

    Returns the memory and the commit. Raises `NotFound` if that commit does not have it.
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
        return saving.rewrite(mind, now, data.decode()), then.commit
    return _written(mind, record, data), then.commit


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
