"""What git remembers of the memory: log, blame, restore."""

from datetime import datetime
from typing import Annotated

from mimo.commands.common import File, Id, Limit, Undo
from mimo.commands.spec import Arg, Effect, command
from mimo.commands.types import Omitted, Out
from mimo.errors import AmbiguousId, Conflict, Invalid, NotFound, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import history, recall, undo
from mimo.store.revisions import Commit


@frozen
class CommitRow:
    """A commit."""

    commit: str
    date: datetime
    author: str
    agents: Annotated[Omitted[str], Out("The agents that remembered it, by commas", omit=True)]
    subject: str


@frozen
class TouchedFile:
    """A file that a commit changed."""

    file: File
    change: Annotated[str, Out("`added`, `changed` or `removed`")]


@frozen
class LogRow:
    """A commit, and what it did to the memory."""

    commit: CommitRow
    files: tuple[TouchedFile, ...]


@frozen
class Log:
    """The commits that changed the memory, newest first."""

    commits: tuple[LogRow, ...]


@frozen
class BlamedLine:
    """A line of a memory's file."""

    line: Annotated[int, Out("Its number, from 1")]
    text: str
    commit: CommitRow


@frozen
class Blame:
    """Who wrote which line of a memory."""

    id: str
    title: str
    by: Annotated[Omitted[str], Out("The agent that made the memory")]
    session: Annotated[Omitted[str], Out("The session in which it was made")]
    file: File
    lines: tuple[BlamedLine, ...]


@frozen
class Restored:
    """A memory that was brought back."""

    id: str
    title: str
    file: File
    commit: CommitRow
    undo: Undo = None


@command(
    "mind_log",
    cli="log",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, NotFound, AmbiguousId),
    examples=("mind log", "mind log k3v7mq"),
)
def log(
    mind: Mind,
    id: Annotated[
        str | None, Arg("Only this memory, also one that is gone (its whole id)", complete="id")
    ] = None,
    *,
    limit: Limit = 20,
) -> Log:
    """Show the commits that changed the memory, newest first"""
    steps = history.log(mind, id, limit)
    return Log(
        commits=tuple(
            LogRow(
                commit=_commit(step.commit),
                files=tuple(TouchedFile(file=one.path, change=one.change) for one in step.files),
            )
            for step in steps
        )
    )


@command(
    "mind_blame",
    cli="blame",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, NotFound, AmbiguousId),
    examples=("mind blame k3v7mq",),
)
def blame(mind: Mind, id: Id) -> Blame:
    """Show who wrote each line of a memory, and when"""
    record = recall.one(mind, id)
    session = record.memory.extra.get("session")
    return Blame(
        id=record.memory.id,
        title=record.memory.heading,
        by=record.memory.by,
        session=str(session) if session is not None else None,
        file=record.place.path,
        lines=tuple(
            BlamedLine(line=one.number, text=one.text, commit=_commit(one.commit))
            for one in history.blame(mind, record)
        ),
    )


@command(
    "mind_restore",
    cli="restore",
    effect=Effect.WRITE,
    toolset="extra",
    errors=(Invalid, NotFound, AmbiguousId, Conflict, StorageFailed),
    examples=("mind restore k3v7mq --at HEAD~3",),
)
def restore(
    mind: Mind,
    id: Annotated[str, Arg("Id of the memory, also one that is gone", complete="id")],
    *,
    at: Annotated[str, Arg("The commit, branch, tag or date to take it from")] = "HEAD",
) -> Restored:
    """Bring a memory back as it was

    Its file becomes the one of that commit, byte for byte. The text that it replaces, committed or
    not, goes to the trash: `mind undo` brings it back.
    """
    done = history.restore(mind, id, at)
    memory = done.record.memory
    return Restored(
        id=memory.id,
        title=memory.heading,
        file=done.record.place.path,
        commit=_commit(done.commit),
        undo=undo.entry_id(),
    )


def _commit(commit: Commit) -> CommitRow:
    return CommitRow(
        commit=commit.short,
        date=commit.when,
        author=commit.author,
        agents=commit.agents or None,
        subject=commit.subject,
    )
