"""The checks and the built-in steps that read nothing but a run's context."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from mimo.features.procedures import schemas
from mimo.features.procedures.model import Outcome, Refused, Step, as_text, failed, filled, lookup
from mimo.memory.codec.front_matter import Place

Args = Mapping[str, Any]
Check = Callable[[Any], str | None]
"""Returns why a value in a file is not valid, to follow the value's name; None if it is."""

LEVELS = ("debug", "info", "warning", "error")
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "contains": lambda actual, value: isinstance(actual, str | list | dict) and value in actual,
    "in": lambda actual, value: actual in value,
}


def is_text(value: Any) -> bool:
    """Returns whether a value is text."""
    return isinstance(value, str)


def is_mapping(value: Any) -> bool:
    """Returns whether a value is a mapping."""
    return isinstance(value, dict)


def is_number(value: Any) -> bool:
    """Returns whether a value can be compared with numbers; true and false can't."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def anything(_: Any) -> None:
    """Accepts every value."""


def must(test: Callable[[Any], object], requirement: str) -> Check:
    """Returns a check whose fault is that the value must meet the requirement."""
    return lambda value: None if test(value) else f"must {requirement}, not `{str(value)[:60]}`"


def one_of(words: Collection[str]) -> Check:
    """Returns a check for one of some words."""
    return must(lambda word: is_text(word) and word in words, f"be one of {', '.join(words)}")


def faults(
    values: Args, checks: Mapping[str, Check], unknown: str, *, nulls: bool = False
) -> Iterator[tuple[str, str]]:
    """Yields the keys with a fault and the reason, which is `unknown` for a key without a check.

    With `nulls` a null counts as a missing value.
    """
    for key, value in values.items():
        if key not in checks:
            yield key, f"`{key}` {unknown}"
        elif not (nulls and value is None) and (reason := checks[key](value)):
            yield key, f"`{key}` {reason}"


# The rules of `validate`.

_is_mapping = must(is_mapping, "be a mapping")
_is_type = one_of(schemas.TYPES)
_is_number = must(is_number, "be a number")
_RULES: dict[str, tuple[str, Check]] = {
    "required": ("", anything),
    "type": ("type", _is_type),
    "min": ("minimum", _is_number),
    "max": ("maximum", _is_number),
    "regex": ("pattern", schemas.pattern_fault),
}
"""The rules of `validate`: the constraint that each sets, and the check of its value."""


def _rules(rules: Any) -> Iterator[tuple[str, str, Any]]:
    """Yields field, rule and value from either form. Raises `Refused` for any other form.

    They are `{branch: {required: true, min: 3}}` or `[{field: branch, type: min, value: 3}]`.
    """
    if isinstance(rules, dict):
        for field, of_field in rules.items():
            if not isinstance(of_field, dict):
                raise Refused(f"the rules for `{field}` must be a mapping")
            for rule, value in of_field.items():
                yield field, rule, value
    elif isinstance(rules, list):
        for item in rules:
            if not isinstance(item, dict) or not is_text(item.get("field")):
                raise Refused("each rule needs a `field` and a `type`")
            rule = str(item.get("type"))
            yield item["field"], rule, item.get("value", True if rule == "required" else None)
    else:
        raise Refused("`rules` must be a mapping or a list")


def _rules_fault(rules: Any) -> str | None:
    reasons = []
    try:
        for field, rule, value in _rules(rules):
            if rule not in _RULES:
                reasons.append(f"`{rule}` is not a rule; rules are {', '.join(_RULES)}")
            elif reason := _RULES[rule][1](value):
                reasons.append(f"`{rule}` for `{field}` {reason}")
    except Refused as error:
        reasons.append(str(error))
    return f"are not valid: {'; '.join(reasons)}" if reasons else None


def _values_fault(values: Any) -> str | None:
    """Returns why the values of `set_context` are not valid, or None."""
    if not isinstance(values, dict):
        return _is_mapping(values)
    for value in values.values():
        match value:
            case {"env": str(name), **rest} if not rest and "{{" in name:
                return f"contain `{{env: {name}}}`: the variable can't come from the context"
    return None


# The arguments of steps, checked when a file is read.

_text = must(is_text, "be text in quotes")
ARGUMENTS: dict[Step, dict[str, Check]] = {
    Step.LOG: {
        "message": anything,
        "level": one_of(LEVELS),
        "fields": must(lambda fields: isinstance(fields, list), "be a list of names"),
    },
    Step.VALIDATE: {"rules": _rules_fault},
    Step.DELAY: {
        "ms": must(
            lambda ms: is_text(ms) or (is_number(ms) and ms >= 0), "be a number of milliseconds"
        )
    },
    Step.CONDITIONAL: {
        "field": _text,
        "operator": one_of(OPERATORS),
        "value": anything,
        "true_event": _text,
        "false_event": _text,
    },
    Step.SET_CONTEXT: {"values": _values_fault},
    Step.ASK: {"question": must(lambda value: value is not None, "have a value")},
}
_REQUIRED = ("rules", "field", "values", "question")


def argument_faults(step: Step, args: Args) -> Iterator[tuple[Place, str]]:
    """Yields the faults of a step's arguments with their places."""
    checks = ARGUMENTS[step]
    unknown = f"is not an argument; it takes {', '.join(checks)}"
    for name, reason in faults(args, checks, unknown):
        yield (name,), f"`{step}`: {reason}"
    for name in _REQUIRED:
        if name in checks and name not in args:
            yield (), f"`{step}` needs the argument `{name}`"


def names_read(args: Sequence[Any]) -> Iterator[str]:
    """Yields the names in a step's arguments whose values it reads, without placeholders."""
    named = args[0] if args and isinstance(args[0], dict) else {}
    values, fields = named.get("values"), named.get("fields")
    refs = values.values() if isinstance(values, dict) else ()
    yield str(named.get("field"))
    yield from (str(value["ref"]) for value in refs if isinstance(value, dict) and "ref" in value)
    yield from map(str, fields if isinstance(fields, list) else ())


# The steps.


def validate(args: Args, context: Args) -> Outcome:
    """Returns `validation_passed`, or an error that names every broken rule."""
    reasons = []
    for field, rule, limit in _rules(args["rules"]):
        value = value_of(field, context)
        if rule == "required":
            reason = "is missing" if limit and value is None else None
        else:
            reason = schemas.violation(_RULES[rule][0], limit, value)
        if reason:
            reasons.append(f"`{field}` {reason}")
    if reasons:
        return failed("; ".join(reasons), again=False)
    return Outcome(merge={"validation_passed": True})


def conditional(args: Args, context: Args) -> Outcome:
    """Returns the event that a comparison leads to.

    Raises `Refused` for incomparable values, and for a field that is not text.
    """
    if not is_text(args["field"]):
        raise Refused(f"`field` must be text, not `{str(args['field'])[:60]}`")
    name = args.get("operator", "eq")
    actual = value_of(args["field"], context)
    try:
        holds = OPERATORS[name](actual, args.get("value"))
    except TypeError:
        comparison = f"`{args['field']}` {name} `{args.get('value')}`"
        raise Refused(f"{comparison} can't be compared: it is `{actual}`") from None
    word = "true" if holds else "false"
    return Outcome(event=str(args.get(f"{word}_event", word)))


def set_context(args: Args, context: Args, environ: Mapping[str, str]) -> Outcome:
    """Returns the values to merge; `{ref: name}` and `{env: NAME}` are replaced by their values.

    `args` are those of the file, with their placeholders. Otherwise data in the context that looks
    like `{env: NAME}` could read a variable, which the approved text does not mention.
    """

    def resolved(value: Any) -> Any:
        match value:
            case {"ref": str(name), **rest} if not rest:
                return lookup(as_text(filled(name, context)), context)
            case {"env": str(name), **rest} if not rest:
                if name not in environ:
                    reason = f"the environment variable `{name}` is not set, or not allowed here"
                    raise Refused(reason)
                return environ[name]
            case _:
                return filled(value, context)

    return Outcome(merge={key: resolved(value) for key, value in args["values"].items()})


def value_of(name: str, context: Args) -> Any:
    """Returns the value of a dotted name in the context, or None."""
    try:
        return lookup(name, context)
    except Refused:
        return None
