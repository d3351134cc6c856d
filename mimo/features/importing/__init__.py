"""Importing the memories of other tools.

The manifest of a source lists every file before the first of them is written. A copy of a MAMA v1.0
database is beside it; all other sources are only read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from mimo.call import Call
from mimo.data import files
from mimo.errors import Conflict, Denied, Invalid, SecretDetected, StorageFailed
from mimo.features import decisions
from mimo.features.importing import database, formats, sources
from mimo.features.importing.database import Snapshot
from mimo.features.importing.drafts import Draft, Item, Resolved, Source, resolved
from mimo.features.importing.mama import EDGES, TABLES, LinkCounts, convert
from mimo.features.importing.manifest import (
    FOLDER,
    Manifest,
    format_of,
    hold,
    manifest_path,
    own_paths,
    read_manifest,
    write_manifest,
)
from mimo.frozen import field, frozen, replace
from mimo.memory import codec
from mimo.memory.approval import approval_of
from mimo.memory.codec.document import Unreadable
from mimo.memory.model import Kind, Memory, Place, Problem, Record
from mimo.operations import refresh, saving
from mimo.project.memories import NewFile, rendered
from mimo.project.projects import index_owner

BATCH = 500
"""Files that are written under one lock: other processes do not wait for a whole import."""
MOST = 100_000
"""The largest number of memories in one import."""
_MOST_PROJECTS = 10
"""The projects of a source that a message names, the largest ones."""
_MAX_NAMES = 3
"""Files with one reason that a note names."""
_NOWHERE = ("", "", None)
"""The path, the digest and the record of a memory that does not exist."""
_PUBLISHED = (
    "it is private, but its file is shared with git, and not as an import wrote it; "
    "move the file to the same folder below .mind/private/"
)
_FOREIGN = "it differs from the memory of its origin or id, which this source did not write"
_NAMES_PRIVATE = "it links to a private memory, which a shared memory must not name"


@frozen
class Row:
    """An item of the source, and its file or the reason why it has none."""

    item: Item
    file: NewFile | None = None
    skipped: str | None = None
    existing: str | None = None
    """The file that already has its id."""
    digest: str = ""
    """The digest of that file."""
    changed: bool = False
    """True if that file differs from the row."""
    record: Record | None = None
    """The memory in that file, if the row replaces it: nothing but imports has written it."""

    @property
    def new(self) -> NewFile | None:
        """Returns the file to write, if no memory has its id."""
        return None if self.existing else self.file

    @property
    def differs(self) -> bool:
        """Returns whether the existing memory differs and stays as it is."""
        return self.changed and self.record is None

    @property
    def hides(self) -> bool:
        """Returns whether it replaces a shared memory by a private one."""
        is_shared = self.record is not None and not self.record.place.private
        return is_shared and self.file is not None and files.is_private(self.file.path)

    @property
    def path(self) -> str:
        """Returns the file that has its memory after the import; empty if it is skipped."""
        if self.existing and not self.hides:
            return self.existing
        return self.file.path if self.file else ""


@frozen
class Outcome:
    """The result of importing a source, or its plan."""

    source: Path
    format: str | None = None
    """None for a database of MAMA."""
    tables: Mapping[str, Kind] = field(default_factory=dict)
    """The tables of such a database, with the types that their rows become."""
    rows: tuple[Row, ...]
    links: int
    statements: LinkCounts | None = None
    """Of such a database: the number of its statements about links."""
    notes: tuple[str, ...]
    lost: tuple[Row, ...]
    """Rows whose memory could not be read back as it should be."""
    backup: str | None = None
    manifest: str | None


def import_mama(call: Call, named: str | None, *, dry_run: bool) -> Outcome:
    """Imports the memories of a MAMA database into the project and returns the result.

    With `dry_run` nothing is written. Raises `NotFound` if there is no database, `Invalid` if it is
    not MAMA's, and `StorageFailed`.
    """
    source, other_paths = database.locate(named, call.mind.environ)
    snapshot = database.snapshot(source, (*TABLES, EDGES))
    items, statements = convert(snapshot.tables, now=call.mind.now().replace(microsecond=0))
    lost: tuple[Row, ...] = ()
    backup = manifest = None
    if dry_run:
        rows = _planned(call, _Existing(call), items)
    else:
        owner = index_owner(call.mind.home, call.mind.randomness)
        root, manifest = call.mind.project.root, manifest_path("mama", source, owner)
        with hold(root):
            rows = _planned(call, _Existing(call), items)
            backup = f"{FOLDER}/mama-{snapshot.digest[:16]}.db"
            files.ensure(files.safe_path(root, backup), snapshot.data, mode=0o600)
            listed = Manifest(path=manifest, source=str(source), backup=backup, files={})
            # Only a person can approve the texts of a file.
            approved = call.agent is None
            lost = _written(call, rows, listed, trust=approved)
            if not approved and any(row.new for row in rows):
                call.note("trust", "the memories are not approved; the user can do so in a review")
    return Outcome(
        source=source,
        tables={table: kind for table, kind in TABLES.items() if table in snapshot.tables},
        rows=rows,
        links=statements.written,
        statements=statements,
        notes=tuple(_notes(snapshot, other_paths, rows)),
        lost=lost,
        backup=backup,
        manifest=manifest,
    )


def import_source(
    call: Call,
    named: str,
    format: str | None,
    *,
    only: Sequence[str] = (),
    private: bool,
    trust: bool,
    dry_run: bool,
) -> Outcome:
    """Imports the memories of another tool into the project and returns the result.

    Without `format`, the content shows it. `only` names the projects whose memories are imported if
    the source has those of several; `*` is all of them. Imported texts are approved only with
    `trust`, which only a person may ask for. A memory that no one changed since an earlier import
    is replaced if the source has changed. With `dry_run` nothing is written. Raises `NotFound`,
    `Invalid` if the source is not of a known format, `Denied` and `StorageFailed`.
    """
    if trust and call.agent is not None:
        raise Denied(
            "only a person can approve what is imported",
            hint="omit `--trust`; the user approves it with `mind review` or `mind trust`",
        )
    path = database.expanded(named, call.mind.environ)
    with sources.opened(path) as source:
        format = format or formats.recognised(source)
        drafts = _of_projects(_drafts(call, source, format), only)
        skipped = source.skipped
    owner = index_owner(call.mind.home, call.mind.randomness)
    manifest, now = manifest_path(format, path, owner), call.mind.now().replace(microsecond=0)
    lost: tuple[Row, ...] = ()
    with hold(call.mind.project.root) if not dry_run else nullcontext():
        existing = _Existing(call)
        listed = Manifest(path=manifest, source=str(path), backup="", files={})
        current = read_manifest(call.mind.project.root, manifest) or listed
        is_unique = any(draft.is_unique for draft in drafts)
        # A newer export has another name.
        older = _older_manifests(call, manifest, owner, path) if is_unique else []
        items = resolved(
            drafts, format, existing.sources, hidden=existing.private, private=private, now=now
        )
        hidden = existing.private | {
            item.memory.id for item in items.items if item.memory and item.private
        }
        rows = _planned(
            call, existing, items.items, private=private, hidden=hidden, earlier=(current, *older)
        )
        if not dry_run and any(row.file for row in rows):
            lost = _written(call, rows, listed, older, trust=trust)
    return Outcome(
        source=path,
        format=format,
        rows=rows,
        links=items.links,
        notes=tuple(_notes_of_source(rows, items, skipped)),
        lost=lost,
        manifest=manifest if not dry_run and any(row.file for row in rows) else None,
    )


def _drafts(call: Call, source: Source, format: str) -> list[Draft]:
    """Returns the memories that a source has. Raises `Invalid`."""
    drafts: list[Draft] = []
    total = len(source.files)
    try:
        for draft in formats.reader(format)(source):
            is_private = draft.private or source.surroundings.private
            drafts.append(replace(draft, private=is_private))
            if total > 1:
                call.advance("Reading", min(len(drafts), total), total)
            else:
                call.check_cancelled()
            if len(drafts) > MOST:
                raise Invalid(
                    f"`{source.path}` has more than {MOST:,} memories",
                    hint="import it in parts",
                )
    except Unreadable as error:
        where = f", line {error.line}" if error.line else ""
        raise Invalid(
            f"`{source.path}`{where}: {error.reason}", hint=f"it was read as {format}"
        ) from None
    if not any(draft.skipped is None for draft in drafts):
        reasons = ", ".join(dict.fromkeys(draft.skipped or "" for draft in drafts))
        raise Invalid(
            f"`{source.path}` has no memories that can be read as {format}"
            + (f": {reasons}" if reasons else ""),
            hint="check the path, or name another format with --from",
        )
    return drafts


def _of_projects(drafts: list[Draft], only: Sequence[str]) -> list[Draft]:
    """Returns the drafts of the named projects. Raises `Invalid` if they must be named."""
    counts = Counter(draft.project for draft in drafts if draft.project)
    listed = ", ".join(
        f"{name} ({number:,})" for name, number in counts.most_common(_MOST_PROJECTS)
    )
    more = ", …" if len(counts) > _MOST_PROJECTS else ""
    if not only:
        if len(counts) > 1:
            raise Invalid(
                f"the source has memories of {len(counts)} projects: {listed}{more}",
                hint="name those that belong here with --only NAME, or --only '*' for all",
            )
        return drafts
    if unknown := [name for name in only if name != "*" and name not in counts]:
        raise Invalid(
            f"the source has no memories of the project `{unknown[0]}`",
            hint=f"it has {listed}{more}" if counts else "it does not name projects; omit --only",
        )
    return [draft for draft in drafts if "*" in only or draft.project in only]


def _older_manifests(call: Call, manifest: str, owner: str, source: Path) -> list[Manifest]:
    """Returns the user's manifests of other sources of a format that are not newer than `source`.

    The age of a source that is missing is unknown: the one that is here counts as newer.
    """
    manifests: list[Manifest] = []
    for path in own_paths(call.mind.project.root, format_of(manifest), owner):
        with suppress(StorageFailed):  # A damaged one is of no use.
            entry = read_manifest(call.mind.project.root, path) if path != manifest else None
            manifests += [entry] if entry and not _is_newer(Path(entry.source), source) else []
    return manifests


def _is_newer(path: Path, reference: Path) -> bool:
    with suppress(OSError, ValueError):
        return path.stat().st_mtime_ns > reference.stat().st_mtime_ns
    return False


def _written(
    call: Call,
    rows: Sequence[Row],
    listed: Manifest,
    older: Sequence[Manifest] = (),
    *,
    trust: bool,
) -> tuple[Row, ...]:
    """Writes the manifest, then the memories; returns the rows that could not be read back.

    A memory that is replaced is moved to the manifest from those of `older`.
    """
    root = call.mind.project.root
    previous = read_manifest(root, listed.path)
    wrote = dict(previous.files) if previous else {}
    replaceable = {row.existing for row in rows if row.record}
    for row in rows:
        if row.file and row.new:
            wrote[row.path] = (row.file.digest,)
        elif row.file and row.record:
            wrote[row.path] = (row.digest, row.file.digest)
            wrote.setdefault(row.existing or "", (row.digest,))
        elif row.file and row.digest == row.file.digest and row.path in wrote:
            wrote[row.path] = (row.digest,)  # An import that was interrupted did not list it.
    source = listed.source.encode("utf-8", "replace").decode()
    listed = replace(listed, source=source, files=wrote)
    write_manifest(root, listed)
    for manifest in older:
        left = {path: of for path, of in manifest.files.items() if path not in replaceable}
        if not left:
            files.remove(files.safe_path(root, manifest.path))
        elif len(left) < len(manifest.files):
            write_manifest(root, replace(manifest, files=left))
    _create(call, rows, trust=trust)
    if hidden := _replace(call, rows):
        left = {path: of for path, of in listed.files.items() if path not in hidden}
        write_manifest(root, replace(listed, files=left))
    lost = tuple(_unread(call, [row for row in rows if row.file]))
    refresh.commit_soon(call)
    refresh.refresh(call)
    return lost


class _Existing:
    """The memories of the project, by id and by the source in their header."""

    def __init__(self, call: Call) -> None:
        """Reads all of them."""
        self.places: dict[str, tuple[str, str, Record | None]] = {}
        self.sources: dict[str, Memory] = {}
        self.private: set[str] = set()
        paths = call.mind.store.stamps()
        for path in paths:
            call.check_cancelled()
            digest, read = call.mind.store.digest(path), call.mind.store.read(path)
            # The name is taken, even if the file can't be read or has another id.
            name = path.rpartition("/")[2].removesuffix(".md")
            self.places.setdefault(name, (path, digest, None))
            for record in () if isinstance(read, Problem) else read:
                self.places[record.memory.id] = (path, digest, record)
                if record.place.private:
                    self.private.add(record.memory.id)
                if record.memory.source and record.place.owned and record.parent is None:
                    self.sources.setdefault(record.memory.source, record.memory)


def _planned(
    call: Call,
    existing: _Existing,
    items: Iterable[Item],
    *,
    private: bool = False,
    hidden: Container[str] = (),
    earlier: Sequence[Manifest] = (),
) -> tuple[Row, ...]:
    """Returns the result of each row, given the existing memories.

    A row replaces a memory that is exactly as one of `earlier` lists it; without these, none is
    replaced. The first of them is of the source itself, and alone counts if the row's id is a
    number, which any source may have. A row is skipped if it differs from a memory that none of
    them lists, which may be of another source with the same names. A shared memory that names one
    of `hidden` is skipped.
    """
    rows = []
    for item in items:
        path, digest, record = existing.places.get(item.memory.id if item.memory else "", _NOWHERE)
        row = _row(call, _dated(item, record), private=private)
        if row.file and path:
            memory = row.item.memory and codec.normal(row.item.memory)
            same = digest == row.file.digest or (record is not None and record.memory == memory)
            manifests = earlier[:1] if item.key.isdecimal() else earlier
            is_listed = any(manifest.wrote(path, digest) for manifest in manifests)
            is_published = files.is_private(row.file.path) and not files.is_private(path)
            replaces = record if is_listed and (is_published or not same) else None
            row = replace(row, existing=path, digest=digest, changed=not same, record=replaces)
            if is_published and not row.hides:
                row = Row(item=item, skipped=_PUBLISHED)
            elif earlier and row.changed and not any(path in each.files for each in manifests):
                row = Row(item=item, skipped=_FOREIGN)
        if (row.new or row.record) and not files.is_private(row.path) and _names(row, hidden):
            row = Row(item=item, skipped=_NAMES_PRIVATE)
        rows.append(row)
    return tuple(rows)


def _dated(item: Item, record: Record | None) -> Item:
    """Returns an item without a date with that of its earlier import, if there was one."""
    if item.memory is None or record is None or not item.is_undated:
        return item
    return replace(item, memory=replace(item.memory, created=record.memory.created))


def _names(row: Row, hidden: Container[str]) -> bool:
    """Returns whether a memory has a link to one of some ids, also in its text."""
    memory = row.item.memory
    if memory is None:
        return False
    links = (*memory.links, *codec.links_in(memory))
    return any(link.to in hidden for link in links)


def _row(call: Call, item: Item, *, private: bool) -> Row:
    """Returns a row with its file, or with the reason why it is not imported."""
    if item.memory is None:
        return Row(item=item, skipped=item.skipped or "it is empty")
    try:
        private = private or item.private
        _check_texts(call, item.memory, private=private)
        return Row(item=item, file=rendered(item.memory, private=private))
    except (Invalid, SecretDetected) as error:
        return Row(item=item, skipped=error.message)


def _check_texts(call: Call, memory: Memory, *, private: bool) -> None:
    """Raises `SecretDetected`, which names the field, if an imported memory holds a secret."""
    names = ("content", "title", "topic", "tags", "status", "category", "source")
    fields = {name: getattr(memory, name) for name in names}
    links = [link.given for link in memory.links]
    sections = {name.value.lower(): text for name, text in memory.sections.items()}
    fields |= {"links": links, "metadata": memory.extra, **sections}
    saving.check_secrets(call, fields, private=private)


def _create(call: Call, rows: Sequence[Row], *, trust: bool) -> None:
    """Approves the texts, if they are trusted, then writes the missing files.

    In this order, as an import may be interrupted. New checkpoints that are trusted count as made
    on this machine, so that work is resumed from the last one.
    """
    if trust:
        new_files = [row.file for row in rows if row.file and not row.differs]
        paths = {approval_of(file.path, file.data): file.path for file in new_files}
        try:
            call.mind.trust.approve(paths, paths=paths)
        except StorageFailed as error:
            message = f"they could not be approved and count as untrusted: {error.message}"
            call.note("trust", message)
    memories = [row.item.memory for row in rows if trust and row.new and row.item.memory]
    if ids := [memory.id for memory in memories if memory.type is Kind.CHECKPOINT]:
        decisions.claim(call, ids, None)
    new = [(row.new, row.item.memory) for row in rows if row.new and row.item.memory]
    for start in range(0, len(new), BATCH):
        batch = new[start : start + BATCH]
        try:
            taken = call.mind.store.create_all([file for file, _ in batch])
        except StorageFailed as error:
            error.hint = "run it again to write the rest, or roll it back with --rollback"
            raise
        created = []
        for file, memory in batch:
            if file.path not in taken:
                approval = approval_of(file.path, file.data)
                place = Place(path=file.path, line=1, digest=file.digest, approval=approval)
                created.append((None, Record(memory=memory, place=place)))
        saving.report(call, *created)
        for done in range(start, start + len(batch)):
            call.advance("Importing", done + 1, len(new))


def _replace(call: Call, rows: Iterable[Row]) -> set[str | None]:
    """Replaces memories whose source has changed; returns the files that moved to another name.

    One that is changed meanwhile stays.
    """
    moved: set[str | None] = set()
    for row in rows:
        if row.record and row.file:
            with suppress(Conflict):
                record = row.record
                if row.hides:
                    # The new text must not be in a shared file, not even for a moment.
                    record = call.mind.store.move(record, row.path, record.memory.type)
                changed = call.mind.store.rewrite(record, row.file.data)
                saving.report(call, (row.record, changed))
                moved.update([row.existing] if row.hides else ())
    return moved


def _unread(call: Call, rows: Sequence[Row]) -> Iterator[Row]:
    """Yields the rows whose file does not hold their memory."""
    for done, row in enumerate(rows, 1):
        call.advance("Verifying", done, len(rows))
        memory, read = row.item.memory, call.mind.store.read(row.path)
        if memory is None or isinstance(read, Problem):
            yield row
            continue
        stored = {record.memory.id: record.memory for record in read}.get(memory.id)
        if stored is None or not (row.differs or stored == codec.normal(memory)):
            yield row


def _notes(snapshot: Snapshot, other_paths: Iterable[Path], rows: Iterable[Row]) -> Iterator[str]:
    """Yields what the user should know about the source and the existing memories."""
    for path in other_paths:
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


def _notes_of_source(
    rows: Sequence[Row], items: Resolved, skipped: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """Yields what the user should know about the source and the existing memories."""
    if undated := sum(row.item.is_undated and row.new is not None for row in rows):
        undated_memories = "1 memory has" if undated == 1 else f"{undated:,} memories have"
        yield f"{undated_memories} no date in the source, and the date of the import here"
    if items.unresolved:
        yield f"links to something that is private or not in the source: {items.unresolved:,}"
    if hidden := sum(row.hides for row in rows):
        yield f"shared memories that become private: {hidden:,}; commits keep their earlier text"
    if differ := sum(row.differs for row in rows):
        yield f"existing memories that differ from the source, and stay as they are: {differ:,}"
    for reason in dict.fromkeys(reason for _, reason in skipped):
        names = [name for name, cause in skipped if cause == reason]
        more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
        yield f"not read, {reason}: {', '.join(names[:_MAX_NAMES])}{more}"
