"""Duplicates and near-duplicates: the fields that count, and likeness."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mimo.memory.duplicates import (
    ALIKE,
    covers,
    left_out,
    likeness,
    sample,
    statement,
    telling,
    words_of,
)
from mimo.memory.model import Kind, Link, Memory, Outcome, Section

TEA = Memory(
    id="a",
    type=Kind.FACT,
    content="Tea is served at four",
    created=datetime(2026, 1, 1, tzinfo=UTC),
)
JWT = replace(
    TEA,
    type=Kind.DECISION,
    content="Use JWT",
    topic="auth_strategy",
    confidence=0.7,
    sections={Section.REASONING: "No session store"},
)


@pytest.mark.parametrize(
    "other",
    [
        replace(TEA, content="  Tea is   served\r\nat four\n"),
        replace(TEA, id="b", created=datetime(2027, 1, 1, tzinfo=UTC), by="somebody"),
        replace(TEA, title="Tea is served at four"),
        replace(TEA, tags=("tea",), importance=0.9),
    ],
)
def test_other_fields_do_not_change_a_statement(other):
    assert statement(other) == statement(TEA)


def test_composed_and_decomposed_letters_are_equal():
    composed, apart = "caf\u00e9", "cafe\u0301"
    assert statement(replace(TEA, content=composed)) == statement(replace(TEA, content=apart))


@pytest.mark.parametrize(
    "other",
    [
        replace(TEA, content="tea is served at four"),
        replace(TEA, content="Tea is served at five"),
        replace(TEA, type=Kind.OBSERVATION),
        replace(TEA, topic="tea"),
        replace(TEA, title="Drinks"),
        replace(TEA, sections={Section.REASONING: "It is the custom"}),
    ],
)
def test_another_text_type_topic_title_or_reason_is_another_statement(other):
    assert statement(other) != statement(TEA)


def test_a_topic_is_the_same_in_all_its_spellings_and_an_outcome_changes_no_statement():
    other = replace(JWT, topic="Auth Strategy", outcome=Outcome.FAILED)
    sections = {**other.sections, Section.OUTCOME: "It leaked"}
    assert statement(replace(other, sections=sections)) == statement(JWT)


@pytest.mark.parametrize(
    ("draft", "covered"),
    [
        (JWT, True),
        (replace(JWT, tags=("x",)), True),
        (replace(JWT, links=(Link(to="b"),)), False),
        (replace(JWT, outcome=Outcome.FAILED), False),
        (replace(JWT, status="open"), False),
        (replace(JWT, confidence=0.9), False),
    ],
)
def test_a_new_link_outcome_status_or_confidence_is_not_covered(draft, covered):
    assert covers(JWT, draft) is covered


def test_further_fields_of_the_existing_memory_do_not_matter():
    older = replace(JWT, links=(Link(to="b"),), outcome=Outcome.FAILED, confidence=0.4)
    assert covers(older, JWT)


def test_fields_of_a_draft_that_would_be_lost_are_named():
    draft = replace(TEA, tags=("Tea", "four"), importance=0.9, category="food", source="a cook")
    assert left_out(TEA, draft) == ("tags", "importance", "category", "source")
    assert left_out(draft, replace(draft, tags=("tea",))) == ()
    assert left_out(draft, replace(draft, tags=("FOUR",))) == ()
    assert left_out(draft, TEA) == ()


class TestLikeness:
    def test_equal_words_are_wholly_alike_and_different_ones_not_at_all(self):
        tea, rain = frozenset({"tea", "four"}), frozenset({"rain"})
        assert likeness(tea, tea) == 1.0
        assert likeness(tea, rain) == 0.0
        assert likeness(frozenset(), frozenset()) == 0.0

    def test_a_note_is_not_like_a_document_that_contains_it(self):
        note = frozenset({"tea", "four"})
        assert likeness(note, note | set("abcdefghij")) < ALIKE

    def test_stop_words_count_only_if_there_are_no_others(self):
        assert words_of("the tea is hot hot") == {"tea", "hot"}
        assert words_of("to be or not") == {"to", "be", "or", "not"}


def test_a_long_text_is_looked_up_by_an_even_sample_of_its_words():
    words = frozenset(f"w{number:04}" for number in range(1000))
    chosen = sample(words)
    assert len(chosen) == 48
    assert chosen[0] == "w0000"
    assert chosen[-1] > "w0900"
    assert sample(frozenset("ba")) == ["a", "b"]


def test_the_rarest_words_are_looked_up():
    assert telling({"tea": 9, "four": 2, "is": 50, "hot": 3}) == ["four", "hot"]
    assert telling({}) == []
