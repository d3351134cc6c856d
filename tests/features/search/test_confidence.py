"""The calibrated confidence in a first answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.features.search.recall import KNOTS, confidence

unit = st.floats(min_value=0, max_value=1)


@given(unit, unit)
@pytest.mark.req("001-11")
def test_it_is_a_probability_that_never_falls_as_the_score_rises(one, other):
    low, high = sorted((one, other))

    assert 0 <= confidence(low) <= confidence(high) <= 1


@pytest.mark.parametrize(("score", "share"), KNOTS)
def test_it_goes_through_what_was_measured(score, share):
    assert confidence(score) == pytest.approx(share)


def test_between_two_knots_it_is_on_the_line():
    (s0, p0), (s1, p1) = KNOTS[2], KNOTS[3]

    assert confidence((s0 + s1) / 2) == pytest.approx((p0 + p1) / 2)


@pytest.mark.parametrize(("score", "share"), [(-1, 0.0), (2, KNOTS[-1][1])])
def test_a_score_that_is_none_is_taken_for_the_nearest(score, share):
    assert confidence(score) == share
