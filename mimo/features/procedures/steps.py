"""The checks and the built-in steps that read nothing but a run's context."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mimo.features.procedures.model import (
    TYPES,
    Fault,
    Outcome,
    Refused,
    Step,
    failed,
    has_type,
    is_number,
    lookup,
)
from mimo.text import patterns
from mimo.text.patterns import Unusable

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
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda actual, value: bool(actual == value),
    "ne": lambda actual, value: bool(actual != value),
    "gt": lambda actual, value: bool(actual > value),
    "gte": lambda actual, value: bool(actual >= value),
    "lt": lambda actual, value: bool(actual < value),
    "lte": lambda actual, value: bool(actual <= value),
    "contains": lambda actual, value: isinstance(actual, str | list | dict) and value in actual,
    "in": lambda actual, value: actual in value,
}
_RULES = ("required", "type", "min", "max", "regex")
_NUMBERS = ("minLength", "maxLength", "minimum", "maximum")
_SCHEMA_WORDS = ("type", *_NUMBERS, "enum", "pattern", "description", "default")


def pattern_fault(pattern: Any) -> str | None:
    """Returns why a regular expression can't be used, or None."""
    if not isinstance(pattern, str):
        return "a pattern must be text"
    made = patterns.compiled_exactly(pattern)
    return _unusable(pattern, made) if isinstance(made, Unusable) else None


def matches(pattern: str, text: str) -> bool:
    """Returns whether a text contains a match. Raises `Refused` for an unusable pattern.

    `$` matches at the end of the text, and before a line end there.
    """
    made = patterns.compiled_exactly(pattern)
    if isinstance(made, Unusable):
        raise Refused(_unusable(pattern, made))
    data = text.encode("utf-8", "replace")
    return bool(made.search(data) or made.search(data.removesuffix(b"\n")))


def _unusable(pattern: str, made: Unusable) -> str:
    return (
        f"`{pattern}` is not a usable regular expression: {made.reason} "
        "(the syntax is RE2's, without look-around and back-references)"
    )


# The schema of the initial context: a small part of JSON Schema.


def schema_faults(schema: Args, lines: Callable[[Any, Any], int]) -> Iterator[Fault]:
    """Yields the faults of a schema; `lines` returns the line of a mapping's key."""
    for key in schema:
        if key not in ("type", "required", "properties", "description"):
            reason = f"context_schema: `{key}` is not one of required, properties"
            yield Fault(line=lines(schema, key), reason=reason)
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
        where = f"context_schema: `{name}`"
        if not isinstance(rules, dict):
            reason = f"{where} must be a mapping such as {{type: string}}"
            yield Fault(line=lines(properties, name), reason=reason)
            continue
        for key, value in rules.items():
            if reason := _property_fault(key, value):
                yield Fault(line=lines(rules, key), reason=f"{where}: {reason}")


def _property_fault(key: str, value: Any) -> str:
    if key not in _SCHEMA_WORDS:
        return f"`{key}` is not one of {', '.join(_SCHEMA_WORDS)}"
    if key == "type" and (not isinstance(value, str) or value not in TYPES):
        return f"`{value}` is not a type; types are {', '.join(TYPES)}"
    if key in _NUMBERS and not is_number(value):
        return f"`{key}` must be a number"
    if key == "enum" and not isinstance(value, list):
        return "`enum` must be a list"
    return (pattern_fault(value) or "") if key == "pattern" else ""


def violations(schema: Args, context: Args) -> list[str]:
    """Returns how a context violates the schema, one message for each violation."""
    missing = [name for name in schema.get("required", []) if context.get(name) is None]
    messages = [f"`{name}` is missing" for name in missing]
    for name, rules in schema.get("properties", {}).items():
        if context.get(name) is not None:
            messages += [f"`{name}` {reason}" for reason in _violated(rules, context[name])]
    return messages


def _violated(rules: Args, value: Any) -> Iterator[str]:
    kind = rules.get("type")
    if kind and not (has_type(value, kind) or (kind == "float" and is_number(value))):
        yield f"must be of type {kind}"
        return
    if "enum" in rules and value not in rules["enum"]:
        yield f"must be one of {', '.join(map(str, rules['enum']))}"
    if isinstance(value, str):
        if "minLength" in rules and len(value) < rules["minLength"]:
            yield f"must have at least {rules['minLength']} characters"
        if "maxLength" in rules and len(value) > rules["maxLength"]:
            yield f"must have at most {rules['maxLength']} characters"
        if "pattern" in rules and not matches(rules["pattern"], value):
            yield f"must match `{rules['pattern']}`"
    if is_number(value):
        if "minimum" in rules and value < rules["minimum"]:
            yield f"must be at least {rules['minimum']}"
        if "maximum" in rules and value > rules["maximum"]:
            yield f"must be at most {rules['maximum']}"


# The arguments of steps, checked when a file is read.


def argument_faults(step: Step, args: Args) -> Iterator[tuple[str | None, str]]:
    """Yields the faults of a step's arguments: the argument's name, and the reason."""
    for name in args:
        if name not in ARGUMENTS[step]:
            yield (
                name,
                f"`{step}` takes no argument `{name}`; it takes {', '.join(ARGUMENTS[step])}",
            )
    needed = _NEEDED.get(step)
    if needed and args.get(needed) is None:
        yield None, f"`{step}` needs the argument `{needed}`"
        return
    for name, reason in _value_faults(step, args):
        yield name, f"`{step}`: {reason}"


def _value_faults(step: Step, args: Args) -> Iterator[tuple[str, str]]:
    match step:
        case Step.LOG:
            if args.get("level", "info") not in LEVELS:
                yield "level", f"`level` must be one of {', '.join(LEVELS)}"
            if not isinstance(args.get("fields", []), list):
                yield "fields", "`fields` must be a list of names"
        case Step.DELAY:
            ms = args.get("ms", 1000)
            if not isinstance(ms, str) and not (is_number(ms) and ms >= 0):
                yield "ms", "`ms` must be a number of milliseconds"
        case Step.SET_CONTEXT:
            if not isinstance(args["values"], dict):
                yield "values", "`values` must be a mapping"
        case Step.CONDITIONAL:
            yield from _conditional_faults(args)
        case Step.VALIDATE:
            yield from _rules_faults(args)


def _conditional_faults(args: Args) -> Iterator[tuple[str, str]]:
    if args.get("operator", "eq") not in OPERATORS:
        yield "operator", f"`operator` must be one of {', '.join(OPERATORS)}"
    for name in ("field", "true_event", "false_event"):
        if not isinstance(args.get(name, ""), str):
            yield name, f"`{name}` must be text; put it in quotes"


def _rules_faults(args: Args) -> Iterator[tuple[str, str]]:
    try:
        for field, rule, value in _rules(args["rules"]):
            if reason := _rule_fault(rule, value):
                yield "rules", f"`{field}`: {reason}"
    except Refused as error:
        yield "rules", str(error)


def _rule_fault(rule: str, value: Any) -> str | None:
    if rule == "type" and value not in TYPES:
        return f"`{value}` is not a type; types are {', '.join(TYPES)}"
    if rule in ("min", "max") and not is_number(value):
        return f"`{rule}` must be a number"
    return pattern_fault(value) if rule == "regex" else None


def _rules(rules: Any) -> Iterator[tuple[str, str, Any]]:
    """Yields field, rule and value from either form. Raises `Refused` for any other form.

    They are `{branch: {required: true, min: 3}}` or `[{field: branch, type: min, value: 3}]`.
    """
    if isinstance(rules, dict):
        for field, of_field in rules.items():
            if not isinstance(of_field, dict):
                raise Refused(f"the rules for `{field}` must be a mapping")
            for rule, value in of_field.items():
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
        raise Refused(f"`{word}` is not a rule; rules are {', '.join(_RULES)}")
    return str(word)


# The steps.


def validate(args: Args, context: Args) -> Outcome:
    """Returns `validation_passed`, or an error that names every broken rule."""
    reasons = [
        reason
        for field, rule, value in _rules(args["rules"])
        if (reason := _broken(field, rule, value, value_of(field, context)))
    ]
    if reasons:
        return failed("; ".join(reasons), again=False)
    return Outcome(merge={"validation_passed": True})


def _broken(field: str, rule: str, value: Any, actual: Any) -> str | None:
    match rule:
        case "required":
            return f"`{field}` is missing" if value and actual is None else None
        case "type":
            return None if has_type(actual, value) else f"`{field}` must be of type {value}"
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
    """Returns the event that a comparison leads to. Raises `Refused` for incomparable values."""
    operator = args.get("operator", "eq")
    actual = value_of(args["field"], context)
    try:
        holds = OPERATORS[operator](actual, args.get("value"))
    except TypeError:
        comparison = f"`{args['field']}` {operator} `{args.get('value')}`"
        raise Refused(f"{comparison} can't be compared: it is `{actual}`") from None
    if holds:
        return Outcome(event=str(args.get("true_event", "true")))
    return Outcome(event=str(args.get("false_event", "false")))


def set_context(args: Args, context: Args, environ: Mapping[str, str]) -> Outcome:
    """Returns the values to merge; `{ref: name}` and `{env: NAME}` are replaced by their values."""

    def resolved(value: Any) -> Any:
        match value:
            case {"ref": str(name), **rest} if not rest:
                return lookup(name, context)
            case {"env": str(name), **rest} if not rest:
                if name not in environ:
                    reason = f"the environment variable `{name}` is not set, or not allowed here"
                    raise Refused(reason)
                return environ[name]
            case _:
                return value

    return Outcome(merge={key: resolved(value) for key, value in args["values"].items()})


def value_of(name: str, context: Args) -> Any:
    """Returns the value of a dotted name in the context, or None."""
    try:
        return lookup(name, context)
    except Refused:
        return None
