"""Changing a settings file, in which comments and everything else stay as they are."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from mimo import disk
from mimo.config import MAX_BYTES
from mimo.errors import Invalid
from mimo.mind import Mind
from mimo.settings import Scope, Setting
from mimo.store import files

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def change(mind: Mind, known: Setting, text: str | None, *, user: bool) -> Mind:
    """Writes one setting (None removes it) and returns the memory with the new settings.

    Raises `Invalid` for a value that does not fit, or for a setting of the other file.
    """
    scope = Scope.USER if user or known.scope is Scope.USER else Scope.PROJECT
    if known.scope is Scope.PROJECT and user:
        raise Invalid(f"`{known.key}` is a setting of the project", hint="say it without --user")
    path = mind.home / "config.toml" if scope is Scope.USER else mind.folder / "config.toml"
    value = None if text is None else known.parse(text)
    before = disk.read(path, limit=MAX_BYTES, follow=True) if path.exists() else b""
    document = _parsed(path, before)
    _put(document, known.key.split("."), list(value) if isinstance(value, tuple) else value)
    after = document.as_string().encode()
    if path.exists():
        files.replace(path, after, expect=hashlib.sha256(before).hexdigest())
    else:
        files.write_new(path, after)
    return mind.reopened()


def _parsed(path: Path, data: bytes) -> "TOMLDocument":
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(data.decode())
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise Invalid(
            f"{path} can't be read: {error}", hint="mend the file first; nothing was changed"
        ) from None


def _put(document: "TOMLDocument", keys: list[str], value: object) -> None:
    import tomlkit

    table: object = document
    for key in keys[:-1]:
        if key not in table:  # type: ignore[operator]
            table[key] = tomlkit.table()  # type: ignore[index]
        table = table[key]  # type: ignore[index]
    if value is None:
        table.pop(keys[-1], None)  # type: ignore[attr-defined]
    else:
        table[keys[-1]] = value  # type: ignore[index]
