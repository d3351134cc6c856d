"""Settings as they are read: `mimo/settings.py` declares them.

Defaults, then the user's `config.toml` in `$MIND_HOME`, then the project's in `.mind/`. The
project's file comes with a clone, so it is data only: a setting that could reach outside the
project or run anything is taken from the user's file alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mimo import disk
from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.settings import SETTINGS, Scope, setting

FORMAT = 1
"""The version of the store's layout, `format` in `.mind/config.toml`."""


MAX_BYTES = 1_000_000
"""Maximum size of a settings file."""

_DEEPEST = 8
"""Maximum depth of tables; settings need two."""


@frozen
class Config:
    """The settings in force, and whose file each comes from."""

    values: Mapping[str, Any]
    origins: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    @property
    def format(self) -> int:
        """Returns the version of the store's layout, as the project's file has it."""
        return int(self.values.get("format", FORMAT))

    def __getitem__(self, key: str) -> Any:
        """Returns the value of a known setting."""
        return self.values[key]


def load(*, user: Path, project: Path | None) -> Config:
    """Returns the settings of the two files, either of which may be missing.

    A faulty value or an unknown key never stops mind: it is passed over and told in `warnings`.
    """
    values = {s.key: s.default for s in SETTINGS}
    origins = dict.fromkeys(values, "default")
    warnings: list[str] = []
    for path, scope in ((user, Scope.USER), (project, Scope.PROJECT)):
        for key, value in _read(path, scope, warnings).items():
            try:
                problem = _take(key, value, scope, values, origins)
            except (ValueError, OverflowError, RecursionError) as error:
                problem = f"`{key[:80]}` can't be used: {error}"
            if problem:
                warnings.append(f"{path}: {problem}")
    return Config(values=values, origins=origins, warnings=tuple(warnings))


def _take(
    key: str, value: Any, scope: Scope, values: dict[str, Any], origins: dict[str, str]
) -> str | None:
    """Sets one key, or returns why it is passed over."""
    if key == "format" and scope is Scope.PROJECT:
        if type(value) is not int or value < 1:
            return f"`format` is a number from 1 on, not `{value}`"
        values["format"] = value
        return f"format {value} is newer than this mind understands" if value > FORMAT else None
    try:
        known = setting(key)
        if known.scope not in (Scope.ANY, scope):
            return f"`{key}` is taken from the {known.scope}'s config only"
        values[key] = known.check(value)
    except Invalid as error:
        return error.message
    origins[key] = scope.value
    return None


def _read(path: Path | None, scope: Scope, warnings: list[str]) -> dict[str, Any]:
    """Returns the file's settings with dotted keys; a file that can't be read gives a warning.

    Links are followed for the user's file alone: in a project, one could show names from another
    user's files.
    """
    if path is None:
        return {}
    try:
        data = disk.read(path, limit=MAX_BYTES, follow=scope is Scope.USER)
    except FileNotFoundError:
        return {}
    except OSError as error:
        linked = path.is_symlink() and scope is Scope.PROJECT
        reason = "not a regular file" if linked else error.strerror
        warnings.append(f"{path}: {reason}, so it is not read")
        return {}
    if _sets_nothing(data):
        return {"format": FORMAT}
    import tomllib

    try:
        return _flat(tomllib.loads(data.decode()))
    except RecursionError:
        warnings.append(f"{path}: nested too deeply, so it is not read")
    except ValueError as error:
        warnings.append(f"{path}: {error}, so it is not read")
    return {}


def _sets_nothing(data: bytes) -> bool:
    """Returns whether a file is as `mind init` leaves it, which spares loading the parser."""
    lines = (line for line in data.splitlines() if line and not line.startswith(b"#"))
    return data.isascii() and list(lines) == [b"format = %d" % FORMAT]


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns a table's values by dotted keys. Raises `RecursionError` if it is nested deeply."""
    if prefix.count(".") > _DEEPEST:
        raise RecursionError
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found
