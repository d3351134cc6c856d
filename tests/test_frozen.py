"""Values behave as the standard library's frozen dataclasses and named tuples do."""

import copy
import dataclasses
import typing
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from inspect import signature
from typing import Any, Generic, TypeVar

import pytest

from mimo.call.spec import fields_of
from mimo.frozen import NamedTuple, field, frozen, names_of, record, replace


@frozen
class Cup:
    """A cup."""

    tea: str
    sugar: int = 0
    spoons: Sequence[str] = field(default_factory=list)

    @property
    def sweet(self) -> bool:
        return self.sugar > 0


@frozen
class Mug:
    """Of the same shape as a cup."""

    tea: str
    sugar: int = 0
    spoons: Sequence[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """The standard library's class, for comparison."""

    tea: str
    sugar: int = 0
    spoons: Sequence[str] = dataclasses.field(default_factory=list)


def test_a_value_has_its_fields_and_their_defaults() -> None:
    cup = Cup(tea="green")

    assert (cup.tea, cup.sugar, cup.spoons, cup.sweet) == ("green", 0, [], False)
    assert Cup(tea="green").spoons is not cup.spoons
    assert not hasattr(cup, "__dict__")


def test_it_is_a_dataclass_with_the_same_constructor_and_text() -> None:
    assert [f.name for f in fields(Cup)] == [f.name for f in fields(Standard)]
    assert repr(Cup(tea="green")) == repr(Standard(tea="green")).replace("Standard", "Cup")
    assert dataclasses.replace(Cup(tea="green"), sugar=2) == Cup(tea="green", sugar=2)
    assert (
        names_of(Cup(tea="green")) == names_of(Standard(tea="green")) == ("tea", "sugar", "spoons")
    )
    assert names_of("tea") == ()
    classes: list[object] = [Cup]
    assert all(map(is_dataclass, classes))
    many = [Cup(tea="green") for _ in range(100)]  # The class has a constructor of its own now.
    assert set(map(repr, many)) == {repr(Cup(tea="green"))}
    own, standard = signature(Cup), signature(Standard)
    assert [(p.name, p.kind) for p in own.parameters.values()] == [
        (p.name, p.kind) for p in standard.parameters.values()
    ]


@pytest.mark.parametrize("given", [{}, {"tea": "green", "milk": 1}])
def test_the_first_and_every_other_call_take_exactly_the_fields(given: dict[str, Any]) -> None:
    @frozen
    class Fresh:
        """Not called yet."""

        tea: str

    with pytest.raises(TypeError):
        Fresh(**given)
    with pytest.raises(TypeError):
        Fresh("green")  # type: ignore[call-arg]
    assert all(Fresh(tea="green").tea == "green" for _ in range(100))
    with pytest.raises(TypeError):
        Fresh(**given)


def test_values_are_equal_by_class_and_fields() -> None:
    assert Cup(tea="green") == Cup(tea="green", sugar=0)
    assert Cup(tea="green") != Cup(tea="black")
    others: list[object] = [Mug(tea="green"), "green"]
    assert Cup(tea="green") not in others
    first, second = Cup(tea="green", spoons=("a",)), Cup(tea="green", spoons=("a",))
    assert hash(first) == hash(second)


def test_a_value_never_changes_but_can_be_replaced() -> None:
    cup = Cup(tea="green")

    with pytest.raises(FrozenInstanceError):
        cup.sugar = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del cup.tea
    assert replace(cup, sugar=2) == Cup(tea="green", sugar=2)
    assert cup.sugar == 0


@record
class Count:
    """A value that changes."""

    number: int = 0


def test_a_record_can_be_changed_and_has_no_hash() -> None:
    for _ in range(60):  # The first values share a slower constructor.
        count = Count()
        count.number += 1

        assert count == Count(number=1) != Count()
        with pytest.raises(TypeError, match="unhashable"):
            hash(count)


T = TypeVar("T")


class Place(NamedTuple):
    """A place."""

    path: str
    line: int = 1

    @property
    def shown(self) -> str:
        return f"{self.path}:{self.line}"


class Box(NamedTuple, Generic[T]):
    """A generic tuple."""

    value: T


class Base(typing.NamedTuple):
    """The standard library's, for comparison."""

    path: str
    line: int = 1


def test_a_named_tuple_is_one_of_the_standard_library() -> None:
    make: Any = Place
    for _ in range(30):  # Among many values, one compiles the function that makes the others.
        place = Place("a", line=2)
        standard = Base("a", line=2)

        assert tuple(place) == tuple(standard) == ("a", 2)
        assert place < Place("b")
        assert (place.path, place.line, place.shown) == ("a", 2, "a:2")
        assert hash(place) == hash(standard)
        assert repr(place) == repr(standard).replace("Base", "Place")
        assert place._asdict() == standard._asdict()
        assert tuple(place._replace(line=3)) == tuple(standard._replace(line=3))
        assert Place._make(["a", 2]) == place == copy.copy(place)
        assert tuple(Place("a")) == tuple(Base("a"))
        assert Place._fields == Base._fields
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'path'"):
            make()
        with pytest.raises(TypeError, match="unexpected keyword argument 'column'"):
            make("a", column=1)
        with pytest.raises(AttributeError):
            place.path = "b"  # type: ignore[misc]
        with pytest.raises(AttributeError):
            place.column = 1  # type: ignore[attr-defined]
        match place:
            case Place(path, line):
                assert (path, line) == ("a", 2)
    assert Box(1).value == 1


def test_annotations_may_be_made_when_they_are_read() -> None:
    """From Python 3.14 on, the namespace of a class does not have them."""
    made = property(lambda _: {"tea": str, "sugar": int})
    plain: Any = type("Late", (type,), {"__annotations__": made})
    tuples: Any = type("LateTuples", (type(NamedTuple),), {"__annotations__": made})

    late: Any = frozen(plain("Late", (), {"sugar": 2}))
    pair = tuples("Pair", (NamedTuple,), {"sugar": 2})

    assert repr(late(tea="green")) == "Late(tea='green', sugar=2)"
    assert repr(pair("green")) == "Pair(tea='green', sugar=2)"
    assert pair("green").sugar == 2
    assert [field.name for field in fields_of(late)] == ["tea", "sugar"]
