"""The reading of command lines, for every command."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimo.call.table import all_commands
from mimo.cli.options import Line, led, options_of, params_of
from mimo.cli.program import read
from mimo.errors import Invalid

COMMANDS = all_commands()
TEXTS = ["tea", "", "-", "0.5", "a b", "a=b", "recent", "--json", "-1", "- a b", "{}"]


def read_line(words: list[str]) -> Line:
    line = read(COMMANDS, words)
    assert isinstance(line, Line)
    return line


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, list[str], dict[str, Any]]:
    """Returns a command, options of it as they are typed, and their values."""
    path = draw(st.sampled_from(sorted(COMMANDS.modules)))
    declared = st.sampled_from(options_of(COMMANDS.at(path)))
    options = draw(st.lists(declared, unique_by=lambda option: option.key))
    words: list[str] = []
    values: dict[str, Any] = {}
    for option in options:
        name = draw(st.sampled_from([*option.names, *option.negated]))
        if option.is_flag:
            words.append(name)
            values[option.key] = name not in option.negated
            continue
        texts = draw(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=1 + option.is_repeated))
        for text in texts:
            is_joined = draw(st.booleans())
            words += [f"{name}={text}"] if is_joined and name[:2] == "--" else [name, text]
        values[option.key] = tuple(texts) if option.is_repeated else texts[0]
    return path, words, values


@settings(max_examples=60)
@given(line=spelled())
def test_options_are_read_with_the_values_that_were_typed(
    line: tuple[str, list[str], dict[str, Any]],
) -> None:
    path, words, values = line
    texts = ["tea" for param in params_of(COMMANDS.at(path)) if param.positional]
    result = read_line([*path.split(), *words, "--", *texts])

    assert result.spec.path == path
    assert {**result.values, **result.options}.items() >= values.items()


@pytest.mark.parametrize("text", ["- use yarn", "-a\n-b", "--use yarn, not npm", "-- no"])
def test_a_text_with_a_space_may_begin_with_a_dash(text: str) -> None:
    for words in (["add", text, "--private"], ["search", "-n", "3", text], ["recall", text]):
        assert text in read_line(words).arguments().values()


def test_an_option_joined_with_a_value_is_not_a_text() -> None:
    for words in (["add", "tea", "--title=Two words"], ["add", "tea", "-tgreen tea"]):
        assert read_line(words).arguments()["content"] == "tea"


def test_a_word_that_is_a_command_leads_to_its_sub_commands() -> None:
    assert led(COMMANDS, "", ["search", "--json", "by-topic", "x"]) == (
        "search by-topic",
        ["--json", "x"],
    )
    assert led(COMMANDS, "", ["search", "recent", "work"]) == ("search", ["recent", "work"])


@pytest.mark.parametrize(
    "line", ["", "--json", "help", "help add", "--version", "list -h", "hook", "mcp", "mcp --http"]
)
def test_reading_prints_and_runs_nothing(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert not isinstance(read(COMMANDS, line.split()), Line)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "line", ["list -n", "list --json=yes", "liszt", "-x", "mcp --tokens", "value  put a b"]
)
def test_a_wrong_line_is_an_error_of_ours(line: str) -> None:
    with pytest.raises(Invalid):
        read(COMMANDS, line.split(" "))
