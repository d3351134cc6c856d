"""The output of `mind import mama`."""

from collections.abc import Sequence

from mimo.features.importing.commands import Done, LinksMade, MamaImport
from mimo.rendering.results import count, render
from mimo.rendering.screen import Screen, accent, bad, dim, good, strong, warn

_SHOWN = 10
"""Files and rows that are named one by one."""


@render.register
def _(result: MamaImport, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    for note in result.notes:
        screen.note(note)
    if result.done in (Done.IMPORTED, Done.PLANNED):
        _brought_in(result, screen)
    else:
        _taken_back(result, screen)


def _brought_in(result: MamaImport, screen: Screen) -> None:
    new = sum(row.written for row in result.tables)
    written = count(new, "memory", "memories") if new else "nothing new"
    source = dim(f"  from {result.source}")
    if result.done is Done.PLANNED:
        screen.line(strong(f"{written} would come"), source)
    else:
        screen.line(good("✓ "), strong(f"{written} imported" if new else "nothing new"), source)
    headers = ("table", "becomes", "found", "new", "already there", "skipped")
    rows = [
        (
            row.table,
            row.type.value,
            *(f"{n:,}" for n in (row.found, row.written, row.already_there, row.skipped)),
        )
        for row in result.tables
    ]
    screen.blank()
    screen.table(headers, rows)
    screen.blank()
    if result.links and result.links.found:
        screen.line(_links(result.links), indent=2)
    for left in result.skipped:
        some = ", ".join(left.ids) + (", …" if left.count > len(left.ids) else "")
        rows_left = count(left.count, "row")
        screen.line(
            warn(f"skipped {rows_left} of {left.table}: {left.reason}"), f" ({some})", indent=2
        )
    if result.done is Done.PLANNED:
        screen.line("nothing was written; without --dry-run it is", indent=2)
    else:
        _settled(result, screen)


def _links(links: LinksMade) -> str:
    """Returns the links in words, with what became of those that were not written."""
    parts = [
        (links.repeated, "said twice"),
        (links.kept_aside, "told in a header, since the newer decision is gone"),
        (links.left_out, "left out: to itself, or between two that are gone"),
        (links.dangling, "to a decision that is gone (`mind doctor` lists them)"),
    ]
    messages = [f"{number:,} {what}" for number, what in parts if number]
    return "; ".join([f"{count(links.written, 'link')} of {links.found:,} statements", *messages])


def _settled(result: MamaImport, screen: Screen) -> None:
    if result.verified:
        screen.line(good("verified: "), "every row was read back or is accounted for", indent=2)
    else:
        screen.line(
            bad("not verified: "),
            f"{count(len(result.lost), 'row')} could not be read back",
            indent=2,
        )
        _named(result.lost, screen)
        screen.line(dim("`mind doctor` says what is wrong with a file"), indent=2)
    screen.line(dim(f"backup:   {result.backup}"), indent=2)
    screen.line(dim(f"manifest: {result.manifest}"), indent=2)
    screen.line("to take it back: ", accent("`mind import mama --rollback`"), indent=2)


def _taken_back(result: MamaImport, screen: Screen) -> None:
    removed = count(result.removed, "memory", "memories")
    if result.done is Done.ROLLBACK_PLANNED:
        screen.line(strong(f"{removed} would be removed"), dim(f"  from {result.source}"))
    else:
        screen.line(good("✓ "), strong(f"{removed} removed"), dim(f"  from {result.source}"))
    if result.gone:
        screen.line(dim(f"{result.gone:,} had been removed before"), indent=2)
    if result.kept:
        changed = count(len(result.kept), "file")
        screen.line(warn(f"{changed} stay, changed since the import:"), indent=2)
        _named(result.kept, screen)
    screen.line(dim(f"the copy of the database stays: {result.backup}"), indent=2)


def _named(listed: Sequence[str], screen: Screen) -> None:
    for name in listed[:_SHOWN]:
        screen.line(name, indent=4)
    if len(listed) > _SHOWN:
        screen.line(dim(f"and {len(listed) - _SHOWN:,} more"), indent=4)
