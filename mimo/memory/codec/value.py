"""A value and its file: scalars and mappings in the header, where they read well, else JSON.

What is read is exactly what was written: `1` is not `1.0`, and keys keep their order. What YAML
would not give back so stands as JSON in a fence.
"""

import json
import re
from typing import Any

from mimo.errors import Invalid
from mimo.memory.codec import front_matter
from mimo.memory.codec.document import Document, Unreadable
from mimo.memory.codec.file import read_document

MAX_BYTES = 1024 * 1024
"""Largest value, as compact JSON."""
MAX_DEPTH = 100
MAX_FILE_BYTES = 8 * MAX_BYTES
"""Largest file: somebody may have indented the JSON of a large value."""

_LONGEST_HEADER = 16 * 1024
_FENCE = re.compile(r"^```(?:json)?[ \t]*\r?\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def packed(value: Any) -> str:
    """Returns a value as compact JSON.

    Raises `Invalid` for what is no JSON, or nested too deep to be read everywhere.
    """
    if _depth(value) > MAX_DEPTH:
        raise _wrong(f"nested deeper than {MAX_DEPTH}")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        raise _wrong("text with halves of characters") from None
    except (TypeError, ValueError):
        raise _wrong("no JSON, or holds a number too large to write") from None
    return text


def render(namespace: str, key: str, value: Any) -> bytes:
    """Returns the file of a value that `packed` has accepted."""
    header = front_matter.emitted_lines({"namespace": namespace, "key": key})
    if (told := _as_yaml(value)) is not None:
        return f"---\n{header}{told}---\n".encode()
    text = json.dumps(value, ensure_ascii=False, indent=2)
    if len(text) > _LONGEST_HEADER:
        text = packed(value)
    return f"---\n{header}---\n```json\n{text}\n```\n".encode()


def parse(data: bytes) -> tuple[str | None, str | None, Any]:
    """Returns namespace and key, as far as the header tells them, and the value.

    Raises `Unreadable`.
    """
    document, header = read_document(data, MAX_FILE_BYTES)
    said = [header.get(name) for name in ("namespace", "key")]
    for name, text in zip(("namespace", "key"), said, strict=True):
        if text is not None and not isinstance(text, str | int | float):
            raise Unreadable(f"`{name}` must be a name", 1)
    namespace, key = (None if text is None else str(text) for text in said)
    fences = list(_FENCE.finditer(document.body))
    if len(fences) + ("value" in header) != 1:
        raise Unreadable(
            "needs one value: `value:` in the header, or one ```json block below it", 1
        )
    return namespace, key, header["value"] if "value" in header else _fenced(document, fences[0])


def exactly(one: Any, other: Any) -> bool:
    """Returns whether two JSON values are the same: `1` is neither `1.0` nor `true`."""
    return json.dumps(one) == json.dumps(other)


def _as_yaml(value: Any) -> str | None:
    """Returns a value as lines of a header, or None where it reads better as JSON."""
    if isinstance(value, list) or value == {}:
        return None
    try:
        told = "\n".join(_lines("value", value, "")) + "\n"
        if len(told) > _LONGEST_HEADER:
            return None
        read = front_matter.load_flat(told) or front_matter.read(told).data
    except (Invalid, Unreadable, front_matter.NotAMapping):
        return None
    return told if exactly(read, {"value": value}) else None


def _lines(key: str, value: Any, pad: str) -> list[str]:
    if not isinstance(value, dict) or not value:
        return [f"{pad}{front_matter.scalar(key)}: {front_matter.flow(value)}"]
    nested = [line for name, item in value.items() for line in _lines(name, item, pad + "  ")]
    return [f"{pad}{front_matter.scalar(key)}:", *nested]


def _fenced(document: Document, fence: re.Match[str]) -> Any:
    start = document.body_line + document.body.count("\n", 0, fence.start(1))
    try:
        return json.loads(fence[1], parse_constant=_refuse, object_pairs_hook=_pairs)
    except json.JSONDecodeError as error:
        raise Unreadable(f"no JSON: {error.msg}", start + error.lineno - 1) from None
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"no JSON: {error}", start) from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key appears twice")
    return found


def _refuse(word: str) -> Any:
    raise ValueError(f"`{word}` is no number of JSON")


def _depth(value: Any) -> int:
    """Returns how deep a value is nested, as far as that matters; it may be too deep to walk."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        inner = [one for one in level if isinstance(one, dict | list)]
        level = [item for one in inner for item in (one.values() if isinstance(one, dict) else one)]
        depth += bool(inner)
    return depth


def _wrong(what: str) -> Invalid:
    return Invalid(
        f"`value` can't be stored: {what}",
        hint="values are JSON: text, numbers, true, false, null, lists and objects",
        details={"field": "value"},
    )
