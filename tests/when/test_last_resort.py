"""What parsedatetime is heard on, and what it is not."""

import sys
import time
from datetime import UTC, datetime

import pytest

from mimo import when
from mimo.errors import Invalid
from tests.conftest import NOW


@pytest.mark.parametrize(
    ("phrase", "moment"),
    [
        ("2 hours after noon yesterday", datetime(2026, 11, 19, 14, tzinfo=UTC)),
        ("5 minutes before midnight yesterday", datetime(2026, 11, 18, 23, 55, tzinfo=UTC)),
        ("last tuesday at 3 pm", datetime(2026, 11, 17, 15, tzinfo=UTC)),
    ],
)
def test_a_moment_that_was_read_whole_counts(phrase, moment):
    found = when.read_anything(phrase, NOW)

    assert found is not None
    assert found.since == moment


@pytest.mark.parametrize(
    "phrase",
    [
        "tuesday at 3pm",  # it means the next one
        "tomorrow at 3pm",
        "sat at 3pm on the mat",  # a part of it only
        "may be at 3pm",
        "10/05/2024 3pm",  # month first
        "end of day yesterday",  # a time that nobody said
        "2 hours before yesterday",
        "last tuesday at 3pm at 4pm",
        "yesterday",
        "3pm",
        "last night at 9pm",  # by the machine's clock
        "어제 3pm",
        "yesterday at 3pm " + "x" * 60,
    ],
)
def test_a_guess_does_not_count(phrase):
    assert when.read_anything(phrase, NOW) is None


def test_the_machines_own_clock_is_never_looked_at(monkeypatch):
    def refuse(*_):
        raise AssertionError("the clock of the machine was read")

    monkeypatch.setattr(time, "localtime", refuse)

    assert when.read_anything("2 hours after noon yesterday", NOW)


@pytest.mark.parametrize(
    "expression", ["last week", "yesterday at 3pm", "지난주 화요일", "2026-W07"]
)
def test_it_is_not_loaded_where_the_grammar_has_an_answer(expression, monkeypatch):
    monkeypatch.setitem(sys.modules, "parsedatetime", None)

    when.interval(expression, now=NOW)


def test_it_bounds_a_span_as_well():
    found = when.interval("since 2 hours after noon yesterday", now=NOW)

    assert found.since == datetime(2026, 11, 19, 14, tzinfo=UTC)


def test_what_it_cannot_read_is_an_error_of_ours():
    with pytest.raises(Invalid, match="purple monday 3pm"):
        when.interval("purple monday 3pm", now=NOW)
