"""The process of the viewer: its port, its memory, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import partial
from html import escape
from pathlib import Path
from socket import socket
from tempfile import NamedTemporaryFile
from threading import Thread

import uvicorn

from mimo.api import (
    TERMINATED,
    Call,
    Caller,
    Mind,
    MindError,
    Surface,
    connections,
    finding,
    installation,
    listening,
    loopback,
    refresh,
    running,
    searching,
    status_of,
)
from mimo.extensions.web.app import Changes, Viewer
from mimo.extensions.web.gate import ENTRY

_PATIENCE_SECONDS = 1

_LEADING = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>mind</title><p><a href="{url}">Open the viewer</a></p></html>
"""


class _Server(uvicorn.Server):
    """A server that ends the streams of changes before it waits for its connections.

    It calls `ready` once a signal ends it in order.
    """

    def __init__(
        self, config: uvicorn.Config, changes: Changes, ready: Callable[[], object]
    ) -> None:
        super().__init__(config)
        self._changes, self._ready = changes, ready

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begins to listen."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Ends all connections."""
        self._changes.close()
        await super().shutdown(sockets)


def serve(call: Call, port: int, started: Callable[[str], None]) -> str:
    """Serves the viewer until Ctrl-C, and returns its address.

    `started` gets the URL that opens it. Raises `StorageFailed` if the port is busy, and
    `KeyboardInterrupt` for SIGTERM.
    """
    installation.keep()
    token, changes = loopback.new_token(), Changes()
    memory = listening.Memory(call.mind.reopened)
    caller = Caller(surface=Surface.CLI, agent=call.agent)
    mind = call.mind
    root = mind.project.root if mind.has_project else None
    listed = running.registered(mind.home, running.Kind.WEB, root, mind.now())
    with loopback.listening(port, hint="leave out --port to use any free port") as listener, listed:
        port = listener.getsockname()[1]
        viewer = Viewer(memory.mind, caller, token, changes)
        ready = partial(started, f"http://{loopback.ADDRESS}:{port}{ENTRY}{token}")
        server = _Server(
            connections.config(viewer.application(port), _PATIENCE_SECONDS), changes, ready
        )
        try:
            # A first index may take long, so it is made before the URL is shown.
            refresh.refresh(Call(memory.mind()))
            changes.start(lambda: _folders(memory.mind()))
            Thread(target=_warm, args=(memory,), name="warming", daemon=True).start()
            run = partial(asyncio.run, server.serve([listener]))
            try:
                Context().run(run)  # Each answer has its own limit for waiting, not that of `web`.
            except KeyboardInterrupt as error:
                if status_of(error) == TERMINATED:
                    raise
        finally:
            memory.close()
    return f"http://{loopback.ADDRESS}:{port}/"


@contextmanager
def leading_to(url: str) -> Iterator[str]:
    """Yields the address of a file that leads a browser to a URL with a token.

    Other users can read the arguments of the program that opens a browser, but not the file.
    """
    with NamedTemporaryFile("w", prefix="mind-", suffix=".html", encoding="utf-8") as file:
        file.write(_LEADING.format(url=escape(url)))
        file.flush()
        yield Path(file.name).as_uri()


def _warm(memory: listening.Memory) -> None:
    """Loads what the first search needs, which takes a second, before the user has typed it."""
    with suppress(MindError, OSError):
        options = finding.Options(limit=1)
        searching.search(Call(memory.mind()), "memory", options, counted=False)


def _folders(mind: Mind) -> list[Path]:
    """Returns the existing places whose changes are reported: memories, approvals, global edges.

    A missing one is among them when it appears, which is noticed within some seconds.
    """
    folders = [*(mind.store.folders() or (mind.folder,))]
    folders += [mind.home / name for name in ("trust.db", "edges", "memories")]
    return [folder for folder in folders if folder.exists()]
