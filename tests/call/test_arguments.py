"""Every surface checks arguments alike, and accepts exactly what the published schema does."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mimo.call import Surface
from mimo.call.arguments import choose, decode, shown
from mimo.call.schema import input_schema
from mimo.call.spec import Arg, Effect, Json, Spec, Tool, command, spec_of
from mimo.call.table import all_commands
from mimo.errors import Invalid


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


@command("mind_paint", effect=Effect.WRITE, toolset="extra")
def paint(
    call: Any,
    text: Annotated[str, Arg("What to paint", alias=("words", "content"))],
    *,
    count: Annotated[int, Arg("How often", ge=1, le=5)] = 1,
    share: Annotated[float | None, Arg("How much", ge=0, le=1)] = None,
    colour: Annotated[Colour, Arg("Colour")] = Colour.RED,
    size: Annotated[Literal["s", "m"] | None, Arg("Size")] = None,
    tags: Annotated[tuple[str, ...], Arg("Tags")] = (),
    wet: Annotated[bool, Arg("Wet paint")] = False,
    from_: Annotated[str | None, Arg("Who", wire="from")] = None,
    meta: Annotated[Json | None, Arg("Anything")] = None,
) -> Any:
    """Paint something"""


def spec_for(function: Any) -> Spec:
    spec = spec_of(function)
    assert spec is not None
    return spec


PAINT = spec_for(paint)


def taken(**arguments: Any) -> dict[str, Any]:
    return decode(PAINT, arguments, Surface.MCP)


def refused(**arguments: Any) -> Invalid:
    with pytest.raises(Invalid) as caught:
        taken(**arguments)
    return caught.value


def test_values_arrive_as_the_function_declares_them() -> None:
    given = {"text": "a", "count": 2.0, "share": 1, "colour": "green", "tags": ["x"], "from": "me"}

    assert taken(**given) == {
        "text": "a",
        "count": 2,
        "share": 1.0,
        "colour": Colour.GREEN,
        "size": None,
        "tags": ("x",),
        "wet": False,
        "from_": "me",
        "meta": None,
    }
    assert isinstance(taken(**given)["share"], float)
    assert isinstance(taken(**given)["count"], int)


def test_an_optional_argument_that_is_null_has_its_default() -> None:
    assert taken(text="a", count=None, colour=None)["count"] == 1
    assert taken(text="a", count=None, colour=None)["colour"] is Colour.RED


def test_an_argument_has_other_names_but_only_once() -> None:
    assert taken(words="a")["text"] == taken(content="a")["text"] == "a"
    assert refused(words="a", text="b").message == "`text` is given twice"


@pytest.mark.parametrize(
    ("arguments", "field", "message"),
    [
        ({}, "text", "`text` is missing"),
        ({"text": None}, "text", "`text` is missing"),
        ({"text": 1}, "text", "`text` must be text, not `1`"),
        ({"text": "\ud800"}, "text", "`text` must be text in UTF-8, not `?`"),
        ({"text": "a", "count": 0}, "count", "`count` must be between 1 and 5, not `0`"),
        ({"text": "a", "count": 1.5}, "count", "`count` must be a whole number, not `1.5`"),
        ({"text": "a", "count": "2"}, "count", "`count` must be a whole number, not `2`"),
        ({"text": "a", "count": True}, "count", "`count` must be a whole number, not `true`"),
        ({"text": "a", "share": 2}, "share", "`share` must be between 0 and 1, not `2`"),
        ({"text": "a", "share": float("nan")}, "share", "`share` must be a number, not `NaN`"),
        (
            {"text": "a", "colour": "blue"},
            "colour",
            "`colour` must be one of red, green, not `blue`",
        ),
        ({"text": "a", "tags": "x"}, "tags", "`tags` must be a list, not `x`"),
        ({"text": "a", "tags": [1]}, "tags", "`tags` must be text, not `1`"),
        ({"text": "a", "wet": 1}, "wet", "`wet` must be true or false, not `1`"),
        (
            {"text": "a", "meta": float("inf")},
            "meta",
            "`meta` must be JSON, without infinite numbers, not `Infinity`",
        ),
        ({"text": "a", "from_": "me"}, "from_", "`from_` is not an argument of `mind_paint`"),
    ],
)
@pytest.mark.req("000-33")
def test_a_wrong_argument_is_named(arguments: dict[str, Any], field: str, message: str) -> None:
    error = refused(**arguments)

    assert error.message == message
    assert error.details["field"] == field
    assert error.hint


@pytest.mark.parametrize("number", [2**63, 2.0**63, 1e300])
def test_a_number_larger_than_any_count_is_refused(number: float) -> None:
    with pytest.raises(Invalid, match="`offset` must be a whole number"):
        decode(all_commands().at("list"), {"offset": number}, Surface.MCP)


def test_the_error_for_an_unknown_argument_names_the_tool_as_it_is_listed() -> None:
    with pytest.raises(Invalid, match="is not an argument of `search_recent`"):
        decode(all_commands().at("search recent"), {"days": 3}, Surface.MCP)


def test_the_error_for_an_unknown_argument_suggests_the_nearest() -> None:
    assert refused(text="a", colur="red").hint == "did you mean `colour`?"
    assert refused(text="a", zzz=1).hint.startswith("arguments are text, count, ")


def test_a_long_value_is_cut_in_a_message() -> None:
    assert shown("x" * 100) == f"`{'x' * 59}…`"


def test_a_value_nested_too_deeply_is_refused() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]

    assert refused(text="a", meta=deep).message.startswith("`meta` must be nested at most 100")


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 8),
    st.floats(-2, 3, width=16),
    st.sampled_from(["red", "green", "s", "m", "x", ""]),
    st.lists(st.one_of(st.text(max_size=2), st.integers()), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)
names = ["text", "count", "share", "colour", "size", "tags", "wet", "from", "meta", "other"]


@given(st.dictionaries(st.sampled_from(names), values))
def test_our_checks_accept_what_the_published_schema_accepts(arguments: dict[str, Any]) -> None:
    present = {name: value for name, value in arguments.items() if value is not None}
    valid = Draft202012Validator(input_schema([PAINT])).is_valid(present)
    unknown_null = arguments.get("other", 0) is None

    try:
        taken(**arguments)
    except Invalid:
        assert not valid or unknown_null
    else:
        assert valid


BOX = Tool(name="box", description="Boxes")


@command(BOX, operation="open", effect=Effect.READ, toolset="extra")
def open_box(call: Any, *, width: Annotated[int, Arg("Width")] = 1) -> Any:
    """Open a box"""


@command(BOX, operation="shut", effect=Effect.READ, toolset="extra")
def shut_box(call: Any, lock: Annotated[str, Arg("Lock", alias="key")]) -> Any:
    """Shut a box"""


BOXES = [spec_for(open_box), spec_for(shut_box)]


def test_the_operation_chooses_the_command() -> None:
    assert choose(BOXES, {"operation": "shut", "lock": "a"}) == (BOXES[1], {"lock": "a"})
    assert choose([PAINT], {"text": "a"}) == (PAINT, {"text": "a"})


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({}, "`operation` is missing", "operations are open, shut"),
        ({"operation": 3}, "`operation` must be one of open, shut; not `3`", "operations are "),
        (
            {"operation": "open", "key": "a"},
            "`key` is not an argument of `open`",
            "it belongs to shut",
        ),
    ],
)
def test_a_wrong_operation_or_another_ones_argument_is_named(
    arguments: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(Invalid) as caught:
        choose(BOXES, arguments)

    assert caught.value.message == message
    assert caught.value.hint.startswith(hint)


@pytest.mark.req("000-30")
@pytest.mark.parametrize("arguments", [{}, {"operation": None}, {"operation": "burn"}])
def test_a_missing_or_unknown_operation_is_refused_with_the_valid_ones(
    arguments: dict[str, Any],
) -> None:
    with pytest.raises(Invalid) as caught:
        choose(all_commands().tools()["memory"], arguments)

    assert caught.value.message.startswith("`operation` ")
    listed = f"{caught.value.message} {caught.value.hint}"
    for operation in ("store", "search", "list", "delete", "stats", "decay_check"):
        assert operation in listed


def test_null_for_another_operations_argument_counts_as_absent() -> None:
    spec, rest = choose(BOXES, {"operation": "open", "lock": None})

    assert decode(spec, rest, Surface.MCP) == {"width": 1}


def test_a_list_of_words_is_split_at_commas_and_one_of_phrases_is_not() -> None:
    search, pitfall = (all_commands().at(path) for path in ("search", "pitfalls add"))

    words = decode(search, {"query": "x", "tags": ["auth, api", "db"]}, Surface.CLI)
    phrases = {"title": "x", "description": "y", "workaround": "z", "code": ["x{1,3}"]}

    assert words["tags"] == ("auth", "api", "db")
    assert decode(pitfall, phrases, Surface.CLI)["code"] == ("x{1,3}",)
