"""The tables of the shared index, who may read and write them, and their migrations.

`views` has the state of each working copy that was pushed, `entries` the memories of each state.
`memories` and `units` are shared between the states of one project: their key is the hash of all
stored values. `frequencies` counts the units of a state that hold a term. `vectors` has the vectors
of texts by the hashes of the texts.

Every table with a project has row-level security. Foreign keys hold the project, so that no
row refers to another project's. The operators of text search may not be used before row-level
security (they are not leakproof), so `by_words` checks the projects itself and runs as the owner.
The path of functions that do so ends with `pg_temp`: if left out, it would come first, and a
caller's temporary tables and types would be taken for those of the system.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from mimo.api import Command, Hint, NamedTuple, StorageFailed, disk

if TYPE_CHECKING:
    from psycopg import Connection

PATH = "mind"

LOCK = 0x6D696E64
"""The key of the advisory lock of a process that changes the tables."""

MOST_COUNT = 255
"""The number of times that a unit may hold a term and be counted exactly."""

_LOCK_WAIT = "5s"
"""The time for which a migration waits for a lock, while readers would wait behind it."""

_TURN_WAIT = "60s"
"""The time for which a process waits for the migrations of another."""

_RANK = 1.64493406685
"""PostgreSQL's constant, by which `ts_rank` divides: the sum of 1/n²."""


def _steps() -> Iterator[str]:
    """Yields the ranks between those of one and of two occurrences, of two and of three, …

    For a single word, `ts_rank` depends on nothing but its occurrences: it is the sum of their
    1/n², divided by a constant. It is the fastest way to count them.
    """
    rank = 0.0
    for count in range(1, MOST_COUNT + 1):
        following = rank + 1 / count**2 / _RANK
        yield repr((rank + following) / 2)
        rank = following


_TABLES = """
CREATE SCHEMA IF NOT EXISTS mind;
CREATE EXTENSION IF NOT EXISTS vector;
GRANT USAGE ON SCHEMA mind TO PUBLIC;

CREATE TABLE mind.meta (name text PRIMARY KEY, value bigint NOT NULL);
GRANT SELECT ON mind.meta TO PUBLIC;

CREATE TABLE mind.projects (
    key integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    identity text NOT NULL UNIQUE,
    name text NOT NULL,
    withdrawn boolean NOT NULL DEFAULT false,
    created timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE mind.access (
    project integer NOT NULL REFERENCES mind.projects ON DELETE CASCADE,
    role name NOT NULL,
    level text NOT NULL CHECK (level IN ('read', 'write', 'admin')),
    PRIMARY KEY (project, role)
);

CREATE TABLE mind.views (
    key integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project integer NOT NULL,
    name text NOT NULL,
    label text NOT NULL,
    is_default boolean NOT NULL,
    committed timestamptz,
    pushed timestamptz NOT NULL DEFAULT now(),
    state text NOT NULL DEFAULT '',
    policy text,
    memories bigint NOT NULL DEFAULT 0,
    units bigint NOT NULL DEFAULT 0,
    unit_tokens bigint NOT NULL DEFAULT 0,
    passages bigint NOT NULL DEFAULT 0,
    passage_tokens bigint NOT NULL DEFAULT 0,
    shadowed bigint NOT NULL DEFAULT 0,
    word_tokens bigint NOT NULL DEFAULT 0,
    encoder text,
    encoded bigint NOT NULL DEFAULT 0,
    unreadable bigint NOT NULL DEFAULT 0,
    missing bigint NOT NULL DEFAULT 0,
    UNIQUE (project, name),
    UNIQUE (project, key)
);

CREATE TABLE mind.memories (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project integer NOT NULL,
    hash bytea NOT NULL,
    id text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    line integer NOT NULL,
    digest text NOT NULL,
    private boolean NOT NULL CHECK (NOT private),
    owned boolean NOT NULL,
    type text NOT NULL,
    title text,
    topic text,
    created bigint NOT NULL,
    importance double precision NOT NULL,
    confidence double precision,
    outcome text,
    parent text COLLATE "C",
    position integer NOT NULL,
    rest text NOT NULL,
    content text NOT NULL,
    topic_key text,
    title_tokens text NOT NULL,
    topic_tokens text NOT NULL,
    passages text,
    vector bytea NOT NULL,
    units integer NOT NULL,
    unit_tokens integer NOT NULL,
    passage_count integer NOT NULL,
    passage_tokens integer NOT NULL,
    word_tokens integer NOT NULL,
    UNIQUE (project, hash),
    UNIQUE (project, key)
);
CREATE INDEX memories_id ON mind.memories (project, id);
CREATE INDEX memories_topic ON mind.memories (project, topic_key) WHERE topic_key IS NOT NULL;
CREATE INDEX memories_parent ON mind.memories (project, parent, position) WHERE parent IS NOT NULL;

CREATE TABLE mind.entries (
    view integer NOT NULL,
    memory bigint NOT NULL,
    project integer NOT NULL,
    shadowed boolean NOT NULL,
    approved boolean NOT NULL,
    PRIMARY KEY (view, memory),
    FOREIGN KEY (project, view) REFERENCES mind.views (project, key) ON DELETE CASCADE,
    FOREIGN KEY (project, memory) REFERENCES mind.memories (project, key) ON DELETE CASCADE
);
CREATE INDEX entries_memory ON mind.entries (memory, view) INCLUDE (shadowed, approved);

CREATE TABLE mind.tags (
    project integer NOT NULL, memory bigint NOT NULL, tag text COLLATE "C" NOT NULL,
    PRIMARY KEY (memory, tag),
    FOREIGN KEY (project, memory) REFERENCES mind.memories (project, key) ON DELETE CASCADE
);

CREATE TABLE mind.supersedes (
    project integer NOT NULL, target text COLLATE "C" NOT NULL, memory bigint NOT NULL,
    PRIMARY KEY (project, target, memory),
    FOREIGN KEY (project, memory) REFERENCES mind.memories (project, key) ON DELETE CASCADE
);
CREATE INDEX supersedes_memory ON mind.supersedes (memory);

CREATE TABLE mind.parents (
    project integer NOT NULL, path text COLLATE "C" NOT NULL, digest text NOT NULL,
    id text COLLATE "C" NOT NULL, tokens text NOT NULL, is_chat boolean NOT NULL,
    PRIMARY KEY (project, path, digest, id)
);

CREATE TABLE mind.units (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project integer NOT NULL,
    memory bigint NOT NULL,
    line integer NOT NULL,
    start integer NOT NULL,
    length integer NOT NULL,
    size integer NOT NULL,
    tokens text NOT NULL,
    speakers text NOT NULL,
    vector bytea NOT NULL,
    words tsvector NOT NULL,
    FOREIGN KEY (project, memory) REFERENCES mind.memories (project, key) ON DELETE CASCADE
);
CREATE INDEX units_memory ON mind.units (memory);
CREATE INDEX units_vector ON mind.units (project, vector);
CREATE INDEX units_words ON mind.units USING gin (words);

CREATE TABLE mind.frequencies (
    project integer NOT NULL, view integer NOT NULL, term text COLLATE "C" NOT NULL,
    units bigint NOT NULL,
    PRIMARY KEY (view, term),
    FOREIGN KEY (project, view) REFERENCES mind.views (project, key) ON DELETE CASCADE
);

CREATE TABLE mind.vectors (
    project integer NOT NULL, model text NOT NULL, name bytea NOT NULL, vector vector,
    PRIMARY KEY (project, model, name)
);
CREATE INDEX vectors_name ON mind.vectors (name, model);

CREATE FUNCTION mind.acting() RETURNS name LANGUAGE sql STABLE AS $$
    -- The role that was set, which SECURITY DEFINER does not change, or the one of the connection.
    SELECT CASE current_setting('role') WHEN 'none' THEN session_user
        ELSE current_setting('role')::name END
$$;

CREATE FUNCTION mind.permitted(lowest text) RETURNS integer[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, mind, pg_temp AS $$
    SELECT coalesce(array_agg(DISTINCT a.project), '{}')
    FROM mind.access a JOIN mind.projects p ON p.key = a.project
    LEFT JOIN pg_roles r ON r.rolname = a.role
    WHERE CASE lowest WHEN 'read' THEN true WHEN 'write' THEN a.level IN ('write', 'admin')
        ELSE a.level = 'admin' END
    AND (lowest = 'admin' OR NOT p.withdrawn)
    AND (a.role = 'public' OR (r.oid IS NOT NULL AND pg_has_role(mind.acting(), r.oid, 'MEMBER')))
$$;

CREATE FUNCTION mind.register(identity text, name text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, mind, pg_temp AS $$
DECLARE found integer;
BEGIN
    INSERT INTO mind.projects (identity, name) VALUES ($1, $2)
        ON CONFLICT DO NOTHING RETURNING key INTO found;
    IF found IS NOT NULL THEN
        INSERT INTO mind.access VALUES (found, mind.acting(), 'admin');
        RETURN found;
    END IF;
    SELECT p.key INTO found FROM mind.projects p WHERE p.identity = $1;
    IF found = ANY (mind.permitted('admin')) THEN
        UPDATE mind.projects p SET withdrawn = false WHERE p.key = found AND p.withdrawn;
    END IF;
    RETURN found;
END $$;

CREATE FUNCTION mind.share(project integer, role name, level text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, mind, pg_temp AS $$
BEGIN
    IF NOT $1 = ANY (mind.permitted('admin')) THEN
        RAISE insufficient_privilege;
    END IF;
    IF $3 IS NULL THEN
        DELETE FROM mind.access a WHERE a.project = $1 AND a.role = $2 AND a.level <> 'admin';
    ELSE
        INSERT INTO mind.access VALUES ($1, $2, $3)
            ON CONFLICT ON CONSTRAINT access_pkey DO UPDATE SET level = excluded.level
            WHERE access.level <> 'admin';
    END IF;
END $$;

CREATE FUNCTION mind.withdraw(project integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, mind, pg_temp AS $$
BEGIN
    IF NOT $1 = ANY (mind.permitted('admin')) THEN
        RAISE insufficient_privilege;
    END IF;
    UPDATE mind.projects p SET withdrawn = true WHERE p.key = $1;
    DELETE FROM mind.access a WHERE a.project = $1 AND a.level <> 'admin';
END $$;

CREATE FUNCTION mind.clear(project integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, mind, pg_temp AS $$
BEGIN
    IF NOT $1 = ANY (mind.permitted('admin')) THEN
        RAISE insufficient_privilege;
    END IF;
    DELETE FROM mind.entries t WHERE t.project = $1;
    DELETE FROM mind.frequencies t WHERE t.project = $1;
    DELETE FROM mind.views t WHERE t.project = $1;
    DELETE FROM mind.units t WHERE t.project = $1;
    DELETE FROM mind.tags t WHERE t.project = $1;
    DELETE FROM mind.supersedes t WHERE t.project = $1;
    DELETE FROM mind.parents t WHERE t.project = $1;
    DELETE FROM mind.memories t WHERE t.project = $1;
    DELETE FROM mind.vectors t WHERE t.project = $1;
END $$;

{policies}
"""

_BY_WORDS = f"""
CREATE OR REPLACE FUNCTION mind.by_words(
    views integer[], narrowing text, lexemes text[], weights double precision[],
    mean double precision, most bigint
) RETURNS TABLE (memory bigint, weight double precision)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, mind, pg_temp AS $$
DECLARE
    allowed integer[];
    counts text := '';
    total text := '0';
    steps float8[] := '{{{",".join(_steps())}}}';
BEGIN
    SELECT array_agg(v.key) INTO allowed FROM mind.views v
        WHERE v.key = ANY (views) AND v.project = ANY (mind.permitted('read'));
    FOR i IN 1 .. cardinality(lexemes) LOOP
        counts := counts || format(', width_bucket(ts_rank(%L, u.words, %L::tsquery), $5)'
            ' AS c%s', '{{1,1,1,1}}', lexemes[i], i);
        -- The order of the operations is that of FTS5, so that equal units stay equal.
        total := total || format(' + %s::float8 * (c%s * 2.2::float8 / (c%s + norm))',
            weights[i], i, i);
    END LOOP;
    -- OFFSET 0 keeps the planner from counting twice.
    RETURN QUERY EXECUTE format(
        'SELECT n.memory, (%s)::float8 FROM (SELECT u.memory, u.key, 1.2::float8 *'
        ' (1 - 0.75::float8 + 0.75::float8 * u.size / $2) AS norm%s FROM mind.units u'
        ' WHERE u.words @@ $1::tsquery AND EXISTS (SELECT 1 FROM mind.entries e'
        ' WHERE e.memory = u.memory AND e.view = ANY ($3)) OFFSET 0) n'
        ' ORDER BY 2 DESC, n.key LIMIT $4', total, counts
    ) USING narrowing || '(' || array_to_string(lexemes, ' | ') || ')', mean, allowed, most, steps;
END $$;
"""

_ADDRESS = """
ALTER TABLE mind.projects ADD COLUMN IF NOT EXISTS address text NOT NULL DEFAULT '';
DROP FUNCTION IF EXISTS mind.register(text, text);
CREATE OR REPLACE FUNCTION mind.register(identity text, name text, address text, joins boolean)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, mind, pg_temp AS $$
DECLARE found integer;
BEGIN
    INSERT INTO mind.projects (identity, name, address) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING RETURNING key INTO found;
    IF found IS NOT NULL THEN
        INSERT INTO mind.access VALUES (found, mind.acting(), 'admin');
        RETURN found;
    END IF;
    SELECT p.key INTO found FROM mind.projects p WHERE p.identity = $1;
    IF found = ANY (mind.permitted('admin')) THEN
        UPDATE mind.projects p SET withdrawn = false
            WHERE p.key = found AND p.withdrawn AND ($4 OR p.address = $3);
    END IF;
    RETURN found;
END $$;
"""
"""A project is known by its id, which a fork has too, so the repository that it is of is stored."""

TABLES = (
    *("views", "memories", "entries", "tags", "supersedes", "parents", "units", "frequencies"),
    "vectors",
)
"""The tables whose rows belong to projects, each with its project in the column `project`."""


def _policies() -> Iterator[str]:
    for table, column in (("projects", "key"), ("access", "project")):
        yield f"ALTER TABLE mind.{table} ENABLE ROW LEVEL SECURITY;"
        yield f"GRANT SELECT ON mind.{table} TO PUBLIC;"
        yield (
            f"CREATE POLICY reading ON mind.{table} FOR SELECT USING"
            f" ({column} = ANY ((SELECT mind.permitted('read'))::integer[])"
            f" OR {column} = ANY ((SELECT mind.permitted('admin'))::integer[]));"
        )
    for table in TABLES:
        yield f"ALTER TABLE mind.{table} ENABLE ROW LEVEL SECURITY;"
        yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON mind.{table} TO PUBLIC;"
        yield (
            f"CREATE POLICY reading ON mind.{table} FOR SELECT USING"
            " (project = ANY ((SELECT mind.permitted('read'))::integer[]));"
        )
        yield (
            f"CREATE POLICY writing ON mind.{table} USING"
            " (project = ANY ((SELECT mind.permitted('write'))::integer[]));"
        )


class Migration(NamedTuple):
    """The statements that lead from the format before to that of its number."""

    number: int
    statements: str


MIGRATIONS = (
    Migration(1, _TABLES.replace("{policies}", "\n".join(_policies()))),
    Migration(2, "ALTER TABLE mind.memories DROP COLUMN vector"),
    Migration(3, _BY_WORDS),
    Migration(4, _ADDRESS),
)
"""All migrations. They run in one transaction, and take no lock that readers wait for long."""


def prepare(sql: Connection[tuple[Any, ...]], migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Brings the tables to the current format, if that is later.

    One process at a time does so. It gives up if it would have to wait long for a lock, since
    readers would wait behind it; the next one tries again. Raises `StorageFailed` if this role may
    not do so or the tables have a later format, and errors of PostgreSQL.
    """
    from psycopg.errors import FeatureNotSupported, InsufficientPrivilege, UndefinedFile

    if is_current(format_of(sql), migrations):
        return
    # A transaction that began before the wait could see the tables of before.
    with _turn(sql), sql.transaction():
        sql.execute("SELECT set_config('lock_timeout', %s, true)", (_LOCK_WAIT,))
        number = format_of(sql)
        if is_current(number, migrations):  # Another process was faster.
            return
        _check_owner(sql)
        try:
            for migration in migrations[number:]:
                sql.execute(migration.statements.encode())
            sql.execute(
                "INSERT INTO mind.meta VALUES ('format', %s)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (migrations[-1].number,),
            )
        except InsufficientPrivilege as error:
            raise StorageFailed(
                "this role may not make the tables of the shared index",
                hint=Hint(
                    "the database's owner runs ",
                    Command("index", push=True),
                    " first: docs/shared-index.md",
                ),
            ) from error
        except (FeatureNotSupported, UndefinedFile) as error:
            raise StorageFailed(
                f"the server of the shared index lacks a part: {str(error).splitlines()[0]}",
                hint=Hint("install pgvector on the server, then run ", Command("index", push=True)),
            ) from error


@contextmanager
def _turn(sql: Connection[tuple[Any, ...]]) -> Iterator[None]:
    """Holds the lock of migrations. Raises `LockNotAvailable` after a long wait."""
    from psycopg import Error

    with sql.transaction():
        sql.execute("SELECT set_config('lock_timeout', %s, true)", (_TURN_WAIT,))
        sql.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
    try:
        yield
    finally:
        with suppress(Error):  # The end of a connection that broke frees it, too.
            sql.execute("SELECT pg_advisory_unlock(%s)", (LOCK,))


def _check_owner(sql: Connection[tuple[Any, ...]]) -> None:
    """Raises `StorageFailed` if the schema belongs to an untrusted role.

    Its owner could add functions to it, which ours would call with the rights of their owner.
    """
    row = sql.execute(
        "SELECT r.rolname FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner"
        " WHERE n.nspname = %s AND r.rolname <> current_user AND NOT r.rolsuper",
        (PATH,),
    ).fetchone()
    if row is not None:
        raise StorageFailed(
            f"the schema `{PATH}` of the database belongs to the role `{row[0]}`",
            hint=Hint("that role runs ", Command("index", push=True), ", or drops the schema"),
        )


def check_format(sql: Connection[tuple[Any, ...]]) -> None:
    """Raises `StorageFailed` unless the tables have the current format."""
    if not is_current(format_of(sql)):
        raise StorageFailed(
            "the shared index has no tables of this version of mind",
            hint=Hint(
                Command("index", push=True),
                ", by a role that may create them, brings them up to date",
            ),
        )


def is_current(number: int, migrations: Sequence[Migration] = MIGRATIONS) -> bool:
    """Returns whether tables have the current format. Raises `StorageFailed` for a later one."""
    if number > migrations[-1].number:
        raise StorageFailed(
            "a later version of mind made the tables of the shared index",
            hint="update mind on this machine; your files and the local index are complete",
        )
    return number == migrations[-1].number


def format_of(sql: Connection[tuple[Any, ...]]) -> int:
    """Returns the format of the tables; 0 if there are none."""
    if sql.execute("SELECT to_regclass('mind.meta')").fetchone() == (None,):
        return 0
    stored = sql.execute("SELECT value FROM mind.meta WHERE name = 'format'").fetchone()
    return int(stored[0]) if stored else 0


class Nearness(NamedTuple):
    """The index by nearness of the vectors of one model."""

    name: str
    column: str
    """The indexed expression."""
    kind: str
    condition: str
    is_made: bool
    iterates: bool
    """True if it goes on until enough vectors pass a filter, as from pgvector 0.8."""


def nearness(sql: Connection[tuple[Any, ...]], model: str, dims: int) -> Nearness:
    """Returns the index by nearness of a model, which may not be made yet."""
    name = f"vectors_near_{disk.blake2b(model.encode()).hex()[:8]}"
    row = sql.execute(
        "SELECT extversion, EXISTS (SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid ="
        " i.indexrelid WHERE c.relname = %s AND i.indisvalid) FROM pg_extension"
        " WHERE extname = 'vector'",
        (name,),
    ).fetchone()
    version, is_built = row or ("0.0", False)
    number = tuple(int(part) for part in version.split(".")[:2])
    # Vectors of half the size hold our numbers exactly.
    kind = f"halfvec({dims})" if number >= (0, 7) else f"vector({dims})"
    quoted = model.replace("'", "''")
    return Nearness(
        name=name,
        column=f"(vector::{kind})",
        kind=kind,
        # Building it would fail at a vector of another length, which any project may hold.
        condition=f"model = '{quoted}' AND vector_dims(vector) = {dims}",
        is_made=is_built,
        iterates=number >= (0, 8),
    )


def make_nearness(sql: Connection[tuple[Any, ...]], model: str, dims: int) -> bool:
    """Makes the index by nearness of a model, without blocking readers and writers.

    Returns whether it did: it is there already, or the role may not. Raises errors of PostgreSQL.
    """
    index = nearness(sql, model, dims)
    owns = "SELECT pg_has_role(tableowner, 'MEMBER') FROM pg_tables WHERE schemaname = 'mind'"
    if index.is_made or sql.execute(f"{owns} AND tablename = 'vectors'".encode()).fetchone() != (
        True,
    ):
        return False
    # Such a statement is in no transaction, whose end would take the setting back.
    sql.execute("SET maintenance_work_mem = '1GB'")
    try:
        sql.execute(f"DROP INDEX CONCURRENTLY IF EXISTS mind.{index.name}".encode())
        operators = f"{index.kind.partition('(')[0]}_ip_ops"
        sql.execute(
            f"CREATE INDEX CONCURRENTLY {index.name} ON mind.vectors"
            f" USING hnsw ({index.column} {operators}) WHERE {index.condition}".encode()
        )
    finally:
        if not sql.closed:
            sql.execute("RESET maintenance_work_mem")
    return True
