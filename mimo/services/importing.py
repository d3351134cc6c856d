"""Taking over the memories of a MAMA v1.0 database.

First a copy of the source and the list of all files to come, then the files, then a look at each
of them. Whatever interrupts it, a second run writes what is missing and changes nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from mimo.domain import codec
from mimo.domain.mama import TABLES, Converted, LinkCounts, convert
from mimo.domain.mama.conversion import EDGES
from mimo.domain.memory import Kind, Memory, Problem
from mimo.errors import Invalid, SecretDetected, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import capture, checkpoints, upkeep
from mimo.store import imports, mama
from mimo.store.imports import Manifest
from mimo.store.mama import Snapshot
from mimo.store.memories import NewFile, rendered

T = TypeVar("T")

BATCH = 500
"""Files that are written under one lock: others needn't wait for a whole import."""
_SAYS_NOTHING = "it says nothing"


@frozen
class Row:
    """A row of the source and what becomes of it."""

    table: str
    key: str
    """The row's own id."""
    memory: Memory | None = None
    file: NewFile | None = None
    skipped: str | None = None
    """Why it becomes no memory."""
    there: str | None = None
    """The file that has its id already."""
    changed: bool = False
    """Whether that file says something else than the row."""


@frozen
class Outcome:
    """What an import did, or would do."""

    source: Path
    snapshot: Snapshot
    rows: tuple[Row, ...]
    links: LinkCounts
    notes: tuple[str, ...]
    lost: tuple[Row, ...] = ()
    """Rows whose memory could not be read back as it should be."""
    backup: str | None = None
    manifest: str | None = None


def import_mama(mind: Mind, named: str | None, *, dry_run: bool) -> Outcome:
    """Brings the memories of a MAMA database into the project and returns what was done.

    With `dry_run` nothing is written. Raises `NotFound` where there is no database, `Invalid` where
    it is none of MAMA's, and `StorageFailed`.
    """
    capture.check_format(mind)
    source, more = mama.locate(named, mind.environ)
    snapshot = mama.snapshot(source, (*TABLES, EDGES))
    converted = convert(snapshot.tables, now=mind.now().replace(microsecond=0))
    if dry_run:
        return _outcome(source, snapshot, converted, _planned(mind, converted), more)
    with imports.hold(mind.project.root):
        rows = _planned(mind, converted)
        backup = imports.keep_backup(mind.project.root, snapshot.data, snapshot.digest)
        lost = _write(mind, rows, _manifest(mind, source, snapshot, backup, rows))
    outcome = _outcome(source, snapshot, converted, rows, more)
    return replace(outcome, lost=lost, backup=backup, manifest=imports.path_of(source))


def _outcome(
    source: Path,
    snapshot: Snapshot,
    converted: Converted,
    rows: tuple[Row, ...],
    more: Iterable[Path],
) -> Outcome:
    return Outcome(
        source=source,
        snapshot=snapshot,
        rows=rows,
        links=converted.links,
        notes=(*_notes(snapshot, more), *_left_alone(rows)),
    )


def _planned(mind: Mind, converted: Converted) -> tuple[Row, ...]:
    """Returns what becomes of each row, given the memories that are there."""
    rows = [
        _refused(mind, Row(table=one.table, key=one.key, memory=one.memory))
        for one in converted.rows
    ]
    there = _existing(mind, {row.file.path: row.file.digest for row in rows if row.file})
    return tuple(_compared(row, there) for row in rows)


def _refused(mind: Mind, row: Row) -> Row:
    """Returns a row with its file, or with the reason why there can be none.

    The one place where something that must not be stored is kept out.
    """
    if row.memory is None:
        return replace(row, skipped=_SAYS_NOTHING)
    try:
        capture.check_texts(mind, row.memory)
        # Sessions are talk, and name folders of this machine: nobody commits them unawares.
        private = row.memory.type is Kind.CONTEXT
        return replace(row, file=rendered(row.memory, private=private))
    except (Invalid, SecretDetected) as error:
        return replace(row, skipped=error.message)


def _existing(mind: Mind, ours: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Returns, for each id that is there, its file's path and digest."""
    found: dict[str, tuple[str, str]] = {}
    for path in mind.store.stamps():
        digest = mind.store.digest(path)
        read = () if ours.get(path) == digest else mind.store.read(path)
        if not isinstance(read, Problem):
            found.update((record.memory.id, (path, digest)) for record in read)
        if path in ours:
            # The name is taken, whatever the file says.
            found[path.rpartition("/")[2].removesuffix(".md")] = (path, digest)
    return found


def _compared(row: Row, there: Mapping[str, tuple[str, str]]) -> Row:
    if row.file is None or row.memory is None or row.memory.id not in there:
        return row
    path, digest = there[row.memory.id]
    return replace(row, there=path, changed=digest != row.file.digest)


def _manifest(
    mind: Mind, source: Path, snapshot: Snapshot, backup: str, rows: Iterable[Row]
) -> Manifest:
    """Returns the list of what this import and earlier ones of the same source have written."""
    before = imports.read(mind.project.root, imports.path_of(source))
    new = {row.file.path: row.file.digest for row in rows if row.file and not row.there}
    return Manifest(
        source=str(source).encode("utf-8", "replace").decode(),
        digest=snapshot.digest,
        backup=backup,
        began=mind.now(),
        finished=None,
        counts={table: len(found) for table, found in snapshot.tables.items()},
        files={**(before.files if before else {}), **new},
    )


def _write(mind: Mind, rows: Iterable[Row], manifest: Manifest) -> tuple[Row, ...]:
    """Writes the memories that are missing and returns the rows that could not be read back."""
    root, path = mind.project.root, imports.path_of(Path(manifest.source))
    imports.write(root, path, manifest)
    ours = [row.file for row in rows if row.file and not row.changed]
    _approve(mind, ours)
    new = [row.file for row in rows if row.file and not row.there]
    _claim(mind, rows)
    done = 0
    for batch in _batches(new, BATCH):
        try:
            mind.store.create_all(batch)
        except StorageFailed as error:
            error.hint = "run it again to write the rest, or take it back with --rollback"
            raise
        for _ in batch:
            done += 1
            mind.advance("Importing", done, len(new))
    lost = tuple(_unread(mind, [row for row in rows if row.file]))
    upkeep.refresh(mind)
    if not lost:
        imports.write(root, path, replace(manifest, finished=mind.now()))
    return lost


def _approve(mind: Mind, ours: Iterable[NewFile]) -> None:
    """Approves exactly these texts before they are written: an import may be interrupted."""
    try:
        mind.trust.approve(file.digest for file in ours)
    except StorageFailed as error:
        mind.note("trust", f"they could not be approved and count as untrusted: {error.message}")


def _claim(mind: Mind, rows: Iterable[Row]) -> None:
    """Remembers that new checkpoints are this machine's, so that work goes on from the last."""
    memories = [row.memory for row in rows if row.memory and row.file and not row.there]
    if ours := [memory.id for memory in memories if memory.type is Kind.CHECKPOINT]:
        checkpoints.claim(mind, ours, None)


def _unread(mind: Mind, rows: list[Row]) -> Iterator[Row]:
    """Yields the rows whose memory does not stand in its file."""
    for done, row in enumerate(rows, 1):
        path = row.there or (row.file.path if row.file else "")
        read = mind.store.read(path)
        mind.advance("Verifying", done, len(rows))
        if isinstance(read, Problem) or row.memory is None:
            yield row
            continue
        found = {record.memory.id: record.memory for record in read}.get(row.memory.id)
        if found is None or not (row.changed or found == codec.normal(row.memory)):
            yield row


def _notes(snapshot: Snapshot, more: Iterable[Path]) -> Iterator[str]:
    """Yields what people should know about the source."""
    for path in more:
        yield f"`{path}` is there as well; bring it in with --db"
    missing = [table for table in (*TABLES, EDGES) if table not in snapshot.tables]
    if missing:
        yield f"the database has no table {', '.join(missing)}"
    if snapshot.version and snapshot.version > mama.NEWEST_VERSION:
        yield (
            f"its schema is version {snapshot.version}, newer than {mama.NEWEST_VERSION}: "
            "columns that are new are kept under their own names"
        )
    for table, count in snapshot.others.items():
        yield f"table {table} holds no memories: {count:,} rows stay in the backup alone"


def _left_alone(rows: Iterable[Row]) -> Iterator[str]:
    changed = sum(row.changed for row in rows)
    if changed:
        yield (
            f"{changed:,} that were there already say something else than the database, "
            "and were left as they are"
        )


def _batches(listed: Iterable[T], size: int) -> Iterator[list[T]]:
    remaining = iter(listed)
    while batch := list(islice(remaining, size)):
        yield batch
