"""What holds of every expression and of every now."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo import when
from mimo.errors import Invalid
from mimo.when.vocabulary import KNOWN, KOREAN

NOWS = st.datetimes(
    min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)
)
COUNTS = st.integers(min_value=1, max_value=400)
UNITS = st.sampled_from(["minute", "hour", "day", "week", "month", "quarter", "year"])
DAYS = st.sampled_from("monday tue wednesday fri 토요일 일요일 yesterday today 어제".split())
MONTHS = st.sampled_from("january feb march october 5월 11월 12월".split())
ENDS = st.one_of(
    DAYS, MONTHS, st.sampled_from(["last week", "3 days ago", "oct 5", "q2", "지난달"])
)
RELATIVE = st.one_of(
    st.builds("last {} {}s".format, COUNTS, UNITS),
    st.builds("{} {}s ago".format, COUNTS, UNITS),
    st.builds("{}{}".format, COUNTS, st.sampled_from(["d", "w", "h", "mo", "y", "일 전", "주 전"])),
    st.builds("{} {}".format, st.sampled_from(["this", "last", "past"]), UNITS),
    st.builds("{} {}".format, st.sampled_from(["early", "mid", "late"]), MONTHS),
    st.builds("{} {}".format, MONTHS, st.integers(1, 28)),
    st.builds("last {}".format, st.sampled_from(["monday", "sunday", "december", "weekend"])),
    st.builds("since {}".format, ENDS),
    st.builds("between {} and {}".format, ENDS, ENDS),
    ENDS,
)
WORDS = st.lists(
    st.one_of(
        st.sampled_from(sorted(KNOWN)),
        st.sampled_from(sorted(KOREAN)),
        st.sampled_from("2026-11-01 2025 2026-W07 13/11/2025 3pm 15:30 .. - 5th 1.5 7".split()),
    ),
    min_size=1,
    max_size=7,
)


@given(RELATIVE, NOWS)
def test_words_that_are_counted_from_now_never_reach_into_the_future(expression, now):
    found = when.interval(expression, now=now)

    assert found.since is not None
    assert found.since <= now
    assert found.until is not None
    assert found.until <= now + timedelta(seconds=1)


@given(WORDS, NOWS)
def test_words_in_any_order_are_a_span_whose_start_is_not_after_its_end_or_an_error(words, now):
    try:
        found = when.interval(" ".join(words), now=now)
    except Invalid:
        return
    assert found.since is not None or found.until is not None
    assert found.since is None or found.until is None or found.since <= found.until


@given(st.text(max_size=300), NOWS)
def test_no_text_is_more_than_an_error(text, now):
    with suppress(Invalid):
        when.interval(text, now=now)


@pytest.mark.req("000-109")
@given(RELATIVE, NOWS, st.randoms(use_true_random=False))
def test_capitals_blanks_and_a_full_stop_change_nothing(expression, now, draw):
    spelt = "".join(draw.choice((char.upper(), char.lower())) for char in expression)
    spaced = spelt.replace(" ", draw.choice((" ", "   ", "\t", "\n ", "\u3000")))
    full = "".join(
        chr(ord(c) + 0xFEE0) if c.isdigit() and draw.random() < 0.5 else c for c in spaced
    )

    assert when.interval(f"  {full}. ", now=now) == when.interval(expression, now=now)


@given(NOWS)
def test_a_day_a_month_and_a_year_by_their_iso_name_hold_their_own_moments(now):
    for text in (f"{now:%Y-%m-%d}", f"{now:%Y-%m}", f"{now:%Y}", f"{now:%G-W%V}"):
        found = when.interval(text, now=now)
        assert found.since <= now < found.until
