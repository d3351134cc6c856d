"""The browser as its user sees it: keys are pressed, and the screen is read."""

from contextlib import nullcontext

import pytest

from mimo.cli.editor import edit
from mimo.commands.common import TrustLabel
from mimo.features.audit.commands import AuditRows
from mimo.features.browse.app import Browser
from mimo.features.browse.model import KEYS, PAGE
from mimo.features.notes.reading import MemoryRow, MemoryRows
from mimo.memory.model import Kind
from mimo.store.trust import Trust
from tests.conftest import NOW
from tests.features.browse.conftest import browse, call, note, write


@pytest.fixture
def three(project):
    """Three memories: the newest is on the top of a list."""
    write(project, "facts/tea.md", note("tea", "Green tea is drunk without milk", day=3))
    write(project, "facts/cup.md", note("cup", "Cups are washed by hand", day=2))
    link = "links:\n- {to: tea, type: builds_on}\n"
    write(project, "facts/pot.md", note("pot", "The pot is for tea only", day=1, more=link))
    return project


def test_the_list_is_shown_newest_first_with_a_preview_of_the_first(mind, three):
    async def play(screen):
        text = await screen.until("created:")
        assert text.index("Green tea") < text.index("Cups are") < text.index("The pot is")
        assert "shop > memories" in text
        assert "1/3" in text
        assert "Green tea" in screen.chosen

    browse(mind, play)


def test_letters_and_arrows_move_the_cursor_and_the_preview_follows(mind, three):
    async def play(screen):
        await screen.until("created:")
        await screen.press("j")
        await screen.until("cup.md")
        assert "Cups are" in screen.chosen
        await screen.press("down", "down", "down")
        await screen.until("pot.md")
        await screen.press("k", "up", "up")
        await screen.until("tea.md")
        await screen.press("G")
        await screen.until("pot.md")
        await screen.press("home")
        await screen.until("tea.md")

    browse(mind, play)


def test_typing_searches_and_escape_shows_all_again(mind, three):
    async def play(screen):
        await screen.until("1/3")
        await screen.press("slash", *"milk")
        await screen.until("> search")
        await screen.without("Cups are")
        assert "Green tea" in screen.chosen
        await screen.press("escape", "escape")
        await screen.until("Cups are")

    browse(mind, play)


def test_a_query_of_the_command_line_is_the_first_one(mind, three):
    async def play(screen):
        await screen.until("1/1")
        assert "Cups are" in screen.chosen

    browse(mind, play, query="washed by hand")


def test_an_answer_to_an_older_query_is_not_shown(mind, three):
    async def play(screen):
        await screen.until("1/3")
        old = screen.browser.place
        await screen.press("slash", *"milk")
        await screen.until("1/1")
        page = screen.browser.reader.page(old, 0, lambda: False)
        screen.browser._show_page(old, page)
        assert "Cups are" not in screen.text

    browse(mind, play)


def test_links_are_followed_in_both_directions_and_back(mind, three):
    async def play(screen):
        await screen.until("← builds_on  The pot is for tea only")
        await screen.press("g")
        await screen.until("links of Green tea")
        assert "← builds_on" in screen.chosen
        await screen.press("enter")
        await screen.until("links of The pot")
        assert "builds_on →" in screen.chosen
        await screen.press("escape")
        await screen.until("links of Green tea")
        await screen.press("backspace")
        await screen.until("1/3")
        assert "Green tea" in screen.chosen

    browse(mind, play)


def test_a_memory_without_links_and_a_link_to_a_missing_memory(mind, three):
    link = "links:\n- {to: no, type: builds_on}\n"
    write(three, "facts/old.md", note("old", "An old memory", day=1, more=link))

    async def play(screen):
        await screen.until("1/4")
        await screen.press("j", "g")
        await screen.until("no memory is linked with this one")
        await screen.press("escape")
        await screen.until("2/4")
        await screen.press("slash", *"old")
        await screen.until("1/1")
        await screen.press("enter", "g")
        await screen.until("builds_on →  no")
        assert "missing" in screen.chosen
        await screen.press("enter")
        await screen.until("“no” is not a memory")

    browse(mind, play)


def test_markup_and_control_characters_of_a_memory_are_only_text(mind, project):
    hostile = "[bold red]x[/] [@click=app.quit]y[/] \x1b]0;title\x07 \u202ereversed \x1b[31mred"
    write(project, "facts/a.md", note("a", f"{hostile}\n\n[link=http://z]z[/link] &#x202e;entity"))

    async def play(screen):
        text = await screen.until("[link=http://z]z[/link]")
        assert "[bold red]x[/] [@click=app.quit]y[/]" in text
        assert not {"\x1b", "\x07", "\u202e"} & set(text)

    browse(mind, play)


def test_untrusted_and_private_memories_are_labelled(mind, home, project):
    write(project, "private/facts/a.md", note("a", "A secret place"))
    Trust(home, project).forget()

    async def play(screen):
        await screen.until("1/1")
        assert "untrusted" in screen.chosen
        assert "private" in screen.chosen

    browse(mind, play)


def test_removing_is_undone_by_one_key_and_redone_by_it(mind, three):
    path = three / ".mind/facts/tea.md"
    text = path.read_bytes()

    async def play(screen):
        await screen.until("created:")
        await screen.press("d")
        await screen.until("removed Green tea is drunk without milk; u undoes it")
        await screen.until("1/2")
        assert not path.exists()
        assert "Cups are" in screen.chosen
        await screen.press("u")
        await screen.until("undone: mind rm; u redoes it")
        assert path.read_bytes() == text
        await screen.press("u")
        await screen.until("undone: mind undo")
        assert not path.exists()

    browse(mind, play)


def test_undoing_a_change_of_another_process_is_asked_first(mind, three):
    call(mind, "add", {"content": "Made elsewhere"})

    async def play(screen):
        await screen.until("1/4")
        await screen.press("u")
        await screen.until("undo mind add of 2026-11-20: .mind/facts/")
        await screen.press("n")
        await screen.without("undo mind add")
        assert len(list((three / ".mind/facts").iterdir())) == 4
        await screen.press("u")
        await screen.until("undo mind add")
        await screen.press("y")
        await screen.until("undone: mind add")

    browse(mind, play)


def test_nothing_to_undo_is_an_error_in_the_line_above_the_keys(mind, three):
    async def play(screen):
        await screen.until("1/3")
        await screen.press("u")
        await screen.until("error: ")

    browse(mind, play)


def edited(view, path, given):
    """Runs a command as the command line does, which opens the editor for `edit`."""
    if path == "edit":
        return edit(view, given, lambda arguments: call(view, path, arguments))
    return call(view, path, given)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sed -i s/milk/sugar/", "Green tea is drunk without sugar; u undoes it"),
        ("true", "nothing changed"),
        ("false", "error: the editor failed"),
    ],
)
def test_a_memory_is_edited_in_the_editor_of_the_user(mind, three, monkeypatch, command, expected):
    monkeypatch.setenv("EDITOR", command)
    monkeypatch.setattr(Browser, "suspend", lambda _: nullcontext())

    async def play(screen):
        await screen.until("created:")
        await screen.press("e")
        await screen.until(expected)

    browse(mind, play, run=edited)


def test_a_terminal_that_can_not_be_left_to_an_editor_is_reported(mind, three):
    async def play(screen):
        await screen.until("created:")
        await screen.press("e")
        await screen.until("can't show an editor")

    browse(mind, play)


TWO = (
    "---\nid: d1\ntype: decision\ntopic: auth\noutcome: FAILED\ncreated: 2026-11-01T08:00:00Z\n"
    "---\nUse JWT\n\n## Competing: outcome\nSUCCESS\n"
)


def test_an_item_of_the_review_is_resolved_by_its_key(mind, project):
    path = write(project, "decisions/d1.md", TWO)

    async def play(screen):
        await screen.until("1/1")
        await screen.press("r")
        await screen.until("2  holds")
        assert "versions" in screen.chosen
        await screen.press("2")
        await screen.until("nothing to review")

    browse(mind, play)
    assert "outcome: SUCCESS" in path.read_text("utf-8")


def test_enter_offers_the_actions_of_an_item_and_asks_before_it_removes(mind, project):
    path = write(project, "decisions/d1.md", TWO)

    async def play(screen):
        await screen.until("1/1")
        await screen.press("r")
        await screen.until("2  holds")
        await screen.press("enter")
        await screen.until("> 1  holds")
        await screen.press("down", "down", "down", "down", "enter")
        await screen.until("remove .mind/decisions/d1.md?")
        await screen.press("escape")
        await screen.without("remove .mind")
        assert path.exists()
        await screen.press("f")
        await screen.until("remove .mind/decisions/d1.md?")
        await screen.press("y")
        await screen.until("nothing to review")

    browse(mind, play)
    assert not path.exists()


def test_one_of_two_memories_of_an_item_is_chosen(mind, project):
    for number, text in enumerate(("Use JWT", "Use sessions")):
        topic = "topic: auth\n"
        name = f"decisions/d{number}.md"
        write(project, name, note(f"d{number}", text, type="decision", more=topic))

    async def play(screen):
        await screen.until("1/2")
        await screen.press("r")
        await screen.until("both hold")
        await screen.press("f")
        await screen.until("forget: which?")
        await screen.press("2")
        await screen.until("remove ")
        await screen.press("n")
        await screen.without("remove ")
        await screen.press("v")
        await screen.until("view: which?")
        await screen.press("1")
        await screen.until("importance:")

    browse(mind, play)


def test_an_unreadable_file_is_counted_and_can_not_be_edited_as_a_memory(mind, three):
    write(three, "facts/bad.md", "---\ntags: [x\n---\nfoo\n")

    async def play(screen):
        await screen.until("1 file unreadable")
        await screen.press("r")
        await screen.until("repair this file in an editor")
        await screen.press("e")
        await screen.until("is not a memory")
        await screen.press("enter")
        await screen.until("repair .mind/facts/bad.md in an editor")

    browse(mind, play)


def test_an_empty_project_names_the_command_that_stores_a_memory(mind):
    async def play(screen):
        await screen.until("no memories; `mind add TEXT` stores one")
        await screen.press("d", "e", "g", "y", "enter", "j", "k", "G", "r")
        await screen.until("nothing to review")

    browse(mind, play)


def test_changes_of_another_process_appear_and_the_cursor_stays_on_its_memory(mind, three):
    async def play(screen):
        await screen.until("created:")
        await screen.press("j")
        await screen.until("cup.md")
        write(three, "facts/new.md", note("new", "A newer memory", day=9))
        screen.browser._watch()
        await screen.until("3/4")
        assert "Cups are" in screen.chosen
        (three / ".mind/facts/cup.md").unlink()
        screen.browser._watch()
        await screen.until("3/3")
        assert "The pot is" in screen.chosen

    browse(mind, play)


def test_a_memory_that_was_removed_under_the_cursor_is_reported(mind, three):
    async def play(screen):
        await screen.until("created:")
        (three / ".mind/facts/cup.md").unlink()
        await screen.press("j")
        await screen.until("error: Memory not found")

    browse(mind, play)


def test_only_the_pages_that_are_seen_are_read_of_10_000_memories(mind):
    total, asked = 10_000, []

    def listed(view, path, given):
        if path != "list":
            return call(view, path, given)
        asked.append(given["offset"])
        rows = range(given["offset"], min(total, given["offset"] + given["limit"]))
        memories = tuple(
            MemoryRow(
                id=f"m{n}",
                type=Kind.FACT,
                title=f"Memory {n}",
                tags=(),
                importance=0.5,
                created_at=NOW,
                trust=TrustLabel.TRUSTED,
                file="x.md",
            )
            for n in rows
        )
        return MemoryRows(memories=memories, total=total, offset=given["offset"])

    async def play(screen):
        await screen.until("1/10,000")
        await screen.press("G")
        await screen.until("Memory 9999")
        await screen.press("pageup")
        await screen.until("Memory 9980")
        await screen.press("home")
        await screen.until("Memory 0")

    browse(mind, play, run=listed)
    assert set(asked) == {0, total - PAGE}


def test_passing_by_is_no_use_of_a_memory_but_opening_is(mind, three):
    async def play(screen):
        await screen.until("created:")
        await screen.press("j")
        await screen.until("cup.md")
        await screen.press("slash", *"milk")
        await screen.until("1/1")
        assert mind.accesses.uses() == {}
        await screen.press("enter", "enter")
        await screen.when(lambda: _used(mind) == {"tea"}, "the use")

    browse(mind, play)


def _used(mind):
    mind.accesses.flush()
    return set(mind.accesses.uses())


def test_the_id_is_copied(mind, three):
    async def play(screen):
        await screen.until("created:")
        await screen.press("y")
        await screen.until("copied tea")
        assert screen.browser.clipboard == "tea"

    browse(mind, play)


def test_the_help_lists_every_key(mind, three):
    async def play(screen):
        await screen.until("1/3")
        await screen.press("question_mark")
        text = await screen.until("Show the keys")
        assert all(key.shown in text and key.help in text for key in KEYS)
        await screen.press("escape")
        await screen.without("Show the keys")

    browse(mind, play, size=(100, 40))


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (200, 50)])
def test_every_size_has_list_preview_and_keys(mind, three, size):
    async def play(screen):
        text = await screen.until("created:")
        lines = text.split("\n")
        assert len(lines) == size[1]
        assert all(len(line) <= size[0] for line in lines)
        assert "Green tea is drunk without milk" in screen.chosen
        assert lines[-1].startswith(" / search  enter open")
        assert lines[-1].endswith("? help  q quit")

    browse(mind, play, size=size)


def test_a_low_terminal_shows_the_preview_in_place_of_the_list(mind, three):
    async def play(screen):
        text = await screen.until("1/3")
        assert "created:" not in text
        await screen.press("enter")
        await screen.until("created:")
        await screen.without("Cups are")
        await screen.press("escape")
        await screen.until("Cups are")

    browse(mind, play, size=(60, 12))


def test_a_resize_arranges_the_parts_again(mind, three):
    async def play(screen):
        await screen.until("created:")
        await screen.pilot.resize_terminal(39, 20)
        await screen.until("terminal too small: 39×20, needs 40×10")
        await screen.pilot.resize_terminal(120, 30)
        text = await screen.until("created:")
        line = next(line for line in text.split("\n") if "Cups are" in line)
        assert "│" in line

    browse(mind, play)


def test_the_mouse_chooses_opens_and_presses_keys(mind, three):
    async def play(screen):
        await screen.until("created:")
        await screen.pilot.click("#rows", offset=(5, 1))
        await screen.until("cup.md")
        await screen.pilot.click("#rows", offset=(5, 1))
        await screen.when(lambda: screen.browser.preview.has_focus, "the focus")
        await screen.pilot.click("#footer", offset=(screen.text.split("\n")[-1].index("? help"), 0))
        await screen.until("Show the keys")

    browse(mind, play, size=(100, 40))


def test_an_error_of_a_command_is_shown_and_the_browser_goes_on(mind, three):
    def failing(view, path, given):
        if path == "search":
            raise OSError("the disk is on fire")
        return call(view, path, given)

    async def play(screen):
        await screen.until("1/3")
        await screen.press("slash", *"milk")
        await screen.until("error: unexpected error in mind")
        await screen.press("escape", "escape")
        await screen.until("1/3")

    browse(mind, play, run=failing)


def test_every_answer_passes_the_guard(mind, three):
    """Its record has a line for each command."""

    async def play(screen):
        await screen.until("created:")

    browse(mind, play)
    mind = mind.reopened()
    shown = call(mind, "audit show", {})
    assert isinstance(shown, AuditRows)
    tools = {row.tool for row in shown.calls}
    assert {"mind_list", "mind_show", "mind_graph"} <= tools


def test_a_secret_in_a_file_is_masked(mind, project):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write(project, "facts/a.md", note("a", f"The token\n\nIt is {token} here"))

    async def play(screen):
        await screen.until("It is ")
        assert token not in screen.text

    browse(mind, play)
