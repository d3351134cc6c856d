"""Settings as they are read: `mimo/settings.py` declares them.

Defaults, then the user's `config.toml` in `$MIND_HOME`, then the project's in `.mind/`. The
project's file comes with a clone, so it is data only: a setting that could reach outside the
project or run anything is taken from the user's file alone.
"""

from collections.abc import Mapping
from pathlib import Path
from stat import S_ISREG
from typing import Any

from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.settings import SETTINGS, Scope, setting

FORMAT = 1
"""The version of the store's layout, `format` in `.mind/config.toml`."""


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
            problem = _take(key, value, scope, values, origins)
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

    A link in the project's place could show the names in somebody's other files.
    """
    if path is None:
        return {}
    try:
        if not S_ISREG(path.lstat().st_mode) and scope is Scope.PROJECT:
            warnings.append(f"{path}: not a regular file, so it is not read")
            return {}
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        warnings.append(f"{path}: {error.strerror}")
        return {}
    if _sets_nothing(data):
        return {"format": FORMAT}
    import tomllib

    try:
        return _flat(tomllib.loads(data.decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        warnings.append(f"{path}: {error}")
        return {}


def _sets_nothing(data: bytes) -> bool:
    """Returns whether a file is as `mind init` leaves it, which spares loading the parser."""
    lines = (line for line in data.splitlines() if line and not line.startswith(b"#"))
    return data.isascii() and list(lines) == [b"format = %d" % FORMAT]


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found
