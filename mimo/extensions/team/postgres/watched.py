"""Connections that end if the server stops answering."""

from __future__ import annotations

from collections.abc import Generator
from time import monotonic
from typing import Any

from psycopg import Connection, Error, OperationalError
from psycopg.errors import ConnectionTimeout

CONNECT_SECONDS = 3

_SILENCE = 15.0
"""The time for which a statement without a limit runs until the server is asked for a sign."""


def settings() -> dict[str, Any]:
    """Returns the settings of connections."""
    return {
        "autocommit": True,
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "mind",
        "client_encoding": "UTF8",
        "keepalives_idle": 30,
        "tcp_user_timeout": 20_000,
    }


class Watched(Connection[tuple[Any, ...]]):
    """A connection that closes itself if a statement's answer does not come.

    A server that is paused, or whose disk hangs, keeps its sockets open, and its own limits do not
    run. Only a new connection shows whether it is paused, or busy with a long statement.
    """

    url = ""
    limit: float | None = None
    """The time after which a statement is given up without asking; None asks the server."""
    silent: Error | None = None
    """The error for which it closed itself."""

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """Waits for an answer, as psycopg does, while the server is alive."""
        return super().wait(self._while_alive(gen), *args, **kwargs)

    @staticmethod
    def check(sql: Watched) -> None:
        """Raises an error of PostgreSQL unless the server still has this connection."""
        sql.limit = CONNECT_SECONDS
        sql.execute("SELECT 1")

    def _while_alive(self, waiting: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        patience = _SILENCE if self.limit is None else self.limit
        due = monotonic() + patience
        try:
            request = next(waiting)
            while True:
                if ready := (yield request):
                    due = monotonic() + patience
                elif monotonic() > due:
                    self._check()
                    due = monotonic() + patience
                request = waiting.send(ready)
        except StopIteration as done:
            return done.value

    def _check(self) -> None:
        """Closes the connection and raises an error if the server does not answer another one."""
        if self.limit is None:
            try:
                Connection.connect(self.url, connect_timeout=CONNECT_SECONDS).close()
            except ConnectionTimeout as error:
                self.silent = error
            except OperationalError as error:
                # One that has no connection left is alive.
                self.silent = None if "FATAL" in str(error) else error
        else:
            self.silent = ConnectionTimeout("the server does not answer: timeout")
        if self.silent:
            self.close()
            raise self.silent
