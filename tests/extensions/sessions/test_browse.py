"""Earlier sessions in `mind browse`: keys are pressed, and the screen is read."""

from pathlib import Path

from mimo.call import Call
from tests.extensions.browse.conftest import browse
from tests.extensions.sessions.talks import kept, user
from tests.kit import fact

__all__ = ["kept", "user"]


def test_a_key_lists_sessions_which_are_searched_and_previewed(kept: Call) -> None:
    fact(kept, "tea", "Green tea")

    async def play(screen):
        await screen.until("shop > memories")
        await screen.press("s")
        await screen.until("shop > sessions")
        await screen.until("The root cause was a missing index")
        assert "Let's use keyset pagination" in screen.chosen
        await screen.press("d")
        await screen.until("is not a memory")
        await screen.press("slash", *"helper")
        await screen.until("search of sessions")
        await screen.until("Renamed.")
        await screen.press("enter", "escape")
        await screen.until("shop > sessions")
        await screen.press("escape")
        await screen.until("shop > memories")
        await screen.until("Green tea")

    browse(kept, play)


def test_without_the_setting_the_key_shows_how_to_turn_it_on(call: Call, project: Path) -> None:
    fact(call, "tea", "Green tea")

    async def play(screen):
        await screen.until("shop > memories")
        await screen.press("s")
        await screen.until("earlier sessions are not kept")
        assert "shop > memories" in screen.text

    browse(call, play)
