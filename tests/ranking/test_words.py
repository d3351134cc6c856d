"""The words of a query in candidates."""

from dataclasses import replace
from itertools import pairwise
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.ranking import understand
from mimo.ranking.words import Reader, bm25, inverse_frequency, occurrences
from tests.ranking.conftest import STORE, candidate

WORDS = {"red": 2.0, "blue": 1.0}
STRETCHES = st.lists(
    st.lists(st.sampled_from(["red", "blue", "reddish", "a"]), max_size=9), max_size=6
)


def read(question, item):
    reader = Reader(understand(question), STORE)
    reader.read([item])
    return reader[item.key]


@given(STRETCHES)
def test_every_occurrence_of_a_term_is_found_in_its_stretch(stretches):
    counts = occurrences([" ".join(tokens) for tokens in stretches], ("red", "blue", "red blue"))

    assert [{name: item[name] for name in WORDS if name in item} for item in counts] == [
        {name: tokens.count(name) for name in WORDS if name in tokens} for tokens in stretches
    ]
    for tokens, item in zip(stretches, counts, strict=True):
        pairs = list(pairwise(tokens))
        assert item.get("red blue", 0) == pairs.count(("red", "blue"))


@given(STRETCHES)
def test_the_counts_of_a_candidate_are_those_of_its_whole_text(stretches):
    texts = [" ".join(tokens) for tokens in stretches]
    (whole,) = occurrences([" ".join(filter(None, texts))], WORDS)

    assert read("red blue", candidate(1, *texts)).counts == whole


def test_bm25_follows_the_formula():
    norm = 1.2 * (0.25 + 0.75 * 20 / 10)

    assert bm25({"red": 3, "blue": 1, "green": 5}, 20, WORDS, 10) == pytest.approx(
        2.0 * 3 * 2.2 / (3 + norm) + 1.0 * 2.2 / (1 + norm)
    )
    assert bm25({}, 0, WORDS, 10) == 0


def test_a_rare_term_is_worth_more_than_a_common_one():
    assert inverse_frequency(1, 100) == pytest.approx(log(1 + 99.5 / 1.5))
    assert inverse_frequency(60, 100) == pytest.approx(log(1 + 40.5 / 60.5))
    assert inverse_frequency(0, 100) == pytest.approx(log(101))


def test_words_in_one_unit_cover_more_than_the_same_words_apart():
    filler = " ".join(["filler"] * 20)
    apart = candidate(2, f"socket {filler}", f"gatewai {filler}")

    assert read("socket gateway", candidate(1, "socket gatewai", filler)).coverage == pytest.approx(
        1
    )
    assert read("socket gateway", apart).coverage < 0.6


def test_words_of_the_question_that_the_store_does_not_know_lower_the_coverage():
    assert read("socket", candidate(1, "socket")).coverage == 1
    assert read("socket zeppelin", candidate(1, "socket")).coverage < 0.5


def test_the_heading_is_read_as_part_of_each_unit():
    reading = read("socket gateway", candidate(1, "socket x", "y", heading="gatewai"))

    assert reading.coverages[0] == pytest.approx(1)
    assert 0 < reading.coverages[1] < 0.6
    assert reading.counts == {"socket": 1, "gatewai": 1}
    assert (reading.length, reading.named) == (4, 1)


@pytest.mark.parametrize("units", [(), ("",)])
def test_a_memory_with_nothing_but_a_title_is_found_by_it(units):
    assert read("socket", candidate(1, *units, heading="socket")).coverage == 1


def test_an_identifier_counts_as_it_is_written():
    assert read("socket_gateway", candidate(1, "x socket gatewai")).identifiers == 1
    assert read("socket_gateway", candidate(1, "socket", "gatewai")).identifiers == 0
    assert read("socketGateway or deploy_key", candidate(1, "socket gatewai")).identifiers == 0.5
    assert read("socket gateway", candidate(1, "socket gatewai")).identifiers == 0


def test_a_candidate_is_read_once():
    reader = Reader(understand("socket"), replace(STORE, frequencies={}))
    reader.read([candidate(1, "socket"), candidate(2, "x")])
    first = reader[1]

    reader.read([candidate(1, "other"), candidate(3, "socket")])

    assert reader[1] is first
    assert reader[3].coverage == 1
