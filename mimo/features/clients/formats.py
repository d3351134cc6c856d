"""The formats of clients' files: one entry is put in or taken out, all else stays as it is.

JSON has a module of its own. TOML is changed by tomlkit. YAML is spliced at the places that the
parser reports: no library changes YAML without writing all of it again.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mimo.errors import Invalid
from mimo.features.clients import json_file
from mimo.features.clients.json_file import Path, newline_of

if TYPE_CHECKING:
    from yaml import Node

_UNCHANGED = "mend the file first; nothing was changed"


class Format(StrEnum):
    """The format of a file."""

    JSON = "json"
    TOML = "toml"
    YAML = "yaml"


def load(format: Format, text: str) -> Any:
    """Returns the data in a text; an empty one holds an object. Raises `Invalid` with the place."""
    loads = {Format.JSON: json_file.load, Format.TOML: _load_toml, Format.YAML: _load_yaml}
    return loads[format](text)


def put(format: Format, text: str, path: Path, value: Any) -> str:
    """Returns the text with `value` at `path`. Raises `Invalid` if that is not possible."""
    puts = {Format.JSON: json_file.put, Format.TOML: _put_toml, Format.YAML: _put_yaml}
    return puts[format](text, path, value)


def drop(format: Format, text: str, path: Path) -> str:
    """Returns the text without the value at `path`."""
    drops = {Format.JSON: json_file.drop, Format.TOML: _drop_toml, Format.YAML: _drop_yaml}
    return drops[format](text, path)


# TOML: a table at the end of the file.


def _load_toml(text: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(str(error), hint=_UNCHANGED) from None


def _put_toml(text: str, path: Path, value: Any) -> str:
    import tomlkit

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
    import tomlkit

    try:
        document = tomlkit.parse(text)
    except ValueError as error:
        raise Invalid(str(error), hint=_UNCHANGED) from None
    holder: Any = document
    for key in path[:-1]:
        holder = holder.get(key)
        if not isinstance(holder, dict):
            return text
    if path[-1] not in holder:
        return text
    tail = _tail_of_table(holder[path[-1]])
    del holder[path[-1]]
    left = document.as_string()
    # The texts are equal up to the header of the table.
    pairs = enumerate(zip(text, left, strict=False))
    common = next((at for at, (old, new) in pairs if old != new), len(left))
    place = left.rfind("\n", 0, common) + 1
    before, after = left[:place], tail + left[place:]
    newline = newline_of(text)
    if not after.strip():
        return before.removesuffix(newline) if before.endswith(newline * 2) else before
    starts = not before or before.endswith(newline * 2)
    return before + (after.lstrip("\r\n") if starts else after)


def _tail_of_table(item: Any) -> str:
    """Returns the blank lines and comments below the last key of a table: they belong to others."""
    body = getattr(getattr(item, "value", None), "body", [])
    if body and body[-1][0] is not None:
        return _tail_of_table(body[-1][1])
    tail = ""
    for key, part in reversed(body):
        if key is not None:
            break
        tail = part.as_string() + tail
    return tail


# YAML: an entry of a block mapping, at most two levels deep.


def _load_yaml(text: str) -> Any:
    import yaml

    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or "the YAML can't be read"
        raise Invalid(f"{place}{problem}", hint=_UNCHANGED) from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise Invalid("the document is not a mapping", hint="nothing was changed")
    return data


def _put_yaml(text: str, path: Path, value: Any) -> str:
    import yaml

    section, name = path
    text = _drop_yaml(text, path)
    newline = newline_of(text)
    member = _member(yaml.compose(text, yaml.SafeLoader), section)
    if text and not text.endswith("\n"):
        text += newline
    indent = "  "
    if member is None:
        text += f"{section}:{newline}"
        place = len(text)
    else:
        key, node = member
        start, end = node.start_mark.index, node.end_mark.index
        if node.value in ([], "", "null", "~") and "\n" not in text[key.end_mark.index : end]:
            text = text[:start].rstrip(" ") + text[end:]
        elif (
            isinstance(node, yaml.MappingNode)
            and not node.flow_style
            and start > key.end_mark.index
        ):
            indent = " " * node.value[0][0].start_mark.column
        else:
            raise Invalid(
                f"line {key.start_mark.line + 1}: `{section}` is not written as a block",
                hint="put each of its entries on lines of its own; nothing was changed",
            )
        place = text.index("\n", key.end_mark.index) + 1
    dumped = yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=10_000)
    block = "".join(f"{indent}{line}{newline}" for line in dumped.splitlines())
    return text[:place] + block + text[place:]


def _drop_yaml(text: str, path: Path) -> str:
    import yaml

    node: Any = yaml.compose(text, yaml.SafeLoader)
    holder, keys = node, []
    for name in path:
        holder, member = node, _member(node, name)
        if member is None or holder.flow_style:
            return text
        keys.append(member[0])
        node = member[1]
    start = text.rfind("\n", 0, keys[-1].start_mark.index) + 1
    end = _end_of_yaml(text, keys[-1], node)
    if len(keys) > 1 and len(holder.value) == 1:
        colon = text.index(":", keys[-2].end_mark.index) + 1
        return f"{text[:colon]} {{}}{text[colon:start]}{text[end:]}"
    return text[:start] + text[end:]


def _end_of_yaml(text: str, key: "Node", node: "Node") -> int:
    """Returns the end of an entry, without the blank lines and comments that follow it."""
    end = max(key.end_mark.index, node.end_mark.index)
    lines = text[key.start_mark.index : end].splitlines(keepends=True)
    while len(lines) > 1:
        words = lines[-1].strip()
        indent = len(lines[-1]) - len(lines[-1].lstrip(" "))
        if words and not (words.startswith("#") and indent <= key.start_mark.column):
            break
        end -= len(lines.pop())
    if text[:end].endswith("\n"):
        return end
    return text.find("\n", end) + 1 or len(text)


def _member(node: "Node | None", name: str) -> "tuple[Node, Node] | None":
    """Returns the key and the value of that name in a mapping; None if there is none."""
    import yaml

    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((pair for pair in pairs if pair[0].value == name), None)
