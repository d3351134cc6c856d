"""MCP: the command set for agents, over standard input and output or HTTP."""

import logging
import signal
import sys
from collections.abc import Callable

import anyio
from anyio.abc import TaskStatus

GRACE_SECONDS = 5.0
"""The time that running calls have to finish when the server ends."""


def log_to_stderr(formatter: logging.Formatter) -> None:
    """Logs warnings and errors of this process to standard error."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(formatter)


async def until_a_signal(
    stop: Callable[[], object], *, task_status: TaskStatus[list[signal.Signals]]
) -> None:
    """Calls `stop` at each signal that asks the program to end, and stores the signals."""
    ended: list[signal.Signals] = []
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started(ended)
        async for number in signals:
            ended.append(signal.Signals(number))
            stop()
