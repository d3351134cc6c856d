"""Long answers in parts, of whole items each, with a cursor that states where the next begins.

A position in a field is the path of an item by numbers, also in an object: `(1, 165)` is item 165
of the second item. The cursor `value:1.165:3f9a2c1b` has it with a digest of the whole field, so
that the parts of two versions are never put together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from mimo.data import disk
from mimo.errors import Invalid
from mimo.frozen import NamedTuple

Position: TypeAlias = tuple[int, ...]

_CURSOR = re.compile(r"([a-z_]+(?:\.[a-z_]+)?):(\d{1,9}(?:\.\d{1,9}){0,200}):([0-9a-f]{8})")
_NAME = re.compile(r"[\w-]{1,40}")
"""Keys that a sentence of ours can name; any other key has its number."""


class Start(NamedTuple):
    """The beginning of a part: a field of the answer, and a position in it."""

    path: tuple[str, ...] = ()
    position: Position = ()


BEGINNING = Start()


def first_part(
    value: Any, room: int, cost: Callable[[Any], int], room_alone: int | None = None
) -> tuple[Any, Position]:
    """Returns the first items of a value that take at most `room` bytes, and where the rest begins.

    The position is empty if not even a part of the first item fits. An item is itself cut only if
    it takes more than `room_alone` bytes, those of an answer that begins with it; a text is cut
    after a line, if it has lines.
    """
    if isinstance(value, str):
        text = beginning(value, room, cost)
        end = text.rfind("\n") + 1
        text = text[:end] if end > len(text) // 2 else text
        return text, (len(text),) if text else ()
    if not isinstance(value, list | dict):
        return value, ()
    left = room - 2
    room_alone = (room if room_alone is None else room_alone) - 2
    part: Any = type(value)()
    for number, key in enumerate(value if isinstance(value, dict) else range(len(value))):
        item, name = value[key], cost(key) + 4 if isinstance(value, dict) else 4
        taken = name + cost(item)
        deeper: Position = ()
        if taken > left:
            if taken > room_alone:
                item, deeper = first_part(item, left - name, cost, room_alone - name)
            if not deeper:
                return part, (number,) if number else ()
        if isinstance(value, dict):
            part[key] = item
        else:
            part.append(item)
        if deeper:
            return part, (number, *deeper)
        left -= taken
    return part, (len(value),)


def beginning(text: str, room: int, cost: Callable[[Any], int]) -> str:
    """Returns the beginning of a text that takes at most `room` bytes."""
    text = text[: max(room, 0)]
    while text and (taken := cost(text)) > room:
        text = text[: min(len(text) - 1, len(text) * max(room, 0) // taken)]
    return text


def rest_of(value: Any, position: Position) -> Any:
    """Returns the items of a value from a position on, in the same objects and lists.

    Raises `IndexError` if the value has no such item.
    """
    number, *deeper = position
    if not isinstance(value, str | list | dict) or number >= max(len(value), 1):
        raise IndexError(number)
    if isinstance(value, str):
        return value[number:]
    items = list(value.items() if isinstance(value, dict) else enumerate(value))[number:]
    if deeper:
        items[0] = (items[0][0], rest_of(items[0][1], tuple(deeper)))
    return dict(items) if isinstance(value, dict) else [item for _, item in items]


def moved(position: Position, start: Position) -> Position:
    """Returns a position in the rest from `start` on as one in the whole value."""
    if not position or not start:
        return position
    deeper = moved(position[1:], start[1:] if position[0] == 0 else ())
    return (position[0] + start[0], *deeper)


def resumed(data: Mapping[str, Any], cursor: str) -> tuple[dict[str, Any], Start]:
    """Returns an answer whose field begins at a cursor. Raises `Invalid` if it is of another."""
    match = _CURSOR.fullmatch(cursor)
    start = (
        Start(tuple(match[1].split(".")), tuple(map(int, match[2].split("."))))
        if match
        else Start()
    )
    try:
        value = field(data, start.path)
        if match and digest(value) == match[3]:
            return _with(data, start.path, rest_of(value, start.position)), start
    except (KeyError, TypeError, IndexError):
        pass
    raise Invalid(
        "`cursor` is not of this answer, or the answer has changed since",
        hint="ask again without it, and read on with the cursor of that answer",
        details={"field": "cursor"},
    )


def _with(data: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    name, *deeper = path
    return {**data, name: _with(data[name], deeper, value) if deeper else value}


def field(data: Any, path: Sequence[str]) -> Any:
    """Returns a field of an answer."""
    for name in path:
        data = data[name]
    return data


def cursor_at(data: Any, start: Start) -> str:
    """Returns the cursor of a position in a field of a whole answer."""
    numbers = ".".join(map(str, start.position))
    return f"{'.'.join(start.path)}:{numbers}:{digest(field(data, start.path))}"


def digest(value: Any) -> str:
    """Returns a short digest of a field."""
    return disk.sha256(json.dumps(value).encode()).hex()[:8]


def counted(data: Any, start: Start, end: Start) -> tuple[str, int, int, int, bool]:
    """Returns the name, first and last number, and length of what a part ends in.

    `start` is where the part begins in the whole answer, `end` where the next one does. The last
    result is true if the numbers are those of characters.
    """
    value, names = field(data, end.path), list(end.path)
    for number in end.position[:-1]:
        key = list(value)[number] if isinstance(value, dict) else number
        value = value[key]
        names.append(key if isinstance(key, str) and _NAME.fullmatch(key) else str(number))
    depth = len(end.position)
    is_same = start.path == end.path and start.position[: depth - 1] == end.position[:-1]
    begin = start.position[depth - 1] if is_same and len(start.position) >= depth else 0
    return ".".join(names), begin + 1, end.position[-1], len(value), isinstance(value, str)


def last_part(data: Any, start: Start) -> str:
    """Returns the sentence on a part that goes on to the end of its field."""
    name, begin, _, total, is_text = counted(data, start, start)
    unit = " characters" if is_text else ""
    return f"`{name}`: {begin:,} to {total:,} of {total:,}{unit}, to the end"
