"""The matches that an answer shows, and a superseded memory below its successors."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.index.rows import Hit, Newer
from mimo.memory.model import Filter, Kind, Memory, Place, Record
from mimo.operations.finding import Options
from mimo.operations.searching import Asked, row_count, with_successors

NOW = datetime(2026, 11, 20, tzinfo=UTC)
ELSEWHERE = Asked(call=None, filter=Filter(), tries=())


def hit(name, score=0.5, newer=()):
    memory = Memory(id=str(name), type=Kind.FACT, content="text", created=NOW)
    record = Record(memory=memory, place=Place(path=f"{name}.md", line=1, digest=str(name)))
    return Hit(record=record, score=score, passage="", line=1, newer=Newer(newer))


def placed(order, successors):
    hits = [
        hit(key, score, tuple(str(new) for new in sorted(successors.get(key, ()))))
        for key, score in order
    ]
    return [match for _, match in with_successors([(ELSEWHERE, each) for each in hits])]


def keys(order, successors):
    return [int(match.record.memory.id) for match in placed([(k, 0.5) for k in order], successors)]


def scores(order, successors):
    return [match.score for match in placed(order, successors)]


SURE, NEAR, FAR = 0.6, 0.2, 0.01


@pytest.mark.req("000-38")
@pytest.mark.parametrize(
    ("options", "scores", "rows"),
    [
        (Options(limit=10), [SURE, SURE, NEAR], 2),
        (Options(limit=10, weak=3), [SURE, *[NEAR] * 9], 4),
        (Options(limit=10, weak=10), [SURE, SURE, *[NEAR] * 20], 10),
        (Options(limit=3, weak=10), [SURE, *[NEAR] * 9], 3),
        (Options(limit=20, weak=10), [*[SURE] * 12, *[NEAR] * 9], 12),
        (Options(limit=10, weak=10), [NEAR] * 9, 3),
        (Options(limit=2, weak=10), [NEAR] * 9, 2),
        (Options(limit=10, weak=10), [FAR] * 9, 0),
        (Options(limit=10, threshold=0.1, weak=10), [SURE, NEAR, FAR], 2),
        (Options(limit=10, threshold=0.7, weak=10), [SURE, NEAR], 0),
        (Options(limit=10, threshold=0.0), [SURE, NEAR, FAR], 3),
        (Options(limit=10), [], 0),
        (Options(weak=1), [SURE, NEAR, NEAR], 2),
    ],
)
def test_sure_matches_are_shown_and_as_many_weak_ones_as_the_surface_has_room_for(
    options, scores, rows
):
    assert row_count([hit(n, score) for n, score in enumerate(scores)], 100, options) == rows


def test_in_a_store_of_one_memory_the_nearest_is_not_near():
    assert row_count([hit(1, 0.14)], 1, Options(limit=10)) == 0
    assert row_count([hit(1, 0.16)], 1, Options(limit=10)) == 1


def test_a_successor_moves_above_the_superseded_memory():
    assert keys([1, 2, 3, 4], {2: {4}}) == [1, 4, 2, 3]


def test_a_successor_has_at_least_the_score_of_the_superseded_memory():
    assert scores([(1, 0.8), (2, 0.4)], {1: {2}}) == [0.8, 0.8]
    assert scores([(1, 0.8), (2, 0.4)], {2: {1}}) == [0.8, 0.4]


def test_a_chain_is_answered_newest_first():
    assert keys([1, 2, 3], {1: {2}, 2: {3}}) == [3, 2, 1]


def test_a_memory_already_below_its_successor_stays():
    assert keys([3, 2, 1], {1: {3}}) == [3, 2, 1]


def test_a_missing_successor_moves_nothing():
    assert keys([1, 2], {1: {9}}) == [1, 2]


def test_a_circle_keeps_its_order():
    assert keys([1, 2, 3], {1: {2}, 2: {1}}) == [1, 2, 3]


def test_a_memory_superseded_by_a_circle_still_moves():
    assert keys([4, 1, 2, 3], {1: {2}, 2: {1}, 4: {2}}) == [1, 2, 4, 3]


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
