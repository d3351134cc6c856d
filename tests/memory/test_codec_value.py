"""Values in their files, and back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.errors import Invalid
from mimo.memory.codec.document import Unreadable
from mimo.memory.codec.value import exactly, other_keys, packed, parse, render

TEXT = st.text(max_size=20) | st.sampled_from(["no", "1", "0x10", "~", "---", "```", "a: b", "*x"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)


def encodable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("note: |\n  a\n" + "\n" * 40_000 + "  b\n", "larger than 64 KiB"),
        ('"' + r"\x7f" * 190 + '": 1\n', "could not find expected ':'"),
        ("".join(f"k{number}: 1\n" for number in range(198)), "more than 200 keys"),
    ],
    ids=["text", "key", "count"],
)
def test_other_keys_are_refused_if_they_could_not_be_read_again(header: str, reason: str) -> None:
    other = other_keys(f"---\n{header}---\n```json\n1\n```\n".encode())

    with pytest.raises(Invalid, match=f"can't be written again: .*{reason}"):
        render("agent.x", "k", 2, other)


@given(VALUES.filter(encodable))
@pytest.mark.req("002-20", "002-25")
def test_every_value_is_restored_exactly(value: Any) -> None:
    namespace, key, read = parse(render("agent.x", "k", value))

    assert (namespace, key) == ("agent.x", "k")
    assert exactly(read, value)


@pytest.mark.parametrize(
    "value",
    [
        10**60,
        -(2**63),
        1.0,
        1e22,
        -0.0,
        5e-324,
        0.1,
        "",
        "\n",
        "line\r\nline\n",
        "\u2028\ufeff é 漢字 🙂",
        "x" * 100_000,
        [],
        {},
        {"": None},
        {"value": {"value": 1}},
        list(range(5_000)),
        {str(number): number for number in range(500)},
        {"a" * 2_000: 1},
    ],
)
@pytest.mark.req("002-20")
def test_unusual_values_are_restored_exactly(value: Any) -> None:
    assert exactly(parse(render("agent.x", "k", value))[2], value)


def test_a_header_is_measured_in_bytes() -> None:
    value = "🙂" * 16_374

    assert parse(render("agent.x", "k" * 99, value)) == ("agent.x", "k" * 99, value)


def test_values_beyond_the_depth_limit_are_refused() -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]

    assert parse(render("agent.x", "k", value))[2] == value
    with pytest.raises(Invalid, match="nested deeper"):
        packed([value])


def test_a_value_that_holds_itself_a_thousand_times_is_refused_at_once() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(Invalid):
        packed(value)


@pytest.mark.parametrize(
    "value", [["\ud800"], {"\udfff": 1}, [10**5000], [float("nan")], [float("inf")]]
)
@pytest.mark.req("002-23")
def test_values_that_are_not_json_are_refused(value: Any) -> None:
    with pytest.raises(Invalid):
        packed(value)


def test_a_mapping_is_yaml_and_a_list_is_json() -> None:
    assert render("agent.ui", "prefs", {"theme": "dark", "at": {"x": 1}}).decode() == (
        "---\nnamespace: agent.ui\nkey: prefs\nvalue:\n  theme: dark\n  at:\n    x: 1\n---\n"
    )
    assert render("agent.ui", "sizes", [1, 2]).decode() == (
        "---\nnamespace: agent.ui\nkey: sizes\n---\n```json\n[\n  1,\n  2\n]\n```\n"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("---\nvalue: 3\n---\n", 3),
        ("---\r\nvalue: 3\r\n---\r\nsaid by hand\r\n", 3),
        ('Notes.\n\n```json\n{"a": 1}\n```\n\nMore notes.\n', {"a": 1}),
        ("---\nkey: k\n---\n```\nnull\n```\n", None),
        ("\ufeff---\nvalue: [a, b]\n---\n", ["a", "b"]),
    ],
)
def test_handwritten_values_are_read(text: str, value: Any) -> None:
    assert parse(text.encode())[2] == value


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", None),
        ("just text\n", 1),
        ("---\nvalue: 1\n---\n```json\n2\n```\n", 1),
        ("```json\n1\n```\n```json\n2\n```\n", 1),
        ("---\nkey: k\n---\n```json\n{\n  broken\n}\n```\n", 6),
        ('```json\n{"a": 1, "a": 2}\n```\n', 2),
        ("```json\nNaN\n```\n", 2),
        ("---\nvalue: &x 1\n---\n", 2),
        ("---\nkey: [1]\nvalue: 1\n---\n", 1),
        ("<<<<<<< ours\nvalue: 1\n", 1),
    ],
)
def test_a_broken_file_is_reported_with_its_line(text: str, line: int | None) -> None:
    with pytest.raises(Unreadable) as caught:
        parse(text.encode())

    assert caught.value.line == line


@pytest.mark.attack("repeated text takes quadratic time")
def test_blocks_without_an_end_are_read_in_linear_time() -> None:
    """In quadratic time it would take hours."""
    text = "---\nnamespace: a\n---\n" + "```json\n" * 500_000

    with pytest.raises(Unreadable, match="needs one value"):
        parse(text.encode())
