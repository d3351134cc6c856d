"""Plain command lines are read as click reads them, for every command."""

import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimo.cli import program
from mimo.cli.plain import led, options_of, params_of, read
from mimo.commands import all_commands
from mimo.commands.spec import Spec
from mimo.errors import MindError

COMMANDS = all_commands()

DASHED = ["- a b", "-n 5", "--x y", "-t a"]
"""Words with a space after a dash."""

WORDS = ["tea", "", "-", "--", "-1", "0.5", "a b", "recent", "by-topic", "--json", "-h", "{}"]
"""Words as arguments and values, some of which only click reads."""

Read = tuple[Spec, dict[str, Any], dict[str, Any]]


class Refused(Exception):
    """Click did not run a command."""


def by_click(words: list[str]) -> Read:
    """Returns the command, its arguments and its options, as click reads them."""
    calls: list[Read] = []

    def run(spec: Spec, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> int:
        calls.append((spec, dict(arguments), dict(options)))
        return 0

    program.run(COMMANDS, run, words)
    if not calls:
        raise Refused
    return calls[0]


def plainly(words: list[str]) -> Read | None:
    """Returns the same as read without click, or None if the line is not plain."""
    line = read(COMMANDS, words)
    return (line.spec, line.arguments(), dict(line.options)) if line else None


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """Returns a command line of a random command: mostly right, now and then not."""
    path = draw(st.sampled_from(sorted(COMMANDS.table)))
    spec = COMMANDS.at(path)
    words = draw(st.lists(st.sampled_from(["--json", "--no-color"]), max_size=1)) + path.split()
    for option in draw(st.lists(st.sampled_from(options_of(spec)), max_size=4)):
        name = draw(st.sampled_from([*option.names, *option.negated]))
        choices = option.param.shape.choices if option.param else ()
        value = draw(st.sampled_from([*choices[:1], *WORDS, *DASHED]))
        form = draw(st.sampled_from(["apart", "apart", "joined", "alone", "typo"]))
        if form == "typo":
            words.append(draw(st.sampled_from([name[:-1], f"{name}x", f"{name}{value}"])))
        elif form == "joined" and name.startswith("--"):
            words.append(f"{name}={value}")
        else:
            words += [name, value] if form == "apart" and not option.is_flag else [name]
    for _ in range(draw(st.integers(0, 2 + len(params_of(spec)) // 4))):
        words.insert(draw(st.integers(1, len(words))), draw(st.sampled_from([*WORDS, *DASHED])))
    return words


@pytest.fixture(autouse=True)
def piped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@settings(max_examples=60)
@given(words=lines())
def test_a_plain_line_is_read_as_click_reads_it(words: list[str]) -> None:
    results: list[Read | str | None] = []
    for reading in (plainly, by_click):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"piped")))
            try:
                results.append(reading(words))
            except MindError as error:
                results.append(error.message)
            except Refused:
                results.append("refused")
    assert results[0] in (None, results[1]), words


@pytest.mark.parametrize(
    "line",
    [
        "search tea",
        "--json search tea leaves -n 5 --tag a --tag=b",
        "search --json by-topic tea",
        "search -- --json",
        "ls --json",
        "pitfalls check --staged",
        "edges list --no-color",
        "add text --type decision --private",
        "save decision db postgres --reasoning -",
        "list --project . --no-pager",
        "memory search tea",
    ],
)
def test_usual_lines_are_plain(line: str) -> None:
    assert read(COMMANDS, line.split()) is not None


@pytest.mark.parametrize(
    "line",
    ["", "--json", "save", "--help", "list --help", "list -n5", "list --lim 5", "list -n", "liszt",
     "list --limit --json", "list --json=yes", "list --project /nowhere", "hook", "mcp", "r"],
)  # fmt: skip
def test_other_lines_are_left_to_click(line: str) -> None:
    assert read(COMMANDS, line.split()) is None


@pytest.mark.parametrize("text", ["- use yarn", "-a\n-b", "--use yarn, not npm", "-- no"])
def test_a_text_with_a_space_may_begin_with_a_dash(text: str) -> None:
    for words in (["add", text, "--private"], ["search", "-n", "3", text], ["recall", text]):
        assert plainly(words) == by_click(words)
        assert text in by_click(words)[1].values()


def test_an_option_joined_with_a_value_is_not_a_text() -> None:
    for words in (["add", "tea", "--title=Two words"], ["add", "tea", "-tgreen tea"]):
        assert by_click(words)[1]["content"] == "tea"
        assert plainly(words) in (None, by_click(words))


def test_a_word_that_is_a_command_leads_to_its_sub_commands() -> None:
    assert led(COMMANDS, "", ["search", "--json", "by-topic", "x"]) == (
        "search by-topic",
        ["--json", "x"],
    )
    assert led(COMMANDS, "", ["search", "recent", "work"]) == ("search", ["recent", "work"])
