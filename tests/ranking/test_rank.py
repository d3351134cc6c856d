"""The order of candidates, one feature at a time, and their scores."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.ranking import rank, understand
from mimo.ranking.evidence import Candidate, Examiner, Statistics, document_worth

NOW = datetime(2026, 11, 20, 15, tzinfo=UTC)
STORE = Statistics(
    units=1000,
    frequencies={"socket": 10, "kei": 20, "gatewai": 5, "deploi": 30, "us": 300},
    unit_tokens=40.0,
    passage_tokens=80.0,
    document_tokens=80.0,
)
FILLER = " ".join(["filler"] * 20)


def candidate(key, *units, **more):
    return Candidate(key=key, units=units, **more)


def order(question, *candidates, asked=None):
    return [item.key for item in rank(Examiner(understand(question, asked), STORE), candidates)]


def evidence(question, *candidates, asked=None):
    return Examiner(understand(question, asked), STORE).examine(candidates)


def score(question, item):
    return rank(Examiner(understand(question), STORE), [item])[0].score


def test_the_candidate_that_covers_more_of_the_query_comes_first():
    assert order(
        "socket key gateway", candidate(1, "socket x"), candidate(2, "socket kei gatewai")
    ) == [
        2,
        1,
    ]


def test_equals_keep_the_order_in_which_they_were_given():
    same = [candidate(key, "socket x") for key in (3, 1, 2)]

    assert order("socket", *same) == [3, 1, 2]


def test_only_matches_that_reach_the_threshold_are_returned_but_the_best_ones():
    query = understand("socket key")
    items = [candidate(key, "socket kei x" if key == 7 else "x") for key in range(9)]
    every = rank(Examiner(query, STORE), items)

    assert every[0].key == 7
    assert every[0].score > 0.3 > every[1].score
    assert rank(Examiner(query, STORE), items, threshold=0.3) == every[:2]
    assert rank(Examiner(query, STORE), items, threshold=0.3, least=4) == every[:4]
    assert rank(Examiner(query, STORE), items, threshold=every[-1].score) == every


def test_no_candidates_give_no_ranking():
    assert rank(Examiner(understand("socket"), STORE), []) == []


def test_words_in_one_unit_cover_more_than_the_same_words_apart():
    together, apart = evidence(
        "socket gateway",
        candidate(1, "socket gatewai", FILLER),
        candidate(2, f"socket {FILLER}", f"gatewai {FILLER}"),
    )

    assert together.coverage == pytest.approx(1)
    assert apart.coverage < 0.6


def test_words_of_the_question_that_the_store_does_not_know_lower_the_coverage():
    (expected_names,) = evidence("socket", candidate(1, "socket"))
    (unknown,) = evidence("socket zeppelin", candidate(1, "socket"))

    assert expected_names.coverage == 1
    assert unknown.coverage < 0.5


def test_the_best_passage_counts_and_not_the_length_around_it():
    passages = ("socket gatewai", *[FILLER] * 5)
    (result, alone) = evidence(
        "socket gateway",
        candidate(1, "socket gatewai", *[FILLER] * 5, passages=passages),
        candidate(2, "socket gatewai"),
    )

    assert result.passage == pytest.approx(alone.passage)
    assert result.document < alone.document


def test_of_a_chat_the_passages_given_count_and_not_the_units():
    stated, heard = evidence(
        "socket",
        candidate(1, "socket x", passages=("socket",)),
        candidate(2, "socket x", passages=("x",)),
    )

    assert stated.passage > heard.passage == 0
    assert stated.coverage == heard.coverage == 1


@given(
    st.lists(st.sampled_from(["socket", "kei", "gatewai", "x", "us"]), min_size=1, max_size=40),
    st.integers(1, 15),
    st.integers(1, 25),
)
def test_passages_cut_from_the_units_are_read_as_if_read_alone(tokens, unit, passage):
    units = [" ".join(tokens[i : i + unit]) for i in range(0, len(tokens), unit)]
    passages = [" ".join(tokens[i : i + passage]) for i in range(0, len(tokens), passage)]
    reader = Examiner(understand("socket key gateway"), STORE)

    reading = reader.read(candidate(1, *units, passages=passages))

    for part, alone in zip(reading.passages, map(reader.find, passages), strict=True):
        assert (part.length, part.counts) == (alone.length, alone.counts)
        assert part.phrases == alone.phrases
    assert [u.counts for u in reading.units] == [reader.find(item).counts for item in units]


def test_adjacent_words_of_the_query_make_a_phrase():
    result, apart = evidence(
        "socket key", candidate(1, "the socket kei x x"), candidate(2, "kei x x x socket")
    )

    assert result.phrase > apart.phrase == 0
    assert (
        order("socket key", candidate(2, "kei x x x socket"), candidate(1, "x socket kei x x"))[0]
        == 1
    )


def test_meaning_lifts_what_is_near_to_the_query():
    near = candidate(2, "socket x", unit_cosines=(0.8,), document_cosine=0.7)
    far = candidate(1, "socket x", unit_cosines=(0.1,), document_cosine=0.1)

    assert order("socket", far, near) == [2, 1]
    assert evidence("socket", near)[0].unit_meaning == 0.8
    assert evidence("socket", near)[0].document_meaning == 0.7


def test_meaning_below_zero_counts_as_none():
    (result,) = evidence(
        "socket", candidate(1, "socket", unit_cosines=(-0.2,), document_cosine=-0.1)
    )

    assert (result.unit_meaning, result.document_meaning) == (0, 0)


@pytest.mark.parametrize("query", ["검색", "検索", "поиск", "search"])
def test_meaning_counts_in_every_script(query):
    (result,) = evidence(query, candidate(1, "x", unit_cosines=(0.9,), document_cosine=0.8))

    assert (result.unit_meaning, result.document_meaning) == (0.9, 0.8)


def test_one_common_pair_of_characters_is_no_full_match_by_words():
    """The only candidate with a pair of a long question is far behind the closest by meaning."""
    chance = candidate(1, "하는 x", unit_cosines=(0.2,), document_cosine=0.2)
    meant = candidate(2, "y", unit_cosines=(0.6,), document_cosine=0.6)
    store = replace(STORE, frequencies={"하는": 200})
    question = understand("세션을 저장하는 데이터베이스는 무엇인가요")

    assert [item.key for item in rank(Examiner(question, store), [chance, meant])] == [2, 1]


def test_a_part_is_lifted_by_the_better_of_its_neighbours():
    parent = "socket gatewai kei"
    (item, other) = evidence(
        "socket gateway",
        candidate(1, "kei", parent=parent, previous=("socket gatewai",), following=("socket",)),
        candidate(2, "kei", parent=parent, following=("socket gatewai",)),
    )

    assert item.neighbour == other.neighbour > 0


def test_a_part_is_lifted_by_what_its_whole_parent_covers():
    (part, alone) = evidence(
        "socket gateway", candidate(1, "socket", parent="socket x gatewai"), candidate(2, "socket")
    )

    assert (part.parent, alone.parent) == (pytest.approx(1), 0)


def test_a_neighbour_is_found_by_the_date_of_its_text_as_well():
    part = candidate(1, "x", parent="x", previous=("x",), created=datetime(2023, 7, 7, tzinfo=UTC))

    assert evidence("july", part)[0].neighbour > 0
    assert evidence("june", part)[0].neighbour == 0


def test_a_memory_of_the_named_day_comes_first():
    then = candidate(2, "socket x", created=NOW - timedelta(days=21))
    now = candidate(1, "socket x", created=NOW)

    assert order("the socket 3 weeks ago", now, then, asked=NOW) == [2, 1]
    assert order("the socket", then, now, asked=NOW) == [1, 2]


def test_a_memory_without_a_date_matches_no_date():
    assert evidence("in July 2023", candidate(1, "x"))[0].date == 0


@pytest.mark.parametrize("time", ["yesterdai", "march", "2021", "fridai", "week"])
def test_a_question_for_a_time_prefers_units_that_name_one(time):
    timed, timeless = candidate(2, f"deploi {time}"), candidate(1, "deploi x")

    assert order("when was the deploy", timeless, timed) == [2, 1]
    assert evidence("what was the deploy", timed)[0].time == 0


def test_units_of_a_named_speaker_count():
    talk = [candidate(n, "x", speakers=("ann bob",)) for n in range(5)]
    stated = candidate(8, "deploi x", speakers=("ann",))
    heard = candidate(9, "deploi x", speakers=("bob",))

    result = evidence("what did Ann deploy", stated, heard, *talk)

    assert (result[0].speaker > 0, result[1].speaker) == (True, 0)


def test_a_rare_word_before_a_colon_is_not_a_speaker():
    assert (
        evidence("what did Ann deploy", candidate(1, "deploi", speakers=("ann",)))[0].speaker == 0
    )


def test_the_title_is_read_as_part_of_each_passage():
    titled = candidate(1, "x", title="socket gatewai")

    (result,) = evidence("socket gateway", titled)

    assert result.coverage == result.title == pytest.approx(1)
    assert result.passage > 0
    assert result.phrase > 0


def test_a_memory_with_nothing_but_a_title_is_found_by_it():
    assert score("socket gateway", candidate(1, "", title="socket gatewai")) > 0.3


def test_a_title_lifts_more_than_a_topic():
    assert order(
        "socket gateway",
        candidate(1, "socket x", topic="gatewai"),
        candidate(2, "socket x", title="gatewai"),
    ) == [2, 1]


def test_importance_and_age_decide_between_equals():
    plain = candidate(1, "socket x", created=NOW - timedelta(days=300))

    assert order("socket", plain, replace(plain, key=2, importance=0.9)) == [2, 1]
    assert order("socket", plain, replace(plain, key=2, created=NOW), asked=NOW) == [2, 1]


def test_importance_and_age_do_not_outweigh_a_better_answer():
    better = candidate(1, "socket kei", created=NOW - timedelta(days=3000), importance=0.0)
    worse = candidate(2, "socket x", created=NOW, importance=1.0)

    assert order("socket key", worse, better, asked=NOW) == [1, 2]


def test_a_word_in_a_few_units_of_every_long_document_is_worth_little_for_a_document():
    store = replace(STORE, frequencies={"us": 100, "gatewai": 5}, document_tokens=1200.0)
    reader = Examiner(understand("use gateway"), store)
    long = [candidate(n, *["us x"] * 3, *["x"] * 27) for n in range(9)]
    readings = [reader.read(item) for item in [*long, candidate(9, "gatewai")]]

    worth = document_worth(["us", "gatewai"], readings, store)

    assert worth["us"] < 0.1
    assert worth["gatewai"] > 1.5


def test_best_unit_is_reported():
    item = candidate(1, "x", "socket kei", "socket")
    meant = replace(item, unit_cosines=(0.9, 0.1, 0.1))

    assert rank(Examiner(understand("socket key"), STORE), [item])[0].unit == 1
    assert rank(Examiner(understand("zeppelin"), STORE), [meant])[0].unit == 0


def test_a_full_answer_scores_high_and_a_stray_word_below_the_threshold():
    full = candidate(1, "the socket kei of the gatewai", unit_cosines=(0.7,), document_cosine=0.7)
    stray = candidate(2, f"us {FILLER}", unit_cosines=(0.2,), document_cosine=0.2)

    assert score("socket key of the gateway in use", full) > 0.8
    assert score("socket key of the gateway in use", stray) < 0.3


@pytest.mark.parametrize("cosines", [(), (0.7,)])
def test_the_threshold_parts_answers_from_strays_with_and_without_meaning(cosines):
    meaning = {"unit_cosines": cosines, "document_cosine": sum(cosines)}
    stray = {
        key: value and (0.2,) if key == "unit_cosines" else value and 0.2
        for key, value in meaning.items()
    }

    assert (
        score("socket key of the gateway", candidate(1, "the socket kei gatewai", **meaning)) > 0.3
    )
    assert score("how to use zeppelin engines", candidate(1, f"us {FILLER}", **stray)) < 0.3


@given(
    st.lists(st.lists(st.sampled_from(["socket", "kei", "us", "x"]), max_size=9), max_size=4),
    st.floats(-1, 1),
    st.text(max_size=20),
)
def test_a_score_lies_between_0_and_1(units, cosine, question):
    texts = [" ".join(unit) for unit in units]
    item = candidate(1, *texts, unit_cosines=[cosine] * len(texts), document_cosine=cosine)

    (ranked,) = rank(Examiner(understand(f"socket {question}", NOW), STORE), [item])

    assert 0 < ranked.score < 1
    assert 0 <= ranked.unit < max(len(units), 1)
