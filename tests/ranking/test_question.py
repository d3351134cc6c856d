"""The reading of a query."""

from datetime import UTC, date, datetime

import pytest

from mimo.ranking import understand
from mimo.ranking.dates import Span


def test_a_query_is_understood_once():
    asked = datetime(2026, 11, 20, 15, tzinfo=UTC)
    query = understand("When did the deploy fail yesterday?", asked)

    assert query.full == ("when", "did", "deploi", "fail", "yesterdai")
    assert query.content == ("deploi", "fail", "yesterdai")
    assert query.windows == (Span(start=date(2026, 11, 19), end=date(2026, 11, 19)),)
    assert query.asked == asked
    assert query.asks_when


@pytest.mark.parametrize(
    "text",
    ["When was it", "how long did it take", "On what date", "which year", "Since when is it"],
)
def test_such_a_question_asks_for_a_time(text):
    assert understand(text).asks_when


@pytest.mark.parametrize(
    "text", ["What happens when it fails", "whenever", "how", "which database"]
)
def test_such_a_question_does_not(text):
    assert not understand(text).asks_when
