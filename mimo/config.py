"""Settings: what can be set, where, and how they are read.

Defaults, then the user's `config.toml` in `$MIND_HOME`, then the project's in `.mind/`. The
project's file comes with a clone, so it is data only: a setting that could reach outside the
project or run anything is taken from the user's file alone.
"""

from collections.abc import Mapping
from enum import StrEnum
from math import isfinite
from pathlib import Path
from stat import S_ISREG
from typing import Any

from mimo.errors import Invalid
from mimo.frozen import frozen

FORMAT = 1
"""The version of the store's layout, `format` in `.mind/config.toml`."""


class Scope(StrEnum):
    """Whose file a setting is taken from."""

    PROJECT = "project"
    USER = "user"
    ANY = "any"


@frozen
class Setting:
    """One setting: its dotted key, default, whose file may hold it, and what it is for."""

    key: str
    default: Any
    scope: Scope
    help: str
    choices: tuple[str, ...] = ()
    lowest: float | None = None
    highest: float | None = None

    def check(self, value: Any) -> Any:
        """Returns `value` in the setting's type; raises `Invalid` where it does not fit."""
        if isinstance(self.default, tuple):
            return self._strings(value)
        if isinstance(self.default, float) and type(value) is int:
            value = float(value)
        if type(value) is not type(self.default):
            raise self._wrong(value, f"must be a {type(self.default).__name__}")
        if isinstance(value, float) and not isfinite(value):
            raise self._wrong(value, "must be a finite number")
        if self.choices and value not in self.choices:
            raise self._wrong(value, f"must be one of {', '.join(self.choices)}")
        too_low = self.lowest is not None and value < self.lowest
        if too_low or (self.highest is not None and value > self.highest):
            raise self._wrong(value, f"must lie between {self.lowest} and {self.highest}")
        return value

    def parse(self, text: str) -> Any:
        """Returns the value that `text`, given on a command line, stands for."""
        if isinstance(self.default, tuple):
            return tuple(part.strip() for part in text.split(",") if part.strip())
        if isinstance(self.default, str):
            return self.check(text)
        try:
            return self.check(type(self.default)(text))
        except ValueError:
            raise self._wrong(text, f"must be a {type(self.default).__name__}") from None

    def _strings(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise self._wrong(value, "must be a list of strings")
        return tuple(value)

    def _wrong(self, value: Any, must: str) -> Invalid:
        return Invalid(
            f"setting `{self.key}` {must}, not `{value}`",
            hint=f"{self.help}; see `mind config`",
            details={"setting": self.key},
        )


SETTINGS: tuple[Setting, ...] = (
    Setting(
        key="include",
        default=(),
        scope=Scope.PROJECT,
        help="Markdown elsewhere in the project that counts as memories, as globs",
    ),
    Setting(
        key="comments",
        default=(),
        scope=Scope.PROJECT,
        help="Code whose comments `MEMORY: …` count as memories, as globs",
    ),
    Setting(
        key="commits",
        default=500,
        scope=Scope.PROJECT,
        help="In how many of the last commits `decided:`, `problem:`, `learned:`, `fixed:` count",
        lowest=0,
        highest=10_000,
    ),
    Setting(
        key="decay.rate",
        default=0.1,
        scope=Scope.ANY,
        help="How fast memories fade, a day",
        lowest=0,
        highest=1,
    ),
    Setting(
        key="decay.floor",
        default=0.05,
        scope=Scope.ANY,
        help="The decay score below which a memory counts as forgotten",
        lowest=0.001,
        highest=1,
    ),
    Setting(
        key="ingest.max_bytes",
        default=10 * 1024 * 1024,
        scope=Scope.ANY,
        help="Largest file that is ingested, in bytes",
        lowest=1,
        highest=100_000_000,
    ),
    Setting(
        key="ingest.max_chunks",
        default=1_000,
        scope=Scope.ANY,
        help="Most chunks that one file may fall into",
        lowest=1,
        highest=100_000,
    ),
    Setting(
        key="values.consistency",
        default="READ_YOUR_WRITES",
        scope=Scope.ANY,
        help="What an answer about values is sure to hold where nobody says",
        choices=("EVENTUAL", "READ_YOUR_WRITES", "STRONG"),
    ),
    Setting(
        key="embedding.model",
        default="",
        scope=Scope.USER,
        help="Folder of a model2vec model to use instead of the built-in one",
    ),
    Setting(
        key="daemon.inactivity_minutes",
        default=30,
        scope=Scope.USER,
        help="So long without activity, and a session counts as ended",
        lowest=1,
        highest=1440,
    ),
    Setting(
        key="daemon.check_seconds",
        default=60,
        scope=Scope.USER,
        help="How often the daemon looks at what no change of a file tells",
        lowest=1,
        highest=3600,
    ),
    Setting(
        key="context.files",
        default=("CLAUDE.md",),
        scope=Scope.ANY,
        help="Files of the project that carry the block of notes, such as CLAUDE.md or AGENTS.md",
    ),
    Setting(
        key="context.budget",
        default=6_000,
        scope=Scope.ANY,
        help="Most characters of notes in that block, and at the start of a session",
        lowest=500,
        highest=9_000,
    ),
    Setting(
        key="context.daemon",
        default="on",
        scope=Scope.ANY,
        help="Whether the daemon writes the block, into files that git does not track",
        choices=("on", "off"),
    ),
    Setting(
        key="hook.context",
        default="on",
        scope=Scope.ANY,
        help="Whether `mind hook` puts notes before agents",
        choices=("on", "off"),
    ),
    Setting(
        key="hook.edges",
        default="on",
        scope=Scope.ANY,
        help="Whether `mind hook` checks what a tool writes for known edges",
        choices=("on", "off"),
    ),
    Setting(
        key="hook.summaries",
        default="on",
        scope=Scope.ANY,
        help="Whether `mind hook` keeps the summaries of sessions as private memories",
        choices=("on", "off"),
    ),
    Setting(
        key="mcp.toolsets",
        default=(),
        scope=Scope.USER,
        help="Which groups of tools the MCP server lists",
    ),
    Setting(
        key="mcp.tool_names",
        default="underscore",
        scope=Scope.USER,
        help="How the MCP server spells the names of tools",
        choices=("underscore", "slash", "dot"),
    ),
    Setting(
        key="mcp.exposure",
        default="auto",
        scope=Scope.USER,
        help="Whether the MCP server narrows its list to what a prompt asks for",
        choices=("auto", "static", "dynamic"),
    ),
    Setting(
        key="procedures.http_hosts",
        default=(),
        scope=Scope.USER,
        help="Hosts that procedures may send HTTP requests to, such as api.example.com",
    ),
    Setting(
        key="procedures.env",
        default=(),
        scope=Scope.USER,
        help="Environment variables that procedures and the programs they run may see",
    ),
)


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


def setting(key: str) -> Setting:
    """Returns the setting of that name; raises `Invalid` with the near ones where none has it."""
    for known in SETTINGS:
        if known.key == key:
            return known
    names = ", ".join(s.key for s in SETTINGS)
    raise Invalid(f"`{key}` is not a setting", hint=f"settings are {names}")


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
