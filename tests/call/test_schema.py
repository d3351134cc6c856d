"""Schemas of what commands take and answer, and the encoder of answers."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mimo.call.schema import input_schema, output_schema
from mimo.call.spec import (
    Arg,
    Effect,
    Json,
    Omitted,
    Out,
    Spec,
    Tool,
    command,
    shape_of,
    spec_of,
    to_json,
)


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row."""

    id: str
    score: Annotated[float, "How well it fits"]
    seen: datetime | None
    colour: Omitted[Colour] = None
    from_: Annotated[str | None, Out("Who", wire="from")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Some rows."""

    rows: tuple[Row, ...]
    counts: dict[str, int]
    first: Row | None = None
    shade: Colour | None = None
    anything: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """A row with less."""

    id: str
    day: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """Rows of another kind, with some of the same names."""

    rows: tuple[Short, ...]
    shade: Colour
    stored: bool


BOX = Tool(name="box", description="")


def spec(function: Any, **settings: Any) -> Spec:
    name = settings.pop("name", "sample")
    declared = spec_of(command(name, effect=Effect.READ, toolset="extra", **settings)(function))
    assert declared is not None
    return declared


def taking(it: Any) -> Spec:
    """Returns a command with a required parameter of the given type."""

    def function(call: Any, it: Any) -> Rows:
        """Do something"""
        raise AssertionError

    function.__annotations__["it"] = it
    return spec(function)


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Json, {}),
        (Colour, {"type": "string", "enum": ["red", "green"]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (str | None, {"type": "string"}),
        (
            tuple[Colour, ...],
            {"type": "array", "items": {"type": "string", "enum": ["red", "green"]}},
        ),
        (tuple[Json, ...] | None, {"type": "array", "items": {}}),
    ],
)
def test_a_parameter_may_have_one_of_few_types(annotation: Any, schema: dict[str, Any]) -> None:
    published = input_schema([taking(it=Annotated[annotation, Arg("It")])])

    assert published["properties"]["it"] == schema | {"description": "It"}


@pytest.mark.parametrize(
    "annotation",
    [
        dict[str, int],
        list[str],
        bytes,
        datetime,
        Row,
        Any,
        str | int,
        tuple[str, int],
        "str",
        Literal[1, 2],
        object,
    ],
)
def test_any_other_type_is_refused(annotation: Any) -> None:
    with pytest.raises(TypeError):
        shape_of(annotation)


@pytest.mark.parametrize("annotation", [list[str], bytes, dict[int, str], Any, str | int, object])
def test_a_result_has_a_closed_set_of_types(annotation: Any) -> None:
    def function(call: Any) -> Any:
        """Do something"""

    function.__annotations__["return"] = annotation
    with pytest.raises(TypeError):
        output_schema([spec(function)])


def test_the_schema_has_limits_defaults_and_published_names() -> None:
    def function(
        call: Any,
        from_: Annotated[str, Arg("Who", wire="from")],
        *,
        limit: Annotated[int, Arg("Most", ge=1, le=100)] = 10,
        tags: Annotated[tuple[str, ...], Arg("Tags")] = (),
        colour: Annotated[Colour, Arg("Colour")] = Colour.RED,
    ) -> Rows:
        """Do something"""
        raise AssertionError

    assert input_schema([spec(function)]) == {
        "type": "object",
        "properties": {
            "from": {"type": "string", "description": "Who"},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 100,
                "default": 10,
                "description": "Most",
            },
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags"},
            "colour": {
                "type": "string",
                "enum": ["red", "green"],
                "default": "red",
                "description": "Colour",
            },
        },
        "required": ["from"],
        "additionalProperties": False,
    }


def find(
    call: Any,
    text: Annotated[str, Arg("Text")],
    *,
    limit: Annotated[int, Arg("Most", ge=1, le=10)] = 10,
    size: Annotated[float, Arg("Size")] = 0.5,
) -> Rows:
    """Find"""
    raise AssertionError


def shut(
    call: Any,
    *,
    limit: Annotated[int, Arg("Most", ge=1, le=50)] = 20,
    size: Annotated[float, Arg("Size")] = 0.5,
    text: Annotated[str | None, Arg("Text")] = None,
) -> Other:
    """Shut"""
    raise AssertionError


@pytest.mark.req("000-29")
def test_operations_share_one_flat_input() -> None:
    schema = input_schema(
        [spec(find, name=BOX, operation="find"), spec(shut, name=BOX, operation="shut")]
    )

    assert schema == {
        "type": "object",
        "properties": {
            "operation": {
                "type": "string",
                "enum": ["find", "shut"],
                "description": "What to do",
            },
            "text": {"type": "string", "description": "find: Text (required); shut: Text"},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "description": "find: Most (default 10); shut: Most (default 20)",
            },
            "size": {"type": "number", "default": 0.5, "description": "find, shut: Size"},
        },
        "required": ["operation"],
        "additionalProperties": False,
    }


def test_operations_may_not_take_one_argument_with_two_types() -> None:
    def other(call: Any, text: Annotated[int, Arg("Text")]) -> Other:
        """Other"""
        raise AssertionError

    with pytest.raises(TypeError, match="`text`"):
        input_schema([spec(find, operation="find"), spec(other, operation="other")])


def test_a_result_is_described_with_its_rows() -> None:
    row = {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "score": {"type": "number", "description": "How well it fits"},
            "seen": {"type": ["string", "null"], "format": "date-time"},
            "colour": {"type": "string", "enum": ["red", "green"]},
            "from": {"type": ["string", "null"], "description": "Who"},
        },
        "required": ["id", "score", "seen", "from"],
    }

    assert output_schema([spec(find)]) == {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": row},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "first": row | {"type": ["object", "null"]},
            "shade": {"type": ["string", "null"], "enum": ["red", "green", None]},
            "anything": {},
        },
        "required": ["rows", "counts", "first", "shade", "anything"],
    }


def test_the_output_of_operations_requires_only_common_fields() -> None:
    schema = output_schema([spec(find, operation="find"), spec(shut, operation="shut")])

    assert schema["required"] == ["rows", "shade"]
    assert list(schema["properties"]) == ["rows", "counts", "first", "shade", "anything", "stored"]
    assert schema["properties"]["shade"]["type"] == ["string", "null"]
    assert schema["properties"]["rows"]["items"]["required"] == ["id"]
    for result in (
        rows(),
        Other(rows=(Short(id="a", day="Monday"),), shade=Colour.RED, stored=True),
    ):
        Draft202012Validator(schema).validate(to_json(result))


def rows() -> Rows:
    row = Row(id="a", score=0.5, seen=datetime(2026, 11, 20, 15, 30, tzinfo=UTC))
    return Rows(rows=(row,), counts={"x": 1}, first=row, anything=[1, {"a": None}])


def test_a_result_is_encoded_by_published_names_without_absent_fields() -> None:
    row = {"id": "a", "score": 0.5, "seen": "2026-11-20T15:30:00Z", "from": None}

    assert to_json(rows()) == {
        "rows": [row],
        "counts": {"x": 1},
        "first": row,
        "shade": None,
        "anything": [1, {"a": None}],
    }
    Draft202012Validator(output_schema([spec(find)])).validate(to_json(rows()))


def test_times_of_every_zone_are_encoded_in_utc() -> None:
    zone = timezone(timedelta(hours=2))

    assert to_json(datetime(2026, 11, 20, 1, 0, tzinfo=zone)) == "2026-11-19T23:00:00Z"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), datetime(2026, 1, 1)])
def test_a_value_without_a_json_form_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"JSON|zone"):
        to_json({"a": [value]})


@pytest.mark.parametrize("value", [b"bytes", object(), {1, 2}])
def test_an_unsupported_result_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        to_json(value)


@given(st.text(st.characters(codec=None), max_size=5))
def test_any_text_can_be_written_as_utf_8(text: str) -> None:
    assert isinstance(to_json(text).encode(), bytes)
