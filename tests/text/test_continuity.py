"""Questions without a subject, in English and Korean."""

import tomllib
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.text.continuity import asks_where_work_stopped, is_framing

PHRASINGS = tomllib.loads(Path(__file__).with_name("continuity.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("question", [*PHRASINGS["develop"], *PHRASINGS["held"]])
@pytest.mark.req("001-24")
def test_a_question_about_nothing_else_asks_where_work_stopped(question):
    assert asks_where_work_stopped(question)


@pytest.mark.parametrize(
    "question",
    [
        "where did we leave off last time?",
        "Where did I stop?",
        "what did we do in the last session",
        "what have we talked about so far",
        "What happened recently?",
        "please recap our previous conversation",
        "what was I working on",
        "resume",
        "How’s it going?",
        "WHAT'S NEXT???",
    ],
)
@pytest.mark.req("001-24")
def test_spelling_and_politeness_do_not_matter(question):
    assert asks_where_work_stopped(question)


@pytest.mark.parametrize("question", PHRASINGS["subject"])
def test_a_question_with_a_subject_is_about_it(question):
    assert not asks_where_work_stopped(question)
    assert not is_framing(question)


@pytest.mark.parametrize(
    "question",
    [
        "stop",
        "what is a session",
        "what did we decide",
        "",
        "?",
        "¿dónde lo dejamos?",
        "next.js status",
        "what is next_steps",
        "status 500",
        "제한 상태 알려줘",
        f"continue {'and so on ' * 30}",
    ],
)
def test_a_question_about_something_does_not_ask_where_work_stopped(question):
    assert not asks_where_work_stopped(question)


def test_a_decomposed_question_is_the_same():
    assert asks_where_work_stopped(normalize("NFD", "지난번에 뭐 했지?"))


@pytest.mark.parametrize("question", ["what is new", "What’s new?", "anything new"])
def test_what_is_new_is_about_no_subject(question):
    assert is_framing(question)
    assert not is_framing(f"{question} server")


@given(st.text(alphabet="하했던이어서 제한지난번 what'next-.", max_size=300))
def test_any_text_is_read(text):
    assert is_framing(text) or not asks_where_work_stopped(text)
