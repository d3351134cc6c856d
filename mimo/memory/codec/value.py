"""A value <-> its file: scalars and mappings in the header if they read well, else fenced JSON.

A value is read exactly as it was written: `1` is not `1.0`, and keys keep their order. A value that
YAML would change is written as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from mimo.data.loads import MAX_DEPTH, DataError, levels, loads
from mimo.errors import Invalid
from mimo.memory.codec import front_matter
from mimo.memory.codec.document import Document, Unreadable
from mimo.memory.codec.file import read_document

FORMAT = 1
"""The `format` of a file without that key in its header."""
MAX_BYTES = 1024 * 1024
"""Largest value, as compact JSON."""
MAX_FILE_BYTES = 8 * MAX_BYTES
"""Largest file: the JSON of a large value may have been indented by hand."""

_KEYS = ("namespace", "key", "value")
_LONGEST_HEADER = 16 * 1024
"""Most bytes of a value in the header, and of the other keys beside it."""
_OPENING = re.compile(r"^```(?:json)?[ \t]*\r?\n", re.MULTILINE)
_CLOSING = re.compile(r"^```[ \t]*$", re.MULTILINE)


def packed(value: Any) -> str:
    """Returns a value as compact JSON.

    Raises `Invalid` for data that is not JSON, or is nested too deep for other readers.
    """
    if levels(value) > MAX_DEPTH:
        raise _wrong(f"nested deeper than {MAX_DEPTH}")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        raise _wrong("text with halves of characters") from None
    except (TypeError, ValueError):
        raise _wrong("not JSON, or a number too large to write") from None
    return text


def render(
    namespace: str, key: str, value: Any, extra: Mapping[str, Any] = MappingProxyType({})
) -> bytes:
    """Returns the file of a value that `packed` has accepted.

    `extra` are further keys of its header. Raises `Invalid` if they could not be read again.
    """
    header = front_matter.emitted_lines({"namespace": namespace, "key": key, **extra})
    is_short = len(header.encode()) <= _LONGEST_HEADER
    if is_short and (lines := _as_yaml(value)) is not None:
        data = f"---\n{header}{lines}---\n".encode()
    else:
        text = json.dumps(value, ensure_ascii=False, indent=2)
        if len(text) > _LONGEST_HEADER:
            text = packed(value)
        data = f"---\n{header}---\n```json\n{text}\n```\n".encode()
    if extra:
        _check_header(data, extra)
    return data


def parse(data: bytes) -> tuple[str | None, str | None, Any]:
    """Returns the namespace and key in the header, if any, and the value.

    Raises `Unreadable`, also if a later version of mind wrote the file.
    """
    document, header = read_document(data, MAX_FILE_BYTES)
    if type(number := header.get("format")) is int and number > FORMAT:
        problem = f"the value has format {number}; this mind writes format {FORMAT}"
        raise Unreadable(f"{problem}; update mind", 1)
    names = [header.get(name) for name in ("namespace", "key")]
    for name, text in zip(("namespace", "key"), names, strict=True):
        if text is not None and not isinstance(text, str | int | float):
            raise Unreadable(f"`{name}` must be a name", 1)
    namespace, key = (None if text is None else str(text) for text in names)
    fences = list(_fences(document.body))
    if len(fences) + ("value" in header) != 1:
        raise Unreadable(
            "needs one value: `value:` in the header, or one ```json block below it", 1
        )
    return namespace, key, header["value"] if "value" in header else _fenced(document, *fences[0])


def other_keys(data: bytes) -> dict[str, Any]:
    """Returns the keys of the header that are not mind's. Raises `Unreadable`."""
    _, header = read_document(data, MAX_FILE_BYTES)
    return {key: value for key, value in header.items() if key not in _KEYS}


def _check_header(data: bytes, extra: Mapping[str, Any]) -> None:
    """Raises `Invalid` unless a file has these other keys: they may be longer than before."""
    try:
        if other_keys(data) == extra:
            return
        reason = "they would be read differently"
    except Unreadable as error:
        reason = error.reason
    raise Invalid(
        f"the other keys in the header of the value's file can't be written again: {reason}",
        hint="shorten them, or remove them from the file; nothing was changed",
    )


def exactly(value: Any, reference: Any) -> bool:
    """Returns whether two JSON values are the same: `1` is neither `1.0` nor `true`."""
    return json.dumps(value) == json.dumps(reference)


def _as_yaml(value: Any) -> str | None:
    """Returns a value as lines of a header, or None if it reads better as JSON."""
    if isinstance(value, list) or value == {}:
        return None
    try:
        lines = "\n".join(_lines("value", value, "")) + "\n"
        if len(lines.encode()) > _LONGEST_HEADER:
            return None
        read = front_matter.load_flat(lines) or front_matter.read(lines).data
    except (Invalid, Unreadable, front_matter.NotAMapping):
        return None
    return lines if exactly(read, {"value": value}) else None


def _lines(key: str, value: Any, pad: str) -> list[str]:
    if not isinstance(value, dict) or not value:
        return [f"{pad}{front_matter.scalar(key)}: {front_matter.flow(value)}"]
    nested = [line for name, item in value.items() for line in _lines(name, item, pad + "  ")]
    return [f"{pad}{front_matter.scalar(key)}:", *nested]


def _fences(body: str) -> Iterator[tuple[int, int]]:
    """Yields the start and end of the text of each block; a single pattern takes quadratic time."""
    end = 0
    while (opening := _OPENING.search(body, end)) and (
        closing := _CLOSING.search(body, opening.end())
    ):
        yield opening.end(), closing.start()
        end = closing.end()


def _fenced(document: Document, begin: int, end: int) -> Any:
    start = document.body_line + document.body.count("\n", 0, begin)
    try:
        return loads(document.body[begin:end], exact=True)
    except DataError as error:
        raise Unreadable(f"not JSON: {error.reason}", start + (error.line or 1) - 1) from None


def _wrong(what: str) -> Invalid:
    return Invalid(
        f"`value` can't be stored: {what}",
        hint="values are JSON: text, numbers, true, false, null, lists and objects",
        details={"field": "value"},
    )
