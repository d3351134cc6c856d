"""MCP: the command set for agents, over standard input and output or HTTP."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

EXPOSURE = "MIND_EXPOSURE"
"""The variable that overrides the setting `mcp.exposure`."""

GRACE_SECONDS = 5.0
"""The time that running calls have to finish when the server ends."""

OPENING = "mind/opening"
"""The id by which the SDK gets the request that opened a connection, if it is answered before."""

_CHUNK = 1 << 16


class Mode(StrEnum):
    """The condition under which the list of tools is narrowed."""

    STATIC = "static"
    """Never."""
    DYNAMIC = "dynamic"
    """For a client that asks for a changed list."""


def mode_of(setting: str, environ: Mapping[str, str]) -> Mode:
    """Returns the active mode; an unknown word is logged and lists every tool."""
    word = environ.get(EXPOSURE) or setting
    try:
        return Mode(word)
    except ValueError:
        logging.getLogger("mind.exposure").warning(
            "%s=%s is neither static nor dynamic: every tool is listed", EXPOSURE, word
        )
        return Mode.STATIC


def chunk_of(descriptor: int) -> bytes:
    """Returns some bytes, or none at the end of the input or if it can't be read."""
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:
        return b""


def log_to_stderr(formatter: logging.Formatter) -> None:
    """Logs warnings and errors of this process to standard error."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(formatter)


async def until_a_signal(
    stop: Callable[[], object], *, task_status: "TaskStatus[list[signal.Signals]]"
) -> None:
    """Calls `stop` at each signal that asks the program to end, and stores the signals."""
    import anyio

    ended: list[signal.Signals] = []
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started(ended)
        async for number in signals:
            ended.append(signal.Signals(number))
            stop()
