"""Ingestion: each file is cut into chunks that are memories, stored under one header."""

from __future__ import annotations

import os
from base64 import b32encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from mimo.call import Call, Caller, Surface
from mimo.data import disk
from mimo.data.files import digest, is_private
from mimo.errors import (
    Conflict,
    Denied,
    FileTooLarge,
    Hint,
    Invalid,
    MindError,
    NotFound,
    SandboxViolation,
    SecretDetected,
    StorageFailed,
    TooManyChunks,
)
from mimo.frozen import field, frozen, replace
from mimo.guard.policy import Operation, Request
from mimo.memory import ids
from mimo.memory.chunking import (
    REFUSED,
    Chunk,
    Chunking,
    Strategy,
    checked,
    chunks,
    resolved,
    suffix,
)
from mimo.memory.model import Kind, Problem, Record, check_unit
from mimo.memory.sources import Source
from mimo.operations import freshness, refresh, undoing
from mimo.operations.freshness import Seen, State, ingested_files
from mimo.operations.overview import everything
from mimo.operations.rows import row_of
from mimo.operations.saving import approving, check_secrets, clean_tags
from mimo.project import git
from mimo.project.events import Event
from mimo.project.memories import NewFile, rendered_source, source_path
from mimo.project.sandbox import Sandbox, Target, is_one_file, targets

REFUSALS = (
    Invalid,
    NotFound,
    SecretDetected,
    FileTooLarge,
    TooManyChunks,
    SandboxViolation,
    Conflict,
)
"""Errors that concern one file; the other files are still ingested."""

_SIGNATURES = {b"%PDF-": "a PDF", b"PK\x03\x04": "a zip archive or an Office document"}
_RESOLUTION_SECONDS = 2
"""A file may have changed unnoticed if it was ingested this shortly after its last change."""

_MOST_WAITING, _MOST_BYTES = 128, 4_000_000
"""The number and the size of new files that wait to be written together."""

DAEMON = "mind daemon"
"""The author of files that are ingested again without a call by a person or an agent."""

Attempt = tuple[int, int, str]
"""Size and modification time (ns) of a changed file, and the digest of the file of its chunks."""


@frozen
class Options:
    """Settings for ingesting files."""

    chunking: Chunking = Chunking()
    type: Kind = Kind.FACT
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    private: bool = False
    force: bool = False
    """Ingests unchanged files again."""
    dry_run: bool = False
    """Writes nothing."""

    def with_last(self, source: Source) -> Options:
        """Returns the options, with the values of the last time in place of defaults."""
        names = ("chunking", "type", "importance", "tags", "metadata")
        omitted = [name for name in names if getattr(self, name) == getattr(Options(), name)]
        return replace(self, **{name: getattr(source, name) for name in omitted})


@frozen
class FileReport:
    """The result for one file."""

    path: str
    """Relative to the project."""
    size: int = 0
    strategy: Strategy = Strategy.AUTO
    source_id: str | None = None
    file: str | None = None
    """The file that holds its chunks."""
    digest: str | None = None
    """Of that file, if it was written now."""
    ids: tuple[str, ...] = ()
    is_known: bool = False
    """True if it was ingested before and is unchanged."""
    replaced: int = 0
    """Number of older chunks that were replaced."""
    chunks: Sequence[Chunk] = ()
    """The chunks that a dry run would write."""
    refusal: MindError | None = None
    """The error that prevented ingestion."""
    seen: tuple[int, int] | None = None
    """Size and modification time (ns) of the file when it was read."""
    is_named: bool = True
    """True if the caller named the file itself, not a folder or a glob that contains it."""


class _Waiting:
    """New files that are cut but not written yet, and the events of files.

    Written together, they are on the disk in a small part of the time that each takes alone.
    """

    def __init__(self, call: Call) -> None:
        """Takes the project. Nothing waits yet."""
        self._call = call
        self._files: dict[str, NewFile] = {}
        self._targets: dict[str, Target] = {}
        self._events: list[Event] = []
        self._bytes = 0

    def add(self, new: NewFile, target: Target) -> bool:
        """Adds a new file; returns False if its name is taken."""
        if new.path in self._files or self._call.mind.store.stamp(new.path):
            return False
        self._files[new.path], self._targets[new.path] = new, target
        self._bytes += len(new.data)
        return True

    def tell(self, report: FileReport, seconds: float) -> None:
        """Adds the event of a file."""
        self._events.append(_event(self._call, report, seconds))

    @property
    def is_full(self) -> bool:
        """Returns whether the files should be written now."""
        return len(self._files) >= _MOST_WAITING or self._bytes >= _MOST_BYTES

    def write(self) -> dict[str, Target]:
        """Writes the files and the events.

        Returns the files whose names another process took meanwhile, with what to ingest again.
        Raises `StorageFailed`.
        """
        files, targets, events = self._files, self._targets, self._events
        self._files, self._targets, self._events, self._bytes = {}, {}, [], 0
        taken: frozenset[str] = frozenset()
        if files:
            taken = self._call.mind.store.create_all(list(files.values()))
            refresh.commit_soon(self._call)
        self._call.mind.events.write(*events)
        return {path: targets[path] for path in taken}


@frozen
class Report:
    """The results for all files of a call."""

    files: tuple[FileReport, ...]
    is_single: bool
    """True if the name could only mean one file."""


def ingest_files(call: Call, names: Sequence[str], options: Options) -> Report:
    """Ingests the named files, folders and globs.

    Each file is ingested as a whole or not at all. The error of a file is raised if it is the only
    one named, and otherwise reported beside the results of the others.
    """
    options = replace(
        options,
        chunking=checked(options.chunking),
        importance=check_unit("importance", options.importance),
        tags=clean_tags(options.tags),
    )
    sandbox = sandbox_of(call)
    if len(names) == 1 and is_one_file(sandbox, names[0]):
        target = next(iter(targets(sandbox, names[0])))
        with _recorded(call) as record:
            report = _ingest(call, sandbox, target, options)
            record(report)
        return Report(files=(report,), is_single=True)
    return Report(files=tuple(_ingest_all(call, sandbox, names, options)), is_single=False)


def update_files(call: Call, names: Sequence[str], options: Options) -> Report:
    """Ingests again the named files, or those in named folders, that changed since they were.

    Each is ingested as it was before. Files that no longer exist are reported with the command
    that removes their chunks. Raises `NotFound` if nothing ingested has that name.
    """
    sandbox = sandbox_of(call)
    ingested = freshness.checked(call, everything(call))
    sources = [source for source in ingested if _is_named(call, source, names)]
    if not sources:
        folder = Path(ingested[0].path).parent if ingested else "."
        raise NotFound(
            f"no ingested file is named `{' '.join(names)}`",
            hint=f"name a file, or a folder such as `{folder}`",
        )
    with _recorded(call) as record:
        reports = [_update(call, sandbox, source, dry_run=options.dry_run) for source in sources]
        for report in reports:
            record(report)
    return Report(files=tuple(reports), is_single=False)


def update_changed(call: Call, refused: dict[str, Attempt] | None = None) -> Report | None:
    """Ingests again the project's files that changed since they were ingested on this machine.

    Returns None if none did, or if the policy does not permit it. No user asked for it, so the new
    text is not approved, and `mind undo` takes it back. Files that can't be ingested are added to
    `refused`, and skipped by later calls until they change.
    """
    if changed := _changed(call):
        refresh.refresh(call)  # Chunks may have been removed, as by a checkout of another branch.
        changed = _changed(call)
    refused = {} if refused is None else refused
    changed = {path: state for path, state in changed.items() if refused.get(path) != state}
    if not changed:
        return None
    call.mind.check_format()
    view = call.by(Caller(surface=Surface.MCP, name=DAEMON))
    request = Request(tool="ingest", operation=Operation.WRITE, agent=DAEMON, at=call.mind.now())
    try:
        view.mind.guard.authorise(request)
    except Denied:
        return None
    undo = undoing.recorded(view, request, command="ingest --update", is_tool=True)
    with view.mind.guard.passing(request, call.mind.timer.monotonic), undo:
        report = update_files(view, list(changed), Options())
    for file in report.files:
        if file.refusal and not isinstance(file.refusal, Conflict) and file.path in changed:
            refused[file.path] = changed[file.path]
    return report


def _changed(call: Call) -> dict[str, Attempt]:
    """Returns the changed files of the project that have chunks in the index.

    The list of ingested files also has those whose chunks were removed, or are on another branch.
    An empty file may be one that is about to be written: its chunks stay.
    """
    root = os.path.realpath(call.mind.project.root)
    changed = {}
    for path, seen in ingested_files(call).read().items():
        place = freshness.place_of(call, path)
        with suppress(OSError):
            status = place.lstat()
            if seen.is_of(status) or not status.st_size or not place.is_relative_to(root):
                continue
            if chunks := call.index.chunks(source_id(path)):
                changed[path] = (status.st_size, status.st_mtime_ns, chunks.digest)
    return changed


def sandbox_of(call: Call) -> Sandbox:
    """Returns the readable files: all of them for a person, those of the project for an agent.

    In a linked worktree, an agent reads those of it. If SANDBOX_DIR is set, it limits both.
    """
    project, by_agent = call.mind.project, call.author is not None
    root = project.worktree or project.root
    setting = call.mind.environ.get("SANDBOX_DIR")
    if setting:
        limit = disk.expanded(setting).absolute()
        return Sandbox(limit, limit if by_agent and not root.is_relative_to(limit) else _base(call))
    return Sandbox(root if by_agent else None, _base(call))


def _base(call: Call) -> Path:
    """Returns the base of relative names: a person's working directory, an agent's project."""
    project = call.mind.project
    return Path.cwd() if call.author is None else project.worktree or project.root


def relative(call: Call, path: Path) -> str:
    """Returns a file's path as it is stored: relative to the project, even outside of it."""
    return _unescaped(call, path).encode("utf-8", "backslashreplace").decode()


def _unescaped(call: Call, path: Path) -> str:
    return Path(os.path.relpath(path, os.path.realpath(call.mind.project.root))).as_posix()


def source_id(path: str) -> str:
    """Returns the id of a file's source: the same for the same path, on every machine."""
    from hashlib import sha256

    letters = b32encode(sha256(path.encode()).digest())[:6].decode().lower()
    return "_".join(part for part in ("source", ids.slug(path.rpartition("/")[2]), letters) if part)


def _ingest_all(
    call: Call, sandbox: Sandbox, names: Sequence[str], options: Options
) -> list[FileReport]:
    matches, refused = _matches(call, sandbox, names)
    previous = {} if options.force else ingested_files(call).read()
    waiting = _Waiting(call)
    done: dict[Path, FileReport] = {}
    with _recorded(call) as record:
        try:
            for number, target in enumerate(matches.values(), 1):
                report = _unchanged(call, target, options, previous)
                if report is None:
                    report = _ingest_or_refuse(call, sandbox, target, options, waiting)
                elif not options.dry_run:
                    waiting.tell(report, 0.0)
                done[target.path] = report
                call.advance("Ingesting", number, len(matches))
                if waiting.is_full or number == len(matches):
                    for taken in waiting.write().values():
                        done[taken.path] = _ingest_or_refuse(call, sandbox, taken, options)
        finally:
            waiting.write()  # What was cut before an interruption.
        for report in done.values():
            record(report)
    return [*refused, *done.values()]


def _matches(
    call: Call, sandbox: Sandbox, names: Sequence[str]
) -> tuple[dict[Path, Target], list[FileReport]]:
    """Returns the named files, and the names that are refused. Raises `NotFound` for neither."""
    matches, refused = dict[Path, Target](), list[FileReport]()
    for name in names:
        try:
            _check_not_git(relative(call, sandbox.locate(name)))
            for target in targets(sandbox, name):
                matches.setdefault(target.path, target)
        except REFUSALS as error:
            refused.append(FileReport(path=name, refusal=error))
    if not matches and not refused:
        raise NotFound(
            f"there is nothing to ingest in `{' '.join(names)}`",
            hint="files that git ignores, hidden files and links are skipped",
        )
    if not disk.program("git") and git.is_inside(call.mind.project.root):
        call.note("ignored", "without git, folders are read with the files that it ignores")
    return matches, refused


def _unchanged(
    call: Call, target: Target, options: Options, previous: Mapping[str, Seen]
) -> FileReport | None:
    """Returns the report of a file that has not changed since it was ingested, without reading it.

    Returns None for any other file, and if the file might have changed within the resolution of
    its time of modification.
    """
    if target.problem or not options.chunking.is_auto or call.mind.config["include"]:
        return None
    path = relative(call, target.path)
    seen = previous.get(path)
    if seen is None or not seen.strategy:
        return None
    try:
        status = target.path.lstat()
    except OSError:
        return None
    id_ = source_id(path)
    if not seen.is_of(status) or not (chunks := call.index.chunks(id_)):
        return None
    if options.private and not is_private(chunks.path):
        return None
    age = chunks.created.timestamp() - status.st_mtime
    if chunks.digest != seen.kept or age < _RESOLUTION_SECONDS:
        return None
    return FileReport(
        path=path,
        size=seen.size,
        strategy=Strategy(seen.strategy),
        source_id=id_,
        file=chunks.path,
        ids=chunks.ids,
        is_known=True,
        is_named=target.is_named,
    )


def _ingest_or_refuse(
    call: Call,
    sandbox: Sandbox,
    target: Target,
    options: Options,
    waiting: _Waiting | None = None,
) -> FileReport:
    if target.problem:
        path = relative(call, target.path)
        return FileReport(path=path, refusal=target.problem, is_named=target.is_named)
    try:
        report = _ingest(call, sandbox, target, options, waiting)
        return replace(report, is_named=target.is_named)
    except (*REFUSALS, StorageFailed) as error:
        # A file that can't be read concerns only itself; a failed write ends the call.
        if not isinstance(error, REFUSALS) and error.details.get("path") != str(target.path):
            raise
        path = relative(call, target.path)
        return FileReport(path=path, refusal=error, is_named=target.is_named)


@contextmanager
def _recorded(call: Call) -> Iterator[Callable[[FileReport], None]]:
    """Approves the files that are written, and updates the index at the end.

    What an agent ingests is not approved: the text may be another author's.
    """
    written: set[str] = set()
    seen: dict[str, Seen] = {}

    def record(report: FileReport) -> None:
        if report.file and not report.is_known:
            written.add(report.file)
        if report.file and report.seen and (report.is_known or report.digest):
            file_digest = report.digest or call.mind.store.digest(report.file)
            seen[report.path] = Seen(*report.seen, file_digest, report.strategy.value)

    refresh.refresh(call)
    with approving(call, enabled=call.agent is None):
        yield record
    if seen:
        with suppress(MindError):  # Without the list, files are compared by their digests.
            ingested_files(call).add(seen)
    if written:
        refresh.note_change(call, *written)


def _is_named(call: Call, source: freshness.Checked, names: Sequence[str]) -> bool:
    place = freshness.place_of(call, source.path)
    for name in names:
        named_path = Path(os.path.realpath(_base(call) / disk.expanded(name)))
        if place.is_relative_to(named_path) or fnmatchcase(str(place), str(named_path)):
            return True
        if source.path == name:
            return True
    return False


def _update(
    call: Call, sandbox: Sandbox, checked: freshness.Checked, *, dry_run: bool
) -> FileReport:
    parent = checked.part.parent
    place = freshness.place_of(call, checked.path)
    source = call.mind.store.source(checked.part.place)
    if checked.state is State.CHANGED and source is not None:
        target, options = Target(place, is_named=True), Options(dry_run=dry_run)
        return _ingest_or_refuse(call, sandbox, target, options)
    if checked.state is State.CURRENT:
        with suppress(OSError):  # It may have been removed since it was checked.
            seen = ((status := place.lstat()).st_size, status.st_mtime_ns)
            report = FileReport(path=checked.path, source_id=parent, seen=seen)
            return _as_known(report, call, call.index.parts(parent or ""))
    message = checked.message or f"`{checked.path}` is not here"
    hint: str = Hint("ingest its new path, or remove it: ", checked.removal)
    if source is None and checked.state is State.UNKNOWN:
        message = f"the header of `{checked.part.place.path}` has missing or wrong options"
        hint = f"ingest `{checked.path}` again by its name"
    return FileReport(path=checked.path, refusal=NotFound(message, hint=hint), is_named=False)


def _ingest(
    call: Call, sandbox: Sandbox, target: Target, options: Options, waiting: _Waiting | None = None
) -> FileReport:
    """Ingests one file; a new one is only added to those `waiting`, if these are given.

    If it raises an error, nothing was changed.
    """
    start = call.mind.timer.monotonic()
    try:
        report = _ingest_once(call, sandbox, target, options, waiting)
    except Conflict:
        # Another process may have ingested it meanwhile, which the second attempt detects.
        report = _ingest_once(call, sandbox, target, options)
    if not options.dry_run:
        seconds = call.mind.timer.monotonic() - start
        if waiting:
            waiting.tell(report, seconds)
        else:
            call.mind.events.write(_event(call, report, seconds))
    return report


def _event(call: Call, report: FileReport, seconds: float) -> Event:
    return Event(
        name="mimo.ingest.file",
        time=call.mind.now(),
        measurements={
            "duration_ms": round(1000 * seconds, 3),
            "bytes": report.size,
            "chunks": len(report.ids),
            "replaced": report.replaced,
        },
        metadata={
            "path": report.path,
            "source": report.source_id,
            "strategy": report.strategy.value,
            "known": report.is_known,
        },
    )


def _ingest_once(
    call: Call, sandbox: Sandbox, target: Target, options: Options, waiting: _Waiting | None = None
) -> FileReport:
    mind, path = call.mind, relative(call, target.path)
    _check_place(call, target.path, path)
    status = target.path.lstat() if target.path.exists() else None
    data = sandbox.read(target.path, mind.config["ingest.max_bytes"])
    text = _text_of(data, path, mind.project.root)
    check_secrets(call, {"path": path})  # A file of a folder has a path that was no argument.
    check_secrets(call, {"path": text}, file=path)
    earlier = _earlier_chunks(call, path)
    report = FileReport(
        path=path,
        size=len(data),
        source_id=earlier[0].parent if earlier and earlier[0].parent else source_id(path),
        replaced=len(earlier),
        seen=(status.st_size, status.st_mtime_ns) if status else None,
    )
    sha256 = digest(data)
    stored = mind.store.source(earlier[0].place) if earlier else None
    is_published = options.private and bool(earlier) and not earlier[0].place.private
    if stored and stored.sha256 == sha256 and not (options.force or is_published):
        asked = options.chunking
        if asked.is_auto or resolved(asked, stored.path) == stored.chunking:
            report = _as_known(report, call, earlier)
            if not options.dry_run:
                return report
    # What a person ingests is approved, which another author's keys must not be.
    old_texts = mind.store.approvals(earlier[0].place.path) if earlier else ()
    keeps = earlier and (call.agent or mind.trust.trusted(*old_texts))
    old_source = stored if keeps else None
    options = options.with_last(old_source) if old_source else options
    chunking = resolved(options.chunking, target.path.name)
    new_chunks = _chunks(call, text, chunking, target.path.name)
    report = replace(report, strategy=chunking.strategy, chunks=new_chunks)
    if options.dry_run:
        return report
    source = row_of(
        options,
        Source,
        id=report.source_id or "",
        path=path,
        sha256=sha256,
        chunking=chunking,
        total=len(report.chunks),
        created=mind.now(),
        by=call.author,
        others=old_source.others if old_source else {},
    )
    if waiting and not earlier and report.chunks:
        new, records = rendered_source(source, report.chunks, private=options.private)
        if waiting.add(new, target):
            return _written(report, records)
    return _write(call, report, source, earlier, private=options.private)


def _check_place(call: Call, place: Path, path: str) -> None:
    """Raises `Invalid` for a file that is already memory, belongs to git, or can't be named."""
    if path != _unescaped(call, place):
        raise Invalid(f"the name of `{path}` is not UTF-8", hint="rename it")
    _check_not_git(path)
    if path.startswith(".mind/") or call.mind.is_of_home(place):
        raise Invalid(f"`{path}` is memory already", hint="name a file outside of .mind/")
    if call.mind.config["include"] and path in call.mind.store.stamps():
        raise Invalid(
            f"`{path}` is memory already, by the setting `include`",
            hint="searches find it as it is",
        )


def _check_not_git(path: str) -> None:
    """Raises `Invalid` for a path, relative to the project, in a git directory.

    Those contain addresses with passwords, and texts of every branch.
    """
    if ".git" in path.casefold().split("/"):
        raise Invalid(f"`{path}` belongs to git", hint="name a file or folder of the working tree")


def _text_of(data: bytes, path: str, root: Path) -> str:
    """Returns a file's text; raises `Invalid` unless it is plain text in UTF-8 and merged."""
    kind = REFUSED.get(suffix(path)) or next(
        (kind for signature, kind in _SIGNATURES.items() if data.startswith(signature)), None
    )
    if kind:
        raise Invalid(
            f"`{path}` is {kind}; only plain text can be ingested",
            hint="turn it into text first, for example with pdftotext or pandoc",
        )
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Invalid(f"`{path}` is text in UTF-16, not in UTF-8", hint="convert it with iconv")
    if b"\0" in data:
        raise Invalid(f"`{path}` is binary; only plain text can be ingested")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Invalid(
            f"`{path}` is not text in UTF-8: byte 0x{data[error.start]:02x} on line {line}",
            hint="convert it first, for example with iconv",
        ) from None
    if "\n>>>>>>>" in text and git.is_unmerged(root, path):
        raise Invalid(
            f"`{path}` has a conflict of git that is not resolved",
            hint="edit the file, `git add` it, then ingest it again",
        )
    return text


def _earlier_chunks(call: Call, path: str) -> tuple[Record, ...]:
    """Returns the stored chunks of a file, including those another process wrote just now."""
    id_ = source_id(path)
    if indexed := call.index.parts(id_):
        return indexed
    for file in (source_path(id_, private=False), source_path(id_, private=True)):
        on_disk = call.mind.store.read(file) if call.mind.store.stamp(file) else ()
        if not isinstance(on_disk, Problem) and on_disk and on_disk[0].parent == id_:
            return on_disk
    return ()


def _as_known(report: FileReport, call: Call, earlier: Sequence[Record]) -> FileReport:
    source = call.mind.store.source(earlier[0].place)
    return replace(
        report,
        is_known=True,
        replaced=0,
        strategy=source.chunking.strategy if source else report.strategy,
        file=earlier[0].place.path,
        ids=tuple(record.memory.id for record in earlier),
    )


def _chunks(call: Call, text: str, chunking: Chunking, name: str) -> list[Chunk]:
    pieces, limit = chunks(text, chunking, name), call.mind.config["ingest.max_chunks"]
    if len(pieces) > limit:
        raise TooManyChunks(
            f"File would create too many chunks: {len(pieces):,} (max: {limit:,})",
            hint="use a larger `chunk_size`, or raise the setting `ingest.max_chunks`",
            details={"chunks": len(pieces), "max": limit},
        )
    return pieces


def _write(
    call: Call, report: FileReport, source: Source, earlier: Sequence[Record], *, private: bool
) -> FileReport:
    """Writes a source in place of its earlier version."""
    old = earlier[0].place if earlier else None
    if not report.chunks:
        if old:
            call.mind.store.delete_source(old)
        return replace(report, file=old.path if old else None)
    # A private source stays private: an update must not publish it.
    private = private or (old is not None and old.private)
    path = source_path(source.id, private=private)
    if old is None and call.mind.store.stamp(path):
        existing = call.mind.store.read(path)
        reason = existing.reason if isinstance(existing, Problem) else "it has other content"
        raise Conflict(f"`{path}` is in the way: {reason}", hint="mend it or remove it by hand")
    records = call.mind.store.put_source(source, report.chunks, private=private, instead=old)
    place = records[0].place
    if old and old.path != place.path:
        refresh.note_change(call, old.path)
    return _written(report, records)


def _written(report: FileReport, records: Sequence[Record]) -> FileReport:
    """Returns the report of a file whose chunks are stored as these records."""
    place, names = records[0].place, tuple(record.memory.id for record in records)
    # The texts of many files would fill the memory.
    return replace(report, file=place.path, digest=place.digest, ids=names, chunks=())
