"""Expressions in docs/time.md, in its rules, in helps and in examples mean what these say."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mimo import when
from mimo.call.table import all_commands
from tests.conftest import NOW

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs" / "time.md", ROOT / "docs" / "reference" / "rules" / "time.md")
PAGE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
ROWS = re.findall(r"^\| (`.+?`) \| .*? \| (\S.*?) → (.*?) \|$", PAGE, re.MULTILINE)


def shown(moment: datetime | None) -> str:
    if moment is None:
        return "…"
    if moment == NOW + timedelta(seconds=1):
        return "now"
    return f"{moment:%Y-%m-%d %H:%M}".removesuffix(" 00:00")


def test_page_has_many_rows():
    assert len(ROWS) > 60


@pytest.mark.parametrize(("expressions", "since", "until"), ROWS)
def test_expressions_of_a_row_name_the_rows_interval(expressions, since, until):
    for expression in re.findall(r"`(.+?)`", expressions):
        interval = when.interval(expression, now=NOW)
        assert (shown(interval.since), shown(interval.until)) == (since, until), expression


def test_expressions_in_option_help_are_understood():
    helps = {
        param.arg.help
        for spec in all_commands().all()
        for param in spec.params
        if param.name in ("time_filter", "from_date", "to_date")
    }
    expressions = [text for help in helps for text in re.findall(r"`(.+?)`", help)]
    expressions += re.findall(r"`(.+?)`", when.EXAMPLES)

    assert len(expressions) > 10
    for expression in expressions:
        assert when.interval(expression, now=NOW).since is not None


def test_times_in_command_examples_are_understood():
    examples = "\n".join(line for spec in all_commands().all() for line in spec.examples)
    expressions = re.findall(r"--when ['\"]?([^'\"\n]+)", examples + PAGE)

    assert len(expressions) > 4
    for expression in expressions:
        when.interval(expression.strip(), now=NOW)
