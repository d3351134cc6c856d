"""Bursts and sustained rates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.guard.limits import Bucket, full, take
from mimo.guard.policy import WINDOW_SECONDS, Limit

LIMIT = Limit(sustained=10, burst=50)


def taken(bucket: Bucket, limit: Limit, now: float) -> tuple[Bucket, int]:
    """Returns the bucket after as many calls as are permitted at one moment, and how many."""
    count = 0
    while True:
        bucket, wait = take(bucket, limit, now)
        if wait:
            return bucket, count
        count += 1


@pytest.mark.req("002-49")
def test_a_burst_is_permitted_and_then_one_call_for_each_tenth_of_a_second() -> None:
    bucket, count = taken(full(LIMIT, 1000), LIMIT, 1000)
    bucket, wait = take(bucket, LIMIT, 1000)

    assert (count, wait) == (50, 0.1)
    bucket, count = taken(bucket, LIMIT, 1001)
    assert count == 10


@pytest.mark.req("002-49")
def test_no_minute_has_more_than_the_sustained_rate() -> None:
    bucket, total, now = full(LIMIT, 1000), 0, 1000.0
    for _ in range(590):
        bucket, count = taken(bucket, LIMIT, now)
        total += count
        now += 0.1
    _, wait = take(bucket, LIMIT, now)

    assert total == 600
    assert wait > 0


@given(st.lists(st.floats(0, 30), max_size=60), st.integers(1, 8), st.floats(0.05, 5))
@pytest.mark.req("002-49", "002-63")
def test_whatever_the_pauses_a_minute_never_has_too_many(
    pauses: list[float], burst: int, sustained: float
) -> None:
    limit, now, done = Limit(sustained, burst), 10_000.0, []
    bucket = full(limit, now)
    for pause in pauses:
        now += pause
        bucket, wait = take(bucket, limit, now)
        if not wait:
            done.append(now)
    most = max(1, int(sustained * WINDOW_SECONDS))
    for start in done:
        # Seconds are counted whole, so the first of a minute may count already.
        assert sum(start <= one < start + WINDOW_SECONDS - 1 for one in done) <= most


@given(st.lists(st.integers(-5_000, 2), min_size=1, max_size=40))
@pytest.mark.req("002-63")
def test_a_clock_that_goes_back_gives_no_calls_and_takes_none(jumps: list[int]) -> None:
    limit, now = Limit(sustained=1, burst=5), 1_000_000.0
    bucket, _ = taken(full(limit, now), limit, now)
    for jump in jumps:
        now += jump
        bucket, more = taken(bucket, limit, now)
        assert more <= max(0, jump)
    bucket, more = taken(bucket, limit, now + 5)
    assert more == 5


def test_who_waits_as_told_may_go_on() -> None:
    limit = Limit(sustained=0.5, burst=2)
    bucket, _ = taken(full(limit, 1000), limit, 1000)
    bucket, wait = take(bucket, limit, 1000.3)
    _, again = take(bucket, limit, 1000.3 + wait)

    assert wait > 0
    assert again == 0
