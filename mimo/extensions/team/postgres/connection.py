"""Connections to the server of the shared index, and its errors in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, LiteralString

from mimo.api import Command, Hint, Invalid, StorageFailed, database_url
from mimo.extensions.team.postgres import schema

if TYPE_CHECKING:
    from psycopg import Connection, Error
    from psycopg_pool import ConnectionPool

    from mimo.extensions.team.postgres.watched import Watched

    Connected = Connection[tuple[Any, ...]]

QUERY_SECONDS = 10
"""The time after which a statement of a reading is given up, and a search for all of its."""

MORE_SECONDS = 2
"""The time for which the server's own limit is waited for, then."""

_AGAIN_SECONDS = 10.0
"""The time for which a server that could not be reached is not asked again."""

_MOST_CONNECTIONS = 8
_TURN_SECONDS = 3.0
"""The time for which a thread waits for one of these."""

_IDLE_SECONDS = 60.0
"""The time for which an unused connection is kept."""

_REASONS = {
    "28P01": ("the password is wrong", "put it into ~/.pgpass, or set PGPASSFILE"),
    "28000": ("it refuses this role", "check the role in the URL and the server's pg_hba.conf"),
    "3D000": ("the database does not exist", "create it, or correct the URL"),
    "53300": ("it has no connection left", "try again later, or raise its max_connections"),
    "57P01": ("it was stopped", "try again when it runs"),
    "57P02": ("it crashed", "try again when it runs"),
    "57P03": ("it is starting", "try again in a few seconds"),
    "57014": (f"it did not answer within {QUERY_SECONDS} s", "try again later"),
    "25P03": ("it waited too long for this machine", "try again"),
    "57P05": ("it waited too long for this machine", "try again"),
    "55P03": ("another process holds a lock on it", "try again later"),
    "25006": ("it can only be read", "connect to the primary server to write"),
    "42501": ("this role may not do that", "ask the owner of the database for the right"),
    "53100": ("its disk is full", "free some space there"),
    "42P01": ("it has no tables of mind", Hint(Command("index", push=True), " creates them")),
    "3F000": ("it has no tables of mind", Hint(Command("index", push=True), " creates them")),
}
"""Reasons and hints for error codes of PostgreSQL."""

_NO_ANSWER = ("no server answers there", "start it, or correct the URL")
_SILENT = ("it does not answer", "check the network and the server")
_CLOSED = ("it closed the connection", _REASONS["57P01"][1])
_PHRASES = (
    ("too many clients", _REASONS["53300"]),
    ("too many connections", _REASONS["53300"]),
    ("connection slots", _REASONS["53300"]),
    ("password authentication", _REASONS["28P01"]),
    ("authentication failed", _REASONS["28000"]),
    ("pg_hba.conf", _REASONS["28000"]),
    ("not permitted to log in", _REASONS["28000"]),
    ('role "', _REASONS["28000"]),
    ("permission denied for database", _REASONS["28000"]),
    ('database "', _REASONS["3D000"]),
    ("starting up", _REASONS["57P03"]),
    ("not yet accepting", _REASONS["57P03"]),
    ("recovery", _REASONS["57P03"]),
    ("shutting down", _REASONS["57P01"]),
    ("refused", _NO_ANSWER),
    ("No such file", _NO_ANSWER),
    ("resolve", ("no machine has that name", "correct the URL, or check the network")),
    ("timed out", _SILENT),
)
"""Reasons and hints by words of a connection that failed: libpq gives only a text for it."""


class SharedIndexFailed(StorageFailed):
    """The shared index can't be used now; the files and the local index are complete."""


class Server:
    """The server of the shared index; threads share its connections."""

    def __init__(self, url: str) -> None:
        """Takes the URL. Nothing is opened yet, and the URL may be invalid."""
        self.url = url
        self._pool: ConnectionPool[Watched] | None = None
        self._opening = Lock()
        self._failure: tuple[float, SharedIndexFailed] | None = None

    @property
    def place(self) -> str:
        """The server and the database, for messages."""
        with suppress(Invalid):
            return database_url(self.url).place
        return "the URL of the index"

    def close(self) -> None:
        """Closes the connections."""
        with self._opening:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close(timeout=1.0)

    @contextmanager
    def reading(self, role: str | None = None) -> Iterator[Watched]:
        """Yields a connection all of whose reads see the same state. Raises `SharedIndexFailed`.

        The transaction has `role`; default that of the connection.
        """
        with self._connection() as sql:
            sql.limit = QUERY_SECONDS + MORE_SECONDS
            sql.execute(_begin(role))
            yield sql
            sql.execute("ROLLBACK")

    @contextmanager
    def session(self) -> Iterator[Connected]:
        """Yields a connection without a transaction. Raises `SharedIndexFailed`."""
        with self._connection() as sql:
            sql.limit = None
            yield sql

    @contextmanager
    def _connection(self) -> Iterator[Watched]:
        """Yields a connection, which is closed if the block fails: that ends what it began."""
        if self._failure and monotonic() < self._failure[0]:
            raise self._failure[1].with_traceback(None)
        pool, sql = self._taken()
        try:
            with self._translated(sql):
                yield sql
        except BaseException:
            sql.close()
            raise
        finally:
            pool.putconn(sql)

    def _taken(self) -> tuple[ConnectionPool[Watched], Watched]:
        """Returns a connection that works, and its pool. Raises `SharedIndexFailed`."""
        try:
            import psycopg
            from psycopg_pool import PoolTimeout
        except ImportError as error:
            raise SharedIndexFailed(
                "the shared index needs the package psycopg",
                hint="pip install './mimo[postgres]' beside the checkout",
            ) from error
        try:
            with self._opening:
                pool = self._pool = self._pool or self._opened()
            try:
                return pool, pool.getconn(_TURN_SECONDS)
            except PoolTimeout:
                self._made().close()  # Raises the reason, which the pool does not report.
        except psycopg.Error as error:
            raise self._unreachable(self._failed(error)) from error
        raise SharedIndexFailed(
            f"all {_MOST_CONNECTIONS} connections to `{self.place}` are in use",
            hint="try again later; your files and the local index are complete",
        )

    def _opened(self) -> ConnectionPool[Watched]:
        """Returns the pool. Raises `SharedIndexFailed`, and errors of a first connection."""
        import logging

        from psycopg_pool import ConnectionPool

        from mimo.extensions.team.postgres.watched import Watched, settings

        self._made().close()
        # It would print errors of connections, which users get with a reason and a hint.
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
        return ConnectionPool(
            self.url,
            connection_class=Watched,
            kwargs=settings(),
            configure=self._configure,
            check=Watched.check,
            min_size=0,
            max_size=_MOST_CONNECTIONS,
            max_idle=_IDLE_SECONDS,
            reconnect_timeout=_TURN_SECONDS,
            open=True,
            name="mind",
        )

    def _made(self) -> Watched:
        """Returns a new connection. Raises `SharedIndexFailed`, and errors of PostgreSQL.

        A database in another encoding than UTF-8 can't hold all texts, or counts their bytes.
        """
        from mimo.extensions.team.postgres.watched import Watched, settings

        try:
            database_url(self.url)
        except Invalid as error:
            raise SharedIndexFailed(error.message, hint=error.hint) from None
        sql = Watched.connect(self.url, **settings())
        if (encoding := sql.info.parameter_status("server_encoding")) not in (None, "UTF8"):
            sql.close()
            raise SharedIndexFailed(
                f"the shared index at `{self.place}` can't be used: its database has the encoding"
                f" {encoding}",
                hint="create one with `createdb --encoding UTF8 --template template0 NAME`",
            )
        return sql

    def _configure(self, sql: Watched) -> None:
        """Sets the path on which names are looked up: our tables, and the types of pgvector.

        A transaction or a session of a machine that is suspended ends: others wait for its locks.
        """
        sql.url = self.url
        sql.execute(
            "SELECT set_config('search_path', concat_ws(', ', %s::text,"
            " (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n"
            " ON n.oid = e.extnamespace WHERE e.extname = 'vector')), false),"
            " set_config('idle_in_transaction_session_timeout', '60s', false),"
            " set_config('idle_session_timeout', '5min', false)",
            (schema.PATH,),
        )

    @contextmanager
    def _translated(self, sql: Watched) -> Iterator[None]:
        """Raises errors of PostgreSQL as `SharedIndexFailed`."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            if sql.silent:
                raise self._unreachable(self._failed(sql.silent)) from error
            if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
                raise  # A bug in our code.
            raise self._failed(error, was_made=sql.broken) from error

    def _failed(self, error: Error, *, was_made: bool = False) -> SharedIndexFailed:
        """Returns the error for one of PostgreSQL, without the password.

        `was_made` states that the error ended a connection, which had been made.
        """
        code = error.sqlstate or ""
        lines = str(error).strip().splitlines()
        text = lines[0] if lines else type(error).__name__
        for password in database_url(self.url).passwords:
            text = text.replace(password, "***")
        answer = _REASONS.get(code) if code else _without_code(error, text, was_made)
        reason, hint = answer or (text, "check the server")
        return SharedIndexFailed(
            f"the shared index at `{self.place}` can't be used: {reason}",
            hint=f"{hint}; your files and the local index are complete",
            details={"sqlstate": code} if code else None,
        )

    def _unreachable(self, error: SharedIndexFailed) -> SharedIndexFailed:
        """Returns an error, which the next calls raise without asking the server again."""
        self._failure = (monotonic() + _AGAIN_SECONDS, error)
        return error


def _without_code(error: Error, text: str, was_made: bool) -> tuple[str, str | Hint] | None:
    """Returns the reason and the hint of an error that has no code; None for an unknown one."""
    from psycopg.errors import ConnectionTimeout

    if isinstance(error, ConnectionTimeout):
        return _SILENT
    if error.pgconn is not None and error.pgconn.needs_password:
        return "it asks for a password", _REASONS["28P01"][1]
    by_words = next((answer for words, answer in _PHRASES if words in text), None)
    return by_words or (_CLOSED if was_made else None)


_PLANNING: LiteralString = (
    "SET LOCAL jit = off; SET LOCAL random_page_cost = 1.1;"
    " SET LOCAL max_parallel_workers_per_gather = 0"
)
"""Settings of the planner. Without them, it reads whole tables with every core for a frequent word
and compiles queries for longer than they run: a million passages took twice as long to search."""


def _begin(role: str | None) -> Any:
    from psycopg import sql

    patience = sql.SQL("SET LOCAL statement_timeout = {}").format(QUERY_SECONDS * 1000)
    begin = sql.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    parts: list[sql.Composable] = [begin, sql.SQL(_PLANNING), patience]
    if role is not None:
        parts.append(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
    return sql.SQL("; ").join(parts)
