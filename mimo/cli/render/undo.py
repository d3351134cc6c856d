"""How changes that are undone look."""

from mimo.cli.render import Screen, accent, dim, good, render, strong, warn
from mimo.cli.render.words import count
from mimo.commands.undo import ChangeRow, Undone, UndoneFile
from mimo.services.undo import Action

_DONE = {
    Action.RESTORE: "restored",
    Action.REPLACE: "replaced",
    Action.REMOVE: "removed",
    Action.NOTHING: "as before already",
}
_PLANNED = {
    Action.RESTORE: "would be restored",
    Action.REPLACE: "would be replaced",
    Action.REMOVE: "would be removed",
    Action.NOTHING: "is as before already",
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
        by = f" by {row.by}" if row.by else ""
        about = f" of {row.undoes}" if row.undoes else ""
        when = dim(f"  {row.time:%Y-%m-%d %H:%M:%S} UTC{by}")
        screen.line(accent(row.id), "  ", strong(f"mind {row.command}"), about, when, mark)
        _files([(path, "") for path in row.files or ()], screen)


def _undone(result: Undone, change: ChangeRow, screen: Screen) -> None:
    words = _PLANNED if result.dry_run else _DONE
    verb = "would undo" if result.dry_run else "undid"
    when = dim(f"  {change.time:%Y-%m-%d %H:%M:%S} UTC")
    screen.line(good("✓ "), f"{verb} ", strong(f"mind {change.command}"), when)
    _files([(one.file, _about(one, words)) for one in result.files or ()], screen)
    if result.redo:
        screen.note("`mind undo` again redoes it")


def _about(one: UndoneFile, words: dict[Action, str]) -> str:
    return f"{words[one.action]}{', changed since' if one.changed else ''}"


def _files(rows: list[tuple[str, str]], screen: Screen) -> None:
    for file, about in rows[:_MOST_FILES]:
        screen.line(dim(file), f"  {about}" if about else "", indent=2)
    if len(rows) > _MOST_FILES:
        screen.line(dim(f"and {len(rows) - _MOST_FILES:,} more files"), indent=2)
