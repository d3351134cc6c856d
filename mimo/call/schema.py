"""JSON Schemas of the arguments and results of commands, as MCP publishes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias
from typing import get_args as args_of
from typing import get_origin as origin_of

from mimo.call import Surface
from mimo.call.spec import (
    OPERATION,
    SCALARS,
    Json,
    Param,
    Shape,
    Spec,
    fields_of,
    item_type,
    split_null,
    to_json,
)

Schema: TypeAlias = dict[str, Any]

TRUNCATED = "truncated"
"""The field of an answer that states what it lacks."""


def input_schema(specs: Sequence[Spec]) -> Schema:
    """Returns the schema of a tool's arguments: one command's, or a tool's with operations.

    The schema of a tool with operations is one flat object. Each description lists the operations
    that take the argument, those that require it, and the defaults.
    """
    return _input(specs, _FULL) | {"additionalProperties": False}


def listed_input(specs: Sequence[Spec]) -> Schema:
    """Returns the schema of a tool's arguments in the list of tools, which agents pay for.

    It has the words for agents; the arguments of each operation are in the tool's description, see
    `call_forms`. It leaves out what each reader assumes: that a switch is off, a count not too
    small, that a share is from 0 to 1. Every array has items with a type, which Gemini requires.
    """
    return _input(specs, _BRIEF)


def _input(specs: Sequence[Spec], view: _View) -> Schema:
    if specs[0].operation is None:
        (spec,) = specs
        taken = view.params(spec)
        return _object(
            {p.name: view.schema(p) | _described(view.help(p)) for p in taken},
            [p.name for p in taken if p.required or p.arg.needed],
        )
    names = [spec.operation or "" for spec in specs]
    chosen = {"type": "string", "enum": names} | _described(view.operation)
    return _object({OPERATION: chosen} | _union(specs, view), [OPERATION])


def _described(help: str) -> Schema:
    return {"description": help} if help else {}


def published(spec: Spec) -> list[Param]:
    """Returns the parameters that MCP clients see."""
    return [param for param in spec.params if Surface.MCP in param.arg.surfaces]


def _object(properties: Schema, required: list[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return schema | ({"required": required} if required else {})


def parameter_schema(param: Param) -> Schema:
    """Returns the schema of one parameter with its default and without its help."""
    schema = {"type": "object"} if param.arg.object else _shape(param.shape)
    limits = {"minimum": param.arg.ge, "maximum": param.arg.le}
    schema |= {name: limit for name, limit in limits.items() if limit is not None}
    return schema if param.default in (None, ()) else schema | {"default": to_json(param.default)}


def _shape(shape: Shape) -> Schema:
    if shape.kind == "json":
        return {}
    if shape.items:
        return {"type": "array", "items": _shape(shape.items)}
    choices = {"enum": list(shape.choices)} if shape.choices else {}
    return {"type": shape.kind} | choices


def _brief(param: Param) -> Schema:
    """Returns the schema of one parameter without what each reader assumes."""
    schema = dict(param.arg.form) if param.arg.form else parameter_schema(param)
    if not schema.get("default", True):
        del schema["default"]
    if schema.get("type") == "number" and schema.get("maximum") == 1:
        del schema["minimum"], schema["maximum"]
    if schema.get("type") == "integer":
        schema.pop("minimum", None)
        if schema.get("maximum", 0) > _ENOUGH:
            del schema["maximum"]
    return schema


_ENOUGH = 100
"""The list of tools leaves out larger limits of counts, which an error names if they matter."""


class _View(NamedTuple):
    """The parameters of a command as one reader sees them."""

    params: Callable[[Spec], list[Param]]
    schema: Callable[[Param], Schema]
    help: Callable[[Param], str]
    operation: str


_FULL = _View(published, parameter_schema, lambda param: param.arg.help, "What to do")
_BRIEF = _View(
    lambda spec: [param for param in published(spec) if param.arg.listed],
    _brief,
    lambda param: param.arg.help if param.arg.agents is None else param.arg.agents,
    "",
)


def _union(specs: Sequence[Spec], view: _View) -> Schema:
    takers: dict[str, list[tuple[str, Param]]] = {}
    for spec in specs:
        for param in view.params(spec):
            takers.setdefault(param.name, []).append((spec.operation or "", param))
    return {name: _shared(name, uses, view) for name, uses in takers.items()}


def _shared(name: str, uses: list[tuple[str, Param]], view: _View) -> Schema:
    """Returns the schema of an argument that several operations may take."""
    schemas = [view.schema(param) for _, param in uses]
    if len({str(schema.get("type")) for schema in schemas}) > 1:
        raise TypeError(f"operations take `{name}` with different types")
    common = {
        key: value
        for key, value in schemas[0].items()
        if all(schema.get(key) == value for schema in schemas)
    }
    if all("enum" in schema for schema in schemas):
        common["enum"] = list(dict.fromkeys(word for schema in schemas for word in schema["enum"]))
    if view is _BRIEF:
        helps = dict.fromkeys(view.help(param) for _, param in uses)
        return common | _described("; ".join(filter(None, helps)))
    return common | {"description": "; ".join(_phrases(uses, view, "default" in common))}


def call_forms(specs: Sequence[Spec]) -> str:
    """Returns the arguments of each operation of a tool: `delete(id), list(sort?, limit=20)`.

    The defaults are those in which the operations differ.
    """
    shared = _union(specs, _BRIEF)

    def form(param: Param) -> str:
        default = _brief(param).get("default")
        if default is None or "default" in shared[param.name]:
            return param.name if param.required else f"{param.name}?"
        return f"{param.name}={default}"

    return ", ".join(
        f"{spec.operation}({', '.join(map(form, _BRIEF.params(spec)))})" for spec in specs
    )


def _phrases(uses: list[tuple[str, Param]], view: _View, has_default: bool) -> list[str]:
    """Returns a phrase for each group of operations that describe an argument alike."""
    groups: dict[str, list[str]] = {}
    for operation, param in uses:
        schema = view.schema(param)
        default = f" (default {schema['default']})" if "default" in schema else ""
        note = " (required)" if param.required else "" if has_default else default
        help = view.help(param)
        groups.setdefault((f": {help}" if help else "") + note, []).append(operation)
    return [f"{', '.join(operations)}{help}" for help, operations in groups.items()]


def output_schema(specs: Sequence[Spec]) -> Schema:
    """Returns the schema of a tool's result, which is always an object.

    The schema of a tool with operations has the fields of all; those in every result are required.
    """
    schemas = [_value(spec.result) for spec in specs]
    if any(schema.get("type") != "object" or "properties" not in schema for schema in schemas):
        raise TypeError(f"`{specs[0].name}` must answer with a dataclass")
    merged = schemas[0]
    for variant in schemas[1:]:
        merged = _merge(merged, variant)
    return merged


def listed_output(specs: Sequence[Spec]) -> Schema | None:
    """Returns the schema of a tool's answer in the list of tools: the names of all its fields.

    Most tools have none: models are not given it, and read the names in the answer.
    """
    if not all(spec.lists_output for spec in specs):
        return None
    names = [*output_schema(specs)["properties"], TRUNCATED]
    return _object({name: {} for name in names}, [])


def _value(annotation: Any) -> Schema:
    inner, nullable = split_null(annotation)
    schema = _type(inner)
    if not nullable or "type" not in schema:
        return schema
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return schema | {"type": [schema["type"], "null"]} | choices


def _type(inner: Any) -> Schema:
    if inner is Json:
        return {}
    if inner in SCALARS:
        return {"type": SCALARS[inner]}
    if inner is datetime:
        return {"type": "string", "format": "date-time"}
    if origin_of(inner) is Literal:
        return {"type": "string", "enum": list(args_of(inner))}
    if isinstance(inner, type) and issubclass(inner, StrEnum):
        return {"type": "string", "enum": [member.value for member in inner]}
    if isinstance(inner, type) and is_dataclass(inner):
        return _record(inner)
    if origin_of(inner) is dict and args_of(inner)[0] is str:
        return {"type": "object", "additionalProperties": _value(args_of(inner)[1])}
    if item := item_type(inner):
        return {"type": "array", "items": _value(item[0])}
    raise TypeError(f"a command can't answer with {inner!r}")


@cache  # Schemas are put together, and never changed.
def _record(cls: type) -> Schema:
    properties: Schema = {}
    for field in fields_of(cls):
        inner = split_null(field.type)[0] if field.omit else field.type
        help = {"description": field.help} if field.help else {}
        properties[field.name] = _value(inner) | help
    required = [f.name for f in fields_of(cls) if not f.omit and f.usual is None]
    return _object(properties, required)


def _merge(left: Schema, right: Schema) -> Schema:
    """Returns a schema that accepts everything that either of two schemas accepts."""
    if left == right:
        return left
    types = [_types(left), _types(right)]
    kinds = [
        (set(kind) - {"null"}, "properties" in schema)
        for kind, schema in zip(types, (left, right), strict=True)
    ]
    if kinds[0] != kinds[1]:
        raise TypeError(f"operations answer with one field of two types: {left} and {right}")
    merged = {key: value for key, value in left.items() if right.get(key) == value}
    union = list(dict.fromkeys([*types[0], *types[1]]))
    merged["type"] = union if len(union) > 1 else union[0]
    if "items" in left:
        merged["items"] = _merge(left["items"], right["items"])
    if "properties" in left:
        merged = _merge_properties(left, right) | {"type": merged["type"]}
    return merged


def _merge_properties(left: Schema, right: Schema) -> Schema:
    fields, extras = left["properties"], right["properties"]
    shared = {name: _merge(fields[name], extras[name]) for name in fields.keys() & extras.keys()}
    required = [name for name in left.get("required", ()) if name in right.get("required", ())]
    return _object(fields | extras | shared, required)


def _types(schema: Schema) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else list(types)
