"""MCP: the command set for agents, over standard input and output or HTTP."""

import ctypes
import gc
import logging
import signal
import sys
from collections.abc import Callable

import anyio
from anyio.abc import TaskStatus


def log_to_stderr(formatter: logging.Formatter) -> None:
    """Logs warnings and errors of this process to standard error."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(formatter)


_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE = 1 << 20
"""The size in bytes of blocks that are outside of the heap."""
_GARBAGE = 10_000
"""The number of new objects that starts a garbage collection. Commands begin with a larger one."""


def return_memory() -> None:
    """Lets the memory of a request go back: from Python's garbage, and from the heap to the system.

    By default, the C library glibc has a heap for each thread, and takes blocks of up to 32 MB from
    it once such a block was freed. The parts that are free between others stay with the process:
    44 MB after a few requests of 5 MB. One heap is enough, since Python lets one thread work at a
    time.
    """
    gc.set_threshold(_GARBAGE)
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _LARGE)


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
