"""JSON Schemas of a run's context, and single constraints, checked with jsonschema.

A schema comes with its procedure, from any author. It can't name another document, and its
patterns run through RE2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import lru_cache
from itertools import islice
from typing import Any

from mimo.features.procedures.model import Refused
from mimo.memory.codec.front_matter import Place
from mimo.text import patterns
from mimo.text.patterns import Unusable

TYPES = (
    *("string", "integer", "float", "number", "boolean"),
    *("list", "array", "map", "object", "null"),
)
"""The types that schemas and rules name."""
_STANDARD = {"float": "number", "list": "array", "map": "object"}
"""The names in JSON Schema of the types that Mimo names differently."""

_SCHEMA = frozenset(
    ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
)
"""The keywords whose value is a schema."""
_SCHEMAS = frozenset(("allOf", "anyOf", "dependentSchemas", "oneOf", "prefixItems", "properties"))
"""The keywords whose value is a list or a mapping of schemas."""
_REQUIREMENTS = {
    "const": "must be {}",
    "enum": "must be one of {}",
    "exclusiveMaximum": "must be less than {}",
    "exclusiveMinimum": "must be more than {}",
    "maxItems": "must have at most {} items",
    "maxLength": "must have at most {} characters",
    "maximum": "must be at most {}",
    "minItems": "must have at least {} items",
    "minLength": "must have at least {} characters",
    "minimum": "must be at least {}",
    "pattern": "must match `{}`",
    "required": "is missing",
    "type": "must be of type {}",
}
"""The message about a value that violates a keyword; others have that of jsonschema."""
_KEYWORDS = frozenset(
    (
        *(*_SCHEMA, *_SCHEMAS, *_REQUIREMENTS, "dependentRequired", "maxContains", "minContains"),
        *("maxProperties", "minProperties", "default", "description", "examples", "title"),
    )
)
"""All accepted keywords.

None of them fetches a document or selects another validator (`$ref`, `$schema`), uses Python's
regular expressions (`patternProperties`, `format`), compares each item with each other
(`uniqueItems`), or fails for large numbers (`multipleOf`).
"""
_OPERANDS = {"minimum": "number", "maximum": "number", "pattern": "string"}
"""The type of the values that a constraint is meant for."""
_LIMIT = 100
"""The most violations that are reported."""
_LONGEST = 200


def pattern_fault(pattern: Any) -> str | None:
    """Returns why a regular expression can't be used, or None."""
    if not isinstance(pattern, str):
        return "must be text"
    regex = patterns.compiled_exactly(pattern)
    if not isinstance(regex, Unusable):
        return None
    syntax = "the syntax is RE2's, without look-around and back-references"
    return f"must be a usable regular expression, not `{pattern}`: {regex.reason} ({syntax})"


def matches(pattern: str, text: str) -> bool:
    """Returns whether a text contains a match. Raises `Refused` for an unusable pattern.

    `$` matches at the end of the text, and before a line end there.
    """
    regex = patterns.compiled_exactly(pattern)
    if isinstance(regex, Unusable):
        raise Refused(f"`{pattern}` is not a usable regular expression: {regex.reason}")
    data = text.encode("utf-8", "replace")
    return bool(regex.search(data) or regex.search(data.removesuffix(b"\n")))


def faults(schema: Mapping[str, Any], *, by_standard: bool = True) -> list[tuple[Place, str]]:
    """Returns the faults of a schema with their places in it.

    Without `by_standard`, these are only the faults that jsonschema, which takes long to import, is
    not needed for.
    """
    own_faults = [
        ((*place, word), reason)
        for place, part in _parts(schema)
        for word, value in part.items()
        if (reason := _fault(".".join(map(str, (*place, word))), word, value))
    ]
    if own_faults or not schema or not by_standard:
        return own_faults
    from jsonschema import Draft202012Validator as Standard

    errors = islice(Standard(Standard.META_SCHEMA).iter_errors(_standard(schema)), _LIMIT)
    return list(dict.fromkeys((tuple(e.absolute_path), _message(e)) for e in errors))


def violations(schema: Mapping[str, Any], context: Mapping[str, Any]) -> list[str]:
    """Returns how a context violates a schema without faults; null counts as missing."""
    if not schema:
        return []
    present = {name: value for name, value in context.items() if value is not None}
    errors = _validator(schema).iter_errors(present)
    return [_message(error) for error in islice(errors, _LIMIT)]


def violation(word: str, limit: Any, value: Any) -> str | None:
    """Returns how a value violates one constraint, or None.

    A value that the constraint is not meant for violates it, too. Raises `Refused` for an unusable
    pattern.
    """
    kind = {"type": _OPERANDS[word]} if word in _OPERANDS else {}
    if _validator({**kind, word: limit}).is_valid(value):
        return None
    return _REQUIREMENTS[word].format(limit)


def _parts(schema: Any, place: Place = ()) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yields a schema and all schemas within it, with their places."""
    if not isinstance(schema, dict):
        return
    yield place, schema
    for word, value in schema.items():
        if word in _SCHEMA:
            yield from _parts(value, (*place, word))
        elif word in _SCHEMAS and isinstance(value, dict | list):
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            for key, part in parts:
                yield from _parts(part, (*place, word, key))


def _fault(name: str, word: str, value: Any) -> str | None:
    """Returns the fault of a keyword that jsonschema does not report, or reports less clearly."""
    if word not in _KEYWORDS:
        return f"`{name}` is not a keyword of JSON Schema that mind checks"
    if word == "pattern" and (reason := pattern_fault(value)):
        return f"`{name}` {reason}"
    if word == "type":
        for kind in value if isinstance(value, list) else [value]:
            if kind not in TYPES:
                return f"`{name}` must be one of {', '.join(TYPES)}, not `{str(kind)[:60]}`"
    return None


def _standard(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a copy of a schema with JSON Schema's names of the types."""
    copy = deepcopy(schema)
    for _, part in _parts(copy):
        kinds = part.get("type")
        if isinstance(kinds, str):
            part["type"] = _STANDARD.get(kinds, kinds)
        elif isinstance(kinds, list):
            part["type"] = [_STANDARD.get(kind, kind) for kind in kinds]
    return copy


def _message(error: Any) -> str:
    """Returns the message of an error of jsonschema, which names the place in the value."""
    name = ".".join(map(str, error.absolute_path))
    subject = f"`{name}`" if name else "the context"
    limit = error.validator_value
    if form := _REQUIREMENTS.get(error.validator):
        text = ", ".join(map(str, limit)) if isinstance(limit, list) else limit
        return f"{subject} {form.format(text)}"
    return f"{subject}: {error.message[:_LONGEST]}"


def _validator(schema: Mapping[str, Any]) -> Any:
    """Returns the validator of a schema, which reads no other document."""
    from referencing import Registry

    return _dialect()(_standard(schema), registry=Registry())


@lru_cache(maxsize=1)
def _dialect() -> Any:
    """Returns the class of validators with RE2's patterns."""
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def pattern(validator: Any, regex: object, text: Any, _: object) -> Iterator[ValidationError]:
        if validator.is_type(text, "string") and not matches(str(regex), text):
            yield ValidationError("")

    def required(
        validator: Any, names: list[str], value: Any, _: object
    ) -> Iterator[ValidationError]:
        if validator.is_type(value, "object"):
            yield from (ValidationError("", path=[n]) for n in names if n not in value)

    overrides = {"pattern": pattern, "required": required}
    return extend(Draft202012Validator, overrides)  # type: ignore[no-untyped-call] # of its stubs
