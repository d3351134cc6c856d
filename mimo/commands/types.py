"""The closed set of types that commands may take and answer with.

Parameters: `str`, `int`, `float`, `bool`, `Literal` of strings, `StrEnum`, `tuple[T, ...]`,
`T | None`, and the one open member `Json`. Results add dataclasses, `datetime` and `dict[str, T]`.
"""

import types
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, Union
from typing import get_args as args_of
from typing import get_origin as origin_of

from mimo.frozen import frozen

if TYPE_CHECKING:
    Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
else:

    class Json:
        """Any JSON value."""


T = TypeVar("T")


class Out(NamedTuple):
    """How a field of a result is published: its help, its name, and whether it may be left out."""

    help: str = ""
    wire: str | None = None
    """The published name, where it is not the attribute's."""
    omit: bool = False
    """Whether the field is left out when it is None."""


Omitted = Annotated[T | None, Out(omit=True)]
"""`Omitted[T]` is the type of a result's field that is left out where it says nothing (None)."""

SCALARS: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
"""JSON Schema's name of each plain type."""


@frozen
class Shape:
    """What a parameter's type says, in terms that every surface understands."""

    kind: str
    """`string`, `integer`, `number`, `boolean`, `array`, or `json` for any value."""
    nullable: bool = False
    choices: tuple[str, ...] = ()
    """All permitted strings; empty where any string will do."""
    enum: type[StrEnum] | None = None
    """The enumeration that a choice is turned into."""
    items: "Shape | None" = None


def shape_of(annotation: Any) -> Shape:
    """Returns the shape of a parameter's type.

    Raises `TypeError` for a type outside the closed set.
    """
    inner, nullable = split_null(annotation)
    if inner is Json:
        return Shape(kind="json", nullable=nullable)
    if inner in SCALARS:
        return Shape(kind=SCALARS[inner], nullable=nullable)
    if isinstance(inner, type) and issubclass(inner, StrEnum):
        choices = tuple(member.value for member in inner)
        return Shape(kind="string", nullable=nullable, choices=choices, enum=inner)
    if origin_of(inner) is Literal and all(isinstance(word, str) for word in args_of(inner)):
        return Shape(kind="string", nullable=nullable, choices=args_of(inner))
    if item := item_type(inner):
        return Shape(kind="array", nullable=nullable, items=shape_of(item[0]))
    raise TypeError(f"a command can't take {annotation!r}; see {__name__} for what it can")


def split_null(annotation: Any) -> tuple[Any, bool]:
    """Returns the type without `None` and without annotations, and whether None is allowed."""
    if origin_of(annotation) is Annotated:
        return split_null(args_of(annotation)[0])
    if origin_of(annotation) not in (Union, types.UnionType):
        return annotation, False
    members = [member for member in args_of(annotation) if member is not types.NoneType]
    if len(members) != 1 or len(args_of(annotation)) != 2:
        raise TypeError(f"{annotation!r} is a union of more than one type and None")
    return split_null(members[0])[0], True


def item_type(annotation: Any) -> tuple[Any] | None:
    """Returns the one type of a `tuple[T, ...]`'s items, or None for any other type."""
    if origin_of(annotation) is not tuple:
        return None
    match args_of(annotation):
        case (item, end) if end is Ellipsis:
            return (item,)
        case _:
            raise TypeError(f"{annotation!r} is not of the form tuple[T, ...]")


def notes_of(annotation: Any) -> tuple[Any, ...]:
    """Returns what `Annotated` says about a type beside the type."""
    return args_of(annotation)[1:] if origin_of(annotation) is Annotated else ()
