"""The order with the encoder's cosines, and scores that are comparable between stores."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.ranking import rank, understand, words_suffice
from mimo.ranking.evidence import Candidate, Examiner, Shape, Statistics
from mimo.ranking.score import Nearness

STORE = Statistics(
    units=1000,
    frequencies={"socket": 10, "kei": 20, "gatewai": 5},
    unit_tokens=40.0,
    passage_tokens=80.0,
    document_tokens=40.0,
    memories=500,
)
UNRELATED = [(100 + number, 0.2) for number in range(10)]


def near(cosines, share=1.0):
    """Returns the nearness of memories with these cosines, among unrelated ones."""
    every = sorted([*cosines.items(), *UNRELATED], key=lambda pair: -pair[1])
    return Nearness(nearest=tuple(every), of=cosines, share=share)


def candidate(key, units, **more):
    return Candidate(key=key, units=[units], **more)


def keys(question, candidates, nearness):
    return [item.key for item in rank(Examiner(understand(question), STORE), candidates, nearness)]


def test_meaning_decides_where_no_candidate_holds_much_of_the_query():
    words = candidate(1, "socket x y", shape=Shape.NOTE)
    meant = candidate(2, "other words", shape=Shape.NOTE)

    assert keys("socket key gateway", [words, meant], None) == [1, 2]
    assert keys("socket key gateway", [words, meant], near({1: 0.1, 2: 0.4})) == [2, 1]


def test_words_count_fully_where_a_candidate_holds_the_query():
    words = candidate(1, "socket kei gatewai", shape=Shape.NOTE)
    meant = candidate(2, "other words", shape=Shape.NOTE)

    assert keys("socket key gateway", [words, meant], near({1: 0.3, 2: 0.4})) == [1, 2]


def test_the_memory_with_an_identifier_as_it_is_written_comes_first():
    apart = candidate(1, "socket x gatewai", shape=Shape.NOTE)
    exact = candidate(2, "y socket gatewai", shape=Shape.NOTE)
    cosines = near({1: 0.4, 2: 0.2})

    assert keys("what is socket_gateway", [apart, exact], cosines) == [2, 1]
    assert keys("what is socketGateway", [apart, exact], cosines) == [2, 1]
    assert keys("what is a socket gateway", [apart, exact], cosines) == [1, 2]


def test_half_of_a_korean_question_in_words_beats_a_nearer_gloss():
    words = candidate(1, "세션 저장 x y", shape=Shape.NOTE)
    meant = candidate(2, "other words", shape=Shape.NOTE)
    cosines = near({1: 0.3, 2: 0.45})

    assert keys("세션 저장 기간 설정", [words, meant], cosines) == [1, 2]
    assert keys("session store period settings", [words, meant], cosines) == [2, 1]


def test_a_long_query_is_answered_by_the_text_whose_parts_hold_it_together():
    terms = [f"zo{letter}" for letter in "bcdfghjklmnpqrtv"]
    store = replace(STORE, frequencies=dict.fromkeys(terms, 10))
    whole = Candidate(key=1, units=[f"{a} {b}" for a, b in pairwise(terms)])
    meant = Candidate(key=2, units=["other words"], shape=Shape.NOTE)

    def order(query):
        cosines = near({1: 0.3, 2: 0.4})
        return [
            item.key for item in rank(Examiner(understand(query), store), [whole, meant], cosines)
        ]

    assert order(" ".join(terms)) == [1, 2]
    assert order(" ".join([*terms[:2], *(f"absent{term}" for term in terms[2:12])])) == [2, 1]


@pytest.mark.parametrize("talk", [Shape.TURN, Shape.CONVERSATION])
def test_meaning_counts_least_in_a_conversation(talk):
    def order(shape):
        words = candidate(1, "socket kei", shape=shape)
        meant = candidate(2, "other words", shape=shape)
        return keys("socket key gateway", [words, meant], near({1: 0.15, 2: 0.45}))

    assert order(Shape.NOTE) == [2, 1]
    assert order(talk) == [1, 2]


@pytest.mark.parametrize("talk", [Shape.TURN, Shape.CONVERSATION])
def test_a_chat_stands_among_documents_by_its_words_and_not_by_its_shape(talk):
    chat = candidate(1, "socket kei", shape=talk)
    documents = [candidate(key, "other words", shape=Shape.DOCUMENT) for key in range(2, 12)]
    cosines = dict.fromkeys(range(1, 12), 0.4)

    assert keys("socket key gateway", [*documents, chat], near(cosines))[0] == 1
    assert keys("socket key gateway", [*documents, chat], near(cosines | {2: 0.8}))[0] == 2


def test_a_conversation_with_many_near_units_comes_before_one_with_a_single_one():
    texts = ["other words"] * 6
    single = Candidate(
        key=1, units=texts, encoded_cosines=[0.5, *[0.1] * 5], shape=Shape.CONVERSATION
    )
    many = Candidate(key=2, units=texts, encoded_cosines=[0.45] * 6, shape=Shape.CONVERSATION)

    assert keys("socket key gateway", [single, many], near({1: 0.5, 2: 0.45})) == [2, 1]
    notes = [replace(single, shape=Shape.NOTE), replace(many, shape=Shape.NOTE)]
    assert keys("socket key gateway", notes, near({1: 0.5, 2: 0.45})) == [1, 2]


def test_a_missing_cosine_is_estimated_and_not_zero():
    compared = candidate(1, "a", shape=Shape.NOTE, unit_cosines=[0.3], document_cosine=0.3)
    closer = candidate(2, "b", shape=Shape.NOTE, unit_cosines=[0.6], document_cosine=0.6)

    assert keys("socket", [compared, closer], near({1: 0.25})) == [2, 1]


def test_with_few_vectors_words_decide_and_the_note_that_is_nearest_comes_first():
    words = candidate(1, "socket kei gatewai", shape=Shape.NOTE)
    note = candidate(2, "other words", shape=Shape.NOTE)
    document = candidate(3, "other words", shape=Shape.DOCUMENT)
    every = [words, note, document]

    def ranked(cosines):
        return rank(
            Examiner(understand("socket key gateway"), STORE), every, near(cosines, share=0.5)
        )

    assert [item.key for item in ranked({2: 0.35, 3: 0.6})] == [2, 1, 3]
    assert ranked({2: 0.25, 3: 0.6})[0].key == 1
    assert ranked({2: 0.35})[0].score == ranked({2: 0.35})[1].score


@pytest.mark.parametrize(
    ("units", "suffices"),
    [(["socket kei gatewai", "x"], True), (["socket kei gatewai"] * 2, False), (["x", "y"], False)],
)
def test_the_encoder_is_not_needed_where_one_candidate_clearly_holds_the_query(units, suffices):
    candidates = [candidate(key, unit) for key, unit in enumerate(units)]

    assert (
        words_suffice(rank(Examiner(understand("socket key gateway"), STORE), candidates))
        is suffices
    )


def test_nothing_to_rank_does_not_suffice():
    assert not words_suffice([])


def test_a_lone_common_word_is_weak_evidence_and_a_rare_one_is_strong():
    def score(question, frequency):
        store = Statistics(
            units=2,
            frequencies=frequency,
            unit_tokens=5.0,
            passage_tokens=5.0,
            document_tokens=5.0,
        )
        (item,) = rank(Examiner(understand(question), store), [candidate(1, " ".join(frequency))])
        return item.score

    assert score("help", {"help": 1}) < 0.3 < score("gateway", {"gatewai": 1})


def test_the_same_match_is_weaker_evidence_in_a_larger_store():
    def score(memories):
        store = Statistics(
            units=memories,
            frequencies={"socket": 1},
            unit_tokens=40.0,
            passage_tokens=40.0,
            document_tokens=40.0,
            memories=memories,
        )
        return rank(Examiner(understand("socket cleanup"), store), [candidate(1, "socket")])[
            0
        ].score

    assert score(10) > score(1_000) > score(100_000)


def test_a_paraphrase_is_sure_only_if_it_is_ahead_of_the_store():
    meant = candidate(1, "other words", shape=Shape.NOTE)
    also = candidate(2, "more words", shape=Shape.NOTE)

    def score(nearness):
        return rank(Examiner(understand("socket key gateway"), STORE), [meant, also], nearness)[
            0
        ].score

    assert score(near({1: 0.5, 2: 0.2})) > 0.3 > score(near({1: 0.3, 2: 0.29}))


@given(
    st.lists(
        st.tuples(st.sampled_from(["socket", "socket kei", "x"]), st.floats(-1, 1)), max_size=8
    ),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_scores_are_probabilities_that_never_rise_down_the_list(rows, share):
    candidates = [candidate(key, unit, shape=Shape.NOTE) for key, (unit, _) in enumerate(rows)]
    nearness = near({key: cosine for key, (_, cosine) in enumerate(rows)}, share=share)

    scores = [
        item.score for item in rank(Examiner(understand("socket key"), STORE), candidates, nearness)
    ]

    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
