"""Opening the source of an import safely, and recognising its format.

Nothing of a source is changed, extracted or run. Symbolic links are not followed, except the one
that the user may have named, and sizes are checked before anything is read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mimo.data import disk
from mimo.data.failures import failure
from mimo.data.files import CONFIG
from mimo.errors import Command, Hint, Invalid, NotFound
from mimo.features.importing import adr, database, exports, notes, tables
from mimo.features.importing.drafts import LARGEST_JSON, Draft, Source
from mimo.features.importing.privacy import surroundings
from mimo.memory.codec.document import Unreadable
from mimo.memory.exchange import LISTED

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

MOST_FILES = 100_000
LARGEST = 512 * 1024 * 1024
"""The largest number of bytes of an archive's files that are read."""
_RATIO = 200
"""A file in an archive that is smaller by more than this is made to fill the memory."""
_SMALL = 1024 * 1024
"""Files up to this size may be packed better: text of repeated lines is."""
_IGNORED = frozenset({"node_modules", "__MACOSX"})
_SAMPLE = 40
"""The number of notes whose headers are read to recognise a format."""


class Format(StrEnum):
    """The formats that can be imported."""

    MIND = "mind"
    CLAUDE_MEMORY = "claude-memory"
    CLAUDE_MD = "claude-md"
    BASIC_MEMORY = "basic-memory"
    OBSIDIAN = "obsidian"
    OKF = "okf"
    ADR = "adr"
    NB = "nb"
    JRNL = "jrnl"
    MCP_MEMORY = "mcp-memory"
    MEM0 = "mem0"
    CLAUDE_MEM = "claude-mem"
    MCP_MEMORY_SERVICE = "mcp-memory-service"
    CHATGPT = "chatgpt"
    CLAUDE_CHATS = "claude-chats"


READERS: Mapping[Format, Callable[[Source], Iterator[Draft]]] = {
    Format.MIND: exports.mind,
    Format.CLAUDE_MEMORY: notes.claude_memory,
    Format.CLAUDE_MD: notes.rules,
    Format.BASIC_MEMORY: notes.basic_memory,
    Format.OBSIDIAN: notes.obsidian,
    Format.OKF: notes.okf,
    Format.ADR: adr.records,
    Format.NB: notes.nb,
    Format.JRNL: exports.jrnl,
    Format.MCP_MEMORY: exports.mcp_memory,
    Format.MEM0: exports.mem0,
    Format.CLAUDE_MEM: tables.claude_mem,
    Format.MCP_MEMORY_SERVICE: tables.mcp_memory_service,
    Format.CHATGPT: exports.chatgpt,
    Format.CLAUDE_CHATS: exports.claude_chats,
}

UNIQUE = (
    Format.MIND, Format.MEM0, Format.CLAUDE_MEM, Format.MCP_MEMORY_SERVICE, Format.CHATGPT,
    Format.CLAUDE_CHATS,
)  # fmt: skip
"""The formats whose memories have the same key in each export, and no other memory has it."""

_FOLDERS = (
    Format.OBSIDIAN, Format.BASIC_MEMORY, Format.ADR, Format.OKF, Format.NB, Format.CLAUDE_MEMORY,
)  # fmt: skip
"""The formats of a folder of Markdown, which may not show which one it is."""


# Opening.


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Yields the named source. Raises `NotFound`, `Invalid` and `StorageFailed`."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            yield _folder(path)
        elif not stat.S_ISREG(status.st_mode):
            raise Invalid(f"`{path}` is neither a file nor a folder", hint="name one of these")
        elif disk.start(path, 4) == b"PK\x03\x04":
            with _archive(path) as source:
                yield source
        else:
            yield Source(
                path=path,
                name=path.name,
                files={path.name: status.st_size},
                hidden=frozenset(),
                content=lambda _, limit: _content(path, limit, follow=True),
                is_file=True,
                surroundings=surroundings(path, is_folder=False),
            )
    except FileNotFoundError:
        raise NotFound(f"`{path}` does not exist", hint="check the path") from None
    except OSError as error:
        raise failure("read", path, error) from error


def _content(path: Path, limit: int, *, follow: bool = False) -> bytes:
    """Returns the bytes of a file. Raises `Unreadable` if they are too many, and `OSError`."""
    data, status = disk.look(path, limit=limit, follow=follow)
    if len(data) > limit:
        raise _too_large(max(status.st_size, len(data)), limit)
    return data


def _too_large(size: int, limit: int) -> Unreadable:
    return Unreadable(f"too large: {size:,} bytes, at most {limit:,} are read")


def _folder(path: Path) -> Source:
    """Returns the files below a folder, except hidden ones and those behind symbolic links."""
    files: dict[str, int] = {}
    hidden: set[str] = set()
    skipped: list[tuple[str, str]] = []
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(path / below) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = f"{below}{entry.name}"
                if entry.name.startswith("."):
                    hidden.update([] if below else [entry.name])
                elif entry.is_symlink():
                    skipped.append((name, "a symbolic link, which is not followed"))
                elif entry.is_dir(follow_symlinks=False):
                    waiting.extend([] if entry.name in _IGNORED else [f"{name}/"])
                elif entry.is_file(follow_symlinks=False):
                    files[name] = entry.stat(follow_symlinks=False).st_size
                else:
                    skipped.append((name, "not a regular file"))
        _check_number(path, len(files))
    return Source(
        path=path,
        name=path.resolve().name,
        files=files,
        hidden=frozenset(hidden),
        content=lambda name, limit: _content(path / name, limit),
        skipped=tuple(skipped),
        surroundings=surroundings(path, is_folder=True),
    )


def _check_number(path: Path, number: int) -> None:
    if number > MOST_FILES:
        raise Invalid(
            f"`{path}` has more than {MOST_FILES:,} files", hint="import its folders one by one"
        )


@contextmanager
def _archive(path: Path) -> Iterator[Source]:
    """Yields the files of a zip archive, none of which is ever extracted."""
    import zlib
    from zipfile import BadZipFile, LargeZipFile, ZipFile

    damaged: tuple[type[Exception], ...]
    damaged = (BadZipFile, LargeZipFile, NotImplementedError, EOFError, zlib.error, UnicodeError)
    with suppress(ImportError):  # Some builds of Python lack it.
        from lzma import LZMAError

        damaged = (*damaged, LZMAError)
    try:
        with os.fdopen(disk.opened(path, follow=True), "rb") as file, ZipFile(file) as archive:
            yield _members(path, archive)
    except damaged as error:
        raise Invalid(
            f"`{path}` is a damaged archive: {str(error).lower()}", hint="unpack it and try again"
        ) from None


def _members(path: Path, archive: ZipFile) -> Source:
    infos: dict[str, ZipInfo] = {}
    hidden: set[str] = set()
    skipped: list[tuple[str, str]] = []
    # Of a member without a name, Python can't say whether it is a folder.
    members = [info for info in archive.infolist() if info.filename and not info.is_dir()]
    _check_number(path, len(members))
    top = _common_top([info.filename for info in archive.infolist()])
    for info in members:
        name = info.filename.removeprefix(top)
        parts = name.split("/")
        if reason := _refusal(info):
            skipped.append((name, reason))
        elif parts[0].startswith("."):
            hidden.add(parts[0])
        elif not any(part.startswith(".") or part in _IGNORED for part in parts):
            if name in infos:  # A program that unpacks it leaves the last one, too.
                skipped.append((name, "a later file of the archive has the same name"))
            infos[name] = info
    if sum(info.file_size for info in infos.values()) > LARGEST:
        raise Invalid(
            f"the files in `{path}` have more than {LARGEST:,} bytes", hint="unpack it first"
        )
    stem, folder = path.name.removesuffix(path.suffix), top.strip("/")
    return Source(
        path=path,
        name=folder or stem,
        files={name: info.file_size for name, info in infos.items()},
        hidden=frozenset(hidden),
        content=partial(_member, archive, infos),
        skipped=tuple(skipped),
        surroundings=surroundings(path, stem, *filter(None, [folder]), is_folder=True),
    )


def _common_top(names: list[str]) -> str:
    """Returns the folder, with `/`, that contains all the files of an archive; or nothing."""
    tops = {name.partition("/")[0] for name in names if not name.startswith("__MACOSX/")}
    top = next(iter(tops), "")
    is_folder = len(tops) == 1 and all("/" in name for name in names)
    return f"{top}/" if is_folder and top not in ("", ".", "..") else ""


def _refusal(info: ZipInfo) -> str | None:
    """Returns the reason not to read a file of an archive, if there is one."""
    name = info.filename
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if name.startswith(("/", "\\")) or ".." in parts or ":" in name or "\0" in name:
        return "its path leads out of the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "a symbolic link, which is not followed"
    if info.flag_bits & 1:
        return "it is encrypted"
    if info.file_size > _SMALL and info.file_size > _RATIO * max(1, info.compress_size):
        return f"it unpacks to more than {_RATIO} times its size"
    return None


def _member(archive: ZipFile, infos: Mapping[str, ZipInfo], name: str, limit: int) -> bytes:
    info = infos[name]
    if info.file_size > limit:
        raise _too_large(info.file_size, limit)
    with archive.open(info) as file:
        data = file.read(limit + 1)
    # The size in the header may be a lie.
    if len(data) > limit:
        raise _too_large(len(data), limit)
    return data


# Recognising.


def recognised(source: Source) -> Format:
    """Returns the format of a source. Raises `Invalid` unless the content shows one."""
    if not source.files:
        raise Invalid(f"`{source.path}` has no files that can be read", hint="check the path")
    try:
        candidates = _of_file(source) if source.is_file else _of_folder(source)
    except Unreadable as error:
        where = f", line {error.line}" if error.line else ""
        raise Invalid(
            f"`{source.path}`{where}: {error.reason}", hint="correct it, or export it again"
        ) from None
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise Invalid(
            f"the format of `{source.path}` is not known",
            hint=Hint(f"formats are {', '.join(Format)}; long documents: ", Command("ingest")),
        )
    raise Invalid(
        f"`{source.path}` may be of several formats",
        hint=f"name one: {', '.join(f'--from {format}' for format in candidates)}",
        details={"candidates": [format.value for format in candidates]},
    )


def _of_file(source: Source) -> list[Format]:
    """Returns the possible formats of a single file."""
    (name,) = source.files
    with suppress(OSError):
        if disk.start(source.path, 16).startswith(database.MAGIC):
            return _of_database(source.path)
    lower = name.lower()
    if lower in notes.RULES:
        return [Format.CLAUDE_MD]
    text = source.text(name, LARGEST_JSON)
    if exports.is_journal(text):
        return [Format.JRNL]
    if text.lstrip()[:1] in ("{", "["):
        return _of_json(text)
    if lower.endswith(notes.MARKDOWN):
        if notes.read(source, name).is_own:
            return [Format.MIND]
        return [Format.CLAUDE_MD, Format.OBSIDIAN, Format.BASIC_MEMORY, Format.ADR]
    return []


def _of_json(text: str) -> list[Format]:
    return [Format(word) for word in exports.formats_of(text)]


def _of_database(path: Path) -> list[Format]:
    names = database.table_names(path)
    if {"decisions", "decision_edges"} <= names:
        raise Invalid(
            f"`{path}` is a database of MAMA",
            hint=Hint("it has an importer: ", Command("import mama", str(path))),
        )
    if {"observations", "session_summaries"} <= names:
        return [Format.CLAUDE_MEM]
    return [Format.MCP_MEMORY_SERVICE] if "memories" in names else []


def _of_folder(source: Source) -> list[Format]:
    """Returns the possible formats of a folder or an archive."""
    if _is_of_mind(source):
        return [Format.MIND]
    if names := [name for name in source.files if exports.CONVERSATIONS.search(name)]:
        return _of_json(source.text(names[0], LARGEST_JSON))
    if ".obsidian" in source.hidden:
        return [Format.OBSIDIAN]
    if ".index" in source.hidden:
        return [Format.NB]
    if "MEMORY.md" in source.files:
        return [Format.CLAUDE_MEMORY]
    return _of_markdown(source)


_VERSION = re.compile(r"^format *= *\d+", re.MULTILINE)


def _is_of_mind(source: Source) -> bool:
    """Returns whether mind wrote a folder: `.mind` or a part or a copy of it, or an export.

    It must be known before any other format, whose reader would not keep its memories as they are.
    """
    markdown = source.named(".md")
    if not markdown or source.surroundings.in_store:
        return bool(markdown)
    with suppress(Unreadable, OSError):
        if CONFIG in source.files and _VERSION.search(source.text(CONFIG)):
            return True
    if LISTED not in source.hidden and not {".index", "MEMORY.md"} & {
        *source.hidden,
        *source.files,
    }:
        return False
    read = [notes.read(source, name) for name in markdown[:_SAMPLE]]
    return 2 * sum(note.is_own for note in read) >= len(read)


def _of_markdown(source: Source) -> list[Format]:
    """Returns the possible formats of a folder of notes, by the headers of some of them."""
    markdown = source.named(*notes.MARKDOWN)
    if not markdown:
        return []
    read = [notes.read(source, name) for name in markdown[:_SAMPLE]]
    if any(note.name == "index.md" and "okf_version" in note.header for note in read):
        return [Format.OKF]
    if any(note.is_own for note in read):
        return [Format.MIND]
    if any("permalink" in note.header for note in read):
        return [Format.BASIC_MEMORY]
    if notes.is_bundle(read):
        return [Format.OKF]
    records = [note for note in read if adr.is_record(note)]
    if records and 2 * len(records) >= len(read):
        return [Format.ADR]
    return list(_FOLDERS)
