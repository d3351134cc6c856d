"""Whether a value is of a type, as rules and schemas name types."""

from typing import Any

NUMBERS = (int, float)
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "float": (float,),
    "number": NUMBERS,
    "boolean": (bool,),
    "list": (list,),
    "array": (list,),
    "map": (dict,),
    "object": (dict,),
    "null": (type(None),),
}


def is_of(value: Any, kind: str) -> bool:
    """Returns whether a value is of the type with that name; true is no number."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, TYPES[kind])


def is_number(value: Any) -> bool:
    """Returns whether a value can be compared with numbers."""
    return isinstance(value, NUMBERS) and not isinstance(value, bool)
