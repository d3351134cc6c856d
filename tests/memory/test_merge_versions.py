"""A field by the name of its versions: its current value, and choosing another."""

from datetime import UTC, datetime
from typing import Any

import pytest

from mimo.errors import Invalid
from mimo.memory.merge import chosen, current_version, is_text
from mimo.memory.model import Kind, Memory, Outcome, Section, Version


def memory(**fields):
    made: dict[str, Any] = {
        "id": "x", "type": Kind.DECISION, "content": "Use JWT",
        "created": datetime(2026, 11, 20, tzinfo=UTC),
    }  # fmt: skip
    return Memory(**(made | fields))


@pytest.mark.parametrize(
    ("name", "fields", "shown"),
    [
        ("the text", {}, "Use JWT"),
        ("the section Reasoning", {"sections": {Section.REASONING: "Why"}}, "Why"),
        ("the section Reasoning", {}, ""),
        ("outcome", {"outcome": Outcome.FAILED}, "FAILED"),
        ("outcome", {}, "null"),
        ("importance", {"importance": 0.9}, "0.9"),
        ("title", {"title": "A: b"}, '"A: b"'),
        ("protected", {"protected": True}, "true"),
        ("colour", {"extra": {"colour": ["red", 1]}}, "[red, 1]"),
    ],
)
def test_current_value_reads_as_a_version(name, fields, shown):
    assert current_version(memory(**fields), name) == shown
    again = chosen(memory(**fields), name, shown)
    assert current_version(again, name) == shown


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("the text", "Use sessions", "content", "Use sessions"),
        ("outcome", "SUCCESS", "outcome", Outcome.SUCCESS),
        ("outcome", "null", "outcome", None),
        ("importance", "null", "importance", 0.5),
        ("confidence", "0.4", "confidence", 0.4),
        ("title", '"A: b"', "title", "A: b"),
        ("colour", "blue", "extra", {"colour": "blue"}),
        ("colour", "null", "extra", {}),
    ],
)
def test_chosen_version_becomes_the_value_and_competes_no_longer(name, text, attribute, value):
    rest = Version(field="topic", text="x")
    before = memory(
        outcome=Outcome.FAILED, importance=0.9, extra={"colour": "red"} if name == "colour" else {},
        competing=(Version(field=name, text=text), rest),
    )  # fmt: skip

    after = chosen(before, name, text)

    assert getattr(after, attribute) == value
    assert after.competing == (rest,)


def test_value_that_a_header_cannot_hold_is_refused():
    with pytest.raises(Invalid):
        chosen(memory(), "title", "[unclosed")


def test_only_prose_can_keep_several_versions():
    assert [is_text(n) for n in ("the text", "the section Outcome", "outcome")] == [1, 1, 0]
