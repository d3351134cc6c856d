"""State files: one value in a small file of JSON or TOML, with one way to read and to write it.

The class of a file (see ARCHITECTURE.md) determines what its damage means. A file with decisions
of the user, class B, is refused with what to do. A cache, class C, counts as missing, and the next
write makes it again. The same holds for a file that a later version of mind wrote: it has a
`format` above 1.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mimo.data import disk, files
from mimo.data.failures import failure
from mimo.data.loads import loads
from mimo.errors import LaterFormat, MindError, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Generic, TypeVar

    from mimo.data.loads import Syntax

    T = TypeVar("T")
else:
    # Importing `typing` would take a tenth of a hook.
    Generic = type("Generic", (), {"__class_getitem__": classmethod(lambda cls, _: cls)})
    T = None

MISFITS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""The exceptions of using data that have another form."""


class StateFile(Generic[T]):
    """A kind of state file."""

    def __init__(
        self,
        decode: Callable[[Any], T],
        *,
        hint: str = "",
        limit: int = disk.STATE_BYTES,
        syntax: Syntax = "json",
        error: type[MindError] = StorageFailed,
    ) -> None:
        """Takes the function that makes the value from the data in the file.

        It raises one of `MISFITS` for other data than mind writes. `hint` states what to do with a
        damaged file; without one, the file is a cache. `limit` is the limit of its size in bytes,
        and `error` the error for a damaged file.
        """
        self._decode, self._hint, self._most = decode, hint, limit
        self._syntax, self._error = syntax, error

    def read(self, folder: Path, name: str) -> T | None:
        """Returns the value in a file; None if it is missing.

        `name` is the path below the folder, in which no symbolic link is followed. For a cache, any
        failure counts as a missing file. Else raises `StorageFailed` for a file that can't be read
        or is of a later version, and the kind's error for a damaged one.
        """
        path = folder / name
        try:
            data = disk.read(files.safe_path(folder, name), limit=self._most)
            # A path in it may not be UTF-8.
            value = loads(data.decode("utf-8", "surrogateescape"), self._syntax)
            check_format(value, f"`{path}`")
            return self._decode(value)
        except FileNotFoundError:
            return None
        except MindError:
            if self._hint:
                raise
        except OSError as error:
            if self._hint:
                raise failure("read", path, error) from error
        except MISFITS as error:
            if self._hint:
                reason = f": {error}" if isinstance(error, ValueError | TypeError) else ""
                raise self._error(f"`{path}` is damaged{reason}", hint=self._hint) from None
        return None

    def write(self, folder: Path, name: str, value: Any) -> None:
        """Replaces a file by one with a value as JSON, which only the user can read.

        Raises `StorageFailed`.
        """
        import json

        text = json.dumps(value, indent=1 if self._hint else None)
        files.replace(files.safe_path(folder, name), f"{text}\n".encode(), mode=0o600)


def check_format(value: object, subject: str) -> None:
    """Raises `StorageFailed` if `value` is an object with a later `format` than this version's."""
    if isinstance(value, dict):
        LaterFormat.check(subject, value.get("format"))
