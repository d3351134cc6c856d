"""Arguments as agents often write them -> as the published schema has them.

A value or a name is changed only if it can mean one thing: `"5"` where a number belongs, `8443`
where a text belongs, `"red, blue"` for a list of tags, `content` for the only text of an insight.
An optional argument that is a blank text or an empty list counts as absent: agents fill in what
they do not need. Everything else stays as it is, so that `decode` refuses it and names the nearest
argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

from mimo.call import Surface
from mimo.call.arguments import EMPTY, choice, snake_case
from mimo.call.spec import Param, Shape, Spec, from_json
from mimo.errors import Invalid

_TEXTS = ("content", "text")
_OTHER_NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "save/decision": {
        "decision": _TEXTS,
        "reasoning": ("reason", "rationale", "why"),
    },
    "save/checkpoint": {"summary": _TEXTS, "open_files": ("files",)},
    "save/insight": {"insight": (*_TEXTS, "lesson")},
    "evolve/outcome": {"outcome": ("result", "status")},
    "evolve/supersede": {"decision": _TEXTS},
    "memory": {"content": ("text", "fact")},
    "mind_add": {"content": ("text", "memory")},
    "mind_edges": {"intent": ("task", "query")},
    "mind_add_global_edge": {"stack_tags": ("stack",)},
    "search/by_topic": {"topic": ("query",)},
}
"""Other names of arguments: tool -> argument -> names."""

_OF_EVERY_TOOL: Mapping[str, tuple[str, ...]] = {
    "query": ("q", "question", "text"),
    "limit": ("count", "max_results", "n", "top_k"),
    "from_date": ("since", "start_date"),
    "to_date": ("until", "end_date"),
    "id": ("memory_id",),
}
"""Other names of arguments that several tools have."""

_UNSURE = frozenset({("mind_undo", "limit")})
"""Arguments without other names: `count` of an undo may be the number of changes to undo."""

_PERIOD, _DAYS = "time_filter", "days"
"""`days` is a number; the argument for it is a phrase."""

_INTEGER = re.compile(r"[-+]?\d{1,18}")
_NUMBER = re.compile(r"[-+]?(\d{1,18}\.?\d{0,18}|\.\d{1,18})([eE][-+]?\d{1,3})?")
_QUOTED_LIST = r"\[\s*'[^',]*'(?:\s*,\s*'[^',]*')*\s*\]"
"""A list as Python writes it."""
_TRUTH = {"true": True, "false": False}


def understood(spec: Spec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments with the names and the types of the published schema, where it is sure.

    Raises `Invalid` if two names of one argument are given, or a part of JSON would be lost.
    """
    params = {param.name: param for param in spec.params if Surface.MCP in param.arg.surfaces}
    named: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for key, typed in arguments.items():
        name, value = _named(spec, params, key, typed)
        bare = value.strip() if isinstance(value, str) else value
        if name in params and not params[name].required and bare in EMPTY:
            value = None
        if name in origins and None not in (value, named[name]) and value != named[name]:
            raise Invalid(
                f"`{origins[name]}` and `{key}` are names of the same argument",
                hint=f"give `{name}` alone",
                details={"field": name},
            )
        if name not in origins or value is not None:
            named[name], origins[name] = value, key
    return {
        name: _value(params[name], value) if name in params else value
        for name, value in named.items()
    }


def _named(spec: Spec, params: Mapping[str, Param], key: str, value: Any) -> tuple[str, Any]:
    """Returns an argument by its published name, or as it was given if that is not sure."""
    for param in params.values():
        if key in (param.name, *param.aliases):
            return param.name, value
    if key == _DAYS and _PERIOD in params:
        days = _scalar(Shape(kind="integer"), value)
        if isinstance(days, int) and not isinstance(days, bool) and days > 0:
            return _PERIOD, f"last {days} days"
    snake = snake_case(key)
    synonyms = _OTHER_NAMES.get(spec.name, {})
    plural = f"{snake}s"  # `tag` may mean `tags` or, if a tool has both, `add_tags`.
    meant = {
        name
        for name, param in params.items()
        if snake in (name, *param.aliases, *synonyms.get(name, ()))
        or (param.shape.items and f"_{name}".endswith(f"_{plural}") and plural in params)
    } or {
        name
        for name in params
        if snake in _OF_EVERY_TOOL.get(name, ()) and (spec.name, name) not in _UNSURE
    }
    return (meant.pop(), value) if len(meant) == 1 else (key, value)


def _value(param: Param, value: Any) -> Any:
    """Returns a value in the type of the schema, or as it is if that is not sure."""
    shape = param.shape
    if value is None:
        return None
    if shape.items:
        listed = _parsed(value, list)
        if not isinstance(listed, list | tuple):
            listed = _split(param, listed)
        if param.default == ():  # For others, an empty item may remove all.
            listed = [item for item in listed if item not in EMPTY]
        is_json = shape.items.kind == "json"
        return [_parsed(item, dict) if is_json else _scalar(shape.items, item) for item in listed]
    if shape.kind != "json":
        return _scalar(shape, value)
    if param.arg.object:
        return _parsed(value, dict)
    return _parsed(value, list) if param.arg.many else value


def _split(param: Param, value: Any) -> list[Any]:
    """Returns the items of a list that was given as one value."""
    is_paths = param.arg.complete == "path"
    if not isinstance(value, str) or not (is_paths or param.has_words):
        return [value]
    parts = re.split(r",\s+|\n" if is_paths else r"[,\n]", value)
    return [item for part in parts if (item := part.strip())]


def _scalar(shape: Shape, value: Any) -> Any:
    """Returns the text, number or truth value that another type spells, or the value itself."""
    if shape.kind == "string":
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            return str(value)
        return choice(value, shape.choices) if shape.choices else value
    if not isinstance(value, str):
        return value
    text = value.strip()
    if shape.kind in ("integer", "number") and _INTEGER.fullmatch(text):
        return int(text)
    if shape.kind in ("integer", "number") and _NUMBER.fullmatch(text):
        return float(text)
    return _TRUTH.get(text.lower(), value) if shape.kind == "boolean" else value


def _parsed(value: Any, expected_type: type) -> Any:
    """Returns the list or the object that a JSON text holds, or the value itself."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    if expected_type is list and re.fullmatch(_QUOTED_LIST, value.strip()):
        return re.findall("'([^']*)'", value)
    data = from_json(value)
    return data if isinstance(data, expected_type) else value
