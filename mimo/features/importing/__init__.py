"""Importing the memories of a MAMA v1.0 database, and rolling an import back.

The manifest of a source, `.mind/.local/imports/mama-<hash of its path>.json`, lists every file with
its digest before the first of them is written, so that an interrupted import can be completed or
rolled back. A copy of the source is beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from hashlib import sha256
from pathlib import Path

from mimo import disk
from mimo.disk import STORE
from mimo.errors import Conflict, Invalid, NotFound, SecretDetected, StorageFailed
from mimo.features import decisions
from mimo.features.importing import database
from mimo.features.importing.database import Snapshot
from mimo.features.importing.mama import EDGES, TABLES, LinkCounts, Source, convert
from mimo.frozen import frozen, replace
from mimo.memory import codec
from mimo.memory.model import Kind, Problem
from mimo.mind import Mind
from mimo.operations import refresh, saving
from mimo.store import files
from mimo.store.files import lock
from mimo.store.memories import NewFile, rendered

BATCH = 500
"""Files that are written under one lock: other processes do not wait for a whole import."""

FOLDER = f"{STORE}/.local/imports"
_PATH = re.compile(rf"{re.escape(STORE)}/(?:private/)?[a-z]+/[A-Za-z0-9_-][A-Za-z0-9_.-]*\.md")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@frozen
class Row:
    """A row of the source, and its file or the reason why it has none."""

    source: Source
    file: NewFile | None = None
    skipped: str | None = None
    existing: str | None = None
    """The file that already has its id."""
    changed: bool = False
    """True if that file differs from the row."""

    @property
    def new(self) -> NewFile | None:
        """Returns the file to write, if no memory has its id."""
        return None if self.existing else self.file


@frozen
class Outcome:
    """The result of an import, or its plan."""

    source: Path
    snapshot: Snapshot
    rows: tuple[Row, ...]
    links: LinkCounts
    notes: tuple[str, ...]
    lost: tuple[Row, ...]
    """Rows whose memory could not be read back as it should be."""
    backup: str | None
    manifest: str | None


@frozen
class Manifest:
    """The files that imports from one source have written."""

    path: str
    """Its own file; all paths of files are relative to the project's root."""
    source: str
    backup: str
    files: Mapping[str, str]
    """The digest of each file as it was written."""


def import_mama(mind: Mind, named: str | None, *, dry_run: bool) -> Outcome:
    """Imports the memories of a MAMA database into the project and returns the result.

    With `dry_run` nothing is written. Raises `NotFound` if there is no database, `Invalid` if it is
    not MAMA's, and `StorageFailed`.
    """
    saving.check_format(mind)
    source, others = database.locate(named, mind.environ)
    snapshot = database.snapshot(source, (*TABLES, EDGES))
    sources, links = convert(snapshot.tables, now=mind.now().replace(microsecond=0))
    lost: tuple[Row, ...] = ()
    backup = manifest = None
    if dry_run:
        rows = _planned(mind, sources)
    else:
        root, manifest = mind.project.root, _manifest_path(source)
        with hold(root):
            rows = _planned(mind, sources)
            backup = f"{FOLDER}/mama-{snapshot.digest[:16]}.db"
            with suppress(Conflict):  # the same copy is kept once
                files.write_new(files.safe_path(root, backup), snapshot.data, mode=0o600)
            before = _read(root, manifest)
            new = {row.new.path: row.new.digest for row in rows if row.new}
            listed = Manifest(
                path=manifest,
                source=str(source).encode("utf-8", "replace").decode(),
                backup=backup,
                files={**(before.files if before else {}), **new},
            )
            _write(root, listed)
            _create(mind, rows)
            lost = tuple(_unread(mind, [row for row in rows if row.file]))
            refresh.refresh(mind)
    return Outcome(
        source=source,
        snapshot=snapshot,
        rows=rows,
        links=links,
        notes=tuple(_notes(snapshot, others, rows)),
        lost=lost,
        backup=backup,
        manifest=manifest,
    )


def _planned(mind: Mind, sources: Iterable[Source]) -> tuple[Row, ...]:
    """Returns the result of each row, given the existing memories."""
    rows = [_row(mind, source) for source in sources]
    digests = {row.file.path: row.file.digest for row in rows if row.file}
    existing: dict[str, tuple[str, str]] = {}
    for path in mind.store.stamps():
        digest = mind.store.digest(path)
        read = () if digests.get(path) == digest else mind.store.read(path)
        if not isinstance(read, Problem):
            existing.update((record.memory.id, (path, digest)) for record in read)
        if path in digests:
            # The name is taken, even if the file can't be read or has another id.
            existing[path.rpartition("/")[2].removesuffix(".md")] = (path, digest)
    planned = []
    for row in rows:
        id = row.source.memory.id if row.source.memory else ""
        if row.file and id in existing:
            path, digest = existing[id]
            planned.append(replace(row, existing=path, changed=digest != row.file.digest))
        else:
            planned.append(row)
    return tuple(planned)


def _row(mind: Mind, source: Source) -> Row:
    """Returns a row with its file, or with the reason why it is not imported."""
    if source.memory is None:
        return Row(source=source, skipped="the row is empty")
    try:
        saving.check_texts(mind, source.memory)
        # Sessions hold conversation and paths of this machine, which must not be committed.
        private = source.memory.type is Kind.CONTEXT
        return Row(source=source, file=rendered(source.memory, private=private))
    except (Invalid, SecretDetected) as error:
        return Row(source=source, skipped=error.message)


def _create(mind: Mind, rows: Iterable[Row]) -> None:
    """Approves the imported texts, then writes the missing files, as an import may be interrupted.

    New checkpoints count as made on this machine, so that work is resumed from the last one.
    """
    try:
        mind.trust.approve(row.file.digest for row in rows if row.file and not row.changed)
    except StorageFailed as error:
        mind.note("trust", f"they could not be approved and count as untrusted: {error.message}")
    memories = [row.source.memory for row in rows if row.new and row.source.memory]
    if ids := [memory.id for memory in memories if memory.type is Kind.CHECKPOINT]:
        decisions.claim(mind, ids, None)
    new = [row.new for row in rows if row.new]
    for start in range(0, len(new), BATCH):
        batch = new[start : start + BATCH]
        try:
            mind.store.create_all(batch)
        except StorageFailed as error:
            error.hint = "run it again to write the rest, or roll it back with --rollback"
            raise
        for done in range(start, start + len(batch)):
            mind.advance("Importing", done + 1, len(new))


def _unread(mind: Mind, rows: Sequence[Row]) -> Iterator[Row]:
    """Yields the rows whose file does not hold their memory."""
    for done, row in enumerate(rows, 1):
        mind.advance("Verifying", done, len(rows))
        memory, path = row.source.memory, row.existing or (row.file.path if row.file else "")
        read = mind.store.read(path)
        if memory is None or isinstance(read, Problem):
            yield row
            continue
        stored = {record.memory.id: record.memory for record in read}.get(memory.id)
        if stored is None or not (row.changed or stored == codec.normal(memory)):
            yield row


def _notes(snapshot: Snapshot, others: Iterable[Path], rows: Iterable[Row]) -> Iterator[str]:
    """Yields what the user should know about the source and the existing memories."""
    for path in others:
        yield f"`{path}` exists as well; `mind import mama PATH` imports it"
    missing = [table for table in (*TABLES, EDGES) if table not in snapshot.tables]
    if missing:
        yield f"the database has no table {', '.join(missing)}"
    if snapshot.version and snapshot.version > database.NEWEST_VERSION:
        yield (
            f"its schema is version {snapshot.version}, newer than {database.NEWEST_VERSION}: "
            "new columns are kept under their own names"
        )
    for table, count in snapshot.others.items():
        yield f"table {table} holds no memories: {count:,} rows are only in the backup"
    if changed := sum(row.changed for row in rows):
        yield f"existing memories that differ from the database, and were not changed: {changed:,}"


@frozen
class RolledBack:
    """The result of a rollback, or its plan."""

    manifest: Manifest
    removed: tuple[str, ...]
    missing: tuple[str, ...]
    """Files that had been removed already."""
    changed: tuple[str, ...]
    """Files that stay because they were changed after the import."""


def roll_back(mind: Mind, named: str | None, *, dry_run: bool) -> RolledBack:
    """Removes the memories that were imported from a MAMA database.

    `named` chooses one of several databases. With `dry_run` nothing is removed. Raises `NotFound`
    if nothing was imported, `Invalid` if there are several, and `StorageFailed`.
    """
    saving.check_format(mind)
    root = mind.project.root
    path = _imported(mind, named)
    if dry_run:
        return _sorted(mind, path)
    with hold(root):
        plan = _sorted(mind, path)
        digests = plan.manifest.files
        stay = mind.store.delete_all({name: digests[name] for name in plan.removed})
        changed = {name: digests[name] for name in (*plan.changed, *stay)}
        if changed:
            _write(root, replace(plan.manifest, files=changed))
        else:
            files.remove(files.safe_path(root, path))
    refresh.refresh(mind)
    removed = tuple(name for name in plan.removed if name not in stay)
    return replace(plan, removed=removed, changed=tuple(changed))


def _imported(mind: Mind, named: str | None) -> str:
    """Returns the path of the manifest of the named source, or of the only one."""
    root = mind.project.root
    paths: list[str] = []
    with suppress(OSError):
        folder = files.safe_path(root, FOLDER)
        paths = sorted(f"{FOLDER}/{path.name}" for path in folder.glob("mama-*.json"))
    wanted = [_manifest_path(database.expanded(named, mind.environ))] if named else paths
    if len(wanted) == 1 and wanted[0] in paths:
        return wanted[0]
    sources = [manifest.source for path in paths if (manifest := _read(root, path))]
    hint = f"name one: {', '.join(f'--db {source}' for source in sources)}"
    if len(wanted) > 1:
        raise Invalid(f"{len(paths)} databases were imported", hint=hint)
    raise NotFound(
        f"nothing was imported from `{named}`" if named else "nothing was imported here",
        hint=hint if sources else "see `mind import mama --help`",
    )


def _sorted(mind: Mind, path: str) -> RolledBack:
    """Returns which files a rollback would remove, and which would stay."""
    manifest = _read(mind.project.root, path)
    if manifest is None:
        raise NotFound("nothing was imported here", hint="it was rolled back meanwhile")
    stamps = mind.store.stamps()
    existing = [name for name in manifest.files if name in stamps]
    same = {name for name in existing if mind.store.digest(name) == manifest.files[name]}
    return RolledBack(
        manifest=manifest,
        removed=tuple(name for name in existing if name in same),
        missing=tuple(name for name in manifest.files if name not in stamps),
        changed=tuple(name for name in existing if name not in same),
    )


# The manifest of a source.


def hold(root: Path) -> AbstractContextManager[None]:
    """Keeps other imports into the project away. Raises `StorageFailed` if one is running."""
    return lock(files.safe_path(root, f"{FOLDER}/lock"))


def _manifest_path(source: Path) -> str:
    digest = sha256(str(source).encode("utf-8", "replace")).hexdigest()
    return f"{FOLDER}/mama-{digest[:8]}.json"


def _read(root: Path, path: str) -> Manifest | None:
    """Returns a manifest, or None if it does not exist.

    Raises `StorageFailed` for a damaged one, and for one that lists files that no import writes.
    """
    target = files.safe_path(root, path)
    damaged = StorageFailed(
        f"`{path}` is damaged", hint="move it away; imported memories are not changed"
    )
    try:
        raw = json.loads(disk.read(target))
        listed = dict(raw["files"])
        is_safe = all(_PATH.fullmatch(name) and _DIGEST.fullmatch(listed[name]) for name in listed)
        source, backup = str(raw["source"]), str(raw["backup"])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise files.failure("read", target, error) from error
    except (ValueError, TypeError, KeyError, RecursionError):
        raise damaged from None
    if not is_safe:
        raise damaged
    return Manifest(path=path, source=source, backup=backup, files=listed)


def _write(root: Path, manifest: Manifest) -> None:
    """Writes a manifest over an earlier one. Raises `StorageFailed`."""
    content = {"source": manifest.source, "backup": manifest.backup, "files": dict(manifest.files)}
    data = json.dumps(content, indent=1).encode()
    files.replace(files.safe_path(root, manifest.path), data + b"\n", mode=0o600)
