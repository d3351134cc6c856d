"""Items of other frameworks: JSON objects under a key in a namespace, each of them a memory.

So searches find an item by words and by meaning, and people read it as Markdown: a lone `content`
is the text of the file, any other value is a block of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from mimo.api import (
    Invalid,
    Record,
    disk,
    document,
    files,
    frozen,
    ids,
    iso_utc,
    loads_or_none,
    phrases,
    read_moment,
    secrets_in,
)

TAG = "item"
"""The tag of every item, by which lists and searches leave out other memories."""
_HEADER = "item"
"""The key of the header that has namespace and key."""
_UPDATED = "updated"
_FENCE, _END = "```json\n", "\n```"
_TITLE = 80
_DIGEST = 16


@frozen
class Item:
    """An item as a framework has it."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    created: datetime
    updated: datetime
    is_searched: bool = True
    """False if its framework does not want searches to find it."""


def place_of(namespace: Sequence[str], key: str, *, private: bool) -> str:
    """Returns the file of an item. Raises `Invalid` for a name that can't be one."""
    if not namespace or not all(namespace) or not key:
        raise Invalid("an item needs a namespace of at least one label, and a key")
    name = json.dumps([*namespace, key])
    digest = disk.sha256(name.encode()).hex()[:_DIGEST]
    words = f"{namespace[-1]} {key}"
    words = ids.slug(words) if not secrets_in(words) else ""
    stem = f"{words}-{digest}" if words and not ids.holds_secret(words) else digest
    return f"{files.PRIVATE if private else f'{disk.STORE}/'}items/{stem}.md"


def fields_of(item: Item, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the text, title and header of an item's memory, whose header has `extra`.

    Raises `Invalid` for a value that is not JSON.
    """
    header: dict[str, Any] = {"namespace": list(item.namespace), "key": item.key}
    if not item.is_searched:
        header["searched"] = False
    extra = {**extra, _HEADER: header}
    if item.updated > item.created:
        extra[_UPDATED] = iso_utc(item.updated)
    title = _title(item.value) or item.key
    return {"content": _text(item.value), "title": title, "extra": extra}


def _text(value: Mapping[str, Any]) -> str:
    if len(value) == 1 and isinstance(text := value.get("content"), str) and _is_plain(text):
        return text
    try:
        return f"{_FENCE}{json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)}{_END}"
    except (TypeError, ValueError) as error:
        raise Invalid(f"the value of an item must be JSON: {error}") from None


def _is_plain(text: str) -> bool:
    """Returns whether a file gives back a text exactly as it is."""
    is_trimmed = bool(text.strip()) and document.trim(text) == text
    return is_trimmed and not ({"\r", "\0"} & set(text)) and not text.startswith(_FENCE)


def _title(value: Any) -> str | None:
    """Returns the beginning of the longest text in a value; None without one."""
    texts = [" ".join(text.split()) for text in _texts(value)]
    return phrases.cut(max(texts, key=len), _TITLE) or None if texts else None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


def item_of(record: Record) -> Item | None:
    """Returns the item in a memory; None if it is another memory."""
    memory = record.memory
    header = memory.extra.get(_HEADER)
    if not isinstance(header, Mapping):
        return None
    namespace, key = header.get("namespace"), header.get("key")
    if not isinstance(namespace, list) or not namespace or key is None:
        return None
    updated = read_moment(str(memory.extra.get(_UPDATED, "")))
    return Item(
        namespace=tuple(map(str, namespace)),
        key=str(key),
        value=_value(memory.content),
        created=memory.created,
        updated=updated or memory.created,
        is_searched=header.get("searched") is not False,
    )


def _value(content: str) -> dict[str, Any]:
    """Returns the value in a text; a person may have changed it, so any text is one."""
    if content.startswith(_FENCE) and content.endswith(_END):
        value = loads_or_none(content[len(_FENCE) : -len(_END)])
        if isinstance(value, dict):
            return value
    return {"content": content}


def matches(value: Any, condition: Any) -> bool:
    """Returns whether a value meets a filter: equal, or by the operators `$eq` to `$lte`.

    A value that can't be compared with that of an operator does not meet it. Raises `Invalid` for
    an unknown operator.
    """
    if isinstance(condition, Mapping):
        if any(name.startswith("$") for name in condition):
            return all(_compared(value, name, operand) for name, operand in condition.items())
        return isinstance(value, Mapping) and all(
            matches(value.get(name), operand) for name, operand in condition.items()
        )
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(condition)
            and all(map(matches, value, condition))
        )
    return bool(value == condition)


def _compared(value: Any, operator: str, operand: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return (value == operand) is (operator == "$eq")
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise Invalid(f"`{operator}` is not an operator of filters")
    try:
        value, operand = float(value), float(operand)
    except (TypeError, ValueError, OverflowError):
        return False
    if value == operand:
        return operator in ("$gte", "$lte")
    return (value > operand) is operator.startswith("$gt")
