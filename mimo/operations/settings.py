"""Changing one setting in a file that people write, too."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from mimo.call import Call
from mimo.config import FORMAT, MAX_BYTES, Scope, Setting
from mimo.data import disk, files
from mimo.data.loads import DataError, bounded
from mimo.data.locks import lock
from mimo.errors import Hint, Invalid, LaterFormat, Option
from mimo.operations.saving import approving
from mimo.project.projects import check_reach, registering
from mimo.project.trust import Trust


def change(call: Call, target: Setting, text: str | None, *, user: bool) -> Call:
    """Writes one setting (None removes it) and returns the memory with the new settings.

    Comments and other settings are not changed. Raises `Invalid` for a wrong value, a setting of
    the other file, or a file that can't hold it, and `StorageFailed`.
    """
    scope = Scope.USER if user or target.scope is Scope.USER else Scope.PROJECT
    if target.scope is Scope.PROJECT and user:
        raise Invalid(
            f"`{target.key}` is a setting of the project", hint=Hint("omit ", Option(user=True))
        )
    path = (call.mind.home if scope is Scope.USER else call.mind.folder) / "config.toml"
    if scope is Scope.PROJECT:
        check_reach(call.mind.project)
        # Not `mind.trust`, which would keep the present settings.
        Trust(call.mind.home, call.mind.project.root).check_format()
    value = None if text is None else target.parse(text)
    shared = lock(files.local(call.mind.project.root, "lock")) if scope is Scope.PROJECT else None
    # The other settings of another author, which wait for approval, are not approved by this one.
    is_own = scope is Scope.PROJECT and not call.mind.config.waiting
    with shared or registering(call.mind.home), approving(call, enabled=is_own):
        is_changed = _written(path, target.key, value, scope)
    return call.on(call.mind.reopened()) if is_changed else call


def _written(path: Path, setting: str, value: Any, scope: Scope) -> bool:
    """Writes a setting as `change` does, whose lock is held; returns whether the file changed."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    old_data = disk.read(path, follow=True) if path.exists() else b""
    try:
        document = tomlkit.parse(bounded(old_data, "toml", limit=MAX_BYTES))
    except (TOMLKitError, DataError) as error:
        raise Invalid(
            f"{path} can't be read: {error}", hint="repair the file first; nothing was changed"
        ) from None
    subject = "this memory" if scope is Scope.PROJECT else f"`{path}`"
    LaterFormat.check(subject, document.unwrap().get("format"), FORMAT)
    table: Any = document
    *tables, key = setting.split(".")
    for name in tables:
        table = table.get(name, {}) if value is None else table.setdefault(name, tomlkit.table())
        if not isinstance(table, MutableMapping):
            raise Invalid(
                f"`{name}` in {path} is not a table",
                hint=f"make it `[{name}]` or remove it; nothing was changed",
            )
    if value is None:
        if table.pop(key, None) is None:
            return False
    else:
        table[key] = list(value) if isinstance(value, tuple) else value
    mark = BOM_UTF8 if old_data.startswith(BOM_UTF8) else b""
    after = mark + document.as_string().encode()
    if len(after) > MAX_BYTES:
        raise Invalid(
            f"{path} would be larger than {MAX_BYTES:,} bytes", hint="remove comments first"
        )
    if path.exists():
        files.replace(path, after, expect=files.digest(old_data))
    else:
        files.write_new(path, after)
    return True
