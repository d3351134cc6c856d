"""The order of chats."""

from datetime import UTC, datetime

import pytest

from mimo.ranking import Shape
from mimo.ranking.chats import best_of
from tests.ranking.conftest import candidate, cosines, keys, ranked

NOW = datetime(2026, 11, 20, 15, tzinfo=UTC)


def turn(key, *units, **fields):
    return candidate(key, *units, shape=Shape.TURN, **fields)


def chat(key, *units, **fields):
    return candidate(key, *units, shape=Shape.CONVERSATION, **fields)


@pytest.mark.parametrize("talk", [Shape.TURN, Shape.CONVERSATION])
def test_words_count_for_more_than_in_a_note(talk):
    def of(shape):
        both = [candidate(1, "socket kei", shape=shape), candidate(2, "other words", shape=shape)]
        return keys("socket key gateway", both, cosines({1: 0.15, 2: 0.35}))

    assert of(Shape.NOTE) == [2, 1]
    assert of(talk) == [1, 2]


@pytest.mark.parametrize("talk", [Shape.TURN, Shape.CONVERSATION])
def test_a_chat_is_ranked_among_documents_by_its_words_and_not_by_its_shape(talk):
    every = [candidate(key, "other words") for key in range(2, 12)]
    every.append(candidate(1, "socket kei", shape=talk))
    near: dict[int, float | list[float]] = dict.fromkeys(range(1, 12), 0.4)

    assert keys("socket key gateway", every, cosines(near))[0] == 1
    assert keys("socket key gateway", every, cosines(near | {2: 0.9}))[0] == 2


def test_five_units_of_a_long_text_count_as_much_as_the_best_one():
    assert best_of([0.5, *[0.1] * 5]) == pytest.approx((0.5 + 0.18) / 2)
    assert best_of([0.5, *[0.1] * 3]) == 0.5
    assert best_of([-0.5] * 6) == best_of([]) == 0


def test_a_short_turn_is_above_a_long_one_of_which_a_single_unit_is_nearer():
    short = turn(1, "socket")
    long = turn(2, " ".join(["socket"] * 5), *["other words"] * 9)
    near = cosines({1: 0.4, 2: [0.5, *[0.0] * 9]})

    assert keys("socket", [long, short], near) == [1, 2]


def test_a_turn_is_lifted_by_the_better_of_its_neighbours():
    before, after = turn(10, "socket gatewai"), turn(11, "socket")
    beside, alone = turn(2, "kei", beside=(10, 11)), turn(1, "kei")

    assert keys("socket gateway", [alone, beside], around=[before, after]) == [2, 1]


def test_a_turn_is_lifted_by_what_its_whole_source_contains():
    part, alone = turn(2, "socket", parent="socket x gatewai"), turn(1, "socket", parent="socket x")

    assert keys("socket gateway", [alone, part]) == [2, 1]


@pytest.mark.parametrize("time", ["yesterdai", "march", "2021", "fridai", "week"])
def test_a_question_for_a_time_prefers_units_that_name_one(time):
    both = [
        turn(1, "deploi x", speakers=("",)),
        turn(2, f"deploi {time}", speakers=("",)),
    ]

    assert keys("when was the deploy", both) == [2, 1]
    assert keys("what was the deploy", both) == [1, 2]


def test_units_of_a_named_speaker_count():
    talk = [turn(n, "x", speakers=("ann bob",)) for n in range(10, 15)]
    both = [turn(1, "deploi x", speakers=("bob",)), turn(2, "deploi x", speakers=("ann",))]

    assert keys("what did Ann deploy", [*both, *talk])[:2] == [2, 1]
    assert keys("what did Ann deploy", both) == [1, 2]


def test_of_a_chat_with_an_assistant_the_passages_of_the_user_count():
    both = [
        chat(1, "socket x", passages=("x",)),
        chat(2, "socket x", passages=("socket",)),
    ]

    assert keys("socket", both) == [2, 1]


def test_a_word_in_a_few_units_of_every_conversation_is_worth_little():
    every = [chat(n, *["us x"] * 3, *["x"] * 27) for n in range(9)]
    wanted = chat(9, "gatewai", *["x"] * 29)

    assert ranked("use gateway", [*every, wanted])[0].key == 9
