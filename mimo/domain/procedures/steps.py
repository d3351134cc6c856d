"""The built-in steps that only look at the context: log, validate, conditional, set context."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mimo.domain.procedures.context_schema import Matches, pattern_fault
from mimo.domain.procedures.outcome import Outcome, Refused, failed
from mimo.domain.procedures.procedure import Step
from mimo.domain.procedures.templates import found
from mimo.domain.procedures.values import TYPES, is_number, is_of

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
