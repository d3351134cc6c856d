"""Connections to the server of the shared index, and its errors in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, LiteralString
from urllib.parse import urlsplit

from mimo.errors import StorageFailed
from mimo.frozen import NamedTuple
from mimo.index.postgres import schema

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

    Connected = Connection[tuple[Any, ...]]

_CONNECT_SECONDS = 3
_QUERY_SECONDS = 10
"""The time after which a query of a search is given up."""

_AGAIN_SECONDS = 10.0
"""The time for which a server that could not be reached is not asked again."""

_MOST_CONNECTIONS = 8

_REASONS = {
    "28P01": ("the password is wrong", "put it into ~/.pgpass, or set PGPASSFILE"),
    "28000": ("it refuses this role", "check the role in the URL and the server's pg_hba.conf"),
    "3D000": ("the database does not exist", "create it, or correct the URL"),
    "53300": ("it has no connection left", "try again later, or raise its max_connections"),
    "57P01": ("it was stopped", "try again when it runs"),
    "57P02": ("it crashed", "try again when it runs"),
    "57P03": ("it is starting", "try again in a few seconds"),
    "57014": (f"it did not answer within {_QUERY_SECONDS} s", "try again later"),
    "55P03": ("another process holds a lock on it", "try again later"),
    "25006": ("it can only be read", "connect to the primary server to write"),
    "42501": ("this role may not do that", "ask the owner of the database for the right"),
    "53100": ("its disk is full", "free some space there"),
}
"""Reasons and hints for error codes of PostgreSQL."""


class SharedIndexFailed(StorageFailed):
    """The shared index can't be used now; the files and the local index are complete."""


class Limits(NamedTuple):
    """The role and the patience of a transaction."""

    role: str | None = None
    """The role to take for the transaction; None for the one of the connection."""
    seconds: int = _QUERY_SECONDS
    """The time after which a statement is given up; 0 for none."""


_READING, _WRITING = Limits(), Limits(seconds=0)


def password_of(url: str) -> str:
    """Returns the password in a URL, in its authority or its parameters; empty for none."""
    with suppress(ValueError):
        if password := urlsplit(url).password:
            return password
    match = re.search(r"[?&]password=([^&]*)", url)
    return match[1] if match else ""


def shown(url: str) -> str:
    """Returns the server and the database of a URL, without roles, passwords and parameters."""
    with suppress(ValueError):
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2] or "this machine"
        return f"{host}{parts.path}"
    return "the URL of the index"


class Server:
    """The server of the shared index; threads share its connections."""

    def __init__(self, url: str) -> None:
        """Take the URL. Nothing is opened yet."""
        self.url = url
        self._pool: ConnectionPool[Connected] | None = None
        self._failure: tuple[float, SharedIndexFailed] | None = None

    @property
    def place(self) -> str:
        """The server and the database, for messages."""
        return shown(self.url)

    def close(self) -> None:
        """Closes the connections."""
        if self._pool is not None:
            self._pool.close(timeout=1.0)
            self._pool = None

    @contextmanager
    def reading(self, limits: Limits = _READING) -> Iterator[Connected]:
        """Yields a connection all of whose reads see the same state. Raises `SharedIndexFailed`."""
        with self._connection() as sql, self.translated():
            sql.execute(_begin("ISOLATION LEVEL REPEATABLE READ READ ONLY", limits))
            try:
                yield sql
            finally:
                _roll_back(sql)

    @contextmanager
    def writing(self, limits: Limits = _WRITING) -> Iterator[Connected]:
        """Yields a connection in a transaction, which is committed if the block succeeds.

        Raises `SharedIndexFailed`.
        """
        with self._connection() as sql, self.translated():
            sql.execute(_begin("READ WRITE", limits))
            try:
                yield sql
                sql.execute("COMMIT")
            finally:
                _roll_back(sql)

    @contextmanager
    def session(self) -> Iterator[Connected]:
        """Yields a connection without a transaction. Raises `SharedIndexFailed`."""
        with self._connection() as sql, self.translated():
            try:
                yield sql
            finally:
                _roll_back(sql)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raises errors of PostgreSQL as `SharedIndexFailed`."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
                raise  # A bug in our code.
            raise self.failed(error) from error

    def failed(self, error: Exception) -> SharedIndexFailed:
        """Returns the error for one of PostgreSQL or of a connection, without the password."""
        code = getattr(error, "sqlstate", None) or ""
        text = str(error).strip().splitlines()
        last = text[0] if text else type(error).__name__
        if code in ("42P01", "3F000"):
            reason, hint = "it has no tables of mind", "`mind index --push` creates them"
        elif code in _REASONS:
            reason, hint = _REASONS[code]
        elif "authentication" in last or "no password" in last:
            reason, hint = _REASONS["28P01"]
        elif "refused" in last or "No such file" in last:
            reason, hint = "no server answers there", "start it, or correct the URL"
        elif "imeout" in last or "timed out" in last or "expired" in last:
            reason, hint = "it does not answer", "check the network and the server"
        else:
            password = password_of(self.url)
            reason = last.replace(password, "***") if password else last
            hint = "check the server, then try again"
        return SharedIndexFailed(
            f"the shared index at `{self.place}` can't be used: {reason}",
            hint=f"{hint}; your files and the local index are complete",
            details={"sqlstate": code} if code else None,
        )

    @contextmanager
    def _connection(self) -> Iterator[Connected]:
        if self._failure and monotonic() < self._failure[0]:
            raise self._failure[1]
        pool = self._opened()
        from psycopg_pool import PoolTimeout

        try:
            sql = pool.getconn(timeout=_CONNECT_SECONDS)
        except PoolTimeout as error:
            raise self._unreachable(self._reason(error)) from error
        try:
            yield sql
        finally:
            pool.putconn(sql)

    def _opened(self) -> ConnectionPool[Connected]:
        if self._pool is None:
            try:
                import psycopg
                from psycopg_pool import ConnectionPool
            except ImportError as error:
                raise SharedIndexFailed(
                    "the shared index needs the package psycopg",
                    hint='pip install "mimo[postgres]"',
                ) from error
            given = {
                "autocommit": True,
                "connect_timeout": _CONNECT_SECONDS,
                "application_name": "mind",
                "keepalives_idle": 30,
                "tcp_user_timeout": 2_000 * _QUERY_SECONDS,
            }
            # The pool reports no reason for a failure, so the first connection is made without it.
            try:
                psycopg.connect(self.url, **given).close()  # type: ignore[arg-type]
            except psycopg.Error as error:
                raise self._unreachable(self.failed(error)) from error
            self._pool = ConnectionPool(
                self.url,
                kwargs=given,
                configure=_configure,
                check=ConnectionPool.check_connection,
                min_size=0,
                max_size=_MOST_CONNECTIONS,
                max_idle=60.0,
                open=True,
                name="mind",
            )
        self._failure = None
        return self._pool

    def _reason(self, error: Exception) -> SharedIndexFailed:
        """Returns the reason for which the pool has no connection."""
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=_CONNECT_SECONDS).close()
        except psycopg.Error as reason:
            return self.failed(reason)
        return self.failed(error)

    def _unreachable(self, error: SharedIndexFailed) -> SharedIndexFailed:
        """Returns an error, which the next calls raise without asking the server again."""
        self._failure = (monotonic() + _AGAIN_SECONDS, error)
        return error


def _begin(mode: LiteralString, limits: Limits) -> Any:
    from psycopg import sql

    parts: list[sql.Composable] = [sql.SQL("BEGIN " + mode)]
    if limits.seconds:
        parts.append(sql.SQL("SET LOCAL statement_timeout = {}").format(limits.seconds * 1000))
    if limits.role is not None:
        parts.append(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(limits.role)))
    return sql.SQL("; ").join(parts)


def _configure(sql: Connected) -> None:
    """Sets the path on which names are looked up: our tables, and the types of pgvector."""
    place = sql.execute(
        "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
        " WHERE e.extname = 'vector'"
    ).fetchone()
    path = schema.PATH if place is None else f'{schema.PATH}, "{place[0]}"'
    sql.execute("SELECT set_config('search_path', %s, false)", (path,))


def _roll_back(sql: Connected) -> None:
    import psycopg

    with suppress(psycopg.Error):
        if not sql.closed and sql.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            sql.execute("ROLLBACK")
