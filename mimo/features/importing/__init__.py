"""Importing the memories of a MAMA v1.0 database, and rolling an import back."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from mimo.errors import Invalid, NotFound, SecretDetected, StorageFailed
from mimo.features.decisions import checkpoints
from mimo.features.importing import database
from mimo.features.importing.database import Manifest, Snapshot
from mimo.features.importing.mama import EDGES, TABLES, Converted, LinkCounts, convert
from mimo.frozen import frozen
from mimo.memory import codec
from mimo.memory.model import Kind, Memory, Problem
from mimo.mind import Mind
from mimo.operations import refresh, saving
from mimo.store.memories import NewFile, rendered

T = TypeVar("T")

BATCH = 500
"""Files that are written under one lock: others needn't wait for a whole import."""
_SAYS_NOTHING = "it says nothing"


@frozen
class Row:
    """A row of the source and its result."""

    table: str
    key: str
    """The row's own id."""
    memory: Memory | None = None
    file: NewFile | None = None
    skipped: str | None = None
    """The reason why it is skipped."""
    there: str | None = None
    """The file that has its id already."""
    changed: bool = False
    """True if that file differs from the row."""


@frozen
class Outcome:
    """The result of an import, or its plan."""

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
    """Imports the memories of a MAMA database into the project and returns the result.

    With `dry_run` nothing is written. Raises `NotFound` if there is no database, `Invalid` if it is
    not MAMA's, and `StorageFailed`.
    """
    saving.check_format(mind)
    source, more = database.locate(named, mind.environ)
    snapshot = database.snapshot(source, (*TABLES, EDGES))
    converted = convert(snapshot.tables, now=mind.now().replace(microsecond=0))
    if dry_run:
        return _outcome(source, snapshot, converted, _planned(mind, converted), more)
    with database.hold(mind.project.root):
        rows = _planned(mind, converted)
        backup = database.keep_backup(mind.project.root, snapshot.data, snapshot.digest)
        lost = _write(mind, rows, _manifest(mind, source, snapshot, backup, rows))
    outcome = _outcome(source, snapshot, converted, rows, more)
    return replace(outcome, lost=lost, backup=backup, manifest=database.path_of(source))


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
        saving.check_texts(mind, row.memory)
        # Sessions are talk, and name folders of this machine: nobody commits them unawares.
        private = row.memory.type is Kind.CONTEXT
        return replace(row, file=rendered(row.memory, private=private))
    except (Invalid, SecretDetected) as error:
        return replace(row, skipped=error.message)


def _existing(mind: Mind, ours: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Returns, for each id that is there, its file's path and digest."""
    existing: dict[str, tuple[str, str]] = {}
    for path in mind.store.stamps():
        digest = mind.store.digest(path)
        read = () if ours.get(path) == digest else mind.store.read(path)
        if not isinstance(read, Problem):
            existing.update((record.memory.id, (path, digest)) for record in read)
        if path in ours:
            # The name is taken, whatever the file says.
            existing[path.rpartition("/")[2].removesuffix(".md")] = (path, digest)
    return existing


def _compared(row: Row, there: Mapping[str, tuple[str, str]]) -> Row:
    if row.file is None or row.memory is None or row.memory.id not in there:
        return row
    path, digest = there[row.memory.id]
    return replace(row, there=path, changed=digest != row.file.digest)


def _manifest(
    mind: Mind, source: Path, snapshot: Snapshot, backup: str, rows: Iterable[Row]
) -> Manifest:
    """Returns the list of what this import and earlier ones of the same source have written."""
    before = database.read(mind.project.root, database.path_of(source))
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
    root, path = mind.project.root, database.path_of(Path(manifest.source))
    database.write(root, path, manifest)
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
    refresh.refresh(mind)
    if not lost:
        database.write(root, path, replace(manifest, finished=mind.now()))
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
    if snapshot.version and snapshot.version > database.NEWEST_VERSION:
        yield (
            f"its schema is version {snapshot.version}, newer than {database.NEWEST_VERSION}: "
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


@frozen
class RolledBack:
    """The result of a rollback, or its plan."""

    manifest: Manifest
    path: str
    """The path of the manifest."""
    removed: tuple[str, ...]
    gone: tuple[str, ...]
    """Files that had been removed already."""
    changed: tuple[str, ...]
    """Files that stay, since they were changed after the import."""


def roll_back(mind: Mind, named: str | None, *, dry_run: bool) -> RolledBack:
    """Removes what was imported from a MAMA database, `named` where there were several.

    With `dry_run` nothing is removed. Raises `NotFound` where nothing was imported, `Invalid` where
    it isn't clear from where, and `StorageFailed`.
    """
    saving.check_format(mind)
    root = mind.project.root
    path = _path(mind, named)
    if dry_run:
        return _sorted(mind, path, _read(root, path))
    with database.hold(root):
        found = _sorted(mind, path, _read(root, path))
        stay = mind.store.delete_all({name: found.manifest.files[name] for name in found.removed})
        changed = {name: found.manifest.files[name] for name in (*found.changed, *stay)}
        if changed:
            database.write(root, path, replace(found.manifest, files=changed))
        else:
            database.forget(root, path)
    refresh.refresh(mind)
    removed = tuple(name for name in found.removed if name not in stay)
    return replace(found, removed=removed, changed=tuple(changed))


def _path(mind: Mind, named: str | None) -> str:
    """Returns where the list of the import is that is meant."""
    root = mind.project.root
    known = database.known(root)
    if named:
        path = database.path_of(database.expanded(named, mind.environ))
        if path not in known:
            raise NotFound(f"nothing was imported from `{named}`", hint=_sources(root, known))
        return path
    if not known:
        raise NotFound("nothing was imported here", hint="see `mind import mama --help`")
    if len(known) > 1:
        raise Invalid(
            f"{len(known)} databases were imported; which one goes?", hint=_sources(root, known)
        )
    return known[0]


def _sources(root: Path, known: tuple[str, ...]) -> str:
    listed = ", ".join(f"--db {_read(root, path).source}" for path in known)
    return f"name one: {listed}" if listed else "see `mind import mama --help`"


def _read(root: Path, path: str) -> Manifest:
    manifest = database.read(root, path)
    if manifest is None:
        raise NotFound("nothing was imported here", hint="somebody has taken it back meanwhile")
    return manifest


def _sorted(mind: Mind, path: str, manifest: Manifest) -> RolledBack:
    """Returns which files would go and which would stay."""
    stamps = mind.store.stamps()
    there = {name: digest for name, digest in manifest.files.items() if name in stamps}
    same = tuple(name for name, digest in there.items() if mind.store.digest(name) == digest)
    return RolledBack(
        manifest=manifest,
        path=path,
        removed=same,
        gone=tuple(name for name in manifest.files if name not in there),
        changed=tuple(name for name in there if name not in set(same)),
    )
