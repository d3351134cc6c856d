"""How far long work is, told to the client that asked for it."""

from asyncio import CancelledError
from contextlib import suppress
from typing import Any

import anyio.from_thread
from mcp.server.context import ServerRequestContext

from mimo.surroundings import Progress


def listening(ctx: ServerRequestContext[Any, Any]) -> Progress:
    """Returns what tells the client of a request how far it is, from the thread that works.

    The number told always grows, as the protocol wants it; a client that is gone is not told.
    """
    told = -1.0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal told
        told = max(told + 1, float(done)) if not total else float(done)
        # Whatever goes wrong with telling must not stop the work, not even a caller that is gone.
        with suppress(Exception, CancelledError):
            anyio.from_thread.run(ctx.session.report_progress, told, float(total) or None, what)

    return tell
