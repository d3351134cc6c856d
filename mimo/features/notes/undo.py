"""`mind undo`: undoing and redoing any change."""

from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Annotated

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import AmbiguousId, Conflict, Denied, Invalid, NotFound, StorageFailed, join_texts
from mimo.frozen import frozen, replace
from mimo.operations import undoing
from mimo.operations.rows import File, Limit, Owner, file_of, owner_of, row_of
from mimo.operations.undoing import Action
from mimo.rendering import Screen, accent, dim, good, strong, warn
from mimo.rendering.results import count, render, second

_DryRun = Annotated[bool, Arg("Show the effect and change nothing")]
_OfUser = Annotated[
    bool, Arg("Only in your memory for all projects", wire="user", surfaces=Surface.CLI)
]


@frozen
class UndoneFile:
    """A file of the change."""

    file: File
    action: Annotated[Action, Out("Effect of undoing on the file")]
    changed: Annotated[bool, Out("Whether it changed after the command")]


class Next(StrEnum):
    """The command that reverts or repeats a change next."""

    UNDO = "undo"
    REDO = "redo"


@frozen
class ChangeRow:
    """A command that changed files."""

    id: str
    time: datetime
    command: Annotated[str, Out("The words after `mind`")]
    by: Annotated[Omitted[str], Out("The agent that called it")]
    undoes: Annotated[Omitted[str], Out("The change that it undid")]
    files: Annotated[Omitted[tuple[str, ...]], Out("The files that it changed")] = None
    undone: Annotated[Omitted[bool], Out("Whether it was undone")] = None
    next: Annotated[Omitted[Next], Out("The command that takes it next, without an id")] = None
    scope: Owner = None


@frozen
class Undone:
    """The change that was undone, or the changes that can be."""

    change: Annotated[Omitted[ChangeRow], Out("The change that was undone")] = None
    files: Annotated[Omitted[tuple[UndoneFile, ...]], Out("Its files")] = None
    redo: Annotated[Omitted[str], Out("Id for `mind undo ID` to redo the change")] = None
    redone: Annotated[Omitted[bool], Out("True if the change was redone")] = None
    dry_run: Annotated[Omitted[bool], Out("True if nothing was changed")] = None
    changes: Annotated[Omitted[tuple[ChangeRow, ...]], Out("With `list`: newest first")] = None
    purged: Annotated[Omitted[int], Out("Changes removed from the trash")] = None
    notice: Annotated[Omitted[str], Out("What redoes it, and texts that were unstaged in git")] = (
        None
    )


@command(
    "mind_undo",
    cli="undo",
    effect=Effect.DESTROY,
    any_format=lambda arguments: arguments["list_"],
    toolset="extra",
    of_user=True,
    owner=undoing.owner_of_last,
    errors=(AmbiguousId, Conflict, Denied, Invalid, NotFound, StorageFailed),
    examples=(
        "mind undo",
        "mind undo --list",
        "mind undo k3v7mq --dry-run",
        "mind undo k3v7mq --purge",
    ),
)
def undo(
    call: Call,
    id: Annotated[str | None, Arg("Id of the change, or a start or end of it")] = None,
    *,
    list_: Annotated[bool, Arg("List the changes that can be undone", wire="list")] = False,
    limit: Limit = 20,
    dry_run: _DryRun = False,
    force: Annotated[bool, Arg("Undo even if a file has changed since")] = False,
    purge: Annotated[
        bool,
        Arg("Remove the change (or `all`) from the trash for good", surfaces=Surface.CLI),
    ] = False,
    everywhere: _OfUser = False,
) -> Undone:
    """Undo the last change, or a particular one

    Files are restored to their state before the command, byte for byte; their present text goes to
    the trash. A second undo goes one change further back, and redo forward again. Approvals stay:
    text that was approved still is, and other text is not.
    """
    if list_ + (dry_run or force) + purge > 1:
        raise Invalid(
            "`list`, `purge` and `dry_run` or `force` exclude each other", hint="use one of them"
        )
    if purge:
        if id is None:
            raise Invalid("`purge` needs a change", hint="name one of `list`, or `all`")
        purged, notice = undoing.purge(call, id)
        return Undone(purged=purged, notice=notice)
    if list_:
        return Undone(changes=_listed(call, limit))
    done = undoing.undo(call, id, dry_run=dry_run, force=force)
    return _answered(call, done, dry_run=dry_run)


@command(
    "mind_redo",
    cli="redo",
    effect=Effect.DESTROY,
    toolset="extra",
    of_user=True,
    owner=partial(undoing.owner_of_last, redoes=True),
    errors=(Conflict, Denied, NotFound, StorageFailed),
    examples=("mind redo", "mind redo --dry-run"),
)
def redo(
    call: Call,
    *,
    dry_run: _DryRun = False,
    force: Annotated[bool, Arg("Redo even if a file has changed since")] = False,
    everywhere: _OfUser = False,
) -> Undone:
    """Redo the change that was undone last

    Each call redoes one more change of those that were undone, until a new change is made.
    """
    done = undoing.undo(call, None, redoes=True, dry_run=dry_run, force=force)
    return replace(_answered(call, done, dry_run=dry_run), redone=True)


def _listed(call: Call, limit: int) -> tuple[ChangeRow, ...]:
    """Returns the newest changes; those of the user's memory only if they are later."""
    user = call.user() if call.agent is None else None
    last_id = call.mind.trash.last
    rows = []
    for owner in filter(None, (call, user)):
        place = undoing.position(owner)
        next_of = {
            entry.id: step
            for entry, step in (
                (place.origin(place.redo), Next.REDO),
                (place.origin(place.undo), Next.UNDO),
            )
            if entry
        }
        rows += [
            row_of(
                change.entry,
                ChangeRow,
                files=tuple(file_of(owner, path) for path in change.files),
                undone=change.undone,
                next=next_of.get(change.entry.id),
                scope=owner_of(owner),
            )
            for change in undoing.changes(owner, limit)
            if owner is call or change.entry.id > last_id
        ]
    return tuple(sorted(rows, key=lambda row: row.id, reverse=True)[:limit])


def _answered(call: Call, done: undoing.Undone, *, dry_run: bool) -> Undone:
    return Undone(
        change=row_of(done.entry, ChangeRow),
        files=tuple(
            UndoneFile(file=file_of(call, step.kept.path), action=step.action, changed=step.changed)
            for step in done.steps
        ),
        redo=done.redo,
        dry_run=dry_run or None,
        notice=join_texts(done.hint, call.notice),
    )


_DONE = {
    Action.RESTORE: "restored",
    Action.REPLACE: "replaced",
    Action.REMOVE: "removed",
    Action.NOTHING: "unchanged",
}
_PLANNED = {
    Action.RESTORE: "would be restored",
    Action.REPLACE: "would be replaced",
    Action.REMOVE: "would be removed",
    Action.NOTHING: "would stay unchanged",
}
_MOST_FILES = 20


@render.register
def _(result: Undone, screen: Screen) -> None:
    if result.purged is not None:
        screen.line(good("✓ "), f"{count(result.purged, 'change')} removed from the trash for good")
    if result.changes is not None:
        _list(result.changes, screen)
    if result.change is not None:
        _undone(result, result.change, screen)


def _list(changes: tuple[ChangeRow, ...], screen: Screen) -> None:
    if not changes:
        screen.line("no change can be undone")
    for row in changes:
        mark = warn("  undone") if row.undone else ""
        step = strong(f"  next {row.next}") if row.next else ""
        scope = dim(f"  {row.scope}") if row.scope else ""
        by = f" by {row.by}" if row.by else ""
        about = f" of {_short(row.undoes)}" if row.undoes else ""
        when = dim(f"  {second(row.time)}{by}")
        name = strong(undoing.name_of(row.command))
        screen.line(accent(_short(row.id)), "  ", name, about, when, scope, mark, step)
        _files([(path, "") for path in row.files or ()], screen)


def _undone(result: Undone, change: ChangeRow, screen: Screen) -> None:
    words = _PLANNED if result.dry_run else _DONE
    redo = "re" if result.redone else "un"
    verb = f"would {redo}do" if result.dry_run else f"{redo}did"
    when = dim(f"  {second(change.time)}")
    name = strong(undoing.name_of(change.command))
    if any(row.action is not Action.NOTHING for row in result.files or ()):
        screen.line(good("✓ "), f"{verb} ", name, when)
    else:
        state = "after" if result.redone else "before"
        screen.line(f"nothing to {redo}do: the files are as {state} ", name, when)
    rows = [
        (row.file, f"{words[row.action]}{', changed since' if row.changed else ''}")
        for row in result.files or ()
    ]
    _files(rows, screen)


def _short(id: str) -> str:
    """Returns the end of a change's id, which is enough to name it."""
    return id.rpartition("_")[2]


def _files(rows: list[tuple[str, str]], screen: Screen) -> None:
    """Prints the files of a change, except those that mind keeps for itself."""
    rows = [row for row in rows if not undoing.is_own(row[0])]
    for file, about in rows[:_MOST_FILES]:
        screen.line(dim(file), f"  {about}" if about else "", indent=2)
    if len(rows) > _MOST_FILES:
        screen.line(dim(f"and {len(rows) - _MOST_FILES:,} more files"), indent=2)
