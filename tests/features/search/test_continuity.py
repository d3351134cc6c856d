"""Which questions ask for the latest."""

import pytest

from mimo.features.search.recall import asks_for_the_latest


@pytest.mark.parametrize(
    "query",
    [
        "where did we leave off last time?",
        "Where did I stop?",
        "what did we do in the last session",
        "what have we talked about so far",
        "What happened recently?",
        "please recap our previous conversation",
        "what was I working on",
    ],
)
@pytest.mark.req("001-24")
def test_a_question_about_nothing_but_the_past_does(query):
    assert asks_for_the_latest(query)


@pytest.mark.parametrize(
    "query",
    [
        "where did we stop with the login form",
        "why did the server stop",
        "resume",
        "stop",
        "what is a session",
        "what did we decide",
        "",
        "¿dónde lo dejamos?",
    ],
)
def test_one_about_something_does_not(query):
    assert not asks_for_the_latest(query)
