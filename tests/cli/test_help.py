"""The text of `mind --help` for the real commands."""

import re

import pytest

from mimo.cli.main import main


@pytest.fixture
def sections(capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """The lines of each section, below its heading."""
    assert main(["--help"]) == 0
    parts = capsys.readouterr().out.split("\n\n")
    matches = [re.fullmatch(r"([A-Z][^\n]*):\n(.*?)\n?", part, re.DOTALL) for part in parts]
    return {match[1]: match[2].splitlines() for match in matches if match and match[1] != "Options"}


def test_a_newcomer_finds_the_commands_in_a_few_sections(sections: dict[str, list[str]]) -> None:
    assert list(sections) == [
        "Start",
        "Remember",
        "Find",
        "Share",
        "Trust and privacy",
        "Values and procedures",
        "Upkeep",
        "Agents",
    ]
    assert max(len(lines) for lines in sections.values()) <= 10


def test_every_summary_fits_on_one_line(sections: dict[str, list[str]]) -> None:
    lines = [line for rows in sections.values() for line in rows]

    assert [line for line in lines if not re.match(r"  [a-z]+  +[A-Z]", line)] == []
    assert [line for line in lines if line.endswith("...")] == []
