"""A superseded memory is below its successor."""

from hypothesis import given
from hypothesis import strategies as st

from mimo.index.search import _below_successors as below_successors
from mimo.ranking import Ranked


def keys(order, successors):
    ranked = [Ranked(key=key, order=0.0, score=0.5, unit=0, coverage=0.0) for key in order]
    return [item.key for item in below_successors(ranked, successors)]


def test_a_successor_moves_above_the_superseded_memory():
    assert keys([1, 2, 3, 4], {2: {4}}) == [1, 4, 2, 3]


def test_a_successor_has_at_least_the_score_of_the_superseded_memory():
    ranked = [
        Ranked(key=key, order=0.0, score=score, unit=0, coverage=0.0)
        for key, score in [(1, 0.8), (2, 0.4)]
    ]

    assert [item.score for item in below_successors(ranked, {1: {2}})] == [0.8, 0.8]
    assert [item.score for item in below_successors(ranked, {2: {1}})] == [0.8, 0.4]


def test_a_chain_is_answered_newest_first():
    assert keys([1, 2, 3], {1: {2}, 2: {3}}) == [3, 2, 1]


def test_a_memory_already_below_its_successor_stays():
    assert keys([3, 2, 1], {1: {3}}) == [3, 2, 1]


def test_a_missing_successor_moves_nothing():
    assert keys([1, 2], {1: {9}}) == [1, 2]


def test_a_circle_keeps_its_order():
    assert keys([1, 2, 3], {1: {2}, 2: {1}}) == [1, 2, 3]


def test_a_memory_superseded_by_a_circle_still_moves():
    assert keys([4, 1, 2, 3], {1: {2}, 2: {1}, 4: {2}}) == [2, 4, 1, 3]


@given(
    st.permutations(range(7)),
    st.dictionaries(st.integers(0, 6), st.frozensets(st.integers(0, 6), max_size=2), max_size=7),
)
def test_nothing_is_lost_or_repeated(order, successors):
    assert sorted(keys(order, successors)) == list(range(7))


@given(
    st.permutations(range(7)),
    st.dictionaries(st.integers(0, 5), st.just(frozenset({6})), max_size=6),
)
def test_all_memories_superseded_by_one_are_below_it(order, successors):
    result = keys(order, successors)

    assert all(result.index(key) > result.index(6) for key in successors)
