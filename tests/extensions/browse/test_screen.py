"""The screen in all sizes, the help, the mouse, and texts that try to be more than text."""

import pytest

from mimo.extensions.browse.model import KEYS
from mimo.project.trust import Trust
from tests.extensions.browse.conftest import browse
from tests.kit import memory, write


def test_markup_and_control_characters_of_a_memory_are_only_text(call, project):
    hostile = "[bold red]x[/] [@click=app.quit]y[/] \x1b]0;title\x07 \u202ereversed \x1b[31mred"
    write(
        project, "facts/a.md", memory("a", f"{hostile}\n\n[link=http://z]z[/link] &#x202e;entity")
    )

    async def play(screen):
        text = await screen.until("[link=http://z]z[/link]")
        assert "[bold red]x[/] [@click=app.quit]y[/]" in text
        assert not {"\x1b", "\x07", "\u202e"} & set(text)

    browse(call, play)


def test_untrusted_and_private_memories_are_labelled(call, home, project):
    write(project, "private/facts/a.md", memory("a", "A secret place"))
    Trust(home, project).forget()

    async def play(screen):
        await screen.until("1/1")
        assert "untrusted" in screen.chosen
        assert "private" in screen.chosen

    browse(call, play)


def test_the_id_is_copied(call, three):
    async def play(screen):
        await screen.until(".mind/")
        await screen.press("y")
        await screen.until("copied tea")
        assert screen.browser.clipboard == "tea"

    browse(call, play)


def test_the_help_lists_every_key(call, three):
    async def play(screen):
        await screen.until("1/3")
        await screen.press("question_mark")
        text = await screen.until("Show the keys")
        assert all(key.symbols in text and key.help in text for key in KEYS)
        await screen.press("escape")
        await screen.without("Show the keys")

    browse(call, play, size=(100, 40))


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (200, 50)])
def test_every_size_has_list_preview_and_keys(call, three, size):
    async def play(screen):
        text = await screen.until(".mind/")
        lines = text.split("\n")
        assert len(lines) == size[1]
        assert all(len(line) <= size[0] for line in lines)
        assert "Green tea is drunk without milk" in screen.chosen
        assert lines[-1].startswith(" / search  enter open")
        assert lines[-1].endswith("? help  q quit")

    browse(call, play, size=size)


def test_a_low_terminal_shows_the_preview_in_place_of_the_list(call, three):
    async def play(screen):
        text = await screen.until("1/3")
        assert "importance 0.5" not in text
        await screen.press("enter")
        await screen.until(".mind/")
        await screen.without("Cups are")
        await screen.press("escape")
        await screen.until("Cups are")

    browse(call, play, size=(60, 12))


def test_a_resize_arranges_the_parts_again(call, three):
    async def play(screen):
        await screen.until(".mind/")
        await screen.pilot.resize_terminal(39, 20)
        await screen.until("too small: 39×20, needs 40×10")
        await screen.pilot.resize_terminal(120, 30)
        text = await screen.until(".mind/")
        line = next(line for line in text.split("\n") if "Cups are" in line)
        assert "│" in line

    browse(call, play)


def test_the_mouse_chooses_opens_and_presses_keys(call, three):
    async def play(screen):
        await screen.until(".mind/")
        await screen.pilot.click("#rows", offset=(5, 1))
        await screen.until("cup.md")
        await screen.pilot.click("#rows", offset=(5, 1))
        await screen.when(lambda: screen.browser.preview.has_focus, "the focus")
        await screen.pilot.click("#footer", offset=(screen.text.split("\n")[-1].index("? help"), 0))
        await screen.until("Show the keys")

    browse(call, play, size=(100, 40))
