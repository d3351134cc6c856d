"""Opening the source of an import safely.

Nothing of a source is changed, extracted or run. Symbolic links are not followed, except the one
that the user may have named, and sizes are checked before anything is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mimo.config import FORMAT, MAX_BYTES, format_of
from mimo.data import disk
from mimo.data.disk import STORE
from mimo.data.failures import failure
from mimo.errors import Invalid, LaterFormat, NotFound
from mimo.features.importing.drafts import Source
from mimo.features.importing.surroundings import surroundings
from mimo.memory.codec.document import Unreadable

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


def check_store(source: Source) -> None:
    """Raises `StorageFailed` if a source is in the store of a later version of mind."""
    name = "config.toml"
    data = source.content(name, MAX_BYTES) if name in source.files else b""
    if source.surroundings.in_store and not data:
        places = (place for place in source.path.resolve().parents if place.name == STORE)
        with suppress(OSError):
            data = disk.look(next(places, source.path) / name, limit=MAX_BYTES)[0]
    LaterFormat.check(f"the store of `{source.path}`", format_of(data), FORMAT)
