"""`mind add`, `show`, `edit`, `rm` and `list` for memories, and `mind undo` for any change."""

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
    facts,
    narrowed,
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
from mimo.memory.model import Kind, Memory, Outcome, Record, Sort, kind_of
from mimo.mind import Mind
from mimo.operations import duplicates, finding, refresh, saving, undoing
from mimo.operations.duplicates import Stored
from mimo.operations.undoing import Action
from mimo.store.trash import Entry


@frozen
class LinkRow:
    """A link to another memory."""

    to: str
    type: str
    title: Annotated[str | None, Out("Title of the other memory; null if it is missing")]


@frozen
class MemoryDetails:
    """A whole memory."""

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
        Out("Text under the fixed headings, such as Reasoning, and under Competing after a merge"),
    ]
    links: tuple[LinkRow, ...]
    warning: Warning
    superseded_by: Omitted[str]
    extra: Annotated[dict[str, Json], Out("Header keys that mind itself does not use")]
    private: bool
    trust: Trust
    file: File
    line: Annotated[int, Out("Line of the file on which the content begins, from 1")]
    stale: Stale = None


@frozen
class Written:
    """The result of writing a memory."""

    id: str
    type: Kind
    title: str
    file: File
    private: bool
    already: Already = None
    notice: Omitted[str] = None


@frozen
class Removed:
    """The result of removing a memory."""

    id: str
    title: str
    file: File
    chunks: Annotated[Omitted[int], Out("Number of chunks removed with it", omit=True)] = None
    undo: Undo = None


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
    total: Annotated[int, Out("Number of memories that pass the filters, on all pages")]
    offset: int
    unreadable: Annotated[Omitted[int], Out("Files that could not be read", omit=True)] = None
    notice: Annotated[Omitted[str], Out("The revision that is shown", omit=True)] = None


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
    title: Annotated[str | None, Arg("Title (default: the first line)")] = None,
    topic: Annotated[str | None, Arg("Topic, such as auth_strategy")] = None,
    tags: Tags = (),
    importance: Importance = 0.5,
    private: Private = False,
    again: Again = False,
) -> Written:
    """Remember something

    The memory is a Markdown file under `.mind/`, and the next search finds it. An exact duplicate
    of a current memory is not stored again.
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
    """Show a whole memory

    The id of an ingested file shows an outline of its chunks.
    """
    mind = finding.at(mind, at).mind if at is not None else mind
    if parts := finding.source(mind, id):
        return _outline(mind, parts)
    record = finding.one(mind, id)
    finding.note(mind, [record])
    memory = record.memory
    return facts(mind, [record])[0].row(
        MemoryDetails,
        sections=_sections(memory),
        links=tuple(_link(mind, link.to, link.type) for link in memory.links),
        extra=dict(memory.extra),
        private=record.place.private,
    )


def _sections(memory: Memory) -> dict[str, str]:
    """Returns the sections after the content, and the versions that a merge left unresolved."""
    sections = {name.value: text for name, text in memory.sections.items()}
    for version in memory.competing:
        heading = f"Competing: {version.field}"
        before = f"{sections[heading]}\n\n" if heading in sections else ""
        sections[heading] = before + version.text
    return sections


def _link(mind: Mind, to: str, kind: str) -> LinkRow:
    record = mind.index.named(to)
    return LinkRow(to=to, type=kind, title=record.memory.heading if record else None)


def _outline(mind: Mind, parts: tuple[Record, ...]) -> MemoryDetails:
    """Returns an ingested file as a memory whose content is an outline of its chunks."""
    first = parts[0]
    head, extra = mind.store.source(first.place), first.memory.extra
    details: dict[str, Json] = {"strategy": extra["strategy"], "chunks": len(parts)}
    if head:
        details |= {"sha256": head.sha256} | dict(head.metadata)
    lines = [
        f"- `{part.memory.id}` lines {part.memory.extra['lines']}: {part.memory.heading}"
        for part in parts
    ]
    return facts(mind, [first])[0].row(
        MemoryDetails,
        id=first.parent or "",
        title=first.origin,
        content="\n".join(lines),
        outcome=None,
        source=first.origin,
        sections={},
        links=(),
        warning=None,
        superseded_by=None,
        extra=details,
        private=first.place.private,
        line=1,
        stale=None,
    )


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
        Arg("New tags; an empty one removes all tags", complete="tag", short="t"),
    ] = None,
    importance: Annotated[float | None, Arg("New importance, 0 to 1", ge=0, le=1)] = None,
    file_text: Annotated[str | None, Arg("New text of the whole file", compared=True)] = None,
) -> Written:
    """Change a memory, in $EDITOR unless options name the change

    All other bytes of the file stay as they are, including comments and unknown keys.
    """
    record = finding.one(mind, id)
    given = {
        "content": content,
        "title": title,
        "topic": topic,
        "tags": () if tags == ("",) else tags,
        "importance": importance,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if bool(changes) == (file_text is not None):
        raise Invalid(
            "`file_text` excludes other changes" if changes else "nothing to change",
            hint="name what to change, such as --importance 0.9",
        )
    if file_text is not None:
        return _written(mind, Stored(record=saving.rewrite(mind, record, file_text)))
    return _written(mind, Stored(record=saving.edit(mind, record, **changes)))


def _written(mind: Mind, stored: Stored) -> Written:
    record = stored.record
    return Written(
        id=record.memory.id,
        type=record.memory.type,
        title=record.memory.heading,
        file=record.place.path,
        private=record.place.private,
        already=stored.already or None,
        notice=duplicates.notices(stored.notice, mind.notice),
    )


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
        bool, Arg("Keep no copy in the trash, not even of earlier text", surfaces=Surface.CLI)
    ] = False,
) -> Removed:
    """Remove a memory; `mind undo` restores it

    The id of an ingested file removes all of its chunks, the id of a chunk only that chunk. Use
    `--purge` for a secret: nothing of the file stays in the trash. Git keeps what was committed.
    """
    parts = finding.source(mind, id, surely=True)
    if purge:
        first = parts[0] if parts else finding.one(mind, id, surely=True)
        undoing.forget(mind, first.place.path)
    if parts:
        saving.remove_source(mind, parts)
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
    topic: Annotated[str | None, Arg("Only this topic", complete="topic")] = None,
    outcomes_: Annotated[
        tuple[str, ...], Arg("Only these outcomes: SUCCESS, FAILED, PARTIAL", wire="outcomes")
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
    notice = None
    if at is not None:
        state = finding.at(mind, at)
        mind, notice = state.mind, state.label
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
    options = finding.Options(filter=conditions, sort=sort, limit=limit, offset=offset)
    page = finding.listing(mind, options)
    return MemoryRows(
        memories=tuple(memory.row(MemoryRow) for memory in facts(mind, page.records)),
        total=page.total,
        offset=offset,
        unreadable=len(refresh.problems(mind)) or None,
        notice=notice,
    )


@frozen
class UndoneFile:
    """A file of the change."""

    file: File
    action: Annotated[Action, Out("Effect of undoing on the file")]
    changed: Annotated[bool, Out("Whether it changed after the command")]


@frozen
class ChangeRow:
    """A command that changed files."""

    id: str
    time: datetime
    command: Annotated[str, Out("The words after `mind`")]
    by: Annotated[Omitted[str], Out("The agent that called it", omit=True)]
    undoes: Annotated[Omitted[str], Out("The change that it undid", omit=True)]
    files: Annotated[Omitted[tuple[str, ...]], Out("The files that it changed", omit=True)] = None
    undone: Annotated[Omitted[bool], Out("Whether it was undone", omit=True)] = None


@frozen
class Undone:
    """The change that was undone, or the changes that can be."""

    change: Annotated[ChangeRow | None, Out("The change that was undone", omit=True)] = None
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
    """Undo the last change, or a particular one

    Files are restored to their state before the command, byte for byte; their present text goes to
    the trash. `mind undo` again redoes the change. Approvals stay: text that was approved still
    is, and other text is not.
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
        changes = undoing.changes(mind, limit)
        return Undone(
            changes=tuple(
                _change(change.entry, files=change.files, undone=change.undone)
                for change in changes
            )
        )
    done = undoing.undo(mind, id, dry_run=dry_run, force=force)
    return Undone(
        change=_change(done.entry),
        files=tuple(
            UndoneFile(file=step.kept.path, action=step.action, changed=step.changed)
            for step in done.steps
        ),
        redo=done.redo,
        dry_run=dry_run or None,
    )


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
