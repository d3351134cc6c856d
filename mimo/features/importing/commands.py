"""`mind import mama`: importing the memories of MAMA v1.0."""

from collections import Counter
from enum import StrEnum
from typing import Annotated

from mimo.commands.spec import Arg, Effect, Needs, Omitted, Out, Surface, command
from mimo.errors import Invalid, NotFound, SecretDetected, StorageFailed
from mimo.features import importing
from mimo.features.importing.mama import TABLES
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.memory.model import Kind
from mimo.mind import Mind

_NAMED = 5
"""Rows and files of one kind that are named one by one."""


class Done(StrEnum):
    """What was done with the source."""

    IMPORTED = "imported"
    PLANNED = "planned"
    ROLLED_BACK = "rolled_back"
    ROLLBACK_PLANNED = "rollback_planned"


@frozen
class TableCounts:
    """What became of the rows of one table; `found` is the sum of the others."""

    table: str
    type: Annotated[Kind, Out("What its rows become")]
    found: int
    written: Annotated[int, Out("New memories")]
    already_there: Annotated[int, Out("Left as they are: a memory has that id")]
    skipped: int


@frozen
class Skipped:
    """Rows that become no memory, and why."""

    table: str
    reason: str
    count: int
    ids: Annotated[tuple[str, ...], Out("The first of them")]


@frozen
class LinksMade:
    """What became of what decisions say about each other."""

    found: int
    written: int
    repeated: Annotated[int, Out("Said before, in another place of the database")]
    kept_aside: Annotated[int, Out("The newer decision is gone; the older one's header tells it")]
    left_out: Annotated[int, Out("To itself, or between two that are both gone")]
    dangling: Annotated[int, Out("Of those written, how many lead to a decision that is gone")]


@frozen
class MamaImport:
    """What came of importing a MAMA database, or of taking that back."""

    done: Done
    source: Annotated[str, Out("The database, which is never changed")]
    verified: Annotated[bool, Out("Whether each row was read back from its file, or accounted for")]
    tables: tuple[TableCounts, ...] = ()
    links: Omitted[LinksMade] = None
    skipped: tuple[Skipped, ...] = ()
    lost: Annotated[tuple[str, ...], Out("Rows that could not be read back")] = ()
    removed: Annotated[int, Out("Files that were taken back")] = 0
    gone: Annotated[int, Out("Files that somebody had removed before")] = 0
    kept: Annotated[tuple[str, ...], Out("Files that stay, since they were changed")] = ()
    backup: Annotated[Omitted[str], Out("The copy of the database", omit=True)] = None
    manifest: Annotated[Omitted[str], Out("The list of what was written", omit=True)] = None
    notes: tuple[str, ...] = ()
    notice: Omitted[str] = None

    @property
    def exit_status(self) -> int:
        """Returns what the command line exits with: 1 where a row is not accounted for."""
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
        "mind import mama --db ~/.claude/mama-memory.db",
        "mind import mama --rollback",
    ),
)
def mama(
    mind: Mind,
    *,
    db: Annotated[
        str | None,
        Arg("The database, if not where MAMA keeps it", complete="path"),
    ] = None,
    dry_run: Annotated[bool, Arg("Show what would come, and write nothing")] = False,
    rollback: Annotated[bool, Arg("Take the import back, but for files changed since")] = False,
) -> MamaImport:
    """Take over the memories of MAMA v1.0

    The database is only read, and copied before anything is written. Decisions, checkpoints,
    sessions and error patterns become memories with their ids and links; a memory that is there
    already is never changed, so an interrupted import is completed by running it again.
    """
    if rollback:
        return _taken_back(mind, importing.roll_back(mind, db, dry_run=dry_run), dry_run)
    return _brought_in(mind, importing.import_mama(mind, db, dry_run=dry_run), dry_run)


def _brought_in(mind: Mind, outcome: importing.Outcome, dry_run: bool) -> MamaImport:
    links = outcome.links
    return MamaImport(
        done=Done.PLANNED if dry_run else Done.IMPORTED,
        source=str(outcome.source),
        verified=not outcome.lost,
        tables=tuple(
            _counts(table, [row for row in outcome.rows if row.table == table])
            for table in TABLES
            if table in outcome.snapshot.tables
        ),
        links=LinksMade(
            found=links.found,
            written=links.written,
            repeated=links.repeated,
            kept_aside=links.kept_aside,
            left_out=links.left_out,
            dangling=links.dangling,
        ),
        skipped=_skipped(outcome.rows),
        lost=tuple(f"{row.table} {row.key}" for row in outcome.lost),
        backup=outcome.backup,
        manifest=outcome.manifest,
        notes=outcome.notes,
        notice=mind.notice,
    )


def _counts(table: str, rows: list[importing.Row]) -> TableCounts:
    there = sum(row.there is not None for row in rows)
    skipped = sum(row.skipped is not None for row in rows)
    return TableCounts(
        table=table,
        type=TABLES[table],
        found=len(rows),
        written=len(rows) - there - skipped,
        already_there=there,
        skipped=skipped,
    )


def _skipped(rows: tuple[importing.Row, ...]) -> tuple[Skipped, ...]:
    left = [row for row in rows if row.skipped]
    groups = Counter((row.table, row.skipped or "") for row in left)
    return tuple(
        Skipped(
            table=table,
            reason=reason,
            count=count,
            ids=tuple(r.key for r in left if (r.table, r.skipped) == (table, reason))[:_NAMED],
        )
        for (table, reason), count in groups.items()
    )


def _taken_back(mind: Mind, back: importing.RolledBack, dry_run: bool) -> MamaImport:
    return MamaImport(
        done=Done.ROLLBACK_PLANNED if dry_run else Done.ROLLED_BACK,
        source=back.manifest.source,
        verified=True,
        removed=len(back.removed),
        gone=len(back.gone),
        kept=back.changed,
        backup=back.manifest.backup,
        manifest=back.path if back.changed or dry_run else None,
        notice=mind.notice,
    )
