"""Connections of the HTTP servers: one that sends no request does not keep others out.

A server has a limited number of connections, and any program of the machine can open some of them.
"""

from __future__ import annotations

import asyncio
import resource
from itertools import chain
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

WAITING_SECONDS = 10.0
"""The time in which a client has to send the head of its next request."""

_FULL = 0.9
"""The share of the permitted connections from which the longest waiting one is closed."""


_MOST_HEAD = 16 * 1024
"""The most bytes of the first line and the headers of a request."""

MOST = 1_000
"""The most connections of a server."""


def most() -> int:
    """Returns the number of connections that a server takes: at most half of the open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(2, min(MOST, soft // 2))


class Connection(H11Protocol):
    """A connection that is closed while it waits for long, or while others need its place."""

    since = 0.0
    """The time at which it was opened."""
    _answered: Any = None
    _timer: asyncio.TimerHandle | None = None

    @property
    def has_asked(self) -> bool:
        """Returns whether a request has come."""
        cycle: Any = self.cycle
        return cycle is not None

    @property
    def is_waiting(self) -> bool:
        """Returns whether the next request has not come."""
        return not self.has_asked or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Makes room if there are many connections."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._check()
        clients = [item for item in self.connections if isinstance(item, Connection)]
        opened = [item for item in clients if not item.transport.is_closing()]
        waiting = [item for item in opened if item is not self and item.is_waiting]
        if waiting and len(opened) > _FULL * (self.limit_concurrency or MOST):
            # Clients that have sent a request before are closed last.
            oldest = min(waiting, key=lambda item: (item.has_asked, item.since))
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops waiting."""
        if self._timer:
            self._timer.cancel()
        super().connection_lost(exc)

    def _check(self) -> None:
        """Closes the connection if it waits, and has done so since the last time."""
        if self._timer and self.is_waiting and self.cycle is self._answered:
            self.transport.abort()
            return
        self._answered = self.cycle if self.is_waiting else None
        self._timer = self.loop.call_later(WAITING_SECONDS, self._check)


def _limited(application: Any) -> Any:
    """Returns an application that refuses a request with a large head.

    The parser limits only one that comes in parts.
    """

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        parts = chain((scope["raw_path"], scope["query_string"]), *scope["headers"])
        if sum(len(part) + 2 for part in parts) <= _MOST_HEAD:
            await application(scope, receive, send)
            return
        closes = [(b"connection", b"close")]
        await send({"type": "http.response.start", "status": 431, "headers": closes})
        text = b"The first line and the headers have at most 16 KiB\n"
        await send({"type": "http.response.body", "body": text})

    return answer


def config(application: Any, patience: int) -> uvicorn.Config:
    """Returns the settings of a server; at its end, open connections have `patience` seconds.

    It names no event loop: the callers run the server in one of theirs, that of asyncio.
    """
    return uvicorn.Config(
        _limited(application),
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        limit_concurrency=most(),
        timeout_graceful_shutdown=patience,
    )
