"""The memories of one project, as files.

The codec is imported only when a file is read or written, since most commands read none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.data import disk, files
from mimo.data.disk import STORE, Stamp
from mimo.data.failures import failure
from mimo.data.files import PRIVATE, is_private
from mimo.data.locks import lock
from mimo.errors import Command, Conflict, Hint, Invalid, MindError
from mimo.frozen import NamedTuple, replace
from mimo.memory.ids import handle_of
from mimo.memory.model import Kind, Memory, Place, Problem, Record, is_elsewhere
from mimo.project import git
from mimo.project.walk import COMMITS, LOG, Walk, fixed_part, is_markdown, stamp_of, stamps_of, walk

if TYPE_CHECKING:
    from mimo.memory import codec
    from mimo.memory.chunking import Chunk
    from mimo.memory.sources import Source


_MOST_BYTES = 4_000_000
"""Maximum size of a log or a file of code; larger files are generated."""
_SECONDS = 5
"""Maximum time that git gets for the dates of the log."""
_MARK = b"MEMORY:"


def is_read_only(path: str) -> bool:
    """Returns whether a path is the log, a file of code, or the commits: mind never writes them."""
    return path in (LOG, COMMITS) or not is_markdown(path)


def read(root: Path, path: str, *, commits: int) -> tuple[Record, ...] | Problem:
    """Returns the memories of a path that `is_read_only`, or the problem with it.

    `commits` is the number of commits to read. Raises `OSError` and `MindError`.
    """
    if path == COMMITS:
        return tuple(_of_commits(root, commits))
    data, status = disk.look(files.safe_path(root, path), limit=_MOST_BYTES)
    modified = disk.moment(status.st_mtime)
    if path == LOG:
        return of_log(root, data, modified, size=status.st_size)
    if len(data) > _MOST_BYTES or _MARK not in data:
        return ()
    from mimo.memory import log

    text = data.decode("utf-8", "replace")
    return tuple(log.in_code(text, path=path, digest=files.digest(data), modified=modified))


def of_log(
    root: Path, data: bytes, modified: datetime, *, revision: str = "HEAD", size: int = 0
) -> tuple[Record, ...] | Problem:
    """Returns the memories in the bytes of the log, or the problem with it.

    A line without a date has that of its commit, as of the revision. `size` is that of the file, if
    only its beginning was read.
    """
    if len(data) > _MOST_BYTES:
        size = max(size, len(data))
        reason = f"too large: {size:,} bytes, at most {_MOST_BYTES:,} are read"
        return Problem(path=LOG, line=None, reason=reason)
    from mimo.memory import log

    dates, digest = partial(_dates, root, revision), files.digest(data)
    return log.parse(data, path=LOG, digest=digest, modified=modified, dates=dates)


def unclosed(root: Path) -> int | None:
    """Returns the line of the log that begins code, a comment or HTML, and is not closed.

    None without such a line, and if the log is missing or can't be read.
    """
    from mimo.memory import log

    with suppress(OSError, MindError, UnicodeDecodeError):
        data, _ = disk.look(files.safe_path(root, LOG), limit=_MOST_BYTES)
        return log.unclosed(data.decode("utf-8-sig")) if len(data) <= _MOST_BYTES else None
    return None


def _dates(root: Path, revision: str) -> dict[str, datetime]:
    """Returns the time of the last commit of each line of the log, by its stripped text."""
    dates: dict[str, datetime] = {}
    with suppress(Invalid):
        for line in git.blame(root, LOG, revision=revision, seconds=_SECONDS):
            dates.setdefault(line.text.strip(), line.when)
    dates.pop("", None)
    return dates


class Message(NamedTuple):
    """The message of a commit without its first line."""

    commit: str
    author: str
    when: datetime
    body: str


def messages(root: Path, limit: int) -> Iterator[Message]:
    """Yields the messages of the last commits, newest first."""
    # The author's name comes last of the fields, because it may contain the separator.
    form = "--format=%H%x1f%ct%x1f%an%x1f%b"
    logged = git.output(root, "log", "-z", f"--max-count={limit}", form)
    for record in (logged or "").split("\0"):
        id_, _, tail = record.partition("\x1f")
        seconds, _, tail = tail.partition("\x1f")
        author, _, body = tail.partition("\x1f")
        if seconds.isdigit():
            yield Message(id_.strip(), author, disk.moment(int(seconds)), body)


def _of_commits(root: Path, limit: int) -> Iterator[Record]:
    from mimo.memory import log
    from mimo.memory.approval import approval_of_entry

    taken: dict[str, int] = {}
    position = 0
    for message in messages(root, limit):
        for memory in log.in_message(**message._asdict(), taken=taken):
            digest = files.digest(memory.content.encode("utf-8", "replace"))
            approval = approval_of_entry(COMMITS, memory)
            place = Place(path=COMMITS, line=1, digest=digest, owned=False, approval=approval)
            yield Record(memory=memory, place=place, position=position)
            position += 1


class NewFile(NamedTuple):
    """The file of a new memory."""

    path: str
    """Relative to the project's root, with `/`."""
    data: bytes
    digest: str


class MemoryStore:
    """Reads and changes the files of a project's memories."""

    def __init__(
        self,
        root: Path,
        include: Sequence[str] = (),
        *,
        comments: Sequence[str] = (),
        commits: int = 0,
    ) -> None:
        """Takes the folder, globs, and the number of commits to read."""
        self.root = root
        self.include = tuple(include)
        self.comments = tuple(comments)
        self.commits = commits
        self._problems: tuple[Problem, ...] | None = None

    def walk(self) -> Walk:
        """Returns the stamps of all memory files, and the problems of the walk."""
        result = walk(self.root, self.include, self.comments)
        if self.commits and (latest := git.stamp(self.root)):
            # With another number of commits, they must be read again.
            result.files.add(COMMITS, stamp_of(latest)._replace(size=self.commits))
        self._problems = tuple(result.problems)
        return result

    def problems(self) -> tuple[Problem, ...]:
        """Returns the problems of the last walk; walks if there was none yet."""
        if self._problems is None:
            return tuple(self.walk().problems)
        return self._problems

    def folders(self) -> tuple[Path, ...]:
        """Returns folders to watch: every change of a memory is a change below one of them.

        Empty if that would be the whole project.
        """
        fixed = [fixed_part(pattern) for pattern in (*self.include, *self.comments)]
        if "" in fixed:
            return ()
        logs = git.reflogs(self.root) if self.commits else None
        return (*(self.root / part for part in (STORE, *fixed)), *((logs,) if logs else ()))

    def stamps(self) -> dict[str, Stamp]:
        """Returns the stamp of every memory file by its path relative to the root, with `/`."""
        return dict(self.walk().files.items())

    def stamps_of(self, paths: Sequence[str]) -> dict[str, Stamp | None] | None:
        """Returns the stamps of the memory files among changed paths, None for a missing file.

        Returns None if all files must be compared.
        """
        return None if self._problems else stamps_of(self.root, paths)

    def read(self, path: str) -> tuple[Record, ...] | Problem:
        """Returns the memories in a file, or the problem with it."""
        try:
            if is_read_only(path):
                return read(self.root, path, commits=self.commits)
            data, modified = _content(files.safe_name(self.root, path), path)
            return records_of(data, path, modified)
        except MindError as error:
            return Problem(path=path, line=None, reason=error.message)
        except OSError as error:
            return Problem(path=path, line=None, reason=(error.strerror or str(error)).lower())
        except Exception as error:  # noqa: BLE001 - one file must not stop the others
            reason = f"mind can't read it ({type(error).__name__}); please report it"
            return Problem(path=path, line=None, reason=reason)

    def digest(self, path: str) -> str:
        """Returns the SHA-256 of a file's bytes; empty if it can't be read."""
        data = self.content(path)
        return "" if data is None else files.digest(data)

    def approvals(self, path: str) -> tuple[str, ...]:
        """Returns the names that approve a file or its entries; none if it can't be read."""
        data = self.content(path)
        return () if data is None else approvals_of(path, data)

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """Yields the path and the bytes of each file that an approval may name."""
        folders = (self.root / STORE / name for name in ("procedures", "values"))
        stored = (path for folder in folders for path in sorted(folder.rglob("*.md")))
        names = [path.relative_to(self.root).as_posix() for path in stored]
        for path in dict.fromkeys((*self.stamps(), *names, *files.DECISIVE)):
            if (data := self.content(path)) is not None:
                yield path, data

    def content(self, path: str) -> bytes | None:
        """Returns a file's bytes; None if it can't be read."""
        with suppress(MindError, OSError):
            return disk.read(files.safe_path(self.root, path))
        return None

    def create(
        self,
        memory: Memory,
        *,
        private: bool = False,
        path: str | None = None,
        instead: str | None = None,
    ) -> Record:
        """Writes a new memory to its type's folder and returns it as it will be read.

        `path` is another file than that of its id, and `instead` the digest of an existing file
        there, which is replaced. Raises `Invalid` if it can't be written as a file, `Conflict` if
        the file exists or has changed, and `StorageFailed`.
        """
        from mimo.memory import codec
        from mimo.memory.approval import approval_of

        new = rendered(memory, private=private)
        new = new._replace(path=path or new.path)
        target = files.safe_path(self.root, new.path)
        with self.locked():
            if instead is None:
                files.write_new(target, new.data)
            else:
                files.replace(target, new.data, expect=instead)
        place = Place(
            path=new.path,
            line=codec.content_line(new.data),
            digest=new.digest,
            private=private,
            approval=approval_of(new.path, new.data),
        )
        return Record(memory=codec.normal(memory), place=place)

    def create_all(self, new: Sequence[NewFile]) -> frozenset[str]:
        """Writes many new memories at once, and returns the paths of existing files.

        These are unchanged. Raises `StorageFailed`; then files may be missing, none is incomplete.
        """
        targets = {files.safe_path(self.root, file.path): file for file in new}
        with self.locked():
            taken = files.write_all_new({path: file.data for path, file in targets.items()})
        return frozenset(targets[path].path for path in taken)

    def delete_all(self, digests: Mapping[str, str]) -> dict[str, MindError]:
        """Removes files by path if each still has its digest; returns the errors of the others.

        Missing files are ignored. Raises `StorageFailed`.
        """
        targets = {files.safe_path(self.root, path): path for path in digests}
        with self.locked():
            failures = files.remove_all({place: digests[path] for place, path in targets.items()})
        return {targets[place]: error for place, error in failures.items()}

    def update(self, record: Record, memory: Memory) -> Record:
        """Changes the differing parts of a memory's file and returns it as it will be read.

        The rest of the file stays byte for byte. Raises `Conflict` if the file has changed since
        it was read, `Invalid` if it can't be changed safely, and `StorageFailed`.
        """
        target = files.safe_path(self.root, record.place.path)
        with self.locked():
            data, changed = self.changed(record, memory)
            if changed.place.digest != record.place.digest:
                files.replace(target, data, expect=record.place.digest)
        return changed

    def changed(self, record: Record, memory: Memory) -> tuple[bytes, Record]:
        """Returns the text that `update` would write, and its memory. Raises as it does."""
        from mimo.memory import codec
        from mimo.memory.codec.splice import splice

        check_whole(record)
        path, data = record.place.path, self.raw(record)
        changed = splice(data, record.memory, memory, path=path)
        parsed = codec.parse(changed, path=path, modified=record.memory.created)
        if isinstance(parsed, Problem):
            reason = f"`{path}` could not be read after the change: {parsed.reason}"
            raise Invalid(
                reason, hint=Hint("nothing was changed; ", Command("edit"), " opens the file")
            )
        return changed, _record(parsed, path, changed)

    def put_source(
        self, source: Source, chunks: Sequence[Chunk], *, private: bool, instead: Place | None
    ) -> tuple[Record, ...]:
        """Writes the file of a source and returns its chunks as they will be read.

        `instead` is the place of the earlier file, which is replaced. Raises `Invalid` if it can't
        be written as a file, `Conflict` if the earlier file has changed, and `StorageFailed`.
        """
        new, records = rendered_source(source, chunks, private=private)
        target = files.safe_path(self.root, new.path)
        with self.locked():
            if instead and instead.path == new.path:
                files.replace(target, new.data, expect=instead.digest)
            else:
                files.write_new(target, new.data)
                if instead:
                    try:
                        earlier = files.safe_path(self.root, instead.path)
                        files.remove(earlier, expect=instead.digest)
                    except MindError:  # One that became private must not stay shared, unnoticed.
                        files.remove(target)
                        raise
        return records

    def restore_source(self, place: Place, data: bytes) -> None:
        """Replaces the file of a source. Raises `Conflict` and `StorageFailed`."""
        with self.locked():
            files.replace(files.safe_path(self.root, place.path), data, expect=place.digest)

    def source(self, place: Place) -> Source | None:
        """Returns the source from the header of its file; None if the header is incomplete."""
        from mimo.memory.sources import header_of

        try:
            data, _ = _content(files.safe_name(self.root, place.path), place.path)
        except (OSError, MindError):
            return None
        return header_of(data, path=place.path)

    def raw(self, record: Record) -> bytes:
        """Returns the bytes of a memory's file.

        Raises `Conflict` if the file has changed since it was read, and `StorageFailed`.
        """
        target = files.safe_path(self.root, record.place.path)
        try:
            data, _ = _content(target, record.place.path)
        except FileNotFoundError:
            raise Conflict(
                f"`{record.place.path}` was removed since it was read",
                hint="list the memories again",
            ) from None
        except OSError as error:
            raise failure("read", target, error) from error
        if files.digest(data) != record.place.digest:
            raise Conflict(
                f"`{record.place.path}` has changed since it was read",
                hint="read it again and repeat the command",
            )
        return data

    def rewrite(self, record: Record, data: bytes) -> Record:
        """Replaces the whole file of a memory by `data` and returns it as it will be read.

        Raises `Invalid` unless `data` is a memory with the same id, `Conflict`, and
        `StorageFailed`; the file is then unchanged.
        """
        from mimo.memory import codec

        check_whole(record)
        path = record.place.path
        parsed = codec.parse(data, path=path, modified=record.memory.created)
        if isinstance(parsed, Problem):
            line = f"line {parsed.line}: " if parsed.line else ""
            raise Invalid(f"{line}{parsed.reason}", hint="the file is unchanged")
        if parsed.memory.id != record.memory.id:
            raise Invalid(
                f"the id of `{handle_of(record.memory.id)}` can't be changed",
                hint="other memories may link to it",
            )
        with self.locked():
            files.replace(files.safe_path(self.root, path), data, expect=record.place.digest)
        return _record(parsed, path, data)

    def move(self, record: Record, path: str, kind: Kind) -> Record:
        """Gives a memory's file another path, and the memory that type; it keeps its id.

        Raises `Conflict` if the file has changed or the path is in use, `Invalid` if the file can't
        be changed safely, and `StorageFailed`.
        """
        old = files.safe_path(self.root, record.place.path)
        new = files.safe_path(self.root, path)
        with self.locked():
            data, moved = self.moved(record, path, kind)
            files.move(old, new, data, expect=record.place.digest)
        return moved

    def moved(self, record: Record, path: str, kind: Kind) -> tuple[bytes, Record]:
        """Returns the text that `move` would write, and its memory. Raises as it does."""
        from mimo.memory import codec
        from mimo.memory.codec.splice import identified

        if self.stamp(path):
            raise Conflict(f"`{path}` already exists", hint="nothing was overwritten")
        data = identified(self.raw(record), replace(record.memory, type=kind))
        parsed = codec.parse(data, path=path, modified=record.memory.created)
        if isinstance(parsed, Problem) or parsed.memory.id != record.memory.id:
            raise Invalid(f"`{record.place.path}` can't be moved", hint="move it by hand")
        return data, _record(parsed, path, data)

    def stamp(self, path: str) -> Stamp | None:
        """Returns the stamp of a file; None if it is missing."""
        try:
            return stamp_of((self.root / path).lstat())
        except OSError:
            return None

    def delete(self, record: Record) -> None:
        """Removes a memory's file, or a chunk in a file. Raises `Conflict` and `StorageFailed`."""
        target = files.safe_path(self.root, record.place.path)
        with self.locked():
            remainder = None
            if record.parent:
                from mimo.memory.sources import without

                remainder = without(self.raw(record), record.position + 1)
            if remainder is None:
                files.remove(target, expect=record.place.digest)
            else:
                files.replace(target, remainder, expect=record.place.digest)

    def delete_files(self, records: Sequence[Record]) -> None:
        """Removes the files of memories, or none of them if one has changed.

        Raises `Conflict` and `StorageFailed`.
        """
        places = [record.place for record in records]
        targets = {files.safe_path(self.root, place.path): place.digest for place in places}
        with self.locked():
            for record in records:
                self.raw(record)
            for error in files.remove_all(targets).values():
                raise error

    def delete_source(self, place: Place) -> None:
        """Removes the file of a source; raises `Conflict` and `StorageFailed`."""
        with self.locked():
            files.remove(files.safe_path(self.root, place.path), expect=place.digest)

    def locked(self) -> AbstractContextManager[None]:
        """Locks out other writers of memories. Raises `StorageFailed`."""
        return lock(files.local(self.root, "lock"))


def rendered(memory: Memory, *, private: bool = False) -> NewFile:
    """Returns the file of a new memory, in its type's folder. Raises `Invalid`."""
    from mimo.memory import codec, ids

    if not ids.is_id(memory.id) or memory.id.startswith("."):
        raise Invalid(f"`{memory.id}` can't be an id", hint="use letters, digits, `_`, `-`, `.`")
    data = codec.render(memory)
    path = f"{PRIVATE if private else f'{STORE}/'}{memory.type.folder}/{memory.id}.md"
    return NewFile(path, data, files.digest(data))


def rendered_source(
    source: Source, chunks: Sequence[Chunk], *, private: bool
) -> tuple[NewFile, tuple[Record, ...]]:
    """Returns the file of a source, and its chunks as they will be read. Raises `Invalid`."""
    from mimo.memory.sources import render

    path = source_path(source.id, private=private)
    data = render(source, chunks)
    records = records_of(data, path, source.created)
    if isinstance(records, Problem):
        reason = f"`{path}` could not be read: {records.reason}"
        raise Invalid(reason, hint="nothing was written")
    return NewFile(path, data, records[0].place.digest), records


def source_path(id: str, *, private: bool) -> str:
    """Returns the path of a source's file."""
    return f"{PRIVATE if private else f'{STORE}/'}sources/{id}.md"


def _content(target: Path | str, path: str) -> tuple[bytes, datetime]:
    """Returns a file's bytes and time of change. Raises `Invalid` if it is too large."""
    from mimo.memory import codec

    most_bytes = codec.MAX_SOURCE_BYTES if codec.is_source(path) else codec.MAX_FILE_BYTES
    data, status = disk.look(target, limit=most_bytes)
    if len(data) > most_bytes:
        raise Invalid(f"too large: {status.st_size:,} bytes, a memory has {most_bytes:,} at most")
    return data, disk.moment(status.st_mtime)


def records_of(data: bytes, path: str, modified: datetime) -> tuple[Record, ...] | Problem:
    """Returns the memories in a file's bytes: one, or the chunks of a source.

    An empty file has none, nor has a pointer to a text that git-lfs or git-annex keeps elsewhere.
    """
    from mimo.memory import codec

    if not data.startswith(b"---") and codec.is_empty(data):
        return ()
    if codec.is_source(path):
        from mimo.memory import sources
        from mimo.memory.approval import approval_of_entry

        chunks = sources.parse(data, path=path, modified=modified)
        if isinstance(chunks, Problem):
            return chunks
        if chunks is not None:
            digest, private = files.digest(data), is_private(path)
            return tuple(
                Record(
                    memory=chunk.memory,
                    place=Place(
                        path=path,
                        line=chunk.line,
                        digest=digest,
                        private=private,
                        approval=approval_of_entry("source", chunk.memory),
                    ),
                    parent=chunk.memory.id.rpartition(".")[0],
                    position=chunk.number - 1,
                )
                for chunk in chunks
            )
    parsed = codec.parse(data, path=path, modified=modified, lenient=True)
    return parsed if isinstance(parsed, Problem) else (_record(parsed, path, data),)


def check_whole(record: Record) -> None:
    """Raises `Invalid` for a chunk, which is a copy of a part of an ingested file."""
    if record.parent is not None:
        raise Invalid(
            f"`{handle_of(record.memory.id)}` is a part of an ingested file",
            hint="change the original file, and ingest it again",
        )


def approvals_of(path: str, data: bytes) -> tuple[str, ...]:
    """Returns the names that approve the text of a file: one for each entry, or one for all."""
    from mimo.memory import codec, log
    from mimo.memory.approval import approval_of

    moment = datetime.fromtimestamp(0, UTC)
    records: Iterable[Record] | Problem = ()
    if path == LOG:
        records = log.parse(data, path=path, digest="", modified=moment, dates=dict)
    elif is_elsewhere(path) and not is_markdown(path):
        text = data.decode("utf-8", "replace") if _MARK in data else ""
        return tuple(
            record.place.approval
            for record in log.in_code(text, path=path, digest="", modified=moment)
        )
    elif codec.is_source(path):
        records = records_of(data, path, moment)
    names = () if isinstance(records, Problem) else [record.place.approval for record in records]
    return tuple(dict.fromkeys(names)) or (approval_of(path, data),)


def _record(parsed: codec.Parsed, path: str, data: bytes) -> Record:
    from mimo.memory.approval import approval_of

    place = Place(
        path=path,
        line=parsed.line,
        digest=files.digest(data),
        private=is_private(path),
        owned=parsed.owned,
        approval=approval_of(path, data),
    )
    return Record(memory=parsed.memory, place=place)
