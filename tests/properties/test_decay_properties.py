"""What must hold of every score, however old and however used a memory is."""

import math

from hypothesis import given
from hypothesis import strategies as st

from mimo.memory import decay

UNIT = st.floats(0, 1)
DAYS = st.floats(0, 10_000)
COUNT = st.integers(0, 10**9)


@given(UNIT, DAYS, COUNT, UNIT)
def test_a_score_lies_between_nothing_and_all(importance, days, accesses, rate):
    assert 0 <= decay.score(importance, days, accesses=accesses, rate=rate) <= 1


@given(UNIT, DAYS, DAYS, COUNT, UNIT)
def test_nothing_grows_stronger_with_age(importance, days, more, accesses, rate):
    young = decay.score(importance, days, accesses=accesses, rate=rate)

    assert decay.score(importance, days + more, accesses=accesses, rate=rate) <= young


@given(UNIT, DAYS, COUNT, COUNT, UNIT)
def test_nothing_grows_weaker_by_being_used(importance, days, accesses, more, rate):
    seldom = decay.score(importance, days, accesses=accesses, rate=rate)

    assert decay.score(importance, days, accesses=accesses + more, rate=rate) >= seldom


@given(UNIT, UNIT, DAYS, COUNT)
def test_nothing_grows_weaker_by_being_more_important(importance, other, days, accesses):
    weak, strong = sorted((importance, other))

    assert decay.score(weak, days, accesses=accesses) <= decay.score(
        strong, days, accesses=accesses
    )


@given(st.floats(0.002, 1), st.floats(0.001, 1), st.floats(0.001, 1))
def test_the_days_until_forgotten_undo_the_score(now_score, floor, rate):
    left = decay.days_until_forgotten(now_score, floor=floor, rate=rate)

    assert left >= 0
    if now_score > floor:
        assert math.isclose(decay.score(now_score, left, rate=rate), floor, rel_tol=1e-9)
    else:
        assert left == 0


@given(DAYS, COUNT, st.floats(0.001, 1), st.floats(0, 100))
def test_a_day_less_is_left_with_each_day(days, accesses, rate, later):
    now = decay.score(0.5, days, accesses=accesses, rate=rate)
    then = decay.score(0.5, days + later, accesses=accesses, rate=rate)

    assert decay.days_until_forgotten(then, rate=rate) <= decay.days_until_forgotten(now, rate=rate)
