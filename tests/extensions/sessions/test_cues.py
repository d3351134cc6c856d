"""The cues of sentences: what is proposed, and what only looks like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.extensions.sessions.cues import ENOUGH, Family, cause_in, cue_of, sentences, without_reply

KEPT = [
    ("from now on run the tests with -race", Family.RULE),
    ("never run terraform apply yourself", Family.RULE),
    ("we decided that prices are integers in cents", Family.DECIDE),
    ("let's use zod because the types come for free", Family.DECIDE),
    ("I prefer small pull requests", Family.PREFER),
    ("you used print again, use the logger", Family.CORRECT),
    ("앞으로는 상태 관리는 riverpod만 쓰자", Family.RULE),
    ("Wir bleiben bei Fortran", Family.DECIDE),
    ("Bitte ab jetzt nie wieder npm benutzen", Family.RULE),
    ("以后用 pnpm", Family.RULE),
    ("不要用 npm，这个项目一律用 pnpm", Family.RULE),
    ("本番の DB は絶対に直接触らないこと", Family.RULE),
    ("no emojis in docs", Family.RULE),
    ("role checks belong in the policies, not in the handlers", Family.DECIDE),
    ("今後は pnpm を使おう", Family.RULE),
]

LEFT = [
    "should we always use pnpm?",
    "why does it never stop",
    "every row needs a checkbox so that I can delete several",
    "from now on it should show the modified date",
    "I prefer the old sound",
    "fix this everywhere",
    "error: no function clause matching in X",
    "To nie działa",
    "列表默认显示三个，可以再添加",
    "上传之后必须点两次才有反应",
    "必ず失敗するテストがある",
    "絶対パスになっているので直して",
    "if we go with a modal, we must never block the page",
    "it never works on Safari",
    "the page always shows the wrong day",
    "the tests should never have passed",
    "never mind",
    "no one reads these logs",
    "let's do phase 6 next",
    "let's use option 2",
    "you must be kidding",
    'delete the sentence "always use the latest version" there',
    "make the label bold",
    "fix them everywhere",
    "I like the idea",
    "만약 kafka로 가자고 하면 얼마나 걸릴까?",
]


@pytest.mark.parametrize(("sentence", "family"), KEPT)
def test_a_sentence_with_a_cue_is_strong_enough(sentence: str, family: Family) -> None:
    cue = cue_of(sentence)
    assert cue is not None
    assert (cue.family, cue.strength >= ENOUGH) == (family, True)


@pytest.mark.parametrize("sentence", LEFT)
def test_a_question_a_task_or_a_report_is_not_proposed(sentence: str) -> None:
    cue = cue_of(sentence)
    assert cue is None or cue.strength < ENOUGH


def test_a_reason_and_an_answer_make_a_cue_stronger() -> None:
    plain = cue_of("let's use sharp")
    reason = cue_of("let's use sharp since it is fast")
    answer = cue_of("let's use sharp", is_answer=True)
    assert plain
    assert reason
    assert answer
    assert plain.strength < ENOUGH <= min(reason.strength, answer.strength)


@pytest.mark.parametrize(
    "text",
    [
        "```\nalways check the timeout\n```",
        "```\nalways check the timeout",
        "> always check the timeout",
        "<system-reminder>always check the timeout</system-reminder>",
        "$ always check",
        "always check the timeout " * 30,
        "",
        "\ud800",
    ],
)
def test_what_the_user_did_not_write_has_no_sentences(text: str) -> None:
    assert not [sentence for sentence in sentences(text) if cue_of(sentence)]


def test_sentences_lose_their_fillers_and_marks_of_lists() -> None:
    text = "ok, great. also use pnpm\n- never npm!\n1. and that's it"
    assert list(sentences(text)) == ["use pnpm", "never npm!", "that's it"]


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("no, don't round there", "Don't round there"),
        ("again: pnpm", "Pnpm"),
        ("I told you: no apply", "No apply"),
        ("no new migrations", "No new migrations"),
        ("no, ", "No, "),
    ],
)
def test_a_memory_has_no_word_of_a_reply(sentence: str, text: str) -> None:
    assert without_reply(sentence) == text


def test_the_cause_is_the_sentence_of_the_agent_that_states_it() -> None:
    text = "Done, all green.\nIt turned out that the port was taken. I also added a test."
    assert cause_in(text) == "It turned out that the port was taken."
    assert cause_in("All tests pass.") == ""


@given(st.text(alphabet="aeiou nNot'.,:;!?->#`~\n\t0 never always because\ud83d한中", max_size=620))
def test_any_text_has_sentences_and_cues(text: str) -> None:
    for sentence in sentences(text):
        cue_of(sentence)
        without_reply(sentence)
    cause_in(text)


@pytest.mark.parametrize(
    "part", ["no, ", "again: ", "never ", "lass uns ", "you used ", "```~~~\n"]
)
def test_a_repeated_cue_takes_no_long_time(part: str) -> None:
    for sentence in sentences(part * (600 // len(part))):
        cue_of(sentence[:300])
    cue_of(part * (300 // len(part)))
    cause_in(part * 4_000)
