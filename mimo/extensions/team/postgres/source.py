"""Searching the shared index: it names the candidates, and `search` ranks them as anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from math import ceil, log
from time import monotonic
from typing import TYPE_CHECKING, Any

from mimo.api import (
    Filter,
    Hit,
    Kind,
    NamedTuple,
    Newer,
    Outcome,
    Record,
    cosine,
    embedding,
    meanings,
    newer,
    selection,
    tables,
)
from mimo.api import record as read_record
from mimo.api import schema as index_schema
from mimo.api import search as index_search
from mimo.extensions.team.postgres import schema, writing
from mimo.extensions.team.postgres.connection import MORE_SECONDS, QUERY_SECONDS, Server

if TYPE_CHECKING:
    from datetime import datetime

    from mimo.extensions.team.postgres.connection import Connected
    from mimo.extensions.team.postgres.watched import Watched

_EXAMINED = 400
"""The number of vectors that the index by nearness returns; many units may not pass."""

_MOST_TERMS = 200
"""The most words of a query that are counted, the rarest: each is a column, and takes time."""

_NARROW = 20
"""The number of projects up to which they are looked up in the index of words."""

_COMMON = 1e-6
"""The weight of a word in more than half of the units, as in FTS5."""

_CANDIDATE = (
    "m.key, m.created, m.importance, m.title_tokens, m.topic_tokens, m.passages, m.path,"
    " m.parent, m.position, m.id, m.owned, m.project"
)
_COLUMNS = tuple(name.strip() for name in index_schema.COLUMNS.split(","))[:17]
_RECORD = ", ".join([*(f"m.{name}" for name in _COLUMNS), "''"])  # Approvals are not shared.
_REST_INDEX = _COLUMNS.index("rest")
_KINDS, _OUTCOMES = frozenset(Kind), frozenset(Outcome)

_CURRENT = (
    "NOT EXISTS (SELECT 1 FROM mind.supersedes l JOIN mind.entries se ON se.memory = l.memory"
    " AND se.view = {e}.view JOIN mind.memories s ON s.key = l.memory"
    " WHERE l.project = {m}.project AND l.target = {m}.id AND NOT se.shadowed AND s.id <> {m}.id"
    " AND (se.approved OR NOT {e}.approved))"
)
"""The condition that nothing in the same state supersedes a memory, as in `schema.CURRENT`."""

_DIALECT = selection.Dialect(
    "NOT e.shadowed", "e.approved", _CURRENT.format(m="{0}", e="e"), "mind.tags"
)


class View(NamedTuple):
    """The state of a project that is searched."""

    key: int
    project: int
    name: str
    """The name of the project."""
    label: str
    """The branch."""
    pushed: datetime
    policy: str | None
    """The text of the project's policy."""


@contextmanager
def opened(
    server: Server,
    choose: Callable[[Connected], Sequence[View]],
    embedder: embedding.Embedder | None,
    encoder: Callable[[], embedding.Embedder | None] = lambda: None,
    role: str | None = None,
) -> Iterator[SharedSource]:
    """Yields the states that `choose` returns, as one index for one search.

    All statements of the search together have `QUERY_SECONDS`. Raises `SharedIndexFailed`.
    """
    with server.reading(role) as sql:
        began = monotonic()
        schema.check_format(sql)
        views = choose(sql)
        left = QUERY_SECONDS - (monotonic() - began)
        yield SharedSource(sql, views, embedder, encoder, left)


_VIEWS = (
    "SELECT DISTINCT ON (p.key) v.key, p.key, p.name, v.label, v.pushed, v.policy FROM mind.views v"
    " JOIN mind.projects p ON p.key = v.project WHERE NOT p.withdrawn AND {}"
    # Row-level security does not bind the owner of the tables, often the first who pushed.
    " AND p.key = ANY ((SELECT mind.permitted('read'))::integer[])"
    # A clock that is ahead would make a commit the latest for as long.
    " ORDER BY p.key, v.is_default DESC, CASE WHEN v.committed > v.pushed THEN v.pushed"
    " ELSE v.committed END DESC NULLS LAST, v.pushed DESC"
)


def others(sql: Connected, identity: str = "") -> list[View]:
    """Returns a state of each project that this role may read, except the one with an identity.

    It is that of the default branch with the latest commit, if there is one.
    """
    return _views(sql, "p.identity <> %s", identity)


def working_copy(sql: Connected, name: str) -> list[View]:
    """Returns the state of the working copy of this name; none if it was not pushed."""
    return _views(sql, "v.name = %s", name)


def _views(sql: Connected, condition: str, value: str) -> list[View]:
    return [View(*row) for row in sql.execute(_VIEWS.format(condition).encode(), (value,))]


def has_view(sql: Connected, identity: str, name: str) -> bool:
    """Returns whether the project with an identity has the state of a working copy."""
    stored = sql.execute(
        "SELECT 1 FROM mind.views v JOIN mind.projects p ON p.key = v.project"
        " WHERE p.identity = %s AND v.name = %s",
        (identity, name),
    )
    return stored.fetchone() is not None


def vectors_of(sql: Connected, model: str, names: Sequence[bytes]) -> dict[bytes, bytes]:
    """Returns the vectors of texts, by name, that some project has which this role may read."""
    stored = sql.execute(
        "SELECT DISTINCT ON (name) name, vector::text FROM mind.vectors"
        " WHERE model = %s AND name = ANY (%s) ORDER BY name, project",
        (model, list(names)),
    )
    vectors = {}
    for name, text in stored:
        with suppress(ValueError):  # It has other numbers than ours.
            vectors[name] = _bytes(text)
    return vectors


class SharedSource:
    """Some states in the shared index, as a `Source`; all its reads see the same state."""

    def __init__(
        self,
        sql: Watched,
        views: Sequence[View],
        embedder: embedding.Embedder | None,
        encoder: Callable[[], embedding.Embedder | None],
        left: float,
    ) -> None:
        """Takes a connection in a transaction, the states, the models and the seconds for it all.

        The seconds are those that the server may take; models and ranking do not count.
        """
        self._sql = sql
        self._left, self._limit = left, float(QUERY_SECONDS)
        self.views = views
        self.embedder = embedder
        self._encoder = encoder
        self._of = {
            "views": [view.key for view in views],
            "projects": [view.project for view in views],
        }

    @cached_property
    def totals(self) -> index_schema.Totals:
        """The sums over the states."""
        sums = ", ".join(
            f"coalesce(sum({name}), 0)::bigint" for name in index_schema.Totals._fields[1:]
        )
        query = f"SELECT 0, {sums} FROM mind.views WHERE key = ANY (%(views)s)"
        return index_schema.Totals(*self._rows(query)[0])

    def count(self, filter: Filter) -> int:
        """Returns the number of memories that pass the filter."""
        if filter == Filter():
            return self.totals.visible
        where, values = condition(filter)
        return int(self._rows(f"SELECT count(*) {_MEMORIES} WHERE {where}", values)[0][0])

    def frequencies(self, terms: Collection[str]) -> Mapping[str, int]:
        """Returns the number of units that hold each term."""
        stored = self._rows(
            "SELECT term, sum(units)::bigint FROM mind.frequencies WHERE view = ANY (%(views)s)"
            " AND term = ANY (%(terms)s) GROUP BY term",
            {"terms": [writing.lexeme(term) for term in terms]},
        )
        counted = dict(stored)
        return {term: counted.get(writing.lexeme(term), 0) for term in terms}

    def by_words(
        self, terms: Sequence[str], filter: Filter, *, admitted: int, matches: int
    ) -> list[int]:
        """Returns the memories that hold any of the terms, best first."""
        units = self.totals.units
        frequencies = self.frequencies(terms)
        stored = [term for term in terms if frequencies[term]]
        rarest = {*sorted(stored, key=lambda term: frequencies[term])[:_MOST_TERMS]}
        terms = [term for term in stored if term in rarest]
        if not terms:
            return []
        weights = [
            max(log((units - frequencies[term] + 0.5) / (frequencies[term] + 0.5)), _COMMON)
            for term in terms
        ]
        (words,) = self._rows(
            "SELECT sum(word_tokens)::bigint FROM mind.views WHERE key = ANY (%(views)s)"
        )[0]
        parameters = {
            "narrowing": self._narrowing(),
            "lexemes": [writing.quoted(term) for term in terms],
            "weights": weights,
            "mean": words / max(units, 1),
        }
        limit = selection.READ
        if admitted < self.totals.memories:
            limit = 2 * limit * self.totals.memories // max(admitted, 1)
        while True:
            best = self._rows(
                "SELECT * FROM mind.by_words(%(views)s, %(narrowing)s, %(lexemes)s, %(weights)s,"
                " %(mean)s, %(most)s)",
                {**parameters, "most": limit},
            )
            ages = self._ages(filter, {memory for memory, _ in best})
            passing = [pair for pair in best if pair[0] in ages]
            passing.sort(key=lambda pair: (-pair[1], ages[pair[0]]))
            # Some of the units that equal the last one may be missing.
            sure = [memory for memory, weight in passing if weight > best[-1][1]]
            is_enough = len(sure) >= selection.UNITS or len({*sure}) >= selection.DOCUMENTS
            if len(best) < limit or is_enough:
                memories = (memory for memory, _ in passing[: selection.UNITS])
                return list(dict.fromkeys(memories))[: selection.DOCUMENTS]
            limit *= 8

    def by_vector(self, query: bytes, filter: Filter) -> list[int]:
        """Returns the memories whose static vectors are nearest, nearest first."""
        model = self.embedder.model if self.embedder else ""
        where, values = condition(filter)

        def units(near: str) -> list[tuple[Any, ...]]:
            return self._rows(
                f"SELECT m.key, d.product FROM ({near}) d JOIN mind.units u"
                f" ON u.project = d.project AND u.vector = d.name {_OF_UNITS} WHERE {where}"
                f" ORDER BY d.product DESC, {index_schema.newest_first('m')} LIMIT %(near)s",
                {**values, **_query(query), "model": model, "near": selection.NEAR},
            )

        nearest = self._near(model, query, units, selection.NEAR)
        return list(dict.fromkeys(key for key, product in nearest if product > 0))

    def cosines(self, query: bytes, names: Collection[bytes]) -> Mapping[bytes, float]:
        """Returns the cosine of a query with each static vector."""
        return self._cosines(self.embedder, query, names, cosine.LENGTH)

    def compared(self, text: str, filter: Filter, _: object) -> SharedCompared | None:
        """Returns the encoder's comparison of a query with the memories that pass the filter."""
        encoder = self._encoder()
        query = encoder.encode(text) if encoder else b""
        if encoder is None or not query:
            return None
        vectors, missing, unreadable = self._rows(
            "SELECT coalesce(sum(encoded), 0)::bigint, coalesce(sum(missing), 0)::bigint,"
            " coalesce(sum(unreadable), 0)::bigint FROM mind.views"
            " WHERE key = ANY (%(views)s) AND encoder = %(model)s",
            {"model": encoder.model},
        )[0]
        if not vectors or vectors <= meanings.READABLE * unreadable:
            return None
        where, values = condition(filter)

        def memories(near: str) -> list[tuple[Any, ...]]:
            return self._rows(
                "SELECT m.key, max(d.product) AS product"
                f" FROM ({near}) d JOIN mind.units u ON u.project = d.project AND u.vector = d.name"
                f" {_OF_UNITS} WHERE {where} GROUP BY m.key"
                f" ORDER BY 2 DESC, {index_schema.newest_first('m')} LIMIT %(near)s",
                {**values, **_query(query), "model": encoder.model, "near": meanings.NEAREST},
            )

        nearest = [
            (key, cosine.clipped(product, embedding.ENCODED_LENGTH))
            for key, product in self._near(encoder.model, query, memories, meanings.NEAREST)
        ]
        return SharedCompared(self, encoder, query, tuple(nearest), missing) if nearest else None

    def stored(self, keys: Collection[int]) -> dict[int, index_search.Stored]:
        """Returns memories by key with all that ranking needs.

        Those that this version can't read are left out: a later version, or a project that others
        write, may have any.
        """
        parameters = {"keys": list(keys)}
        units: dict[int, list[index_search.StoredUnit]] = {}
        for unit in self._rows(
            "SELECT tokens, speakers, vector, line, start, length, memory FROM mind.units"
            " WHERE memory = ANY (%(keys)s) ORDER BY key",
            parameters,
        ):
            units.setdefault(unit[6], []).append(index_search.StoredUnit(*unit))
        stored = {}
        for *columns, type, outcome in self._rows(
            f"SELECT {_CANDIDATE}, m.type, m.outcome FROM mind.memories m"
            " WHERE m.key = ANY (%(keys)s)",
            parameters,
        ):
            memory = index_search.CandidateRow(*columns)
            if type in _KINDS and (outcome is None or outcome in _OUTCOMES):
                with suppress(ValueError, ArithmeticError, LookupError):
                    stored[memory.key] = index_search.stored_of(memory, units[memory.key])
        return stored

    def around(self, parts: Sequence[index_search.CandidateRow], filter: Filter) -> dict[int, bool]:
        """Returns the keys of the parts around some, and whether they pass the filter."""
        where, values = condition(filter)
        rows_of = self._rows(
            f"SELECT m.key, ({where}) {_MEMORIES} JOIN unnest(%(of)s::int[], %(parents)s::text[],"
            " %(positions)s::int[]) AS w (project, parent, position) ON m.project = w.project"
            " AND m.parent = w.parent AND m.position BETWEEN w.position - %(reach)s AND"
            " w.position + %(reach)s AND m.position <> w.position WHERE NOT e.shadowed",
            {
                **values,
                "of": [part.project for part in parts],
                "parents": [part.parent for part in parts],
                "positions": [part.position for part in parts],
                "reach": tables.REACH,
            },
        )
        return {key: bool(admitted) for key, admitted in rows_of}

    def parents(self, parts: Sequence[index_search.CandidateRow]) -> Mapping[int, tuple[str, bool]]:
        """Returns, by part, the distinct tokens of its source, and whether that is a chat."""
        return {
            key: (tokens, is_chat)
            for key, tokens, is_chat in self._rows(
                "SELECT m.key, p.tokens, p.is_chat FROM mind.memories m JOIN mind.parents p"
                " ON p.project = m.project AND p.path = m.path AND p.digest = m.digest"
                " AND p.id = m.parent WHERE m.key = ANY (%(keys)s)",
                {"keys": [part.key for part in parts]},
            )
        }

    def records(self, keys: Collection[int]) -> dict[int, Record]:
        """Returns memories by key."""
        query = f"SELECT {_RECORD}, m.key FROM mind.memories m WHERE m.key = ANY (%(keys)s)"
        return {row[-1]: _record(row) for row in self._rows(query, {"keys": list(keys)})}

    def newer(self, ids: Mapping[int, str]) -> Mapping[int, Newer]:
        """Returns, by key, the memories that claim to supersede each of some."""
        claims = self._rows(
            "SELECT o.key, s.id, se.approved OR NOT oe.approved FROM mind.memories o"
            " JOIN mind.entries oe ON oe.memory = o.key AND oe.view = ANY (%(views)s)"
            " JOIN mind.supersedes l ON l.project = o.project AND l.target = o.id"
            " JOIN mind.entries se ON se.memory = l.memory AND se.view = oe.view"
            " JOIN mind.memories s ON s.key = l.memory WHERE o.key = ANY (%(keys)s)"
            f" AND NOT se.shadowed AND s.id <> o.id ORDER BY {index_schema.newest_first('s')}",
            {"keys": list(ids)},
        )
        return newer(ids, claims)

    def competing(self, ids: Mapping[int, str]) -> Mapping[int, tuple[str, ...]]:
        """Returns, by key, the other current decisions on the topic of each of some."""
        rivals: dict[int, tuple[str, ...]] = {}
        for key, rival in self._rows(
            "SELECT m.key, o.id FROM mind.memories m"
            " JOIN mind.entries e ON e.memory = m.key AND e.view = ANY (%(views)s)"
            " JOIN mind.memories o ON o.project = m.project AND o.topic_key = m.topic_key"
            " AND o.key <> m.key JOIN mind.entries oe ON oe.memory = o.key AND oe.view = e.view"
            " WHERE m.key = ANY (%(keys)s) AND m.type = 'decision' AND o.type = 'decision'"
            " AND NOT e.shadowed AND NOT oe.shadowed AND e.approved = oe.approved"
            f" AND {_CURRENT.format(m='m', e='e')} AND {_CURRENT.format(m='o', e='oe')}"
            f" ORDER BY {index_schema.newest_first('o')}",
            {"keys": list(ids)},
        ):
            rivals[key] = (*rivals.get(key, ()), rival)
        return rivals

    def approved(self, hits: Sequence[Hit]) -> set[tuple[int, str]]:
        """Returns the projects and ids of the hits whose text their own project has approved."""
        parameters = {
            "of": [hit.project for hit in hits],
            "ids": [hit.record.memory.id for hit in hits],
        }
        return set(
            self._rows(
                f"SELECT m.project, m.id {_MEMORIES} JOIN unnest(%(of)s::int[], %(ids)s::text[])"
                " AS w (project, id) ON m.project = w.project AND m.id = w.id"
                " WHERE e.approved AND NOT e.shadowed",
                parameters,
            )
        )

    # Vectors.

    def _cosines(
        self,
        embedder: embedding.Embedder | None,
        query: bytes,
        names: Collection[bytes],
        length: int,
    ) -> dict[bytes, float]:
        if embedder is None:
            return {}
        return {
            name: 0.0 if product is None else cosine.clipped(product, length)
            for name, product in self._rows(
                f"SELECT name, {_PRODUCT} FROM mind.vectors WHERE project = ANY (%(projects)s)"
                " AND model = %(model)s AND name = ANY (%(names)s)",
                {**_query(query), "model": embedder.model, "names": list(names)},
            )
        }

    def _near(
        self,
        model: str,
        query: bytes,
        select: Callable[[str], list[tuple[Any, ...]]],
        minimum: int,
    ) -> list[tuple[Any, ...]]:
        """Returns what `select` makes of the nearest vectors, given as a query for them.

        Of many vectors, the index by nearness chooses some hundreds. If these are too few after the
        filter, all are compared.
        """
        scope = "project = ANY (%(projects)s) AND vector_dims(vector) = %(width)s"
        if self.totals.units > writing.MANY:
            index = schema.nearness(self._sql, model, len(query))
            if index.is_made:
                if index.iterates:
                    self._sql.execute("SET LOCAL hnsw.iterative_scan = relaxed_order")
                self._sql.execute(f"SET LOCAL hnsw.ef_search = {_EXAMINED}".encode())
                product = f"{index.column} <#> %(query)s::{index.kind}"
                nearest = select(
                    f"SELECT project, name, -({product}) AS product FROM mind.vectors"
                    f" WHERE {scope} AND {index.condition} ORDER BY {product} LIMIT {_EXAMINED}"
                )
                if len(nearest) >= minimum:
                    return nearest
        return select(
            f"SELECT project, name, {_PRODUCT} AS product FROM mind.vectors"
            f" WHERE {scope} AND model = %(model)s"
        )

    # The database.

    def _narrowing(self) -> str:
        """Returns the beginning of a text search that is only for few projects."""
        projects = sorted(set(self._of["projects"]))
        if len(projects) > _NARROW:
            return ""
        return f"({' | '.join(writing.quoted(f'#{project}') for project in projects)}) & "

    def _ages(self, filter: Filter, keys: Collection[int]) -> dict[int, int]:
        """Returns those of some memories that pass the filter, each with its place by age."""
        where, values = condition(filter)
        selected = self._rows(
            f"SELECT m.key {_MEMORIES} WHERE m.key = ANY (%(keys)s) AND {where}"
            f" ORDER BY {index_schema.newest_first('m')}",
            {**values, "keys": list(keys)},
        )
        return {key: age for age, (key,) in enumerate(selected)}

    def _rows(self, query: str, parameters: Mapping[str, object] | None = None) -> list[Any]:
        values = {**self._of, **(parameters or {})}
        if self._left <= 0 or self._left < self._limit - 1:
            self._shorten()
        began = monotonic()
        rows = self._sql.execute(query.encode(), values).fetchall()
        self._left -= monotonic() - began
        return rows

    def _shorten(self) -> None:
        """Limits the next statements to the time that those before have left.

        It is called when a second of the limit is spent, since it costs a statement of its own.
        Raises `QueryCanceled` if nothing is left.
        """
        from psycopg.errors import QueryCanceled

        if self._left <= 0:
            raise QueryCanceled
        self._limit = self._left
        self._sql.limit = self._left + MORE_SECONDS
        self._sql.execute(
            "SELECT set_config('statement_timeout', %s, true)", (f"{ceil(self._left * 1000)}ms",)
        )


_MEMORIES = (
    "FROM mind.memories m JOIN mind.entries e ON e.memory = m.key AND e.view = ANY (%(views)s)"
)
_OF_UNITS = (
    "JOIN mind.memories m ON m.key = u.memory"
    " JOIN mind.entries e ON e.memory = m.key AND e.view = ANY (%(views)s)"
)


class SharedCompared(NamedTuple):
    """An encoder's comparison of a query with some states in the shared index."""

    source: SharedSource
    encoder: embedding.Embedder
    query: bytes
    nearest: tuple[tuple[int, float], ...]
    """The keys and cosines of the nearest memories, nearest first."""
    missing: int
    """The number of texts that have no vector yet."""

    def cosines(self, names: Collection[bytes]) -> Mapping[bytes, float]:
        """Returns the cosine of the query with each of `names` that has a vector."""
        return self.source._cosines(self.encoder, self.query, names, embedding.ENCODED_LENGTH)  # noqa: SLF001


def condition(filter: Filter) -> tuple[str, dict[str, object]]:
    """Returns a filter as SQL over the memories `m` and the entries `e`, and the values."""
    where, values = selection.condition(filter, dialect=_DIALECT)
    names = [f"filter{number}" for number in range(len(values))]
    return where.replace("?", "%({})s").format(*names), dict(zip(names, values, strict=True))


def _record(row: Sequence[Any]) -> Record:
    """Returns a memory, without tags, sections and the like if those can't be read."""
    with suppress(ValueError, TypeError, AttributeError):
        record = read_record(row, has_checksum=False)
        memory = record.memory
        texts = [*memory.tags, *memory.sections.values()]
        texts += [text for link in memory.links for text in (link.to, link.type)]
        texts += [text for rival in memory.competing for text in (rival.field, rival.text)]
        texts += filter(None, (memory.source, memory.by, memory.category, memory.status))
        if all(isinstance(text, str) for text in texts) and isinstance(memory.extra, dict):
            return record
    return read_record((*row[:_REST_INDEX], "{}", *row[_REST_INDEX + 1 :]), has_checksum=False)


def _bytes(literal: str | None) -> bytes:
    """Returns the int8 vector that pgvector writes; empty for None."""
    numbers = literal.strip("[]").split(",") if literal else []
    return bytes(int(number) & 0xFF for number in numbers)


_PRODUCT = "CASE WHEN vector_dims(vector) = %(width)s THEN -(vector <#> %(query)s::vector) END"
"""The product with a query; NULL for a vector of another length.

Any project may hold one, and would make the searches of all its readers fail.
"""


def _query(vector: bytes) -> dict[str, object]:
    return {"query": writing.literal(vector), "width": len(vector)}
