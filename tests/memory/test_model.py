"""The types of memories, and limits of their fields."""

from datetime import UTC, datetime

import pytest

from mimo.errors import Invalid
from mimo.memory.model import (
    MAX_CONTENT_BYTES,
    Category,
    Kind,
    Memory,
    Section,
    check_content,
    check_unit,
    kind_of,
    tag_key,
    topic_key,
)

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def test_every_type_is_shown_as_exactly_one_category():
    shown = [kind for category in Category for kind in category.kinds]

    assert sorted(shown) == sorted(Kind)


def test_a_category_stores_the_type_of_its_own_name():
    for category in Category:
        assert Kind(category).category is category


def test_learning_is_another_word_for_insight():
    assert kind_of("Learning ") is Kind.INSIGHT
    assert [kind_of(f"{word.upper()}s") for word in Kind] == list(Kind)


@pytest.mark.req("004-20")
def test_an_unknown_type_is_refused_with_the_known_ones():
    with pytest.raises(Invalid, match="`novel`") as caught:
        kind_of("novel")

    assert "decision" in caught.value.hint


@pytest.mark.parametrize("content", ["", " \n\t "])
def test_empty_content_is_refused(content):
    with pytest.raises(Invalid, match="empty"):
        check_content(content)


def test_the_limit_on_content_counts_bytes_and_not_characters():
    assert check_content("x" * MAX_CONTENT_BYTES)
    with pytest.raises(Invalid, match="at most"):
        check_content("결" * (MAX_CONTENT_BYTES // 3 + 1))


@pytest.mark.req("000-33")
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), 10**400])
def test_a_value_outside_the_unit_interval_is_refused_by_its_name(value):
    with pytest.raises(Invalid, match="importance"):
        check_unit("importance", value)


def test_the_heading_is_the_title_or_else_a_short_first_line():
    plain = Memory(
        id="m",
        type=Kind.FACT,
        content="\n" + "word " * 40,
        created=NEW_YEAR,
    )

    assert len(plain.heading) <= 80
    assert plain.heading.endswith("…")


@pytest.mark.parametrize(
    ("content", "heading"),
    [
        ("---\n\nTea", "Tea"),
        ("<!-- a\nb -->\nTea", "Tea"),
        ("[![Build](a.svg)](https://ci) ![x](y)\nTea", "Tea"),
        ("- [ ] Tea", "Tea"),
        ("> 1. Tea", "Tea"),
        ("See [tea](a.md) or [[cup|the cup]]", "See tea or the cup"),
        ("- \n***\n```sh\nTea", "Tea"),
        ("-5 degrees", "-5 degrees"),
        ("a [b] c", "a [b] c"),
    ],
)
def test_the_heading_has_no_marks_of_markdown(content, heading):
    assert Memory(id="m", type=Kind.FACT, content=content, created=NEW_YEAR).heading == heading


def test_the_text_has_the_sections_under_their_headings():
    memory = Memory(
        id="m",
        type=Kind.DECISION,
        content="Use JWT",
        created=NEW_YEAR,
        sections={Section.REASONING: "It scales"},
    )

    assert memory.text == "Use JWT\n\n## Reasoning\nIt scales"


@pytest.mark.parametrize(
    ("key", "spellings"),
    [
        ("auth_strategy", ("Auth strategy", "auth-strategy", "AUTH__STRATEGY ")),
        ("istanbul", ("\u0130stanbul", "istanbul", "ISTANBUL", "I\u0307stanbul")),
        ("strasse", ("Straße", "STRASSE")),
    ],
)
def test_spellings_of_a_topic_have_one_key(key, spellings):
    assert {topic_key(topic) for topic in spellings} == {key}


def test_a_tag_has_one_key_in_each_form_of_unicode():
    assert tag_key("Gro\u0308ße") == tag_key("gr\u00f6SSE")
