"""The matching of words."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.ranking import evidence, understand
from mimo.ranking.evidence import Hits, Statistics

WORTH = {"red": 2.0, "blue": 1.0}
TOKENS = st.lists(st.sampled_from(["red", "blue", "reddish", "a"]), min_size=1, max_size=30)


def hits(tokens, before=()):
    text = f" {tokens} "
    return evidence.hits(text, evidence.places_of(text, WORTH), tokens.count(" ") + 1, dict(before))


def test_a_rare_term_is_worth_more_than_a_common_one():
    query = understand("red blue green")
    statistics = Statistics(
        units=100,
        frequencies={"red": 1, "blue": 60},
        unit_tokens=1,
        passage_tokens=1,
        document_tokens=1,
    )

    worth = evidence.inverse_frequencies(query, statistics)

    assert worth["red"] == pytest.approx(log(1 + 99.5 / 1.5))
    assert worth["blue"] == pytest.approx(log(1 + 40.5 / 60.5))
    assert worth["green"] == pytest.approx(log(101))


@given(TOKENS)
def test_every_occurrence_of_a_term_is_found_and_no_part_of_a_word(tokens):
    result = hits(" ".join(tokens))

    assert result.length == len(tokens)
    assert result.counts == {term: tokens.count(term) for term in WORTH if term in tokens}


@pytest.mark.parametrize(
    ("tokens", "phrases"),
    [
        ("red blue", {"blue": 1}),
        ("red x blue", {"blue": 1}),
        ("red x y blue", {}),
        ("blue red", {}),
        ("red blue red blue", {"blue": 2}),
    ],
)
def test_a_phrase_is_the_next_term_of_the_query_within_two_tokens(tokens, phrases):
    assert hits(tokens, {"blue": "red"}.items()).phrases == phrases


def test_bm25_follows_the_formula():
    result = Hits(length=20, counts={"red": 3, "blue": 1})
    norm = 1.2 * (0.25 + 0.75 * 20 / 10)

    assert evidence.bm25(result, WORTH, 10) == pytest.approx(
        2.0 * 3 * 2.2 / (3 + norm) + 1.0 * 2.2 / (1 + norm)
    )


def test_bm25_counts_only_terms_that_are_asked_for():
    assert evidence.bm25(Hits(length=1, counts={"green": 5}), WORTH, 1) == 0


def test_a_phrase_is_worth_the_mean_of_its_terms_as_bm25():
    result = Hits(length=10, counts={}, phrases={"blue": 2})

    assert evidence.phrase(result, WORTH, {"blue": "red"}, 10) == pytest.approx(1.5 * 2 * 2.2 / 3.2)
    assert evidence.phrase(Hits(length=10), WORTH, {}, 10) == 0


def test_coverage_is_a_share_of_worth_whatever_the_number_of_occurrences():
    assert evidence.coverage({"red": 9}, WORTH, 3.0) == pytest.approx(2 / 3)
    assert evidence.coverage({"red": 1, "blue": 1}, WORTH, 3.0) == pytest.approx(1)
    assert evidence.coverage({}, {}, 0.0) == 0


def test_stretches_together_hold_the_hits_of_all():
    item = Hits(length=2, counts={"red": 1}, phrases={"blue": 1})
    other = Hits(length=3, counts={"red": 2, "blue": 1}, phrases={"blue": 1})

    both = evidence.together([item, other])

    assert (both.length, both.counts, both.phrases) == (5, {"red": 3, "blue": 1}, {"blue": 2})
