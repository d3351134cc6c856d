"""Immutable values: the standard library's dataclasses, at a fifth of their price.

Up to Python 3.12 `dataclass(frozen=True)` compiles six functions for each class, half a
millisecond, and a short command defines fifty classes. Here all classes share the functions but
the constructor, which is compiled when the first value is made.
"""

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

_UNSAID: Any = object()
"""Stands for an argument that was left out and whose default is made anew each time."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Returns a class as a dataclass of values that never change.

    The same as `dataclass(frozen=True, slots=True, kw_only=True)`, for classes that inherit from
    none of their kind and are never pickled.
    """
    made = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)
    for name, function in _SHARED.items():
        setattr(made, name, function)
    return made


def _first_init(self: Any, **given: Any) -> None:
    cls = type(self)
    cls.__init__ = _constructor(cls)
    cls.__init__(self, **given)


def _constructor(cls: type[Any]) -> Any:
    """Returns the `__init__` of a class, compiled from its fields."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_unsaid": _UNSAID}
    parameters, body = "self, *", ""
    for one in fields(cls):
        parameter, value = _parameter(one, known)
        parameters += f", {parameter}"
        body += f"\n    _set(self, {one.name!r}, {value})"
    exec(f"def __init__({parameters}):{body}", known)  # noqa: S102 - names of our own fields alone
    return known["__init__"]


def _parameter(one: Field[Any], known: dict[str, Any]) -> tuple[str, str]:
    """Returns a field as a parameter and as the value to set, naming what they need in `known`."""
    if one.default is not MISSING:
        known[f"_default_{one.name}"] = one.default
        return f"{one.name}=_default_{one.name}", one.name
    if one.default_factory is not MISSING:
        known[f"_make_{one.name}"] = one.default_factory
        made = f"_make_{one.name}() if {one.name} is _unsaid else {one.name}"
        return f"{one.name}=_unsaid", made
    return one.name, one.name


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__dataclass_fields__])


def _eq(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    said = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__)
    return f"{type(self).__qualname__}({said})"


def _set(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED = {
    "__init__": _first_init,
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _set,
    "__delattr__": _delete,
}
