"""The decoding of arguments: as a surface received them -> as the command's function takes them.

Every surface shares these checks, so that a wrong value causes the same error everywhere; on a
terminal it names options as they are typed. They accept exactly the arguments that the published
schema accepts, which a test verifies. An optional argument that is null counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any

from mimo.call import Surface
from mimo.call.extensions import scopes
from mimo.call.spec import OPERATION, Param, Shape, Spec, to_json
from mimo.data.loads import MAX_DEPTH, levels
from mimo.errors import Invalid
from mimo.text.tool_names import spelled

NOUNS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
}

LARGEST = 2**63
"""The bound of whole numbers: no count, limit or offset is larger."""

EMPTY: tuple[Any, ...] = (None, "", [], ())
"""The values of an optional argument that agents give for none."""


def choose(specs: Sequence[Spec], arguments: Mapping[str, Any]) -> tuple[Spec, dict[str, Any]]:
    """Returns the operation that the arguments name, and the other arguments.

    Raises `Invalid` if they name none, an unknown one, or an argument of another operation.
    """
    values = dict(arguments)
    if specs[0].operation is None:
        return specs[0], values
    word = choice(values.pop(OPERATION, None), [spec.operation or "" for spec in specs])
    for spec in specs:
        if spec.operation == word:
            return spec, _own_arguments(spec, specs, values)
    names = ", ".join(spec.operation or "" for spec in specs)
    problem = "is missing" if word is None else f"must be one of {names}; not {shown(word)}"
    raise Invalid(
        f"`{OPERATION}` {problem}", hint=f"operations are {names}", details={"field": OPERATION}
    )


def snake_case(word: str) -> str:
    """Returns a name with underscores: `decayCheck` and `Decay-check` -> `decay_check`."""
    import re

    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word.strip()).lower().replace("-", "_")


def choice(word: Any, choices: Sequence[str]) -> Any:
    """Returns the choice that differs from a word only in its spelling, or the word itself."""
    if not isinstance(word, str) or word in choices:
        return word
    by_form = {snake_case(name): str(name) for name in choices}
    return by_form.get(snake_case(word)) or by_form.get(word.strip().lower(), word)


def _own_arguments(
    spec: Spec, specs: Sequence[Spec], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the arguments without those of other operations, which may only be empty."""
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        takers = [candidate.operation or "" for candidate in specs if name in _names(candidate)]
        if spec.operation in takers or not takers:
            values[name] = value
        elif value not in EMPTY:
            raise Invalid(
                f"`{name}` is not an argument of `{spec.operation}`",
                hint=f"it belongs to {', '.join(takers)}",
                details={"field": name},
            )
    return values


def _names(spec: Spec) -> list[str]:
    return [name for param in spec.params for name in (param.name, *param.aliases)]


def decode(spec: Spec, arguments: Mapping[str, Any], surface: Surface) -> dict[str, Any]:
    """Returns the keyword arguments for the command's function.

    Raises `Invalid`, whose `details["field"]` names the argument that is wrong, missing or unknown.
    """
    if not isinstance(arguments, Mapping):
        raise Invalid("arguments must be an object", hint="pass {} for no arguments")
    params = [param for param in spec.params if surface in param.arg.surfaces]
    values = _by_name(params, arguments, spec)
    try:
        return {param.attribute: _value(param, values, surface) for param in params}
    except _Wrong as error:
        raise _explained(error, spec) from None


def _value(param: Param, values: Mapping[str, Any], surface: Surface) -> Any:
    value = values.get(param.name)
    if value is None:
        if param.required and param.name not in values:
            raise _Wrong(param)
        return param.default
    _check_limits(param, value)
    if param.arg.spellings and isinstance(value, str):
        value = param.arg.spellings.get(value.casefold(), value)
    if param.arg.scopes and surface is Surface.CLI and value not in param.shape.choices:
        names = [*param.shape.choices, *scopes()]
        if value not in names:
            raise _Wrong(param, f"must be one of {', '.join(names)}", value)
        return value
    return _checked(param, param.shape, value)


def _by_name(params: Iterable[Param], arguments: Mapping[str, Any], spec: Spec) -> dict[str, Any]:
    canonical = {name: param for param in params for name in (param.name, *param.aliases)}
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in canonical:
            raise _unknown(name, spec, [param.name for param in canonical.values()])
        param = canonical[name]
        takes_null = param.required and param.shape.kind == "json"
        if value is None and not takes_null:
            continue
        if param.name in values:
            raise Invalid(f"`{param.name}` is given twice", details={"field": param.name})
        values[param.name] = value
    return values


def _unknown(name: str, spec: Spec, accepted: Iterable[str]) -> Invalid:
    names = list(dict.fromkeys(accepted))
    near = nearest(name, names)
    listed = f"arguments are {', '.join(names)}" if names else "it takes no arguments"
    return Invalid(
        f"`{name}` is not an argument of `{spec.operation or spelled(spec.name, 'underscore')}`",
        hint=f"did you mean `{near[0]}`?" if near else listed,
        details={"field": name},
    )


def nearest(word: str, names: Iterable[str]) -> list[str]:
    """Returns up to three names with a similar spelling, the nearest first.

    Names that only share some letters are left out: a wrong hint is worse than none.
    """
    from difflib import get_close_matches

    names = list(names)
    near = get_close_matches(word, names, n=3, cutoff=0.76)
    exchanged = [name for name in names if sorted(name) == sorted(word)]
    return list(dict.fromkeys([*near, *exchanged]))[:3]


def is_one_letter_off(word: str, name: str) -> bool:
    """Returns whether one of two words has a letter more than the other."""
    short, long = sorted((word, name), key=len)
    return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))


def _checked(param: Param, shape: Shape, value: Any) -> Any:
    match shape.kind:
        case "json":
            return _json(param, value)
        case "array" if isinstance(value, list | tuple) and shape.items:
            items = shape.items
            return tuple(
                _checked(param, items, part)
                for item in value
                for part in (
                    filter(None, map(str.strip, item.split(",")))
                    if isinstance(item, str) and "," in item and param.has_words
                    else (item,)
                )
            )
        case "boolean" if isinstance(value, bool):
            return value
        case "string" if isinstance(value, str):
            return _text(param, shape, value)
        case "integer" | "number" if _is_number(value):
            return _number(param, shape, value)
    raise _Wrong(param, f"must be {NOUNS[shape.kind]}", value)


def _json(param: Param, value: Any) -> Any:
    if param.arg.object and not isinstance(value, Mapping):
        raise _Wrong(param, "must be an object", value)
    if levels(value) > MAX_DEPTH:
        raise _Wrong(param, f"must be nested at most {MAX_DEPTH} levels deep", value)
    value = _with_lists(value)
    try:
        same = to_json(value)
    except (TypeError, ValueError):
        raise _Wrong(param, "must be JSON, without infinite numbers", value) from None
    if same != value:
        raise _Wrong(param, "must be JSON in UTF-8", value)
    return same


def _with_lists(value: Any) -> Any:
    """Returns a value with tuples as lists, which a program in Python may pass."""
    if isinstance(value, Mapping):
        return {key: _with_lists(inner) for key, inner in value.items()}
    return [_with_lists(inner) for inner in value] if isinstance(value, list | tuple) else value


def _text(param: Param, shape: Shape, value: str) -> str:
    if shape.choices and value not in shape.choices:
        raise _Wrong(param, f"must be one of {', '.join(shape.choices)}", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _Wrong(param, "must be text in UTF-8", value) from None
    return shape.enum(value) if shape.enum else value


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST


def _number(param: Param, shape: Shape, value: float) -> float:
    if shape.kind == "number":
        return float(value)
    if value != int(value) or abs(value) >= LARGEST:
        raise _Wrong(param, f"must be {NOUNS['integer']}", value)
    return int(value)


def _check_limits(param: Param, value: Any) -> None:
    low, high = param.arg.ge, param.arg.le
    if not _is_number(value) or (low is None and high is None):
        return
    if (low is None or value >= low) and (high is None or value <= high):
        return
    raise _Wrong(param, f"must be {_range(param)}", value)


def _range(param: Param) -> str:
    """Returns the numbers that a parameter accepts, `between 1 and 1000`; empty for all."""
    low, high = (
        None if bound is None else str(int(bound) if bound == int(bound) else bound)
        for bound in (param.arg.ge, param.arg.le)
    )
    if low is not None and high is not None:
        return f"between {low} and {high}"
    if low is None:
        return f"at most {high}" if high is not None else ""
    return f"at least {low}"


# Messages: a name as the caller types it, what is wrong with the value, and what to do next.


class _Wrong(Exception):
    """An argument is missing, or has a value that its parameter does not accept."""

    def __init__(self, param: Param, must: str = "", value: Any = None) -> None:
        """Takes what the value must be; an empty text means that it is missing."""
        super().__init__(param.name)
        self.param = param
        self.must = must
        self.value = value


def _explained(error: _Wrong, spec: Spec) -> Invalid:
    """Returns the error for programs, with the words for a terminal."""
    param = error.param
    inner = param.shape.items or param.shape
    near: list[str] = []
    if isinstance(error.value, str):
        starts = [name for name in inner.choices if name.startswith(f"{error.value}-")]
        near = starts or nearest(error.value, inner.choices)[:1]
    meant = f"did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else ""
    help = param.arg.help
    problem = f"{error.must}, not {shown(error.value)}" if error.must else "is missing"
    typed = (
        f"`{param.typed}` {problem}" if error.must else f"`mind {spec.path}` needs `{param.typed}`"
    )
    return Invalid(
        f"`{param.name}` {problem}",
        hint=meant or f"it takes {_kind(param)}: {help[:1].lower()}{help[1:]}",
        details={"field": param.name},
        typed=(typed, meant or _example(spec, param)),
    )


def _kind(param: Param) -> str:
    """Returns the values that a parameter accepts: `a whole number between 1 and 1000`."""
    inner = param.shape.items or param.shape
    if inner.kind == "json":
        kind = "an object" if param.arg.object else "any JSON value"
    elif inner.choices:
        kind = f"one of {', '.join(inner.choices)}"
    else:
        kind = " ".join(filter(None, (NOUNS[inner.kind], _range(param))))
    return f"a list, each item {kind}" if param.shape.items else kind


def _example(spec: Spec, param: Param) -> str:
    """Returns a hint with a command line that gives the parameter."""
    lines = [line for line in spec.examples if line.startswith("mind ")]
    if not param.positional:
        lines = [line for line in lines if f"{param.typed} " in f"{line} "]
        value = _sample(param)
        if not lines and value:
            needed = (item.typed for item in spec.params if item.positional and item.required)
            lines = [" ".join(("mind", spec.path, *needed, param.typed, value))]
    example = f"for example `{lines[0]}`; " if lines else ""
    return f"{example}see `mind {spec.path} --help`"


def _sample(param: Param) -> str:
    """Returns a value for an example; an empty text if nothing declares one."""
    inner = param.shape.items or param.shape
    if inner.choices:
        return str(param.default or inner.choices[0])
    if inner.kind == "integer" and param.default is not None:
        return str(param.default or 1)
    return "0.5" if inner.kind == "number" else ""


def shown(value: Any) -> str:
    """Returns a value for an error message: in backticks, and shortened if it is long."""
    import json

    text = value if isinstance(value, str) else type(value).__name__
    if not isinstance(value, str) and levels(value) <= MAX_DEPTH:
        with suppress(TypeError, ValueError):
            text = json.dumps(value, ensure_ascii=False)
    text = text.encode("utf-8", "replace").decode()
    return f"`{text if len(text) <= 60 else text[:59] + '…'}`"
