"""The list of tools: all of them, or, if the user wants that, those that fit the latest prompt.

A hook of the client writes the tools for the latest prompt to a file. The server polls this file,
notifies the client that its list has changed, and narrows the list only for a client that then
asks for it again. Such a client gets the tools for the newest prompt, whenever it asks. A tool that
is not listed can still be called. In doubt, every tool is listed.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from mcp.server import NotificationOptions
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged
from mcp_types import Tool
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mimo.call.table import ALWAYS
from mimo.data import disk
from mimo.errors import MindError
from mimo.features.hooks import exposure as store
from mimo.features.hooks.exposure import SURE, Exposure
from mimo.server import Mode
from mimo.text.tool_names import underscored

log = logging.getLogger("mind.exposure")

POLL_SECONDS = 0.5
LIFETIME_MS = 60 * 60 * 1000
"""The time for which a client may keep a list that does not change while the server runs."""

PATIENCE_SECONDS = 0.5
"""The time in which a client must ask for its changed list."""

Context = ServerRequestContext[Any, Any]


class Listing:
    """The tools listed for one connection, and their changes."""

    def __init__(
        self,
        mode: Mode = Mode.STATIC,
        root: Callable[[], Path | None] = lambda: None,
        *,
        patience: float = PATIENCE_SECONDS,
        poll: float = POLL_SECONDS,
    ) -> None:
        """Begins with every tool; `root` gives the project, as soon as there is one."""
        self.mode = mode
        self._root = root
        self._patience, self._poll = patience, poll
        self._tool_names: tuple[str, ...] | None = None
        self._listens_again = False
        self._waiting = False
        self._seen: disk.Stamp | None = None
        self._asked = anyio.Event()
        self._has_asked = False
        self._session: ServerSession | None = None
        self._sessions: list[str] = []
        self._subscribers = 0
        self.bus = InMemorySubscriptionBus()

    def chosen(self, tools: Mapping[str, Tool]) -> list[Tool]:
        """Returns the listed ones of all tools by their canonical names, in a fixed order."""
        if self.mode is Mode.STATIC or not (self._listens_again or self._waiting):
            return list(tools.values())
        self._read_newest()
        if self._tool_names is None:
            return list(tools.values())
        head = [name for name in self._tool_names if name in tools]
        if not head:
            return list(tools.values())
        return [tools[name] for name in dict.fromkeys([*head, *ALWAYS]) if name in tools]

    def _read_newest(self) -> None:
        """Takes over a prompt that came after the last poll, for a client that asks by itself."""
        try:
            stamp = self._stamp()
            if stamp == self._seen:
                return
            root = self._root()
            exposure = store.read(root) if root and stamp else None
        except (OSError, MindError):
            return
        if exposure is not None and self._is_another_window(exposure.session):
            self._tool_names = None  # The next poll gives up.
        else:
            self._seen = stamp
            self._take(exposure)

    def _take(self, exposure: Exposure | None) -> bool:
        """Applies the tools for a prompt; returns whether the list changes."""
        previous, self._tool_names = self._tool_names, _tool_names(exposure)
        level = logging.INFO if exposure else logging.WARNING
        log.log(level, "%s", described(exposure, self._tool_names))
        return previous != self._tool_names

    def asked(self, ctx: Context) -> None:
        """Records that a client asked for the list."""
        if self.mode is Mode.STATIC:
            return
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._session = ctx.session
        self._has_asked = True
        self._asked.set()
        self._asked = anyio.Event()

    def options(self) -> NotificationOptions:
        """Returns the notifications that clients of the older protocol receive."""
        return NotificationOptions(tools_changed=self.mode is not Mode.STATIC)

    def lifetimes(self) -> dict[CacheableMethod, CacheHint]:
        """Returns how long clients of the newer protocol may keep lists that only change with mind.

        Memories change at any time, and so does a list of tools that follows prompts.
        """
        fixed: list[CacheableMethod] = ["prompts/list", "resources/templates/list"]
        if self.mode is Mode.STATIC:
            fixed += ["tools/list", "server/discover"]
        return dict.fromkeys(fixed, CacheHint(ttl_ms=LIFETIME_MS))

    @property
    def changes(self) -> bool:
        """True if clients are notified of changes of the list."""
        return self.mode is not Mode.STATIC

    @contextmanager
    def followed(self, *, counts: bool) -> Iterator[None]:
        """Counts a stream of notifications while it is open."""
        self._subscribers += counts
        try:
            yield
        finally:
            self._subscribers -= counts

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Follows the prompts while a client is connected."""
        if self.mode is Mode.STATIC:
            yield
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            yield
            tasks.cancel_scope.cancel()

    async def _watch(self) -> None:
        """Polls for a new prompt; after any error, every tool is listed."""
        try:
            self._seen = self._stamp()  # The prompt of an earlier session does not count.
            while self.mode is not Mode.STATIC:
                await anyio.sleep(self._poll)
                if (stamp := self._stamp()) != self._seen:
                    self._seen = stamp
                    root = self._root()
                    await self.changed(store.read(root) if root and stamp else None)
        except Exception as error:  # noqa: BLE001 - tools must stay listed after any error
            await self._give_up(f"following the prompts failed ({error!r})")

    def _stamp(self) -> disk.Stamp | None:
        """Returns the stamp of the exposure file, or None if there is none."""
        with suppress(OSError, MindError):
            root = self._root()
            return disk.stamp(root / store.PLACE) if root else None
        return None

    async def changed(self, exposure: Exposure | None) -> None:
        """Applies the tools for a prompt, or None if they can't be read."""
        if self.mode is Mode.STATIC:
            return
        if exposure is not None and self._is_another_window(exposure.session):
            await self._give_up("two sessions are active in this project")
            return
        if self._take(exposure) and not await self._refreshed():
            await self._give_up("the client does not ask for a list that has changed")

    def _is_another_window(self, session: str) -> bool:
        """Returns whether a session appears again after another: two sessions then alternate."""
        if self._sessions and self._sessions[-1] == session:
            return False
        if session in self._sessions:
            return True
        self._sessions = [*self._sessions[-20:], session]
        return False

    async def _refreshed(self) -> bool:
        """Returns whether the client asked for the list in time after it was notified.

        Returns True for a client that has not asked for any list yet.
        """
        if not self._has_asked:
            await self._notify()
            return True
        if self._subscribers == 0 and self._session is None:
            return False
        asked, self._waiting = self._asked, True
        try:
            with anyio.move_on_after(self._patience):
                await self._notify()
                await asked.wait()
                self._listens_again = True
                return True
        except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            log.warning("the client could not be notified of a change: %r", error)
        finally:
            self._waiting = False
        return False

    async def _notify(self) -> None:
        if self._subscribers:
            await self.bus.publish(ToolsListChanged())
        elif self._session is not None:
            await self._session.send_tool_list_changed()

    async def _give_up(self, why: str) -> None:
        """Lists every tool from now on, and notifies a client with a narrowed list."""
        log.warning("%s: every tool is listed from now on", why)
        shown_fewer = self._listens_again and self._tool_names is not None
        self.mode, self._tool_names = Mode.STATIC, None
        if shown_fewer:
            with anyio.move_on_after(self._patience):
                await self._notify()


def _tool_names(exposure: Exposure | None) -> tuple[str, ...] | None:
    """Returns the tools that fit a prompt, or None for every tool."""
    return exposure.tools if exposure and exposure.confidence >= SURE else None


def described(exposure: Exposure | None, names: tuple[str, ...] | None) -> str:
    """Returns the intent of a prompt and the listed tools in one line."""
    listing = f"lists {', '.join(map(underscored, names))}" if names else "lists every tool"
    if exposure is None:
        return f"the tools for the newest prompt can't be read: {listing}"
    sure = round(exposure.confidence * 100)
    return f"the newest prompt is {exposure.intent} ({sure} %): {listing}"
