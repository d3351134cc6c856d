"""What the page on times and the help say about expressions holds."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mimo import when
from mimo.commands import all_commands
from tests.conftest import NOW

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "time.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`.+?`) \| .*? \| (\S.*?) → (.*?) \|$", PAGE, re.MULTILINE)


def shown(moment: datetime | None) -> str:
    if moment is None:
        return "…"
    if moment == NOW + timedelta(seconds=1):
        return "now"
    return f"{moment:%Y-%m-%d %H:%M}".removesuffix(" 00:00")


def test_the_page_has_many_rows():
    assert len(ROWS) > 60


@pytest.mark.parametrize(("said", "since", "until"), ROWS)
def test_every_expression_of_a_row_means_what_the_row_says(said, since, until):
    for expression in re.findall(r"`(.+?)`", said):
        found = when.interval(expression, now=NOW)
        assert (shown(found.since), shown(found.until)) == (since, until), expression


def test_every_expression_that_the_help_names_is_understood():
    helps = {
        param.arg.help
        for spec in all_commands().all()
        for param in spec.params
        if param.name in ("time_filter", "from_date", "to_date")
    }
    named = [text for told in helps for text in re.findall(r"`(.+?)`", told)]
    named += re.findall(r"`(.+?)`", when.EXAMPLES)

    assert len(named) > 10
    for expression in named:
        assert when.interval(expression, now=NOW).since is not None


def test_every_example_of_a_command_names_a_time_that_is_understood():
    examples = "\n".join(line for spec in all_commands().all() for line in spec.examples)
    named = re.findall(r"--when ['\"]?([^'\"\n]+)", examples + PAGE)

    assert len(named) > 4
    for expression in named:
        when.interval(expression.strip(), now=NOW)
