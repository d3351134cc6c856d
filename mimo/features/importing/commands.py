"""`mind import`: importing the memories of other tools, and of MAMA v1.0."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Needs, Omitted, Out, command
from mimo.errors import Denied, Invalid, NotFound, SecretDetected, StorageFailed
from mimo.features import importing
from mimo.features.importing.formats import formats
from mimo.features.importing.mama import LinkCounts
from mimo.features.importing.rollback import roll_back
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.memory.approval import approval_of
from mimo.memory.model import Kind
from mimo.operations import encoding
from mimo.operations.rows import row_of
from mimo.rendering import Part, Screen, accent, bad, dim, good, ident, strong, titled, warn
from mimo.rendering.results import count, render

_NAMED = 5
"""Skipped rows with one reason whose ids are listed."""
_MAX_ROWS = 10
"""Files and rows that are printed one by one."""


class Done(StrEnum):
    """The result of the command."""

    IMPORTED = "imported"
    PLANNED = "planned"
    ROLLED_BACK = "rolled_back"
    ROLLBACK_PLANNED = "rollback_planned"


@frozen
class GroupCounts:
    """The numbers of a source's memories of one kind; `total` is the sum of the others."""

    group: Annotated[str, Out("The other tool's word for them")]
    type: Annotated[Omitted[Kind], Out("The type that rows of this table become")]
    total: int
    new: int
    replaced: Annotated[int, Out("Changed in the source since an earlier import")]
    already_there: Annotated[int, Out("Not changed: they are here already")]
    skipped: int


@frozen
class Skipped:
    """Rows that do not become memories, for one reason."""

    table: str
    reason: str
    count: int
    ids: Annotated[tuple[str, ...], Out("The first of them")]


@frozen
class ImportedRow:
    """A new memory."""

    id: str
    title: str


@frozen
class Import:
    """The result of importing a source, or of rolling that back."""

    done: Done
    source: Annotated[str, Out("What was imported, which is never changed")]
    verified: Annotated[bool, Out("Whether each memory was read back from its file")]
    format: Annotated[Omitted[str], Out("Its format")] = None
    groups: tuple[GroupCounts, ...] = ()
    first: Annotated[tuple[ImportedRow, ...], Out("The first of the new memories")] = ()
    links: int = 0
    statements: Annotated[
        Omitted[LinkCounts], Out("How MAMA's statements about links became these")
    ] = None
    skipped: tuple[Skipped, ...] = ()
    approved: Annotated[bool, Out("Whether the user approved the imported texts")] = False
    approvals: Annotated[int, Out("Number of memories of the source that are approved by that")] = 0
    lost: Annotated[tuple[str, ...], Out("Memories that could not be read back")] = ()
    removed: Annotated[int, Out("Files that were rolled back")] = 0
    missing: Annotated[int, Out("Files that were missing already")] = 0
    kept: Annotated[tuple[str, ...], Out("Files that stay because they were changed")] = ()
    backup: Annotated[Omitted[str], Out("The copy of a MAMA database")] = None
    manifest: Annotated[Omitted[str], Out("The list of what was written")] = None
    notes: tuple[str, ...] = ()
    notice: Omitted[str] = None

    @property
    def exit_status(self) -> int:
        """Returns the exit status of the command line: 1 if a memory could not be read back."""
        return 0 if self.verified else 1


@command(
    "mind_import",
    cli="import",
    effect=Effect.WRITE,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE),
    errors=(Denied, Invalid, NotFound, SecretDetected, StorageFailed),
    examples=(
        "mind import ~/notes --from obsidian --dry-run",
        "mind import memory.jsonl",
        "mind import ~/.claude-mem/claude-mem.db --private",
        "mind import ~/notes --rollback",
    ),
)
def import_(
    call: Call,
    source: Annotated[
        str | None, Arg("The file, folder or zip archive to import", complete="path")
    ] = None,
    *,
    from_: Annotated[
        str | None, Arg("Its format (default: recognised)", wire="from", choices=formats)
    ] = None,
    only: Annotated[
        tuple[str, ...], Arg("A project in the source whose memories are imported; `*` for all")
    ] = (),
    dry_run: Annotated[bool, Arg("Show what would be imported, and write nothing")] = False,
    private: Annotated[bool, Arg("Keep the memories on this machine, outside git")] = False,
    trust: Annotated[bool, Arg("Approve the imported texts, as you know them")] = False,
    rollback: Annotated[bool, Arg("Remove the imported memories, except changed ones")] = False,
) -> Import:
    """Import memories and notes of other tools

    The source is only read. Each memory gets its origin as `source`, and counts as untrusted until
    you approve it. A second import adds what is new, and replaces what changed in the source unless
    it was changed here. `mind import mama` imports the database of MAMA v1.0.
    """
    if rollback and trust:
        raise Invalid(
            "`rollback` removes texts, and `trust` approves them",
            hint="use one of them; to approve what stays, run `mind trust --all`",
        )
    if rollback:
        return _rolled_back(call, source, from_, dry_run=dry_run)
    if not source:
        raise Invalid(
            "the source is missing",
            hint="name a file or a folder, such as `mind import ~/notes --from obsidian`",
        )
    outcome = importing.import_source(
        call, source, from_, only=only, private=private, trust=trust, dry_run=dry_run
    )
    return _imported(call, outcome, approved=trust, dry_run=dry_run)


def _imported(call: Call, outcome: importing.Outcome, *, approved: bool, dry_run: bool) -> Import:
    """Returns the result of an import, or of its plan."""
    new = [row.item.memory for row in outcome.rows if row.new and row.item.memory]
    encoding.note_missing(call, 0 if dry_run else len(new))
    named = new[:_NAMED] if outcome.format else ()
    return row_of(
        outcome,
        Import,
        done=Done.PLANNED if dry_run else Done.IMPORTED,
        source=str(outcome.source),
        verified=not outcome.lost,
        groups=_groups(outcome.rows, outcome.tables),
        first=tuple(ImportedRow(id=memory.id, title=memory.heading) for memory in named),
        skipped=_skipped(outcome.rows),
        approved=approved,
        approvals=_approvals(call, outcome.rows) if approved else 0,
        lost=tuple(f"{row.item.group} {row.item.key}" for row in outcome.lost),
        notice=call.notice,
    )


def _approvals(call: Call, rows: Sequence[importing.Row]) -> int:
    """Returns how many memories of a source are approved."""
    approved = call.mind.trust.approved
    return sum(
        approved(approval_of(row.file.path, row.file.data))
        for row in rows
        if row.file and not row.differs
    )


def _rolled_back(call: Call, source: str | None, format: str | None, *, dry_run: bool) -> Import:
    back = roll_back(call, source, format=format, dry_run=dry_run)
    return Import(
        done=Done.ROLLBACK_PLANNED if dry_run else Done.ROLLED_BACK,
        source=back.manifest.source,
        verified=True,
        removed=len(back.removed),
        missing=len(back.missing),
        kept=back.changed,
        backup=back.manifest.backup or None,
        manifest=back.manifest.path if back.changed or dry_run else None,
        notice=call.notice,
    )


def _groups(rows: Sequence[importing.Row], types: Mapping[str, Kind]) -> tuple[GroupCounts, ...]:
    """Returns the numbers of each group of rows; `types` names tables, which may be empty."""
    groups = dict.fromkeys([*types, *(row.item.group for row in rows)])
    return tuple(
        _counts(group, types.get(group), [row for row in rows if row.item.group == group])
        for group in groups
    )


def _counts(group: str, type: Kind | None, rows: Sequence[importing.Row]) -> GroupCounts:
    replaced = sum(row.record is not None for row in rows)
    return GroupCounts(
        group=group,
        type=type,
        total=len(rows),
        new=sum(row.new is not None for row in rows),
        replaced=replaced,
        already_there=sum(row.existing is not None for row in rows) - replaced,
        skipped=sum(row.skipped is not None for row in rows),
    )


@command(
    "mind_import_mama",
    cli="import mama",
    effect=Effect.WRITE,
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
    call: Call,
    db: Annotated[
        str | None,
        Arg("The database (default: where MAMA keeps it)", named=True, complete="path"),
    ] = None,
    *,
    dry_run: Annotated[bool, Arg("Show what would be imported, and write nothing")] = False,
    rollback: Annotated[bool, Arg("Remove the imported memories, except changed ones")] = False,
) -> Import:
    """Import the memories of MAMA v1.0

    The database is only read, and copied before anything is written. Decisions, checkpoints,
    sessions and error patterns become memories with their ids and links. An existing memory is
    never changed, so an interrupted import is completed by running it again.
    """
    if rollback:
        return _rolled_back(call, db, "mama", dry_run=dry_run)
    outcome = importing.import_mama(call, db, dry_run=dry_run)
    approved = call.agent is None and not dry_run
    return _imported(call, outcome, approved=approved, dry_run=dry_run)


def _skipped(rows: Sequence[importing.Row]) -> tuple[Skipped, ...]:
    groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        if row.skipped:
            groups[row.item.group, row.skipped].append(row.item.key)
    return tuple(
        Skipped(table=table, reason=reason, count=len(keys), ids=tuple(keys[:_NAMED]))
        for (table, reason), keys in groups.items()
    )


@render.register
def _(result: Import, screen: Screen) -> None:
    for note in result.notes:
        screen.note(note)
    source = dim(f"  from {result.source}" + (f" ({result.format})" if result.format else ""))
    if result.done in (Done.ROLLED_BACK, Done.ROLLBACK_PLANNED):
        _show_removed(result, source, screen)
        return
    is_plan = result.done is Done.PLANNED
    new, replaced = (
        sum(row.new for row in result.groups), sum(row.replaced for row in result.groups)
    )  # fmt: skip
    is_new = bool(new or replaced)
    words = count(new, "memory", "memories") if is_new else "nothing new"
    words += f" and {replaced:,} replaced" if replaced else ""
    if is_plan:
        screen.line(strong(f"{words} would be imported"), source)
    else:
        screen.line(good("✓ "), strong(f"{words} imported" if is_new else words), source)
    screen.blank()
    _show_groups(result.groups, screen)
    has_details = result.approved or result.skipped or result.statements or not result.verified
    if is_plan or is_new or has_details:
        screen.blank()
    for row in result.first:
        screen.line(ident(row.id), "  ", titled(row.title), indent=2)
    if new > len(result.first) > 0:
        screen.line(dim(f"and {new - len(result.first):,} more"), indent=2)
    if result.statements:
        _show_statements(result.statements, screen)
    elif result.links and is_new:
        screen.line(count(result.links, "link"), indent=2)
    _show_skipped(result.skipped, screen)
    if is_plan:
        screen.line("nothing was written; run it without --dry-run to import", indent=2)
    else:
        _show_next(result, screen, is_new=is_new)


def _show_groups(groups: Sequence[GroupCounts], screen: Screen) -> None:
    names = ("table", "becomes") if any(row.type for row in groups) else ("kind",)
    screen.table(
        (*names, "total", "new", "replaced", "already there", "skipped"),
        [
            (
                row.group,
                *([row.type.value] if row.type else []),
                *(
                    f"{n:,}"
                    for n in (row.total, row.new, row.replaced, row.already_there, row.skipped)
                ),
            )
            for row in groups
        ],
    )


def _show_statements(links: LinkCounts, screen: Screen) -> None:
    parts = [
        (links.repeated, "repeated"),
        (links.kept_aside, "kept in a header, because the newer decision is missing"),
        (links.left_out, "left out: to itself, or between two missing decisions"),
        (links.dangling, "to a missing decision (`mind doctor` lists them)"),
    ]
    if links.found:
        details = [f"{number:,} {words}" for number, words in parts if number]
        total = f"{count(links.written, 'link')} of {links.found:,} statements"
        screen.line("; ".join([total, *details]), indent=2)


def _show_skipped(skipped: Sequence[Skipped], screen: Screen) -> None:
    for left in skipped:
        ids = ", ".join(left.ids) + (", …" if left.count > len(left.ids) else "")
        message = f"skipped {count(left.count, 'row')} of {left.table}: {left.reason}"
        screen.line(warn(message), f" ({ids})", indent=2)


def _show_next(result: Import, screen: Screen, *, is_new: bool) -> None:
    if not result.verified:
        unread = f"{count(len(result.lost), 'memory', 'memories')} could not be read back"
        screen.line(bad("not verified: "), unread, indent=2)
        _show_names(result.lost, screen)
        screen.line(dim("`mind doctor` reports the damaged files"), indent=2)
    if result.backup:
        if result.verified:
            screen.line(good("verified: "), "every row was read back or is accounted for", indent=2)
        screen.line(dim(f"backup:   {result.backup}"), indent=2)
        screen.line(dim(f"manifest: {result.manifest}"), indent=2)
        screen.line("to undo the import: ", accent("`mind import mama --rollback`"), indent=2)
        return
    if result.approved:
        memories = count(result.approvals, "memory", "memories")
        screen.line(f"approved {memories} from {result.source}: agents get them", indent=2)
    elif is_new:
        screen.line("not approved: agents get them once you approve them,", indent=2)
        review, trust = accent("`mind review --kind untrusted`"), accent(screen.trust_command)
        screen.line("one by one with ", review, " or all with ", trust, indent=2)
    if is_new:
        screen.line("to undo the import: ", accent("`mind undo`"), indent=2)


def _show_removed(result: Import, source: Part, screen: Screen) -> None:
    removed = count(result.removed, "memory", "memories")
    if result.done is Done.ROLLBACK_PLANNED:
        screen.line(strong(f"{removed} would be removed"), source)
    else:
        screen.line(good("✓ "), strong(f"{removed} removed"), source)
    if result.missing:
        screen.line(dim(f"{result.missing:,} were missing already"), indent=2)
    if result.kept:
        changed = count(len(result.kept), "file")
        screen.line(warn(f"{changed} changed since the import, and not removed:"), indent=2)
        _show_names(result.kept, screen)
    if result.backup:
        screen.line(dim(f"the copy of the database stays: {result.backup}"), indent=2)


def _show_names(names: Sequence[str], screen: Screen) -> None:
    for name in names[:_MAX_ROWS]:
        screen.line(name, indent=4)
    if len(names) > _MAX_ROWS:
        screen.line(dim(f"and {len(names) - _MAX_ROWS:,} more"), indent=4)
