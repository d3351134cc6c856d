"""The help of the real commands, and the words that lead to them."""

import re

import pytest

from mimo.call.table import all_commands, synonyms
from mimo.cli.completing import completions
from mimo.cli.options import PROGRAMS, SUMMARIES
from tests import kit

COMMANDS = all_commands()
ROW = r"  ([a-z]+)(?:, [a-z]+)* +([A-Z].*)"


def run(*words: str) -> str:
    """Returns what a command line prints."""
    return kit.run(None, *words).out


def sections(text: str) -> dict[str, list[str]]:
    """Returns the lines of each section, below its heading."""
    parts = text.split("\n\n")
    matches = [re.fullmatch(r"([A-Z][^\n]*):\n(.*?)\n?", part, re.DOTALL) for part in parts]
    return {match[1]: match[2].splitlines() for match in matches if match and match[1] != "Options"}


def commands(text: str) -> list[str]:
    """Returns the first words of the rows of all sections."""
    rows = [line for lines in sections(text).values() for line in lines]
    return [match[1] for match in (re.match(ROW, row) for row in rows) if match]


def test_the_first_page_has_twenty_commands_and_names_the_rest() -> None:
    page = run("help")

    assert len(commands(page)) == 20
    assert page.endswith("`mind help --all` all commands.\n")
    assert len(page.splitlines()) <= 40
    assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize("line", ["", "--help", "-h", "--no-color --help"])
def test_the_program_without_a_command_shows_the_first_page(line: str) -> None:
    assert run(*line.split()) == run("help")


@pytest.mark.parametrize("line", ["help -a", "--help --all", "--all -h"])
def test_all_commands_are_listed_on_request(line: str) -> None:
    assert run(*line.split()) == run("help", "--all")


def test_a_newcomer_finds_all_commands_in_a_few_sections() -> None:
    titles = sections(run("help", "--all"))

    assert list(titles) == [
        "Start",
        "Remember",
        "Find",
        "Share",
        "Trust and privacy",
        "Automate",
        "Upkeep",
        "Admin",
    ]
    assert max(len(lines) for lines in titles.values()) <= 14


def test_every_command_is_listed_once() -> None:
    listed = commands(run("help", "--all"))

    assert sorted(listed) == sorted({*COMMANDS.below(""), *PROGRAMS})
    assert set(commands(run("help"))) < set(listed)


def test_a_hidden_command_still_explains_itself() -> None:
    assert "decay-check" in run("help", "memory")
    assert "Store a fact" in run("memory", "store", "--help")
    assert "get" not in commands(run("help", "context"))


def test_an_alias_is_not_another_command() -> None:
    assert set(COMMANDS.aliases).isdisjoint({*COMMANDS.below(""), *PROGRAMS})
    assert set(COMMANDS.aliases.values()) <= set(COMMANDS.modules)


def test_every_word_of_other_programs_names_an_existing_command() -> None:
    names = {*COMMANDS.below(""), *COMMANDS.aliases, *PROGRAMS}
    assert names.isdisjoint(synonyms())
    for word, lines in synonyms().items():
        for line in lines:
            first, _, rest = line.partition(" ")
            second = rest.partition(" ")[0]
            assert first in names | {"--version"}, word
            assert not second or second[0] == "-" or second in COMMANDS.below(first), word


def test_completion_offers_aliases_once_they_are_begun() -> None:
    def offered(*words: str) -> list[str]:
        return [line.partition("\t")[0] for line in completions(COMMANDS, words)]

    assert {"memory", "pitfalls"} < {*offered("")}
    assert "edges" not in offered("")
    assert offered("pit") == ["pitfalls"]
    assert offered("edges", "st") == ["starter"]
    assert offered("mem") == ["memory"]
    assert offered("pitfalls", "st") == ["starter"]
    assert offered("memory", "sto") == ["store"]
    assert offered("help", "und") == ["undo"]
    assert offered("help", "search", "by-t") == ["by-topic"]
    assert "--all\tList every command" in completions(COMMANDS, ["help", "-"])
    assert completions(COMMANDS, ["edg"]) == ["edges\tthe same as `pitfalls`"]


def test_every_summary_is_a_phrase_on_one_line() -> None:
    for path in COMMANDS.modules:
        summary = COMMANDS.at(path).summary
        assert re.fullmatch(r"[A-Z].{0,58}[^.]", summary), path
    texts = [
        *COMMANDS.groups.values(),
        *SUMMARIES.values(),
    ]
    assert max(map(len, texts)) <= 60


def test_no_help_shows_an_empty_default_or_a_line_wider_than_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for path in COMMANDS.modules:
        text = run(*path.split(), "--help")
        lines = text.partition("Examples:")[0].splitlines()
        assert [line for line in lines if len(line) > 80] == [], path
        assert "(default )" not in text, path
