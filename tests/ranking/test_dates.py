"""Dates that a question names."""

from datetime import date, timedelta
from math import exp

import pytest

from mimo.ranking.dates import Span, Yearly, closeness, searchable, windows

ASKED = date(2026, 11, 20)
"""A Friday."""


def span(start, end=None):
    return Span(start=date.fromisoformat(start), end=date.fromisoformat(end or start))


@pytest.mark.parametrize(
    ("question", "window"),
    [
        ("What happened on 2023-07-07?", span("2023-07-07")),
        ("on 7 July, 2023", span("2023-07-07")),
        ("on July 7th 2023", span("2023-07-07")),
        ("on the 7th of July", Yearly(month=7, day=7)),
        ("on Dec. 24", Yearly(month=12, day=24)),
        ("in July 2023", span("2023-07-01", "2023-07-31")),
        ("in December 2023", span("2023-12-01", "2023-12-31")),
        ("in July", Yearly(month=7)),
        ("in May", Yearly(month=5)),
        ("in the summer 2021", span("2021-01-01", "2021-12-31")),
        ("3 weeks ago", span("2026-10-27", "2026-11-02")),
        ("a couple of days ago", span("2026-11-16", "2026-11-20")),
        ("two months ago", span("2026-09-11", "2026-10-01")),
        ("a year ago", span("2025-09-21", "2026-01-19")),
        ("in the past two weeks", span("2026-11-06", "2026-11-20")),
        ("yesterday", span("2026-11-19")),
        ("last week", span("2026-11-09", "2026-11-15")),
        ("this week", span("2026-11-16", "2026-11-22")),
        ("past week", span("2026-11-13", "2026-11-20")),
        ("어제 배포 왜 실패했지", span("2026-11-19")),
        ("3일 전에 정한 캐시", span("2026-11-17")),
        ("11월 18일 장애", span("2026-11-18")),
        ("작년 10월 결정", span("2025-10-01", "2025-10-31")),
        ("last weekend", span("2026-11-14", "2026-11-15")),
        ("last month", span("2026-10-01", "2026-10-31")),
        ("this year", span("2026-01-01", "2026-12-31")),
        ("last Tuesday", span("2026-11-17")),
        ("last Friday", span("2026-11-13")),
        ("this Monday", span("2026-11-16")),
    ],
)
def test_a_question_names_a_date(question, window):
    assert windows(question, ASKED) == (window,)


@pytest.mark.parametrize(
    "question",
    [
        *("may I march in?", "what did I decide", "on 2023-13-45", "at the last minute", ""),
        # Letters that Unicode takes for another case of ours.
        *("5 \u017fept", "in \u017fept", "f\u0131ve days ago", "this fr\u0131day"),
    ],
)
def test_other_words_name_no_date(question):
    assert windows(question, ASKED) == ()


def test_without_the_day_of_the_question_last_week_names_nothing():
    assert windows("last week", None) == ()


def test_a_question_may_name_several_dates():
    assert set(windows("between 1 May 2023 and last week", ASKED)) == {
        span("2023-05-01"),
        span("2026-11-09", "2026-11-15"),
    }


def test_a_day_inside_a_span_matches_wholly_and_less_the_further_it_lies():
    week = span("2026-11-09", "2026-11-15")

    assert closeness(date(2026, 11, 12), week) == 1
    assert closeness(date(2026, 11, 19), week) == pytest.approx(exp(-4 / 8))
    assert closeness(date(2026, 11, 5), week) == closeness(date(2026, 11, 19), week)


@pytest.mark.parametrize(
    ("day", "value"),
    [("2020-07-31", 1.0), ("2023-07-02", 0.4), ("2021-08-05", 0.3), ("2021-09-01", 0)],
)
def test_a_day_of_any_year_matches_by_day_then_month_then_week(day, value):
    assert closeness(date.fromisoformat(day), Yearly(month=7, day=31)) == value


def test_a_leap_day_is_near_to_nothing_in_other_years():
    assert closeness(date(2023, 3, 1), Yearly(month=2, day=29)) == 0


def test_a_month_of_any_year_matches_its_days_alone():
    assert closeness(date(2020, 7, 1), Yearly(month=7)) == 1
    assert closeness(date(2020, 8, 1), Yearly(month=7)) == 0


def test_a_day_is_searchable_by_month_year_day_and_weekday():
    assert searchable(ASKED) == "november 2026 20 friday"
    assert searchable(ASKED + timedelta(1)).endswith("saturday")
