"""The built-in steps that only look at the context: log, validate, conditional, set context."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mimo.features.procedures.model import (
    TYPES,
    Fault,
    Outcome,
    Refused,
    Step,
    failed,
    found,
    is_number,
    is_of,
)

# What a procedure says of the context that it begins with: a small part of JSON Schema.


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
            told = _context_schema_broken(rules, context[name], matches)
            found += [f"`{name}` {reason}" for reason in told]
    return found


def _context_schema_broken(rules: Mapping[str, Any], value: Any, matches: Matches) -> Iterator[str]:
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


Args = Mapping[str, Any]

LEVELS = ("debug", "info", "warning", "error")
ARGUMENTS: dict[Step, tuple[str, ...]] = {
    Step.LOG: ("message", "level", "fields"),
    Step.VALIDATE: ("rules",),
    Step.DELAY: ("ms",),
    Step.CONDITIONAL: ("field", "operator", "value", "true_event", "false_event"),
    Step.SET_CONTEXT: ("values",),
    Step.HTTP_REQUEST: ("url", "method", "headers", "body", "result_key"),
    Step.ASK: ("question",),
}
_NEEDED = {
    Step.VALIDATE: "rules",
    Step.CONDITIONAL: "field",
    Step.SET_CONTEXT: "values",
    Step.HTTP_REQUEST: "url",
    Step.ASK: "question",
}
_RULES = ("required", "type", "min", "max", "regex")


def _contains(actual: Any, value: Any) -> bool:
    return isinstance(actual, str | list | dict) and value in actual


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda actual, value: bool(actual == value),
    "ne": lambda actual, value: bool(actual != value),
    "gt": lambda actual, value: bool(actual > value),
    "gte": lambda actual, value: bool(actual >= value),
    "lt": lambda actual, value: bool(actual < value),
    "lte": lambda actual, value: bool(actual <= value),
    "contains": _contains,
    "in": lambda actual, value: actual in value,
}


def argument_faults(step: Step, args: Args) -> Iterator[tuple[str | None, str]]:
    """Yields what is wrong with a step's arguments: the argument, and why."""
    for name in args:
        if name not in ARGUMENTS[step]:
            known = ", ".join(ARGUMENTS[step])
            yield name, f"`{step}` takes no argument `{name}`; it takes {known}"
    needed = _NEEDED.get(step)
    if needed and args.get(needed) is None:
        yield None, f"`{step}` needs the argument `{needed}`"
        return
    for name, reason in _FAULTS[step](args) if step in _FAULTS else ():
        yield name, f"`{step}`: {reason}"


def _log_faults(args: Args) -> Iterator[tuple[str, str]]:
    if args.get("level", "info") not in LEVELS:
        yield "level", f"`level` must be one of {', '.join(LEVELS)}"
    if not isinstance(args.get("fields", []), list):
        yield "fields", "`fields` must be a list of names"


def _delay_faults(args: Args) -> Iterator[tuple[str, str]]:
    ms = args.get("ms", 1000)
    if not isinstance(ms, str) and not (is_number(ms) and ms >= 0):
        yield "ms", "`ms` must be a number of milliseconds"


def _conditional_faults(args: Args) -> Iterator[tuple[str, str]]:
    if args.get("operator", "eq") not in OPERATORS:
        yield "operator", f"`operator` must be one of {', '.join(OPERATORS)}"
    for name in ("field", "true_event", "false_event"):
        if not isinstance(args.get(name, ""), str):
            yield name, f"`{name}` must be text; put it in quotes"


def _set_faults(args: Args) -> Iterator[tuple[str, str]]:
    if not isinstance(args["values"], dict):
        yield "values", "`values` must be a mapping"


def _rules_faults(args: Args) -> Iterator[tuple[str, str]]:
    try:
        for field, rule, value in _rules(args["rules"]):
            if rule == "type" and value not in TYPES:
                reason = f"`{field}`: `{value}` is no type; types are {', '.join(TYPES)}"
                yield "rules", reason
            if rule in ("min", "max") and not is_number(value):
                yield "rules", f"`{field}`: `{rule}` must be a number"
            if rule == "regex" and (reason := pattern_fault(value) or ""):
                yield "rules", f"`{field}`: {reason}"
    except Refused as error:
        yield "rules", str(error)


_FAULTS: dict[Step, Callable[[Args], Iterator[tuple[str, str]]]] = {
    Step.LOG: _log_faults,
    Step.DELAY: _delay_faults,
    Step.CONDITIONAL: _conditional_faults,
    Step.SET_CONTEXT: _set_faults,
    Step.VALIDATE: _rules_faults,
}


def _rules(rules: Any) -> Iterator[tuple[str, str, Any]]:
    """Yields field, rule and value, from either form.

    They are `{branch: {required: true, min: 3}}` or `[{field: branch, type: min, value: 3}]`.
    """
    if isinstance(rules, dict):
        for field, told in rules.items():
            if not isinstance(told, dict):
                raise Refused(f"the rules for `{field}` must be a mapping")
            for rule, value in told.items():
                yield field, _rule(rule), value
    elif isinstance(rules, list):
        for item in rules:
            if not isinstance(item, dict) or not isinstance(item.get("field"), str):
                raise Refused("each rule needs a `field` and a `type`")
            rule = _rule(item.get("type"))
            yield item["field"], rule, item.get("value", True if rule == "required" else None)
    else:
        raise Refused("`rules` must be a mapping or a list")


def _rule(word: Any) -> str:
    if word not in _RULES:
        raise Refused(f"`{word}` is no rule; rules are {', '.join(_RULES)}")
    return str(word)


def validate(args: Args, context: Args, matches: Matches) -> Outcome:
    """Returns `validation_passed`, or an error that names every rule that is broken."""
    told = [
        reason
        for field, rule, value in _rules(args["rules"])
        if (reason := _broken(field, rule, value, looked_up(field, context), matches))
    ]
    if told:
        return failed("; ".join(told), again=False)
    return Outcome(merge={"validation_passed": True})


def _broken(field: str, rule: str, value: Any, actual: Any, matches: Matches) -> str | None:
    match rule:
        case "required":
            return f"`{field}` is missing" if value and actual is None else None
        case "type":
            return None if is_of(actual, value) else f"`{field}` must be of type {value}"
        case "min":
            good = is_number(actual) and actual >= value
            return None if good else f"`{field}` must be at least {value}"
        case "max":
            good = is_number(actual) and actual <= value
            return None if good else f"`{field}` must be at most {value}"
        case _:
            good = isinstance(actual, str) and matches(value, actual)
            return None if good else f"`{field}` must match `{value}`"


def conditional(args: Args, context: Args) -> Outcome:
    """Returns the event that a comparison leads to."""
    operator = args.get("operator", "eq")
    actual = looked_up(args["field"], context)
    try:
        holds = OPERATORS[operator](actual, args.get("value"))
    except TypeError:
        shown = f"`{args['field']}` {operator} `{args.get('value')}`"
        raise Refused(f"{shown} can't be compared: it is `{actual}`") from None
    if holds:
        return Outcome(event=str(args.get("true_event", "true")))
    return Outcome(event=str(args.get("false_event", "false")))


def set_context(args: Args, context: Args, environ: Mapping[str, str]) -> Outcome:
    """Returns the values to merge; `{ref: name}` and `{env: NAME}` stand for what they name."""
    return Outcome(
        merge={key: _set(value, context, environ) for key, value in args["values"].items()}
    )


def _set(value: Any, context: Args, environ: Mapping[str, str]) -> Any:
    match value:
        case {"ref": str(name), **rest} if not rest:
            return found(name, context)
        case {"env": str(name), **rest} if not rest:
            if name not in environ:
                raise Refused(f"the environment variable `{name}` is not set, or not allowed here")
            return environ[name]
        case _:
            return value


def looked_up(name: str, context: Args) -> Any:
    """Returns what a dotted name means in the context, None where there is nothing."""
    try:
        return found(name, context)
    except Refused:
        return None
