"""`mind browse` on the command line: on a terminal, in a pipe, and without Textual."""

import re
import sys
import termios

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.errors import Invalid, NoProject
from mimo.extensions.browse.commands import Browsed, opened
from mimo.mind import Mind
from mimo.rendering import Screen
from mimo.rendering.results import show_on
from tests.cli.test_guided_review import terminal
from tests.extensions.browse.conftest import run_command
from tests.kit import memory, write

COLOURED = re.compile(rb"\x1b\[(?:[\d;]*;)?(?:3[0-7]|4[0-7]|9\d|10\d|[34]8;\d)[\d;]*m")


def test_it_runs_on_a_real_terminal_until_q_and_leaves_it_as_it_was(project):
    write(project, "facts/tea.md", memory("tea", "Green tea is drunk without milk"))
    with terminal(project, "browse", "green tea", TERM="xterm-256color") as screen:
        before = termios.tcgetattr(screen.number)[3]
        assert "\x1b[?1049h" in screen.until(".mind/")
        assert not COLOURED.search(screen.raw)  # NO_COLOR is set.
        screen.press("q")
        assert screen.ended() == 0
        assert "\x1b[?1049l" in screen.shown
        assert termios.tcgetattr(screen.number)[3] == before


@pytest.mark.parametrize(
    ("editor", "expected"),
    [("false", "error: the editor failed"), ("sed -i s/milk/sugar/", "drunk without sugar")],
)
def test_the_screen_comes_back_after_the_editor(project, editor, expected):
    write(project, "facts/tea.md", memory("tea", "Green tea is drunk without milk"))
    with terminal(project, "browse", TERM="xterm-256color", EDITOR=editor) as screen:
        screen.until(".mind/")
        screen.press("e")
        screen.until("\x1b[?1049h")
        screen.until(expected)
        screen.press("q")
        assert screen.ended() == 0


def test_words_typed_at_once_after_a_slash_are_no_keys_of_the_list(project):
    write(project, "facts/tea.md", memory("tea", "Green tea is drunk without milk"))
    with terminal(project, "browse", TERM="xterm-256color", EDITOR="false") as screen:
        screen.until(".mind/")
        screen.press("/deduced")
        screen.until("nothing found")
        screen.press("\x03")
        assert screen.ended() == 0
        assert "editor" not in screen.shown
    assert (project / ".mind" / "facts" / "tea.md").exists()


def test_colours_are_those_of_the_terminal(project):
    """A theme with colours of its own could be unreadable on a light or on a dark ground."""
    write(project, "facts/tea.md", memory("tea", "Green tea is drunk without milk"))
    with terminal(project, "browse", TERM="xterm-256color", NO_COLOR="") as screen:
        screen.until(".mind/")
        colours = set(COLOURED.findall(screen.raw))
        assert colours
        assert not [colour for colour in colours if b"8;" in colour]
        screen.press("\x03")
        assert screen.ended() == 0


def test_in_a_pipe_it_names_the_commands_that_print(project, monkeypatch, capsys):
    monkeypatch.chdir(project)

    assert main(["browse"]) == 2
    assert main(["browse", "green tea"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "error: `mind browse` needs a terminal" in shown.err
    assert "`mind search WORDS`" in shown.err


def test_without_textual_it_names_the_extra(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "textual", None)

    with pytest.raises(Invalid) as error:
        opened(call, run_command, {}, colour=True)
    assert (
        error.value.hint == "install it with `pip install textual`, or `pipx inject mimo textual`"
    )


def test_without_a_project_it_names_mind_init(home, tmp_path):
    with pytest.raises(NoProject):
        opened(Call(Mind.open(tmp_path)), run_command, {}, colour=True)


def test_the_number_of_changes_is_printed_at_the_end():
    screen = Screen()
    show_on(screen, Browsed(changes=0))
    assert screen._lines == []
    show_on(screen, Browsed(changes=2))
    assert screen._lines == ["2 changes made; `mind undo --list` lists them"]
