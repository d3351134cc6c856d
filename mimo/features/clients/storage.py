"""Other programs' configuration files: read and changed so that nothing of theirs is lost.

`$MIND_HOME/clients/` keeps a copy of each file as it was before mind changed it, and notes what was
put into it, so that it can be put back exactly.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.frozen import frozen
from mimo.store import files

_MOST_BYTES = 64 * 1024 * 1024


@frozen
class Found:
    """A file as it is now."""

    path: Path
    """As it is named."""
    real: Path
    """Where it is, behind the links that lead to it."""
    data: bytes | None
    """None where there is no such file."""

    @property
    def text(self) -> str:
        """Returns its text without a byte order mark. Raises `Invalid` where it is not UTF-8."""
        try:
            return (self.data or b"").decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = (self.data or b"").count(b"\n", 0, error.start) + 1
            raise Invalid(
                f"line {line}: it is not UTF-8", hint="mend the file first; nothing was changed"
            ) from None

    def encoded(self, text: str) -> bytes:
        """Returns a text as this file would hold it."""
        mark = b"\xef\xbb\xbf" if (self.data or b"").startswith(b"\xef\xbb\xbf") else b""
        return mark + text.encode()


@frozen
class Note:
    """What is kept about a file that mind changed."""

    clients: tuple[str, ...]
    """For whom."""
    before: str | None
    """Digest of the copy of it as it was; None where it was not there, empty where not known."""
    after: str
    """Its digest as mind left it."""
    made: tuple[tuple[str, ...], ...]
    """What was made to hold the entries."""


def look(path: Path, *, within: Path | None) -> Found:
    """Returns the file at a path, behind any links.

    Raises `StorageFailed` where it can't be read, is no regular file, or where a link leads out of
    `within`.
    """
    real = Path(os.path.realpath(path))
    if within is not None and not real.is_relative_to(os.path.realpath(within)):
        raise StorageFailed(
            f"`{path}` leads out of the project by a symbolic link, to `{real}`",
            hint="nothing was changed; change that file yourself",
        )
    if path.is_symlink() and not real.exists():
        raise StorageFailed(f"`{path}` is a link to `{real}`, which is not there", hint="remove it")
    try:
        data, _ = files.look(real, limit=_MOST_BYTES)
    except FileNotFoundError:
        return Found(path=path, real=real, data=None)
    except OSError as error:
        raise files.failure("read", path, error) from error
    if len(data) > _MOST_BYTES:
        raise StorageFailed(
            f"`{path}` has more than {_MOST_BYTES:,} bytes", hint="is it the right file?"
        )
    return Found(path=path, real=real, data=data)


def change(found: Found, data: bytes, *, private: bool) -> None:
    """Puts new content into a file, which must be as it was found, and looks at it again.

    Raises `Conflict` where somebody changed it meanwhile, and `StorageFailed`.
    """
    if found.data is None:
        files.write_new(found.real, data, mode=0o600 if private else 0o666)
    else:
        files.replace(found.real, data, expect=files.digest(found.data))
    if files.read(found.real) != data:
        raise Conflict(f"`{found.path}` was changed as it was written", hint="look at it")


def remove(found: Found) -> None:
    """Removes a file, which must be as it was found. Raises `Conflict` and `StorageFailed`."""
    files.remove(found.real, expect=files.digest(found.data or b""))


def keep(home: Path, found: Found) -> Path:
    """Returns a copy of a file as it is. The same content is kept once."""
    data = found.data or b""
    path = _backup(home, found.path, files.digest(data))
    with suppress(Conflict):
        files.write_new(path, data, mode=0o600)
    return path


def kept(home: Path, path: Path, digest: str) -> bytes | None:
    """Returns the copy of a file that has this digest; None where it is gone or was changed."""
    with suppress(OSError):
        data = files.read(_backup(home, path, digest))
        return data if files.digest(data) == digest else None
    return None


def note_of(home: Path, path: Path) -> Note | None:
    """Returns what is noted of a file; None where nothing is, or it can't be read."""
    try:
        raw = json.loads(files.read(_note(home, path)))
        return Note(
            clients=tuple(map(str, raw["clients"])),
            before=None if raw["before"] is None else str(raw["before"]),
            after=str(raw["after"]),
            made=tuple(tuple(map(str, one)) for one in raw["made"]),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def write_note(home: Path, path: Path, note: Note | None) -> None:
    """Notes what was done to a file; None forgets it. Raises `StorageFailed`."""
    target = _note(home, path)
    if note is None:
        if target.exists():
            files.remove(target)
        return
    told: Mapping[str, Any] = {
        "path": str(path),
        "clients": list(note.clients),
        "before": note.before,
        "after": note.after,
        "made": [list(one) for one in note.made],
    }
    files.replace(target, json.dumps(told, indent=1).encode() + b"\n", mode=0o600)


def _note(home: Path, path: Path) -> Path:
    return home / "clients" / f"{_key(path)}.json"


def _backup(home: Path, path: Path, digest: str) -> Path:
    return home / "clients" / f"{_key(path)}-{digest[:16]}.bak"


def _key(path: Path) -> str:
    return f"{path.name.strip('.')}-{files.digest(os.fsencode(path))[:12]}"
