"""Extensions: packages that add commands to mind, found by an entry point.

An entry point of the group `mimo.extensions` names an `Extension`, or a module that has one called
`EXTENSION`. Its modules import nothing of mind but `mimo.api`. mind's own extensions register in
the same way, so a folder of them can be left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from mimo.errors import Command, Hint, Internal, MindError
from mimo.frozen import field, frozen

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "mimo.extensions"
"""The group of entry points."""

_OWN = "mimo.extensions."


@frozen
class Extension:
    """The additions of a package. Modules and functions are named, and loaded when needed."""

    commands: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Sections of the help, each with the paths of commands and the modules that declare them.

    The first word of a path must not be a word of the core.
    """
    groups: Mapping[str, str] = field(default_factory=dict)
    """The summaries of words that only lead to other commands."""
    tools: tuple[str, ...] = ()
    """Modules with commands that only MCP offers."""
    importers: Mapping[str, str] = field(default_factory=dict)
    """Formats of `mind import`, each with the `module:function` that yields the `Draft`s of a
    `Source`."""
    recogniser: str = ""
    """`module:function` that returns the formats that a `Source` may be of: one if its
    content shows it. It may raise `Unreadable`."""
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words that a user may try, with the commands of the extension that an error names."""

    shared_index: str = ""
    """The module with the functions of a shared index, see `mimo.operations.sharing`."""
    sessions: str = ""
    """The module with the functions of earlier sessions, see `mimo.operations.earlier`."""

    # Functions, as `module:function`.

    scopes: Mapping[str, str] = field(default_factory=dict)
    """Values of `mind search --scope`, each with a function of the call, the query, the
    `finding.Options` and the names of types, which returns rows and a notice."""

    drafts: str = ""
    """Returns the `review.Item`s of a call that propose memories."""
    serve: str = ""
    """Runs `mind mcp --http`, see `mimo.cli.serving`."""
    permissions: str = ""
    """Returns the `Permissions` of a user, by their `reference` and `name`; None if unknown."""


def extensions() -> Mapping[str, Extension]:
    """Returns the installed extensions by the names of their entry points, in their order.

    Those that can't be loaded are in `broken`.
    """
    return _found()[0]


def broken() -> dict[str, str]:
    """Returns the extensions, and modules of them, that can't be used, each with the reason."""
    return _found()[1]


@cache
def _found() -> tuple[dict[str, Extension], dict[str, str]]:
    usable: dict[str, Extension] = {}
    # Those of mind are first: no other package replaces them.
    entries, error = attempted(
        lambda: sorted(_entries(), key=lambda e: (not e.value.startswith(_OWN), e))
    )
    problems = {"(all)": problem(error)} if error else {}
    for entry in entries or ():
        if entry.name in usable or entry.name in problems:
            continue
        value, reason = attempted(entry.load)
        if isinstance(reason, ModuleNotFoundError) and f"{entry.module}.".startswith(
            f"{reason.name}."
        ):
            continue  # The folder of an extension was left out.
        if isinstance(value, ModuleType):
            if value.__file__ is None:  # Only a folder with compiled files is left.
                continue
            value = getattr(value, "EXTENSION", None)
        if not isinstance(value, Extension):
            problems[entry.name] = problem(reason) or f"`{entry.value}` is not an extension"
        elif flaw := _flaw(value):
            problems[entry.name] = flaw
        else:
            usable[entry.name] = value
    return usable, problems


def _entries() -> Iterable[EntryPoint]:
    """Returns the entry points of all packages. Raises any error if a package has damaged ones."""
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def _flaw(extension: Extension) -> str:
    """Returns the reason for which a manifest is not valid; empty if it is."""
    for name, hint in get_type_hints(Extension).items():
        if not _fits(getattr(extension, name), hint):
            return f"its `{name}` is not of the type {Extension.__annotations__[name]}"
    return ""


def _fits(value: object, hint: Any) -> bool:
    """Returns whether a value is of a type of a manifest, and no word in it is empty."""
    words, inner = get_args(hint), get_origin(hint)
    if inner is tuple:
        return isinstance(value, tuple) and all(_fits(item, words[0]) for item in value)
    if not words:
        return isinstance(value, hint)
    return isinstance(value, Mapping) and all(
        _fits(key, words[0]) and key.strip() and _fits(item, words[1])
        for key, item in value.items()
    )


def attempted(load: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Returns what code of others loads, or None and its error, which never ends mind.

    What that code prints goes to the standard error: a client may read the standard output.
    """
    try:
        with redirect_stdout(sys.stderr):
            return load(), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - also `SystemExit`
        return None, error


def problem(error: BaseException | None) -> str:
    """Returns the reason for which an extension can't be used; empty for no error."""
    if isinstance(error, ModuleNotFoundError):
        return f"`{error.name}` is not installed"
    return f"{type(error).__name__}: {error}" if error else ""


def named(part: str) -> Iterator[Any]:
    """Yields the functions that the installed extensions name for a part of their manifests."""
    for extension in extensions().values():
        if name := getattr(extension, part):
            yield loaded(name)


def scopes() -> dict[str, str]:
    """Returns the scopes of searches that installed extensions add, with their functions."""
    added: dict[str, str] = {}
    for extension in extensions().values():
        for name, function in extension.scopes.items():
            added.setdefault(name, function)
    return added


def loaded(name: str) -> Any:
    """Returns what `module:attribute` names. Raises `Internal` if it can't be loaded."""
    module, _, attribute = name.partition(":")
    value, error = attempted(lambda: getattr(import_module(module), attribute))
    if isinstance(error, MindError):
        raise error
    if error:
        raise unusable(name, problem(error)) from error
    return value


def unusable(part: str, reason: str) -> Internal:
    """Returns the error for a part of an extension that can't be used."""
    return Internal(
        f"`{part}` of an extension can't be used: {reason}",
        hint=Hint("see ", Command("doctor"), "; install the extension again, or remove it"),
    )


def extension_of(error: BaseException) -> str:
    """Returns the extension of another package in whose code an error arose; empty for mind's."""
    from traceback import walk_tb

    names = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    packages = {str(name).partition(".")[0] for name in names} - {"mimo"}
    for entry in attempted(_entries)[0] or ():
        is_valid = entry.pattern.match(entry.value)  # Else its `module` raises an error.
        if is_valid and entry.module.partition(".")[0] in packages:
            return f"{entry.name} {entry.dist.version}" if entry.dist else entry.name
    return ""
