"""`mind import mama`: importing the memories of MAMA v1.0."""

from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from mimo.commands.spec import Arg, Effect, Needs, Omitted, Out, Surface, command
from mimo.errors import Invalid, NotFound, SecretDetected, StorageFailed
from mimo.features import importing
from mimo.features.importing.mama import TABLES, LinkCounts
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.rendering import Screen, accent, bad, dim, good, strong, warn
from mimo.rendering.results import count, render

_NAMED = 5
"""Skipped rows with one reason whose ids are listed."""
_SHOWN = 10
"""Files and rows that are printed one by one."""


class Done(StrEnum):
    """The result of the command."""

    IMPORTED = "imported"
    PLANNED = "planned"
    ROLLED_BACK = "rolled_back"
    ROLLBACK_PLANNED = "rollback_planned"


@frozen
class TableCounts:
    """The numbers of a table's rows; `found` is the sum of the others."""

    table: str
    type: Annotated[Kind, Out("The type that its rows become")]
    found: int
    written: Annotated[int, Out("New memories")]
    already_there: Annotated[int, Out("Not changed: a memory has that id")]
    skipped: int


@frozen
class Skipped:
    """Rows that do not become memories, for one reason."""

    table: str
    reason: str
    count: int
    ids: Annotated[tuple[str, ...], Out("The first of them")]


@frozen
class MamaImport:
    """The result of importing a MAMA database, or of rolling that back."""

    done: Done
    source: Annotated[str, Out("The database, which is never changed")]
    verified: Annotated[bool, Out("Whether each row was read back from its file, or accounted for")]
    tables: tuple[TableCounts, ...] = ()
    links: Omitted[LinkCounts] = None
    skipped: tuple[Skipped, ...] = ()
    lost: Annotated[tuple[str, ...], Out("Rows that could not be read back")] = ()
    removed: Annotated[int, Out("Files that were rolled back")] = 0
    gone: Annotated[int, Out("Files that had been removed before")] = 0
    kept: Annotated[tuple[str, ...], Out("Files that stay because they were changed")] = ()
    backup: Annotated[Omitted[str], Out("The copy of the database", omit=True)] = None
    manifest: Annotated[Omitted[str], Out("The list of what was written", omit=True)] = None
    notes: tuple[str, ...] = ()
    notice: Omitted[str] = None

    @property
    def exit_status(self) -> int:
        """Returns the exit status of the command line: 1 if a row could not be read back."""
        return 0 if self.verified else 1


@command(
    "mind_import_mama",
    cli="import mama",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE),
    errors=(Invalid, NotFound, SecretDetected, StorageFailed),
    examples=(
        "mind import mama --dry-run",
        "mind import mama",
        "mind import mama ~/.claude/mama-memory.db",
        "mind import mama --rollback",
    ),
)
def mama(
    mind: Mind,
    db: Annotated[
        str | None,
        Arg("The database (default: where MAMA keeps it)", named=True, complete="path"),
    ] = None,
    *,
    dry_run: Annotated[bool, Arg("Show what would be imported, and write nothing")] = False,
    rollback: Annotated[bool, Arg("Remove the imported memories, except changed ones")] = False,
) -> MamaImport:
    """Import the memories of MAMA v1.0

    The database is only read, and copied before anything is written. Decisions, checkpoints,
    sessions and error patterns become memories with their ids and links. An existing memory is
    never changed, so an interrupted import is completed by running it again.
    """
    if rollback:
        back = importing.roll_back(mind, db, dry_run=dry_run)
        return MamaImport(
            done=Done.ROLLBACK_PLANNED if dry_run else Done.ROLLED_BACK,
            source=back.manifest.source,
            verified=True,
            removed=len(back.removed),
            gone=len(back.missing),
            kept=back.changed,
            backup=back.manifest.backup,
            manifest=back.manifest.path if back.changed or dry_run else None,
            notice=mind.notice,
        )
    outcome = importing.import_mama(mind, db, dry_run=dry_run)
    return MamaImport(
        done=Done.PLANNED if dry_run else Done.IMPORTED,
        source=str(outcome.source),
        verified=not outcome.lost,
        tables=tuple(
            _counts(table, [row for row in outcome.rows if row.source.table == table])
            for table in TABLES
            if table in outcome.snapshot.tables
        ),
        links=outcome.links,
        skipped=_skipped(outcome.rows),
        lost=tuple(f"{row.source.table} {row.source.key}" for row in outcome.lost),
        backup=outcome.backup,
        manifest=outcome.manifest,
        notes=outcome.notes,
        notice=mind.notice,
    )


def _counts(table: str, rows: Sequence[importing.Row]) -> TableCounts:
    return TableCounts(
        table=table,
        type=TABLES[table],
        found=len(rows),
        written=sum(row.new is not None for row in rows),
        already_there=sum(row.existing is not None for row in rows),
        skipped=sum(row.skipped is not None for row in rows),
    )


def _skipped(rows: Sequence[importing.Row]) -> tuple[Skipped, ...]:
    groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        if row.skipped:
            groups[row.source.table, row.skipped].append(row.source.key)
    return tuple(
        Skipped(table=table, reason=reason, count=len(keys), ids=tuple(keys[:_NAMED]))
        for (table, reason), keys in groups.items()
    )


@render.register
def _(result: MamaImport, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    for note in result.notes:
        screen.note(note)
    if result.done in (Done.IMPORTED, Done.PLANNED):
        _show_import(result, screen)
    else:
        _show_rollback(result, screen)


def _show_import(result: MamaImport, screen: Screen) -> None:
    is_plan = result.done is Done.PLANNED
    new = sum(row.written for row in result.tables)
    written = count(new, "memory", "memories") if new else "nothing new"
    source = dim(f"  from {result.source}")
    if is_plan:
        screen.line(strong(f"{written} would be imported"), source)
    else:
        screen.line(good("✓ "), strong(f"{written} imported" if new else written), source)
    screen.blank()
    screen.table(
        ("table", "becomes", "found", "new", "already there", "skipped"),
        [
            (
                row.table,
                row.type.value,
                *(f"{n:,}" for n in (row.found, row.written, row.already_there, row.skipped)),
            )
            for row in result.tables
        ],
    )
    screen.blank()
    if links := result.links:
        parts = [
            (links.repeated, "repeated"),
            (links.kept_aside, "kept in a header, because the newer decision is missing"),
            (links.left_out, "left out: to itself, or between two missing decisions"),
            (links.dangling, "to a missing decision (`mind doctor` lists them)"),
        ]
        many = f"{count(links.written, 'link')} of {links.found:,} statements"
        if links.found:
            details = [f"{number:,} {what}" for number, what in parts if number]
            screen.line("; ".join([many, *details]), indent=2)
    for left in result.skipped:
        ids = ", ".join(left.ids) + (", …" if left.count > len(left.ids) else "")
        skipped = f"skipped {count(left.count, 'row')} of {left.table}: {left.reason}"
        screen.line(warn(skipped), f" ({ids})", indent=2)
    if is_plan:
        screen.line("nothing was written; run it without --dry-run to import", indent=2)
        return
    if result.verified:
        screen.line(good("verified: "), "every row was read back or is accounted for", indent=2)
    else:
        unread = f"{count(len(result.lost), 'row')} could not be read back"
        screen.line(bad("not verified: "), unread, indent=2)
        _show_names(result.lost, screen)
        screen.line(dim("`mind doctor` reports the damaged files"), indent=2)
    screen.line(dim(f"backup:   {result.backup}"), indent=2)
    screen.line(dim(f"manifest: {result.manifest}"), indent=2)
    screen.line("to undo the import: ", accent("`mind import mama --rollback`"), indent=2)


def _show_rollback(result: MamaImport, screen: Screen) -> None:
    removed = count(result.removed, "memory", "memories")
    source = dim(f"  from {result.source}")
    if result.done is Done.ROLLBACK_PLANNED:
        screen.line(strong(f"{removed} would be removed"), source)
    else:
        screen.line(good("✓ "), strong(f"{removed} removed"), source)
    if result.gone:
        screen.line(dim(f"{result.gone:,} had been removed before"), indent=2)
    if result.kept:
        changed = count(len(result.kept), "file")
        screen.line(warn(f"{changed} changed since the import, and not removed:"), indent=2)
        _show_names(result.kept, screen)
    screen.line(dim(f"the copy of the database stays: {result.backup}"), indent=2)


def _show_names(names: Sequence[str], screen: Screen) -> None:
    for name in names[:_SHOWN]:
        screen.line(name, indent=4)
    if len(names) > _SHOWN:
        screen.line(dim(f"and {len(names) - _SHOWN:,} more"), indent=4)
