"""Dataclasses and named tuples that load faster than the standard library's, most immutable.

Up to Python 3.12, `dataclass(frozen=True)` compiles six functions for each class, which takes half
a millisecond, and a short command defines fifty classes. Here all classes share their functions. A
class that has many values gets a constructor of its own, which is faster, but compiling it takes as
long as making some fifty values with the shared one. The library's module, which loads twenty
others, is imported if it is asked about a class. A class of named tuples takes a sixth of the time
that the standard library takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

TYPE_CHECKING = False
"""As in `typing`, which takes longer to load than a hook works; type checkers know the name."""

if TYPE_CHECKING:
    from typing import Any, TypeVar, dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**_: object) -> Callable[[object], object]:
        """Returns a decorator without effect: only type checkers need it."""
        return lambda function: function


_MISSING: Any = object()
"""The value of an argument that was left out and has a default factory."""
_FIELDS = "__dataclass_fields__"


class _Factory:
    """A default that is made for each value."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], Any]) -> Any:
    """Returns the default of a field that is made for each value."""
    return _Factory(default_factory)


def names_of(value: object) -> tuple[str, ...]:
    """Returns the names of the fields of a value; none if its class is not a dataclass."""
    return getattr(value, "_field_names", None) or tuple(getattr(value, _FIELDS, ()))


if TYPE_CHECKING:
    from dataclasses import replace as replace  # for the types of the changes
else:

    def replace(value: T, /, **changes: Any) -> T:
        """Returns a value with some fields changed."""
        fields = {name: getattr(value, name) for name in names_of(value)}
        return type(value)(**(fields | changes))


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Returns a class as `dataclass(frozen=True, slots=True, kw_only=True)` does.

    The class must not inherit from another dataclass, and its values can't be pickled.
    """
    return _build_class(cls, _SHARED | _IMMUTABLE)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Returns a class as `frozen` does, but its values can be changed and have no hash."""
    return _build_class(cls, _SHARED | {"__hash__": None})


def _build_class(cls: type[T], shared: dict[str, Any]) -> type[T]:
    namespace = dict(cls.__dict__)
    names = tuple(cls.__annotations__)  # From Python 3.14 on, the namespace lacks them.
    defaults = {name: namespace.pop(name) for name in names if name in namespace}
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    namespace |= {"__slots__": names, "__match_args__": (), _FIELDS: _Fields()}
    namespace |= {"_field_names": names, "_field_defaults": defaults} | shared
    metaclass: Any = type(cls)
    result: type[T] = metaclass(cls.__name__, cls.__bases__, namespace)
    result.__qualname__ = cls.__qualname__
    return result


class _Fields:
    """Gives a class the standard library's description of its fields when that is first read."""

    def __get__(self, value: Any, cls: Any) -> Any:
        import dataclasses

        plain = {"__annotations__": cls.__annotations__, "__doc__": "", "__module__": __name__}
        for name, default in cls._field_defaults.items():
            is_lazy = isinstance(default, _Factory)
            plain[name] = dataclasses.field(default_factory=default.make) if is_lazy else default
        make = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=True)
        described = getattr(make(type(cls.__name__, (), plain)), _FIELDS)
        setattr(cls, _FIELDS, described)
        return described


_MANY = 50
_shared_values: dict[type[Any], int] = {}
"""The number of values of each class that come from the shared constructor."""


def _is_frequent(cls: type[Any]) -> bool:
    """Returns whether a class has so many values that compiling its constructor pays."""
    _shared_values[cls] = number = _shared_values.get(cls, 0) + 1
    return number > _MANY


def _init(self: Any, *args: Any, **fields: Any) -> None:
    """Sets the fields of a value, without compiling."""
    cls = type(self)
    names, values = cls._field_names, cls._field_defaults | fields
    if args or len(values) != len(names) or _is_frequent(cls):
        # Also for wrong arguments: the compiled one raises an error that names them.
        cls.__init__ = _constructor(cls)
        cls.__init__(self, *args, **fields)
        return
    for name in names:
        value = values[name]
        object.__setattr__(self, name, value.make() if type(value) is _Factory else value)


def _constructor(cls: type[Any]) -> Any:
    """Returns the `__init__` of a class, compiled from its fields."""
    namespace: dict[str, Any] = {"_set": object.__setattr__, "_missing": _MISSING}
    parameters, body = "self, *", ""
    assignment = "self.{0} = {1}" if vars(cls)["__hash__"] is None else "_set(self, {0!r}, {1})"
    for name in cls._field_names:
        parameter, value = _parameter(name, cls._field_defaults, namespace)
        parameters += f", {parameter}"
        body += "\n    " + assignment.format(name, value)
    exec(f"def __init__({parameters}):{body}", namespace)  # noqa: S102 - names of fields only
    return namespace["__init__"]


def _parameter(name: str, defaults: dict[str, Any], namespace: dict[str, Any]) -> tuple[str, str]:
    """Returns a field as a parameter and as the value to set; adds its default to `namespace`."""
    if name not in defaults:
        return name, name
    default = defaults[name]
    if isinstance(default, _Factory):
        namespace[f"_make_{name}"] = default.make
        return f"{name}=_missing", f"_make_{name}() if {name} is _missing else {name}"
    namespace[f"_default_{name}"] = default
    return f"{name}=_default_{name}", name


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self._field_names])


def _eq(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._field_names)
    return f"{type(self).__qualname__}({values})"


def _set(self: Any, name: str, value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED = {
    "__init__": _init,
    "__eq__": _eq,
    "__repr__": _repr,
}
_IMMUTABLE = {"__hash__": _hash, "__setattr__": _set, "__delattr__": _delete}


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from _collections import _tuplegetter  # as in the standard library's named tuples

    class _Tuples(type):
        """Makes the classes of named tuples."""

        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _Tuples:
            result: Any = type.__new__(cls, name, bases, namespace | {"__slots__": ()})
            names = result._fields = result.__match_args__ = tuple(result.__annotations__)
            result._field_defaults = {name: namespace[name] for name in names if name in namespace}
            for place, name in enumerate(names):
                setattr(result, name, _tuplegetter(place, ""))
            return result

    class NamedTuple(tuple, metaclass=_Tuples):
        """A tuple whose items have names, as `typing.NamedTuple`."""

        def __new__(cls, *args: Any, **fields: Any) -> tuple[Any, ...]:
            """Returns a value, without compiling."""
            names = cls._fields
            if len(args) == len(names) and not fields:
                values = args
            else:
                named = cls._field_defaults | dict(zip(names, args, strict=False)) | fields
                if len(named) != len(names) or len(args) + len(fields) > len(named):
                    # The compiled one raises an error that names the wrong arguments.
                    return _compiled_new(cls)(cls, *args, **fields)
                values = [named[name] for name in names]
            if _is_frequent(cls):
                cls.__new__ = _compiled_new(cls)
            return tuple.__new__(cls, values)

        def __getnewargs__(self) -> tuple[Any, ...]:
            """Returns the values, for copies."""
            return tuple(self)

        def __repr__(self) -> str:
            """Returns the values with their names."""
            values = zip(self._fields, self, strict=True)
            return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in values)})"

        @classmethod
        def _make(cls, values: Iterable[Any]) -> tuple[Any, ...]:
            return cls(*values)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, /, **changes: Any) -> tuple[Any, ...]:
            return type(self)(**(self._asdict() | changes))

    def _compiled_new(cls: Any) -> Any:
        """Returns the `__new__` of a class, compiled from its fields."""
        namespace: dict[str, Any] = {"_new": tuple.__new__}
        parameters, values = "_cls, /", ""
        for name in cls._fields:
            parameters += f", {_parameter(name, cls._field_defaults, namespace)[0]}"
            values += f"{name}, "
        exec(f"def __new__({parameters}): return _new(_cls, ({values}))", namespace)  # noqa: S102 - names of fields only
        return namespace["__new__"]
