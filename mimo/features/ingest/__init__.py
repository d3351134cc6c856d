"""Taking in files: each is cut into chunks that are memories, under one header."""

import os
from base64 import b32encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from mimo.errors import (
    Conflict,
    FileTooLarge,
    Invalid,
    MindError,
    NotFound,
    SandboxViolation,
    SecretDetected,
    StorageFailed,
    TooManyChunks,
)
from mimo.frozen import frozen
from mimo.guard.policy import Call, Operation
from mimo.memory import ids
from mimo.memory.chunking import chunks, resolved
from mimo.memory.chunking.model import REFUSED, Chunk, Chunking, Strategy, checked, suffix
from mimo.memory.chunking.source import Source, chunk_id
from mimo.memory.model import Kind, Problem, Record, check_unit
from mimo.mind import Mind
from mimo.operations import freshness, undoing
from mimo.operations import refresh as upkeep
from mimo.operations.freshness import IngestedFiles, Seen, State
from mimo.operations.overview import everything
from mimo.operations.saving import approving, check_format, check_secrets, clean_tags
from mimo.store import sandbox as tree
from mimo.store.files import digest
from mimo.store.memories import source_path
from mimo.store.sandbox import Sandbox, Target

# Which files may become memories: where they may lie, and what they may be.


_SIGNATURES = {b"%PDF-": "a PDF", b"PK\x03\x04": "a zip archive or an Office document"}


def sandbox_of(mind: Mind) -> Sandbox:
    """Returns what may be read: all of it for a person, the project for an agent.

    SANDBOX_DIR is the limit of both where it is set.
    """
    root, by_agent = mind.project.root, mind.author is not None
    given = mind.environ.get("SANDBOX_DIR")
    if given:
        limit = Path(given).expanduser().absolute()
        return Sandbox(limit, limit if by_agent and not root.is_relative_to(limit) else _base(mind))
    return Sandbox(root if by_agent else None, _base(mind))


def _base(mind: Mind) -> Path:
    """Returns where relative names begin: where a person is, and the project for an agent."""
    return Path.cwd() if mind.author is None else mind.project.root


def relative(mind: Mind, path: Path) -> str:
    """Returns a file's path as it is kept: relative to the project, wherever that is."""
    found = Path(os.path.relpath(path, os.path.realpath(mind.project.root))).as_posix()
    return found.encode("utf-8", "backslashreplace").decode()


def check_place(mind: Mind, place: Path, path: str) -> None:
    """Raises `Invalid` for a file that is memory already, or git's own."""
    check_not_git(path)
    if path.startswith(".mind/") or place.is_relative_to(mind.home):
        raise Invalid(f"`{path}` is memory already", hint="name a file outside of .mind/")
    if mind.config["include"] and path in mind.store.stamps():
        raise Invalid(
            f"`{path}` is memory already, by the setting `include`",
            hint="it is found as it is; see `mind config include`",
        )


def check_not_git(path: str) -> None:
    """Raises `Invalid` for a path, relative to the project, in a git directory.

    Those hold addresses with passwords, and texts of every branch.
    """
    if ".git" in path.casefold().split("/"):
        raise Invalid(f"`{path}` belongs to git", hint="name a file or folder of the working tree")


def text_of(data: bytes, path: str) -> str:
    """Returns the text of a file; raises `Invalid` for what may not become memory."""
    kind = REFUSED.get(suffix(path))
    kind = kind or next((what for sign, what in _SIGNATURES.items() if data.startswith(sign)), None)
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
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Invalid(
            f"`{path}` is not text in UTF-8: byte 0x{data[error.start]:02x} on line {line}",
            hint="convert it first, for example with iconv",
        ) from None


def source_id(path: str) -> str:
    """Returns the id of a file's source: the same for the same path, on every machine."""
    from hashlib import sha256

    letters = b32encode(sha256(path.encode()).digest())[:6].decode().lower()
    return "_".join(part for part in ("source", ids.slug(path.rpartition("/")[2]), letters) if part)


REFUSALS = (
    Invalid,
    NotFound,
    SecretDetected,
    FileTooLarge,
    TooManyChunks,
    SandboxViolation,
    Conflict,
)
"""What keeps one file out, and no other."""
_DAEMON = "mind daemon"
"""Signs what is ingested again without a person or an agent who asked."""


@frozen
class Wish:
    """How files are to be taken in."""

    chunking: Chunking = Chunking()
    type: Kind = Kind.FACT
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    private: bool = False
    force: bool = False
    """Whether what is known already is taken in anew."""
    dry_run: bool = False
    """Whether nothing is written."""


@frozen
class Taken:
    """What came of one file."""

    path: str
    """Relative to the project."""
    size: int = 0
    strategy: Strategy = Strategy.AUTO
    source_id: str | None = None
    file: str | None = None
    """Where its chunks are kept."""
    digest: str | None = None
    """Of that file as it was written now."""
    ids: tuple[str, ...] = ()
    is_known: bool = False
    """Whether it was taken in before, just as it is."""
    replaced: int = 0
    """How many older chunks made room."""
    chunks: Sequence[Chunk] = ()
    refusal: MindError | None = None
    """Why nothing was taken in."""
    seen: tuple[int, int] | None = None
    """Size and time (ns) of the file when it was read."""
    is_named: bool = True
    """Whether somebody named it, rather than a folder or a glob that holds it."""

    @property
    def new_ids(self) -> tuple[str, ...]:
        """Returns the ids that the chunks have once they are written."""
        numbers = range(1, len(self.chunks) + 1)
        return tuple(chunk_id(self.source_id or "", number) for number in numbers)


@frozen
class Report:
    """What came of all that was named."""

    files: tuple[Taken, ...]
    is_single: bool
    """Whether only one file could be meant."""


def ingest(mind: Mind, names: Sequence[str], wish: Wish) -> Report:
    """Takes in the files, folders and globs that are named and returns what came of them.

    Each file is taken in as a whole or not at all. What keeps a file out is raised where it is the
    only one named, and told beside the others otherwise.
    """
    check_format(mind)
    wish = _checked(wish)
    sandbox = sandbox_of(mind)
    if len(names) == 1 and tree.is_one_file(sandbox, names[0]):
        target = next(iter(tree.targets(sandbox, names[0])))
        with _settled(mind) as settle:
            taken = _take_in(mind, sandbox, target, wish)
            settle(taken)
        return Report(files=(taken,), is_single=True)
    return Report(files=tuple(_take_all(mind, sandbox, names, wish)), is_single=False)


def _checked(wish: Wish) -> Wish:
    return replace(
        wish,
        chunking=checked(wish.chunking),
        importance=check_unit("importance", wish.importance),
        tags=clean_tags(wish.tags),
    )


def _take_all(mind: Mind, sandbox: Sandbox, names: Sequence[str], wish: Wish) -> list[Taken]:
    found, refused = _found(mind, sandbox, names)
    if not found and not refused:
        raise NotFound(
            f"there is nothing to ingest in `{' '.join(names)}`",
            hint="what .gitignore names, hidden files and links are passed over",
        )
    taken: list[Taken] = [*refused]
    with _settled(mind) as settle:
        for number, target in enumerate(found, 1):
            one = _or_refusal(mind, sandbox, target, wish)
            settle(one)
            taken.append(one)
            mind.advance("Ingesting", number, len(found))
    return taken


def _found(mind: Mind, sandbox: Sandbox, names: Sequence[str]) -> tuple[list[Target], list[Taken]]:
    """Returns the files that are named, each once, and the names that stand for none."""
    found: dict[Path, Target] = {}
    refused = []
    for name in names:
        try:
            check_not_git(relative(mind, sandbox.locate(name)))
            for target in tree.targets(sandbox, name):
                found.setdefault(target.path, target)
        except REFUSALS as error:
            refused.append(Taken(path=name, refusal=error))
    return list(found.values()), refused


def _or_refusal(mind: Mind, sandbox: Sandbox, target: Target, wish: Wish) -> Taken:
    try:
        if target.problem:
            raise target.problem
        return replace(_take_in(mind, sandbox, target, wish), is_named=target.is_named)
    except (*REFUSALS, StorageFailed) as error:
        # What can't be read is one file's trouble; what can't be written is everybody's.
        if not isinstance(error, REFUSALS) and error.details.get("path") != str(target.path):
            raise
        path = relative(mind, target.path)
        return Taken(path=path, refusal=error, is_named=target.is_named)


@contextmanager
def _settled(mind: Mind) -> Iterator[Callable[[Taken], None]]:
    """Approves what is written, and makes it findable at the end.

    An agent does not approve what somebody else wrote.
    """
    written: set[str] = set()
    seen: dict[str, Seen] = {}

    def settle(one: Taken) -> None:
        if one.file and not one.is_known:
            written.add(one.file)
        if one.file and one.seen and (one.is_known or one.digest):
            seen[one.path] = Seen(*one.seen, one.digest or mind.store.digest(one.file))

    upkeep.refresh(mind)
    with approving(mind, wanted=mind.author is None):
        yield settle
    if seen:
        with suppress(MindError):  # without it, files are compared by their digests
            IngestedFiles(mind.project.root).add(seen)
    if written:
        upkeep.note_change(mind, *written)


def update(mind: Mind, names: Sequence[str], wish: Wish) -> Report:
    """Ingests again the named files, or those in named folders, that changed since they were.

    Each is ingested as it was before. Files that no longer exist are reported with the command
    that removes their chunks. Raises `NotFound` if nothing ingested has that name.
    """
    check_format(mind)
    sandbox = sandbox_of(mind)
    found = [
        one for one in freshness.checked(mind, everything(mind)) if _is_named(mind, one, names)
    ]
    if not found:
        raise NotFound(
            f"no ingested file is named `{' '.join(names)}`",
            hint="name a file, or a folder such as `.`",
        )
    with _settled(mind) as settle:
        taken = [_updated(mind, sandbox, one, wish) for one in found]
        for one in taken:
            settle(one)
    return Report(files=tuple(taken), is_single=False)


def refresh(mind: Mind) -> Report | None:
    """Ingests again the project's files that changed since they were ingested on this machine.

    Returns None if none did. Nobody asked for it, so the new text is not approved, and `mind undo`
    takes it back.
    """
    root = os.path.realpath(mind.project.root)
    changed = [
        path
        for path, seen in IngestedFiles(mind.project.root).read().items()
        if (place := freshness.place_of(mind, path)).is_relative_to(root) and _differs(place, seen)
    ]
    if not changed:
        return None
    view = mind.acting_as(_DAEMON)
    call = Call(tool="ingest", operation=Operation.WRITE, agent=_DAEMON, at=mind.now())
    with undoing.recorded(view, call, command="ingest --update", is_tool=True):
        return update(view, changed, Wish())


def _differs(place: Path, seen: Seen) -> bool:
    """Returns whether a file is there with another size or time."""
    try:
        status = place.lstat()
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) != (seen.size, seen.mtime_ns)


def _is_named(mind: Mind, one: freshness.Checked, names: Sequence[str]) -> bool:
    place = freshness.place_of(mind, one.path)
    base = Path.cwd() if mind.author is None else mind.project.root
    for name in names:
        wanted = Path(os.path.realpath(base / Path(name).expanduser()))
        if place.is_relative_to(wanted) or fnmatchcase(str(place), str(wanted)):
            return True
        if one.path == name:
            return True
    return False


def _updated(mind: Mind, sandbox: Sandbox, one: freshness.Checked, wish: Wish) -> Taken:
    parts = mind.index.parts(one.part.parent or "")
    source = mind.store.source(one.part.place)
    if one.state is State.CHANGED and source is not None:
        again = Wish(
            chunking=source.chunking,
            type=source.type,
            importance=source.importance,
            tags=source.tags,
            metadata=source.metadata,
            dry_run=wish.dry_run,
        )
        target = Target(freshness.place_of(mind, one.path), is_named=True)
        return _or_refusal(mind, sandbox, target, again)
    if one.state is State.CURRENT:
        status = freshness.place_of(mind, one.path).lstat()
        seen = (status.st_size, status.st_mtime_ns)
        return _as_known(Taken(path=one.path, source_id=one.part.parent, seen=seen), mind, parts)
    message = one.message or f"`{one.path}` is not here"
    hint = f"if it is not needed: `mind rm {one.part.parent}`; if it moved, ingest its new path too"
    return Taken(path=one.path, refusal=NotFound(message, hint=hint), is_named=False)


def _take_in(mind: Mind, sandbox: Sandbox, target: Target, wish: Wish) -> Taken:
    """Returns what came of one file. Raises what keeps it out; nothing has changed then."""
    start = mind.timer.monotonic()
    try:
        taken = _take_once(mind, sandbox, target, wish)
    except Conflict:
        # Another process may have been quicker; what it wrote is known by now.
        taken = _take_once(mind, sandbox, target, wish)
    if not wish.dry_run:
        _tell(mind, taken, mind.timer.monotonic() - start)
    return taken


def _tell(mind: Mind, taken: Taken, seconds: float) -> None:
    numbers = {
        "duration_ms": round(1000 * seconds, 3),
        "bytes": taken.size,
        "chunks": len(taken.ids),
        "replaced": taken.replaced,
    }
    mind.tell(
        "mimo.ingest.file",
        numbers,
        path=taken.path,
        source=taken.source_id,
        strategy=taken.strategy.value,
        known=taken.is_known,
    )


def _take_once(mind: Mind, sandbox: Sandbox, target: Target, wish: Wish) -> Taken:
    path = relative(mind, target.path)
    check_place(mind, target.path, path)
    status = target.path.lstat() if target.path.exists() else None
    data = sandbox.read(target.path, mind.config["ingest.max_bytes"])
    text = text_of(data, path)
    check_secrets(mind, {"path": text}, file=path)
    chunking = resolved(wish.chunking, target.path.name)
    seen = _known(mind, path)
    id_ = seen[0].parent if seen and seen[0].parent else source_id(path)
    taken = Taken(
        path=path,
        size=len(data),
        strategy=chunking.strategy,
        source_id=id_,
        replaced=len(seen),
        seen=(status.st_size, status.st_mtime_ns) if status else None,
    )
    sha256 = digest(data)
    if seen and not wish.force and _is_same(mind, seen, sha256, wish.chunking):
        taken = _as_known(taken, mind, seen)
        if not wish.dry_run:
            return taken
    made = _chunks(mind, text, chunking, target.path.name)
    taken = replace(taken, chunks=made)
    if wish.dry_run:
        return taken
    source = Source(
        id=id_,
        type=wish.type,
        path=path,
        sha256=sha256,
        chunking=chunking,
        total=len(made),
        created=mind.now(),
        tags=wish.tags,
        importance=wish.importance,
        by=mind.author,
        metadata=wish.metadata,
    )
    return _written(mind, taken, source, seen, private=wish.private)


def _as_known(taken: Taken, mind: Mind, seen: Sequence[Record]) -> Taken:
    source = mind.store.source(seen[0].place)
    return replace(
        taken,
        is_known=True,
        replaced=0,
        strategy=source.chunking.strategy if source else taken.strategy,
        file=seen[0].place.path,
        ids=tuple(record.memory.id for record in seen),
    )


def _written(
    mind: Mind, taken: Taken, source: Source, seen: Sequence[Record], *, private: bool
) -> Taken:
    """Puts a source in the place of its earlier state."""
    before = seen[0].place if seen else None
    if not taken.chunks:
        if before:
            mind.store.delete_source(before)
        return replace(taken, file=before.path if before else None)
    # What was private stays so: an update must not publish it.
    private = private or (before is not None and before.private)
    if before is None:
        _check_free(mind, source_path(source.id, private=private))
    records = mind.store.put_source(source, taken.chunks, private=private, instead=before)
    if before and before.path != records[0].place.path:
        upkeep.note_change(mind, before.path)
    place, names = records[0].place, tuple(record.memory.id for record in records)
    return replace(taken, file=place.path, digest=place.digest, ids=names)


def _check_free(mind: Mind, path: str) -> None:
    """Raises `Conflict` where the file of a source is there but can't be read."""
    if mind.store.stamp(path) is None:
        return
    found = mind.store.read(path)
    reason = found.reason if isinstance(found, Problem) else "it holds something else"
    raise Conflict(f"`{path}` is in the way: {reason}", hint="mend it or remove it by hand")


def _chunks(mind: Mind, text: str, chunking: Chunking, name: str) -> list[Chunk]:
    made, most = chunks(text, chunking, name), mind.config["ingest.max_chunks"]
    if len(made) > most:
        raise TooManyChunks(
            f"File would create too many chunks: {len(made):,} (max: {most:,})",
            hint="make them larger with chunk_size, or raise the limit: "
            "mind config ingest.max_chunks N",
            details={"chunks": len(made), "max": most},
        )
    return made


def _known(mind: Mind, path: str) -> tuple[Record, ...]:
    """Returns the chunks that a file was cut into before, perhaps just now by another process."""
    id_ = source_id(path)
    if found := mind.index.parts(id_):
        return found
    for file in (source_path(id_, private=False), source_path(id_, private=True)):
        on_disk = mind.store.read(file) if mind.store.stamp(file) else ()
        if not isinstance(on_disk, Problem) and on_disk and on_disk[0].parent == id_:
            return on_disk
    return ()


def _is_same(mind: Mind, seen: Sequence[Record], sha256: str, asked: Chunking) -> bool:
    """Returns whether a file was taken in as it is, and not to be cut otherwise than then."""
    source = mind.store.source(seen[0].place)
    if source is None or source.sha256 != sha256:
        return False
    return asked.is_auto or resolved(asked, source.path) == source.chunking
