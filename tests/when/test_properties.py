"""Properties of all expressions, seen from any time."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo import when
from mimo.errors import Invalid
from mimo.when.vocabulary import ENGLISH, KOREAN, PARTS, VAGUE

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
    st.builds("{} {}".format, MONTHS, st.integers(1, 28)),
    st.builds("last {}".format, st.sampled_from(["monday", "sunday", "december", "weekend"])),
    st.builds("since {}".format, ENDS),
    st.builds("between {} and {}".format, ENDS, ENDS),
    ENDS,
)
KNOWN = {
    *ENGLISH,
    *ENGLISH.values(),
    *PARTS,
    *VAGUE,
    *"now today yesterday tonight last past this ago half weekend since after before".split(),
    *"until from to between and in the of noon first second third fourth older newer".split(),
}
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
def test_relative_expression_ends_now_or_earlier(expression, now):
    interval = when.interval(expression, now=now)

    assert interval.since is not None
    assert interval.since <= now
    assert interval.until is not None
    assert interval.until <= now + timedelta(seconds=1)


@given(WORDS, NOWS)
def test_words_in_any_order_give_an_ordered_span_or_an_error(words, now):
    try:
        interval = when.interval(" ".join(words), now=now)
    except Invalid:
        return
    assert interval.since is not None or interval.until is not None
    assert interval.since is None or interval.until is None or interval.since <= interval.until


@given(st.text(max_size=300), NOWS)
def test_any_text_gives_an_interval_or_invalid(text, now):
    with suppress(Invalid):
        when.interval(text, now=now)


@pytest.mark.req("000-109")
@given(RELATIVE, NOWS, st.randoms(use_true_random=False))
def test_capitals_blanks_and_a_full_stop_are_ignored(expression, now, draw):
    spelt = "".join(draw.choice((char.upper(), char.lower())) for char in expression)
    spaced = spelt.replace(" ", draw.choice((" ", "   ", "\t", "\n ", "\u3000")))
    full = "".join(
        chr(ord(c) + 0xFEE0) if c.isdigit() and draw.random() < 0.5 else c for c in spaced
    )

    assert when.interval(f"  {full}. ", now=now) == when.interval(expression, now=now)


@given(NOWS)
def test_iso_day_month_year_and_week_contain_their_own_moments(now):
    for text in (f"{now:%Y-%m-%d}", f"{now:%Y-%m}", f"{now:%Y}", f"{now:%G-W%V}"):
        interval = when.interval(text, now=now)
        assert interval.since <= now < interval.until
