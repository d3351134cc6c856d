"""What was typed, or piped in -> arguments as `invoke` takes them."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mimo.commands.spec import Param
from mimo.commands.types import Shape
from mimo.errors import Invalid

NAMED = "__named"
"""Ends the name of an option that gives a positional parameter."""


def gathered(params: list[Param], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments by their published names, as far as any were given."""
    found = {}
    for param in params:
        typed = _given(param, given)
        value = _gathered(param, typed)
        is_null = param.required and param.shape.kind == "json" and typed not in (None, "-")
        if value is None and param.arg.fallback and given.get(param.arg.fallback[0]):
            value = param.arg.fallback[1]
        if value is not None or is_null:
            found[param.name] = value
    return found


def _given(param: Param, given: Mapping[str, Any]) -> Any:
    """Returns what was typed, by place or by name; raises `Invalid` where it is both."""
    by_place, by_name = given.get(param.attribute), given.get(f"{param.attribute}{NAMED}")
    if by_place is not None and by_name is not None:
        raise Invalid(f"`{param.name}` is given twice", details={"field": param.name})
    return by_place if by_name is None else by_name


def _gathered(param: Param, value: Any) -> Any:
    if param.arg.words and param.positional and not param.shape.items:
        value = " ".join(value) if value else None
    if param.shape.items:
        items = param.shape.items
        return [converted(items, item) for item in value] if value else None
    if param.arg.many:
        several = [converted(param.shape, item) for item in value or ()]
        return several if len(several) > 1 else next(iter(several), None)
    if param.arg.stdin and (value == "-" or (value is None and param.required and _is_piped())):
        return _read_in(param)
    if param.arg.file and value is not None:
        return _standard_input() if value == "-" else _file_text(value)
    return None if value is None else converted(param.shape, value)


def converted(shape: Shape, text: Any) -> Any:
    """Returns typed text as the value that it spells, or as it is where it spells none."""
    if not isinstance(text, str) or shape.kind in ("string", "boolean"):
        return text
    if shape.kind == "json":
        return parsed(text)
    for number in (int, float) if shape.kind == "number" else (int,):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def parsed(text: str) -> Any:
    """Returns JSON where the text is JSON, and the text itself otherwise."""
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _file_text(name: str) -> str:
    """Returns the text of a file that was named in the place of the text itself."""
    try:
        return Path(name).read_text("utf-8", "replace")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no name of a file"
        raise Invalid(
            f"`{name}` can't be read: {reason.lower()}", hint="name a file, or - for standard input"
        ) from None


def _read_in(param: Param) -> Any:
    text = _standard_input()
    return parsed(text) if text and param.shape.kind == "json" else text or None


def _is_piped() -> bool:
    return sys.stdin is not None and not sys.stdin.isatty()


def _standard_input() -> str:
    """Returns the text on standard input without its last line end."""
    if sys.stdin is None:
        return ""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Invalid(
            "standard input is not text in UTF-8", hint="convert it first, for example with iconv"
        ) from None
