"""The files of procedures: `.mind/procedures/<name>@<version>.md`."""

import os
from contextlib import suppress
from pathlib import Path

from mimo import disk
from mimo.disk import STORE
from mimo.errors import Conflict, Invalid, NotFound
from mimo.frozen import frozen
from mimo.store import files

FOLDER = f"{STORE}/procedures"
SUFFIX = ".md"
_LARGEST = 1024 * 1024


@frozen
class ProcedureFile:
    """The content of a procedure's file."""

    path: str
    """Relative to the project, with `/`."""
    data: bytes
    problem: str | None = None
    """The reason if it can't be read."""

    @property
    def digest(self) -> str:
        """Returns the digest by which the text is approved."""
        return files.digest(self.data)

    @property
    def stem(self) -> str:
        """Returns `name@version` from the name of the file."""
        return self.path.rpartition("/")[2].removesuffix(SUFFIX)


def path_of(key: str) -> str:
    """Returns the path of the procedure `name@version`."""
    return f"{FOLDER}/{key}{SUFFIX}"


def listed(root: Path) -> list[ProcedureFile]:
    """Returns all procedure files, by name; links and special files have a `problem`."""
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
    result = []
    for name in names:
        with suppress(NotFound):  # removed meanwhile
            result.append(read(root, f"{FOLDER}/{name}"))
    return result


def read(root: Path, path: str) -> ProcedureFile:
    """Returns one file. Raises `NotFound`."""
    try:
        data, _ = disk.look(files.safe_path(root, path), limit=_LARGEST)
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
    """Returns the bytes of a file that the user named. Raises `Invalid` if it can't be read."""
    try:
        return disk.look(path, limit=_LARGEST)[0]
    except OSError as error:
        reason = files.failure("read", path, error).message
        raise Invalid(reason, hint="name a procedure's Markdown file") from None


def write(root: Path, key: str, data: bytes) -> ProcedureFile:
    """Creates the file of `name@version`, unless it exists with the same text.

    Raises `Conflict` if the version exists with another text, and `StorageFailed`.
    """
    path = path_of(key)
    target = files.safe_path(root, path)
    try:
        files.write_new(target, data)
    except Conflict:
        if disk.read(target) != data:
            raise Conflict(
                f"`{path}` already exists with another text",
                hint="edit that file, or give this one a new version",
            ) from None
    return ProcedureFile(path=path, data=data)


def _is_named(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith(".") and name.isprintable()
