"""Lists, searches, links and previews: keys are pressed, and the screen is read."""

from textual.events import Key

from mimo.call import Call
from mimo.extensions.browse.app import Query
from mimo.extensions.browse.model import PAGE
from mimo.features.audit.commands import AuditRows
from mimo.features.notes.reading import MemoryRow, MemoryRows
from mimo.memory.model import Kind
from mimo.operations.rows import TrustLabel, row_of
from tests.conftest import NOW
from tests.extensions.browse.conftest import browse, run_command
from tests.kit import memory, write


def test_the_list_is_shown_newest_first_with_a_preview_of_the_first(call, three):
    async def play(screen):
        text = await screen.until(".mind/")
        assert text.index("Green tea") < text.index("Cups are") < text.index("The pot is")
        assert "shop > memories" in text
        assert "1/3" in text
        assert "Green tea" in screen.chosen

    browse(call, play)


def test_letters_and_arrows_move_the_cursor_and_the_preview_follows(call, three):
    async def play(screen):
        await screen.until(".mind/")
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

    browse(call, play)


def test_tab_switches_between_list_and_preview_and_leaves_the_query(call, three):
    async def play(screen):
        await screen.until(".mind/")
        await screen.press("tab")
        assert screen.browser.preview.has_focus
        await screen.press("j", "j", "pagedown", "home", "end", "k")
        assert "Green tea" in await screen.until("1/3")
        await screen.press("shift+tab")
        assert screen.browser.rows.has_focus
        await screen.press("slash", "tab")
        assert screen.browser.rows.has_focus

    browse(call, play)


def test_a_slash_in_the_query_is_text_at_once(call, three):
    async def play(screen):
        await screen.until(".mind/")
        for key, sign in (("slash", "/"), ("d", "d"), ("slash", "/"), ("e", "e")):
            screen.browser.post_message(Key(key, sign))
        await screen.until("nothing found")
        assert screen.browser.query_one(Query).value == "d/e"
        await screen.press("escape", "question_mark", "slash")
        assert screen.browser.query_one(Query).value == "d/e"

    browse(call, play)


def test_an_ingested_file_and_a_memory_for_all_projects_are_previewed(call, project):
    (project / "a.md").write_text("# One\n\ntext\n\n# Two\n\nmore\n", encoding="utf-8")
    run_command(call, "ingest", {"path": str(project / "a.md")})
    run_command(call, "add", {"content": "Always use pnpm", "user": True})

    async def play(screen):
        await screen.until("a.md")
        assert "error" not in screen.text
        await screen.press("slash", *"pnpm")
        await screen.until("Always use pnpm  user")

    browse(call, play)


def test_typing_searches_and_escape_shows_all_again(call, three):
    async def play(screen):
        await screen.until("1/3")
        await screen.press("slash", *"milk")
        await screen.until("> search")
        await screen.without("Cups are")
        assert "Green tea" in screen.chosen
        await screen.press("escape", "escape")
        await screen.until("Cups are")

    browse(call, play)


def test_a_query_of_the_command_line_is_the_first_one(call, three):
    async def play(screen):
        await screen.until("1/1")
        assert "Cups are" in screen.chosen

    browse(call, play, query="washed by hand")


def test_an_answer_to_an_older_query_is_not_shown(call, three):
    async def play(screen):
        await screen.until("1/3")
        old = screen.browser.place
        await screen.press("slash", *"milk")
        await screen.until("1/1")
        page = screen.browser.reader.page(old, 0, lambda: False)
        screen.browser._show_page(old, page)
        assert "Cups are" not in screen.text

    browse(call, play)


def test_links_are_followed_in_both_directions_and_back(call, three):
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

    browse(call, play)


def test_a_memory_without_links_and_a_link_to_a_missing_memory(call, three):
    link = "links:\n- {to: no, type: builds_on}\n"
    write(three, "facts/old.md", memory("old", "An old memory", day=1, more=link))

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

    browse(call, play)


def test_an_empty_project_names_the_command_that_stores_a_memory(call):
    async def play(screen):
        await screen.until("no memories; `mind add TEXT` stores one")
        await screen.press("d", "e", "g", "y", "enter", "j", "k", "G", "r")
        await screen.until("nothing to review")

    browse(call, play)


async def watch(screen):
    """Looks for changes as the timer does; a busy thread would wait for its next time."""
    await screen.when(lambda: not screen.browser._lists.is_busy, "an idle thread")
    screen.browser._watch()


def test_changes_of_another_process_appear_and_the_cursor_stays_on_its_memory(call, three):
    async def play(screen):
        await screen.until(".mind/")
        await screen.press("j")
        await screen.until("cup.md")
        write(three, "facts/new.md", memory("new", "A newer memory", day=9))
        await watch(screen)
        await screen.until("3/4")
        assert "Cups are" in screen.chosen
        (three / ".mind/facts/cup.md").unlink()
        await watch(screen)
        await screen.until("3/3")
        assert "The pot is" in screen.chosen

    browse(call, play)


def test_a_memory_that_was_removed_under_the_cursor_is_reported(call, three):
    async def play(screen):
        await screen.until(".mind/")
        (three / ".mind/facts/cup.md").unlink()
        await screen.press("j")
        await screen.until("error: Memory not found")

    browse(call, play)


def test_only_the_pages_that_are_seen_are_read_of_10_000_memories(call):
    total, asked = 10_000, []

    def listed(view, path, given):
        if path != "list":
            return run_command(view, path, given)
        asked.append(given["offset"])
        rows = range(given["offset"], min(total, given["offset"] + given["limit"]))
        usual = {
            "type": Kind.FACT,
            "tags": (),
            "importance": 0.5,
            "created_at": NOW,
            "trust": TrustLabel.TRUSTED,
            "file": "x.md",
        }
        memories = tuple(
            row_of(None, MemoryRow, id=f"m{n}", title=f"Memory {n}", **usual) for n in rows
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

    browse(call, play, run=listed)
    assert set(asked) == {0, total - PAGE}


def test_passing_by_is_no_use_of_a_memory_but_opening_is(call, three):
    async def play(screen):
        await screen.until(".mind/")
        await screen.press("j")
        await screen.until("cup.md")
        await screen.press("slash", *"milk")
        await screen.until("1/1")
        assert call.mind.accesses.uses() == {}
        await screen.press("enter", "enter")
        await screen.when(lambda: _used(call) == {"tea"}, "the use")

    browse(call, play)


def _used(call):
    call.mind.accesses.flush()
    return set(call.mind.accesses.uses())


def test_an_error_of_a_command_is_shown_and_the_browser_goes_on(call, three):
    def failing(view, path, given):
        if path == "search":
            raise OSError("the disk is on fire")
        return run_command(view, path, given)

    async def play(screen):
        await screen.until("1/3")
        await screen.press("slash", *"milk")
        await screen.until("error: can't use")
        await screen.press("escape", "escape")
        await screen.until("1/3")

    browse(call, play, run=failing)


def test_every_answer_passes_the_guard(call, three):
    """Its record has a line for each command."""

    async def play(screen):
        await screen.until(".mind/")

    browse(call, play)
    call = Call(call.mind.reopened())
    shown = run_command(call, "audit show", {})
    assert isinstance(shown, AuditRows)
    tools = {row.tool for row in shown.calls}
    assert {"mind_list", "mind_show", "mind_graph"} <= tools


def test_a_secret_in_a_file_is_masked(call, project):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write(project, "facts/a.md", memory("a", f"The token\n\nIt is {token} here"))

    async def play(screen):
        await screen.until("It is ")
        assert token not in screen.text

    browse(call, play)
