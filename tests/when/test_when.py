"""The public functions of `mimo.when`."""

from datetime import UTC, datetime, timedelta

import pytest

from mimo import when
from mimo.errors import Invalid
from mimo.when import Interval
from tests.conftest import NOW

END = NOW + timedelta(seconds=1)  # a memory of this very second is included


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.req("000-97", "000-100", "000-101", "000-102", "000-103", "000-104", "000-105")
@pytest.mark.parametrize(
    ("expression", "since", "until"),
    [
        ("yesterday", at("2026-11-19T15:30"), END),
        ("today", at("2026-11-20"), END),
        ("last week", at("2026-11-13T15:30"), END),
        ("last month", at("2026-10-21T15:30"), END),
        ("this week", at("2026-11-16"), END),
        ("this month", at("2026-11-01"), END),
        ("this year", at("2026-01-01"), END),
        ("2 days ago", at("2026-11-18T15:30"), END),
        ("an hour ago", at("2026-11-20T14:30"), END),
        ("last 3 days", at("2026-11-17T15:30"), END),
        ("past 24 hours", at("2026-11-19T15:30"), END),
        ("since 2 weeks ago", at("2026-11-06T15:30"), END),
        ("tuesday", at("2026-11-17"), at("2026-11-18")),
        ("friday", at("2026-11-20"), END),
        ("2026-11-01", at("2026-11-01"), at("2026-11-02")),
        ("between 2026-11-01 and 2026-11-03", at("2026-11-01"), at("2026-11-04")),
    ],
)
def test_expression_names_half_open_interval(expression, since, until):
    interval = when.interval(expression, now=NOW)

    assert (interval.since, interval.until) == (since, until)


@pytest.mark.req("000-106")
def test_between_two_weekdays_includes_both_days():
    interval = when.interval("between monday and wednesday", now=NOW)

    assert (interval.since, interval.until) == (at("2026-11-16"), at("2026-11-19"))


def test_between_weekdays_across_a_week_starts_in_the_week_before():
    interval = when.interval("from saturday to monday", now=NOW)

    assert (interval.since, interval.until) == (at("2026-11-14"), at("2026-11-17"))


@pytest.mark.req("000-109")
@pytest.mark.parametrize("spelling", ["  Last   WEEK ", "LAST WEEK", "last week"])
def test_case_and_blanks_are_ignored(spelling):
    assert when.interval(spelling, now=NOW) == when.interval("last week", now=NOW)


@pytest.mark.req("000-108")
@pytest.mark.parametrize("nonsense", ["", "  ", "fix march bug", "next week", "-3 days"])
def test_unknown_expression_is_quoted_with_examples(nonsense):
    with pytest.raises(Invalid) as caught:
        when.interval(nonsense, now=NOW)

    assert f"`{nonsense}`" in caught.value.message
    assert "last week" in caught.value.hint


def test_count_beyond_the_calendar_is_invalid():
    with pytest.raises(Invalid):
        when.interval("999999 years ago", now=NOW)


@pytest.mark.req("000-98", "000-99")
def test_dates_narrow_an_expression_and_include_the_last_day():
    interval = when.window("last month", "2026-11-01", "2026-11-10", now=NOW)

    assert (interval.since, interval.until) == (at("2026-11-01"), at("2026-11-11"))


def test_each_date_can_be_given_alone():
    assert when.window(None, "2026-11-01", None, now=NOW).until is None
    assert when.window(None, None, "2026-11-01", now=NOW).since is None


def test_a_moment_from_itself_to_itself_is_not_empty():
    alone = when.interval("2026-11-19 10:00", now=NOW)

    assert alone == when.Interval(since=at("2026-11-19T10:00"), until=at("2026-11-19T10:01"))
    assert when.interval("from 2026-11-19 10:00 to 2026-11-19 10:00", now=NOW) == alone
    assert when.window(None, "2026-11-19T10:00", "2026-11-19T10:00", now=NOW) == alone


def test_conditions_that_only_touch_are_refused():
    with pytest.raises(Invalid, match="no time meets"):
        when.window("2026-11-18", "2026-11-19", None, now=NOW)


def test_time_with_a_zone_is_converted_to_utc():
    for text in ("2026-11-20T10:00:00+09:00", "2026-11-20t01:00:00z"):
        assert when.window(None, text, None, now=NOW).since == at("2026-11-20T01:00")


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("yesterday am", "19 Nov, 00:00 to 11:59, UTC"),
        ("yesterday afternoon", "19 Nov, 12:00 to 17:59, UTC"),
        ("last night", "19 Nov, 18:00 to 20 Nov, 05:59, UTC"),
        ("monday 9am to tuesday 5pm", "16 Nov, 09:00 to 17 Nov, 16:59, UTC"),
        ("since monday 9am", "16 Nov, 09:00 to 20 Nov, 15:30, UTC"),
        ("before noon", "until 20 Nov, 12:00, UTC"),
        ("since 2027-01-01T09:30", "since 1 Jan 2027, 09:30, UTC"),
        ("before october", "until 30 Sep, UTC"),
        ("until 3 days ago", "until 17 Nov, UTC"),
        ("today", "20 Nov, UTC"),
        ("last week", "13 to 20 Nov, UTC"),
        ("yesterday and today", "19 to 20 Nov, UTC"),
    ],
)
def test_a_part_of_a_day_is_shown_with_its_times(expression, shown):
    assert when.shown(when.interval(expression, now=NOW), NOW) == shown


@pytest.mark.parametrize("passed", [timedelta(microseconds=3), timedelta(seconds=20)])
@pytest.mark.parametrize("expression", ["yesterday and today", "last week", "until 3 days ago"])
def test_a_time_counted_back_from_now_has_no_times_although_time_passes(expression, passed):
    interval = when.interval(expression, now=NOW)

    assert ":" not in when.shown(interval, NOW + passed)


def test_impossible_date_is_refused():
    with pytest.raises(Invalid, match="2026-13-45"):
        when.window(None, "2026-13-45", None, now=NOW)


@pytest.mark.parametrize(
    "long",
    [
        "a" * 10_000,
        "1" * 10_000,
        "last " * 2_000,
        "2026-11-01 " * 900,
        "between monday and " * 500,
        "..-.." * 2_000,
        "지난" * 5_000,
        " " * 9_990 + "yesteday",
    ],
)
def test_very_long_text_is_refused_and_quoted_in_part(long):
    with pytest.raises(Invalid) as caught:
        when.interval(long, now=NOW)

    assert len(caught.value.message) < 200


def test_fraction_of_a_second_is_kept():
    interval = when.interval("2026-11-01T09:30:15.250Z", now=NOW)

    assert interval.since == at("2026-11-01T09:30:15.250")


@pytest.mark.req("000-98", "000-99")
@pytest.mark.parametrize(
    ("from_date", "to_date", "since", "until"),
    [
        ("2026-11-01T09:30:00+09:00", None, at("2026-11-01T00:30"), None),
        (None, "2026-11-01T09:30:00Z", None, at("2026-11-01T09:30")),
        ("2026-10", "2026-10", at("2026-10-01"), at("2026-11-01")),
        ("monday", "wednesday", at("2026-11-16"), at("2026-11-19")),
        ("3 days ago", "yesterday", at("2026-11-17T15:30"), at("2026-11-20")),
        ("지난주", None, at("2026-11-09"), None),
        ("yesterday", "yesterday", at("2026-11-19"), at("2026-11-20")),
        ("last week", "last week", at("2026-11-09"), at("2026-11-16")),
        ("지난달", "last month", at("2026-10-01"), at("2026-11-01")),
        ("the start of october", "the end of october", at("2026-10-01"), at("2026-11-01")),
        ("0001-01-01", "9999-12-31", at("0001-01-01"), datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_both_ends_can_be_phrases(from_date, to_date, since, until):
    interval = when.window(None, from_date, to_date, now=NOW)

    assert (interval.since, interval.until) == (since, until)


@pytest.mark.parametrize(
    ("time_filter", "from_date", "to_date"),
    [
        (None, "2026-11-10", "2026-11-01"),
        ("last week", None, "2026-10-01"),
        ("october", "2026-11-02", None),
        (None, "today", "yesterday"),
        (None, "this week", "last week"),
    ],
)
def test_contradicting_conditions_are_an_error(time_filter, from_date, to_date):
    with pytest.raises(Invalid, match="no time meets `"):
        when.window(time_filter, from_date, to_date, now=NOW)


@pytest.mark.req("000-108")
@pytest.mark.parametrize("given", [("", None, None), (None, "", None), (None, None, " ")])
def test_empty_condition_is_an_error(given):
    with pytest.raises(Invalid):
        when.window(*given, now=NOW)


def test_no_conditions_give_an_unbounded_interval():
    assert when.window(None, None, None, now=NOW) == Interval()


@pytest.mark.parametrize("text", ["2026-02-30", "0001-01-01T00:00+09:00", "x"])
def test_a_text_that_is_not_a_date_is_refused(text):
    with pytest.raises(Invalid, match="`"):
        when.window(None, text, None, now=NOW)


def test_end_of_a_date_is_the_start_of_the_next_day():
    assert when.window(None, None, "2026-11-19", now=NOW).until == at("2026-11-20")
    assert when.window(None, None, "2026-11-19T15:30", now=NOW).until == at("2026-11-19T15:30")
