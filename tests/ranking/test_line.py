"""The order of notes and documents, and scores that are comparable between stores."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mimo.ranking import Cosines, Shape
from mimo.ranking.score import score
from tests.ranking.conftest import STORE, candidate, cosines, keys, ranked

NOW = datetime(2026, 11, 20, 15, tzinfo=UTC)


def note(key, *units, **fields):
    return candidate(key, *units, shape=Shape.NOTE, **fields)


def test_the_candidate_that_covers_more_of_the_query_comes_first():
    assert keys("socket key", [candidate(1, "socket x"), candidate(2, "socket kei")]) == [2, 1]


def test_equals_keep_the_order_in_which_they_were_given():
    assert keys("socket", [candidate(key, "socket x") for key in (3, 1, 2)]) == [3, 1, 2]


def test_no_candidates_give_no_ranking():
    assert keys("socket", []) == []


def test_meaning_decides_if_words_are_shared_by_chance():
    both = [note(1, "socket x y"), note(2, "other words")]

    assert keys("socket key gateway", both) == [1, 2]
    assert keys("socket key gateway", both, cosines({1: 0.1, 2: 0.4})) == [2, 1]
    assert keys("socket key gateway", both, cosines({1: 0.1, 2: 0.4}, is_guessed=True)) == [2, 1]


def test_a_memory_that_contains_the_query_is_before_one_that_is_slightly_nearer():
    both = [note(1, "socket kei gatewai"), note(2, "other words")]

    assert keys("socket key gateway", both, cosines({1: 0.3, 2: 0.4})) == [1, 2]


def test_one_common_pair_of_characters_is_no_match_by_words():
    store = replace(STORE, frequencies={"하는": 200})
    both = [note(1, "하는 x"), note(2, "y")]
    question = "세션을 저장하는 데이터베이스는 무엇인가요"

    assert keys(question, both, cosines({1: 0.3, 2: 0.35}), store=store) == [2, 1]


def test_the_memory_with_an_identifier_as_it_is_written_comes_first():
    both = [note(1, "socket x gatewai"), note(2, "y socket gatewai")]
    near = cosines({1: 0.4, 2: 0.2})

    assert keys("what is socket_gateway", both, near) == [2, 1]
    assert keys("what is socketGateway", both, near) == [2, 1]
    assert keys("what is a socket gateway", both, near) == [1, 2]


def test_a_note_is_before_a_document_that_is_as_near():
    both = [candidate(1, "x"), note(2, "x")]

    assert keys("socket", both, cosines({1: 0.4, 2: 0.4})) == [2, 1]
    assert keys("socket", both, cosines({1: 0.5, 2: 0.4})) == [1, 2]


def test_a_long_query_is_answered_by_the_text_whose_parts_contain_it_together():
    terms = [f"zo{letter}" for letter in "bcdfghjklmnpqrtv"]
    store = replace(STORE, frequencies=dict.fromkeys(terms, 10))
    both = [candidate(1, *[f"{a} {b}" for a, b in pairwise(terms)]), note(2, "other words")]
    absent = [*terms[:2], *(f"absent{term}" for term in terms[2:12])]
    near = cosines({1: 0.3, 2: 0.4})

    assert keys(" ".join(terms), both, near, store=store) == [1, 2]
    assert keys(" ".join(absent), both, near, store=store) == [2, 1]


def test_a_memory_of_the_named_day_comes_first():
    then = note(2, "socket x", created=NOW - timedelta(days=21))
    now = note(1, "socket x", created=NOW)

    assert keys("the socket 3 weeks ago", [now, then], asked=NOW) == [2, 1]
    assert keys("the socket", [then, now], asked=NOW) == [1, 2]
    assert keys("the socket 3 weeks ago", [note(3, "socket x"), then], asked=NOW) == [2, 3]


def test_importance_and_age_decide_between_equals_alone():
    plain = note(1, "socket x", created=NOW - timedelta(days=300))
    new, important = plain._replace(key=2, created=NOW), plain._replace(key=2, importance=0.9)
    better = note(3, "socket kei", created=NOW - timedelta(days=3000), importance=0.0)

    assert keys("socket", [plain, important]) == [2, 1]
    assert keys("socket", [plain, new], asked=NOW) == [2, 1]
    assert keys("socket key", [new._replace(importance=1.0), better], asked=NOW) == [3, 2]


def test_the_best_unit_is_reported():
    item = candidate(1, "x", "socket kei", "socket")

    assert ranked("socket key", [item])[0].unit == 1
    assert ranked("zeppelin", [item], cosines({1: [0.1, 0.1, 0.9]}))[0].unit == 2


def test_a_full_answer_scores_high_and_a_stray_word_below_the_threshold():
    filler = " ".join(["filler"] * 20)
    near = cosines({1: 0.7, 2: 0.2})

    for given_cosines in (near, near._replace(is_guessed=True), Cosines({})):
        full = note(1, "the socket kei of the gatewai")
        stray = note(2, f"us {filler}")
        assert ranked("socket key of the gateway in use", [full], given_cosines)[0].score > 0.7
        assert ranked("how to use zeppelin engines", [stray], given_cosines)[0].score < 0.3


def test_a_paraphrase_is_sure_only_if_it_is_ahead_of_the_store():
    both = [note(1, "other words"), note(2, "more words")]

    def first(near):
        return ranked("socket key gateway", both, near)[0].score

    assert first(cosines({1: 0.5, 2: 0.2})) > 0.3 > first(cosines({1: 0.3, 2: 0.29}))


def test_a_memory_is_not_sure_by_its_date_alone():
    then = note(1, "other words", created=NOW - timedelta(days=1))

    assert ranked("the socket yesterday", [then], cosines({1: 0.1}), asked=NOW)[0].score < 0.3


def test_a_lone_common_word_is_weak_evidence_and_a_rare_one_is_strong():
    def of(question, word):
        store = replace(STORE, units=2, frequencies={word: 1}, memories=1)
        return ranked(question, [note(1, word)], store=store)[0].score

    assert of("help", "help") == 0.3 < of("gateway", "gatewai")


def test_the_same_match_is_weaker_evidence_in_a_larger_store():
    def of(memories):
        store = replace(STORE, units=memories, frequencies={"socket": 1}, memories=memories)
        return ranked("socket cleanup", [note(1, "socket")], store=store)[0].score

    assert of(10) > of(1_000) > of(100_000)


@given(
    st.lists(
        st.tuples(st.sampled_from(["socket", "socket kei", "x", ""]), st.floats(-1, 1)), max_size=8
    ),
    st.booleans(),
    st.sampled_from(list(Shape)),
    st.text(max_size=20),
)
def test_scores_are_probabilities_that_never_rise_down_the_list(rows, is_guessed, shape, question):
    items = [candidate(key, unit, shape=shape) for key, (unit, _) in enumerate(rows)]
    near = cosines({key: cosine for key, (_, cosine) in enumerate(rows)}, is_guessed=is_guessed)

    answer = ranked(f"socket {question}", items, near, asked=NOW)

    scores = [item.score for item in answer]
    assert all(0 <= value <= 1 for value in scores)
    assert scores == sorted(scores, reverse=True)
    assert sorted(item.key for item in answer) == list(range(len(rows)))
    assert all(item.unit == 0 for item in answer)


def test_a_score_rises_with_each_kind_of_evidence():
    def of(**more):
        weak = {
            "ahead": 0.0,
            "matched": 2.0,
            "asked": 10.0,
            "named": 0,
            "memories": 100,
            "tokens": 9.0,
        }
        return score(**weak | more)

    assert of(ahead=0.2) > of()
    assert of(ahead=9.0) == of(ahead=0.3)
    assert of(matched=10.0, named=1) > of(matched=10.0) > of()
