"""Pushing: a working copy's state in the shared index becomes that of its local index.

Contents are written first, some at a time: they are shared between the states of a project, and
no search sees them before a state names them. If a push ends early, the next one goes on. The state
itself changes in one transaction. Private memories are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mimo.api import (
    Command,
    Denied,
    Hint,
    NamedTuple,
    Sources,
    disk,
    from_passages,
    frozen,
    plain,
)
from mimo.api import schema as index_schema
from mimo.extensions.team.postgres import schema as shared
from mimo.extensions.team.postgres.connection import Server, SharedIndexFailed

if TYPE_CHECKING:
    from mimo.api import Vectors
    from mimo.extensions.team.postgres.connection import Connected

MANY = 50_000
"""The number of vectors up to which all are compared; more get an index by nearness."""

_BATCH = 1_000
"""The number of memories, or of vectors, that are written at a time."""

_MOST_POSITION, _MOST_POSITIONS, _LONGEST_WORD = 16_383, 255, 2_046
"""PostgreSQL's limits for the positions of a word, and for its bytes."""

_LONGEST_NAME = 2_000
"""The number of bytes that an indexed value may have; PostgreSQL takes some more."""

LONGEST_NAME = 80
"""The number of characters of a project's name that are shown: anyone who may push chooses it."""

_KEPT_DAYS = 90
"""A working copy that was not pushed for so long is removed by the next push of its project."""

_LOCAL = (
    f"SELECT key, shadowed, approved(approval), topic_key, title_tokens, topic_tokens, passages,"
    f" {index_schema.COLUMNS} FROM memories WHERE private = 0 AND"
)

_REPLACED = (
    "WITH RECURSIVE replaced (key) AS ("
    "SELECT o.key FROM links l CROSS JOIN memories s ON s.key = l.source JOIN memories o"
    " ON o.id = l.target AND o.shadowed = 0 WHERE l.type = 'supersedes' AND s.shadowed = 0"
    f" AND s.private = 0 AND s.id <> o.id AND NOT approved(s.approval) AND {index_schema.VOUCHED}"
    " UNION SELECT o.key FROM replaced r JOIN links l ON l.source = r.key"
    " AND l.type = 'supersedes' JOIN memories o ON o.id = l.target AND o.shadowed = 0"
    ") SELECT key FROM replaced"
)
"""The memories that an unapproved memory supersedes by an earlier, approved text, over all steps.

Others get them as unapproved ones, which the unapproved memory supersedes as ever: the tables have
no column for approved claims.
"""

_MEMORY = (
    "project, hash, id, path, line, digest, private, owned, type, title, topic, created,"
    " importance, confidence, outcome, parent, position, rest, content, topic_key, title_tokens,"
    " topic_tokens, passages, units, unit_tokens, passage_count, passage_tokens,"
    " word_tokens"
)
_UNIT = "project, memory, line, start, length, size, tokens, speakers, vector, words"


@frozen
class WorkingCopy:
    """A project, and the state of it that one working copy has."""

    identity: str
    """The digest of the project's id, equal for all clones of its repository, and for forks."""
    project: str
    """The name of the project."""
    name: str
    """Equal for all pushes of this working copy."""
    label: str
    """The branch, for people."""
    is_default: bool
    """True on the default branch, which others search."""
    committed: datetime | None
    """The time of the last commit."""
    policy: str | None
    """The text of the project's policy, which binds others' searches."""
    address: str = ""
    """The digest of the address of the repository."""
    replaced: str | None = None
    """The name that this working copy had before, whose state is removed."""


class Pushed(NamedTuple):
    """The result of a push."""

    project: int
    memories: int
    """The number of memories in the state."""
    added: int
    """The number of memories that no state of the project had."""
    removed: int
    vectors: int
    """The number of vectors that were sent."""
    left_out: int
    """The number of memories that PostgreSQL can't store.

    They have a NUL, a path that is not valid Unicode, or an id, topic or path of many kB.
    """


class _Row(NamedTuple):
    """A memory of the local index."""

    key: int
    hash: bytes
    shadowed: bool
    approved: bool
    topic_key: str | None
    title: str
    topic: str
    passages: str | None
    values: tuple[Any, ...]
    """The first 17 of `schema.COLUMNS`, as PostgreSQL takes them."""


def push(
    server: Server,
    copy: WorkingCopy,
    sources: Sources,
    advance: Callable[[str, int, int], object] = lambda *_: None,
    *,
    joins: bool = True,
) -> Pushed:
    """Brings the state of a working copy up to date. Raises `SharedIndexFailed`.

    Unless it `joins`, raises `Denied` for a project that another role has put there, or that is of
    another repository: its readers were not chosen for what is pushed.
    `advance` is called with a step, the number of finished items, and of all; it may raise to stop.
    """
    with server.session() as sql:
        from psycopg import Error  # The server has reported it if the package is missing.

        shared.prepare(sql)
        query = "SELECT mind.register(%s, %s, %s, %s)"
        names = copy.identity, _storable(copy.project), copy.address
        (project,) = _one(sql, query, *names, joins)
        if not joins:
            _check_repository(sql, int(project), copy)
        with locked(sql, project, advance):
            (may_write,) = _one(sql, "SELECT %s = ANY (mind.permitted('write'))", project)
            if not may_write:
                raise SharedIndexFailed(
                    f"this role may not write the project `{copy.project}` at `{server.place}`",
                    hint=Hint("ask a user who pushed it for ", Command("index", writer="ROLE")),
                )
            if not joins:
                _check_owner(sql, int(project), copy.project)
            try:
                pushed = _Push(sql, copy, sources, int(project), advance).run()
            finally:
                if not sql.closed:
                    sql.execute("DISCARD TEMP")
        with suppress(Error):  # The push is complete without it, and the next one tries again.
            _make_nearness(sql, sources, advance)
        return pushed


def _check_repository(sql: Connected, project: int, copy: WorkingCopy) -> None:
    """Raises `Denied` if a project of this role is of another repository: a fork has its id."""
    query = (
        "SELECT name FROM mind.projects WHERE key = %s AND address <> %s"
        " AND key = ANY (mind.permitted('admin'))"
    )
    for (name,) in sql.execute(query, (project, copy.address)).fetchall():
        raise Denied(
            f"`{copy.project}` has the id of `{plain(name, LONGEST_NAME)}`,"
            " a project of another repository in the shared index",
            hint=Hint(
                "remove the line `id` from `.mind/config.toml`, and ",
                Command("doctor", fix=True),
                " makes a project of its own; ",
                Command("index", push=True, join=True),
                " sends the memories to the readers of the other",
            ),
        )


def _check_owner(sql: Connected, project: int, name: str) -> None:
    """Raises `Denied` if a project belongs to other roles only."""
    if _one(sql, "SELECT %s = ANY (mind.permitted('admin'))", project) == (True,):
        return
    (owners,) = _one(
        sql,
        "SELECT string_agg(role, ', ' ORDER BY role) FROM mind.access"
        " WHERE project = %s AND level = 'admin'",
        project,
    )
    raise Denied(
        f"the project `{name}` in the shared index belongs to `{owners}`, who chose its readers",
        hint=Hint(Command("index", push=True, join=True), " sends them the memories of this clone"),
    )


@contextmanager
def locked(
    sql: Connected, project: int, advance: Callable[[str, int, int], object] = lambda *_: None
) -> Iterator[None]:
    """Waits for other pushes of a project, which write the same contents, and keeps them off."""
    key = (shared.LOCK, project)
    if _one(sql, "SELECT pg_try_advisory_lock(%s, %s)", *key) != (True,):
        advance("Waiting for another push", 0, 1)
        sql.execute("SELECT pg_advisory_lock(%s, %s)", key)
    try:
        yield
    finally:
        if not sql.closed:
            sql.execute("SELECT pg_advisory_unlock(%s, %s)", (shared.LOCK, project))


def leave(sql: Connected, identity: str, name: str) -> None:
    """Removes the state of a working copy from a project that it does not belong to any more."""
    for (project,) in sql.execute(
        "SELECT key FROM mind.projects WHERE identity = %s", (identity,)
    ).fetchall():
        with locked(sql, project), sql.transaction():
            sql.execute("DELETE FROM mind.views WHERE project = %s AND name = %s", (project, name))
            tidy(sql, project)


class _Push:
    """One push, under the lock of its project."""

    def __init__(
        self,
        sql: Connected,
        copy: WorkingCopy,
        sources: Sources,
        project: int,
        advance: Callable[[str, int, int], object],
    ) -> None:
        self._sql, self._copy, self._sources = sql, copy, sources
        self._project, self._advance = project, advance
        self._left_out = 0
        self._replaced = {key for (key,) in sources.sql.execute(_REPLACED)}

    def run(self) -> Pushed:
        total = self._collect()
        added = self._write_contents()
        sent = sum(self._write_vectors(model, vectors) for model, vectors in self._sources.vectors)
        with self._sql.transaction():
            removed = self._write_state()
        return Pushed(self._project, total, added, removed, sent, self._left_out)

    def _collect(self) -> int:
        """Sends the hashes of the local memories, and returns their number."""
        self._temporary("wanted", "ordinal bigint, hash bytea, shadowed boolean, approved boolean")
        total = 0

        def entries() -> Iterator[tuple[Any, ...]]:
            nonlocal total
            for row in self._local():
                total += 1
                is_approved = row.approved and row.key not in self._replaced
                yield row.key, row.hash, row.shadowed, is_approved
            self._advance("Comparing", 1, 1)

        self._copy_into("wanted", entries())
        self._sql.execute("CREATE INDEX ON pg_temp.wanted (hash); ANALYZE pg_temp.wanted;")
        return total

    def _write_contents(self) -> int:
        """Writes the memories that no state of the project has, and returns their number."""
        missing = [
            ordinal
            for (ordinal,) in self._sql.execute(
                "SELECT w.ordinal FROM pg_temp.wanted w WHERE NOT EXISTS (SELECT 1 FROM"
                " mind.memories m WHERE m.project = %s AND m.hash = w.hash) ORDER BY w.ordinal",
                (self._project,),
            )
        ]
        for start in range(0, len(missing), _BATCH):
            with self._sql.transaction():
                self._write_some(missing[start : start + _BATCH])
            self._advance("Sending memories", min(start + _BATCH, len(missing)), len(missing))
        return len(missing)

    def _write_some(self, keys: Sequence[int]) -> None:
        units: dict[int, list[tuple[Any, ...]]] = {key: [] for key in keys}
        for memory, *unit in self._selected(
            "SELECT memory, line, start, length, unpacked(tokens), speakers, vector FROM units"
            " WHERE memory IN ({}) ORDER BY key",
            keys,
        ):
            units[memory].append(tuple(unit))
        memories = list(self._among(keys))
        self._temporary_like("new_memories", "memories", _MEMORY)
        self._copy_into("new_memories", (self._memory(row, units[row.key]) for row in memories))
        inserted = {
            hash: key
            for key, hash in self._sql.execute(
                f"INSERT INTO mind.memories ({_MEMORY}) SELECT {_MEMORY} FROM"
                " pg_temp.new_memories ON CONFLICT (project, hash) DO NOTHING RETURNING key, hash"
            )
        }
        new = [(inserted[row.hash], row) for row in memories if row.hash in inserted]
        self._temporary_like("new_units", "units", _UNIT)
        self._copy_into(
            "new_units",
            (unit for key, row in new for unit in self._units(key, row, units[row.key])),
        )
        self._sql.execute(f"INSERT INTO mind.units ({_UNIT}) SELECT {_UNIT} FROM pg_temp.new_units")
        self._write_beside(new)

    def _write_beside(self, new: Sequence[tuple[int, _Row]]) -> None:
        """Writes the tags, the superseded ids and the sources of new memories."""
        of = {row.key: key for key, row in new}
        tags = self._selected("SELECT memory, tag FROM tags WHERE memory IN ({})", list(of))
        self._sql.cursor().executemany(
            "INSERT INTO mind.tags VALUES (%s, %s, %s)",
            [(self._project, of[memory], tag) for memory, tag in tags if not _is_long(tag)],
        )
        links = self._selected(
            "SELECT source, target FROM links WHERE type = 'supersedes' AND source IN ({})",
            list(of),
        )
        # A memory whose id is so long is left out, so that the link leads nowhere.
        self._sql.cursor().executemany(
            "INSERT INTO mind.supersedes VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            [
                (self._project, target, of[source])
                for source, target in links
                if not _is_long(target)
            ],
        )
        digests = {
            (row.values[1], row.values[13]): row.values[3]
            for _, row in new
            if row.values[13] is not None
        }
        ids = sorted({id for _, id in digests})
        parents = self._selected(
            "SELECT path, id, tokens, is_chat FROM parents WHERE id IN ({})", ids
        )
        self._sql.cursor().executemany(
            "INSERT INTO mind.parents VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [
                (self._project, path, digests[path, id], id, tokens, bool(is_chat))
                for path, id, tokens, is_chat in parents
                if (path, id) in digests
            ],
        )

    def _write_vectors(self, model: str, vectors: Vectors) -> int:
        """Sends the vectors of a model that the project lacks, and returns their number."""
        names = [
            name
            for (name,) in self._sql.execute(
                "SELECT DISTINCT u.vector FROM pg_temp.wanted w JOIN mind.memories m"
                " ON m.project = %(project)s AND m.hash = w.hash JOIN mind.units u"
                " ON u.memory = m.key"
                " WHERE NOT EXISTS (SELECT 1 FROM mind.vectors v WHERE v.project = %(project)s"
                " AND v.model = %(model)s AND v.name = u.vector)",
                {"project": self._project, "model": model},
            )
        ]
        sent = 0
        for start in range(0, len(names), _BATCH):
            stored = vectors.get(names[start : start + _BATCH])
            self._temporary("new_vectors", "name bytea, vector vector")
            self._copy_into(
                "new_vectors", ((name, literal(vector)) for name, vector in stored.items())
            )
            self._sql.execute(
                "INSERT INTO mind.vectors SELECT %s, %s, name, vector FROM pg_temp.new_vectors"
                " ON CONFLICT DO NOTHING",
                (self._project, model),
            )
            sent += len(stored)
            self._advance("Sending vectors", min(start + _BATCH, len(names)), len(names))
        return sent

    def _write_state(self) -> int:
        """Makes the state that of the local index; returns the number of memories that it loses."""
        copy, sql = self._copy, self._sql
        (view,) = _one(
            sql,
            "INSERT INTO mind.views (project, name, label, is_default, committed, policy)"
            " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (project, name) DO UPDATE SET"
            " label = excluded.label, is_default = excluded.is_default, pushed = now(),"
            " committed = excluded.committed, policy = excluded.policy RETURNING key",
            *(self._project, copy.name, _storable(copy.label), copy.is_default),
            *(copy.committed, None if copy.policy is None else _storable(copy.policy)),
        )
        sql.execute(
            "DELETE FROM mind.views WHERE project = %s AND name = %s AND name <> %s",
            (self._project, copy.replaced, copy.name),
        )
        self._temporary("state", "memory bigint PRIMARY KEY, shadowed boolean, approved boolean")
        sql.execute(
            "INSERT INTO pg_temp.state SELECT m.key, w.shadowed, w.approved FROM pg_temp.wanted w"
            " JOIN mind.memories m ON m.project = %s AND m.hash = w.hash ON CONFLICT DO NOTHING",
            (self._project,),
        )
        self._temporary("delta", "memory bigint, sign int")
        sql.execute(
            "INSERT INTO pg_temp.delta SELECT memory, 1 FROM pg_temp.state s WHERE NOT EXISTS"
            " (SELECT 1 FROM mind.entries e WHERE e.view = %(view)s AND e.memory = s.memory)"
            " UNION ALL SELECT memory, -1 FROM mind.entries e WHERE e.view = %(view)s AND NOT"
            " EXISTS (SELECT 1 FROM pg_temp.state s WHERE s.memory = e.memory)",
            {"view": view},
        )
        sql.execute(
            "DELETE FROM mind.entries e USING pg_temp.delta d"
            " WHERE e.view = %s AND e.memory = d.memory AND d.sign = -1",
            (view,),
        )
        sql.execute(
            "INSERT INTO mind.entries SELECT %s, memory, %s, shadowed, approved FROM pg_temp.state"
            " ON CONFLICT (view, memory) DO UPDATE SET shadowed = excluded.shadowed,"
            " approved = excluded.approved WHERE entries.shadowed <> excluded.shadowed"
            " OR entries.approved <> excluded.approved",
            (view, self._project),
        )
        self._count(int(view))
        tidy(sql, self._project)
        (removed,) = _one(sql, "SELECT count(*) FROM pg_temp.delta WHERE sign = -1")
        return int(removed)

    def _count(self, view: int) -> None:
        """Brings the frequencies and the sums of a state up to date."""
        sql, of_view = self._sql, {"view": view, "project": self._project}
        sql.execute(
            "INSERT INTO mind.frequencies SELECT %(project)s, %(view)s, term, sum(sign) FROM"
            " (SELECT unnest(tsvector_to_array(u.words)) AS term, d.sign FROM pg_temp.delta d"
            " JOIN mind.units u ON u.memory = d.memory) t WHERE term NOT LIKE '#%%'"
            " GROUP BY term ON CONFLICT (view, term) DO UPDATE"
            " SET units = frequencies.units + excluded.units",
            of_view,
        )
        sql.execute("DELETE FROM mind.frequencies WHERE view = %(view)s AND units = 0", of_view)
        sql.execute(
            "UPDATE mind.views SET (memories, units, unit_tokens, passages, passage_tokens,"
            " word_tokens, shadowed) = (SELECT count(*), coalesce(sum(m.units), 0),"
            " coalesce(sum(m.unit_tokens), 0), coalesce(sum(m.passage_count), 0),"
            " coalesce(sum(m.passage_tokens), 0), coalesce(sum(m.word_tokens), 0),"
            " count(*) FILTER (WHERE e.shadowed)"
            " FROM mind.entries e JOIN mind.memories m ON m.key = e.memory"
            " WHERE e.view = %(view)s) WHERE key = %(view)s",
            of_view,
        )
        sql.execute(
            "UPDATE mind.views SET encoder = %(model)s, (encoded, unreadable, missing) = (SELECT"
            " count(v.vector), count(v.name) - count(v.vector), count(*) - count(v.name)"
            " FROM mind.entries e JOIN mind.units u ON u.memory = e.memory LEFT JOIN mind.vectors v"
            " ON v.project = e.project AND v.model = %(model)s AND v.name = u.vector"
            " WHERE e.view = %(view)s AND NOT e.shadowed) WHERE key = %(view)s",
            {**of_view, "model": self._sources.encoder},
        )

    # The local index.

    def _local(self) -> Iterator[_Row]:
        """Yields the memories that may be shared."""
        last_key = 0
        query = f"{_LOCAL} key > ? ORDER BY key LIMIT ?"
        while batch := self._sources.sql.execute(query, (last_key, _BATCH)).fetchall():
            for values in batch:
                row = _row(values)
                if row is None:
                    self._left_out += 1
                else:
                    yield row
            last_key = batch[-1][0]

    def _among(self, keys: Sequence[int]) -> Iterator[_Row]:
        for values in self._selected(f"{_LOCAL} key IN ({{}}) ORDER BY key", keys):
            if row := _row(values):
                yield row

    def _selected(self, query: str, values: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """Yields the rows of a query that ends with some values, in order of these."""
        for some in index_schema.portions(values):
            yield from self._sources.sql.execute(query.format(index_schema.marks(some)), some)

    def _memory(self, row: _Row, units: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        texts = [unit[3] for unit in units]
        passages = from_passages(row.passages, texts)
        unit_tokens = sum(tokens.count(" ") + 1 for tokens in texts)
        heading = f"{row.title} {row.topic}".split()
        return (
            self._project,
            row.hash,
            *row.values,
            *(row.topic_key, row.title, row.topic, row.passages),
            *(len(units), unit_tokens, len(passages or texts)),
            sum(tokens.count(" ") + 1 for tokens in passages) if passages else unit_tokens,
            len(heading) + sum(len(tokens.split()) for tokens in texts),
        )

    def _units(
        self, key: int, row: _Row, units: Iterable[tuple[Any, ...]]
    ) -> Iterator[tuple[Any, ...]]:
        heading = f"{row.title} {row.topic}".split()
        for line, start, length, tokens, speakers, vector in units:
            words = [*heading, *tokens.split()]
            heading = []
            of_project = f"'#{self._project}'"
            yield (
                *(self._project, key, line, start, length, len(words), tokens, speakers, vector),
                f"{of_project} {to_tsvector(words)}",
            )

    # The server.

    def _temporary(self, name: str, columns: str) -> None:
        """Creates an empty temporary table."""
        self._sql.execute(
            f"DROP TABLE IF EXISTS pg_temp.{name};"
            f" CREATE TEMPORARY TABLE {name} ({columns})".encode()
        )

    def _temporary_like(self, name: str, table: str, columns: str) -> None:
        """Creates an empty temporary table with some columns of a table."""
        self._sql.execute(
            f"DROP TABLE IF EXISTS pg_temp.{name}; CREATE TEMPORARY TABLE {name} AS"
            f" SELECT {columns} FROM mind.{table} WITH NO DATA".encode()
        )

    def _copy_into(self, name: str, new_rows: Iterable[tuple[Any, ...]]) -> None:
        with self._sql.cursor().copy(f"COPY pg_temp.{name} FROM STDIN".encode()) as copy:
            for row in new_rows:
                copy.write_row(row)


def tidy(sql: Connected, project: int) -> None:
    """Removes states that are not pushed any more, and contents that no state has.

    Those of a push that was interrupted are among them.
    """
    sql.execute(
        "DELETE FROM mind.views WHERE project = %s AND pushed < now() - %s * interval '1 day'",
        (project, _KEPT_DAYS),
    )
    sql.execute(
        "DROP TABLE IF EXISTS pg_temp.unused;"
        " CREATE TEMPORARY TABLE unused (memory bigint PRIMARY KEY)"
    )
    unused = sql.execute(
        "INSERT INTO pg_temp.unused SELECT key FROM mind.memories m WHERE project = %s AND NOT"
        " EXISTS (SELECT 1 FROM mind.entries e WHERE e.memory = m.key)",
        (project,),
    )
    if not unused.rowcount:
        return
    for table in ("units", "tags", "supersedes"):
        sql.execute(f"DELETE FROM mind.{table} t USING pg_temp.unused d WHERE t.memory = d.memory")
    sql.execute("DELETE FROM mind.memories m USING pg_temp.unused d WHERE m.key = d.memory")
    sql.execute(
        "DELETE FROM mind.parents p WHERE project = %s AND NOT EXISTS (SELECT 1 FROM"
        " mind.memories m WHERE m.project = p.project AND m.parent = p.id"
        " AND m.path = p.path AND m.digest = p.digest)",
        (project,),
    )
    sql.execute(
        "DELETE FROM mind.vectors v WHERE project = %s AND NOT EXISTS (SELECT 1 FROM"
        " mind.units u WHERE u.project = v.project AND u.vector = v.name)",
        (project,),
    )


def to_tsvector(words: Sequence[str]) -> str:
    """Returns the words of a unit with their places, as PostgreSQL reads them."""
    places: dict[str, list[str]] = {}
    for place, word in enumerate(words, 1):
        held = places.setdefault(word, [])
        if place <= _MOST_POSITION and len(held) < _MOST_POSITIONS:
            held.append(str(place))
    return " ".join(f"{quoted(word)}:{','.join(held)}" for word, held in places.items())


def quoted(word: str) -> str:
    """Returns a word as a lexeme of PostgreSQL's text search."""
    doubled = lexeme(word).replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"


def lexeme(word: str) -> str:
    """Returns a word as the text search holds it: the hash of one that is too long."""
    data = word.encode()
    return word if len(data) <= _LONGEST_WORD else disk.blake2b(data).hex()


def literal(vector: bytes) -> str | None:
    """Returns an int8 vector as pgvector reads it; None for an empty one."""
    return f"[{','.join(map(str, memoryview(vector).cast('b')))}]" if vector else None


def _row(values: Sequence[Any]) -> _Row | None:
    """Returns a memory of the local index; None if PostgreSQL can't store it."""
    key, shadowed, approved, topic_key, title, topic, passages, *columns = values
    stored = (
        *(
            columns[0],
            index_schema.from_sql(columns[1]),
            columns[2],
            index_schema.from_digest(columns[3]),
        ),
        *(bool(columns[4]), bool(columns[5])),
        *columns[6:16],
        index_schema.unpacked(columns[16]),
    )
    # Another version may cut texts in another way.
    parts = (index_schema.FORMAT, topic_key, title, topic, passages, stored)
    written = repr(parts)
    texts = (topic_key, title, topic, passages, *stored)
    if r"\x00" in written and any("\0" in text for text in texts if isinstance(text, str)):
        return None
    id, path, parent = columns[0], columns[1], columns[13]
    if not isinstance(path, str) or _is_long(id) or _is_long(topic_key or ""):
        return None
    if parent is not None and _is_long(f"{path}{parent}"):
        return None
    hash = disk.blake2b(written.encode("utf-8", "surrogatepass"))
    return _Row(
        *(key, hash, bool(shadowed), bool(approved), topic_key, title, topic, passages),
        stored,
    )


def _storable(text: str) -> str:
    """Returns a text without what PostgreSQL refuses: NUL, and bytes that are not UTF-8."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _is_long(name: str) -> bool:
    """Returns whether an index of PostgreSQL may refuse a value."""
    return len(name) > _LONGEST_NAME // 4 and len(name.encode()) > _LONGEST_NAME


def _make_nearness(
    sql: Connected, sources: Sources, advance: Callable[[str, int, int], object]
) -> None:
    """Makes the indexes by nearness of models with many vectors, unless another process does."""
    for model, vectors in sources.vectors:
        width = vectors.state().width
        if not width or shared.nearness(sql, model, width).is_made or not _are_many(sql, model):
            continue
        # Two processes that make one would wait for each other.
        if _one(sql, "SELECT pg_try_advisory_lock(%s, 0)", shared.LOCK) == (True,):
            try:
                advance("Building the index by nearness", 0, 1)
                shared.make_nearness(sql, model, width)
            finally:
                if not sql.closed:
                    sql.execute("SELECT pg_advisory_unlock(%s, 0)", (shared.LOCK,))


def _are_many(sql: Connected, model: str) -> bool:
    """Returns whether a model has so many vectors that comparing all takes too long."""
    query = "SELECT count(*) FROM (SELECT 1 FROM mind.vectors WHERE model = %s LIMIT %s) v"
    return bool(_one(sql, query, model, MANY + 1)[0] > MANY)


def _one(sql: Connected, query: str, *values: object) -> tuple[Any, ...]:
    row = sql.execute(query.encode(), values).fetchone()
    if row is None:
        raise LookupError(query)
    return row
