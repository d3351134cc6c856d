"""What a procedure says of the context that it begins with: a small part of JSON Schema.

A context that does not fit is told and never refused.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mimo.domain.procedures.procedure import Fault
from mimo.domain.procedures.values import TYPES, is_number, is_of

Matches = Callable[[str, str], bool]
"""Returns whether a pattern is found in a text, in bounded time."""

_NUMBERS = ("minLength", "maxLength", "minimum", "maximum")
_WORDS = ("type", *_NUMBERS, "enum", "pattern", "description", "default")


def faults(schema: Mapping[str, Any], lines: Callable[[Any, Any], int]) -> Iterator[Fault]:
    """Yields what is wrong with a schema itself; `lines` tells where a key of a mapping stands."""
    for key in schema:
        if key not in ("type", "required", "properties", "description"):
            known = "required and properties"
            yield Fault(line=lines(schema, key), reason=f"context_schema: `{key}` is not {known}")
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        reason = "context_schema: `required` must be a list of names"
        yield Fault(line=lines(schema, "required"), reason=reason)
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        reason = "context_schema: `properties` must be a mapping"
        yield Fault(line=lines(schema, "properties"), reason=reason)
        return
    for name, rules in properties.items():
        yield from _property_faults(name, rules, lines(properties, name), lines)


def _property_faults(
    name: str, rules: Any, line: int, lines: Callable[[Any, Any], int]
) -> Iterator[Fault]:
    where = f"context_schema: `{name}`"
    if not isinstance(rules, dict):
        yield Fault(line=line, reason=f"{where} must be a mapping such as {{type: string}}")
        return
    for key, value in rules.items():
        if reason := _rule_fault(key, value):
            yield Fault(line=lines(rules, key), reason=f"{where}: {reason}")


def _rule_fault(key: str, value: Any) -> str | None:
    if key not in _WORDS:
        return f"`{key}` is none of {', '.join(_WORDS)}"
    if key == "type" and (not isinstance(value, str) or value not in TYPES):
        return f"`{value}` is no type; types are {', '.join(TYPES)}"
    if key in _NUMBERS and not is_number(value):
        return f"`{key}` must be a number"
    if key == "enum" and not isinstance(value, list):
        return "`enum` must be a list"
    if key == "pattern":
        return pattern_fault(value)
    return None


def pattern_fault(pattern: Any) -> str | None:
    """Returns what is wrong with a regular expression, if anything is."""
    if not isinstance(pattern, str):
        return "a pattern must be text"
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"`{pattern}` is no regular expression: {error}"
    return None


def violations(
    schema: Mapping[str, Any], context: Mapping[str, Any], matches: Matches
) -> list[str]:
    """Returns in what a context does not fit the schema, in words."""
    missing = [name for name in schema.get("required", []) if context.get(name) is None]
    found = [f"`{name}` is missing" for name in missing]
    for name, rules in schema.get("properties", {}).items():
        if context.get(name) is not None:
            told = _broken(rules, context[name], matches)
            found += [f"`{name}` {reason}" for reason in told]
    return found


def _broken(rules: Mapping[str, Any], value: Any, matches: Matches) -> Iterator[str]:
    kind = rules.get("type")
    if kind and not (is_of(value, kind) or (kind == "float" and is_number(value))):
        yield f"must be of type {kind}"
        return
    if "enum" in rules and value not in rules["enum"]:
        yield f"must be one of {', '.join(map(str, rules['enum']))}"
    if isinstance(value, str):
        yield from _broken_text(rules, value, matches)
    if is_number(value):
        if "minimum" in rules and value < rules["minimum"]:
            yield f"must be at least {rules['minimum']}"
        if "maximum" in rules and value > rules["maximum"]:
            yield f"must be at most {rules['maximum']}"


def _broken_text(rules: Mapping[str, Any], value: str, matches: Matches) -> Iterator[str]:
    if "minLength" in rules and len(value) < rules["minLength"]:
        yield f"must have at least {rules['minLength']} characters"
    if "maxLength" in rules and len(value) > rules["maxLength"]:
        yield f"must have at most {rules['maxLength']} characters"
    if "pattern" in rules and not matches(rules["pattern"], value):
        yield f"must match `{rules['pattern']}`"
