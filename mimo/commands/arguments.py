"""The decoding of arguments: as a surface received them -> as the command's function takes them.

Every surface shares these checks, so that a wrong value causes the same error everywhere. They
accept exactly the arguments that the published schema accepts, which a test verifies. An optional
argument that is null counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from mimo.commands.spec import OPERATION, Param, Shape, Spec, Surface, to_json
from mimo.errors import Invalid

NOUNS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
}

LARGEST = 2**63
"""The bound of whole numbers: no count, limit or offset is larger."""


def choose(specs: Sequence[Spec], arguments: Mapping[str, Any]) -> tuple[Spec, dict[str, Any]]:
    """Returns the operation that the arguments name, and the other arguments.

    Raises `Invalid` if they name none, an unknown one, or an argument of another operation.
    """
    rest = dict(arguments)
    if specs[0].operation is None:
        return specs[0], rest
    word = rest.pop(OPERATION, None)
    for spec in specs:
        if spec.operation == word:
            return spec, _own(spec, specs, rest)
    names = ", ".join(spec.operation or "" for spec in specs)
    problem = "is missing" if word is None else f"must be one of {names}; not {shown(word)}"
    raise Invalid(
        f"`{OPERATION}` {problem}", hint=f"operations are {names}", details={"field": OPERATION}
    )


def _own(spec: Spec, specs: Sequence[Spec], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments without those of other operations, which may only be null."""
    own: dict[str, Any] = {}
    for name, value in arguments.items():
        takers = [other.operation or "" for other in specs if name in _names(other)]
        if spec.operation in takers or not takers:
            own[name] = value
        elif value is not None:
            raise Invalid(
                f"`{name}` is not an argument of `{spec.operation}`",
                hint=f"it belongs to {', '.join(takers)}",
                details={"field": name},
            )
    return own


def _names(spec: Spec) -> list[str]:
    return [name for param in spec.params for name in (param.name, *param.aliases)]


def decode(spec: Spec, arguments: Mapping[str, Any], surface: Surface) -> dict[str, Any]:
    """Returns the keyword arguments for the command's function.

    Raises `Invalid`, whose `details["field"]` names the argument that is wrong, missing or unknown.
    """
    if not isinstance(arguments, Mapping):
        raise Invalid("arguments must be an object", hint="pass {} for no arguments")
    params = [param for param in spec.params if surface in param.arg.surfaces]
    given = _by_name(params, arguments, spec)
    return {param.attribute: _value(param, given) for param in params}


def _value(param: Param, given: Mapping[str, Any]) -> Any:
    value = given.get(param.name)
    if value is None:
        if param.required and param.name not in given:
            raise Invalid(
                f"`{param.name}` is missing", hint=_meaning(param), details={"field": param.name}
            )
        return param.default
    _check_limits(param, value)
    if param.arg.spellings and isinstance(value, str):
        value = param.arg.spellings.get(value.casefold(), value)
    return _checked(param, param.shape, value)


def _by_name(params: Iterable[Param], arguments: Mapping[str, Any], spec: Spec) -> dict[str, Any]:
    canonical = {name: param for param in params for name in (param.name, *param.aliases)}
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in canonical:
            raise _unknown(name, spec, [param.name for param in canonical.values()])
        param = canonical[name]
        takes_null = param.required and param.shape.kind == "json"
        if value is None and not takes_null:
            continue
        if param.name in given:
            raise Invalid(f"`{param.name}` is given twice", details={"field": param.name})
        given[param.name] = value
    return given


def _unknown(name: str, spec: Spec, accepted: Iterable[str]) -> Invalid:
    names = list(dict.fromkeys(accepted))
    near = nearest(name, names)
    listed = f"arguments are {', '.join(names)}" if names else "it takes no arguments"
    return Invalid(
        f"`{name}` is not an argument of `{spec.operation or spec.name}`",
        hint=f"did you mean `{near[0]}`?" if near else listed,
        details={"field": name},
    )


def nearest(word: str, names: Iterable[str]) -> list[str]:
    """Returns up to three names with the most similar spelling, the nearest first."""
    from difflib import get_close_matches

    return get_close_matches(word, list(names), n=3, cutoff=0.6)


def _checked(param: Param, shape: Shape, value: Any) -> Any:
    match shape.kind:
        case "json":
            return _json(param, value)
        case "array" if isinstance(value, list | tuple) and shape.items:
            items = shape.items
            return tuple(_checked(param, items, item) for item in value)
        case "boolean" if isinstance(value, bool):
            return value
        case "string" if isinstance(value, str):
            return _text(param, shape, value)
        case "integer" | "number" if _is_number(value):
            return _number(param, shape, value)
    raise _wrong(param, f"must be {NOUNS[shape.kind]}", value)


def _json(param: Param, value: Any) -> Any:
    if param.arg.object and not isinstance(value, Mapping):
        raise _wrong(param, "must be an object", value)
    try:
        same = to_json(value)
    except (TypeError, ValueError, RecursionError):
        raise _wrong(param, "must be JSON, without infinite numbers", value) from None
    if same != value:
        raise _wrong(param, "must be JSON in UTF-8", value)
    return same


def _text(param: Param, shape: Shape, value: str) -> str:
    if shape.choices and value not in shape.choices:
        raise _wrong(param, f"must be one of {', '.join(shape.choices)}", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _wrong(param, "must be text in UTF-8", value) from None
    return shape.enum(value) if shape.enum else value


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST


def _number(param: Param, shape: Shape, value: float) -> float:
    if shape.kind == "number":
        return float(value)
    if value != int(value):
        raise _wrong(param, f"must be {NOUNS['integer']}", value)
    return int(value)


def _check_limits(param: Param, value: Any) -> None:
    low, high = param.arg.ge, param.arg.le
    if not _is_number(value) or (low is None and high is None):
        return
    if (low is None or value >= low) and (high is None or value <= high):
        return
    if low is not None and high is not None:
        must = f"must be between {low:g} and {high:g}"
    else:
        must = f"must be at least {low:g}" if low is not None else f"must be at most {high:g}"
    raise _wrong(param, must, value)


def _wrong(param: Param, must: str, value: Any) -> Invalid:
    return Invalid(
        f"`{param.name}` {must}, not {shown(value)}",
        hint=_meaning(param),
        details={"field": param.name},
    )


def _meaning(param: Param) -> str:
    help = param.arg.help
    return f"`{param.name}` means: {help[:1].lower()}{help[1:]}"


def shown(value: Any) -> str:
    """Returns a value for an error message: in backticks, and shortened if it is long."""
    import json

    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    text = text.encode("utf-8", "replace").decode()
    return f"`{text if len(text) <= 60 else text[:59] + '…'}`"
