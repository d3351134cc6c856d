"""Questions without a subject, in English, German and Korean."""

import tomllib
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.text.continuity import About, about

PHRASINGS = tomllib.loads(Path(__file__).with_name("continuity.toml").read_text(encoding="utf-8"))
SUBJECTS = tomllib.loads(Path(__file__).with_name("subjects.toml").read_text(encoding="utf-8"))
WORK = (About.LATEST, About.NEXT)


@pytest.mark.parametrize("kind", ["develop", "held", "spelled"])
@pytest.mark.req("001-24")
def test_a_question_about_nothing_else_asks_where_work_stopped(kind):
    assert [question for question in PHRASINGS[kind] if about(question) not in WORK] == []


@pytest.mark.parametrize(
    "questions",
    [
        PHRASINGS["subject"],
        [pair[0] for pair in SUBJECTS["pairs"]],
        SUBJECTS["framing"]["subject"],
        SUBJECTS["open"]["subject"],
    ],
    ids=["subject", "pairs", "framing", "open"],
)
def test_a_question_with_a_subject_is_about_it(questions):
    assert [each for each in questions if about(each) is not About.SUBJECT] == []


@pytest.mark.parametrize("question", [*PHRASINGS["other"], f"continue {'and so on ' * 30}"])
def test_a_question_about_something_does_not_ask_where_work_stopped(question):
    assert about(question) not in WORK


def test_a_decomposed_question_is_the_same():
    assert about(normalize("NFD", "지난번에 뭐 했지?")) is About.LATEST


@pytest.mark.parametrize("question", ["what is new", "What’s new?", "anything new"])
def test_what_is_new_is_about_no_subject(question):
    assert about(question) is About.NOTHING
    assert about(f"{question} server") is About.SUBJECT


@given(st.text(alphabet="하했던이어서 제한지난번 what'next-.", max_size=300))
def test_any_text_is_read(text):
    assert len(text) <= 200 or about(text) is About.SUBJECT


def test_a_framing_noun_of_this_conversation_is_not_a_subject():
    questions = SUBJECTS["framing"]["other"]
    assert [each for each in questions if about(each) is About.SUBJECT] == []


def test_questions_for_open_work_are_known():
    questions = [text for kind in ("blocked", "next", "both") for text in SUBJECTS["open"][kind]]

    assert [text for text in questions if about(text) not in (About.NEXT, About.PROBLEMS)] == [
        "ok so before we call it done, is there anything we still have to fix or finish"
    ]


@pytest.mark.parametrize(
    "question", ["what did we leave open", "what was the problem", "what's new", "todo app"]
)
def test_earlier_work_is_not_open(question):
    assert about(question) not in (About.NEXT, About.PROBLEMS)


@pytest.mark.parametrize(("kind", "meaning"), [("blocked", About.PROBLEMS), ("next", About.NEXT)])
def test_problems_are_not_the_next_step(kind, meaning):
    assert {about(question) for question in SUBJECTS["open"][kind]} == {meaning}


def test_a_text_that_only_asks_to_go_on_can_be_left_out():
    assert about("what's next?") is About.NEXT
    assert about("what's next?", onward=False) is About.NOTHING
    assert about("what should we do next, please", onward=False) is About.NEXT
