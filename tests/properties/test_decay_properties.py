"""Properties of every score, for any age and use."""

import math

from hypothesis import given
from hypothesis import strategies as st

from mimo.memory import decay

UNIT = st.floats(0, 1)
DAYS = st.floats(0, 10_000)
COUNT = st.integers(0, 10**9)


@given(UNIT, DAYS, COUNT, UNIT)
def test_a_score_is_between_0_and_1(importance, days, accesses, rate):
    assert 0 <= decay.score(importance, days, accesses=accesses, rate=rate) <= 1


@given(UNIT, DAYS, DAYS, COUNT, UNIT)
def test_age_never_raises_a_score(importance, days, more, accesses, rate):
    young = decay.score(importance, days, accesses=accesses, rate=rate)

    assert decay.score(importance, days + more, accesses=accesses, rate=rate) <= young


@given(UNIT, DAYS, COUNT, COUNT, UNIT)
def test_accesses_never_lower_a_score(importance, days, accesses, more, rate):
    seldom = decay.score(importance, days, accesses=accesses, rate=rate)

    assert decay.score(importance, days, accesses=accesses + more, rate=rate) >= seldom


@given(UNIT, UNIT, DAYS, COUNT)
def test_importance_never_lowers_a_score(importance, other, days, accesses):
    weak, strong = sorted((importance, other))

    assert decay.score(weak, days, accesses=accesses) <= decay.score(
        strong, days, accesses=accesses
    )


@given(st.floats(0.002, 1), st.floats(0.001, 1), st.floats(0.001, 1))
def test_the_score_reaches_the_floor_after_the_days_until_forgotten(now_score, floor, rate):
    left = decay.days_until_forgotten(now_score, floor=floor, rate=rate)

    assert left >= 0
    if now_score > floor:
        assert math.isclose(decay.score(now_score, left, rate=rate), floor, rel_tol=1e-9)
    else:
        assert left == 0


@given(DAYS, COUNT, st.floats(0.001, 1), st.floats(0, 100))
def test_each_day_leaves_a_day_less(days, accesses, rate, later):
    now = decay.score(0.5, days, accesses=accesses, rate=rate)
    then = decay.score(0.5, days + later, accesses=accesses, rate=rate)

    assert decay.days_until_forgotten(then, rate=rate) <= decay.days_until_forgotten(now, rate=rate)
