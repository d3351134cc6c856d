"""How far long work is, told to the client that asked for it."""

from contextlib import suppress
from typing import Any

import anyio
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
        with suppress(RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            anyio.from_thread.run(ctx.session.report_progress, told, float(total) or None, what)

    return tell
