"""Failures of the server: searches fall back to this machine, and a push loses nothing."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from socket import SHUT_RDWR, socket
from time import sleep
from typing import Any

import psycopg
import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.errors import StorageFailed
from mimo.extensions.team import sharing
from mimo.extensions.team.postgres import source, watched
from mimo.extensions.team.postgres.connection import Server, SharedIndexFailed
from mimo.features.notes.commands import add
from mimo.features.search.commands import SearchResults, search
from mimo.features.upkeep.checks import doctor
from mimo.features.upkeep.indexing import index
from mimo.project import projects
from tests.conftest import NOW
from tests.extensions.team.postgres.conftest import ORG, Open, Postgres
from tests.kit import with_console

HERE = ("orders", "Kafka has three brokers")
THERE = ("shop", "Use Kafka for the order events")
INSTEAD = "these are from the projects on this machine"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "_SILENCE", 0.5)
    monkeypatch.setattr(watched, "CONNECT_SECONDS", 2)


@pytest.fixture(autouse=True)
def repaired(postgres: Postgres) -> Iterator[None]:
    yield
    if postgres.is_running():
        postgres.pause(signal.SIGCONT)
    postgres.await_ready()


@pytest.fixture
def shared(opened: Open) -> tuple[Call, Call]:
    """Ana's shop, which is shared with all, and Ben's orders."""
    shop, orders = opened("ana", "shop"), opened("ben", "orders")
    add(shop, THERE[1])
    add(orders, HERE[1])
    projects.register(orders.mind.home, orders.mind.project, now=NOW)
    index(shop, push=True, readers=("everyone",))
    return shop, orders


def rows(answer: SearchResults) -> list[tuple[str, str]]:
    return sorted((row.project, row.title) for row in answer.results)


def asked(call: Call) -> SearchResults:
    return search(call, "kafka brokers events", scope=ORG)


def fails(call: Call, reason: str) -> None:
    """Asserts that a search falls back, and that a push fails with the reason and a hint."""
    call = Call(call.mind.reopened())
    answer = asked(call)
    assert rows(answer) == [HERE]
    assert answer.notice
    assert f"can't be used: {reason}; {INSTEAD}" in answer.notice
    with pytest.raises(SharedIndexFailed, match=f"can't be used: {reason}$") as caught:
        index(call, push=True)
    assert "your files and the local index are complete" in caught.value.hint
    assert sharing.pushed_here(call) is None


def works(call: Call) -> None:
    """Asserts that a push and a search work."""
    call = Call(call.mind.reopened())
    pushed = index(call, push=True, readers=("everyone",)).shared
    assert pushed
    assert pushed.memories
    assert rows(asked(call)) == [HERE, THERE]


@contextmanager
def stopped(postgres: Postgres, database: str) -> Iterator[None]:
    postgres.stop()
    yield
    postgres.start()


@contextmanager
def paused(postgres: Postgres, database: str) -> Iterator[None]:
    postgres.pause()
    yield
    postgres.pause(signal.SIGCONT)


@contextmanager
def full(postgres: Postgres, database: str) -> Iterator[None]:
    with ExitStack() as opened:
        with suppress(psycopg.OperationalError):
            for _ in range(61):
                opened.enter_context(psycopg.connect(postgres.url()))
        yield


def refusing(statement: str) -> Callable[[Postgres, str], AbstractContextManager[None]]:
    @contextmanager
    def fault(postgres: Postgres, database: str) -> Iterator[None]:
        with psycopg.connect(postgres.url(), autocommit=True) as sql:
            sql.execute(statement.format(database).encode())
            yield
            sql.execute("ALTER ROLE ben CONNECTION LIMIT -1 LOGIN")
            sql.execute(f"GRANT CONNECT ON DATABASE {database} TO PUBLIC".encode())

    return fault


FAULTS = {
    "stopped": (stopped, "no server answers there"),
    "paused": (paused, "it does not answer"),
    "full": (full, "it has no connection left"),
    "limited": (refusing("ALTER ROLE ben CONNECTION LIMIT 0"), "it has no connection left"),
    "locked out": (refusing("ALTER ROLE ben NOLOGIN"), "it refuses this role"),
    "private": (refusing("REVOKE CONNECT ON DATABASE {} FROM PUBLIC"), "it refuses this role"),
}


def test_a_search_falls_back_and_a_push_fails_until_the_server_is_back(
    shared: tuple[Call, Call], postgres: Postgres, database: str
) -> None:
    _, orders = shared
    for name, (begin, reason) in FAULTS.items():
        with begin(postgres, database):
            fails(orders, reason)
        assert rows(asked(Call(orders.mind.reopened()))) == [HERE, THERE], name
    works(orders)


def test_a_server_that_is_paused_between_two_calls_is_given_up_once(
    shared: tuple[Call, Call], postgres: Postgres
) -> None:
    _, orders = shared
    assert rows(asked(orders)) == [HERE, THERE]
    postgres.pause()
    for _ in range(3):
        assert rows(asked(orders)) == [HERE]
    postgres.pause(signal.SIGCONT)
    works(orders)


def test_a_restart_between_two_calls_is_not_noticed(
    shared: tuple[Call, Call], postgres: Postgres
) -> None:
    _, orders = shared
    for how in (signal.SIGINT, signal.SIGQUIT):
        assert THERE in rows(asked(orders))
        postgres.stop(how)
        postgres.start()
    works(orders)


PROBLEMS = (
    ("ghost", "mind", "it refuses this role"),
    ("refused", "mind", "it refuses this role"),
    ("ben", "none", "the database does not exist"),
    ("locked", "mind", "it asks for a password"),
    ("locked:wrong", "mind", "the password is wrong"),
)


def test_a_wrong_url_is_explained(opened: Open, postgres: Postgres, database: str) -> None:
    postgres.roles("locked")
    postgres.execute("ALTER ROLE locked PASSWORD 'right'")
    orders = opened("ben", "orders")
    add(orders, HERE[1])
    projects.register(orders.mind.home, orders.mind.project, now=NOW)
    for role, name, reason in PROBLEMS:
        url = postgres.url(database if name == "mind" else name, role)
        orders.mind.environ = {**orders.mind.environ, "MIND_INDEX_URL": url}
        fails(orders, reason)


def refusal(url: str) -> psycopg.OperationalError:
    """Returns the error of a connection that the server refuses."""
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(url)
    return caught.value


def lose(beginning: AbstractContextManager[psycopg.Connection[Any]]) -> None:
    """Raises the error of a connection that broke, with another text."""
    with beginning as sql:
        with socket(fileno=os.dup(sql.fileno())) as used:
            used.shutdown(SHUT_RDWR)
        with pytest.raises(psycopg.OperationalError) as caught:
            sql.execute("SELECT 1")
        assert caught.value.sqlstate is None
        caught.value.args = ("ligne perdue",)
        raise caught.value


def test_a_reason_is_told_without_a_text_where_the_error_tells_it(
    shared: tuple[Call, Call], postgres: Postgres, database: str
) -> None:
    """The texts of libpq are in the language of the machine."""
    server = Server(postgres.url(database))
    for error, reason in (
        (refusal(postgres.url(role="locked")), "it asks for a password"),
        (psycopg.errors.ConnectionTimeout(), "it does not answer"),
        (psycopg.errors.TooManyConnections(), "it has no connection left"),
    ):
        error.args = ("délai",)
        assert f"can't be used: {reason}" in str(server._failed(error))
    for begin in (server.reading, server.session):
        with pytest.raises(SharedIndexFailed, match=r"it closed the connection$"):
            lose(begin())
    server.close()


SLOW = """
ALTER FUNCTION mind.by_words RENAME TO quickly;
CREATE FUNCTION mind.by_words(
    views integer[], narrowing text, lexemes text[], weights double precision[],
    mean double precision, most bigint
) RETURNS TABLE (memory bigint, weight double precision) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(1);
    RETURN QUERY SELECT * FROM mind.quickly(views, narrowing, lexemes, weights, mean, most);
END $$
"""


def test_a_search_is_given_up_after_the_time_of_all_its_statements(
    shared: tuple[Call, Call],
    postgres: Postgres,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, orders = shared
    with psycopg.connect(postgres.url(database), autocommit=True) as sql:
        sql.execute(SLOW)
    assert rows(asked(orders)) == [HERE, THERE]
    monkeypatch.setattr(source, "QUERY_SECONDS", 1)
    answer = asked(orders)
    assert rows(answer) == [HERE]
    assert f"it did not answer within 10 s; {INSTEAD}" in (answer.notice or "")
    index(orders, push=True)  # It is not limited by that.


def test_a_statement_of_a_search_has_the_time_that_those_before_have_left(
    shared: tuple[Call, Call], postgres: Postgres, database: str
) -> None:
    limit = "SELECT setting::integer FROM pg_settings WHERE name = 'statement_timeout'"
    server = Server(postgres.url(database))
    with source.opened(server, source.others, None) as opened:
        assert opened._rows(limit) == [(10_000,)]
        opened._rows("SELECT pg_sleep(1.1)")
        assert opened._rows(limit)[0][0] <= 9_000
    with server.reading() as sql:
        assert sql.execute(limit.encode()).fetchone() == (10_000,)
    server.close()


def test_a_server_that_can_only_be_read_is_searched(
    shared: tuple[Call, Call], postgres: Postgres, database: str
) -> None:
    _, orders = shared
    with psycopg.connect(postgres.url(), autocommit=True) as sql:
        rule = f"ALTER DATABASE {database} SET default_transaction_read_only"
        sql.execute(f"{rule} = on".encode())
        assert rows(asked(orders)) == [HERE, THERE]
        with pytest.raises(SharedIndexFailed, match="it can only be read"):
            index(orders, push=True)
        sql.execute(f"{rule} = off".encode())
    works(orders)


def caught_up(standby: Postgres, primary: Postgres) -> bool:
    """Returns whether a standby has all changes; waits for them, but not forever."""
    with psycopg.connect(primary.url(), autocommit=True) as sql:
        sql.execute("SET synchronous_commit = on")  # It sends what was written before, too.
        last = sql.execute("SELECT pg_logical_emit_message(true, 'mind', '')").fetchone()
    with psycopg.connect(standby.url(), autocommit=True) as sql:
        for _ in range(600):
            if sql.execute("SELECT pg_last_wal_replay_lsn() >= %s", last).fetchone() == (True,):
                return True
            sleep(0.05)
    return False


def test_a_standby_is_searched_and_follows_a_withdrawal(
    shared: tuple[Call, Call], postgres: Postgres, standby: Postgres, database: str
) -> None:
    shop, orders = shared
    assert caught_up(standby, postgres)
    url = standby.url(database, "ben")
    orders.mind.environ = {**orders.mind.environ, "MIND_INDEX_URL": url}
    orders = Call(orders.mind.reopened())
    assert rows(asked(orders)) == [HERE, THERE]
    with pytest.raises(SharedIndexFailed, match="it can only be read"):
        index(orders, push=True)
    index(shop, withdraw=True)
    assert caught_up(standby, postgres)
    assert rows(asked(orders)) == [HERE]


def test_tables_of_another_version_are_neither_searched_nor_changed(
    shared: tuple[Call, Call], postgres: Postgres, database: str
) -> None:
    _, orders = shared
    with psycopg.connect(postgres.url(database), autocommit=True) as sql:
        sql.execute("UPDATE mind.meta SET value = value + 1")
        answer = asked(orders)
        assert rows(answer) == [HERE]
        reason = "a later version of mind made the tables of the shared index"
        assert f"{reason}; {INSTEAD}" in (answer.notice or "")
        with pytest.raises(StorageFailed, match=reason):
            index(orders, push=True)
        assert reason in doctor_of(orders)
        sql.execute("UPDATE mind.meta SET value = value - 1")
    assert "answers" in doctor_of(orders)
    works(orders)

    empty = postgres.url(postgres.database(), "ben")
    orders.mind.environ = {**orders.mind.environ, "MIND_INDEX_URL": empty}
    orders = Call(orders.mind.reopened())
    answer = asked(orders)
    assert rows(answer) == [HERE]
    assert "has no tables of this version of mind" in (answer.notice or "")
    assert "has no tables of this version of mind" in doctor_of(orders)


def doctor_of(call: Call) -> str:
    """Returns what `mind doctor` reports of the shared index."""
    (check,) = [check for check in doctor(call).checks if check.name == "shared"]
    return check.message


def crash(postgres: Postgres) -> None:
    """Kills one process, which makes the server end all its connections."""
    with psycopg.connect(postgres.url(), autocommit=True) as sql:
        pids = sql.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'mind'")
        for (pid,) in pids.fetchall():
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):  # It restarts, then.
            sql.execute("SELECT pg_sleep(60)")


def terminate(postgres: Postgres) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as sql:
        sql.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mind'"
        )


ENDS: dict[str, Callable[[Postgres], object]] = {
    "stopped": lambda postgres: postgres.stop(signal.SIGINT),
    "stopped at once": lambda postgres: postgres.stop(signal.SIGQUIT),
    "killed": lambda postgres: postgres.stop(signal.SIGKILL),
    "crashed": crash,
    "terminated": terminate,
    "paused": lambda postgres: postgres.pause(),
}


def test_a_push_that_the_server_ends_is_completed_by_the_next(
    shared: tuple[Call, Call], postgres: Postgres
) -> None:
    _, orders = shared
    for name, end in ENDS.items():
        steps: list[str] = []
        add(orders, f"The server was {name} while this was pushed")

        def advance(
            step: str, done: int, total: int, end: Any = end, steps: list[str] = steps
        ) -> None:
            steps.append(step)
            if step == "Sending memories":
                end(postgres)

        pushing = with_console(Call(orders.mind.reopened()), progress=advance)
        with pytest.raises(SharedIndexFailed) as caught:
            index(pushing, push=True)
        assert "Sending memories" in steps  # It may take another step to notice the end.
        assert caught.value.message.partition("can't be used: ")[2] in REASONS, name
        if name == "paused":
            postgres.pause(signal.SIGCONT)
        postgres.await_ready()
        works(orders)


REASONS = {"it was stopped", "it crashed", "it closed the connection", "it does not answer"}


SECRET = "hunter/2"
FORMS = (
    "postgresql://locked:hunter%2F2@127.0.0.1:{port}/mind",
    "postgresql://127.0.0.1:{port}/mind?user=locked&password=hunter/2",
    "postgresql://locked:hunter%2F2@127.0.0.1:{port}/mind?hunter=2",
    "postgresql://locked:hunter/2@127.0.0.1:{port}/mind",
    "host=127.0.0.1 port={port} user=locked password=hunter/2 dbname=mind",
    "postgresql://locked:hunter%2F2@127.0.0.1:1/mind",
    "postgresql://locked:hunter%2F2@hunter.invalid/mind?connect_timeout=x",
)


@pytest.mark.attack("privacy")
def test_no_text_has_the_password(
    opened: Open,
    postgres: Postgres,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders = opened("ben", "orders")
    monkeypatch.chdir(orders.mind.project.root)
    monkeypatch.setenv("MIND_HOME", str(orders.mind.home))
    monkeypatch.setenv("MIND_BACKGROUND", "off")
    for form in FORMS:
        url = form.format(port=postgres.port)
        monkeypatch.setenv("MIND_INDEX_URL", url)
        for words in (
            ["search", "--scope", "org", "kafka", "--json"],
            ["index", "--push"],
            ["index", "--push", "--json"],
            ["index", "--withdraw", "-v"],
            ["doctor", "-v"],
            ["config", "index.url", url],
            ["audit"],
        ):
            main(words)
    texts = "".join(capfd.readouterr())
    assert "the shared index" in texts
    kept = [path.read_bytes() for path in orders.mind.home.rglob("*") if path.is_file()]
    kept += [path.read_bytes() for path in orders.mind.project.root.rglob("*") if path.is_file()]
    for written in (SECRET, "hunter%2F2"):
        assert written not in texts
        assert not any(written.encode() in content for content in kept)
