"""Values with `{{name}}` in them -> values filled in from the context of a run."""

import re
from collections.abc import Mapping
from typing import Any

from mimo.domain.procedures.outcome import Refused

_PLACE = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")
OWN = "run"
"""`{{run.id}}`, `{{run.name}}`, `{{run.state}}`, `{{run.error}}` are the run's own."""


def filled(value: Any, context: Mapping[str, Any]) -> Any:
    """Returns a value with every `{{name}}` in its texts replaced; names may be dotted.

    A text that is one place and nothing else becomes what stands there, whatever its type.
    Raises `Refused` where there is nothing of that name.
    """
    if isinstance(value, str):
        return _text(value, context)
    if isinstance(value, dict):
        return {key: filled(item, context) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [filled(item, context) for item in value]
    return value


def _text(text: str, context: Mapping[str, Any]) -> Any:
    if whole := _PLACE.fullmatch(text.strip()):
        return found(whole[1], context)
    return _PLACE.sub(lambda place: spelled(found(place[1], context)), text)


def found(name: str, context: Mapping[str, Any]) -> Any:
    """Returns what a dotted name means in the context. Raises `Refused` where there is nothing."""
    value: Any = context
    if name in context:
        return context[name]
    for part in name.split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            raise Refused(f"`{{{{{name}}}}}` is not in the context")
    return value


def spelled(value: Any) -> str:
    """Returns a value within a text: texts as they are, anything else as JSON."""
    if isinstance(value, str):
        return value
    import json

    return json.dumps(value, ensure_ascii=False)
