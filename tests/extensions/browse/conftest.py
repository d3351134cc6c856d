"""A browser without a terminal: its keys are pressed by a pilot, and its screen is read as text."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

import pytest
from textual.pilot import Pilot

from mimo.call import Call
from mimo.call.table import all_commands
from mimo.extensions.browse import app
from mimo.extensions.browse.app import Browser
from mimo.operations.invoke import invoke
from tests.kit import memory, write

PATIENCE = 60
"""Seconds after which words that do not appear count as never appearing."""

_COMMANDS = all_commands()


def run_command(view: Call, path: str, given: Mapping[str, object]) -> object:
    """Runs a command as the command line does."""
    return invoke(_COMMANDS.at(path), view, given)


class Screen:
    """The browser, as its user sees it."""

    def __init__(self, browser: Browser, pilot: "Pilot[None]") -> None:
        self.browser = browser
        self.pilot = pilot

    @property
    def text(self) -> str:
        """The whole screen."""
        strips = self.browser.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    @property
    def chosen(self) -> str:
        """The row under the cursor."""
        return next((line for line in self.text.split("\n") if line.startswith("> ")), "")

    async def until(self, words: str) -> str:
        """Returns the screen once it shows some words."""
        return await self.when(lambda: words in self.text, words)

    async def without(self, words: str) -> str:
        """Returns the screen once it no longer shows some words."""
        return await self.when(lambda: words not in self.text, f"not {words}")

    async def when(self, holds: Callable[[], bool], what: str) -> str:
        """Returns the screen once a condition holds."""
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"{what!r} never came:\n{self.text}"
            await self.pilot.pause(0.02)
        return self.text

    async def press(self, *keys: str) -> None:
        """Presses keys."""
        await self.pilot.press(*keys)


Play = Callable[[Screen], Awaitable[None]]


@pytest.fixture(autouse=True)
def _rarely_watching(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for the timer; those of the watching call it."""
    monkeypatch.setattr(app, "WATCHING_SECONDS", 3600.0)


def browse(
    call: Call,
    play: Play,
    *,
    query: str = "",
    size: tuple[int, int] = (100, 30),
    run: object = run_command,
) -> None:
    """Runs a browser, in which `play` presses keys."""

    async def main() -> None:
        browser = Browser(call, run, query)  # type: ignore[arg-type] # a test may give another
        async with browser.run_test(size=size) as pilot:
            await play(Screen(browser, pilot))

    asyncio.run(main())


@pytest.fixture
def three(project):
    """Three memories: the newest is on the top of a list."""
    write(project, "facts/tea.md", memory("tea", "Green tea is drunk without milk", day=3))
    write(project, "facts/cup.md", memory("cup", "Cups are washed by hand", day=2))
    link = "links:\n- {to: tea, type: builds_on}\n"
    write(project, "facts/pot.md", memory("pot", "The pot is for tea only", day=1, more=link))
    return project
