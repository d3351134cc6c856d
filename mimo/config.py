"""The settings: their declarations, and reading them.

Defaults are overridden by the user's `config.toml` in `$MIND_HOME`, and that by the project's in
`.mind/`. The project's file comes with a clone, so a setting that could run a program or reach
outside the project is read from the user's file only, and a change of the project's file applies
only as far as the user approved it, or as its `Unapproved` permits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import Any

from mimo.data import disk
from mimo.data.loads import DataError, loads
from mimo.errors import Command, Hint, Invalid, LaterFormat
from mimo.frozen import NamedTuple, frozen

ZONE = "time.zone"

FORMAT = 1
"""The version of the store's layout, `format` in `.mind/config.toml`."""

MAX_BYTES = 64 * 1024
"""Maximum size of a settings file."""
_MOST_ITEMS = 200
"""Maximum length of a list in a project's settings, each glob of which is compared with files."""

_DEEPEST = 16
"""Maximum depth of tables; settings need two."""

_UNREAD = ", so it is not read; until that is corrected, settings that restrict are strictest"
_UNREAD_CHANGE = ", so it is not read; until that is corrected, the approved settings apply"

_TYPES = {bool: "true or false", float: "a number", int: "a whole number", str: "a text"}
_ON_OFF = ("on", "off")
_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
"""Words for a truth value on the command line; a settings file has `true` and `false` only."""


class Scope(StrEnum):
    """The file that a setting is read from."""

    PROJECT = "project"
    USER = "user"
    ANY = "any"


PROJECT, USER, ANY = Scope


class Unapproved(StrEnum):
    """The effect of a value in the project's file that the user has not approved."""

    WAITS = "waits"
    """None: it could widen what is read, approved or run, or hide a memory or a warning."""
    NARROWS = "narrows"
    """It can only narrow the approved value: the lower number counts, or what both lists have."""
    APPLIES = "applies"
    """It applies: it changes only how an answer looks."""


class Setting(NamedTuple):
    """The declaration of a setting. The type of the default is the type of its values."""

    key: str
    default: Any
    scope: Scope
    help: str
    allowed: tuple[Any, ...] = ()
    """The possible words, also of a list; for a number, the lowest and the highest value."""
    verified: Callable[[Any], Any] = lambda value: value
    """Returns a value of the right type. Raises `Invalid` if it can't be used."""
    unapproved: Unapproved = Unapproved.WAITS

    def check(self, value: Any) -> Any:
        """Returns `value` in the setting's type. Raises `Invalid` if it does not fit."""
        if isinstance(self.default, tuple):
            return self._list(value)
        if isinstance(self.default, float) and type(value) is int:
            with suppress(OverflowError):
                value = float(value)
        if type(value) is not type(self.default):
            raise self._wrong(value, f"must be {_TYPES[type(self.default)]}")
        if isinstance(value, float) and not isfinite(value):
            raise self._wrong(value, "must be a finite number")
        if not self.allowed:
            return self.verified(value)
        if isinstance(value, str):
            if value not in self.allowed:
                raise self._wrong(value, f"must be one of {', '.join(self.allowed)}")
        elif not self.allowed[0] <= value <= self.allowed[1]:
            raise self._wrong(value, f"must be between {self.allowed[0]} and {self.allowed[1]}")
        return value

    def _list(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise self._wrong(value, "must be a list of strings")
        if self.scope is PROJECT and len(value) > _MOST_ITEMS:
            raise self._wrong(f"{len(value):,}", f"must have at most {_MOST_ITEMS} items")
        if unknown := [word for word in value if self.allowed and word not in self.allowed]:
            raise self._wrong(unknown[0], f"must be one or more of {', '.join(self.allowed)}")
        return tuple(self.verified(tuple(value)))

    def parse(self, text: str) -> Any:
        """Returns the value for a text from the command line."""
        if isinstance(self.default, tuple):
            return self.check([part.strip() for part in text.split(",") if part.strip()])
        switched = _SWITCHES.get(text.strip().lower())
        if isinstance(self.default, bool):
            return self.check(text if switched is None else switched)
        if self.default in _ON_OFF and switched is not None:
            return "on" if switched else "off"
        try:
            return self.check(type(self.default)(text))
        except ValueError:
            raise self._wrong(text, f"must be {_TYPES[type(self.default)]}") from None

    def active(self, approved: Any, value: Any) -> Any:
        """Returns the value that applies while only `approved` is approved."""
        if self.unapproved is Unapproved.APPLIES:
            return value
        if self.unapproved is Unapproved.WAITS:
            return approved
        if isinstance(approved, tuple):
            return tuple(item for item in approved if item in value)
        return min(approved, value)

    def _wrong(self, value: Any, must: str) -> Invalid:
        return Invalid(
            f"setting `{self.key}` {must}, not `{value}`",
            hint=Hint(f"{self.help}; see ", Command("config")),
            details={"setting": self.key},
        )


def _known_zone(name: str) -> str:
    """Returns the name of a time zone. Raises `Invalid` if the system does not have it."""
    if name != "UTC":
        from mimo.zones import zone_of

        zone_of(name)
    return name


def _encoder(value: str) -> str:
    """Returns `on`, `off`, a folder or a URL without a password. Raises `Invalid`."""
    from mimo.data.urls import encoder_place

    return value if value in _ON_OFF else encoder_place(value)


def _database(url: str) -> str:
    from mimo.data.urls import without_password

    return without_password(url)


def _groups(pairs: tuple[str, ...]) -> tuple[str, ...]:
    """Returns pairs of a group and a project. Raises `Invalid` for another text."""
    for pair in pairs:
        group, _, project = map(str.strip, pair.partition("/"))
        if not group or not project or group[-1] in "=:":
            raise Invalid(f"`projects.groups`: no group in `{pair}`", hint="write it as work/shop")
    return pairs


TOOLSETS = tuple(
    "save load search evolve memory ingest procedures values edges recall extra legacy".split()
)
"""The groups that tools are listed by."""

DEFAULT = "default"
"""The word for the groups that are listed if none is named."""

SEVERAL = ("core", DEFAULT, "all")
"""Words for several groups."""

NAMINGS = ("underscore", "slash", "dot")
"""The spellings of tool names."""

CLIENTS = tuple("claude-code codex gemini opencode copilot cline cursor".split())

SETTINGS = (
    Setting("trust.only", (), USER, "Commits to follow: `signed`, and e-mail addresses of authors"),
    Setting(
        "safe.projects", (), USER, "Projects of other users to use, as absolute paths; `*` for all"
    ),
    Setting(
        "include",
        (),
        PROJECT,
        "Markdown elsewhere in the project to read as memories, as globs",
        unapproved=Unapproved.NARROWS,
    ),
    Setting(
        "comments",
        (),
        PROJECT,
        "Code whose `MEMORY: …` comments are read as memories, as globs",
        unapproved=Unapproved.NARROWS,
    ),
    Setting(
        "commits",
        500,
        PROJECT,
        "Number of last commits to read `decided:`, `problem:`, `learned:`, `fixed:` from",
        (0, 10_000),
        unapproved=Unapproved.NARROWS,
    ),
    Setting(
        ZONE,
        "UTC",
        USER,
        "Zone of shown times and of `today`: UTC, local, or a name such as Europe/Berlin",
        verified=_known_zone,
    ),
    Setting(
        "projects.groups",
        (),
        USER,
        "Projects by group, such as work/shop, work/blog",
        verified=_groups,
    ),
    Setting("files.names", "id", ANY, "Names of files of new memories", ("id", "short")),
    Setting(
        "index.url",
        "",
        USER,
        "PostgreSQL database of the shared index, such as postgresql://ana@db.example.org/mind",
        verified=_database,
    ),
    Setting("autocommit", False, USER, "Commit saved memories in the background (true or false)"),
    Setting(
        "decay.rate",
        0.01,
        ANY,
        "Rate at which memories fade, per day (half-life: 0.69 / rate)",
        (0, 1),
    ),
    Setting(
        "decay.floor",
        0.05,
        ANY,
        "Decay score below which a memory counts as forgotten",
        (0.001, 1),
        unapproved=Unapproved.APPLIES,
    ),
    Setting(
        "ingest.max_bytes",
        10 * 1024 * 1024,
        ANY,
        "Maximum size of an ingested file, in bytes",
        (1, 100_000_000),
        unapproved=Unapproved.NARROWS,
    ),
    Setting(
        "ingest.max_chunks",
        1_000,
        ANY,
        "Maximum number of chunks of one file",
        (1, 100_000),
        unapproved=Unapproved.NARROWS,
    ),
    Setting(
        "trash.megabytes",
        100,
        USER,
        "Maximum size of the text kept for `mind undo`, in megabytes",
        (1, 100_000),
    ),
    Setting(
        "trash.days", 90, USER, "Number of days that text is kept for `mind undo`", (1, 36_500)
    ),
    Setting(
        "values.consistency",
        "READ_YOUR_WRITES",
        ANY,
        "Default consistency of answers about values",
        ("EVENTUAL", "READ_YOUR_WRITES", "STRONG"),
    ),
    Setting(
        "embedding.model",
        "",
        USER,
        "Folder of a model2vec model to use instead of the built-in one",
    ),
    Setting(
        "embedding.encoder",
        "on",
        USER,
        "Model that reads texts for their meaning: on, off, a folder, or a URL",
        verified=_encoder,
    ),
    Setting(
        "embedding.other_host",
        "",
        USER,
        "Host on another machine that may get the texts of projects for `embedding.encoder`",
    ),
    Setting("embedding.encoder_model", "", USER, "Name of the model that the URL serves"),
    Setting("embedding.query_prefix", "", USER, "Text before a query for an encoder of your own"),
    Setting(
        "embedding.passage_prefix", "", USER, "Text before a memory for an encoder of your own"
    ),
    Setting(
        "embedding.dimensions",
        0,
        USER,
        "Numbers of a vector to ask the URL for (0: as many as the model has)",
        (0, 8_192),
    ),
    Setting("embedding.batch", 32, USER, "Texts in a request to the URL", (1, 1_000)),
    Setting(
        "daemon.inactivity_minutes",
        30,
        USER,
        "Minutes without activity after which a session counts as ended",
        (1, 1_440),
    ),
    Setting(
        "daemon.check_seconds",
        60,
        USER,
        "Seconds between the daemon's checks that no file change triggers",
        (1, 3_600),
    ),
    Setting(
        "context.files",
        ("CLAUDE.md",),
        ANY,
        "Files of the project with the block of notes, such as CLAUDE.md or AGENTS.md",
    ),
    Setting(
        "context.budget",
        6_000,
        ANY,
        "Maximum number of characters in that block, and at the start of a session",
        (500, 9_000),
    ),
    Setting(
        "context.daemon",
        "on",
        ANY,
        "Let the daemon write the block, into files that git does not track",
        _ON_OFF,
    ),
    Setting("hook.context", "on", ANY, "Let `mind hook` show notes to agents", _ON_OFF),
    Setting(
        "hook.edges",
        "on",
        ANY,
        "Let `mind hook` check for known pitfalls in what a tool writes",
        _ON_OFF,
    ),
    Setting(
        "hook.summaries",
        "on",
        ANY,
        "Let `mind hook` save summaries of sessions as private memories",
        _ON_OFF,
    ),
    Setting(
        "hook.capture",
        "off",
        USER,
        "Let `mind hook` ask an agent, once a session, to record what the session leaves",
        _ON_OFF,
    ),
    Setting(
        "server.socket",
        "on",
        USER,
        "Let commands and hooks ask a running server, which saves their start",
        _ON_OFF,
    ),
    Setting(
        "mcp.toolsets", (), USER, "Groups of tools that the MCP server lists", (*TOOLSETS, *SEVERAL)
    ),
    Setting(
        "mcp.tool_names", "underscore", USER, "Spelling of tool names in the MCP server", NAMINGS
    ),
    Setting(
        "mcp.exposure",
        "static",
        USER,
        "Narrowing of the MCP server's list to the tools that a prompt asks for",
        ("static", "dynamic"),
    ),
    Setting(
        "procedures.env",
        (),
        USER,
        "Environment variables that procedures and the programs they run may see",
    ),
    Setting("sessions.enabled", "off", USER, "Keep and find earlier sessions with agents", _ON_OFF),
    Setting("sessions.clients", (), USER, "Clients to keep sessions of (default: all)", CLIENTS),
    Setting("sessions.exclude", (), USER, "Folders whose sessions are left out"),
    Setting(
        "sessions.project",
        "on",
        PROJECT,
        "Let users keep their sessions in this project",
        _ON_OFF,
        unapproved=Unapproved.NARROWS,
    ),
    Setting("sessions.propose", "off", USER, "List what sessions propose in a review", _ON_OFF),
    Setting("sessions.keep_days", 730, USER, "Number of days that they are kept", (1, 36_500)),
    Setting("sessions.max_mb", 1_000, USER, "Megabytes of sessions, at most", (1, 1_000_000)),
)

FALLBACKS = {
    "trust.only": "<none>",  # No commit is by it: an address can't contain `>`.
    "trash.megabytes": "100000",
    "trash.days": "36500",
    "context.daemon": "off",
    "hook.context": "off",
    "hook.edges": "off",
    "hook.summaries": "off",
    "server.socket": "off",
    "sessions.project": "off",
}
"""The values if those in a file can't be used, as texts.

The user may have restricted something, so these permit and remove as little as possible.
"""

_BY_KEY = {declared.key: declared for declared in SETTINGS}


def setting(key: str) -> Setting:
    """Returns the setting with that key. Raises `Invalid`."""
    if key not in _BY_KEY:
        from difflib import get_close_matches

        near = " or ".join(f"`{name}`" for name in get_close_matches(key, _BY_KEY))
        question = f"did you mean {near}? " if near else "leave it out; " * (key in ("get", "set"))
        hint = Hint(question, Command("config", all=True), " lists them all")
        raise Invalid(f"`{key}` is not a setting", hint=hint)
    return _BY_KEY[key]


class SettingChange(NamedTuple):
    """A value in the project's file that waits for approval."""

    key: str
    approved: Any
    value: Any


@frozen
class Config:
    """The values of all settings, and the file that each comes from."""

    values: Mapping[str, Any]
    origins: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    waiting: tuple[SettingChange, ...] = ()
    has_latest_text: bool = True
    """True if the project's file has its last approved text."""

    @property
    def format(self) -> int:
        """Returns the version of the store's layout, from the project's file."""
        return int(self.values.get("format", FORMAT))

    def check_format(self) -> None:
        """Raises `StorageFailed` if a later version of mind wrote the store."""
        LaterFormat.check("this memory", self.format, FORMAT)

    def __getitem__(self, key: str) -> Any:
        """Returns the value of a known setting."""
        return self.values[key]


def load(*, user: Path | None, project: Path | None, latest: bytes | None = None) -> Config:
    """Returns the settings of the two files, either of which may be missing.

    An invalid value or an unknown key is ignored, with a warning in `warnings`. `FALLBACKS` apply
    to such settings, and to all settings of a file that can't be read. `latest` is the last
    approved text of the project's file, empty without one: of another text, only what needs no
    approval applies, and the rest is in `waiting`. None approves any text.
    """
    values = {s.key: s.default for s in SETTINGS}
    origins = dict.fromkeys(values, "default")
    warnings: list[str] = []
    waiting: list[SettingChange] = []
    has_latest_text = True
    for path, scope in ((user, Scope.USER), (project, Scope.PROJECT)):
        data = _read(path, scope)
        if scope is Scope.USER or latest is None or data == latest:
            problems = _take_all(data, scope, values, origins)
        else:
            has_latest_text = False
            problems = _take_unapproved(data, latest, values, origins, waiting)
        warnings += (f"{path}: {problem}" for problem in problems)
    return Config(
        values=values,
        origins=origins,
        warnings=tuple(warnings),
        waiting=tuple(waiting),
        has_latest_text=has_latest_text,
    )


def format_of(data: bytes) -> int:
    """Returns the format in a project's settings; `FORMAT` if it can't be read."""
    try:
        value = _parsed(data).get("format")
    except DataError:
        return FORMAT
    return value if type(value) is int else FORMAT


def _take_all(
    data: bytes | DataError,
    scope: Scope,
    values: dict[str, Any],
    origins: dict[str, str],
    approved: Mapping[str, Any] | None = None,
) -> list[str]:
    """Sets the values of a file, and returns its problems.

    Settings that can't be used get their `FALLBACKS`, or their values in `approved` if it is given.
    """
    try:
        if isinstance(data, DataError):
            raise data
        settings = _parsed(data)
    except DataError as error:
        _fall_back("", scope, values, origins, approved)
        return [f"{error}{_UNREAD if approved is None else _UNREAD_CHANGE}"]
    problems = []
    for key, value in settings.items():
        try:
            problem = _take(key, value, scope, values, origins)
        except (Invalid, ValueError, OverflowError) as error:
            reason = f"`{key[:80]}` can't be used: {error}"
            problem = error.message if isinstance(error, Invalid) else reason
            problem += _fall_back(key, scope, values, origins, approved)
        if problem:
            problems.append(problem)
    return problems


def _take(
    key: str, value: Any, scope: Scope, values: dict[str, Any], origins: dict[str, str]
) -> str | None:
    """Sets one key; returns the warning if it is ignored. Raises `Invalid`."""
    if key == "format":
        if type(value) is not int or value < 1:
            return f"`format` must be a whole number from 1, not `{value}`"
        if scope is Scope.PROJECT:
            values["format"] = value
        return f"format {value} is newer than this mind understands" if value > FORMAT else None
    if key == "id" and scope is Scope.PROJECT:
        values["id"] = value if type(value) is str else ""
        return None if values["id"] else "`id` must be a text that is not empty"
    if key not in _BY_KEY:
        raise Invalid(f"`{key}` is not a setting")  # A cloned file may have very many.
    declared = _BY_KEY[key]
    if declared.scope not in (Scope.ANY, scope):
        return f"`{key}` is read from the {declared.scope}'s config only"
    values[key] = declared.check(value)
    origins[key] = scope.value
    return None


def _take_unapproved(
    data: bytes | DataError,
    latest: bytes,
    values: dict[str, Any],
    origins: dict[str, str],
    waiting: list[SettingChange],
) -> list[str]:
    """Sets the values of the project's approved text, and of another one what needs no approval.

    Returns the problems of that text, and adds what waits for approval.
    """
    changed, changed_origins = {**values}, {**origins}
    _take_all(latest, Scope.PROJECT, values, origins)
    users = {declared.key for declared in SETTINGS if declared.scope is USER}
    approved = {key: value for key, value in values.items() if key not in users}
    problems = _take_all(data, Scope.PROJECT, changed, changed_origins, approved)
    for key, value in changed.items():
        if key not in _BY_KEY:
            values[key] = value  # The id, and the format: a later one protects the store.
        elif value != values[key]:
            values[key] = _BY_KEY[key].active(approved[key], value)
            if values[key] == value:
                origins[key] = changed_origins[key]
            else:
                waiting.append(SettingChange(key, approved[key], value))
    return problems


def _fall_back(
    key: str,
    scope: Scope,
    values: dict[str, Any],
    origins: dict[str, str],
    approved: Mapping[str, Any] | None,
) -> str:
    """Sets the fallbacks of the settings that a key may mean; returns the end of a warning.

    A table or a value may be in place of the other. An empty key means every setting.
    """
    used = ""
    for name in FALLBACKS if approved is None else approved:
        if not key or f"{key}.".startswith(f"{name}.") or name.startswith(f"{key}."):
            if approved is not None:
                values[name] = approved[name]
                used = "; until this is corrected, the approved value applies"
            elif (declared := setting(name)).scope in (Scope.ANY, scope):
                values[name], origins[name] = declared.parse(FALLBACKS[name]), scope.value
                used += f"; until this is corrected, `{name}` is `{FALLBACKS[name]}`"
    return used


def _read(path: Path | None, scope: Scope) -> bytes | DataError:
    """Returns the text of a file, empty if it is missing, or the reason why it can't be read.

    Symbolic links are followed for the user's file only: in a project, a link could reveal names
    from other files of the user.
    """
    if path is None:
        return b""
    try:
        return disk.read(path, limit=MAX_BYTES, follow=scope is Scope.USER)
    except OSError as error:
        # A broken link is not a missing file: the settings that it leads to may restrict.
        if isinstance(error, FileNotFoundError) and not os.path.lexists(path):
            return b""
        linked = scope is Scope.PROJECT and os.path.islink(path)  # noqa: PTH114 - raises nothing
        return DataError("not a regular file" if linked else str(error.strerror))


def _parsed(data: bytes) -> dict[str, Any]:
    """Returns the settings in a file, with dotted keys. Raises `DataError`."""
    if (plain := _plain(data)) is not None:
        return plain
    return _flat(loads(data, "toml", depth=_DEEPEST))


def _plain(data: bytes) -> dict[str, Any] | None:
    """Returns the settings of a file of plain lines; None if it needs the parser.

    These are the files that mind writes, and the parser takes as long to load as half of a short
    command.
    """
    if not data.isascii():
        return None
    values: dict[str, Any] = {}
    prefix, seen = "", set[str]()
    for line in data.decode().split("\n"):
        text = line.strip(" ")
        if not text or (text[0] == "#" and text.isprintable()):
            continue
        key, _, literal = text.partition(" = ")
        if text[0] == "[" and text[-1] == "]" and text[1:-1].isalpha():
            name = text[1:-1]
            prefix = f"{name}."
        elif key.replace("_", "").isalpha() and (value := _plain_value(literal)) is not None:
            name = f"{prefix}{key}"
            values[name] = value
        else:
            return None
        if name in seen:
            return None
        seen.add(name)
    return values


def _plain_value(literal: str) -> str | float | bool | None:
    """Returns a simple string, a short number, or a truth value; None for anything else."""
    text = literal[1:-1]
    if literal == f'"{text}"' and text.isprintable() and not {'"', "\\"} & set(text):
        return text
    integer, point, fraction = literal.partition(".")
    if integer.isdigit() and len(literal) < 19 and (integer[0] != "0" or integer == "0"):
        if not point:
            return int(integer)
        return float(literal) if fraction.isdigit() else None
    return {"true": True, "false": False}.get(literal)


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns a table's values by dotted keys."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            values |= _flat(value, f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = value
    return values
