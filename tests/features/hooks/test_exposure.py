"""The tools that fit a prompt, and the file that passes them to the server."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.call.table import ALWAYS
from mimo.features.hooks import exposure
from mimo.features.hooks.exposure import PLACE, SURE, Exposure, Intent, classify
from tests.conftest import assert_linear

RESUME = ("load/checkpoint", "load/context", "save/decision")
DECIDE = ("save/decision", "save/insight", "search/by_context", "load/checkpoint")


@pytest.mark.req("004-29")
@pytest.mark.req("004-33")
@pytest.mark.req("004-37")
@pytest.mark.req("004-38")
@pytest.mark.parametrize(
    "prompt",
    [
        "어제 작업 이어서 하자",
        "이어서 하자",
        "Continue",
        "let's RESUME",
        "please continue from there",
    ],
)
def test_resuming_lists_the_tools_that_load(prompt: str) -> None:
    exposed = classify(prompt)
    assert (exposed.intent, exposed.tools) == (Intent.RESUMING, RESUME)


@pytest.mark.parametrize(
    "prompt",
    ["Where were we?", "what is left", "어디까지 했지?", "summarize our last conversation"],
)
def test_a_prompt_that_only_asks_where_work_stopped_resumes_it(prompt: str) -> None:
    assert classify(prompt).intent is Intent.RESUMING
    assert classify(f"{prompt} in the payment form").intent is Intent.OTHER


@pytest.mark.parametrize(
    "prompt",
    [
        "Did we do this before?",
        "Last time we paged by key, didn't we",
        "how did we solve that last time?",
        "we fixed this last month; where?",
        "What did we decide about auth last week?",
        "page invoices as we did for orders",
        "find it in an earlier session",
        "전에 이거 고친 적 있어?",
        "저번에 어떻게 했지?",
        "지난주에 결정했던 방식이 뭐였지?",
        "이전 세션에서 뭐라고 했어?",
    ],
)
def test_a_question_about_earlier_work_names_sessions_while_they_are_on(prompt: str) -> None:
    assert "mind_sessions" not in (classify(prompt).tools or ())
    exposed = classify(prompt, has_sessions=True)
    assert (exposed.intent, (exposed.tools or ("",))[0]) == (Intent.EARLIER, "mind_sessions")


@pytest.mark.parametrize(
    "prompt",
    [
        "run the tests before you commit",
        "I had to restart the server before it worked",
        "did you run the tests?",
        "make the report of last month",
        "the session expires before the login",
        "the previous session token is used again",
        "did you check it once the build was green?",
        "have you already run the tests",
        "이전 세션 토큰을 지워",
        "배포하기 전에 테스트를 실행해",
        "지난주 보고서를 만들어",
        "어제 작업 이어서 하자",
        "let's continue where we were last time",
    ],
)
def test_other_prompts_do_not_name_sessions(prompt: str) -> None:
    assert classify(prompt, has_sessions=True) == classify(prompt)


@pytest.mark.parametrize("prompt", ["ok go on", "keep going", "what's next?", "proceed"])
def test_a_prompt_that_only_asks_to_go_on_resumes_nothing(prompt: str) -> None:
    assert classify(prompt).intent is Intent.OTHER


@pytest.mark.req("004-30")
@pytest.mark.req("004-34")
@pytest.mark.parametrize(
    "prompt", ["JWT로 결정하자", "we decide for JWT", "What is the better CHOICE?", "하나 선택해줘"]
)
def test_deciding_lists_the_tools_that_save(prompt: str) -> None:
    exposed = classify(prompt)
    assert (exposed.intent, exposed.tools) == (Intent.DECIDING, DECIDE)


@pytest.mark.req("004-31")
@pytest.mark.req("004-32")
@pytest.mark.req("004-35")
@pytest.mark.parametrize(
    ("prompt", "intent"),
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
def test_any_other_prompt_lists_every_tool(prompt: str, intent: Intent) -> None:
    exposed = classify(prompt)
    assert (exposed.intent, exposed.tools) == (intent, None)


@pytest.mark.req("004-36")
def test_the_first_matching_intent_wins() -> None:
    assert classify("continue where we had to decide").intent is Intent.RESUMING
    assert classify("decide whether the search failed").intent is Intent.DECIDING
    assert classify("continue where we had to decide").tools == RESUME


@pytest.mark.req("004-44")
@pytest.mark.parametrize(
    "prompt",
    [
        "continue, then decide, search what failed",
        "continue " + "and do many other things " * 30,
    ],
)
def test_an_uncertain_intent_lists_every_tool(prompt: str) -> None:
    exposed = classify(prompt)
    assert exposed.confidence < SURE
    assert exposed.tools is None


@pytest.mark.parametrize(
    "prompt",
    ["rename `continue` in the loop", "what is wrong?\n```\nresume()\n```", "```\ncontinue"],
)
def test_words_in_code_are_ignored(prompt: str) -> None:
    assert classify(prompt).tools is None


NARROWED = {
    Intent.RESUMING: """
        Continue
        continue.
        Resume!
        please continue
        let's RESUME
        Let's continue where we left off
        Continue from where we stopped yesterday
        ok, continue with the next step
        can we resume our work on the parser?
        I want to continue yesterday's work
        please continue from there
        Continue working on the importer
        resume the last session
        continue the refactoring we started
        Good morning! Let's resume.
        어제 작업 이어서 하자
        이어서 하자
        이어서 진행해줘
        어제 하던 거 계속하자
        """,
    Intent.DECIDING: """
        we decide for JWT
        let's decide on a database
        help me decide between Redis and Postgres
        we need to decide how to store tokens
        I have to decide on a license
        Should we decide this now?
        What is the better CHOICE?
        which is the best choice for the queue
        it's a choice between REST and GraphQL
        JWT로 결정하자
        하나 선택해줘
        둘 중 뭘 선택할까?
        데이터베이스를 결정해야 해
        """,
}
EVERY_TOOL = """
    discontinue the old endpoint
    we discontinued that product last year
    the build continues to fail
    the resume upload button does nothing
    fix the resume upload button
    Resume upload fails after the second chunk
    the customer decided to cancel
    what happens when a user decided to cancel the order
    Continue with Google button is misaligned
    the continue button should be disabled
    add a "continue" link to the form
    rename the continue flag of the CLI
    continue-on-error is ignored in the workflow
    the continue statement in the loop is wrong
    parse the candidate's resume as PDF
    store each résumé and resume in S3
    upload your resume here is cut off on mobile
    the player should resume from the last position
    make the download resume after a crash
    fails to resume after sleep
    users want to resume from where they paused
    resume parsing of CVs
    Click to continue is not translated
    the router must decide which handler to call
    write a function to decide whether a cell is alive
    the scheduler decides the order
    undecided voters are counted twice
    multiple choice questions need a timer
    the choice field loses its value after reload
    Decide button does nothing
    a poor choice of words in the docs, fix it
    remove the default choice from the dropdown
    show the user's choice in the summary
    deploy failed again, please look at the logs
    search the code for TODO
    어제 배포가 실패했어
    어제 올린 커밋을 되돌려줘
    어제 날짜가 잘못 표시돼
    두 문자열을 이어서 출력해
    영상 이어서 재생 버튼이 안 보여
    결정 트리 모델을 학습해줘
    고객이 취소하기로 결정했어
    선택 상자가 안 열려
    선택한 파일이 업로드되지 않아
    선택해야 하는 필드가 비어 있어
    선택자 이름을 바꿔줘
    ok go on
    fix the typo
    I can resume the VM but its network is missing
    we continue to see timeouts
    the tests must pass before we continue.
    please resume the paused queue consumer
    add a make a choice field to the survey
    now decide is called twice
    tell me if you decide to skip it
    """


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize(
    ("prompt", "intent"),
    [(line, intent) for intent, text in NARROWED.items() for line in lines(text)],
)
def test_a_request_to_resume_or_to_decide_narrows_the_list(prompt: str, intent: Intent) -> None:
    exposed = classify(prompt)
    assert (exposed.intent, exposed.tools is None) == (intent, False)


@pytest.mark.req("004-44")
@pytest.mark.parametrize("prompt", lines(EVERY_TOOL))
def test_a_word_that_is_not_a_request_lists_every_tool(prompt: str) -> None:
    assert classify(prompt).tools is None


@given(st.text())
def test_every_prompt_keeps_the_core_tools(prompt: str) -> None:
    exposed = classify(prompt)
    assert 0 <= exposed.confidence <= 1
    assert exposed.tools is None or set(ALWAYS) <= set(exposed.tools)


NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".mind").mkdir()
    return tmp_path


def of(message: str) -> Exposure:
    return classify(message)._replace(session="s1", at=NOW)


@pytest.mark.req("004-28")
@pytest.mark.parametrize("message", ["어제 작업 이어서 하자", "let's decide", "search", "hello"])
def test_the_newest_exposure_is_read(root: Path, message: str) -> None:
    exposure.write(root, of("continue"))
    exposure.write(root, of(message))

    assert exposure.read(root) == of(message)


@pytest.mark.parametrize(
    "changed",
    [
        {"session": 7},
        {"session": "x" * 201},
        {"intent": "sleeping"},
        {"confidence": 2},
        {"confidence": True},
        {"tools": "all"},
        {"tools": [1]},
        {"tools": ["x"] * 101},
        {"at": "yesterday"},
        {"at": "2026-11-20T15:30:00"},
        {"at": None},
    ],
)
def test_a_value_out_of_range_is_no_exposure(root: Path, changed: dict[str, object]) -> None:
    exposure.write(root, of("continue"))
    data = json.loads((root / PLACE).read_text(encoding="utf-8"))
    (root / PLACE).write_text(json.dumps(data | changed), encoding="utf-8")

    assert exposure.read(root) is None


@pytest.mark.attack("repeated text takes quadratic time")
@pytest.mark.parametrize(
    "text", ["\n", "어제", ". \n", "please ", "어제 이어서 ", "did we had ", "전 "]
)
@pytest.mark.parametrize("word", ["continue it all", "decide nothing", "choice"])
def test_a_long_prompt_is_classified_in_linear_time(
    monkeypatch: pytest.MonkeyPatch, text: str, word: str
) -> None:
    monkeypatch.setattr("mimo.features.hooks.exposure._MAX_READ", 400_000)
    assert_linear(lambda size: classify(text * (size // len(text)) + word, has_sessions=True))
    assert classify(text * 20_000 + word).confidence <= 0.5


@pytest.mark.parametrize(
    "prompt",
    ["see\n\n \n\tcontinue", "yes.\n\n  continue", "뭐였지\n어제 어제 일 계속하자", "\ncontinue"],
)
def test_a_request_may_follow_blank_lines(prompt: str) -> None:
    assert classify(prompt).intent is Intent.RESUMING
    assert classify(prompt).confidence >= SURE
