"""The configuration files of clients: read, changed and restored without loss.

`$MIND_HOME/clients/` has a copy of each file before mind changed it, a note of the change, and the
folders that were made, so that everything can be restored exactly.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from mimo.data import disk, files
from mimo.data.failures import failure
from mimo.data.state import StateFile
from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.features.clients.edits import Format
from mimo.features.clients.json_file import UNCHANGED
from mimo.frozen import frozen

_FOLDERS = "clients/folders.json"
_FORMATS = {".toml": Format.TOML, ".yaml": Format.YAML, ".js": Format.SCRIPT, ".md": Format.SCRIPT}


@frozen
class FileState:
    """A file as it is now."""

    path: Path
    """The path that was given."""
    real: Path
    """The path behind symbolic links."""
    data: bytes | None
    """None if the file does not exist."""

    @property
    def format(self) -> Format:
        """Returns the format, by the ending of the path."""
        return _FORMATS.get(self.path.suffix, Format.JSON)

    @property
    def text(self) -> str:
        """Returns the text without a byte order mark. Raises `Invalid` if it is not UTF-8."""
        try:
            return (self.data or b"").decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = (self.data or b"").count(b"\n", 0, error.start) + 1
            raise Invalid(f"line {line}: it is not UTF-8", hint=UNCHANGED) from None

    def encoded(self, text: str) -> bytes:
        """Returns a text as bytes, with a byte order mark if the file has one."""
        mark = b"\xef\xbb\xbf" if (self.data or b"").startswith(b"\xef\xbb\xbf") else b""
        return mark + text.encode()


@frozen
class Note:
    """The note about a file that mind changed."""

    clients: tuple[str, ...]
    """The clients that it was changed for."""
    before: str | None
    """Digest of the copy; None if there was no file, empty if the original is unknown."""
    after: str
    """Digest of the file as mind wrote it."""


def look(path: Path, *, within: Path | None) -> FileState:
    """Returns the file at a path, behind any links.

    Raises `StorageFailed` if it can't be read, is not a regular file, or if a link leads out of
    `within`.
    """
    real = Path(os.path.realpath(path))
    if within is not None and not real.is_relative_to(os.path.realpath(within)):
        raise StorageFailed(
            f"`{path}` leads out of the project by a symbolic link, to `{real}`",
            hint="nothing was changed; change that file yourself",
        )
    if path.is_symlink() and not real.exists():
        raise StorageFailed(f"`{path}` is a link to the missing `{real}`", hint="remove it")
    try:
        data = disk.read(real)
    except FileNotFoundError:
        return FileState(path=path, real=real, data=None)
    except OSError as error:
        raise failure("read", path, error) from error
    return FileState(path=path, real=real, data=data)


def change(home: Path, file: FileState, data: bytes | None, *, private: bool) -> None:
    """Writes a file, or removes it if `data` is None; it must be unchanged since it was read.

    The folders that it needed are removed with it, if nothing else is in them. Raises `Conflict` if
    another program changed it meanwhile, and `StorageFailed`.
    """
    old_digest = None if file.data is None else files.digest(file.data)
    if data is None:
        files.remove(file.real, expect=old_digest)
        _remove_folders(home, file.real)
        return
    if old_digest is None:
        _remember_folders(home, file.real)
        files.write_new(file.real, data, mode=0o600 if private else 0o666)
    else:
        files.replace(file.real, data, expect=old_digest)
    if disk.read(file.real) != data:
        raise Conflict(f"`{file.path}` was changed while it was written", hint="check its content")


def _remember_folders(home: Path, path: Path) -> None:
    """Remembers the folders that a file needs and that do not exist yet."""
    if new := [str(folder) for folder in path.parents if not folder.exists()]:
        _LISTS.write(home, _FOLDERS, sorted({*_made_folders(home), *new}))


def _remove_folders(home: Path, path: Path) -> None:
    """Removes the folders above a file that were made for one and are empty, innermost first."""
    registry = _made_folders(home)
    removed = [
        folder for folder in path.parents if str(folder) in registry and files.remove_empty(folder)
    ]
    if left := sorted(registry - set(map(str, removed))):
        _LISTS.write(home, _FOLDERS, left)
    elif registry:
        files.remove(home / _FOLDERS)


def _made_folders(home: Path) -> set[str]:
    """Returns the folders that were made for files; none if the list can't be read."""
    return _LISTS.read(home, _FOLDERS) or set()


def keep(home: Path, file: FileState) -> Path:
    """Copies a file and returns the path of the copy. The same content is kept once."""
    data = file.data or b""
    path = _backup(home, file.path, files.digest(data))
    files.ensure(path, data, mode=0o600)
    return path


def kept(home: Path, path: Path, digest: str) -> bytes | None:
    """Returns the copy of a file with this digest; None if it is missing or changed."""
    with suppress(OSError):
        data = disk.read(_backup(home, path, digest))
        return data if files.digest(data) == digest else None
    return None


def note_of(home: Path, path: Path) -> Note | None:
    """Returns the note about a file; None if there is none that can be read."""
    return _NOTES.read(home, _note(path))


def _noted(data: Any) -> Note:
    return Note(
        clients=tuple(map(str, data["clients"])),
        before=None if data["before"] is None else str(data["before"]),
        after=str(data["after"]),
    )


_NOTES = StateFile(_noted)
_LISTS = StateFile(lambda names: set(map(str, names)))


def write_note(home: Path, path: Path, note: Note | None) -> None:
    """Writes the note about a file; None removes it. Raises `StorageFailed`."""
    if note is None:
        if (target := home / _note(path)).exists():
            files.remove(target)
        return
    fields = {
        "path": str(path),
        "clients": note.clients,
        "before": note.before,
        "after": note.after,
    }
    _NOTES.write(home, _note(path), fields)


def _note(path: Path) -> str:
    return f"clients/{_key(path)}.json"


def _backup(home: Path, path: Path, digest: str) -> Path:
    return home / "clients" / f"{_key(path)}-{digest[:16]}.bak"


def _key(path: Path) -> str:
    return f"{path.name.strip('.')}-{files.digest(os.fsencode(path))[:12]}"
