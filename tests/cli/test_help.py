"""The help of the real commands, and the words that lead to them."""

import re

import pytest

from mimo.call.table import SYNONYMS, all_commands
from mimo.cli.completing import completions
from mimo.cli.main import main
from mimo.cli.options import PROGRAMS, SUMMARIES

COMMANDS = all_commands()
ROW = r"  ([a-z]+)(?:, [a-z]+)* +([A-Z].*)"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> "Run":
    """Runs a command line."""
    return Run(capsys)


class Run:
    """Runs a command line; returns its exit status, or its output."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: str) -> str:
        assert main(words) == 0
        return self.capsys.readouterr().out

    def error(self, *words: str) -> list[str]:
        assert main(words) == 2
        return self.capsys.readouterr().err.splitlines()


def sections(text: str) -> dict[str, list[str]]:
    """Returns the lines of each section, below its heading."""
    parts = text.split("\n\n")
    matches = [re.fullmatch(r"([A-Z][^\n]*):\n(.*?)\n?", part, re.DOTALL) for part in parts]
    return {match[1]: match[2].splitlines() for match in matches if match and match[1] != "Options"}


def commands(text: str) -> list[str]:
    """Returns the first words of the rows of all sections."""
    rows = [line for lines in sections(text).values() for line in lines]
    return [match[1] for match in (re.match(ROW, row) for row in rows) if match]


def test_the_first_page_has_twenty_commands_and_names_the_rest(run: Run) -> None:
    page = run("help")

    assert len(commands(page)) == 20
    assert page.endswith("`mind help --all` all commands.\n")
    assert len(page.splitlines()) <= 40
    assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize("line", ["", "--help", "-h", "--no-color --help"])
def test_the_program_without_a_command_shows_the_first_page(run: Run, line: str) -> None:
    assert run(*line.split()) == run("help")


@pytest.mark.parametrize("line", ["help -a", "--help --all", "--all -h"])
def test_all_commands_are_listed_on_request(run: Run, line: str) -> None:
    assert run(*line.split()) == run("help", "--all")


def test_a_newcomer_finds_all_commands_in_a_few_sections(run: Run) -> None:
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


def test_every_command_is_listed_once(run: Run) -> None:
    listed = commands(run("help", "--all"))

    assert sorted(listed) == sorted({*COMMANDS.below(""), *PROGRAMS})
    assert set(commands(run("help"))) < set(listed)


def test_a_hidden_command_still_explains_itself(run: Run) -> None:
    assert "decay-check" in run("help", "memory")
    assert "Store a fact" in run("memory", "store", "--help")
    assert "get" not in commands(run("help", "context"))


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["rm"], "Usage: mind rm [OPTIONS] ID"),
        (["edges"], "Usage: mind pitfalls [OPTIONS]"),
        (["edges", "add"], "Usage: mind pitfalls add [OPTIONS]"),
        (["search", "by-topic"], "Usage: mind search by-topic [OPTIONS]"),
        (["value"], "Usage: mind value [OPTIONS]"),
        (["mcp"], "Usage: mind mcp [OPTIONS]"),
        (["help"], "Usage: mind help [OPTIONS]"),
    ],
)
def test_help_explains_a_command(run: Run, words: list[str], start: str) -> None:
    assert run("help", *words).startswith(start)


def test_an_argument_without_which_another_command_runs_is_optional(run: Run) -> None:
    assert run("procedure", "status", "--help").startswith(
        "Usage: mind procedure status [OPTIONS] [EXECUTION-ID]\n"
    )


def test_no_help_shows_an_empty_default(run: Run) -> None:
    helps = [run(*path.split(), "--help") for path in COMMANDS.modules]

    assert not [text for text in helps if "(default )" in text]


def test_help_of_an_unknown_command_is_an_error(run: Run) -> None:
    message, hint = run.error("help", "sarch")

    assert message.startswith("error: `sarch` is not a command of `mind`")
    assert hint == "hint: did you mean `mind search`?"


@pytest.mark.parametrize("words", [["review", "nosuch"], ["value", "get", "nosuch"], ["mcp", "x"]])
def test_help_of_more_words_than_a_command_is_an_error(run: Run, words: list[str]) -> None:
    message, _ = run.error("help", *words)

    assert message == f"error: `{words[-1]}` is not a command of `mind {' '.join(words[:-1])}`"


# Other words for a command.


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("ls --help", "mind list"),
        ("find --help", "mind search"),
        ("--no-color cat --help", "mind show"),
        ("edges --help", "mind pitfalls"),
        ("edges list --help", "mind pitfalls list"),
        ("find by-topic --help", "mind search by-topic"),
    ],
)
def test_an_alias_runs_the_command_and_its_sub_commands(run: Run, line: str, path: str) -> None:
    assert run(*line.split()).startswith(f"Usage: {path} [")


def test_an_alias_is_not_another_command() -> None:
    assert set(COMMANDS.aliases).isdisjoint({*COMMANDS.below(""), *PROGRAMS})
    assert set(COMMANDS.aliases.values()) <= set(COMMANDS.modules)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("delete k3v7mq", "`mind rm`"),
        ("remove k3v7mq", "`mind rm`"),
        ("forget it", "`mind rm` or `mind rm --purge`"),
        ("grep tea", "`mind search`"),
        ("get k3v7mq", "`mind show` or `mind value get`"),
        ("note tea", "`mind add`"),
        ("remember tea", "`mind add`"),
        ("new tea", "`mind add` or `mind procedure new`"),
        ("history", "`mind log` or `mind search by-topic`"),
        ("info", "`mind status` or `mind show`"),
        ("stats", "`mind status` or `mind metrics`"),
        ("commit", "`mind sync`"),
        ("gotchas", "`mind pitfalls`"),
        ("value delete a b", "`mind value rm`"),
        ("value set a b", "`mind value put`"),
        ("procedure ls", "`mind procedure list`"),
        ("procedure stop x", "`mind procedure cancel`"),
    ],
)
def test_a_word_of_other_programs_is_answered_with_the_command(
    run: Run, line: str, hint: str
) -> None:
    assert run.error(*line.split())[1] == f"hint: did you mean {hint}?"


def test_every_word_of_other_programs_names_an_existing_command() -> None:
    names = {*COMMANDS.below(""), *COMMANDS.aliases, *PROGRAMS}
    assert names.isdisjoint(SYNONYMS)
    for word, lines in SYNONYMS.items():
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


def test_no_line_of_the_help_is_wider_than_a_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for path in COMMANDS.modules:
        lines = run(*path.split(), "--help").partition("Examples:")[0].splitlines()
        assert [line for line in lines if len(line) > 80] == [], path
