"""The edits of a client's file: adding entries and hooks, finding ours, and removing them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from mimo.errors import Conflict, Invalid
from mimo.features.clients import json_file
from mimo.features.clients.formats import Format, drop, load, put
from mimo.features.clients.json_file import Path
from mimo.frozen import frozen

_OUR_HOOK = re.compile(r"(?:^|[/\\\"'])mind(?:\.exe)?[\"']? hook(?: |$)")
_OUR_COMMAND = re.compile(r"(?:^|[/\\])mind(?:\.exe)?$")


@frozen
class Entry:
    """The entry of the server, under our key."""

    path: Path
    value: Mapping[str, Any]


@frozen
class Hook:
    """An item in a list of hooks; ours are recognised by their command."""

    path: Path
    value: Mapping[str, Any]


@frozen
class Needed:
    """A key that must exist, with any value."""

    path: Path
    value: Any


Edit = Entry | Hook | Needed


def put_in(format: Format, text: str, edits: Iterable[Edit], *, force: bool = False) -> str:
    """Returns the text with the edits that are missing.

    Raises `Conflict` if our key has another value (unless `force`), and `Invalid` if the text
    can't be read, or can't be changed without changing something else.
    """
    for edit in edits:
        data = load(format, text)
        if _is_there(data, edit, force=force):
            continue
        if isinstance(edit, Hook):
            after = json_file.append(text, edit.path, edit.value)
            expected = _with(data, edit.path, [*(at(data, edit.path) or []), edit.value])
        else:
            after = put(format, text, edit.path, edit.value)
            expected = _with(data, edit.path, edit.value)
        text = _verified(format, after, expected)
    return text


def take_out(
    format: Format, text: str, edits: Sequence[Edit], *, made: Iterable[Path] | None
) -> str:
    """Returns the text without our entries.

    Empty containers are removed if they are in `made`, or if `made` is unknown (None). Raises
    `Invalid` if that would change something else.
    """
    removable = None if made is None else set(made)
    for edit in reversed(edits):
        if isinstance(edit, Hook):
            text = _without_hooks(text, edit.path)
        elif isinstance(edit, Entry) and is_ours(at(load(format, text), edit.path)):
            text = _dropped(format, text, edit.path)
        else:
            continue
        for end in range(len(edit.path), 0, -1):
            above = edit.path[:end]
            is_empty = at(load(format, text), above) in ({}, [])
            if is_empty and (removable is None or above in removable):
                text = _dropped(format, text, above)
    return text


def missing(format: Format, text: str, edits: Iterable[Edit]) -> tuple[Path, ...]:
    """Returns the containers that must be created for the entries."""
    data = load(format, text)
    wanted: dict[Path, None] = {}
    for edit in edits:
        depth = len(edit.path) + isinstance(edit, Hook)
        wanted |= dict.fromkeys(edit.path[:end] for end in range(1, depth))
    return tuple(path for path in wanted if at(data, path) is None)


def at(data: Any, path: Path) -> Any:
    """Returns the value at a path; None if there is none."""
    for key in path:
        if not isinstance(data, dict) or key not in data:
            return None
        data = data[key]
    return data


def is_ours(entry: Any) -> bool:
    """Returns whether an entry starts our server."""
    if not isinstance(entry, Mapping):
        return False
    words = command_of(entry)
    return len(words) > 1 and words[1] == "mcp" and _OUR_COMMAND.search(words[0]) is not None


def command_of(entry: Mapping[str, Any]) -> list[str]:
    """Returns the command line of an entry, in the spelling of any client."""
    command = entry.get("command", entry.get("cmd"))
    if isinstance(command, list):
        return [str(word) for word in command]
    arguments = entry.get("args")
    return [str(command), *(map(str, arguments) if isinstance(arguments, list) else ())]


def differing(data: Any, edit: Edit) -> str | None:
    """Returns the command line, with its $MIND_HOME, of our entry if its values differ."""
    entry = at(data, edit.path)
    if isinstance(edit, Entry) and is_ours(entry) and entry != edit.value:
        sets = (value for value in entry.values() if isinstance(value, Mapping))
        homes = [f"MIND_HOME={env['MIND_HOME']}" for env in sets if "MIND_HOME" in env]
        return " ".join((*homes, *command_of(entry)))
    return None


def has_hook(data: Any, path: Path) -> bool:
    """Returns whether a list holds a hook of ours."""
    return bool(_our_items(at(data, path)))


def _is_there(data: Any, edit: Edit, *, force: bool) -> bool:
    if isinstance(edit, Hook):
        return has_hook(data, edit.path)
    value = at(data, edit.path)
    if value is None or isinstance(edit, Needed):
        return value is not None
    if value == edit.value or (is_ours(value) and not force):
        return True
    if not force:
        words = command_of(value) if isinstance(value, Mapping) else [str(value)]
        raise Conflict(
            f"it has an entry `{'.'.join(edit.path)}` that differs: {' '.join(words)}",
            hint="nothing was changed; `--force` replaces it",
        )
    return False


def _our_items(items: Any) -> list[int]:
    listed = items if isinstance(items, list) else []
    return [place for place, item in enumerate(listed) if _runs_us(item)]


def _runs_us(item: Any) -> bool:
    """Returns whether a hook, or every hook of a group, runs mind."""
    if not isinstance(item, dict):
        return False
    if isinstance(within := item.get("hooks"), list):
        return bool(within) and all(map(_runs_us, within))
    words = [item.get("command"), *(item.get("args") or ())]
    return _OUR_HOOK.search(" ".join(map(str, words))) is not None


def _without_hooks(text: str, path: Path) -> str:
    while places := _our_items(at(data := load(Format.JSON, text), path)):
        after = json_file.drop_item(text, path, places[-1])
        del at(expected := deepcopy(data), path)[places[-1]]
        text = _verified(Format.JSON, after, expected)
    return text


def _dropped(format: Format, text: str, path: Path) -> str:
    data = load(format, text)
    after = drop(format, text, path)
    expected = _without(data, path)
    if format is Format.TOML and at(load(format, after), path[:-1]) is None:
        # A table without a header of its own disappears with its last child.
        expected = _without(expected, path[:-1])
    return _verified(format, after, expected)


def _verified(format: Format, text: str, expected: Any) -> str:
    """Returns a changed text. Raises `Invalid` if its data is not as expected."""
    if load(format, text) != expected:
        raise Invalid(
            "it can't be changed without changing something else",
            hint="nothing was changed",
        )
    return text


def _with(data: Any, path: Path, value: Any) -> Any:
    expected = holder = deepcopy(data)
    for key in path[:-1]:
        if not isinstance(holder.get(key), dict):
            holder[key] = {}
        holder = holder[key]
    holder[path[-1]] = value
    return expected


def _without(data: Any, path: Path) -> Any:
    expected = deepcopy(data)
    at(expected, path[:-1]).pop(path[-1], None)
    return expected
