"""The folders that a client names as its roots.

A client of the older protocol is asked during a call. In the newer one, the answer to a call is
that roots are needed, and the client repeats the call with them.
"""

import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
from mcp import MCPError
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CallToolRequestParams,
    GetPromptRequestParams,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    NotificationParams,
    ReadResourceRequestParams,
    Root,
)
from pydantic import ValidationError

from mimo.operations.listening import Memory
from mimo.server.app import App
from mimo.server.exposure import Context

log = logging.getLogger("mind")

ROOTS_SECONDS = 10.0
"""The time that a client has to list its roots, and until it is asked again if it did not."""

_KEPT_SECONDS = 60.0
"""The time until a client of the newer protocol, which reports no changes, is asked again."""

_MOST_ASKS = 3
"""The number of times that a call asks for roots that change meanwhile."""

_MOST_ROOTS = 100
_KEY = "roots"


def are_offered(ctx: Context) -> bool:
    """Returns whether a client lists its roots."""
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and capabilities.roots is not None


async def _listed(ctx: Context) -> list[Path] | None:
    """Returns the roots of a client of the older protocol; None if it did not list them."""
    try:
        answer = await ctx.session.send_request(
            ListRootsRequest(),
            ListRootsResult,
            request_read_timeout_seconds=ROOTS_SECONDS,
            metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
        )
    except (MCPError, NoBackChannelError, ValidationError, TimeoutError) as error:
        log.warning("a client did not list its roots: %s", type(error).__name__)
        return None
    return folders_of(answer.roots)


def folders_of(roots: Iterable[Root]) -> list[Path]:
    """Returns the folders of this machine among roots, in their order."""
    folders = []
    for root in list(roots)[:_MOST_ROOTS]:
        parts = urlsplit(str(root.uri))
        path = unquote(parts.path)
        is_here = parts.scheme == "file" and parts.netloc in ("", "localhost")
        if is_here and path.startswith("/") and "\0" not in path:
            folders.append(Path(path))
    return folders


class Roots:
    """The time until which a client's roots are current, and the call that asks for them again."""

    def __init__(self) -> None:
        """The client was not asked yet."""
        self.until = 0.0
        self._changes = 0
        self._asking = anyio.Lock()

    def expire(self) -> None:
        """Has the client asked again, because its roots changed."""
        self._changes += 1
        self.until = 0.0

    async def update(self, ctx: Context, take: Callable[[list[Path] | None], None]) -> None:
        """Asks a client of the older protocol for its roots if they are not current.

        One call at a time asks. `take` gets the folders, or None if the client did not list them.
        """
        async with self._asking:
            for _ in range(_MOST_ASKS if time.monotonic() >= self.until else 0):
                changes = self._changes
                folders = await _listed(ctx)
                if changes == self._changes:
                    seconds = ROOTS_SECONDS if folders is None else math.inf
                    self.until = time.monotonic() + seconds
                    take(folders)
                    return


class Rooted(App):
    """The server of a client that may name the folders in which its user works."""

    def __init__(self, *args: Any, move: Callable[[list[Path]], None], **settings: Any) -> None:
        """Takes what makes the memory that of the first project among some folders."""
        super().__init__(*args, **settings)
        self._move = move
        self._roots = Roots()

    def server(self) -> Any:
        """Returns the protocol server, which asks for roots and hears of changed ones."""
        server = super().server()
        for method, params, answer in (
            ("tools/call", CallToolRequestParams, self.call_tool),
            ("resources/read", ReadResourceRequestParams, self.read_resource),
            ("prompts/get", GetPromptRequestParams, self.get_prompt),
        ):
            server.add_request_handler(method, params, partial(self._with_roots, answer))
        name = "notifications/roots/list_changed"
        server.add_notification_handler(name, NotificationParams, self._changed)
        return server

    async def memory_of(self, ctx: Context) -> Memory:
        """Returns the memory, after a client of the older protocol has listed its roots."""
        if are_offered(ctx) and ctx.session.can_send_request:
            await self._roots.update(ctx, self._take)
        return self._memory

    async def _with_roots(
        self, answer: Callable[[Context, Any], Awaitable[Any]], ctx: Context, params: Any
    ) -> Any:
        """Returns the answer to a request; before, one of the newer protocol has to name roots."""
        if are_offered(ctx) and not ctx.session.can_send_request:
            response = (params.input_responses or {}).get(_KEY)
            if isinstance(response, ListRootsResult):
                self._roots.until = time.monotonic() + _KEPT_SECONDS
                self._take(folders_of(response.roots))
            elif response is None and time.monotonic() >= self._roots.until:
                return InputRequiredResult(input_requests={_KEY: ListRootsRequest()})
        return await answer(ctx, params)

    def _take(self, folders: list[Path] | None) -> None:
        if folders is not None:
            self._move(folders)

    async def _changed(self, _: Context, __: NotificationParams | None) -> None:
        self._roots.expire()
