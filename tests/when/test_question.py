"""The time that a question names, and the way to answer it."""

import tomllib
from datetime import timedelta
from pathlib import Path
from unicodedata import normalize
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.when import Interval
from mimo.when.question import Way, named_time, understood
from tests.conftest import NOW

SUBJECTS = Path(__file__).parents[1] / "text" / "subjects.toml"
PAIRS = tomllib.loads(SUBJECTS.read_text(encoding="utf-8"))["pairs"]


def shown(span: Interval) -> str:
    """Returns the first and the last day of a span."""
    first = f"{span.since:%Y-%m-%d}" if span.since else ""
    last = f"{span.until - timedelta(microseconds=1):%Y-%m-%d}" if span.until else ""
    if not first:
        return f"until {last}"
    return f"since {first}" if not last else first if first == last else f"{first} to {last}"


@pytest.mark.parametrize(
    ("question", "expression", "span"),
    [
        ("what did we do yesterday?", "yesterday", "2026-11-19"),
        ("yesterday's deploy", "yesterday's", "2026-11-19"),
        ("what happened last week with the deploys", "last week", "2026-11-09 to 2026-11-15"),
        ("what did we do 3 days ago", "3 days ago", "2026-11-17"),
        ("two weeks ago we chose a cache", "two weeks ago", "2026-11-03 to 2026-11-09"),
        ("what did we decide on November 18?", "on November 18", "2026-11-18"),
        ("the outage of 2026-11-18", "of 2026-11-18", "2026-11-18"),
        ("in october, what broke", "in october", "2026-10-01 to 2026-10-31"),
        ("what was done in 2025", "in 2025", "2025-01-01 to 2025-12-31"),
        ("what changed since last friday", "since last friday", "2026-11-13 to 2026-11-20"),
        ("roughly ten months ago", "ten months ago", "2026-01-14 to 2026-02-03"),
        ("where did we stop a few days ago", "a few days ago", "2026-11-12 to 2026-11-18"),
        ("what did we learn this morning", "this morning", "2026-11-20"),
        (
            "between monday and wednesday",
            "between monday and wednesday",
            "2026-11-16 to 2026-11-18",
        ),
        (
            "what broke from 9am to 11am on friday last week",
            "from 9am to 11am on friday last week",
            "2026-11-13",
        ),
        ("what happened yesterday from 9am to 11am", "yesterday from 9am to 11am", "2026-11-19"),
        ("yesterday evening at 7pm", "yesterday evening at 7pm", "2026-11-19"),
        ("friday 13 november", "friday 13 november", "2026-11-13"),
        ("2026-11-13 friday", "2026-11-13 friday", "2026-11-13"),
        ("friday november 13 2026", "friday november 13 2026", "2026-11-13"),
        ("october 6 tuesday", "october 6 tuesday", "2026-10-06"),
        ("friday 2026-11-13", "friday 2026-11-13", "2026-11-13"),
        ("on Sunday 15 November", "on Sunday 15 November", "2026-11-15"),
        ("Friday, Nov 13", "Friday, Nov 13", "2026-11-13"),
        ("what broke on friday november 13", "on friday november 13", "2026-11-13"),
        ("last friday, november 13", "last friday, november 13", "2026-11-13"),
        ("what did we do two days before yesterday", "two days before yesterday", "2026-11-17"),
        (
            "what did we do two days after november 10",
            "two days after november 10",
            "2026-11-12",
        ),
        ("what broke two weeks ago monday", "two weeks ago monday", "2026-11-02"),
        ("what broke monday 3pm two weeks ago", "monday 3pm two weeks ago", "2026-11-02"),
        ("what happened in early november", "in early november", "2026-11-01 to 2026-11-10"),
        ("what did we do a fortnight ago", "a fortnight ago", "2026-11-03 to 2026-11-09"),
        ("friday 3pm two weeks ago", "friday 3pm two weeks ago", "2026-11-06"),
        ("금요일 11월 13일", "금요일 11월 13일", "2026-11-13"),
        ("decided no later than november 10", "no later than november 10", "until 2026-11-10"),
        ("what did we do more than two weeks ago", "more than two weeks ago", "until 2026-11-05"),
        ("less than 3 days ago", "less than 3 days ago", "2026-11-17 to 2026-11-20"),
        ("what broke since two weeks ago", "since two weeks ago", "2026-11-06 to 2026-11-20"),
        ("what did we do before yesterday", "before yesterday", "until 2026-11-18"),
        ("what happened before last week", "before last week", "until 2026-11-08"),
        ("what happened since last month", "since last month", "2026-10-01 to 2026-11-20"),
        (
            "between 3 weeks ago and 2 weeks ago",
            "between 3 weeks ago and 2 weeks ago",
            "2026-10-30 to 2026-11-06",
        ),
        ("on or before november 10", "on or before november 10", "until 2026-11-10"),
        ("the tests and before october", "before october", "until 2026-09-30"),
        ("two to three weeks ago", "two to three weeks ago", "2026-10-30 to 2026-11-06"),
        ("what did we do a day or two ago", "a day or two ago", "2026-11-18 to 2026-11-19"),
        ("a version from two weeks ago", "from two weeks ago", "2026-11-03 to 2026-11-09"),
        (
            "no power over the weekend, and since then",
            "over the weekend",
            "2026-11-14 to 2026-11-15",
        ),
        ("yesterday and today", "yesterday and today", "2026-11-19 to 2026-11-20"),
        ("what did we do yesterday to today", "yesterday to today", "2026-11-19 to 2026-11-20"),
        ("on tuesday and wednesday", "on tuesday and wednesday", "2026-11-17 to 2026-11-18"),
        ("the first week of november", "the first week of november", "2026-11-01 to 2026-11-07"),
        ("since the start of november", "since the start of november", "2026-11-01 to 2026-11-20"),
        ("what did we work on on tuesday", "on tuesday", "2026-11-17"),
        ("what did we work on in october", "in october", "2026-10-01 to 2026-10-31"),
        ("what came up last month", "last month", "2026-10-01 to 2026-10-31"),
        ("in the past week", "in the past week", "2026-11-13 to 2026-11-20"),
        ("what came up last week", "last week", "2026-11-09 to 2026-11-15"),
        ("what did we do yesterday at the office", "yesterday", "2026-11-19"),
        ("what did we do yesterday to fix the build", "yesterday", "2026-11-19"),
        ("what happened to yesterday's deploy", "yesterday's", "2026-11-19"),
        ("the tests and yesterday's deploy", "yesterday's", "2026-11-19"),
        ("it worked, but yesterday it failed", "yesterday", "2026-11-19"),
        ("Why not? Yesterday we chose redis", "Yesterday", "2026-11-19"),
        ("earlier this week", "this week", "2026-11-16 to 2026-11-20"),
        ("about three weeks ago", "three weeks ago", "2026-10-27 to 2026-11-02"),
        ("어제랑 오늘 뭐 했지", "어제랑 오늘", "2026-11-19 to 2026-11-20"),
        ("어제 이상한 오류가 났지", "어제", "2026-11-19"),
        ("어제", "어제", "2026-11-19"),
        ("어제는 뭐 했지", "어제는", "2026-11-19"),
        ("지난주에 배포 어떻게 됐지", "지난주에", "2026-11-09 to 2026-11-15"),
        ("3일 전에 뭐 했어?", "3일 전에", "2026-11-17"),
        ("11월 18일에 무슨 일이 있었어?", "11월 18일에", "2026-11-18"),
        ("월요일에 결정한 것", "월요일에", "2026-11-16"),
    ],
)
def test_a_time_is_read_from_a_question(question, expression, span):
    time = named_time(question, NOW)

    assert time is not None
    assert (time.expression, shown(time.spans[0])) == (expression, span)
    assert expression not in time.rest


@pytest.mark.parametrize(
    "question",
    [
        "the cache lives 24 hours",
        "a timeout of 5 minutes",
        "a last minute change",
        "what may happen",
        "march through the list",
        "python 3.11.12 upgrade",
        "version 2024.1",
        "id 20261118",
        "port 2025",
        "last time we talked",
        "the tests sat idle",
        "the sun icon",
        "what one may pick",
        "trouble on a weekend",
        "q3 goals",
        "지난번에 뭐 했지",
        "이번 배포",
        "what did we do 1950 years ago",
        "what broke on thursday november 13",
        "what broke on thursday 2026-11-13",
        "Mon, Nov 13",
        "since friday 2026-11-13",
        "what broke 9am october",
        "what happens this evening",  # It has not begun.
        # Words beside a time change it.
        "what did we do except yesterday",
        "what did we do other than yesterday",
        "what did we do apart from yesterday",
        "what did we do instead of yesterday",
        "what did we do not yesterday but the day before",
        "what did we do last week but not yesterday",
        "what did we do last week except on friday",
        "what did we do not since friday",
        "what did we decide until after november 10",
        "what was decided as of november 1",
        "what was decided as early as october",
        "what did we do within two weeks of november 10",
        "what did we do shortly after november 10",
        "what did we do thirty five days ago",
        "what broke in a november",
        "what did we do any day but yesterday",
        "what did we do 2 weeks ago or more",
        "what did we do < 2 weeks ago",
        "what did we do in the summer of 2025",
        "what did we do yesterday around noon",
        "what did we do yesterday by noon",
        "what did we do in november minus november 10",
        "what did we do, including yesterday",
        "what did we do two or three or four weeks ago",
        "what did we do more than about two weeks ago",
        "what did we do at the end of october",
        "what did we do in the rest of october",
        "what did we do late last week",
        "what did we do on monday and wednesday",
        "what did we do monday, tuesday and wednesday",
        "what did we do yesterday and on monday",
        "what did we do yesterday or earlier",
        "what did we do yesterday before noon",
        "what did we do yesterday at 9 o'clock",
        "what did we do yesterday until the release",
        "what did we do between the release and yesterday",
        "what did we do from the start to yesterday",
        "what did we do today and tomorrow",
        "what did we do in november 31",
        "what did we do on friday 14",
        "what did we do october before last",
        "what did we do after today",
        "what did we do from today to yesterday",
        "what happens next friday",
        "never deploy on a friday",
        "what do we do every monday",
        "compare this week with last week",
        "what did we go through last week",
        "어제 말고 뭐 했지",
        "지난주 빼고 뭐 했지",
        "11월 초에 뭐 했지",
        "11월 첫째 주에 뭐 했지",
        "어제 및 월요일에 뭐 했지",
    ],
)
def test_a_word_with_another_meaning_or_with_words_that_change_it_is_no_time(question):
    assert named_time(question, NOW) is None


def test_a_weekday_beside_the_last_day_of_the_calendar_is_compared_in_no_zone():
    assert named_time("december 31 9999 friday", NOW.astimezone(ZoneInfo("Asia/Seoul"))) is None


@pytest.mark.parametrize(
    ("question", "spans"),
    [
        (
            "what did we do 3 days ago",
            ["2026-11-17", "2026-11-16 to 2026-11-18", "2026-11-17 to 2026-11-20"],
        ),
        ("what was known before october", ["until 2026-09-30"]),
        (
            "what did we do last week",
            ["2026-11-09 to 2026-11-15", "2026-11-13 to 2026-11-20", "2026-11-09 to 2026-11-20"],
        ),
        (
            "지난달",
            ["2026-10-01 to 2026-10-31", "2026-10-21 to 2026-11-20", "2026-10-01 to 2026-11-20"],
        ),
    ],
)
def test_a_vague_time_has_wider_spans(question, spans):
    time = named_time(question, NOW)

    assert time is not None
    assert [*map(shown, time.spans)] == spans


@pytest.mark.parametrize(
    ("question", "is_relative", "is_present"),
    [
        ("on November 18", False, False),
        ("in 2025", False, False),
        ("11월 18일", False, False),
        ("on monday", False, False),
        ("last monday", True, False),
        ("last week", True, False),
        ("today's plan", True, True),
        ("오늘", True, True),
    ],
)
def test_dates_and_the_present_are_marked(question, is_relative, is_present):
    time = named_time(question, NOW)

    assert time is not None
    assert (time.is_relative, time.is_present) == (is_relative, is_present)


@given(st.text(alphabet="last week yesterday 지난주어제 전일월 01239-/:., ago", max_size=80))
def test_any_question_is_read(question):
    named_time(question, NOW)


@pytest.mark.parametrize("question", ["어제 뭐 했지", "지난주에 뭐 했지", "어디까지 했지?"])
def test_a_decomposed_question_is_understood_alike(question):
    assert understood(normalize("NFD", question), NOW) == understood(question, NOW)
    assert named_time(normalize("NFD", question), NOW) == named_time(question, NOW)


@pytest.mark.parametrize("question", [pair[0] for pair in PAIRS])
@pytest.mark.req("001-24")
def test_a_question_with_a_subject_is_searched_for(question):
    asking = understood(question, NOW)

    assert (asking.way, asking.otherwise) == (Way.SEARCH, None)


def test_a_question_about_the_latest_work_is_answered_by_a_list():
    lists = {question: understood(question, NOW) for _, question in PAIRS}

    assert [
        question
        for question, asking in lists.items()
        if {asking.way, asking.otherwise}.isdisjoint((Way.LATEST, Way.SPAN))
    ] == ["what's the stage we're at"]


@pytest.mark.parametrize(
    ("question", "way", "otherwise"),
    [
        ("what's blocking us?", Way.OPEN, None),
        ("what is left to do today", Way.OPEN, None),
        ("남은 작업", Way.OPEN, None),
        ("todo", Way.SEARCH, Way.OPEN),
        ("open issues from last week", Way.SEARCH, None),
        ("what was left last week", Way.SPAN, None),
        ("which decisions are still open", Way.LATEST, None),
    ],
)
def test_a_question_about_open_work_is_answered_by_a_list(question, way, otherwise):
    asking = understood(question, NOW)

    assert (asking.way, asking.otherwise) == (way, otherwise)
