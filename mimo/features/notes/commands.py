"""`mind add`, `edit` and `rm`: writing and removing memories."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import (
    AmbiguousId,
    Conflict,
    Hint,
    Invalid,
    NotFound,
    Option,
    SecretDetected,
    StorageFailed,
    join_texts,
)
from mimo.frozen import frozen, replace
from mimo.memory.model import Kind, Record, kind_of, tag_key
from mimo.operations import lookup, removing, saving, undoing
from mimo.operations.rows import (
    Again,
    Already,
    Because,
    File,
    Importance,
    Owner,
    Private,
    Reference,
    SureId,
    Tags,
    Undo,
    Untrusted,
    result_of,
    row_of,
    untrusted,
)
from mimo.operations.saving import Stored
from mimo.privacy.model import texts_of
from mimo.rendering import Screen, good, ident, titled
from mimo.rendering.results import count, render, row_labels


@frozen
class Written:
    """The result of writing a memory."""

    id: str
    type: Kind
    title: str
    file: File
    private: bool
    trust: Untrusted
    scope: Owner = None
    already: Already = None
    others: Annotated[
        Omitted[tuple[str, ...]], Out("The other memories that were changed with it")
    ] = None
    notice: Omitted[str] = None


@frozen
class RemovedRow:
    """A removed memory."""

    id: str
    title: str
    trust: Untrusted
    file: File
    chunks: Annotated[Omitted[int], Out("Number of chunks removed with it")] = None


@frozen
class Removed:
    """The result of removing a memory."""

    id: str
    title: str
    trust: Untrusted
    file: File
    chunks: Annotated[Omitted[int], Out("Number of chunks removed with it")] = None
    others: Annotated[
        Omitted[tuple[RemovedRow, ...]], Out("The other memories that were removed with it")
    ] = None
    undo: Undo = None
    notice: Annotated[Omitted[str], Out("Other files that had its text")] = None


MoreIds = Annotated[tuple[str, ...], Arg("More memories", complete="id", surfaces=Surface.CLI)]


@command(
    "mind_add",
    cli="add",
    effect=Effect.WRITE,
    toolset="extra",
    errors=(Invalid, SecretDetected, StorageFailed),
    examples=(
        "mind add The staging database is reset every night",
        'mind add --type decision --topic auth "Use JWT with refresh tokens"',
        "mind add --user Always use pnpm",
        "git log -1 --format=%B | mind add --type observation --tag release",
    ),
)
def add(
    call: Call,
    content: Annotated[str, Arg("What to remember, as Markdown", words=True, stdin=True)],
    *,
    type: Annotated[str, Arg("Type of memory", complete="type")] = "fact",
    title: Annotated[str | None, Arg("Title (default: the first line)")] = None,
    topic: Annotated[str | None, Arg("Topic, such as auth_strategy")] = None,
    tags: Tags = (),
    reasoning: Because = None,
    importance: Importance = 0.5,
    private: Private = False,
    everywhere: Annotated[
        bool,
        Arg("Keep it for all projects; what an agent adds, the user approves first", wire="user"),
    ] = False,
    again: Again = False,
) -> Written:
    """Store a memory

    The memory is a Markdown file under `.mind/`, and the next search finds it. An exact duplicate
    of a current memory is not stored again. A memory for all projects is in the user's own
    folder; what an agent adds there counts once the user approves it.
    """
    note = saving.draft(
        kind_of(type),
        content,
        importance=importance,
        tags=tags,
        topic=topic,
        title=title,
        reasoning=reasoning,
    )
    return _written(call, saving.store_once(call, note, private=private, again=again))


@command(
    "mind_edit",
    cli="edit",
    effect=Effect.WRITE,
    toolset="extra",
    of_user=True,
    errors=(NotFound, AmbiguousId, Invalid, SecretDetected, Conflict, StorageFailed),
    examples=(
        "mind edit k3v7mq",
        "mind edit k3v7mq --importance 0.9 --tag api --tag limits",
        "mind edit k3v7mq --add-tag api --remove-tag draft",
        "mind edit auth_strategy --importance 0.9",
        "mind edit k3v7mq --status resolved",
        "mind list --tag draft --ids | mind edit --stdin-ids --remove-tag draft",
    ),
)
def edit(
    call: Call,
    id: Reference,
    ids: MoreIds = (),
    *,
    content: Annotated[str | None, Arg("New content", stdin=True, compared=True)] = None,
    title: Annotated[str | None, Arg("New title", compared=True)] = None,
    topic: Annotated[str | None, Arg("New topic")] = None,
    tags: Annotated[
        tuple[str, ...] | None,
        Arg("New tags; an empty one removes all tags", complete="tag", short="t"),
    ] = None,
    add_tags: Annotated[tuple[str, ...], Arg("Tags to add", complete="tag")] = (),
    remove_tags: Annotated[tuple[str, ...], Arg("Tags to remove", complete="tag")] = (),
    importance: Annotated[float | None, Arg("New importance, 0 to 1", ge=0, le=1)] = None,
    status: Annotated[
        str | None,
        Arg(
            "New status, such as resolved for an issue; an empty one removes it",
            agents="New status, such as resolved for an issue",
        ),
    ] = None,
    file_text: Annotated[str | None, Arg("New text of the whole file", compared=True)] = None,
) -> Written:
    """Change a memory, in $EDITOR unless options name the change

    All other bytes of the file stay as they are, including comments and unknown keys. If one
    of several memories can't be changed, none is; one undo reverts all.
    """
    texts = {"content": content, "title": title, "file_text": file_text}
    if ids and (names := [name for name, text in texts.items() if text is not None]):
        raise Invalid(f"`{names[0]}` is of one memory", hint="give one id")
    if tags is not None and (add_tags or remove_tags):
        raise Invalid(
            "`tags` replaces all tags, so none can be added or removed beside it",
            hint="use `add_tags` and `remove_tags`, or `tags`",
        )
    records = [lookup.meant(call, each, alone=True) for each in dict.fromkeys((id, *ids))]
    for record in records:
        saving.check_changeable(record)
    # Secrets that the memory has already may stay in these texts.
    compared = {"content": content, "title": title}
    previous, private = "\n".join(texts_of(records[0].memory)), records[0].place.private
    saving.check_secrets(call, compared, previous=previous, private=private)
    tags = saving.clean_tags(() if tags == ("",) else tags) if tags is not None else None
    fields = {**compared, "topic": topic, "tags": tags, "importance": importance, "status": status}
    changes: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    if bool(changes or add_tags or remove_tags) == (file_text is not None):
        raise Invalid(
            "`file_text` excludes other changes" if changes else _nothing_to_change(call),
            hint=Hint("name what to change, such as ", Option(importance="0.9")),
        )
    if file_text is not None:
        return _written(call, Stored(record=saving.rewrite(call, records[0], file_text)))
    return _edited(call, records, changes, add_tags, remove_tags)


def _edited(
    call: Call,
    records: list[Record],
    changes: Mapping[str, Any],
    add_tags: tuple[str, ...],
    remove_tags: tuple[str, ...],
) -> Written:
    """Changes all of the memories, or none, and returns the first."""
    edits = []
    for record in {record.memory.id: record for record in records}.values():
        fields = dict(changes)
        if add_tags or remove_tags:
            fields["tags"] = _retagged(record.memory.tags, add_tags, remove_tags)
        edits.append((record, fields))
    records = undoing.edit_all(call, edits)
    names = tuple(record.memory.id for record in records[1:])
    return replace(_written(call, Stored(record=records[0])), others=names or None)


def _nothing_to_change(call: Call) -> str:
    # On a terminal, an editor would have opened.
    is_typed = call.caller.surface is Surface.CLI
    return "there is no terminal for an editor" if is_typed else "nothing to change"


def _retagged(
    tags: tuple[str, ...], add: tuple[str, ...], drop: tuple[str, ...]
) -> tuple[str, ...]:
    """Returns tags with some added and others removed, which may be in upper or lower case.

    Raises `Invalid` for a tag to remove that is not among them, most often a misspelled one.
    """
    added, dropped = saving.clean_tags(add), saving.clean_tags(drop)
    present = {tag_key(tag) for tag in tags}
    if missing := [tag for tag in dropped if tag_key(tag) not in present]:
        listed = f"its tags are {', '.join(tags)}" if tags else "it has no tags"
        raise Invalid(f"`{missing[0]}` is not a tag of the memory", hint=listed)
    removed = {tag_key(tag) for tag in dropped}
    retained_tags = [tag for tag in tags if tag_key(tag) not in removed]
    return (*retained_tags, *(tag for tag in added if tag_key(tag) not in present - removed))


def _written(call: Call, stored: Stored) -> Written:
    notice = join_texts(stored.notice, call.notice)
    already = stored.already or None
    return result_of(call, stored.record, Written, already=already, notice=notice)


@command(
    "mind_rm",
    cli="rm",
    effect=Effect.DESTROY,
    toolset="extra",
    of_user=True,
    errors=(NotFound, AmbiguousId, StorageFailed),
    examples=("mind rm k3v7mq", "mind rm k3v7mq 2sreaq", "mind rm k3v7mq --purge"),
)
def rm(
    call: Call,
    id: SureId,
    ids: MoreIds = (),
    *,
    purge: Annotated[
        bool, Arg("Keep no copy in the trash, not even of earlier text", surfaces=Surface.CLI)
    ] = False,
) -> Removed:
    """Remove memories; undo restores them

    The id of an ingested file removes all of its chunks, the id of a chunk only that chunk. If one
    of several ids has no memory, nothing is removed. A purge is for a secret: nothing of the file
    stays in the trash, in the index and in the notes in CLAUDE.md, and its text is unstaged in git.
    Git keeps what was committed.
    """
    names = [_name(*_to_remove(call, reference)) for reference in (id, *ids)]
    notices: list[str | None] = []
    first, *others = [_removed(call, name, notices, purge=purge) for name in dict.fromkeys(names)]
    return row_of(
        first,
        Removed,
        others=tuple(others) or None,
        undo=undoing.entry_id(),
        notice=join_texts(*dict.fromkeys(notices)),
    )


def _to_remove(call: Call, reference: str) -> tuple[tuple[Record, ...], Record]:
    """Returns the chunks of an ingested file, and the first one; or none, and a memory."""
    parts = lookup.source(call, reference, surely=True)
    return parts, parts[0] if parts else lookup.one(call, reference, surely=True)


def _name(parts: tuple[Record, ...], record: Record) -> str:
    return (record.parent if parts else None) or record.memory.id


def _removed(call: Call, name: str, notices: list[str | None], *, purge: bool) -> RemovedRow:
    """Removes a memory or an ingested file, and adds notices of other files with its text."""
    parts, record = _to_remove(call, name)
    label, quoted = untrusted(call, record), None  # The removal retires the approval.
    if purge:
        removing.check_removal(call, parts or [record])  # What the trash had can't come back.
        quoted = undoing.forget(call, record)
    if parts:
        removing.remove_source(call, parts)
    else:
        removing.remove_record(call, record)
    if quoted:
        from mimo.features.context.files import forget

        notices += (undoing.unstage(call, record), forget(call, quoted))
        notices += (undoing.forget_ids(call, (name,)), _same_id(call, name))
    return result_of(
        call,
        record,
        RemovedRow,
        id=name,
        title=record.origin if parts else record.memory.heading,
        trust=label,
        chunks=len(parts) or None,
    )


def _same_id(call: Call, id: str) -> str | None:
    """Returns a notice of another file that has the id of a purged memory; None without one."""
    with suppress(StorageFailed):
        for record in filter(None, (call.index.get(id), *call.index.parts(id))):
            return f"{record.place.path} has the same id: repeat the command to purge it too"
    return None


@render.register
def _(result: Written, screen: Screen) -> None:
    if result.others:
        screen.line(good("✓ "), f"changed {count(len(result.others) + 1, 'memory', 'memories')}")
        screen.note("`mind undo` reverts all of it")
        return
    remark = "  stored before" if result.already else ""
    title = titled(result.title)
    screen.line(good("✓ "), ident(result.id), "  ", title, remark, *row_labels(result))


@render.register
def _(result: Removed, screen: Screen) -> None:
    rows: list[Removed | RemovedRow] = [result, *(result.others or ())]
    for row in rows:
        chunks = f" with {count(row.chunks, 'chunk')}" if row.chunks else ""
        screen.line(
            good("✓ "), "removed ", ident(row.id), "  ", titled(row.title), chunks, *row_labels(row)
        )
    if result.undo:
        screen.note(f"`mind undo` restores {'them' if result.others else 'it'}")
