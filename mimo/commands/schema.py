"""JSON Schemas of arguments and results, and the encoder of results."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum
from functools import cache
from math import isfinite
from typing import Any, Literal, NamedTuple, TypeAlias
from typing import get_args as args_of
from typing import get_origin as origin_of

from mimo.commands.spec import (
    SCALARS,
    Json,
    Out,
    Param,
    Shape,
    Spec,
    Surface,
    item_type,
    notes_of,
    split_null,
)

Schema: TypeAlias = dict[str, Any]

OPERATION = "operation"
"""The argument that chooses among the operations of a tool."""


def input_schema(specs: Sequence[Spec]) -> Schema:
    """Returns the schema of a tool's arguments: one command's, or a tool's with operations.

    The schema of a tool with operations is one flat object. Each description lists the operations
    that take the argument, those that require it, and the defaults.
    """
    if specs[0].operation is None:
        (spec,) = specs
        taken = {param.name: _argument(param) for param in published(spec)}
        return _object(taken, [param.name for param in published(spec) if param.required])
    names = [spec.operation or "" for spec in specs]
    chosen = {"type": "string", "enum": names, "description": "What to do"}
    return _object({OPERATION: chosen} | _union(specs), [OPERATION])


def published(spec: Spec) -> list[Param]:
    """Returns the parameters that MCP clients see."""
    return [param for param in spec.params if Surface.MCP in param.arg.surfaces]


def _object(properties: Schema, required: list[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return schema | ({"required": required} if required else {}) | {"additionalProperties": False}


def _argument(param: Param) -> Schema:
    return parameter_schema(param) | {"description": param.arg.help}


def parameter_schema(param: Param) -> Schema:
    """Returns the schema of one parameter with its default and without its help."""
    return _parameter(param) | _default(param)


def _parameter(param: Param) -> Schema:
    schema = {"type": "object"} if param.arg.object else _shape(param.shape)
    limits = {"minimum": param.arg.ge, "maximum": param.arg.le}
    return schema | {name: limit for name, limit in limits.items() if limit is not None}


def _shape(shape: Shape) -> Schema:
    if shape.kind == "json":
        return {}
    if shape.items:
        return {"type": "array", "items": _shape(shape.items)}
    choices = {"enum": list(shape.choices)} if shape.choices else {}
    return {"type": shape.kind} | choices


def _union(specs: Sequence[Spec]) -> Schema:
    takers: dict[str, list[tuple[str, Param]]] = {}
    for spec in specs:
        for param in published(spec):
            takers.setdefault(param.name, []).append((spec.operation or "", param))
    return {name: _shared(name, uses) for name, uses in takers.items()}


def _shared(name: str, uses: list[tuple[str, Param]]) -> Schema:
    """Returns the schema of an argument that several operations may take."""
    schemas = [parameter_schema(param) for _, param in uses]
    if len({str(schema.get("type")) for schema in schemas}) > 1:
        raise TypeError(f"operations take `{name}` with different types")
    common = {
        key: value
        for key, value in schemas[0].items()
        if all(schema.get(key) == value for schema in schemas)
    }
    if all("enum" in schema for schema in schemas):
        common["enum"] = list(dict.fromkeys(word for schema in schemas for word in schema["enum"]))
    return common | {"description": "; ".join(_phrases(uses, "default" in common))}


def _phrases(uses: list[tuple[str, Param]], has_default: bool) -> list[str]:
    """Returns a phrase for each group of operations that describe an argument alike."""
    groups: dict[str, list[str]] = {}
    for operation, param in uses:
        default = "".join(f" (default {word})" for word in _default(param).values())
        note = " (required)" if param.required else "" if has_default else default
        groups.setdefault(param.arg.help + note, []).append(operation)
    return [f"{', '.join(operations)}: {help}" for help, operations in groups.items()]


def _default(param: Param) -> Schema:
    return {} if param.default in (None, ()) else {"default": to_json(param.default)}


def output_schema(specs: Sequence[Spec]) -> Schema:
    """Returns the schema of a tool's result, which is always an object.

    The schema of a tool with operations has the fields of all; those in every result are required.
    """
    schemas = [_value(spec.result) for spec in specs]
    if any(schema.get("type") != "object" or "properties" not in schema for schema in schemas):
        raise TypeError(f"`{specs[0].name}` must answer with a dataclass")
    merged = schemas[0]
    for other in schemas[1:]:
        merged = _merge(merged, other)
    return merged


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
    return _container(inner)


def _container(inner: Any) -> Schema:
    if origin_of(inner) is dict and args_of(inner)[0] is str:
        return {"type": "object", "additionalProperties": _value(args_of(inner)[1])}
    if item := item_type(inner):
        return {"type": "array", "items": _value(item[0])}
    raise TypeError(f"a command can't answer with {inner!r}")


def _record(cls: type) -> Schema:
    properties: Schema = {}
    for field in fields_of(cls):
        inner = split_null(field.type)[0] if field.omit else field.type
        help = {"description": field.help} if field.help else {}
        properties[field.name] = _value(inner) | help
    required = [field.name for field in fields_of(cls) if not field.omit]
    return _object(properties, required)


def _merge(first: Schema, other: Schema) -> Schema:
    """Returns a schema that accepts everything that either of two schemas accepts."""
    if first == other:
        return first
    types = [_types(first), _types(other)]
    kinds = [
        (set(kind) - {"null"}, "properties" in schema)
        for kind, schema in zip(types, (first, other), strict=True)
    ]
    if kinds[0] != kinds[1]:
        raise TypeError(f"operations answer with one field of two types: {first} and {other}")
    merged = {key: value for key, value in first.items() if other.get(key) == value}
    union = list(dict.fromkeys([*types[0], *types[1]]))
    merged["type"] = union if len(union) > 1 else union[0]
    if "items" in first:
        merged["items"] = _merge(first["items"], other["items"])
    if "properties" in first:
        merged = _merge_properties(first, other) | {"type": merged["type"]}
    return merged


def _merge_properties(first: Schema, other: Schema) -> Schema:
    fields, others = first["properties"], other["properties"]
    shared = {name: _merge(fields[name], others[name]) for name in fields.keys() & others.keys()}
    required = [name for name in first.get("required", ()) if name in other.get("required", ())]
    return _object(fields | others | shared, required)


def _types(schema: Schema) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else list(types)


class Published(NamedTuple):
    """A published field of a result."""

    attribute: str
    name: str
    type: Any
    help: str
    omit: bool


@cache
def fields_of(cls: type) -> tuple[Published, ...]:
    """Returns the published fields of a result's dataclass, in order."""
    return tuple(_published(field.name, field.type) for field in fields(cls))


def _published(attribute: str, annotation: Any) -> Published:
    notes = notes_of(annotation)
    outs = [note for note in notes if isinstance(note, Out)]
    helps = [*(note for note in notes if isinstance(note, str)), *(out.help for out in outs)]
    wire = next((out.wire for out in outs if out.wire), attribute)
    omit = any(out.omit for out in outs)
    return Published(attribute, wire, annotation, next(filter(None, helps), ""), omit)


def to_json(value: Any) -> Any:
    """Returns a result as plain JSON data: dataclasses as objects, times as ISO 8601 UTC with `Z`.

    Raises `ValueError` for an infinite number and for a time without a zone, `TypeError` for a type
    that a result may not have.
    """
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return _encodable(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, datetime):
        return _timestamp(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return _members(value)


def _members(value: Any) -> Schema:
    members = {}
    cls: Any = type(value)
    for field in fields_of(cls):
        member = getattr(value, field.attribute)
        if member is not None or not field.omit:
            members[field.name] = to_json(member)
    return members


def _encodable(text: str) -> str:
    """Returns the text without lone surrogates, which come from undecodable file names."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _finite(number: float) -> float:
    if not isfinite(number):
        raise ValueError("JSON has no infinite numbers")
    return number


def _timestamp(time: datetime) -> str:
    if time.tzinfo is None:
        raise ValueError("a result's time must have a zone")
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
