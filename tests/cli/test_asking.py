"""Questions at the terminal: what counts as an answer, and what does not."""

import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from mimo.cli.main import Asking
from mimo.errors import Invalid
from mimo.surroundings import Question

QUESTION = Question(text="Release\x1b[2J v1.2?", choices=("yes", "no", "not now"))


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[BinaryIO]:
    """The other end of a standard input of our own."""
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as stdin, os.fdopen(writing, "wb", 0) as keyboard:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield keyboard


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("yes\n", "yes"),
        ("Y\n", "yes"),
        (" no \n", "no"),
        ("not\n", "not now"),
        ("NOT NOW\n", "not now"),
    ],
)
def test_an_answer_is_a_choice_or_its_unambiguous_beginning(
    typed: BinaryIO, text: str, answer: str
) -> None:
    typed.write(text.encode())

    assert Asking().ask(QUESTION, 0) == answer


@pytest.mark.parametrize("text", ["maybe\n", "\n", "n\n"])
def test_an_invalid_answer_is_asked_again(
    typed: BinaryIO, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    typed.write(text.encode())

    assert Asking().ask(QUESTION, 0) is None
    assert capsys.readouterr().err.endswith("answer with one of yes, no, not now\n")


@pytest.mark.parametrize("first", ["maybe\n", "\n"])
def test_another_answer_is_awaited_after_an_invalid_one(
    typed: BinaryIO, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    lines = [first, "no\n"]

    def ready(*_: object) -> tuple[list[object], list[object], list[object]]:
        if lines:
            typed.write(lines.pop(0).encode())
        return [sys.stdin], [], []

    monkeypatch.setattr("select.select", ready)

    assert Asking().ask(QUESTION, 60) == "no"


def test_each_line_of_a_question_has_its_own(
    typed: BinaryIO, capsys: pytest.CaptureFixture[str]
) -> None:
    """An action of a procedure could otherwise imitate the end of the question."""
    actions = "  [set_context {}]\n  [call \x1b[2J{}]\n  release_20261126_agzx4z ##[x]"
    text = f"Its actions:\n{actions}\nRun it?"
    Asking().ask(Question(text=text, choices=("yes", "no")), 0)

    assert capsys.readouterr().err.split("\n") == [
        "Its actions:",
        "  [set_context {}]",
        r"  [call \x1b[2J{}]",
        "  release_20261126_agzx4z ##[x]",
        "Run it? [yes/no]",
        "",
    ]


def test_the_end_of_a_long_line_does_not_look_like_the_next_line(
    typed: BinaryIO, capsys: pytest.CaptureFixture[str]
) -> None:
    for blank in (" ", "\u3000"):
        action = f"  $ rm x #{blank * 3000}Run it? [yes/no]"
        Asking().ask(Question(text=f"{action}\nRun it?", choices=("yes", "no")), 0)

        first, *others, last, end = capsys.readouterr().err.split("\n")
        assert (last, end) == ("Run it? [yes/no]", "")
        assert len(others) > 30
        assert all(line.startswith("    | ") for line in others)
        assert first + "".join(line[6:] for line in others) == action


def test_a_long_question_is_broken_between_words(
    typed: BinaryIO, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "Keep earlier sessions with agents, and find them? " * 4
    Asking().ask(Question(text=f"{text}Now?", choices=("yes", "no")), 0)

    first, *others, _ = capsys.readouterr().err.split("\n")
    parts = [first, *(line.removeprefix("    | ") for line in others)]
    assert "".join(parts) == f"{text}Now? [yes/no]"
    assert all(part.endswith(" ") for part in parts[:-1])
    assert len(others) > 1


def test_a_question_is_printed_once_without_control_characters(
    typed: BinaryIO, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = Asking().ask

    assert [ask(QUESTION, 0), ask(QUESTION, 0)] == [None, None]

    message = capsys.readouterr().err
    assert message.count("v1.2?") == 1
    assert "\x1b" not in message


def test_a_question_with_a_secret_is_not_asked(
    typed: BinaryIO, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be shown without the part that is redacted."""
    begin, end = (f"-----{word} PRIVATE KEY-----" for word in ("BEGIN", "END"))
    key = f"{begin}'; touch x; : MIIEvQIBADANBgkqhkiG9w0BAQEFAASC {end}"
    typed.write(b"yes\n")

    with pytest.raises(Invalid, match="can't be shown in full"):
        Asking().ask(Question(text=f"Run `: '{key}`?", choices=("yes", "no")), 0)
    assert capsys.readouterr().err == ""


def test_the_end_of_the_input_stops_the_command(
    typed: BinaryIO,
) -> None:
    """The last choice of a procedure may be the one that deploys."""
    typed.close()

    with pytest.raises(KeyboardInterrupt):
        Asking().ask(QUESTION, 0)
