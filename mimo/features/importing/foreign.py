"""Values of other tools, as the fields, the header and the text of a memory hold them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import datetime
from hashlib import sha256
from math import isfinite
from typing import Any

from mimo.data.loads import DataError, loads
from mimo.errors import Invalid
from mimo.memory.codec.document import Unreadable
from mimo.memory.codec.file import KEYS
from mimo.memory.codec.file import moment as moment
from mimo.memory.codec.front_matter import flow
from mimo.text.clean import storable
from mimo.text.phrases import bullets

_LONGEST = 200
"""Characters of the longest value in a header, where it takes one line."""
_DEEPEST = 20
"""Levels of lists and objects in JSON; deeper JSON stays text."""
_LARGEST = 2**63
_ID_TIME = re.compile(r"_(\d{13})(?:_|$)")


def digest(*values: object) -> str:
    """Returns a short digest of values, for the key of a draft whose source has none."""
    joined_values = "\n".join(map(str, values))
    return sha256(joined_values.encode("utf-8", "replace")).hexdigest()[:12]


def parsed(content: str) -> Any:
    """Returns JSON data. Raises `Unreadable`."""
    try:
        return loads(content)
    except DataError as error:
        raise Unreadable(f"not JSON: {error.reason}", error.line) from None


def divided(
    values: Mapping[str, Any], prefix: str, *, as_prose: Collection[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """Returns values without a field of their own: short ones for the header, others as prose.

    A key that is mind's own gets the prefix: it would be read as the memory's field of that name.
    """
    header: dict[str, Any] = {}
    body: list[str] = []
    for name, value in values.items():
        if value is None:
            continue
        key = f"{prefix}_{name}" if name in KEYS else name
        is_key = re.fullmatch("[A-Za-z0-9_][A-Za-z0-9_-]{,59}", key)
        if is_key and is_short(value) and name not in as_prose:
            header[key] = value
        else:
            title = " ".join(name.replace("_", " ").split()).capitalize()
            body.append(f"### {title}\n\n{prose(value)}")
    return header, body


def joined(*parts: str | None) -> str:
    """Returns the parts that are not empty, with blank lines between them."""
    return "\n\n".join(part for part in parts if part)


def tags(*values: Any) -> tuple[str, ...]:
    """Returns the tags in texts and lists, without `#` and `@` and what a tag can't hold."""
    words: dict[str, None] = {}
    for value in values:
        items = re.split(r"[,\n]", value) if isinstance(value, str) else value
        items = items if isinstance(items, list) else [items]
        for item in items:
            if isinstance(item, str | int | float) and not isinstance(item, bool):
                word = re.sub(r"[\[\]{},]+", " ", storable(str(item))).strip().lstrip("#@").strip()
                if word and word.isprintable():
                    words[word] = None
    return tuple(words)


def text(value: Any) -> str | None:
    """Returns a value as text that a file can hold; None if it is blank, a list or an object."""
    if value is None or isinstance(value, list | dict):
        return None
    content = storable(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))
    return content if content.strip() else None


def moment_in_id(id: str) -> datetime | None:
    """Returns the time in an id such as `decision_auth_1763650800000_x1y2`."""
    match = _ID_TIME.search(id)
    return moment(int(match[1])) if match else None


def unit(value: Any) -> float | None:
    """Returns a number from 0 to 1; None for any other value."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number <= 1 else None


def data(value: Any) -> Any:
    """Returns a value as JSON-like data; None for an empty one.

    Empty texts and lists, and zeros, are the defaults of a new row. Text that is a JSON list or
    object becomes one; broken JSON stays text.
    """
    if not isinstance(value, bytes | str):
        return _plain(value) or None
    content = text(value)
    if content is None or content.strip() == "null":
        return None
    if content.lstrip()[0] not in "[{":
        return content
    try:
        return _plain(loads(content)) or None
    except DataError:
        return content


def is_short(value: Any) -> bool:
    """Returns whether a header can show the data on one readable line."""
    if isinstance(value, str):
        return len(value) <= _LONGEST and value.isprintable()
    try:
        line = flow(value)
    except Invalid:  # nested too deep for a header
        return False
    return len(line) <= _LONGEST and "\\n" not in line


def prose(value: Any) -> str:
    """Returns data as Markdown: text as it is, a list as bullets, a conversation by speakers."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if all(isinstance(item, str) for item in value):
            return bullets(value)
        if all(map(_is_turn, value)):
            return "\n\n".join(f"**{item['role']}:** {item['content']}" for item in value)
    return fenced(json.dumps(value, ensure_ascii=False, indent=2), "json")


def _is_turn(item: Any) -> bool:
    is_object = isinstance(item, dict) and item.keys() == {"role", "content"}
    return is_object and all(isinstance(part, str) for part in item.values())


def fenced(code: str, language: str) -> str:
    """Returns a block of code, with a fence longer than any in the code."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def items(value: Any) -> list[str]:
    """Returns the texts of a JSON list, or a single text."""
    values = data(value)
    if not isinstance(values, list):
        values = [] if values is None else [values]
    texts = (item if isinstance(item, str) else json.dumps(item) for item in values)
    return [item for item in texts if item.strip()]


def _plain(value: Any, depth: int = 0) -> Any:
    """Returns JSON-like data as a file can hold it; raises `ValueError` if it is nested too deep.

    Infinite and huge numbers become texts.
    """
    if depth > _DEEPEST:
        raise ValueError
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(str(key)): _plain(item, depth + 1) for key, item in value.items()}
        case list():
            return [_plain(item, depth + 1) for item in value]
        case float() if not isfinite(value):
            return str(value)
        case int() if abs(value) > _LARGEST:
            return str(value)
    return value
