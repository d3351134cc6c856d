"""Writing an export to a file, a zip archive or a folder.

A file gets its name once it is complete. A folder has a list of its files, by which a later export
replaces these files and no others, and completes one that was killed.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from mimo.api import LISTED, Conflict, Invalid, MindError, NamedTuple, StateFile, disk, files
from mimo.extensions.exchange.documents import File

_AT_ONCE = 500
_MOST_LISTED = 100_000_000
"""The longest list that is read, in bytes."""


class Size(NamedTuple):
    """The size of what was written."""

    files: int
    bytes: int


def place(name: str) -> Path:
    """Returns the path that an export is written to.

    Raises `Invalid` if its folder is missing, and as `files.check_output` does.
    """
    path = Path(os.path.abspath(disk.expanded(name)))  # noqa: PTH100 - keeps links
    files.check_output(path)
    if not path.parent.is_dir():
        raise Invalid(f"`{path.parent}` is not a folder", hint="make the folder first")
    return path


def check_free(path: Path, *, force: bool, folder: bool) -> None:
    """Raises `Conflict` for something in the place of an export, unless it may be replaced."""
    if not os.path.lexists(path):
        return
    if not folder:
        if path.is_dir() and not path.is_symlink():
            raise Invalid(f"`{path}` is a folder", hint="name a file, such as memories.jsonl")
        if not force:
            raise Conflict(f"`{path}` exists", hint="choose another name, or --force")
        return
    if path.is_symlink() or not path.is_dir():
        raise Conflict(f"`{path}` is not a folder", hint="choose another name")
    if not any(path.iterdir()):
        return
    if not (path / LISTED).is_file():
        raise Conflict(
            f"`{path}` has files, and none that `mind export` wrote",
            hint="name a folder that is empty or does not exist",
        )
    if not force:
        raise Conflict(f"`{path}` has an earlier export", hint="--force replaces its files")


def to_file(path: Path, parts: Iterable[bytes], *, force: bool, mode: int) -> Size:
    """Writes a file. Raises `Conflict` and `StorageFailed`; the name then has what it had."""
    size = 0
    with files.written(path, over=force, mode=mode) as file:
        for part in parts:
            size += file.write(part)
    return Size(1, size)


def to_zip(path: Path, contents: Iterable[File], *, force: bool, mode: int) -> Size:
    """Writes a zip archive, the same bytes for the same files; raises as `to_file` does."""
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    number = 0
    with files.written(path, over=force, mode=mode) as file:
        with ZipFile(file, "w") as archive:
            for name, data in contents:
                number += 1
                entry = ZipInfo(name)
                entry.compress_type = ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, data)
        size = file.tell()
    return Size(number, size)


def to_folder(path: Path, contents: Iterable[File], *, is_private: bool) -> Size:
    """Writes a folder, which may be empty, or replaces the files of an earlier export in it.

    If it fails, a new folder is removed, and an empty one is empty again. Raises `Conflict` for a
    file in the place of a new one that no export wrote, and `StorageFailed`.
    """
    is_new = not path.is_dir()
    with files.reported("write", path):
        if is_new:
            path.mkdir(mode=0o700 if is_private else 0o777)
        elif is_private:
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o077)
        is_empty = next(path.iterdir(), None) is None
    is_claimed = False
    try:
        if is_empty:  # Another export may have begun meanwhile, whose list is there.
            files.write_new(path / LISTED, _listing(()))
            is_claimed = True
        return _write(path, contents)
    except BaseException:
        if is_claimed:
            _empty(path)
        if is_new:
            with suppress(OSError):
                path.rmdir()
        raise


def _write(path: Path, contents: Iterable[File]) -> Size:
    """Writes files in portions, and removes those of an earlier export that are left over."""
    listed, names = _listed(path), dict[str, None]()
    total = 0
    for some in _portions(contents):
        existing = {file.name for file in some if os.path.lexists(files.safe_path(path, file.name))}
        if foreign := existing - listed:
            raise Conflict(
                f"`{path / min(foreign)}` was not written by `mind export`",
                hint="move it, or name another folder",
            )
        # Listed before they are written, so that an interrupted export can be repeated.
        listed |= {file.name for file in some}
        files.replace(path / LISTED, _listing(listed))
        files.write_all_new(
            {path / file.name: file.data for file in some if file.name not in existing}
        )
        for file in some:
            if file.name in existing:
                files.replace(path / file.name, file.data, durable=False)
            names[file.name] = None
            total += len(file.data)
    for name in sorted(listed - names.keys()):
        target = files.safe_path(path, name)
        if target.exists():
            files.remove(target)
    files.replace(path / LISTED, _listing(names))
    return Size(len(names), total)


def _empty(path: Path) -> None:
    """Removes the listed files of a folder, their folders that are empty then, and the list."""
    with suppress(MindError, OSError):
        names = _listed(path)
        for name in names:
            files.safe_path(path, name).unlink(missing_ok=True)
        above = {place for name in names for place in PurePosixPath(name).parents if place.name}
        for folder in sorted(above, key=lambda place: -len(place.parts)):
            with suppress(OSError):
                (path / folder).rmdir()
        (path / LISTED).unlink(missing_ok=True)


def _portions(contents: Iterable[File]) -> Iterator[list[File]]:
    iterator = iter(contents)
    while some := list(islice(iterator, _AT_ONCE)):
        yield some


def _listing(names: Iterable[str]) -> bytes:
    return json.dumps({"files": sorted(names)}, indent=1).encode() + b"\n"


def _listed(path: Path) -> frozenset[str]:
    """Returns the files of an earlier export. Raises `StorageFailed` for a damaged list."""
    return _LISTINGS.read(path, LISTED) or frozenset()


def _names(data: Any) -> frozenset[str]:
    if not all(name.endswith(".md") for name in data["files"]):
        raise ValueError("it lists other files than those of memories")
    return frozenset(data["files"])


_LISTINGS = StateFile(_names, hint="name another folder", limit=_MOST_LISTED)
