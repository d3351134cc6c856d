"""The rights of roles in the shared index, and attacks by a hostile role."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from mimo.extensions.team.postgres import schema
from tests.extensions.team.postgres.conftest import Postgres

Connected = psycopg.Connection[tuple[Any, ...]]
ROLES = ("ana", "ben", "eve", "team")
"""The owner of a project, one with whom it is shared, a stranger, and a group."""


@pytest.fixture
def database(postgres: Postgres) -> Iterator[tuple[Postgres, str]]:
    name = postgres.database()
    postgres.roles(*ROLES)
    with psycopg.connect(postgres.url(name), autocommit=True) as sql:
        sql.execute("GRANT ALL ON SCHEMA public TO PUBLIC")
        schema.prepare(sql)
    yield postgres, name
    postgres.execute("REVOKE team FROM ben")


@pytest.fixture
def as_role(database: tuple[Postgres, str]) -> Iterator[Any]:
    postgres, name = database
    opened: list[Connected] = []

    def connect(role: str) -> Connected:
        sql = psycopg.connect(postgres.url(name, role), autocommit=True)
        opened.append(sql)
        return sql

    yield connect
    for sql in opened:
        sql.close()


def one(sql: Connected, query: str, *values: object) -> Any:
    row = sql.execute(query.encode(), values).fetchone()
    assert row is not None
    return row[0]


def filled(sql: Connected, identity: str, word: str = "kafka") -> tuple[int, int, int]:
    """Makes a project with a row in each table; returns its key, and those of view and memory."""
    project = one(sql, "SELECT mind.register(%s, %s, '', false)", identity, identity)
    view = one(
        sql,
        "INSERT INTO mind.views (project, name, label, is_default)"
        " VALUES (%s, 'here', 'main', true) RETURNING key",
        project,
    )
    memory = one(
        sql,
        "INSERT INTO mind.memories (project, hash, id, path, line, digest, private, owned, type,"
        " created, importance, position, rest, content, title_tokens, topic_tokens, units,"
        " unit_tokens, passage_count, passage_tokens, word_tokens) VALUES"
        " (%s, 'h', 'a', 'a', 1, '', false, true, 'fact', 1, 0, 0, '', %s, '', '', 1, 1, 1,"
        " 1, 1) RETURNING key",
        project,
        word,
    )
    for table, values in (
        ("entries", (view, memory, project, False, True)),
        ("tags", (project, memory, "ops")),
        ("supersedes", (project, "b", memory)),
        ("parents", (project, "a", "", "a", "", False)),
        ("frequencies", (project, view, word, 1)),
        ("vectors", (project, "model", b"v", "[1,2]")),
    ):
        marks = ", ".join(["%s"] * len(values))
        sql.execute(f"INSERT INTO mind.{table} VALUES ({marks})".encode(), values)
    add_unit(sql, project, memory, word)
    return project, view, memory


def add_unit(sql: Connected, project: int, memory: int, word: str) -> None:
    sql.execute(
        "INSERT INTO mind.units (project, memory, line, start, length, size, tokens, speakers,"
        " vector, words) VALUES (%s, %s, 1, 0, 1, 1, %s, '', 'v', %s::tsvector)",
        (project, memory, word, f"'#{project}' '{word}':1"),
    )


def found(sql: Connected, view: int, word: str, narrowing: str = "") -> list[int]:
    rows = sql.execute(
        "SELECT memory FROM mind.by_words(%s, %s, %s, '{1}', 1, 100)", ([view], narrowing, [word])
    )
    return [memory for (memory,) in rows]


def seen(sql: Connected) -> dict[str, int]:
    tables = ("projects", "access", *schema.TABLES)
    return {table: one(sql, f"SELECT count(*) FROM mind.{table}") for table in tables}


def test_every_table_is_for_those_with_whom_the_project_is_shared(as_role: Any) -> None:
    ana, ben, eve = as_role("ana"), as_role("ben"), as_role("eve")
    project, view, memory = filled(ana, "shop")
    everything = seen(ana)
    assert set(everything.values()) == {1}
    assert set(seen(ben).values()) == {0}

    ana.execute("SELECT mind.share(%s, 'ben', 'read')", (project,))
    assert {**everything, "access": 2} == seen(ben)
    assert found(ben, view, "kafka") == [memory]
    assert set(seen(eve).values()) == {0}
    assert found(eve, view, "kafka") == []

    ana.execute("SELECT mind.withdraw(%s)", (project,))
    for sql in (ana, ben, eve):
        assert {seen(sql)[table] for table in schema.TABLES} == {0}
        assert found(sql, view, "kafka") == []


def test_a_reader_writes_nothing_and_a_writer_only_its_project(as_role: Any) -> None:
    ana, ben = as_role("ana"), as_role("ben")
    project, *_ = filled(ana, "shop")
    for level in (None, "read"):
        ana.execute("SELECT mind.share(%s, 'ben', %s)", (project, level))
        for table in schema.TABLES:
            assert ben.execute(f"DELETE FROM mind.{table}".encode()).rowcount == 0
            assert ben.execute(f"UPDATE mind.{table} SET project = 0".encode()).rowcount == 0
        with pytest.raises(errors.InsufficientPrivilege):
            ben.execute("INSERT INTO mind.tags VALUES (%s, 1, 'x')", (project,))
    assert set(seen(ana).values()) == {1, 2}

    ana.execute("SELECT mind.share(%s, 'ben', 'write')", (project,))
    assert ben.execute("UPDATE mind.memories SET content = 'changed'").rowcount == 1
    with pytest.raises(errors.InsufficientPrivilege):
        ben.execute("UPDATE mind.parents SET project = 999")
    for statement in ("INSERT INTO mind.access VALUES (1, 'ben', 'admin')", "TRUNCATE mind.units"):
        with pytest.raises(errors.InsufficientPrivilege):
            ben.execute(statement)


def test_a_role_that_is_no_administrator_changes_no_access(as_role: Any) -> None:
    ana, ben = as_role("ana"), as_role("ben")
    project, *_ = filled(ana, "shop")
    ana.execute("SELECT mind.share(%s, 'ben', 'write')", (project,))
    for call in (
        "share(%s, 'ben', 'admin')",
        "share(%s, 'ana', NULL)",
        "withdraw(%s)",
        "clear(%s)",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            ben.execute(f"SELECT mind.{call}".encode(), (project,))
    assert ben.execute("SELECT mind.register('shop', 'mine', '', false)").fetchone() == (project,)
    assert one(ben, "SELECT mind.permitted('admin')") == []


def test_the_role_that_is_set_counts_and_those_it_belongs_to(
    as_role: Any, database: tuple[Postgres, str]
) -> None:
    ana, ben, owner = as_role("ana"), as_role("ben"), as_role("postgres")
    project, *_ = filled(ana, "shop")
    ana.execute("SELECT mind.share(%s, 'team', 'read')", (project,))
    assert seen(ben)["memories"] == 0
    owner.execute("GRANT team TO ben")
    assert seen(ben)["memories"] == 1
    with pytest.raises(errors.InsufficientPrivilege):
        ben.execute("SET ROLE ana")
    owner.execute("SET ROLE eve")
    assert seen(owner)["memories"] == 0
    owner.execute("RESET ROLE")


def test_every_table_has_row_level_security(as_role: Any) -> None:
    rows = as_role("postgres").execute(
        "SELECT c.relname, c.relrowsecurity, array(SELECT p.polname::text FROM pg_policy p"
        " WHERE p.polrelid = c.oid ORDER BY 1) FROM pg_class c WHERE c.relkind IN ('r', 'p', 'm',"
        " 'v') AND c.relnamespace = 'mind'::regnamespace"
    )
    tables = {name: (secured, policies) for name, secured, policies in rows}
    assert tables.pop("meta") == (False, [])
    for name in ("projects", "access"):
        assert tables.pop(name) == (True, ["reading"])
    assert tables == dict.fromkeys(schema.TABLES, (True, ["reading", "writing"]))


def test_functions_that_run_as_the_owner_look_at_temporary_names_last(as_role: Any) -> None:
    rows = as_role("postgres").execute(
        "SELECT proname, proconfig FROM pg_proc"
        " WHERE pronamespace = 'mind'::regnamespace AND prosecdef"
    )
    paths = dict(rows.fetchall())
    assert "by_words" in paths
    assert set(map(tuple, paths.values())) == {("search_path=pg_catalog, mind, pg_temp",)}


def test_a_temporary_table_named_as_a_catalogue_gives_no_rights(as_role: Any) -> None:
    project, *_ = filled(as_role("ana"), "shop")
    eve = as_role("eve")
    eve.execute(
        "CREATE TEMPORARY TABLE pg_roles AS SELECT 'ana'::name AS rolname, oid"
        " FROM pg_catalog.pg_roles WHERE rolname = 'eve'"
    )
    eve.execute("GRANT SELECT ON pg_temp.pg_roles TO PUBLIC")
    assert one(eve, "SELECT mind.permitted('admin')") == []
    assert set(seen(eve).values()) == {0}
    with pytest.raises(errors.InsufficientPrivilege):
        eve.execute("SELECT mind.share(%s, 'eve', 'admin')", (project,))


def test_a_temporary_type_runs_nothing_as_the_owner(as_role: Any) -> None:
    _, view, memory = filled(as_role("eve"), "own")
    eve = as_role("eve")
    eve.execute(
        "CREATE FUNCTION public.taken(text) RETURNS boolean LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$"
    )
    for name in ("tsquery", "float8"):
        eve.execute(
            f"CREATE DOMAIN pg_temp.{name} AS pg_catalog.{name}"
            " CHECK (public.taken(VALUE::pg_catalog.text))".encode()
        )
    assert found(eve, view, "kafka") == [memory]


@pytest.mark.parametrize(
    "hostile",
    [
        "') FROM mind.units; DROP TABLE mind.units; --",
        "kafka'::tsquery)) OR true --",
        "$1",
        "%s %L %I",
        "\\'",
        "!nothing",
    ],
)
def test_words_are_never_read_as_statements(as_role: Any, hostile: str) -> None:
    _, view, _ = filled(as_role("ana"), "shop")
    eve = as_role("eve")
    _, own, memory = filled(eve, "own", "tea")
    for word, narrowing in ((hostile, ""), ("kafka", f"{hostile} | "), ("kafka", f"{hostile} & ")):
        for asked in (view, own):
            try:
                answer = found(eve, asked, word, narrowing)
            except errors.SyntaxError as error:
                answer, reason = [], str(error)
            else:
                reason = "in tsquery"
            assert "in tsquery" in reason
            assert set(answer) <= {memory}
    assert one(as_role("ana"), "SELECT count(*) FROM mind.units") == 1


def test_rows_of_one_project_never_refer_to_those_of_another(as_role: Any) -> None:
    project, view, memory = filled(as_role("ana"), "shop")
    eve = as_role("eve")
    own, own_view, own_memory = filled(eve, "own", "tea")
    for table, values in (
        ("entries", (own_view, memory, own, False, True)),
        ("entries", (view, own_memory, own, False, True)),
        ("tags", (own, memory, "x")),
        ("supersedes", (own, "x", memory)),
        ("frequencies", (own, view, "x", 9)),
    ):
        marks = ", ".join(["%s"] * len(values))
        with pytest.raises(errors.ForeignKeyViolation):
            eve.execute(f"INSERT INTO mind.{table} VALUES ({marks})".encode(), values)
    with pytest.raises(errors.ForeignKeyViolation):
        add_unit(eve, own, memory, "x")
    assert found(eve, own_view, "kafka") == []
    assert project != own
