import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.features.hooks.exposure import CORE, SURE, Intent, classify

RESUME = ("load/checkpoint", "load/context", "save/decision")
DECIDE = ("save/decision", "save/insight", "search/by_context", "load/checkpoint")


@pytest.mark.req("004-29")
@pytest.mark.req("004-33")
@pytest.mark.req("004-37")
@pytest.mark.req("004-38")
@pytest.mark.parametrize(
    "said",
    [
        "어제 작업 이어서 하자",
        "이어서 하자",
        "Continue",
        "let's RESUME",
        "please continue from there",
    ],
)
def test_who_resumes_work_is_offered_what_loads_it(said: str) -> None:
    exposure = classify(said)
    assert (exposure.intent, exposure.tools) == (Intent.RESUMING, RESUME)


@pytest.mark.req("004-30")
@pytest.mark.req("004-34")
@pytest.mark.parametrize(
    "said", ["JWT로 결정하자", "we decide for JWT", "What is the better CHOICE?", "하나 선택해줘"]
)
def test_who_decides_is_offered_what_saves_it(said: str) -> None:
    exposure = classify(said)
    assert (exposure.intent, exposure.tools) == (Intent.DECIDING, DECIDE)


@pytest.mark.req("004-31")
@pytest.mark.req("004-32")
@pytest.mark.req("004-35")
@pytest.mark.parametrize(
    ("said", "intent"),
    [
        ("지난 회의 찾아줘", Intent.SEARCHING),
        ("search the notes", Intent.SEARCHING),
        ("do you recall it?", Intent.SEARCHING),
        ("그때 어떻게 했지", Intent.SEARCHING),
        ("배포가 실패했어", Intent.TRACKING),
        ("성공!", Intent.TRACKING),
        ("the deploy failed", Intent.TRACKING),
        ("a great success", Intent.TRACKING),
        ("fix the typo", Intent.OTHER),
        ("", Intent.OTHER),
    ],
)
def test_anything_else_is_offered_everything(said: str, intent: Intent) -> None:
    exposure = classify(said)
    assert (exposure.intent, exposure.tools) == (intent, None)


@pytest.mark.req("004-36")
def test_the_first_that_matches_wins() -> None:
    assert classify("continue where we had to decide").intent is Intent.RESUMING
    assert classify("decide whether the search failed").intent is Intent.DECIDING
    assert classify("continue where we had to decide").tools == RESUME


@pytest.mark.req("004-44")
@pytest.mark.parametrize(
    "said",
    [
        "continue, then decide, search what failed",
        "continue " + "and do many other things " * 30,
    ],
)
def test_who_says_many_things_is_offered_everything(said: str) -> None:
    exposure = classify(said)
    assert exposure.confidence < SURE
    assert exposure.tools is None


@pytest.mark.parametrize(
    "said", ["rename `continue` in the loop", "what is wrong?\n```\nresume()\n```", "```\ncontinue"]
)
def test_code_says_nothing_about_what_is_wanted(said: str) -> None:
    assert classify(said).tools is None


@given(st.text())
def test_any_message_gets_an_answer_that_holds_the_core(said: str) -> None:
    exposure = classify(said)
    assert 0 <= exposure.confidence <= 1
    assert exposure.tools is None or set(CORE) <= set(exposure.tools)
