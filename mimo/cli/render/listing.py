"""How lists of memories look."""

from mimo.cli.render import Screen, accent, bad, dim, render
from mimo.cli.render.words import count, day, labels, tagged
from mimo.commands.listing import MemoryRow, MemoryRows


@render.register
def _(result: MemoryRows, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    if result.unreadable:
        files = count(result.unreadable, "file")
        screen.note(f"{files} could not be read; `mind doctor` lists them")
    if not result.total:
        screen.line("no memories")
        screen.note("`mind add TEXT` makes one; without filters `mind list` shows all")
        return
    for row in result.memories:
        _row(row, screen)
    shown = len(result.memories)
    first = result.offset + 1
    part = "" if shown == result.total else f"{first:,} to {result.offset + shown:,} of "
    screen.blank()
    screen.line(dim(f"{part}{count(result.total, 'memory', 'memories')}"))


def _row(row: MemoryRow, screen: Screen) -> None:
    marks = labels(
        outcome=row.outcome,
        superseded_by=row.superseded_by,
        trust=row.trust,
        private=row.private,
        competing=row.competing,
    )
    tags = f"  {tagged(row.tags)}" if row.tags else ""
    screen.line(dim(f"{day(row.created_at)}  {row.type:<11} "), row.title, dim(tags), *marks)
    screen.line(accent(row.id), indent=2)
    for warning in filter(None, (row.warning, row.stale)):
        screen.line(bad(warning), indent=2)
