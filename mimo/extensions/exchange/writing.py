"""Writing an export to a file, a zip archive or a folder.

A file and a new folder get their names once they are complete. A folder has a list of its files, by
which a later export replaces these files and no others.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from mimo.api import LISTED, Conflict, Invalid, NamedTuple, StateFile, disk, files
from mimo.extensions.exchange.documents import File

_PARTIAL = ".mind-export-"
"""The beginning of the name of a folder that is not complete."""
_PARTIAL_NAME = re.compile(rf"{re.escape(_PARTIAL)}\d+-[0-9a-f]{{8}}")

_STALE_SECONDS = 86_400
"""The age at which a folder that is not complete is from an export that was killed."""

_AT_ONCE = 500
_MOST_LISTED = 100_000_000
"""The longest list that is read, in bytes."""


class Size(NamedTuple):
    """The size of what was written."""

    files: int
    bytes: int


def place(name: str) -> Path:
    """Returns the path that an export is written to.

    Raises `Invalid` if its folder is missing, or is a memory: `mind` would read the export there.
    """
    path = Path(os.path.abspath(disk.expanded(name)))  # noqa: PTH100 - keeps links
    if disk.is_in_store(path):
        raise Invalid(
            f"`{path}` is in a folder of mind, which would read it as memories",
            hint="write it to another folder",
        )
    if not path.parent.is_dir():
        raise Invalid(f"`{path.parent}` is not a folder", hint="make the folder first")
    return path


def check_free(path: Path, *, force: bool, folder: bool) -> None:
    """Raises `Conflict` for something in the place of an export, unless it may be replaced."""
    if not os.path.lexists(path):
        return
    files.check_regular(path)
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


def to_folder(path: Path, contents: Iterable[File], *, mode: int) -> Size:
    """Writes a folder, or replaces the files of an earlier export in it.

    Raises `Conflict` for a file in the place of a new one that no export wrote, and
    `StorageFailed`.
    """
    if path.is_dir() and any(path.iterdir()):
        return _renew(path, contents, mode=mode)
    _clean(path.parent)
    temporary = path.with_name(f"{_PARTIAL}{os.getpid()}-{os.urandom(4).hex()}")
    with files.reported("write", path):
        temporary.mkdir(mode=mode)
    try:
        names: list[str] = []
        total = 0
        for some in _portions(contents):
            files.write_all_new({temporary / file.name: file.data for file in some})
            names += [file.name for file in some]
            total += sum(len(file.data) for file in some)
        files.write_new(temporary / LISTED, _listing(names))
        files.rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            shutil.rmtree(temporary)
        raise
    return Size(len(names), total)


def _clean(parent: Path) -> None:
    """Removes what killed exports left in a folder; new ones may still be in use."""
    old = time.time() - _STALE_SECONDS
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            is_partial = _PARTIAL_NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            if is_partial and entry.stat(follow_symlinks=False).st_mtime < old:
                shutil.rmtree(entry.path, ignore_errors=True)


def _renew(path: Path, contents: Iterable[File], *, mode: int) -> Size:
    """Replaces the files of an earlier export one by one, and removes those that are left over."""
    with files.reported("write", path):
        path.chmod(path.stat().st_mode & mode)
    listed, now = _listed(path), dict[str, None]()
    total = 0
    for some in _portions(contents):
        for file in some:
            target = files.safe_path(path, file.name)
            if file.name not in listed and os.path.lexists(target):
                raise Conflict(
                    f"`{target}` was not written by `mind export`",
                    hint="move it, or name another folder",
                )
        # Listed before they are written, so that an interrupted export can be repeated.
        listed |= {file.name for file in some}
        files.replace(path / LISTED, _listing(listed))
        for file in some:
            files.replace(path / file.name, file.data, durable=False)
            now[file.name] = None
            total += len(file.data)
    for name in sorted(listed - now.keys()):
        target = files.safe_path(path, name)
        if target.exists():
            files.remove(target)
    files.replace(path / LISTED, _listing(now))
    return Size(len(now), total)


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
