"""The tables of the shared index: how they are made, and brought to a later format."""

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from mimo.errors import StorageFailed
from mimo.extensions.team.postgres import schema
from mimo.extensions.team.postgres.schema import (
    MIGRATIONS,
    Migration,
    check_format,
    format_of,
    prepare,
)
from tests.extensions.team.postgres.conftest import ON_BOTH, Postgres

CURRENT = len(MIGRATIONS)
LATER = (*MIGRATIONS, Migration(CURRENT + 1, "ALTER TABLE mind.views ADD COLUMN later int"))
BROKEN = (*LATER, Migration(CURRENT + 2, "CREATE TABLE mind.half (); SELECT 1 / 0"))


@pytest.fixture
def name(postgres: Postgres) -> str:
    return postgres.database()


@pytest.fixture
def sql(postgres: Postgres, name: str) -> Iterator[Any]:
    with psycopg.connect(postgres.url(name), autocommit=True) as connection:
        yield connection


def has(sql: Any, table: str, column: str) -> bool:
    query = (
        "SELECT 1 FROM information_schema.columns WHERE table_schema = 'mind'"
        " AND table_name = %s AND column_name = %s"
    )
    return sql.execute(query, (table, column)).fetchone() is not None


def as_(role: str, postgres: Postgres, name: str) -> Any:
    """Connects as a role that may connect and do nothing else."""
    postgres.roles(role)
    return psycopg.connect(postgres.url(name, role), autocommit=True)


def test_the_formats_have_the_numbers_of_their_places() -> None:
    assert [migration.number for migration in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


@ON_BOTH
def test_tables_are_made_once_and_brought_to_a_later_format(sql: Any) -> None:
    assert format_of(sql) == 0
    with pytest.raises(StorageFailed, match="no tables"):
        check_format(sql)

    prepare(sql)
    prepare(sql)
    assert format_of(sql) == len(MIGRATIONS)
    check_format(sql)
    assert not has(sql, "views", "later")

    prepare(sql, LATER)
    assert has(sql, "views", "later")
    assert format_of(sql) == CURRENT + 1


def test_a_search_by_words_of_earlier_tables_is_replaced(sql: Any) -> None:
    stored = "SELECT prosrc FROM pg_proc WHERE oid = 'mind.by_words'::regproc"
    prepare(sql)
    (current,) = sql.execute(stored).fetchone()
    sql.execute(
        "CREATE OR REPLACE FUNCTION mind.by_words(views integer[], narrowing text, lexemes text[],"
        " weights double precision[], mean double precision, most bigint)"
        " RETURNS TABLE (memory bigint, weight double precision)"
        " LANGUAGE sql AS 'SELECT 1::bigint, 1::float8'"
    )
    sql.execute("UPDATE mind.meta SET value = 2 WHERE name = 'format'")
    prepare(sql)
    assert sql.execute(stored).fetchone() == (current,)


def test_a_migration_that_fails_leaves_the_format_before(sql: Any) -> None:
    prepare(sql)
    with pytest.raises(psycopg.errors.DivisionByZero):
        prepare(sql, BROKEN)

    assert format_of(sql) == CURRENT
    assert not has(sql, "views", "later")
    assert sql.execute("SELECT to_regclass('mind.half')").fetchone() == (None,)


def test_a_later_format_is_refused_and_left_alone(sql: Any) -> None:
    prepare(sql, LATER)

    for refused in (prepare, check_format):
        with pytest.raises(StorageFailed, match="a later version of mind") as caught:
            refused(sql)
        assert "update mind" in caught.value.hint
    assert format_of(sql) == CURRENT + 1


def test_a_format_that_became_later_during_the_wait_is_refused(
    sql: Any, postgres: Postgres, name: str
) -> None:
    prepare(sql)
    errors: list[BaseException] = []

    def older() -> None:
        with psycopg.connect(postgres.url(name), autocommit=True) as other:
            try:
                prepare(other, LATER)
            except StorageFailed as error:
                errors.append(error)

    with sql.transaction():
        sql.execute("SELECT pg_advisory_xact_lock(%s)", (schema.LOCK,))
        waiting = threading.Thread(target=older)
        waiting.start()
        _await_waiting(sql)
        sql.execute("UPDATE mind.meta SET value = %s WHERE name = 'format'", (CURRENT + 2,))
    waiting.join()

    assert [str(error) for error in errors] == [
        "a later version of mind made the tables of the shared index"
    ]
    assert format_of(sql) == CURRENT + 2


def test_processes_that_start_at_once_migrate_once(sql: Any, postgres: Postgres, name: str) -> None:
    errors: list[BaseException] = []

    def start() -> None:
        try:
            with psycopg.connect(postgres.url(name), autocommit=True) as other:
                prepare(other, LATER)
        except (psycopg.Error, StorageFailed) as error:
            errors.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert format_of(sql) == CURRENT + 1


def test_a_migration_gives_up_rather_than_let_readers_wait(
    sql: Any, postgres: Postgres, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_LOCK_WAIT", "200ms")
    prepare(sql)
    with psycopg.connect(postgres.url(name)) as reader:
        reader.execute("SELECT * FROM mind.views")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            prepare(sql, LATER)

    assert sql.execute("SELECT count(*) FROM mind.views").fetchone() == (0,)
    prepare(sql, LATER)
    assert format_of(sql) == CURRENT + 1


def test_a_stopped_migration_does_not_block_others_forever(
    sql: Any, postgres: Postgres, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_TURN_WAIT", "200ms")
    with psycopg.connect(postgres.url(name)) as stopped:
        stopped.execute("SELECT pg_advisory_xact_lock(%s)", (schema.LOCK,))
        with pytest.raises(psycopg.errors.LockNotAvailable):
            prepare(sql)

    prepare(sql)
    assert format_of(sql) == CURRENT


def test_a_role_without_rights_learns_who_makes_the_tables(
    postgres: Postgres, name: str, sql: Any
) -> None:
    with as_("guest", postgres, name) as guest:
        with pytest.raises(StorageFailed, match="may not make the tables") as caught:
            prepare(guest)
        assert "the database's owner runs `mind index --push`" in caught.value.hint
        prepare(sql)
        prepare(guest)  # Nothing is left to do.
        with pytest.raises(StorageFailed, match="may not make the tables"):
            prepare(guest, LATER)


@pytest.mark.attack("another user of the database")
def test_a_schema_that_an_ordinary_role_made_is_refused(
    postgres: Postgres, name: str, sql: Any
) -> None:
    with as_("mallory", postgres, name):
        sql.execute("CREATE SCHEMA mind AUTHORIZATION mallory")

    with pytest.raises(StorageFailed, match="belongs to the role `mallory`"):
        prepare(sql)
    assert sql.execute("SELECT to_regclass('mind.views')").fetchone() == (None,)

    sql.execute("DROP SCHEMA mind")
    prepare(sql)


def test_a_server_without_the_extension_is_explained(sql: Any) -> None:
    missing = (*MIGRATIONS, Migration(CURRENT + 1, "CREATE EXTENSION mind_no_such_extension"))

    with pytest.raises(StorageFailed, match=r"lacks a part: .*mind_no_such_extension") as caught:
        prepare(sql, missing)
    assert "install pgvector" in caught.value.hint


def _await_waiting(sql: Any) -> None:
    query = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    for _ in range(1_000):
        if sql.execute(query).fetchone():
            return
    raise AssertionError("no process waits")
