"""The command line made from sample commands: words, options, errors and output."""

import io
import json
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import click
import pytest

from mimo.call import Surface
from mimo.call.spec import Arg, Effect, Json, Tool, command, spec_of
from mimo.call.table import CommandTable
from mimo.cli.completing import completions
from mimo.cli.main import main
from mimo.config import Config
from mimo.data import disk
from mimo.errors import Invalid, NoProject, NotFound
from mimo.project.projects import Project
from tests.conftest import Unguarded


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The arguments of a sample command."""

    command: str
    project: str | None = None
    given: dict[str, Json]


class FakeMind(Unguarded):
    """As much of a Mind as commands are handed."""

    has_project = True
    config = Config(values={}, origins={})

    def __init__(self, named: Path | None = None) -> None:
        super().__init__()
        self.named = str(named) if named else None

    def close(self) -> None:
        """A real one would close its index."""

    @property
    def project(self) -> object:
        if not self.has_project:
            raise NoProject("there is no project here", hint="run `mind init` first")
        return Project(root=Path("/"), name="x")


def seen(name: str, call: Any, **given: Any) -> Seen:
    return Seen(command=name, project=call.mind.named, given=given)


@command("mind_find", cli="find", effect=Effect.READ, toolset="search", examples=("mind find tea",))
def find(
    call: Any,
    query: Annotated[str, Arg("Words to look for", words=True)],
    *,
    limit: Annotated[int, Arg("Most to show", short="n", ge=1, le=100)] = 10,
    min_score: Annotated[float | None, Arg("Lowest score", ge=0, le=1)] = None,
    time_filter: Annotated[str | None, Arg("From when", alias="when")] = None,
    tags: Annotated[tuple[str, ...], Arg("Tags", short="t")] = (),
    colour: Annotated[Colour | None, Arg("Colour")] = None,
    deep: Annotated[bool, Arg("Look everywhere")] = False,
    fresh: Annotated[bool, Arg("Refresh first")] = True,
    meta: Annotated[Json | None, Arg("Anything")] = None,
    from_: Annotated[str | None, Arg("Who", wire="from")] = None,
) -> Seen:
    """Find memories by words

    Best first.
    """
    return seen(
        "find",
        call,
        query=query,
        limit=limit,
        min_score=min_score,
        time_filter=time_filter,
        tags=list(tags),
        colour=colour,
        deep=deep,
        fresh=fresh,
        meta=meta,
        from_=from_,
    )


@command("find/by_topic", effect=Effect.READ, toolset="search")
def by_topic(call: Any, topic: Annotated[str, Arg("Topic")]) -> Seen:
    """Find memories by topic"""
    return seen("find by-topic", call, topic=topic)


@command("find/recent", effect=Effect.READ, toolset="search")
def recent(call: Any, *, limit: Annotated[int, Arg("Most")] = 5) -> Seen:
    """Find recent memories"""
    return seen("find recent", call, limit=limit)


@command("mind_note", cli="note", effect=Effect.WRITE, toolset="extra")
def note(
    call: Any,
    content: Annotated[str, Arg("Text", words=True, stdin=True)],
    *,
    project: Annotated[bool, Arg("For this project only")] = False,
) -> Seen:
    """Note something down"""
    return seen("note", call, content=content, mine=project)


@command("getMemory", cli="value get", effect=Effect.READ, toolset="values")
def value(
    call: Any, namespace: Annotated[str, Arg("Where")], key: Annotated[str, Arg("Which")]
) -> Seen:
    """Get a value"""
    return seen("value", call, namespace=namespace, key=key)


@command("mind_files", cli="files", effect=Effect.READ, toolset="extra", needs_project=False)
def files(call: Any, paths: Annotated[tuple[str, ...], Arg("Files", complete="path")]) -> Seen:
    """Look at files"""
    return seen("files", call, paths=list(paths))


BOX = Tool(name="box", description="Everything about boxes")


@command(BOX, operation="open_up", effect=Effect.READ, toolset="extra")
def open_up(call: Any, *, width: Annotated[int, Arg("Width")] = 1) -> Seen:
    """Open a box"""
    return seen("box open-up", call, width=width)


@command("mind_fail", cli="fail", effect=Effect.READ, toolset="extra", errors=(NotFound,))
def fail(call: Any, how: Annotated[str, Arg("How")]) -> Seen:
    """Fail in some way"""
    if how == "known":
        raise NotFound("no memory `x\x1b[31m`", hint="try `y`", details={"id": "x"})
    if how == "interrupt":
        raise KeyboardInterrupt
    raise RuntimeError("the secret text of a memory")


SAMPLES = (find, by_topic, recent, note, value, files, open_up, fail)


def registry() -> CommandTable:
    specs = [spec for function in SAMPLES if (spec := spec_of(function))]
    return CommandTable(
        {"Find": {spec.path: "sample" for spec in specs}},
        groups={"value": "Values by their keys", "box": "Boxes"},
        lone={"find recent"},
        load=lambda _: specs,
    )


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs one command line; returns exit status, stdout and stderr."""
    monkeypatch.setattr(sys, "stdin", terminal_input())

    def ran(*argv: str, open: Any = FakeMind) -> tuple[int, str, str]:
        status = main(argv, commands=registry(), open=open)
        out, err = capsys.readouterr()
        return status, out, err

    return ran


def terminal_input() -> io.TextIOWrapper:
    stream = io.TextIOWrapper(io.BytesIO(b""))
    stream.isatty = lambda: True  # type: ignore[method-assign]
    return stream


@pytest.fixture
def ask(run: Any) -> Any:
    """Runs one command line and returns what the command was called with."""

    def asked(*argv: str) -> dict[str, Any]:
        status, out, err = run("--json", *argv)
        assert (status, err) == (0, "")
        answer: dict[str, Any] = json.loads(out)
        return answer

    return asked


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def test_words_are_joined_and_options_have_the_defaults_of_the_declaration(ask: Any) -> None:
    assert ask("find", "auth", "token")["given"] == {
        "query": "auth token",
        "limit": 10,
        "min_score": None,
        "time_filter": None,
        "tags": [],
        "colour": None,
        "deep": False,
        "fresh": True,
        "meta": None,
        "from_": None,
    }


def test_options_take_their_short_and_other_names_anywhere_among_the_words(ask: Any) -> None:
    argv = "find a -n 3 b --min-score 0.5 --when today --tag x -t y --colour red --deep --no-fresh"
    given = ask(*argv.split(), "--from", "me", "--meta", '{"a": [1]}')["given"]

    assert given == {
        "query": "a b",
        "limit": 3,
        "min_score": 0.5,
        "time_filter": "today",
        "tags": ["x", "y"],
        "colour": "red",
        "deep": True,
        "fresh": False,
        "meta": {"a": [1]},
        "from_": "me",
    }


def test_a_json_argument_that_does_not_parse_is_text(ask: Any) -> None:
    assert ask("find", "a", "--meta", "{not json")["given"]["meta"] == "{not json"


DIGITS = "7" * 4301


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DIGITS, "`777777777777…` has 4,301 digits, and at most 4,300 fit"),
        (f"-{DIGITS}", "`-77777777777…` has 4,301 digits"),
        (f'{{"list": [{DIGITS}]}}', "`777777777777…` has 4,301 digits"),
        ('[{"a": 1, "a": 2}]', "an object has the key `a` twice"),
        ("[" * 9000 + "]" * 9000, "nested too deeply"),
    ],
)
def test_a_json_argument_that_would_not_be_kept_exactly_is_refused(
    run: Any, text: str, message: str
) -> None:
    status, out, err = run("find", "a", "--meta", text)

    assert (status, out) == (2, "")
    assert message in err
    assert "hint: " in err


@pytest.mark.parametrize("text", [f"{DIGITS} items", '{"a": 1, "a": 2} and more', f'"{DIGITS}"'])
def test_a_json_argument_that_is_a_text_is_kept(ask: Any, text: str) -> None:
    assert ask("find", "a", "--meta", text)["given"]["meta"] == text.strip('"')


def test_the_longest_integer_of_a_json_argument_is_kept(ask: Any) -> None:
    assert ask("find", "a", "--meta", DIGITS[1:])["given"]["meta"] == int(DIGITS[1:])


def test_words_after_a_double_dash_are_never_options_or_commands(ask: Any) -> None:
    assert ask("find", "--", "by-topic", "-n")["given"]["query"] == "by-topic -n"


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["find", "by-topic", "auth"], "find by-topic"),
        (["find", "--json", "by-topic", "auth"], "find by-topic"),
        (["find", "--project", "p", "by-topic", "auth"], "find by-topic"),
        (["find", "recent"], "find recent"),
        (["find", "recent", "--limit", "2"], "find recent"),
        (["find", "recent", "changes"], "find"),
        (["find", "the", "by-topic"], "find"),
        (["box", "open-up"], "box open-up"),
        (["value", "get", "ns", "key"], "value"),
    ],
)
def test_a_word_may_be_a_command_and_lead_to_others(
    ask: Any, argv: list[str], command: str
) -> None:
    assert ask(*argv)["command"] == command


def test_required_parameters_are_positional_in_order(ask: Any) -> None:
    assert ask("value", "get", "ns", "key")["given"] == {"namespace": "ns", "key": "key"}


def test_a_positional_list_takes_all_words(ask: Any) -> None:
    assert ask("files", "a b", "c")["given"] == {"paths": ["a b", "c"]}


@pytest.mark.parametrize(
    "argv",
    [
        ["--project", "p", "value", "get", "a", "b"],
        ["value", "--project", "p", "get", "a", "b"],
        ["value", "get", "a", "b", "--project=p"],
    ],
)
def test_common_options_stand_before_or_after_the_command(ask: Any, argv: list[str]) -> None:
    assert ask(*argv)["project"] == "p"


def test_all_waits_of_a_line_share_one_limit() -> None:
    shared = []

    def opened(_: Path | None) -> Any:
        shared.append(disk.current() is disk.current())
        raise NoProject("there is no project here", hint="run `mind init` first")

    main(["note", "x"], commands=registry(), open=opened)

    assert shared == [True]


def test_a_command_may_have_an_option_that_others_share(ask: Any) -> None:
    answer = ask("--project", "p", "note", "x", "--project")

    assert (answer["project"], answer["given"]) == ("p", {"content": "x", "mine": True})


def test_text_comes_from_standard_input_for_a_dash_or_if_missing(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for argv in (["note"], ["note", "-"]):
        piped(monkeypatch, "línea 1\nline 2\n".encode())

        assert ask(*argv)["given"]["content"] == "línea 1\nline 2"


def test_binary_standard_input_is_refused(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    piped(monkeypatch, b"\xff\xfe")

    status, _, err = run("note")

    assert status == 2
    assert err.startswith("error: standard input is not text in UTF-8\nhint: ")


def test_a_missing_argument_is_named_on_a_terminal_and_with_empty_input(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "error: `mind note` needs `CONTENT`\nhint: see `mind note --help`\n"
    assert run("note")[2] == message
    piped(monkeypatch, b"")
    assert run("note")[2] == message


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["find", "a", "-n", "0"], "`--limit` must be between 1 and 100, not `0`"),
        (["find", "a", "-n", "x"], "`--limit` must be a whole number, not `x`"),
        (["find", "a", "--min-score", "nan"], "`--min-score` must be a number, not `NaN`"),
        (["find", "a", "--colour", "blue"], "`--colour` must be one of red, green, not `blue`"),
        (["find"], "`mind find` needs `QUERY`"),
        (["find", "a", "--lmit", "3"], "`--lmit` is not an option of `mind find`"),
        (["value"], "`mind value` needs a command"),
        (["value", "gte"], "`gte` is not a command of `mind value`"),
        (["fnd", "a"], "`fnd` is not a command of `mind`"),
        (["--nope"], "`--nope` is not an option of `mind`"),
        (["find", "a", "--limit"], "`--limit` needs a value"),
        (["find", "a", "--fresh=1"], "`--fresh` takes no value"),
        (["value", "get", "a", "b", "c", "d"], "`mind value get` does not take `c d`"),
    ],
)
def test_a_wrong_command_line_exits_2_with_a_message_and_a_hint(
    run: Any, argv: list[str], message: str
) -> None:
    status, out, err = run(*argv)

    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err.splitlines()[0]
    assert "VALIDATION_ERROR" not in err
    assert err.splitlines()[1].startswith("hint: ")


def test_help_is_not_suggested_for_an_unknown_option(run: Any) -> None:
    assert "did you mean" not in run("value", "get", "--hlep")[2]


def test_words_that_are_left_over_are_named_with_the_arguments_of_the_command(run: Any) -> None:
    message, hint = run("value", "get", "a", "b", "c", "d")[2].splitlines()

    assert message == "error: `mind value get` does not take `c d`"
    assert hint == "hint: it takes NAMESPACE KEY; put a text of several words in quotes"


def test_the_error_for_an_unknown_option_names_the_double_dash_where_a_text_may_be(
    run: Any,
) -> None:
    assert "put `--` before a text" in run("find", "--yarn")[2]
    assert "put `--` before a text" not in run("find", "recent", "--yarn")[2]


def test_the_error_for_a_misspelled_command_suggests_the_nearest(run: Any) -> None:
    assert "did you mean `mind find`?" in run("fnd")[2]
    assert "did you mean `mind value get`?" in run("value", "gte")[2]


@pytest.mark.attack("hostile text in an output")
def test_an_error_has_its_own_exit_status_and_no_escape_sequences(run: Any) -> None:
    assert run("fail", "known") == (1, "", "error: no memory `x`\nhint: try `y`\n")


@pytest.mark.parametrize("argv", [["-v", "fail", "known"], ["fail", "known", "--verbose"]])
def test_verbose_shows_the_code_of_an_error(run: Any, argv: list[str]) -> None:
    assert run(*argv)[2] == "error: no memory `x` [NOT_FOUND]\nhint: try `y`\n"


def test_a_hint_shows_the_nearest_word_or_an_example_of_the_command(run: Any) -> None:
    def hint(*argv: str) -> str:
        return str(run(*argv)[2].splitlines()[1])

    assert hint("find", "a", "--colour", "gren") == "hint: did you mean `green`?"
    assert (
        hint("find", "a", "--lmit", "3") == "hint: did you mean `--limit`? see `mind find --help`"
    )
    assert "`--min-score`" in hint("find", "a", "--min", "3")
    assert hint("find") == "hint: for example `mind find tea`; see `mind find --help`"
    assert hint("find", "a", "-n", "x") == (
        "hint: for example `mind find QUERY --limit 10`; see `mind find --help`"
    )


def test_with_json_an_error_is_one_line_of_its_wire_form(run: Any) -> None:
    status, out, err = run("fail", "known", "--json")

    assert (status, out, err.count("\n")) == (1, "", 1)
    assert json.loads(err) == {
        "type": "error",
        "error": {
            "code": "NOT_FOUND",
            "message": "no memory `x\x1b[31m`",
            "details": {"id": "x", "hint": "try `y`"},
        },
    }


def test_a_missing_project_is_reported_with_exit_status_3(run: Any) -> None:
    class Nowhere(FakeMind):
        has_project = False

    status, _, err = run("value", "get", "a", "b", open=Nowhere)

    assert status == 3
    assert err == ("error: there is no project here\nhint: run `mind init` first\n")
    assert run("files", "a", open=Nowhere)[0] == 0


@pytest.mark.parametrize("place", ["command", "open"])
def test_an_internal_error_shows_nothing_of_its_own_text(
    run: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def broken(_: Path | None) -> Any:
        raise RuntimeError("the secret text of a memory")

    argv, open = (["fail", "other"], FakeMind) if place == "command" else (["find", "a"], broken)
    monkeypatch.delenv("MIND_DEBUG", raising=False)
    status, out, err = run("-v", *argv, open=open)

    assert (status, out) == (1, "")
    assert "INTERNAL_ERROR" in err
    assert "secret" not in err

    monkeypatch.setenv("MIND_DEBUG", "1")
    assert "RuntimeError: the secret text" in run(*argv, open=open)[2]


def test_ctrl_c_exits_130_with_a_short_line(run: Any) -> None:
    assert run("fail", "interrupt") == (130, "", "interrupted\n")


def test_mind_without_arguments_lists_commands_by_section(run: Any) -> None:
    status, out, _ = run()

    assert status == 0
    assert out == run("--help")[1]
    assert "Find:\n" in out
    assert "Values by their keys" in out
    assert "Find memories by words" in out
    assert "--no-pager" in out


def test_help_has_arguments_options_sub_commands_and_examples(run: Any) -> None:
    status, out, _ = run("find", "--help")

    assert status == 0
    for message in (
        "Usage: mind find [OPTIONS] QUERY...",
        "Words to look for",
        "-n, --limit N",
        "Most to show (default 10)",
        "--tag TEXT",
        "(can be repeated)",
        "--fresh / --no-fresh",
        "--colour red|green",
        "  by-topic  ",
        "mind find tea",
    ):
        assert message in out


def test_the_version_is_printed(run: Any) -> None:
    assert run("--version") == (0, "mind 1.1.0\n", "")


def test_a_closed_standard_output_ends_the_program_without_a_message(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(text: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("mimo.rendering.give_up_stdout", lambda: None)
    monkeypatch.setattr("mimo.rendering.write", closed)

    assert run("find", "a") == (0, "", "")


def complete(*args: str, start: str = "") -> list[str]:
    return [line.partition("\t")[0] for line in completions(registry(), [*args, start])]


def test_the_shell_completes_commands_options_and_choices() -> None:
    assert complete(start="f") == ["find", "files", "fail"]
    assert complete("find")[:2] == ["by-topic", "recent"]
    assert complete("find", "by-topic", start="by") == []
    assert complete("box") == ["open-up"]
    assert "--colour" in complete("find", start="--")
    assert complete("find", "--colour") == ["red", "green"]


def test_a_parameter_for_one_surface_is_unknown_to_the_other(run: Any) -> None:
    @command("mind_one", cli="one", effect=Effect.READ, toolset="extra")
    def one(
        call: Any,
        *,
        here: Annotated[bool, Arg("Here", surfaces=Surface.CLI)] = False,
        there: Annotated[bool, Arg("There", surfaces=Surface.MCP)] = False,
    ) -> Seen:
        """Do one thing"""
        return seen("one", call, here=here)

    spec = spec_of(one)
    assert spec is not None
    commands = CommandTable({"A": {"one": "m"}}, load=lambda _: [spec])

    assert main(["one", "--here"], commands=commands, open=FakeMind) == 0  # type: ignore[arg-type]
    assert main(["one", "--there"], commands=commands, open=FakeMind) == 2  # type: ignore[arg-type]


def test_errors_of_click_have_our_form() -> None:
    from mimo.cli.program import usage

    message = usage(click.UsageError("Something is off."))

    assert isinstance(message, Invalid)
    assert (message.message, message.hint) == ("something is off", "see `mind --help`")
