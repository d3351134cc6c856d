"""The reading of a query."""

from datetime import UTC, date, datetime
from math import exp

import pytest

from mimo.ranking import understand
from mimo.ranking.query import closeness


def test_a_query_is_understood_once():
    asked = datetime(2026, 11, 20, 15, tzinfo=UTC)
    query = understand("When did the deploy fail yesterday?", asked)

    assert query.full == ("when", "did", "deploi", "fail", "yesterdai")
    assert query.content == ("deploi", "fail", "yesterdai")
    assert query.days == (date(2026, 11, 19), date(2026, 11, 19))
    assert query.asked == asked
    assert query.asks_when


@pytest.mark.parametrize(
    "text",
    ["When was it", "how long did it take", "On what date", "which year", "Since when is it"],
)
def test_such_a_question_asks_for_a_time(text):
    assert understand(text).asks_when


@pytest.mark.parametrize(
    "text", ["What happens when it fails", "whenever", "how", "which database"]
)
def test_such_a_question_does_not(text):
    assert not understand(text).asks_when


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("What failed on 2026-07-07?", "2026-07-07", "2026-07-07"),
        ("the outage in July 2025", "2025-07-01", "2025-07-31"),
        ("what broke last week", "2026-11-09", "2026-11-15"),
        ("어제 배포 왜 실패했지", "2026-11-19", "2026-11-19"),
    ],
)
def test_a_question_names_days(text, first, last):
    days = understand(text, datetime(2026, 11, 20, 15, tzinfo=UTC)).days

    assert days == (date.fromisoformat(first), date.fromisoformat(last))


@pytest.mark.parametrize(
    "text", ["may I march in?", "at the last minute", "what changed today", ""]
)
def test_other_questions_name_none(text):
    assert understand(text, datetime(2026, 11, 20, 15, tzinfo=UTC)).days is None


def test_words_such_as_yesterday_need_the_time_of_the_question():
    assert understand("what broke yesterday").days is None


def test_a_day_is_less_close_the_further_it_is_from_the_named_ones():
    first, last = date(2026, 11, 9), date(2026, 11, 15)

    assert closeness(first, first, last) == closeness(last, first, last) == 1
    assert closeness(date(2026, 11, 17), first, last) == pytest.approx(exp(-2 / 8))
    assert closeness(date(2026, 11, 1), first, last) == pytest.approx(exp(-8 / 8))


@pytest.mark.parametrize(
    ("words", "length"), [(3, 0.0), (12, 0.0), (14, 0.5), (16, 1.0), (40, 1.0)]
)
def test_a_query_of_several_sentences_is_long(words, length):
    text = " ".join(
        f"zu{chr(97 + number % 26)}{chr(97 + number // 26)}k" for number in range(words)
    )

    assert understand(text).length == pytest.approx(length)
