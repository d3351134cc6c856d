"""`mind undo`: takes back what a command changed."""

from datetime import datetime
from typing import Annotated

from mimo.commands.common import File, Limit
from mimo.commands.spec import Arg, Effect, Surface, command
from mimo.commands.types import Omitted, Out
from mimo.errors import AmbiguousId, Conflict, Denied, Invalid, NotFound, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import undo as undoing
from mimo.services.undo import Action
from mimo.store.trash import Entry


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
