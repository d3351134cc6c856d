"""The door for foreign data: every text is read, or refused by one error."""

from __future__ import annotations

import json
import math
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.data.loads import MAX_DEPTH, DataError, bounded, loads

DEEP = 100_000
NUMBER = "7" * 4_301
SYNTAXES = ("json", "toml", "yaml")


@pytest.mark.attack("a text that is nested more deeply than a parser can follow")
@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        ("json", "[" * DEEP),
        ("json", "[" * DEEP + "]" * DEEP),
        ("json", '{"a":' * DEEP + "1" + "}" * DEEP),
        ("json", '[{"]\\"}": ' * DEEP),
        ("json", '["[\\\\", ' * DEEP),
        ("toml", "a = " + "[" * DEEP + "]" * DEEP),
        ("toml", "a = " + "{a = " * DEEP),
        ("toml", ".".join("a" * DEEP) + " = 1"),
        ("toml", "[" + ". ".join(["'a'"] * DEEP) + "]"),
        ("toml", "x = 1\na = {" + "b.c.d = {" * 40),
        ("toml", "a = [\n" + "[\n" * DEEP),
        ("yaml", "[" * DEEP),
        ("yaml", "{a: " * DEEP),
        ("yaml", "- " * DEEP + "x"),
        ("yaml", "\n".join(" " * level + "a:" for level in range(300))),
    ],
)
def test_deep_texts_are_refused_with_their_place(syntax: Any, text: str) -> None:
    with pytest.raises(DataError, match=r"line \d+, column \d+: nested too deeply") as raised:
        loads(text, syntax)
    assert raised.value.is_well_formed


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        ("json", "[" * MAX_DEPTH + "]" * MAX_DEPTH),
        ("json", "[" + '"[", "{", "[\\"["' * 1 + ", []" * 1_000 + "]"),
        ("json", json.dumps(["\\", '"', "[[[[", *["]"] * 200, [[["["]]]])),
        ("toml", "a = " + "[" * 60 + "]" * 60),
        ("toml", "a = '" + "[." * 500 + "'\n# " + "[a." * 500 + "\n"),
        ("toml", 'a = """' + '\n".[x' * 500 + '"""\nb = [' + "1.5, " * 500 + "]\n"),
        ("toml", "".join(f"[a.b{n}]\nc.d = 1.5\n" for n in range(300))),
        ("yaml", "[" * 60 + "]" * 60),
        ("yaml", "a: '" + "[" * 500 + "'\n"),
    ],
)
def test_flat_texts_are_read_whatever_is_in_their_strings(syntax: Any, text: str) -> None:
    parser = {"json": json.loads, "toml": tomllib.loads}.get(syntax)
    assert parser is None or loads(text, syntax) == parser(text)
    assert loads(text, syntax)


@pytest.mark.attack("a number that takes a parser quadratic time")
@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        ("json", NUMBER),
        ("json", "[" + "7" * 20_000 + "]"),
        ("toml", f"a = {NUMBER}"),
        ("toml", "a = [\n" + "1_" * 20_000),
        ("yaml", f"a: {NUMBER}"),
        ("yaml", "a: " + "1:" * 20_000 + "1"),
    ],
)
def test_long_numbers_are_refused(syntax: Any, text: str) -> None:
    with pytest.raises(DataError, match="digits"):
        loads(text, syntax)


def test_long_digits_in_a_string_are_read() -> None:
    digits = "7" * 20_000
    assert loads(f'["{digits}", 1]') == [digits, 1]
    assert loads(f"a = '{digits}'", "toml") == {"a": digits}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[\n  {"a": }]', "line 2, column 9: expecting value"),
        ("", "line 1, column 1: expecting value"),
        (b'{"a": "\xff"}', "line 1: not UTF-8"),
        ("[NaN]", "`NaN` is not a number in JSON"),
        ("-Infinity", "`-Infinity` is not a number in JSON"),
        ('{"a": "\x00"}', "line 1, column 8: invalid control character at"),
        ("[" * 500 + "x", "line 1, column 129: nested too deeply"),
        # Not JSON at all, so the text is not "nested too deeply".
        ("[INFO] " + "[31m" * 500, "line 1, column 2: expecting value"),
    ],
)
def test_errors_name_the_place_in_json(text: Any, message: str) -> None:
    with pytest.raises(DataError) as raised:
        loads(text)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("syntax", "text", "message"),
    [
        ("toml", "a = 1\nb = \n", "line 2, column 5: invalid value"),
        ("toml", "a = 1\na = 2\n", "line 2, column 6: cannot overwrite a value"),
        ("toml", "a = 'x", 'expected "\'" (at end of document)'),
        (
            "yaml",
            "a: 1\n b: 2\n",
            "line 2, column 3: mapping values are not allowed in this context",
        ),
        ("yaml", "a: !!timestamp x\n", "a value can't be read"),
        ("yaml", "a: &a\n  - *a\n", "line 2, column 5: an alias within an anchor"),
    ],
)
def test_errors_name_the_place_in_toml_and_yaml(syntax: Any, text: str, message: str) -> None:
    with pytest.raises(DataError) as raised:
        loads(text, syntax)
    assert str(raised.value) == message


def test_aliases_beside_each_other_are_read_in_yaml() -> None:
    assert loads("a: &a [1]\nb: *a\nc: {<<: {d: 1}}\n", "yaml") == {
        "a": [1],
        "b": [1],
        "c": {"d": 1},
    }


def test_exactness_refuses_what_would_be_lost() -> None:
    assert loads('{"a": 1, "a": 2}') == {"a": 2}
    for text, message in (
        ('[{"a": 1, "b": 1, "a": 2}]', "an object has the key `a` twice"),
        (f"-{NUMBER}", "the integer `-77777777777…` has 4,301 digits, and at most 4,300 fit"),
    ):
        with pytest.raises(DataError, match=message) as raised:
            loads(text, exact=True)
        assert raised.value.is_well_formed
    with pytest.raises(DataError) as raised:
        loads('{"a": 1, "a": 2} and more', exact=True)
    assert not raised.value.is_well_formed


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_a_text_beyond_the_size_is_refused(syntax: Any) -> None:
    text = '{"a": 1}' if syntax == "json" else "a: 1\n" if syntax == "yaml" else "a = 1\n"
    assert loads(text, syntax, limit=len(text)) == {"a": 1}
    with pytest.raises(DataError, match="larger than 4 bytes"):
        loads(text.encode(), syntax, limit=4)


@pytest.mark.parametrize(("syntax", "text"), [("json", "[1]"), ("toml", "a = 1"), ("yaml", "a: 1")])
def test_a_byte_order_mark_is_ignored(syntax: Any, text: str) -> None:
    assert loads(f"\ufeff{text}", syntax) == loads(f"\ufeff{text}".encode(), syntax)
    assert bounded(f"\ufeff{text}", syntax) == text


VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.booleans())
def test_json_is_read_as_it_was_written(value: Any, ascii: bool) -> None:
    if isinstance(value, float) and math.isinf(value):
        return
    text = json.dumps(value, ensure_ascii=ascii)
    if "Infinity" not in text:
        assert loads(text.encode("utf-8", "surrogatepass"), exact=True) == value


PIECES = st.sampled_from(
    [
        *"[]{}\"'\\.,:=#\n&*!-|>%@<? \t\0\ufeff\ud800é0",
        *('"""', "'''", "a", "a.b", "[[", "]]", "{a = ", "true", "null", "NaN", "1e999", "0x"),
        *("!!int ", "!!timestamp ", "!!binary ", "!!omap ", "!!python/name:os.system ", "<<: "),
        *("2024-99-99", "1:2", "&a ", "*a", "---\n", "a: ", "- ", "? ", "\r\n", "\\ud800"),
        *("[" * 120, "{a: " * 120, "a." * 120, "7" * 4_400, "- " * 120, '{"a":' * 120),
    ]
)


@given(
    st.sampled_from(SYNTAXES), st.lists(PIECES, max_size=30).map("".join) | st.text() | st.binary()
)
def test_no_text_raises_anything_else(syntax: Any, data: Any) -> None:
    try:
        loads(data, syntax)
    except DataError as error:
        str(error).encode("utf-8", "surrogatepass")
