"""The revisions of the memory: its log, blame, differences, and restoring earlier states."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from mimo.call import Call
from mimo.call.spec import Omitted, Out
from mimo.data.disk import STORE
from mimo.errors import Command, Conflict, Hint, Invalid, NotFound
from mimo.frozen import frozen
from mimo.memory import changes
from mimo.memory.changes import VERBS, one_line
from mimo.memory.ids import handle_of, is_id
from mimo.memory.model import SUPERSEDES, Outcome, Problem, Record
from mimo.memory.relations import Relation
from mimo.operations import lookup, past, refresh, saving
from mimo.operations.rows import Facts, result_of, trust_of, view
from mimo.operations.saving import approving
from mimo.operations.syncing import repository
from mimo.project import git, revisions
from mimo.project.commit import pending
from mimo.project.git import Line
from mimo.project.memories import NewFile, approvals_of
from mimo.project.revisions import Commit, Step, has_memories
from mimo.project.walk import COMMITS, LOG
from mimo.text import calendar
from mimo.when import Interval

_MARKUP = re.compile(r"([\\`*_~\[\]<>|])")
_REFERENCES = re.compile(r"[@#!~&]")
"""Characters that begin a mention or a reference on a forge, which notifies users."""
_APART = "&#8203;"
"""A zero-width space, as an entity: forges find references after they have read the escapes."""
_LIMIT = 100
"""Memories that are listed of each sort."""


@view(
    "id type title change trust file fields outcome outcome_before outcome_changed supersedes"
    " contradicts"
)
class DiffRow(Facts):
    """A memory that differs between the two states."""

    change: Annotated[str, Out("`added`, `changed` or `removed`")]
    fields: Annotated[tuple[str, ...], Out("Names of its changed fields")] = ()
    outcome_before: Annotated[Omitted[Outcome], Out("If the outcome changed")] = None
    outcome_changed: Annotated[Omitted[bool], Out("Whether its outcome changed")] = None
    supersedes: Annotated[tuple[str, ...], Out("Ids that it newly supersedes")] = ()
    contradicts: Annotated[tuple[str, ...], Out("Ids that it newly contradicts")] = ()


def markdown(rows: Sequence[DiffRow]) -> str:
    """Returns a comment for a pull request, in which the text of memories is escaped."""
    lines = ["### Memory"]
    for change, verb in VERBS.items():
        chosen = [row for row in rows if row.change == change]
        if not chosen:
            continue
        lines.append(f"\n**{verb}** ({len(chosen):,})\n")
        for row in chosen[:_LIMIT]:
            lines.append(f"- {row.type.value}: {escaped(row.title)} ({_code(row.id)})")
            if row.outcome_changed:
                outcomes = f"{row.outcome_before or 'open'} → {row.outcome or 'open'}"
                lines.append(f"  - outcome: **{outcomes}**")
            if row.fields:
                lines.append(f"  - changed: {', '.join(row.fields)}")
            lines += [f"  - **supersedes** {_code(name)}" for name in row.supersedes]
            lines += [f"  - **contradicts** {_code(name)}" for name in row.contradicts]
        if len(chosen) > _LIMIT:
            lines.append(f"- and {len(chosen) - _LIMIT:,} more")
    if not rows:
        lines.append("\nNothing changes in the memory.")
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Returns text that Markdown shows as it is, on one line, without mentions and references."""
    return _MARKUP.sub(r"\\\1", _REFERENCES.sub(rf"\g<0>{_APART}", one_line(text)))


def _code(id: str) -> str:
    """Returns an id as code, in which forges look for no mention."""
    return f"`{one_line(id).replace('`', '')}`"


_State = dict[str, Record]
"""Memories by id."""


WORKING_TREE = "working tree"


@frozen
class Difference:
    """The memories that differ between two states."""

    before: str
    """The commit that is compared with; empty if nothing was committed yet."""
    after: str
    """A commit, or the working tree."""
    between: str
    """Both states in words."""
    rows: tuple[DiffRow, ...]


def compare(call: Call, expression: str | None, *, branch: bool) -> Difference:
    """Returns the memories that differ, for revisions such as `A..B`.

    `A...B` starts at their merge base. With `branch`, they are the changes of this branch since it
    left the main one. A single revision is compared with the working tree, HEAD by default.
    """
    root = repository(call)
    if branch and expression is not None:
        hint = Hint(
            "such as ",
            Command("diff", "v1.1..v1.2"),
            ", or ",
            Command("diff", branch=True),
            " alone",
        )
        raise Invalid("name two revisions, or this branch", hint=hint)
    main = revisions.main_branch(root) if branch else ""
    if branch:
        expression = f"{main}...HEAD"
    if expression is None or ".." not in expression:
        return _with_working_tree(call, root, expression)
    dots = "..." if "..." in expression else ".."
    start, _, second = expression.partition(dots)
    base = revisions.resolve(root, start or "HEAD", now=call.mind.local_now())
    after = revisions.resolve(root, second or "HEAD", now=call.mind.local_now())
    if dots == "...":
        parted = revisions.merge_base(root, base.id, after.id)
        base = revisions.resolve(root, parted, now=call.mind.local_now())
    between = f"from {base.short} to {after.short}"
    if branch:
        between = f"since {revisions.short_name(root, main)} at {_aged(call, base)}"
    rows = _rows(call, *_states(root, base, after))
    return Difference(before=base.short, after=after.short, between=between, rows=rows)


def _with_working_tree(call: Call, root: Path, revision: str | None) -> Difference:
    """Returns the memories that differ between a revision and the files, HEAD by default."""
    if revision is None and not revisions.commit_id(root, "HEAD"):
        base = None
    else:
        name = "HEAD" if revision is None else revision
        base = revisions.resolve(root, name, now=call.mind.local_now())
    paths = [file.path for file in pending(root) if has_memories(file.path)]
    old: _State = {}
    new: _State = {}
    if base:
        head = revisions.resolve(root, "HEAD", now=call.mind.local_now())
        if head.id != base.id:
            paths += [path for path, *_ in revisions.differences(root, base.id, head.id)]
            paths = sorted(set(paths))
        blob_of = revisions.tree(root, base.id, "--", f"{STORE}/") if paths else {}
        blobs = revisions.blobs(root, (blob_of[path] for path in paths if path in blob_of))
        for path in paths:
            if (data := blobs.get(blob_of.get(path, ""))) is not None:
                old |= _by_id(revisions.records_at(root, data, path, base))
    for path in paths:
        new |= _by_id(call.mind.store.read(path)) if os.path.lexists(root / path) else {}
    between = "before the first commit"
    if base:
        name = "since HEAD at " if revision is None else "since "
        between = f"{name}{_aged(call, base)}"
    return Difference(
        before=base.short if base else "",
        after=WORKING_TREE,
        between=between,
        rows=_rows(call, old, new),
    )


def _aged(call: Call, commit: Commit) -> str:
    return f"{commit.short}, {calendar.age(commit.when, call.mind.now())}"


def _rows(call: Call, old: _State, new: _State) -> tuple[DiffRow, ...]:
    ids = sorted(old.keys() | new.keys())
    rows = (_compared(call, old.get(id_), new.get(id_)) for id_ in ids)
    return tuple(row for row in rows if row)


def _by_id(records: tuple[Record, ...] | Problem) -> _State:
    """Returns the memories of a file, none if it can't be read."""
    if isinstance(records, Problem):
        return {}
    return {record.memory.id: record for record in records}


def _states(root: Path, base: Commit, after: Commit) -> tuple[_State, _State]:
    """Returns the memories of two commits, as far as their files differ."""
    files = list(revisions.differences(root, base.id, after.id))
    blobs = revisions.blobs(
        root, (name for _, *names in files for name in names if name.strip("0"))
    )
    old: _State = {}
    new: _State = {}
    for path, *names in files:
        for state, blob, commit in zip((old, new), names, (base, after), strict=True):
            if blob in blobs:
                state.update(_by_id(revisions.records_at(root, blobs[blob], path, commit)))
    return old, new


def _compared(call: Call, old: Record | None, new: Record | None) -> DiffRow | None:
    base, after = old.memory if old else None, new.memory if new else None
    fields = changes.differing(base, after) if base and after else ()
    newest = new or old
    if newest is None or (old and new and not fields):
        return None
    earlier = base.links if base else ()
    fresh = [link for link in after.links if link not in earlier] if after else []
    decided = base and after and base.outcome is not after.outcome
    return result_of(
        call,
        newest,
        DiffRow,
        change="added" if base is None else "changed" if after else "removed",
        fields=fields,
        outcome=newest.memory.outcome,
        outcome_before=base.outcome if base and decided else None,
        outcome_changed=True if decided else None,
        supersedes=tuple(link.to for link in fresh if link.type == SUPERSEDES),
        contradicts=tuple(link.to for link in fresh if link.type == Relation.CONTRADICTS),
        trust=trust_of(call, newest),
    )


def log(call: Call, id: str | None, limit: int, span: Interval) -> Iterator[Step]:
    """Yields the commits of a time that changed the memory, or one of it, newest first.

    A deleted memory is searched by its id or handle. Raises `NotFound` for a private one.
    """
    root, path, record = repository(call), None, None
    if id is not None:
        try:
            record = next(iter(lookup.source(call, id, topics=True)), None)
            record = record or lookup.meant(call, id)
            path = record.place.path
        except NotFound:
            path = _last_path(root, id)
            if path is None:
                raise
    if record and (record.place.private or path == COMMITS):
        _check_committed(root, record)
    return revisions.steps(root, path, limit, since=span.since, until=span.until)


def _last_path(root: Path, id: str) -> str | None:
    """Returns the last path of a deleted memory, by its id or handle; None if there is none.

    The id is a line in the header of its file, or else the name of the file.
    """
    if is_id(id):
        start = "([A-Za-z0-9_.-]+_)?" if len(id) == lookup.SURE_LENGTH else ""
        word = id.replace(".", "[.]")
        line = f"^id:[ \t]*[\"']?{start}{word}[\"']?[ \t\r]*$"
        if path := revisions.path_with_line(root, line):
            return path
    paths = (file.path for step in revisions.steps(root, None, -1) for file in step.files)
    names = ((path, path.rpartition("/")[2].removesuffix(".md")) for path in paths)
    return next((path for path, name in names if id in (name, handle_of(name))), None)


def _check_committed(root: Path, record: Record) -> None:
    """Raises `NotFound` if no commit has the memory's file."""
    path = record.place.path
    if any(revisions.steps(root, path, 1)):
        return
    if record.place.private:
        raise NotFound(f"`{path}` is private, so it is never committed")
    if path == COMMITS:
        name = handle_of(record.memory.id)
        raise NotFound(f"`{name}` is the message of a commit, not a file", hint="see `git log`")
    hint = "commit it with git" if record.place.elsewhere else Hint(Command("sync"), " commits it")
    raise NotFound(f"`{path}` was never committed", hint=hint)


def blame(call: Call, record: Record) -> tuple[list[tuple[Line, Commit]], bool]:
    """Returns the lines of a memory's file as committed, each with its commit.

    Also returns whether that text is approved: the file may have another one by now.
    """
    root, path = repository(call), record.place.path
    _check_committed(root, record)
    lines = git.blame(root, path)
    commits = revisions.commits(root, (line.commit for line in lines))
    texts = revisions.contents(root, [("HEAD", path)]).values()
    is_approved = all(call.mind.trust.trusted(*approvals_of(path, text)) for text in texts)
    return [(line, commits[line.commit]) for line in lines], is_approved


def restore(call: Call, id: str, revision: str) -> tuple[Record, Commit, bool, bool]:
    """Restores a memory or an ingested file: its file becomes the file of that commit.

    Returns the memory, or the first chunk, the commit, whether it replaced another text, and
    whether the restored text was trusted before. Raises
    `NotFound` if that commit does not have it, and `Invalid` for a chunk, and for a line of the
    log, which mind never changes.
    """
    then = past.at(call, revision)
    if parts := lookup.source(then.call, id, surely=True):
        data = then.call.mind.store.raw(parts[0])
        was_trusted = _was_approved(call, parts[0].place.path, data)
        present = refresh.up_to_date(call).parts(parts[0].parent or "")
        differs = bool(present) and call.mind.store.raw(present[0]) != data
        return _restored_source(call, parts[0], data), then.commit, differs, was_trusted
    record = lookup.one(then.call, id, surely=True)
    place, commit = record.place, then.commit.short
    if place.path == LOG:
        raise Invalid(
            f"`{handle_of(record.memory.id)}` was line {place.line} of `{LOG}`, which mind never"
            " changes",
            hint=f"copy it from `git show {commit}:./{LOG}` into the file",
        )
    if record.parent is not None:
        raise Invalid(
            f"`{handle_of(record.memory.id)}` is a part of an ingested file",
            hint=Hint(
                "restore the whole file: ",
                Command("restore", then.call.mind.handle(record.parent).text, at=commit),
            ),
        )
    data = then.call.mind.store.raw(record)
    now, was_trusted = None, _was_approved(call, record.place.path, data)
    with suppress(NotFound):
        now = lookup.one(call, record.memory.id)
    if now and now.memory.id == record.memory.id:
        differs = call.mind.store.raw(now) != data
        restored = saving.rewrite(call, now, data.decode(), checked=False)
        return restored, then.commit, differs, was_trusted
    return _written(call, record, data), then.commit, False, was_trusted


def _was_approved(call: Call, path: str, data: bytes) -> bool:
    """Returns whether a text is or was approved here, also if it was replaced since."""
    trust = call.mind.trust
    return all(
        trust.trusted(name) or trust.has_come_back(name) for name in approvals_of(path, data)
    )


def _restored_source(call: Call, part: Record, data: bytes) -> Record:
    """Writes the file of an ingested file, also over that of today; returns the first chunk."""
    present = refresh.up_to_date(call).parts(part.parent or "")
    if not present:
        return _written(call, part, data)
    place = present[0].place
    old_text = call.mind.store.raw(present[0]).decode("utf-8", "replace")
    text = data.decode("utf-8", "replace")
    saving.check_secrets(call, {"file_text": text}, previous=old_text, file=place.path)
    with approving(call, enabled=call.agent is None):
        call.mind.store.restore_source(place, data)
    refresh.note_change(call, place.path)
    return call.index.parts(part.parent or "")[0]


def _written(call: Call, record: Record, data: bytes) -> Record:
    """Writes the file of a deleted memory; a person who restores it approves it."""
    place = record.place
    with approving(call, enabled=call.agent is None):
        taken = call.mind.store.create_all([NewFile(place.path, data, place.digest)])
    if taken:
        raise Conflict(f"`{place.path}` exists already", hint="it holds another memory by now")
    saving.report(call, (None, record))
    refresh.note_change(call, place.path)
    return record
