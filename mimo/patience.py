"""How long one command waits for other processes, all its locks and databases together."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

WAIT_SECONDS = 10.0
"""How long a command may wait in total, beyond the time that it worked in between."""


class Patience:
    """What one command may still wait."""

    def __init__(self) -> None:
        """Nothing was waited for yet."""
        self._left = WAIT_SECONDS
        self._since = time.monotonic()

    @property
    def left(self) -> float:
        """Returns the seconds that it may wait now; work earns back what waiting has cost."""
        return min(WAIT_SECONDS, self._left + time.monotonic() - self._since)

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Counts the time of the block, in which the command waits."""
        left, start = self.left, time.monotonic()
        try:
            yield
        finally:
            self._since = time.monotonic()
            self._left = max(0.0, left - (self._since - start))


_CURRENT: ContextVar[Patience | None] = ContextVar("_CURRENT", default=None)


@contextmanager
def shared() -> Iterator[None]:
    """Gives all waits of the block one limit; an inner block shares that of the outer one."""
    token = _CURRENT.set(_CURRENT.get() or Patience())
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Patience:
    """Returns that of the running command; outside of one each wait has its own."""
    return _CURRENT.get() or Patience()


def begin(connection: "sqlite3.Connection", wait: float = WAIT_SECONDS) -> None:
    """Begins a transaction that writes, once other processes have ended theirs.

    Raises `sqlite3.OperationalError` if that takes longer than `wait`, or than the command may
    wait.
    """
    patience = current()
    limit_waits(connection, wait)
    with patience.spent():
        connection.execute("BEGIN IMMEDIATE")


def limit_waits(connection: "sqlite3.Connection", wait: float = WAIT_SECONDS) -> None:
    """Lets statements wait for other processes no longer than the command may."""
    milliseconds = round(1000 * min(wait, current().left))
    connection.execute(f"PRAGMA busy_timeout = {milliseconds}")
