"""The everyday commands on single memories: add, show, edit, rm."""

from datetime import datetime
from typing import Annotated

from mimo.commands.common import (
    Again,
    Already,
    At,
    File,
    Id,
    Importance,
    Private,
    Stale,
    Tags,
    Trust,
    Undo,
    Warning,
    trust_of,
)
from mimo.commands.spec import Arg, Effect, Surface, command
from mimo.commands.types import Json, Omitted, Out
from mimo.domain import outcomes
from mimo.domain.memory import Kind, Memory, Outcome, Record, kind_of
from mimo.errors import AmbiguousId, Conflict, Invalid, NotFound, SecretDetected, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import accesses, capture, doubles, recall, sources, undo
from mimo.services.doubles import Told


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
    note = capture.draft(
        kind_of(type), content, importance=importance, tags=tags, topic=topic, title=title
    )
    return _written(mind, doubles.store(mind, note, private=private, again=again))


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
    from mimo.services import freshness, past

    mind = past.at(mind, at).mind if at is not None else mind
    if parts := sources.named(mind, id):
        return _source(mind, parts)
    record = recall.one(mind, id)
    accesses.note(mind, [record])
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
    record = recall.one(mind, id)
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
        return _written(mind, Told(record=capture.rewrite(mind, record, file_text)))
    return _written(mind, Told(record=capture.edit(mind, record, **changes)))


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
        first = parts[0] if parts else recall.one(mind, id, surely=True)
        undo.forget(mind, first.place.path)
    if parts:
        sources.remove(mind, parts)
        first = parts[0]
        return Removed(
            id=first.parent or "",
            title=first.origin,
            file=first.place.path,
            chunks=len(parts),
            undo=undo.entry_id(),
        )
    record = capture.remove(mind, id)
    return Removed(
        id=record.memory.id,
        title=record.memory.heading,
        file=record.place.path,
        undo=undo.entry_id(),
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
        notice=doubles.notices(told.notice, mind.notice),
    )


def _link(mind: Mind, to: str, kind: str) -> LinkRow:
    record = mind.index.named(to)
    return LinkRow(to=to, type=kind, title=record.memory.heading if record else None)
