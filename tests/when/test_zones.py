"""Time expressions in the user's zone, across changes of the clock."""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mimo import when
from mimo.errors import Invalid
from mimo.when import Interval, shown
from mimo.when.question import named_time, understood
from tests.conftest import NOW

BERLIN, SEOUL = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Seoul")
ZONES = [
    ZoneInfo(name)
    for name in (
        "Europe/Berlin",
        "America/New_York",
        "America/Sao_Paulo",  # once changed its clock at midnight
        "America/Havana",  # changes at midnight
        "Australia/Lord_Howe",  # changes by half an hour
        "Asia/Seoul",
        "Asia/Kathmandu",
        "Pacific/Apia",  # once left out a day
        "UTC",
    )
]
zones = st.sampled_from(ZONES)
moments = st.datetimes(datetime(1990, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC))
days = st.dates(date(1990, 1, 1), date(2036, 12, 31))


def at(text: str, zone: ZoneInfo) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


@pytest.mark.parametrize(
    ("expression", "since", "until"),
    [
        ("today", "2026-11-21T00:00", "2026-11-21T00:30:01"),
        ("yesterday", "2026-11-20T00:30", "2026-11-21T00:30:01"),
        ("day before yesterday", "2026-11-19T00:00", "2026-11-20T00:00"),
        ("this week", "2026-11-16T00:00", "2026-11-21T00:30:01"),
        ("monday", "2026-11-16T00:00", "2026-11-17T00:00"),
        ("october", "2026-10-01T00:00", "2026-11-01T00:00"),
        ("2026-11-20", "2026-11-20T00:00", "2026-11-21T00:00"),
        ("2026-11-20T09:30", "2026-11-20T09:30", "2026-11-20T09:31"),
        ("2026-11-20T00:30Z", "2026-11-20T09:30", "2026-11-20T09:31"),
        ("2026-11-20T01:30+01:00", "2026-11-20T09:30", "2026-11-20T09:31"),
        ("yesterday at 3pm", "2026-11-20T15:00", "2026-11-20T16:00"),
        ("last night", "2026-11-20T18:00", "2026-11-21T00:30:01"),
        ("3 hours ago", "2026-11-20T21:30", "2026-11-21T00:30:01"),
        ("2026", "2026-01-01T00:00", "2026-11-21T00:30:01"),
    ],
)
def test_a_phrase_means_the_days_of_the_zone(expression: str, since: str, until: str) -> None:
    now = NOW.astimezone(SEOUL)  # half past midnight on Saturday
    interval = when.interval(expression, now=now)
    end = at("2027-01-01T00:00", SEOUL) if expression == "2026" else at(until, SEOUL)

    assert interval == Interval(since=at(since, SEOUL), until=end)
    assert str(interval.since).endswith("+00:00")


def test_dates_from_and_to_are_days_of_the_zone() -> None:
    interval = when.window(None, "2026-10-25", "2026-10-25", now=NOW.astimezone(BERLIN))

    assert interval.since == datetime(2026, 10, 24, 22, tzinfo=UTC)
    assert interval.until == datetime(2026, 10, 25, 23, tzinfo=UTC)


@pytest.mark.parametrize(("fold", "hour"), [(0, 0), (1, 1)])
def test_the_hour_that_comes_twice_is_told_apart(fold: int, hour: int) -> None:
    now = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=fold)

    assert when.interval("1 hour ago", now=now).since == datetime(
        2026, 10, 24 + hour, 23 if not hour else 0, 30, tzinfo=UTC
    )
    if fold:
        # 02:45 was before: the clock showed it in the first of the two hours.
        since = when.interval("today at 2:45am", now=now).since
        assert since == datetime(2026, 10, 25, 0, 45, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "until"),
    [("2026-10-25T02:30", "01:31"), ("2026-10-25 at 2am", "02:00"), ("2026-10-25T01:30", "23:31")],
)
def test_a_time_that_the_clock_shows_twice_includes_both(expression: str, until: str) -> None:
    interval = when.interval(expression, now=NOW.astimezone(BERLIN))

    assert f"{interval.until:%H:%M}" == until


def test_two_days_ago_is_48_hours_ago_across_a_change_of_the_clock() -> None:
    now = datetime(2026, 10, 26, 12, tzinfo=BERLIN)

    since = when.interval("2 days ago", now=now).since
    assert since is not None
    assert now.astimezone(UTC) - since == timedelta(hours=48)


@given(day=days, zone=zones)
def test_a_day_has_the_hours_that_the_clock_leaves_it(day: date, zone: ZoneInfo) -> None:
    now = datetime(2037, 1, 1, tzinfo=UTC).astimezone(zone)
    interval = when.interval(day.isoformat(), now=now)
    assert interval.since is not None
    assert interval.until is not None

    length = interval.until - interval.since
    start = datetime(day.year, day.month, day.day, tzinfo=zone)
    change = (start + timedelta(days=1)).utcoffset() - start.utcoffset()  # type: ignore[operator]
    assert length == timedelta(days=1) - change
    if zone.key == "Europe/Berlin":
        assert length in [timedelta(hours=hours) for hours in (23, 24, 25)]


@given(day=days, zone=zones)
def test_days_part_time_without_gap_and_overlap(day: date, zone: ZoneInfo) -> None:
    now = datetime(2037, 1, 1, tzinfo=UTC).astimezone(zone)
    first = when.interval(day.isoformat(), now=now)
    following = when.interval((day + timedelta(days=1)).isoformat(), now=now)

    assert first.until == following.since


@given(moment=moments, zone=zones)
def test_a_moment_is_of_today_and_of_no_other_day(moment: datetime, zone: ZoneInfo) -> None:
    now = moment.replace(microsecond=0).astimezone(zone)
    assume((now.year, now.month, now.day) != (2011, 12, 30))
    today = when.interval("today", now=now)
    assert today.since is not None
    assert today.until is not None

    assert today.since <= now < today.until
    assert today.since.astimezone(zone).date() == now.date()
    for other in ("this week", "this month", "this quarter", "this year", "this hour"):
        around = when.interval(other, now=now)
        assert around.since is not None
        assert around.since <= now
        assert around.until == today.until


@given(moment=moments, zone=zones, hours=st.integers(1, 2_000))
def test_hours_that_pass_are_the_same_in_every_zone(
    moment: datetime, zone: ZoneInfo, hours: int
) -> None:
    expression = f"{hours} hours ago"

    assert when.interval(expression, now=moment.astimezone(zone)) == when.interval(
        expression, now=moment
    )


def test_a_question_names_the_days_of_the_zone() -> None:
    time = named_time("what did we decide yesterday?", NOW.astimezone(SEOUL))

    assert time is not None
    assert time.spans[0] == Interval(
        since=at("2026-11-20T00:00", SEOUL), until=at("2026-11-21T00:00", SEOUL)
    )
    assert understood("what did we do 3 days ago", NOW.astimezone(SEOUL)).time is not None


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("today", "21 Nov, Asia/Seoul"),
        ("yesterday", "20 to 21 Nov, Asia/Seoul"),
        ("between monday and wednesday", "16 to 18 Nov, Asia/Seoul"),
        ("last month", "22 Oct to 21 Nov, Asia/Seoul"),
        ("october", "1 to 31 Oct, Asia/Seoul"),
        ("2025", "1 Jan to 31 Dec 2025, Asia/Seoul"),
        ("from 2025-12-30 to 2026-01-02", "30 Dec 2025 to 2 Jan 2026, Asia/Seoul"),
        ("before 2025-06-01", "until 31 May 2025, Asia/Seoul"),
        ("since 2027-01-01", "since 1 Jan 2027, Asia/Seoul"),
        ("yesterday at 3pm", "20 Nov, 15:00 to 15:59, Asia/Seoul"),
    ],
)
def test_a_span_is_shown_as_days_with_the_zone(expression: str, text: str) -> None:
    now = NOW.astimezone(SEOUL)

    assert shown(when.interval(expression, now=now), now) == text


def test_the_last_days_of_the_calendar_are_refused_or_understood_in_any_zone() -> None:
    for zone in ZONES:
        for text in ("9999-12-31", "0001-01-01", "since 0001-01-01", "9999"):
            with suppress(Invalid):
                when.interval(text, now=NOW.astimezone(zone))


@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_the_ends_of_the_calendar_are_shown_in_any_zone(zone: ZoneInfo) -> None:
    now = NOW.astimezone(zone)
    span = when.window("since yesterday", None, "9999-12-31", now=now)
    ends = when.Interval(
        since=datetime.min.replace(tzinfo=UTC), until=datetime.max.replace(tzinfo=UTC)
    )

    assert shown(span, now)
    assert shown(when.window(None, "2026-11-01", "9999-12-31", now=now), now).startswith(
        "1 Nov 2026 to 31 Dec 9999"
    )
    assert shown(when.Interval(until=ends.since), now).startswith("until 1 Jan 1")
    assert shown(ends, now).startswith("1 Jan 1 to 31 Dec 9999")
