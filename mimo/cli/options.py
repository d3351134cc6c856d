"""The options of command lines, the words that lead to a command, and the values of a line.

Click's parameters are made from these declarations (`mimo/cli/program.py`). Completion reads them
without click, which takes longer to load than completing a word.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mimo.call import Surface
from mimo.call.spec import Param, Shape, Spec, from_json
from mimo.call.table import CommandTable
from mimo.config import NAMINGS, SEVERAL, TOOLSETS
from mimo.errors import Invalid, SecretDetected
from mimo.frozen import NamedTuple, frozen

BY_NAME = "__named"
"""The end of the key of an option that gives a positional parameter."""


# The declaration of options.


class Option(NamedTuple):
    """An option: its names, as they are typed, the longest last."""

    names: tuple[str, ...]
    help: str
    negated: tuple[str, ...] = ()
    """The names that switch it off."""
    is_flag: bool = False
    is_repeated: bool = False
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    without: str | None = None
    """The value of the option if none follows it; None if one must."""
    param: Param | None = None
    """None for the options that several commands have, whose values are in `Line.options`."""

    @property
    def key(self) -> str:
        """Returns the key of its value."""
        if self.param is None:
            return self.names[-1][2:].replace("-", "_")
        return f"{self.param.attribute}{BY_NAME if self.param.positional else ''}"


COMMON = (
    Option(("--json",), "Print the answer as JSON", is_flag=True),
    Option(("--project",), "Work on this project", metavar="DIR"),
    Option(("--no-color",), "Print without colours", is_flag=True),
    Option(("--no-pager",), "Never page long output", is_flag=True),
    Option(("-v", "--verbose"), "Show the codes of errors", is_flag=True),
)
"""The options that may be before or after any command."""

HELP = Option(("-h", "--help"), "Print this help", is_flag=True)
VERSION = Option(("-V", "--version"), "Print the version", is_flag=True)

ALLOW_SECRET = Option(("--allow-secret",), "Store it although it looks like a secret", is_flag=True)
"""The option of commands that refuse secrets."""

LONG = Option(("-l", "--long"), "Print more of each memory", is_flag=True)
"""The option of commands that print less by default."""

STDIN_IDS = Option(("--stdin-ids",), "Read the ids from standard input", is_flag=True)
"""The option of commands that take several ids."""

PROGRAMS: dict[str, tuple[Option, ...]] = {
    "help": (Option(("-a", "--all"), "List every command", is_flag=True),),
    "hook": (),
    "mcp": (
        Option(
            ("--toolsets",),
            f"Groups of tools to list, by commas: {', '.join((*TOOLSETS, *SEVERAL))}",
            metavar="NAMES",
            is_repeated=True,
        ),
        Option(
            ("--tool-names",),
            "Spelling of names such as save/decision (default underscore)",
            choices=NAMINGS,
        ),
        Option(
            ("--exposure",),
            "Whether the list is narrowed to the needs of a prompt (default static)",
            choices=("static", "dynamic"),
        ),
        Option(
            ("--http",),
            "Serve HTTP instead (default 127.0.0.1:6463; port 0: any free one)",
            metavar="[HOST:]PORT",
            without="",
        ),
        Option(
            ("--token-file",),
            "File with the token of HTTP clients (default $MIND_HOME/http-token, created)",
            metavar="FILE",
        ),
        Option(
            ("--tokens",),
            "File with a token for each user of a team (see `mind token`)",
            metavar="FILE",
        ),
        Option(
            ("--oidc",),
            "OpenID provider that signs in users of a team, whose groups have rights",
            metavar="ISSUER",
        ),
        Option(
            ("--oidc-audience",),
            "Audience of its tokens (default the URL of the server)",
            metavar="NAME",
        ),
        Option(
            ("--oidc-groups",),
            "Claim of its tokens with the groups of a user (default groups)",
            metavar="CLAIM",
        ),
        Option(("--commit",), "Commit what each call of an HTTP client writes", is_flag=True),
        Option(
            ("--repository",),
            "Bare git repository to serve: commits are pushed to it (repeatable)",
            metavar="PATH",
            is_repeated=True,
        ),
        Option(
            ("--index-url",),
            "Shared index on PostgreSQL, as MIND_INDEX_URL, without a password",
            metavar="URL",
        ),
        Option(("--metrics-open",), "Answer /metrics without a token", is_flag=True),
        Option(("--log-json",), "Log requests over HTTP, and errors, as JSON", is_flag=True),
        Option(
            ("--allow-host",),
            "Name under which other machines reach the HTTP server",
            metavar="NAME",
            is_repeated=True,
        ),
        *(option for option in COMMON if option.key == "project"),
    ),
}
"""Help and the programs for clients, which are not in the table of commands, with their options."""

SUMMARIES = {
    "help": "Explain a command, or list the commands",
    "hook": "Answer a client's hook with notes and known pitfalls",
    "mcp": "Serve the memory to agents over MCP",
}
"""The first line of the help of each."""


def params_of(spec: Spec) -> list[Param]:
    """Returns the parameters that a command has on the command line."""
    return [param for param in spec.params if Surface.CLI in param.arg.surfaces]


def options_of(spec: Spec) -> list[Option]:
    """Returns the options of a command, its own first."""
    params = params_of(spec)
    options = [_option(param) for param in params if not param.positional]
    options += [_by_name(param) for param in params if param.arg.named]
    own = {name for option in options for name in option.names}
    options += [option for option in COMMON if own.isdisjoint(option.names)]
    if spec.is_long:
        options.append(LONG)
    if {"id", "ids"} <= {param.name for param in params}:
        options.append(STDIN_IDS)
    if SecretDetected in spec.errors:
        options.append(ALLOW_SECRET)
    return options


def _option(param: Param) -> Option:
    kind = (param.shape.items or param.shape).kind
    is_repeated = param.shape.items is not None or param.arg.many
    is_switch = param.shape.kind == "boolean" and param.default is not False
    return Option(
        names_of(param),
        _help(param, is_repeated=is_repeated),
        negated=tuple(f"--no-{name[2:]}" for name in param.options) if is_switch else (),
        is_flag=kind == "boolean",
        is_repeated=is_repeated and kind != "boolean",
        choices=(param.shape.items or param.shape).choices,
        param=param,
    )


def _by_name(param: Param) -> Option:
    """Returns the option that gives a positional parameter by its name."""
    return Option(
        names_of(param),
        f"{param.arg.help}, given by name",
        choices=(param.shape.items or param.shape).choices,
        param=param,
    )


def names_of(param: Param) -> tuple[str, ...]:
    """Returns the names of a parameter that is given by name."""
    short = (f"-{param.arg.short}",) if param.arg.short else ()
    return (*short, *param.options)


def _help(param: Param, *, is_repeated: bool) -> str:
    help = param.arg.help
    if is_repeated:
        help += " (can be repeated)"
    if param.required:
        return f"{help} (required)"
    if param.default in (None, (), False, "") or param.shape.kind == "boolean":
        return help
    return f"{help} (default {param.default})"


def takes_rest(param: Param) -> bool:
    """Returns whether a positional parameter takes all remaining words."""
    return param.arg.words or param.arg.several or param.shape.items is not None


def named(options: Sequence[Option]) -> dict[str, tuple[Option, bool]]:
    """Returns options by each of their names, with whether the name switches them off."""
    table = {name: (option, False) for option in options for name in option.names}
    return table | {name: (option, True) for option in options for name in option.negated}


# The words that lead to a command.


def summary_of(commands: CommandTable, path: str) -> str:
    """Returns a line on a command, a group of commands, or a program."""
    if path in commands:
        return commands.summary(path)
    return SUMMARIES.get(path, "") or commands.group(path)


def led(
    commands: CommandTable, path: str, words: Sequence[str], *, is_complete: bool = True
) -> tuple[str, list[str]]:
    """Returns the path to which the first of the words leads from a path, and the words left.

    A word may be a command and also lead to sub-commands: `search` and `search by-topic`. Options
    that every command has may be before the sub-command. `is_complete` is off while the line is
    typed: more words may follow.
    """
    word = words[0] if path else commands.aliases.get(words[0], words[0])
    path, rest = f"{path} {word}".strip(), list(words[1:])
    place = 0
    names = named(COMMON)
    while place < len(rest) and rest[place] in names:
        place += 1 if names[rest[place]][0].is_flag else 2
    if path in commands and place >= len(rest) and is_complete:
        return commands.alone.get(path, path), rest
    if path not in commands or place >= len(rest):
        return path, rest
    full = f"{path} {rest[place]}"
    alone = place + 1 == len(rest) or rest[place + 1].startswith("-")
    if full not in commands or (full in commands.lone and not alone):
        return path, rest
    return full, rest[:place] + rest[place + 1 :]


# Values: typed or piped text -> arguments as `invoke` takes them.


@frozen
class Line:
    """A command line that was read."""

    spec: Spec
    values: Mapping[str, Any]
    """The typed values by the keys of parameters."""
    options: Mapping[str, Any]
    """The values of the options that several commands have."""

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments for `invoke`. Raises `Invalid`."""
        arguments = _arguments(self.spec, self.values)
        if self.options.get(STDIN_IDS.key):
            if not (ids := _standard_input().split()):
                raise Invalid("standard input has no ids", hint="pipe in those of a list")
            if not arguments.keys().isdisjoint(("id", "ids")):
                raise Invalid("`--stdin-ids` excludes other ids", hint="use one of them")
            arguments |= {"id": ids[0], "ids": ids[1:]}
        return arguments


def _arguments(spec: Spec, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments that were given, by their published names.

    Raises `Invalid` if a required option is missing, or a parameter is given twice.
    """
    arguments = {}
    for param in params_of(spec):
        by_place, by_name = values.get(param.attribute), values.get(f"{param.attribute}{BY_NAME}")
        if by_place is not None and by_name is not None:
            raise Invalid(f"`{param.name}` is given twice", details={"field": param.name})
        typed = by_place if by_name is None else by_name
        value = _value(param, typed)
        is_null = param.required and param.shape.kind == "json" and typed not in (None, "-")
        if value is None and param.arg.fallback and values.get(param.arg.fallback[0]):
            value = param.arg.fallback[1]
        if value is not None or is_null:
            arguments[param.name] = value
    missing = [f"`{names_of(p)[0]}`" for p in required_options(spec) if p.name not in arguments]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        message = f"{' and '.join(missing)} {verb} missing"
        raise Invalid(message, hint=f"for example: {spec.examples[0]}")
    return arguments


def required_options(spec: Spec) -> list[Param]:
    """Returns the required parameters that the command line takes by their names."""
    return [param for param in params_of(spec) if param.required and not param.positional]


def _value(param: Param, value: Any) -> Any:
    if param.arg.words and param.positional and not param.shape.items:
        value = " ".join(value) if value else None
    if param.arg.several and param.positional:
        return value if value and value[1:] else next(iter(value or ()), None)
    if param.shape.items:
        items = param.shape.items
        return [converted(items, item) for item in value] if value else None
    if param.arg.many:
        several = [converted(param.shape, item) for item in value or ()]
        return several if len(several) > 1 else next(iter(several), None)
    is_piped = sys.stdin is not None and not sys.stdin.isatty()
    if param.arg.stdin and (value == "-" or (value is None and param.required and is_piped)):
        text = _standard_input()
        return from_json(text) if text and param.shape.kind == "json" else text or None
    if param.arg.file and value is not None:
        return _standard_input() if value == "-" else _file_text(value)
    return None if value is None else converted(param.shape, value)


def converted(shape: Shape, text: Any) -> Any:
    """Returns the value that a text spells, or the text if it is not a value of the shape."""
    if not isinstance(text, str) or shape.kind in ("string", "boolean"):
        return text
    if shape.kind == "json":
        return from_json(text)
    for number in (int, float) if shape.kind == "number" else (int,):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _file_text(name: str) -> str:
    """Returns the text of a file that was named in place of a text."""
    try:
        return Path(name).read_text("utf-8", "replace")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a valid file name"
        raise Invalid(
            f"`{name}` can't be read: {reason.lower()}", hint="name a file, or - for standard input"
        ) from None


def _standard_input() -> str:
    """Returns the text on standard input without its last line end."""
    if sys.stdin is None:
        return ""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Invalid(
            "standard input is not text in UTF-8", hint="convert it first, for example with iconv"
        ) from None
