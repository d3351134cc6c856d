"""Putting one entry into a YAML file and taking it out again, with everything else as it is.

Only block mappings are spliced, two levels deep; anything else is refused.
"""

import re
from typing import Any

from mimo.errors import Invalid

Path = tuple[str, ...]


def load(text: str) -> Any:
    """Returns the data in a text; an empty one holds an empty mapping. Raises `Invalid`."""
    import yaml

    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or "it is no YAML that can be read"
        raise Invalid(
            f"{place}{problem}", hint="mend the file first; nothing was changed"
        ) from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise Invalid("the document is no mapping", hint="nothing was changed")
    return data


def put(text: str, path: Path, value: dict[str, Any]) -> str:
    """Returns the text with `value` at `path`, which has two parts."""
    section, name = path
    text = drop(text, path)
    lines = text.splitlines(keepends=True)
    newline = "\r\n" if "\r\n" in text else "\n"
    place = _key_line(lines, section, "")
    if place is None:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += newline
        return "".join([*lines, f"{section}:{newline}", *_block(name, value, "  ", newline)])
    header = re.sub(r":\s*(?:\{\s*\}|null|~)(?=\s*(?:#|$))", ":", lines[place].rstrip("\r\n"))
    if not re.search(r":\s*(?:#.*)?$", header):
        raise Invalid(
            f"line {place + 1}: `{section}` is not written as a block",
            hint="put each of its entries on lines of its own; nothing was changed",
        )
    indent = _child_indent(lines, place) or "  "
    block = _block(name, value, indent, newline)
    return "".join([*lines[:place], header + newline, *block, *lines[place + 1 :]])


def drop(text: str, path: Path) -> str:
    """Returns the text without what stands at `path`, which has one part or two."""
    lines = text.splitlines(keepends=True)
    start, indent = 0, ""
    for depth, key in enumerate(path):
        place = _key_line(lines, key, indent, start)
        if place is None:
            return text
        if depth < len(path) - 1:
            indent = _child_indent(lines, place) or "  "
            start = place + 1
            continue
        end = _block_end(lines, place, indent)
        left = [*lines[:place], *lines[end:]]
        if depth and not _child_indent(left, start - 1):
            left[start - 1] = re.sub(r":(?=\s*(?:#|$))", ": {}", left[start - 1], count=1)
        return "".join(left)
    return text


def _block(name: str, value: dict[str, Any], indent: str, newline: str) -> list[str]:
    import yaml

    dumped = yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=10_000)
    return [f"{indent}{line}{newline}" for line in dumped.splitlines()]


def _key_line(lines: list[str], key: str, indent: str, start: int = 0) -> int | None:
    """Returns the line of a key at an indentation, within the block that `start` is in."""
    wanted = re.compile(
        rf"{indent}(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')\s*:"
    )
    for place in range(start, len(lines)):
        line = lines[place]
        if (
            indent
            and line.strip()
            and not line.lstrip().startswith("#")
            and not line.startswith(indent)
        ):
            return None
        if wanted.match(line):
            return place
    return None


def _child_indent(lines: list[str], place: int) -> str:
    """Returns how the entries below a key are indented; empty where there are none."""
    own = _indent(lines[place])
    for line in lines[place + 1 :]:
        if line.strip() and not line.lstrip().startswith("#"):
            return _indent(line) if len(_indent(line)) > len(own) else ""
    return ""


def _block_end(lines: list[str], place: int, indent: str) -> int:
    """Returns the line after all that is indented more than a key."""
    end = place + 1
    for number in range(place + 1, len(lines)):
        line = lines[number]
        if line.strip() and len(_indent(line)) <= len(indent):
            break
        if line.strip():
            end = number + 1
    return end


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" "))]
