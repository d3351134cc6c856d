"""`mind undo`: takes back what a command changed."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from mimo.commands.common import (
    Again,
    Already,
    At,
    Competing,
    File,
    FromDate,
    Id,
    Importance,
    Limit,
    Offset,
    Private,
    Stale,
    TagFilter,
    Tags,
    TimeFilter,
    ToDate,
    Trust,
    Types,
    Undo,
    Warning,
    narrowed,
    trust_of,
)
from mimo.commands.spec import Arg, Effect, Json, Omitted, Out, Surface, command
from mimo.errors import (
    AmbiguousId,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    SecretDetected,
    StorageFailed,
)
from mimo.frozen import frozen
from mimo.index.rows import Newer
from mimo.memory import outcomes
from mimo.memory.model import Kind, Memory, Outcome, Record, Sort, kind_of
from mimo.mind import Mind
from mimo.operations import duplicates, finding, freshness, past, refresh, saving, sources, undoing
from mimo.operations.duplicates import Told
from mimo.operations.undoing import Action
from mimo.store.trash import Entry

# The everyday commands on single memories: add, show, edit, rm.


@frozen
class LinkRow:
    """A link to another memory."""

    to: str
    type: str
    title: Annotated[str | None, Out("Title of the other memory; null where there is none")]


@frozen
class MemoryDetails:
    """A memory, whole."""

    id: str
    type: Kind
    title: str
    content: str
    topic: Omitted[str]
    tags: tuple[str, ...]
    importance: float
    confidence: Omitted[float]
    outcome: Omitted[Outcome]
    status: Omitted[str]
    category: Omitted[str]
    source: Omitted[str]
    by: Omitted[str]
    created_at: datetime
    sections: Annotated[
        dict[str, str],
        Out("Prose under the fixed headings, such as Reasoning, and what a merge left: Competing"),
    ]
    links: tuple[LinkRow, ...]
    warning: Warning
    superseded_by: Omitted[str]
    extra: Annotated[dict[str, Json], Out("Header keys that mind itself does not use")]
    private: bool
    trust: Trust
    file: File
    line: Annotated[int, Out("The line on which the content begins, from 1")]
    stale: Stale = None


@frozen
class Written:
    """What came of writing a memory."""

    id: str
    type: Kind
    title: str
    file: File
    private: bool
    already: Already = None
    notice: Omitted[str] = None


@frozen
class Removed:
    """What came of removing a memory."""

    id: str
    title: str
    file: File
    chunks: Annotated[Omitted[int], Out("How many chunks went with it", omit=True)] = None
    undo: Undo = None


@command(
    "mind_add",
    cli="add",
    effect=Effect.WRITE,
    toolset="extra",
    errors=(Invalid, SecretDetected, StorageFailed),
    examples=(
        "mind add The staging database is reset every night",
        'mind add --type decision --topic auth "Use JWT with refresh tokens"',
        "git log -1 --format=%B | mind add --type observation --tag release",
    ),
)
def add(
    mind: Mind,
    content: Annotated[str, Arg("What to remember, as Markdown", words=True, stdin=True)],
    *,
    type: Annotated[str, Arg("Type of memory", complete="type")] = "fact",
    title: Annotated[str | None, Arg("Title; the first line unless given")] = None,
    topic: Annotated[str | None, Arg("What it is about, such as auth_strategy")] = None,
    tags: Tags = (),
    importance: Importance = 0.5,
    private: Private = False,
    again: Again = False,
) -> Written:
    """Remember something

    The memory is a Markdown file under `.mind/`, found by search from the next command on. What a
    memory in force says already, word for word, is not written twice.
    """
    note = saving.draft(
        kind_of(type), content, importance=importance, tags=tags, topic=topic, title=title
    )
    return _written(mind, duplicates.store(mind, note, private=private, again=again))


@command(
    "mind_show",
    cli="show",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, NotFound, AmbiguousId),
    examples=("mind show k3v7mq", "mind show decision_auth --json", "mind show k3v7mq --at v1.2"),
)
def show(mind: Mind, id: Id, *, at: At = None) -> MemoryDetails:
    """Show one memory, whole

    The id of an ingested file shows what its chunks are about.
    """
    from mimo.operations import freshness, past

    mind = past.at(mind, at).mind if at is not None else mind
    if parts := sources.named(mind, id):
        return _source(mind, parts)
    record = finding.one(mind, id)
    finding.note(mind, [record])
    memory = record.memory
    newer = mind.index.newer((memory.id,))[memory.id]
    return MemoryDetails(
        id=memory.id,
        type=memory.type,
        title=memory.heading,
        content=memory.content,
        topic=memory.topic,
        tags=memory.tags,
        importance=memory.importance,
        confidence=memory.confidence,
        outcome=memory.outcome,
        status=memory.status,
        category=memory.category,
        source=memory.source,
        by=memory.by,
        created_at=memory.created,
        sections=_sections(memory),
        links=tuple(_link(mind, link.to, link.type) for link in memory.links),
        warning=outcomes.warning(memory, claimed_by=newer.claimant),
        superseded_by=newer.successor,
        extra=dict(memory.extra),
        private=record.place.private,
        trust=trust_of(mind, record),
        file=record.place.path,
        line=record.place.line,
        stale=freshness.stale(mind, [record]).get(memory.id),
    )


def _sections(memory: Memory) -> dict[str, str]:
    """Returns the prose below the text; a version that a merge left is seen as well."""
    found = {name.value: text for name, text in memory.sections.items()}
    for version in memory.competing:
        heading = f"Competing: {version.field}"
        before = f"{found[heading]}\n\n" if heading in found else ""
        found[heading] = before + version.text
    return found


@command(
    "mind_edit",
    cli="edit",
    effect=Effect.WRITE,
    toolset="extra",
    errors=(NotFound, AmbiguousId, Invalid, SecretDetected, Conflict, StorageFailed),
    examples=(
        "mind edit k3v7mq",
        "mind edit k3v7mq --importance 0.9 --tag api --tag limits",
    ),
)
def edit(
    mind: Mind,
    id: Id,
    *,
    content: Annotated[str | None, Arg("New content", stdin=True, compared=True)] = None,
    title: Annotated[str | None, Arg("New title", compared=True)] = None,
    topic: Annotated[str | None, Arg("New topic")] = None,
    tags: Annotated[
        tuple[str, ...] | None,
        Arg(
            "Tags in place of the present ones; an empty one clears them", complete="tag", short="t"
        ),
    ] = None,
    importance: Annotated[float | None, Arg("How much it matters", ge=0, le=1)] = None,
    file_text: Annotated[str | None, Arg("The whole file as it should read", compared=True)] = None,
) -> Written:
    """Change a memory, in $EDITOR where nothing else is said

    What is not named stays byte for byte as it is in the file, comments and unknown keys included.
    """
    record = finding.one(mind, id)
    named = {
        "content": content,
        "title": title,
        "topic": topic,
        "tags": () if tags == ("",) else tags,
        "importance": importance,
    }
    changes = {name: value for name, value in named.items() if value is not None}
    if bool(changes) == (file_text is not None):
        raise Invalid(
            "nothing to change" if not changes else "file_text goes with no other change",
            hint="name what to change, such as --importance 0.9",
        )
    if file_text is not None:
        return _written(mind, Told(record=saving.rewrite(mind, record, file_text)))
    return _written(mind, Told(record=saving.edit(mind, record, **changes)))


@command(
    "mind_rm",
    cli="rm",
    effect=Effect.DESTROY,
    toolset="extra",
    errors=(NotFound, AmbiguousId, StorageFailed),
    examples=("mind rm k3v7mq", "mind rm source_api_md_t3o7jx", "mind rm k3v7mq --purge"),
)
def rm(
    mind: Mind,
    id: Id,
    *,
    purge: Annotated[
        bool, Arg("Keep no copy in the trash, of earlier text neither", surfaces=Surface.CLI)
    ] = False,
) -> Removed:
    """Remove a memory; `mind undo` brings it back

    The id of an ingested file removes all of its chunks, that of a chunk only this one. Use
    `--purge` for a secret: nothing of the file stays in the trash. What was committed stays in git.
    """
    parts = sources.named(mind, id, surely=True)
    if purge:
        first = parts[0] if parts else finding.one(mind, id, surely=True)
        undoing.forget(mind, first.place.path)
    if parts:
        sources.remove(mind, parts)
        first = parts[0]
        return Removed(
            id=first.parent or "",
            title=first.origin,
            file=first.place.path,
            chunks=len(parts),
            undo=undoing.entry_id(),
        )
    record = saving.remove(mind, id)
    return Removed(
        id=record.memory.id,
        title=record.memory.heading,
        file=record.place.path,
        undo=undoing.entry_id(),
    )


def _source(mind: Mind, parts: tuple[Record, ...]) -> MemoryDetails:
    """Returns an ingested file as a memory whose content is an outline of its chunks."""
    first, head = parts[0].memory, mind.store.source(parts[0].place)
    rows = [
        f"- `{one.memory.id}` lines {one.memory.extra['lines']}: {one.memory.heading}"
        for one in parts
    ]
    told = {"strategy": first.extra["strategy"], "chunks": len(parts)}
    return MemoryDetails(
        id=parts[0].parent or "",
        type=first.type,
        title=parts[0].origin,
        content="\n".join(rows),
        topic=first.topic,
        tags=first.tags,
        importance=first.importance,
        confidence=first.confidence,
        outcome=None,
        status=first.status,
        category=first.category,
        source=parts[0].origin,
        by=first.by,
        created_at=first.created,
        sections={},
        links=(),
        warning=None,
        superseded_by=None,
        extra=told | ({"sha256": head.sha256} | dict(head.metadata) if head else {}),
        private=parts[0].place.private,
        trust=trust_of(mind, parts[0]),
        file=parts[0].place.path,
        line=1,
    )


def _written(mind: Mind, told: Told) -> Written:
    record, memory = told.record, told.record.memory
    return Written(
        id=memory.id,
        type=memory.type,
        title=memory.heading,
        file=record.place.path,
        private=record.place.private,
        already=told.already or None,
        notice=duplicates.notices(told.notice, mind.notice),
    )


def _link(mind: Mind, to: str, kind: str) -> LinkRow:
    record = mind.index.named(to)
    return LinkRow(to=to, type=kind, title=record.memory.heading if record else None)


# `mind list`: browse the memories.


@frozen
class MemoryRow:
    """A memory in a list."""

    id: str
    type: Kind
    title: str
    tags: tuple[str, ...]
    importance: float
    created_at: datetime
    trust: Trust
    file: File
    outcome: Omitted[Outcome] = None
    warning: Warning = None
    superseded_by: Omitted[str] = None
    competing: Competing = None
    private: Omitted[bool] = None
    stale: Stale = None


@frozen
class MemoryRows:
    """One page of the memories."""

    memories: tuple[MemoryRow, ...]
    total: Annotated[int, Out("How many memories pass the filters, on all pages")]
    offset: int
    unreadable: Annotated[Omitted[int], Out("Files that could not be read", omit=True)] = None
    notice: Annotated[Omitted[str], Out("Which past state this is", omit=True)] = None


@command(
    "mind_list",
    cli="list",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, NotFound),
    examples=("mind list --type decision", "mind list --tag api --when 'this week'"),
)
def list_(
    mind: Mind,
    *,
    types: Types = (),
    topic: Annotated[str | None, Arg("Only on this topic", complete="topic")] = None,
    outcomes_: Annotated[
        tuple[str, ...], Arg("Only what turned out so: SUCCESS, FAILED, PARTIAL", wire="outcomes")
    ] = (),
    tags: TagFilter = (),
    limit: Limit = 50,
    offset: Offset = 0,
    sort: Annotated[Sort, Arg("Order of the list")] = Sort.RECENT,
    time_filter: TimeFilter = None,
    from_date: FromDate = None,
    to_date: ToDate = None,
    at: At = None,
) -> MemoryRows:
    """List the memories, newest first"""
    then = past.at(mind, at) if at is not None else None
    mind = then.mind if then else mind
    conditions = narrowed(
        mind,
        types=types,
        topic=topic,
        outcomes=outcomes_,
        tags=tags,
        time_filter=time_filter,
        from_date=from_date,
        to_date=to_date,
    )
    page = finding.listing(
        mind, finding.Options(filter=conditions, sort=sort, limit=limit, offset=offset)
    )
    ids = [record.memory.id for record in page.records]
    newer, others = mind.index.newer(ids), mind.index.competing(ids)
    stale = freshness.stale(mind, page.records)
    rows = tuple(
        replace(
            _list_row(mind, one, newer[one.memory.id], others.get(one.memory.id)),
            stale=stale.get(one.memory.id),
        )
        for one in page.records
    )
    unreadable = len(refresh.problems(mind))
    return MemoryRows(
        memories=rows,
        total=page.total,
        offset=offset,
        unreadable=unreadable or None,
        notice=then.told if then else None,
    )


def _list_row(
    mind: Mind, record: Record, newer: Newer, others: tuple[str, ...] | None
) -> MemoryRow:
    memory = record.memory
    return MemoryRow(
        id=memory.id,
        type=memory.type,
        title=memory.heading,
        tags=memory.tags,
        importance=memory.importance,
        created_at=memory.created,
        trust=trust_of(mind, record),
        file=record.place.path,
        outcome=memory.outcome,
        warning=outcomes.warning(memory, claimed_by=newer.claimant),
        superseded_by=newer.successor,
        competing=others,
        private=record.place.private or None,
    )


@frozen
class UndoneFile:
    """A file of the change."""

    file: File
    action: Annotated[Action, Out("What undoing does to it")]
    changed: Annotated[bool, Out("Whether it changed after the command")]


@frozen
class ChangeRow:
    """A command that changed files."""

    id: str
    time: datetime
    command: Annotated[str, Out("The words after `mind`")]
    by: Annotated[Omitted[str], Out("The agent that called it", omit=True)]
    undoes: Annotated[Omitted[str], Out("The change that it took back", omit=True)]
    files: Annotated[Omitted[tuple[str, ...]], Out("The files that it changed", omit=True)] = None
    undone: Annotated[Omitted[bool], Out("Whether it was taken back", omit=True)] = None


@frozen
class Undone:
    """What was taken back, or what can be."""

    change: Annotated[ChangeRow | None, Out("The change that was taken back", omit=True)] = None
    files: Annotated[Omitted[tuple[UndoneFile, ...]], Out("Its files", omit=True)] = None
    redo: Annotated[Omitted[str], Out("Id for `mind undo ID` to redo the change", omit=True)] = None
    dry_run: Annotated[Omitted[bool], Out("True if nothing was changed", omit=True)] = None
    changes: Annotated[
        Omitted[tuple[ChangeRow, ...]], Out("With `list`: newest first", omit=True)
    ] = None
    purged: Annotated[Omitted[int], Out("Changes removed from the trash", omit=True)] = None


@command(
    "mind_undo",
    cli="undo",
    effect=Effect.DESTROY,
    toolset="extra",
    errors=(AmbiguousId, Conflict, Denied, Invalid, NotFound, StorageFailed),
    examples=(
        "mind undo",
        "mind undo --list",
        "mind undo k3v7mq --dry-run",
        "mind undo k3v7mq --purge",
    ),
)
def undo(
    mind: Mind,
    id: Annotated[str | None, Arg("Id of the change, or a start or end of it")] = None,
    *,
    list_: Annotated[bool, Arg("List the changes that can be undone", wire="list")] = False,
    limit: Limit = 20,
    dry_run: Annotated[bool, Arg("Show the effect and change nothing")] = False,
    force: Annotated[bool, Arg("Undo even if a file has changed since")] = False,
    purge: Annotated[
        bool,
        Arg("Remove the change (or `all`) from the trash for good", surfaces=Surface.CLI),
    ] = False,
) -> Undone:
    """Take back the last change, or a particular one

    Files become what they were before the command, byte for byte; their present text goes to the
    trash. `mind undo` again redoes the change. Approvals stay as they are: text that was approved
    still is, and other text is not.
    """
    if list_ + (dry_run or force) + purge > 1:
        raise Invalid(
            "`list`, `purge` and `dry_run` or `force` exclude each other", hint="use one of them"
        )
    if purge:
        if id is None:
            raise Invalid("`--purge` needs a change", hint="name one of `--list`, or `all`")
        return Undone(purged=undoing.purge(mind, id))
    if list_:
        return Undone(changes=tuple(map(_row, undoing.changes(mind, limit))))
    done = undoing.undo(mind, id, dry_run=dry_run, force=force)
    return Undone(
        change=_change(done.entry),
        files=tuple(
            UndoneFile(file=one.kept.path, action=one.action, changed=one.changed)
            for one in done.steps
        ),
        redo=done.redo,
        dry_run=dry_run or None,
    )


def _row(change: undoing.Change) -> ChangeRow:
    return _change(change.entry, files=change.files, undone=change.undone)


def _change(
    entry: Entry, *, files: tuple[str, ...] | None = None, undone: bool | None = None
) -> ChangeRow:
    return ChangeRow(
        id=entry.id,
        time=entry.time,
        command=entry.command,
        by=entry.by,
        undoes=entry.undoes,
        files=files,
        undone=undone,
    )
