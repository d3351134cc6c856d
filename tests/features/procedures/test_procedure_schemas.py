"""Schemas of contexts: their faults, violations and patterns."""

import re
from contextlib import suppress
from typing import Any

import pytest

from mimo.features.procedures import schemas
from mimo.features.procedures.model import Refused

SCHEMA = {
    "required": ["branch"],
    "properties": {
        "branch": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^m"},
        "n": {"type": "integer", "minimum": 1, "maximum": 3},
        "f": {"type": "float"},
        "mode": {"enum": ["a", "b"]},
    },
}


@pytest.mark.parametrize(
    ("context", "messages"),
    [
        ({"branch": "main", "n": 2, "f": 1, "mode": "a"}, []),
        ({}, ["`branch` is missing"]),
        ({"branch": None}, ["`branch` is missing"]),
        ({"branch": 1}, ["`branch` must be of type string"]),
        ({"branch": "x"}, ["`branch` must have at least 2 characters", "`branch` must match `^m`"]),
        ({"branch": "mains"}, ["`branch` must have at most 4 characters"]),
        ({"branch": "main", "n": 0}, ["`n` must be at least 1"]),
        ({"branch": "main", "n": 4}, ["`n` must be at most 3"]),
        ({"branch": "main", "n": True}, ["`n` must be of type integer"]),
        ({"branch": "main", "mode": "c"}, ["`mode` must be one of a, b"]),
    ],
)
@pytest.mark.req("000-05")
def test_a_context_is_checked_against_the_schema(
    context: dict[str, Any], messages: list[str]
) -> None:
    assert schemas.violations(SCHEMA, context) == messages


HOST = {
    "type": "map",
    "required": ["name"],
    "properties": {"port": {"type": "integer", "exclusiveMinimum": 0}},
}


def test_the_messages_name_the_place_of_a_nested_value() -> None:
    schema = {
        "properties": {
            "hosts": {"type": "list", "minItems": 1, "items": HOST},
            "mode": {"oneOf": [{"const": "a"}, {"type": ["null", "map"]}]},
        },
        "additionalProperties": False,
    }
    hosts = [{"name": "a", "port": 0}, {"port": 1.5}, 3]

    assert schemas.faults(schema) == []
    assert schemas.violations(schema, {"hosts": hosts, "mode": "b", "x": 1}) == [
        "`hosts.0.port` must be more than 0",
        "`hosts.1.name` is missing",
        "`hosts.1.port` must be of type integer",
        "`hosts.2` must be of type object",
        "`mode`: 'b' is not valid under any of the given schemas",
        "the context: Additional properties are not allowed ('x' was unexpected)",
    ]
    assert schemas.violations(schema, {"hosts": []}) == ["`hosts` must have at least 1 items"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"required": "name"}, (("required",), "`required` must be of type array")),
        ({"properties": [1]}, (("properties",), "`properties` must be of type object")),
        (
            {"properties": {"a": [1]}},
            (("properties", "a"), "`properties.a` must be of type object, boolean"),
        ),
        (
            {"properties": {"a": {"minLength": -1}}},
            (("properties", "a", "minLength"), "`properties.a.minLength` must be at least 0"),
        ),
        (
            {"anyOf": [{"minLenght": 1}]},
            (
                ("anyOf", 0, "minLenght"),
                "`anyOf.0.minLenght` is not a keyword of JSON Schema that mind checks",
            ),
        ),
        (
            {"items": {"type": ["string", "text"]}},
            (
                ("items", "type"),
                f"`items.type` must be one of {', '.join(schemas.TYPES)}, not `text`",
            ),
        ),
    ],
)
def test_a_fault_of_a_schema_names_its_place(schema: Any, expected: tuple[Any, str]) -> None:
    assert schemas.faults(schema) == [expected]


def test_a_property_may_be_named_as_a_keyword() -> None:
    names = ("type", "pattern", "$ref", "properties", "required")
    schema = {"properties": {name: {"type": "integer"} for name in names}}

    assert schemas.faults(schema) == []
    assert schemas.violations(schema, dict.fromkeys(names, "x")) == [
        f"`{name}` must be of type integer" for name in names
    ]


@pytest.mark.attack("a schema that fetches a document or selects another engine")
@pytest.mark.parametrize(
    "keyword",
    [
        {"$ref": "https://example.org/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/properties/a"},
        {"$dynamicRef": "https://example.org/schema.json"},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"$id": "http://[x"},
        {"patternProperties": {"(a+)+$": True}},
        {"format": "regex"},
    ],
)
def test_a_schema_reads_nothing_but_itself(
    monkeypatch: pytest.MonkeyPatch, keyword: dict[str, Any]
) -> None:
    read: list[object] = []

    def refuse(*args: object, **_: object) -> None:
        read.append(args)
        raise OSError("refused")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("socket.create_connection", refuse)
    (word,) = keyword
    for schema in (keyword, {"properties": {"a": {"allOf": [{"not": keyword}]}}}):
        assert [place[-1] for place, _ in schemas.faults(schema)] == [word]
    with suppress(Exception):  # No procedure gets here: a file with faults does not run.
        schemas.violations({"properties": {"a": keyword}}, {"a": 1})
    assert read == []


def test_python_never_sees_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = r"^\pL(a+)+$"
    schema = {"propertyNames": {"pattern": pattern}, "not": {"required": ["b"]}}
    schemas.violation("pattern", "x", "x")  # Loads jsonschema, which compiles its own patterns.
    seen: list[object] = []
    search = re.search

    def recorded(pattern: Any, text: str, *flags: int) -> object:
        seen.append(pattern)
        return search(pattern, text, *flags)

    monkeypatch.setattr(re, "search", recorded)
    faults = schemas.faults(schema)

    assert (faults, schemas.violations(schema, {"다a": 1})) == ([], [])
    assert schemas.violations(schema, {"x" * 50 + "!": 1}) == [
        f"the context must match `{pattern}`"
    ]
    assert pattern not in seen


def test_a_huge_context_has_a_hundred_violations_at_most() -> None:
    schema = {"properties": {"a": {"items": {"type": "string"}}}}

    assert len(schemas.violations(schema, {"a": [1] * 10_000})) == 100


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^A", "Ada", True),
        ("^a", "Ada", False),
        ("da$", "Ada\n", True),
        ("^d", "a\nd", False),
        ("x*", "", True),
        ("다$", "가나다", True),
    ],
)
def test_patterns_match_the_whole_text_and_its_case(
    pattern: str, text: str, expected: bool
) -> None:
    assert schemas.matches(pattern, text) is expected


@pytest.mark.parametrize("pattern", ["(?=a)", r"(a)\1", "(", "a" * 600])
def test_unsupported_patterns_are_faults(pattern: str) -> None:
    reason = schemas.pattern_fault(pattern)

    assert reason is not None
    assert "RE2" in reason
    with pytest.raises(Refused, match="not a usable regular expression"):
        schemas.matches(pattern, "a")


def test_hostile_patterns_match_in_linear_time() -> None:
    """A backtracking engine would outlive the test run."""
    assert not schemas.matches("^(a+)+$", "a" * 50_000 + "!")
