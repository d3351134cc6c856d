"""The files of procedures: `.mind/procedures/<name>@<version>.md`."""

import os
from contextlib import suppress
from pathlib import Path

from mimo.disk import STORE
from mimo.errors import Conflict, Invalid, NotFound
from mimo.frozen import frozen
from mimo.store import files

FOLDER = f"{STORE}/procedures"
SUFFIX = ".md"
_LARGEST = 1024 * 1024


@frozen
class ProcedureFile:
    """A file of a procedure, as it was read."""

    path: str
    """Relative to the project, with `/`."""
    data: bytes
    problem: str | None = None
    """Why it could not be read."""

    @property
    def digest(self) -> str:
        """Returns what the text is approved by."""
        return files.digest(self.data)

    @property
    def stem(self) -> str:
        """Returns what the file's name says: `name@version`."""
        return self.path.rpartition("/")[2].removesuffix(SUFFIX)


def path_of(key: str) -> str:
    """Returns the path of the procedure `name@version`."""
    return f"{FOLDER}/{key}{SUFFIX}"


def listed(root: Path) -> list[ProcedureFile]:
    """Returns every procedure file, by name; links and special files come with their problem."""
    folder = root / FOLDER
    if folder.is_symlink() or (root / STORE).is_symlink():
        return []
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _is_named(entry.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.failure("list", folder, error) from error
    found = []
    for name in names:
        with suppress(NotFound):  # gone meanwhile
            found.append(read(root, f"{FOLDER}/{name}"))
    return found


def read(root: Path, path: str) -> ProcedureFile:
    """Returns one file. Raises `NotFound` where there is none."""
    try:
        data, _ = files.look(files.safe_path(root, path), limit=_LARGEST)
    except FileNotFoundError:
        raise NotFound(f"there is no `{path}`", hint="see `mind procedure list`") from None
    except OSError as error:
        return ProcedureFile(
            path=path, data=b"", problem=files.failure("read", root / path, error).message
        )
    if len(data) > _LARGEST:
        return ProcedureFile(path=path, data=b"", problem=f"larger than {_LARGEST:,} bytes")
    return ProcedureFile(path=path, data=data)


def given(path: Path) -> bytes:
    """Returns the bytes of a file that a person named. Raises `Invalid` where it can't be read."""
    try:
        return files.look(path, limit=_LARGEST)[0]
    except OSError as error:
        reason = files.failure("read", path, error).message
        raise Invalid(reason, hint="name a procedure's Markdown file") from None


def write(root: Path, key: str, data: bytes) -> ProcedureFile:
    """Makes the file of `name@version`; the same text again changes nothing.

    Raises `Conflict` where another text has that version, and `StorageFailed`.
    """
    path = path_of(key)
    target = files.safe_path(root, path)
    try:
        files.write_new(target, data)
    except Conflict:
        if files.read(target) != data:
            raise Conflict(
                f"`{path}` is there already with another text",
                hint="edit that file, or give this one a new version",
            ) from None
    return ProcedureFile(path=path, data=data)


def _is_named(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith(".") and name.isprintable()
