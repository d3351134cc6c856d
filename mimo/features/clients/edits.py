"""The edits of a client's file: adding entries and hooks, finding ours, and removing them.

Everything else in a file stays as it is. JSON has a module of its own. TOML is changed by tomlkit.
YAML is only read: the user changes it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from enum import StrEnum
from typing import Any

from mimo.data.loads import DataError, loads
from mimo.errors import Conflict, Invalid
from mimo.features.clients import json_file
from mimo.features.clients.json_file import UNCHANGED, Path, newline_of
from mimo.frozen import NamedTuple

_OUR_HOOK = re.compile(r"(?:^|[/\\\"'])mind[\"']? hook(?: |$)")
_TO_HOOK = re.compile(r"^.*?mind[\"']? hook ")
_OUR_ADDRESS = re.compile(r"^https?://[^/]+/mcp(?:/[^/]+)?$")
_ADDRESSES = ("url", "httpUrl", "serverUrl")
_OUR_COMMAND = re.compile(r"(?:^|[/\\])mind$")


class Format(StrEnum):
    """The format of a file."""

    JSON = "json"
    TOML = "toml"
    YAML = "yaml"
    SCRIPT = "script"


_TABLES = "write its section as tables with headers, not as a value in brackets; "
"""The form of a section of TOML that can be changed."""


class Entry(NamedTuple):
    """The entry of the server, under our key."""

    path: Path
    value: Mapping[str, Any]


class Hook(NamedTuple):
    """An item in a list of hooks; ours are recognised by their command."""

    path: Path
    value: Mapping[str, Any]
    instead: Mapping[str, Any] | None = None
    """The item of ours that this one replaces, if it is still as mind wrote it."""


class Needed(NamedTuple):
    """A key that must exist, with any value."""

    path: Path
    value: Any


class Script(NamedTuple):
    """A whole file, which is ours if it begins with the same line."""

    value: str
    path: Path = ()
    editable: bool = False
    """True if users may change the file, which then stays."""

    def is_in(self, text: str) -> bool:
        """Returns whether a text is this script, in any version if users do not change it."""
        if self.editable:
            return text == self.value
        return text.partition("\n")[0] == self.value.partition("\n")[0]


Edit = Entry | Hook | Needed | Script


def put_in(format: Format, text: str, edits: Iterable[Edit], *, force: bool = False) -> str:
    """Returns the text with the edits that are missing.

    Raises `Conflict` if our key has another value (unless `force`), and `Invalid` if the text
    can't be read, or can't be changed without changing something else.
    """
    for edit in edits:
        if isinstance(edit, Script):
            if text and not (edit.is_in(text) or edit.editable or force):
                raise Conflict(
                    "it is not mind's", hint="nothing was changed; `--force` replaces it"
                )
            text = edit.value
            continue
        data = load(format, text)
        if has_edit(data, edit, force=force):
            continue
        if isinstance(edit, Hook):
            if has_hook(data, edit.path):
                text = _without_hooks(format, text, edit.path)
                data = load(format, text)
            append = _append_toml if format is Format.TOML else json_file.append
            after = append(text, edit.path, edit.value)
            expected = _with(data, edit.path, [*(at(data, edit.path) or []), edit.value])
        else:
            put = _put_toml if format is Format.TOML else json_file.put
            after = put(text, edit.path, edit.value)
            expected = _with(data, edit.path, edit.value)
        text = _verified(format, after, expected, edit.path)
    return text


def take_out(format: Format, text: str, edits: Sequence[Edit], *, original: str | None) -> str:
    """Returns the text without our entries.

    A container that had nothing but our entries is removed, unless the `original` text, before our
    entries, has it. A key that they need is removed if the original, not an empty one, lacks it:
    in a new file it stays with what others add. An unknown original is None. Raises `Invalid` if
    that would change something else.
    """
    before, current = None if original is None else load(format, original), load(format, text)
    for edit in reversed(edits):
        if isinstance(edit, Script):
            text = "" if edit.is_in(text) else text
        elif isinstance(edit, Hook):
            text = _without_hooks(format, text, edit.path)
        elif isinstance(edit, Entry) and is_ours(at(load(format, text), edit.path)):
            text = _dropped(format, text, edit.path)
        else:
            is_new = isinstance(edit, Needed) and original and not _has(before, edit.path)
            if is_new and at(load(format, text), edit.path) == edit.value:
                text = _dropped(format, text, edit.path)
            continue
        if format is Format.TOML:
            continue  # Ours leave nothing: a table with a header of its own is the user's.
        for end in range(len(edit.path), 0, -1):
            above = edit.path[:end]
            may_go = before is None or not _has(before, above)
            if may_go and at(current, above) and at(load(format, text), above) in ({}, []):
                text = _dropped(format, text, above)
    return text


def _has(data: Any, path: Path) -> bool:
    """Returns whether there is a value at a path; null is one, too."""
    above = at(data, path[:-1])
    return isinstance(above, dict) and path[-1] in above


def at(data: Any, path: Path) -> Any:
    """Returns the value at a path; None if there is none, or if it is null."""
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
    if len(words) == 1:
        return _OUR_ADDRESS.search(words[0]) is not None
    return len(words) > 1 and words[1] == "mcp" and _OUR_COMMAND.search(words[0]) is not None


def command_of(entry: Mapping[str, Any]) -> list[str]:
    """Returns the command line of an entry, in the spelling of any client, or its address."""
    if address := next((entry[key] for key in _ADDRESSES if key in entry), None):
        return [str(address)]
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


def has_other_hook(data: Any, edit: Edit) -> bool:
    """Returns whether a list holds hooks of ours, but not as this version writes them."""
    if not isinstance(edit, Hook) or not (items := _our_hooks(data, edit.path)):
        return False
    forms = [_form(item) for item in (edit.value, edit.instead) if item]
    return not any(_form(item) in forms for item in items)


def _our_hooks(data: Any, path: Path) -> list[Mapping[str, Any]]:
    """Returns the items of ours in a list; a group that has other hooks, too, without those."""
    items = at(data, path)
    ours = [(items[place], _our_part(items[place])) for place in _our_items(items)]
    return [
        {**item, "hooks": [item["hooks"][place] for place in places]} if places else item
        for item, places in ours
    ]


def _form(item: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an item without what depends on the machine: the program's path and `env`."""
    result = {key: value for key, value in item.items() if key != "env"}
    if isinstance(command := item.get("command"), str):
        result["command"] = _TO_HOOK.sub("mind hook ", command)
    if isinstance(within := item.get("hooks"), list):
        result["hooks"] = [_form(each) for each in within]
    return result


def has_edit(data: Any, edit: Edit, *, force: bool) -> bool:
    """Returns whether an edit is in the data, or one of ours that only `force` replaces.

    Raises `Conflict` if our key has a value that is not ours, unless `force`.
    """
    if isinstance(edit, Hook):
        items = _our_hooks(data, edit.path)
        if not items or edit.value in items:
            return bool(items)
        return not (force or edit.instead in items)
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
    return [place for place, item in enumerate(listed) if _runs_us(item) or _our_part(item)]


def _our_part(group: Any) -> list[int]:
    """Returns the places of our hooks in a group; none if the item is not a group."""
    within = group.get("hooks") if isinstance(group, dict) else None
    listed = within if isinstance(within, list) else []
    return [place for place, hook in enumerate(listed) if _runs_us(hook)]


def _runs_us(hook: Any) -> bool:
    """Returns whether a hook that is not a group runs mind."""
    if not isinstance(hook, dict) or isinstance(hook.get("hooks"), list):
        return False
    return _OUR_HOOK.search(" ".join(command_of(hook))) is not None


def is_async(item: Any) -> bool:
    """Returns whether the client does not wait for a hook of ours."""
    return any(item["hooks"][place].get("async") for place in _our_part(item))


def _without_hooks(format: Format, text: str, path: Path) -> str:
    drop_item = _drop_item_toml if format is Format.TOML else json_file.drop_item
    while places := _our_items(at(data := load(format, text), path)):
        items = at(expected := deepcopy(data), path)
        group = items[places[-1]]
        inner = _our_part(group)
        if inner and len(inner) < len(group["hooks"]):
            after = drop_item(text, path, places[-1], inner[-1])
            del group["hooks"][inner[-1]]
        else:
            after = drop_item(text, path, places[-1])
            del items[places[-1]]
        if format is Format.TOML:
            # A list of tables, and a table without a header of its own, disappear when empty.
            for end in range(len(path), 0, -1):
                above = path[:end]
                if not at(expected, above) and at(_reread(format, after, path), above) is None:
                    expected = _without(expected, above)
        text = _verified(format, after, expected, path)
    return text


def _dropped(format: Format, text: str, path: Path) -> str:
    data = load(format, text)
    after = (_drop_toml if format is Format.TOML else json_file.drop)(text, path)
    expected = _without(data, path)
    if format is Format.TOML and at(_reread(format, after, path), path[:-1]) is None:
        # A table without a header of its own disappears with its last child.
        expected = _without(expected, path[:-1])
    return _verified(format, after, expected, path)


def _verified(format: Format, text: str, expected: Any, path: Path) -> str:
    """Returns a text that was changed at a path. Raises `Invalid` if its data is not expected."""
    if _reread(format, text, path) != expected:
        raise _unchangeable(format, path)
    return text


def _reread(format: Format, text: str, path: Path) -> Any:
    """Returns the data in a text that was changed at a path. Raises `Invalid`.

    An error of the changed text would name lines that the file does not have.
    """
    try:
        return load(format, text)
    except Invalid:
        raise _unchangeable(format, path) from None


def _unchangeable(format: Format, path: Path) -> Invalid:
    return Invalid(
        f"a change of `{'.'.join(path)}` would change something else, too",
        hint=f"{_TABLES if format is Format.TOML else ''}nothing was changed",
    )


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


# The formats: one entry is put in or taken out.


def load(format: Format, text: str) -> Any:
    """Returns the data in a text; an empty one holds an object. Raises `Invalid` with the place."""
    if format is Format.SCRIPT:
        return {}
    if format is Format.JSON:
        return json_file.load(text)
    try:
        data = loads(text, "toml" if format is Format.TOML else "yaml")
    except DataError as error:
        raise Invalid(str(error), hint=UNCHANGED) from None
    if data is None:  # An empty document of YAML.
        return {}
    if not isinstance(data, dict):
        raise Invalid("the document is not a mapping", hint="nothing was changed")
    return data


def yaml_lines(data: Any) -> str:
    """Returns data as lines of YAML, each value on one line."""
    import yaml

    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=10_000))


# TOML: a table at the end of the file.


def _put_toml(text: str, path: Path, value: Any) -> str:
    import tomlkit

    if at(load(Format.TOML, text), path) is not None:
        text = _drop_toml(text, path)
    newline = newline_of(text)
    table = tomlkit.item(value)
    for key in reversed(path[1:]):
        table = tomlkit.table(is_super_table=True).append(key, table)
    block = tomlkit.document().append(path[0], table).as_string().replace("\n", newline)
    if not text.strip():
        return text + block
    return text + ("" if text.endswith("\n") else newline) + newline + block


def _drop_toml(text: str, path: Path) -> str:
    """Returns the text without a table and those below it. Raises `Invalid` without a header."""
    name = _name_toml(path)
    headers = [*re.finditer(rf"^[ \t]*\[[ \t]*{name}[ \t]*[.\]]", text, re.MULTILINE)]
    if not headers:
        raise _unchangeable(Format.TOML, path)
    for header in reversed(headers):
        text = _cut_tables(text, header, name)
    return text


_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


def _append_toml(text: str, path: Path, item: Mapping[str, Any]) -> str:
    """Returns the text with one more table in a list."""
    newline = newline_of(text)
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    return text + gap + newline.join((*_tables(path, item), ""))


def _tables(path: Path, item: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of a table in a list, and of those within it."""
    import tomlkit

    yield f"[[{'.'.join(path)}]]"
    for key, value in item.items():
        if not isinstance(value, list):
            yield f"{key} = {tomlkit.item(value).as_string()}"
    for key, value in item.items():
        for within in value if isinstance(value, list) else ():
            yield from _tables((*path, key), within)


def _drop_item_toml(text: str, path: Path, place: int, hook: int | None = None) -> str:
    """Returns the text without a table in a list, or without one hook of such a group.

    The comments below it stay.
    """
    header = _header_toml(text, path, place)
    if hook is not None:
        path = (*path, "hooks")
        header = _header_toml(text, path, hook, after=header.end())
    return _cut_tables(text, header, _name_toml(path))


def _header_toml(text: str, path: Path, place: int, *, after: int = 0) -> re.Match[str]:
    """Returns the header of a table in a list. Raises `Invalid` if it is not a list of tables."""
    header = re.compile(rf"^[ \t]*\[\[[ \t]*{_name_toml(path)}[ \t]*\]\]", re.MULTILINE)
    match = next(itertools.islice(header.finditer(text, after), place, None), None)
    if match is None:
        raise _unchangeable(Format.TOML, path)
    return match


def _name_toml(path: Path) -> str:
    """Returns the expression for a name in a header."""
    return r"[ \t]*\.[ \t]*".join(rf"[\"']?{re.escape(key)}[\"']?" for key in path)


def _cut_tables(text: str, header: re.Match[str], name: str) -> str:
    """Returns the text without the table of a header, and those below it that follow."""
    below = re.compile(rf"[ \t]*\[\[?[ \t]*{name}[ \t]*\.")
    marks = (mark.start() for mark in _HEADER.finditer(text, header.end()))
    end = next((mark for mark in marks if not below.match(text, mark)), len(text))
    lines = text[header.start() : end].splitlines(keepends=True)
    while not (line := lines[-1].strip()) or line.startswith("#"):
        lines.pop()
    head, after = text[: header.start()], text[header.start() + len("".join(lines)) :]
    newline = newline_of(text)
    if head.endswith(newline * 2) and (not after or after.startswith(newline)):
        head = head.removesuffix(newline)
    return head + after
