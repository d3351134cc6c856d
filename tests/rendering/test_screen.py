"""Output for people: plain text in a pipe, colour on a terminal, harmless in both."""

import io
import json
import sys
from dataclasses import dataclass
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mimo import rendering
from mimo.errors import Invalid
from mimo.rendering import (
    Part,
    Screen,
    Setting,
    bad,
    dim,
    fitted,
    ident,
    path,
    strong,
    titled,
)
from mimo.rendering.results import (
    after_title,
    age,
    because_of,
    paged,
    render,
    screen_for,
    show_on,
)
from mimo.rendering.terminal import TerminalScreen
from mimo.text.clean import clean, escaped
from tests.conftest import NOW

NASTY = (
    "a\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J\x9d8;;http://x\x9c\x00\x08\r\x7f\x85"
    "\u202eevil\u2066\u200f[bold]b[/]\x1b]unterminated"
)


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x07", "link"),
        ("\x9b31mred", "red"),
        ("\x1bc\x1b(Breset", "reset"),
        ("over\rwritten\x08", "overwritten"),
        ("\u202eabc\u2069", "abc"),
        ("\x1b]0;no end\nnext", "0;no end\nnext"),
        ("naïve 漢字 🙂", "naïve 漢字 🙂"),
    ],
)
def test_only_terminal_commands_are_removed_from_text(text: str, harmless: str) -> None:
    assert clean(text) == harmless


@given(st.text(st.characters(codec="utf-8")))
def test_clean_text_has_no_control_characters_left(text: str) -> None:
    left = clean(text)

    assert not any(ord(char) < 32 and char not in "\n\t" for char in left)
    assert not any(0x7F <= ord(char) <= 0x9F for char in left)
    assert clean(left) == left


@given(st.recursive(st.text(st.characters(codec="utf-8")), st.lists))
def test_json_has_no_control_characters_and_the_same_data(data: Any) -> None:
    text = escaped(json.dumps(data, ensure_ascii=False))

    assert json.loads(text) == data
    assert clean(text) == text


def written(screen: Screen, capsys: pytest.CaptureFixture[str]) -> str:
    screen.finish(pager=False)
    return capsys.readouterr().out


def filled(screen: Screen) -> Screen:
    screen.heading(NASTY)
    screen.line("x", dim(NASTY), indent=2)
    screen.text(NASTY, terms=("aredevil", "("), indent=2)
    screen.markdown(f"# {NASTY}\n\n[link](http://x)")
    screen.pairs([("name", NASTY), ("longer name", bad("b"))])
    screen.table(("ID", "TEXT"), [(strong("1"), NASTY), ("22", "b")])
    screen.table(("NONE",), [])
    screen.blank()
    return screen


def test_plain_text_has_no_escape_sequences_and_aligned_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = written(filled(Screen()), capsys)

    assert clean(out) == out
    assert "\nname:        ared" in out
    assert "\nlonger name: b\n" in out
    assert "\nID  TEXT\n1   ared" in out
    assert "[bold]b[/]" in out


def test_a_terminal_gets_our_styles_and_no_escape_sequences_of_the_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = written(filled(TerminalScreen(colour=True, width=60, height=100)), capsys)

    assert "\x1b[1m" in out
    assert "[bold]b[/]" in out
    for harm in ("\x1b[31mred", "\x1b]", "\x07", "\x9b", "\x9d", "\u202e", "\r", "\x00"):
        assert harm not in out
    assert "\x1b[1;33maredevil" in out


def test_without_colour_a_terminal_gets_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    out = written(filled(TerminalScreen(colour=False, width=60, height=100)), capsys)

    assert "\x1b[3" not in out


@pytest.mark.parametrize("columns", range(12))
def test_a_terminal_of_few_columns_gets_all_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    screen = filled(TerminalScreen(colour=True, height=100))
    screen.line(ident("k3v7mq"), "  ", titled("A long title of a memory"), indent=2)
    screen.text("A text", indent=4)

    assert "A text" in written(screen, capsys)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "kind"),
    [
        (io.StringIO(), {}, Screen),
        (Terminal(), {"TERM": "dumb"}, Screen),
        (Terminal(), {"TERM": "xterm"}, TerminalScreen),
        (Terminal(), {"NO_COLOR": "1"}, TerminalScreen),
    ],
)
def test_only_a_terminal_gets_colour(
    stream: io.StringIO, environ: dict[str, str], kind: type[Screen]
) -> None:
    assert type(screen_for(stream, environ, colour=True)) is kind


def test_long_output_goes_to_the_pager_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paged: list[str] = []
    monkeypatch.setattr("click.echo_via_pager", lambda text, color: paged.append(text))
    for lines, pager in ((9, True), (10, True), (10, False)):
        screen = TerminalScreen(colour=True, width=60, height=10)
        for number in range(lines):
            screen.line(str(number))
        screen.finish(pager=pager)

    assert len(paged) == 1
    assert capsys.readouterr().out.count("\n") == 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A result without a renderer."""

    name: str
    done: bool


def test_a_result_without_a_renderer_is_shown_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    show_on(screen, Plain(name="tea", done=True))

    assert written(screen, capsys) == '{\n  "name": "tea",\n  "done": true\n}\n'


def test_a_renderer_of_the_result_s_type_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Special:
        """A result with a renderer."""

    @render.register
    def _(result: Special, screen: Screen) -> None:
        screen.line("special")

    screen = Screen()
    show_on(screen, Special())

    assert written(screen, capsys) == "special\n"


def test_notes_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().note("by words\x1b[31m only")

    assert capsys.readouterr() == ("", "note: by words only\n")


def test_progress_is_one_line_that_is_erased_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few slow steps are shown, and quick ones are not, however many they are."""
    now = 7.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    rendering.progress("Scanning", 1, 1_000)
    rendering.progress("Scanning", 1_000, 1_000)
    now += 60  # for instance, a question that was answered late
    for done in range(0, 46, 9):
        now += 0.3
        rendering.progress("Indexing", done, 45)

    lines = [f"\r\x1b[KIndexing {done} of 45" for done in (18, 36)]
    assert capsys.readouterr() == ("", "".join([*lines, "\r\x1b[K"]))


def test_a_message_takes_the_place_of_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 7.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    for done in (0, 9):
        now += 0.6
        rendering.progress("Reading", done, 45)
    rendering.complain("error: the disk is full")
    rendering.complain("hint: make room")

    shown = "\r\x1b[KReading 9 of 45\r\x1b[Kerror: the disk is full\nhint: make room\n"
    assert capsys.readouterr() == ("", shown)


def test_a_narrow_encoding_gets_json_in_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", narrow)

    assert json.loads(rendering.as_json({"a": "漢字 🙂"})) == {"a": "漢字 🙂"}
    assert rendering.as_json("漢").isascii()


def test_both_screens_have_the_same_lines(capsys: pytest.CaptureFixture[str]) -> None:
    for screen in (Screen(), TerminalScreen(colour=False, width=80, height=24)):
        screen.line("one")
        screen.blank()
        screen.line("two", indent=2)

        assert [line.rstrip() for line in written(screen, capsys).splitlines()] == [
            "one",
            "",
            "  two",
        ]


NAMED = Setting(handle=lambda _: ("k3v7mq", 2))


def with_ident(screen: Screen) -> Screen:
    screen.line(ident("decision_auth_20261120_k3v7mq"), "  Use JWT")
    screen.table(("id",), [[ident("decision_auth_20261120_k3v7mq")]])
    return screen


def test_an_id_is_printed_as_its_handle(capsys: pytest.CaptureFixture[str]) -> None:
    plain = written(with_ident(Screen()), capsys)

    assert plain.splitlines() == ["k3v7mq  Use JWT", "id", "k3v7mq"]


def test_the_unique_letters_of_a_handle_are_bold_on_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for colour, bold in ((True, "\x1b[1;35m"), (False, "\x1b[1m")):
        screen = TerminalScreen(colour=colour, width=60)
        screen.setting = NAMED
        out = written(with_ident(screen), capsys)

        assert out.count(f"{bold}k3\x1b[0m\x1b[2mv7mq\x1b[0m") == 2


def test_what_a_thread_prints_can_be_captured(capsys: pytest.CaptureFixture[str]) -> None:
    with rendering.captured() as output:
        rendering.write("é\n")
        rendering.complain("note: \x1b[31m")
        rendering.report(Invalid("no", hint="yes"), as_wire=False)
        assert rendering.as_json("é") == '"é"'
        thread = Thread(target=rendering.write, args=["of another thread\n"])
        thread.start()
        thread.join()
    rendering.complain("after")

    assert output.text == "é\n"
    assert output.errors == [rendering.safe("note: \x1b[31m"), "error: no", "hint: yes"]
    assert capsys.readouterr() == ("of another thread\n", "after\n")


@pytest.mark.parametrize("text", ["[secret]", "a title with words", ""])
def test_a_name_that_is_not_an_id_is_printed_unchanged(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Screen()
    screen.line("to ", ident(text))

    assert written(screen, capsys).rstrip() == f"to {text}".rstrip()


@pytest.mark.parametrize(
    ("shown", "total", "offset", "text"),
    [
        (17, 17, 0, "17 notes"),
        (1, 1, 0, "1 note"),
        (10, 17, 0, "1 to 10 of 17 notes"),
        (7, 17, 10, "11 to 17 of 17 notes"),
        (0, 17, 1000, "0 of 17 notes: the offset 1,000 is after the last one"),
        (0, 0, 5, "0 notes"),
    ],
)
def test_a_page_of_a_list_names_its_part(shown: int, total: int, offset: int, text: str) -> None:
    assert paged(shown, total, offset, "note") == text


def on_terminal(screen_width: int, *parts: Part, capsys: pytest.CaptureFixture[str]) -> list[str]:
    screen = TerminalScreen(colour=False, width=screen_width)
    screen.line(*parts)
    return [line.rstrip() for line in clean(written(screen, capsys)).splitlines()]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, "k3v7mq  Use JWT with refresh tokens  FAILED  #auth #api"),
        (50, "k3v7mq  Use JWT with refresh tokens  FAILED  #aut…"),
        (43, "k3v7mq  Use JWT with refresh tokens  FAILED"),
        (40, "k3v7mq  Use JWT with refresh to…  FAILED"),
        (29, "k3v7mq  Use JWT with…  FAILED"),
    ],
)
def test_the_last_part_of_a_line_is_cut_first(
    width: int, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tags = fitted(dim("  #auth #api"))
    title = fitted("Use JWT with refresh tokens", 12)
    parts = (ident("k3v7mq!"), "  ", title, bad("  FAILED"), tags)
    lines = on_terminal(width + 1, *parts, capsys=capsys)

    assert lines == [shown.replace("k3v7mq", "k3v7mq!")]


def test_a_title_is_cut_by_the_columns_of_its_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = on_terminal(20, fitted("인증 전략을 세션으로 바꾼다 🙂", 4), "  x", capsys=capsys)

    assert len(lines) == 1
    assert lines[0].endswith("…  x")
    assert cell_len(lines[0]) <= 20


def test_a_path_loses_its_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    file = ".mind/decisions/decision_auth_20261120_k3v7mq.md:12"

    assert on_terminal(80, path(file), capsys=capsys) == [file]
    assert on_terminal(30, path(file), capsys=capsys) == [f"…{file[-29:]}"]
    assert on_terminal(30, path("x/" * 200_000 + file), capsys=capsys) == [f"…{file[-29:]}"]


def test_nothing_is_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.line(ident("k3v7mq"), "  ", fitted("x" * 300, 4), fitted(dim("  #tag")))

    assert written(screen, capsys).rstrip().endswith(f"{'x' * 300}  #tag")


def test_a_line_too_long_for_the_terminal_goes_on_below_the_title(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = on_terminal(24, ident("[x]"), "     a title of many words", "  3d", capsys=capsys)

    assert lines == ["[x]     a title of many", "        words  3d"]


AGES = {
    timedelta(seconds=-5): "new",
    timedelta(seconds=59): "now",
    timedelta(minutes=1): "1m",
    timedelta(minutes=59): "59m",
    timedelta(hours=23): "23h",
    timedelta(days=1): "1d",
    timedelta(days=13): "13d",
    timedelta(days=14): "2w",
    timedelta(days=62): "8w",
    timedelta(days=63): "2mo",
    timedelta(days=364): "11mo",
    timedelta(days=365): "1y",
    timedelta(days=3650): "10y",
}


@pytest.mark.parametrize(("passed", "shown"), AGES.items())
def test_an_age_has_one_unit(passed: timedelta, shown: str) -> None:
    screen = Screen()
    screen.setting = Setting(now=NOW)

    assert age(NOW - passed, screen) == shown
    assert len(shown) <= 4


TITLES = [
    ("Use JWT", "Use JWT\n\nIt scales.", "It scales."),
    ("Use JWT", "# Use JWT\nIt scales.", "It scales."),
    ("Use JWT", "## Reasoning\n\nIt scales.", "It scales."),
    ("Use JWT", "Use JWT\n=======\n\nIt scales.", "It scales."),
    ("Use JWT", "Reasons\n---\n\n# Why\n\nIt scales.\n\n---", "It scales.\n\n---"),
    ("Use JWT", "| a | b |\n|---|---|", "| a | b |\n|---|---|"),
    ("A long first line that is…", "A long first line that is cut here", "…cut here"),
    ("A long first line that i…", "A long first line that is cut", "…is cut"),
    ("Use JWT", "Use JWT", ""),
    ("Other", "Use JWT", "Use JWT"),
    ("", "Use JWT", "Use JWT"),
]


@pytest.mark.parametrize(("title", "text", "rest"), TITLES)
def test_a_passage_does_not_repeat_its_title(title: str, text: str, rest: str) -> None:
    assert after_title(text, title) == rest


def test_words_are_highlighted_as_whole_words(capsys: pytest.CaptureFixture[str]) -> None:
    screen = TerminalScreen(colour=True, width=80)
    screen.text("reset the presets, 인증전략", terms=["reset", "인증"])

    out = written(screen, capsys)
    assert out.count("\x1b[1;33m") == 2
    assert "\x1b[1;33mreset\x1b[0m" in out
    assert "\x1b[1;33m인증\x1b[0m전략" in out


@pytest.mark.attack("repeated text takes quadratic time")
@pytest.mark.parametrize("text", ["[" * 90_000, ">" * 19 + "a\n" + "b\n" * 20_000])
def test_markdown_that_takes_long_to_format_is_printed_as_it_is(text: str) -> None:
    screen = TerminalScreen(colour=False, width=100, height=24)

    screen.markdown(text)

    assert screen.written.strip() == text.strip()


def test_a_reason_has_one_because_and_no_id():
    reason = "kafka is too heavy"
    for before in ("", "Because ", "because ", "Replaces decision_queue_20261130_y5xfaq: "):
        assert because_of(before + reason) == f"because {reason}"
