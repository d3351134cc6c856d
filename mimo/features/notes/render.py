"""Renderers of single memories, lists of memories and undone changes."""

from mimo.features.notes.commands import (
    ChangeRow,
    MemoryDetails,
    MemoryRow,
    MemoryRows,
    Removed,
    Undone,
    Written,
)
from mimo.operations.undoing import Action
from mimo.rendering.results import count, day, labels, render, row_labels, tagged
from mimo.rendering.screen import Part, Screen, accent, bad, dim, good, strong, warn


@render.register
def _(result: Written, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    before = "  stored before" if result.already else ""
    screen.line(good("✓ "), strong(result.title), before, *labels(private=result.private))
    screen.line(accent(result.id), indent=2)
    screen.line(dim(result.file), indent=2)


@render.register
def _(result: Removed, screen: Screen) -> None:
    chunks = f" with {count(result.chunks, 'chunk')}" if result.chunks else ""
    screen.line(good("✓ "), "removed ", strong(result.title), chunks)
    screen.line(dim(result.file), indent=2)
    if result.undo:
        screen.note("`mind undo` restores it")


@render.register
def _(result: MemoryDetails, screen: Screen) -> None:
    screen.line(strong(result.title), *row_labels(result))
    if result.warning:
        screen.line(bad(result.warning), indent=2)
    screen.pairs(_facts(result), indent=2)
    if result.extra:
        # Separate from our own rows: any author can write `trust: trusted` into a header.
        screen.line(dim("also in its header:"), indent=2)
        screen.pairs([(key, str(value)) for key, value in result.extra.items()], indent=4)
    screen.blank()
    sections = [f"## {name}\n\n{text}" for name, text in result.sections.items()]
    screen.markdown("\n\n".join(part for part in (result.content, *sections) if part))


def _facts(result: MemoryDetails) -> list[tuple[str, Part]]:
    stamp = result.created_at.strftime("%Y-%m-%d %H:%M UTC")
    rows: list[tuple[str, Part | None]] = [
        ("id", accent(result.id)),
        ("type", result.type),
        ("topic", result.topic),
        ("tags", tagged(result.tags)),
        ("status", result.status),
        ("category", result.category),
        ("source", result.source),
        ("importance", f"{result.importance:g}"),
        ("confidence", None if result.confidence is None else f"{result.confidence:g}"),
        ("created", f"{stamp}{f' by {result.by}' if result.by else ''}"),
        ("file", f"{result.file}:{result.line}"),
        *((f"{link.type}", f"{link.to}  {link.title or '(missing)'}") for link in result.links),
    ]
    return [(name, value) for name, value in rows if value]


@render.register
def _(result: MemoryRows, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    if result.unreadable:
        files = count(result.unreadable, "file")
        screen.note(f"{files} could not be read; `mind doctor` lists them")
    if not result.total:
        screen.line("no memories")
        screen.note("`mind add TEXT` stores one; `mind list` without filters lists all")
        return
    for row in result.memories:
        _row(row, screen)
    shown = len(result.memories)
    first = result.offset + 1
    part = "" if shown == result.total else f"{first:,} to {result.offset + shown:,} of "
    screen.blank()
    screen.line(dim(f"{part}{count(result.total, 'memory', 'memories')}"))


def _row(row: MemoryRow, screen: Screen) -> None:
    tags = f"  {tagged(row.tags)}" if row.tags else ""
    about = dim(f"{day(row.created_at)}  {row.type:<11} ")
    screen.line(about, row.title, dim(tags), *row_labels(row))
    screen.line(accent(row.id), indent=2)
    for warning in filter(None, (row.warning, row.stale)):
        screen.line(bad(warning), indent=2)


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
    rows = [
        (row.file, f"{words[row.action]}{', changed since' if row.changed else ''}")
        for row in result.files or ()
    ]
    _files(rows, screen)
    if result.redo:
        screen.note("`mind undo` again redoes it")


def _files(rows: list[tuple[str, str]], screen: Screen) -> None:
    for file, about in rows[:_MOST_FILES]:
        screen.line(dim(file), f"  {about}" if about else "", indent=2)
    if len(rows) > _MOST_FILES:
        screen.line(dim(f"and {len(rows) - _MOST_FILES:,} more files"), indent=2)
