"""Search: from a query to the memories that answer it, ranked by words and meaning together."""

from __future__ import annotations

import sqlite3
from _thread import allocate_lock
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from mimo.frozen import NamedTuple
from mimo.index import catalog, rows
from mimo.index.database import IndexDamaged
from mimo.index.embedding import FAILURES, Aligning, Embedder
from mimo.index.rows import Found, Hit, Request
from mimo.index.schema import from_sql, marks
from mimo.index.vectors import Vectors, numpy_in_turn
from mimo.memory.model import Filter
from mimo.ranking import Ranked, below_successors, estimated, rank, understand, words_suffice
from mimo.ranking.evidence import (
    Candidate,
    Examiner,
    RankingQuery,
    Shape,
    Statistics,
    inverse_frequencies,
)
from mimo.ranking.score import ALIGNED, EXPECTED
from mimo.text.tokens import tokenize

if TYPE_CHECKING:
    from mimo.index.meanings import Meanings
    from mimo.index.postings import Postings

_REACH = 2
"""The distance up to which parts of the same source are read: they count for their neighbours."""

_FEW = 5
"""If words find no more memories than this, all vectors are compared as well."""

_LITTLE = 0.3
"""So are they if the best unit holds less than this share of the query (in idf)."""

_EXAMINED = 10
"""The number of first candidates among which the best unit is looked for."""

_ALIGNED = 40
"""The number of nearest units that are compared with a query word by word, and as many again.

The latter are of the first candidates by words.
"""

_LEADING = 20
"""The number of first candidates by words."""

_KEPT_TERMS = 10_000

_KEPT_UNITS = 8_000
"""The number of units in the memories that are kept between searches, some 1.5 kB each."""

_LONG = 40
"""The number of units from which a memory is not kept."""

_OFTEN = 3
"""The search of a process from which it pays to keep the units of words in memory."""

_NOTE_UNITS = 5
"""The number of units up to which a memory is a note: 300 words."""

_CHAT = frozenset(tokenize("user human assistant ai"))
"""The tokens with which a turn of a chat with an assistant begins."""

_NONE: Mapping[bytes, float] = {}


class Search:
    """The search of one index. It caches the frequencies and units of terms between queries."""

    def __init__(
        self,
        vectors: Vectors | None,
        embedder: Embedder | None,
        meanings: Callable[[], Meanings | None] = lambda: None,
    ) -> None:
        """Take the vectors and their model, None to search by words only, and the encoder's.

        `meanings` is called if words do not suffice: the encoder imports numpy.
        """
        self._vectors = vectors
        self._embedder = embedder
        self._meanings = meanings
        self._searches = 0
        self.forget()

    def forget(self) -> None:
        """Empties the caches: another database may have the same revisions."""
        self._frequencies: tuple[int, dict[str, int]] = (-1, {})
        self._postings: Postings | None = None
        self._stock = Stock()

    def __call__(self, sql: sqlite3.Connection, request: Request) -> Found:
        """Returns the best memories, best first."""
        query = understand(request.text, request.now)
        considered = catalog.count(sql, request.filter)
        if not query.full or not considered:
            return Found(hits=(), considered=considered)
        sums = catalog.totals(sql)
        statistics = self._statistics(sql, query, sums, considered)
        terms = catalog.pruned(query.content, statistics.frequencies, sums.units)
        keys = catalog.memories_with(
            sql,
            terms,
            request.filter,
            memories=sums.memories,
            admitted=considered,
            matches=sum(statistics.frequencies[term] for term in terms),
            best=self._best(sql, terms, sums),
        )
        is_often = self._searches >= _OFTEN
        stored = partial(self._stock.get, sql, sums.revision) if is_often else partial(_read, sql)
        candidates, encoded, near = Candidates(sql, stored, keys, request.filter), b"", _NONE
        crosses = catalog.crosses_languages(sql, query.text, sums.units)
        aligned = query.text if crosses and isinstance(self._embedder, Aligning) else ""
        reason: object = None if self._embedder else "there is no model"
        lack: str | None = None
        try:
            if query.modelled and self._embedder and self._vectors:
                encoded = self._embedder.encode(query.text)
                if encoded and (crosses or _needs_meaning(query, candidates, statistics)):
                    others = catalog.memories_near(sql, self._vectors, encoded, request.filter)
                    candidates = Candidates(sql, stored, [*keys, *others], request.filter)
                near = self._cosines(sql, encoded, candidates, aligned)
        except FAILURES as error:
            reason = _reason(error)
        read = candidates.ranked_as(near)
        threshold, nearest = request.threshold, request.nearest
        order = partial(rank, Examiner(query, statistics), threshold=threshold, least=nearest)
        ranked = order(read, near=estimated(read) if aligned and near else None)
        try:
            if not words_suffice(ranked) and (meanings := self._meanings()):
                compared = meanings.compared(sql, query.text, request.filter)
                if compared:
                    others = [key for key, _ in compared.nearest]
                    every = [*candidates.keys, *others]
                    candidates = Candidates(sql, stored, every, request.filter)
                    near = self._cosines(sql, encoded, candidates, aligned)
                    read = candidates.ranked_as(near, compared.cosines(candidates.vector_names()))
                    expected = ALIGNED if aligned else EXPECTED
                    closest = compared.near(candidates.keys)
                    ranked = order(read, near=closest._replace(expected=expected))
        except FAILURES as error:
            lack = f"searched without the encoder: {_reason(error)}"
        related = [match for match in ranked if match.score >= threshold]
        limit = request.limit if related else nearest
        hits = _hits(sql, related or ranked[:nearest], candidates, limit)
        if reason is not None:
            lack = f"searched by words only: {reason}"
        return Found(hits=hits, considered=considered, notice=lack)

    def _best(
        self, sql: sqlite3.Connection, terms: Sequence[str], sums: catalog.Totals
    ) -> Callable[[], Sequence[tuple[int, float]]] | None:
        """Returns the function that returns the best units by words; None if FTS5 is faster."""
        self._searches += 1
        if self._searches < _OFTEN:
            return None
        postings = self._postings  # Another thread may empty the cache.
        if postings is None:
            if not numpy_in_turn(self._vectors.folder if self._vectors else None):
                return None
            from mimo.index.postings import Postings

            postings = self._postings = Postings()
        return partial(postings.best, sql, terms, sums, catalog.UNITS)

    def _statistics(
        self, sql: sqlite3.Connection, query: RankingQuery, sums: catalog.Totals, considered: int
    ) -> Statistics:
        return Statistics(
            units=sums.units,
            frequencies=self._counted(sql, query, sums.revision),
            unit_tokens=sums.unit_tokens / max(sums.units, 1) or 1.0,
            passage_tokens=sums.passage_tokens / max(sums.passages, 1) or 1.0,
            document_tokens=sums.unit_tokens / max(sums.memories, 1) or 1.0,
            memories=considered,
        )

    def _cosines(
        self, sql: sqlite3.Connection, encoded: bytes, candidates: Candidates, aligned: str = ""
    ) -> Mapping[bytes, float]:
        """Returns the cosine of an encoded query with each stored vector of the candidates.

        Those of units are joined with the correspondence of their words to the query `aligned`.
        """
        if not (encoded and self._vectors):
            return _NONE
        names = candidates.vector_names()
        near: Mapping[bytes, float] = self._vectors.cosines(encoded, names)
        if len(near) < len(names) and self._embedder:
            (model,) = sql.execute("SELECT value FROM meta WHERE name = 'model'").fetchone()
            if model == self._embedder.model:  # The index states that all were made.
                self._vectors.note_loss()
        if aligned and near and isinstance(self._embedder, Aligning):
            near = {**near, **_aligned(sql, self._embedder, aligned, candidates, near)}
        return near

    def _counted(
        self, sql: sqlite3.Connection, query: RankingQuery, revision: int
    ) -> Mapping[str, int]:
        """Returns the frequency of each term, cached until the index changes."""
        counted, frequencies = self._frequencies
        if counted != revision or len(frequencies) > _KEPT_TERMS:
            frequencies = {}
            self._frequencies = (revision, frequencies)
        terms = {*query.full, *query.content}
        for term in terms - frequencies.keys():
            frequencies[term] = catalog.frequency(sql, term)
        return {term: frequencies[term] for term in terms}


def _reason(error: BaseException) -> object:
    """Returns why vectors could not be compared; damage of the index is raised again."""
    if isinstance(error, IndexDamaged):
        raise error
    return getattr(error, "message", None) or error


def _needs_meaning(query: RankingQuery, candidates: Candidates, statistics: Statistics) -> bool:
    """Returns whether all static vectors are compared, because words may miss the answer."""
    if len(candidates.keys) <= _FEW:
        return True
    worth = inverse_frequencies(query, statistics)
    return candidates.coverage({term: worth[term] for term in query.content}) < _LITTLE


def _aligned(
    sql: sqlite3.Connection,
    embedder: Aligning,
    query: str,
    candidates: Candidates,
    near: Mapping[bytes, float],
) -> dict[bytes, float]:
    """Returns the nearness of each unit: half its cosine, half the correspondence of its words.

    Only the nearest units are compared by their words: of the first candidates by words, and of
    all others. For the rest, the median is assumed.
    """
    units = [(key, unit) for key in candidates.keys for unit in candidates.units(key)]
    units.sort(key=lambda pair: -near.get(pair[1].vector, 0.0))
    first = frozenset(candidates.keys[:_LEADING])
    chosen = [pair for pair in units if pair[0] in first][:_ALIGNED]
    chosen += [pair for pair in units if pair[0] not in first][:_ALIGNED]
    records = rows.by_key(sql, list({key for key, _ in chosen}))
    texts = []
    for key, unit in chosen:
        memory = records[key].memory
        text = memory.text[unit.start : unit.start + unit.length]
        texts.append(f"{memory.title or ''}\n{text}")
    shares = embedder.correspondence(query, texts)
    compared = {unit.vector: share for (_, unit), share in zip(chosen, shares, strict=True)}
    usual = sorted(shares)[len(shares) // 2] if shares else 0.0
    return {
        unit.vector: (near.get(unit.vector, 0.0) + compared.get(unit.vector, usual)) / 2
        for _, unit in units
    }


def _hits(
    sql: sqlite3.Connection, ranked: list[Ranked], candidates: Candidates, limit: int
) -> tuple[Hit, ...]:
    """Returns the first `limit` matches, superseded ones below their successors."""
    keys = {candidates.id_of(match.key): match.key for match in ranked}
    newer = catalog.newer(sql, list(keys))
    successors = {
        keys[old]: {keys[id] for id in new.superseded_by if id in keys}
        for old, new in newer.items()
        if new.superseded_by
    }
    best = below_successors(ranked, successors)[:limit]
    records = rows.by_key(sql, [match.key for match in best])
    competing = catalog.competing(sql, [record.memory.id for record in records.values()])
    hits = []
    for match in best:
        record, unit = records[match.key], candidates.unit(match.key, match.unit)
        text = record.memory.text[unit.start : unit.start + unit.length]
        hits.append(
            Hit(
                record=record,
                score=match.score,
                passage=text or record.memory.heading,
                line=unit.line,
                newer=newer[record.memory.id],
                competing=competing.get(record.memory.id, ()),
            )
        )
    return tuple(hits)


class _Memory(NamedTuple):
    """The columns of `memories` that ranking needs."""

    key: int
    created: int
    importance: float
    title: str
    topic: str
    passages: str | None
    vector: bytes
    path: str | bytes
    parent: str | None
    position: int
    id: str
    owned: bool
    """False for an included file."""


class StoredUnit(NamedTuple):
    """A row of `units`."""

    tokens: str
    speakers: str
    vector: bytes
    line: int
    start: int
    length: int
    memory: int = 0


_COLUMNS = (
    "m.key, m.created, m.importance, m.title_tokens, m.topic_tokens, m.passages, m.vector, m.path,"
    " m.parent, m.position, m.id, m.owned"
)


class Stored(NamedTuple):
    """A memory as it is stored, and what follows from that alone."""

    memory: _Memory
    units: Sequence[StoredUnit]
    tokens: Sequence[str]
    """Those of the units."""
    passages: Sequence[str]
    speakers: Sequence[str]
    vectors: Sequence[bytes]
    """The names of the units' vectors."""
    created: datetime
    shape: Shape


class Stock:
    """The memories that were compared last, kept until they change; threads can use it."""

    def __init__(self) -> None:
        """Starts with nothing."""
        self._lock = allocate_lock()
        self._revision = -1
        self._kept: dict[int, Stored] = {}
        self._units = 0
        """The number of their units, or more."""

    def get(
        self, sql: sqlite3.Connection, revision: int, keys: Collection[int]
    ) -> dict[int, Stored]:
        """Returns memories by key, at that revision of the index."""
        with self._lock:
            if revision > self._revision:
                self._renew(sql, revision)
            is_current = revision == self._revision
            kept = {k: self._kept[k] for k in keys if k in self._kept} if is_current else {}
        if missing := [key for key in keys if key not in kept]:
            new = _read(sql, missing)
            self._keep(revision, new)
            kept |= new
        return kept

    def _renew(self, sql: sqlite3.Connection, revision: int) -> None:
        changed = catalog.changed_since(sql, self._revision) if self._revision >= 0 else None
        if changed is None:
            self._kept = {}
        for key in changed or ():
            self._kept.pop(key, None)
        self._revision = revision

    def _keep(self, revision: int, new: Mapping[int, Stored]) -> None:
        with self._lock:
            if revision != self._revision:
                return
            # A book has thousands of units.
            new = {key: stored for key, stored in new.items() if len(stored.units) < _LONG}
            self._units += sum(len(stored.units) for stored in new.values())
            if self._units > _KEPT_UNITS:
                # The older half goes: a dictionary has the order in which it was filled.
                self._kept = dict(list(self._kept.items())[len(self._kept) // 2 :])
                self._units = sum(len(s.units) for s in (*self._kept.values(), *new.values()))
            self._kept |= new


def _read(sql: sqlite3.Connection, keys: Collection[int]) -> dict[int, Stored]:
    """Returns memories by key."""
    selected = sql.execute(
        f"SELECT {_COLUMNS} FROM memories m WHERE m.key IN ({marks(keys)})", list(keys)
    ).fetchall()
    units = _units(sql, [row[0] for row in selected])
    return {row[0]: _stored(_Memory(*row), units[row[0]]) for row in selected}


def _stored(memory: _Memory, units: Sequence[StoredUnit]) -> Stored:
    tokens, speakers, vectors, *_ = zip(*units, strict=True)
    return Stored(
        memory=memory,
        units=units,
        tokens=tokens,
        passages=rows.from_passages(memory.passages, tokens),
        speakers=speakers,
        vectors=vectors,
        created=rows.to_time(memory.created),
        shape=_shape(memory, units),
    )


class Candidates:
    """Memories and their neighbours, with the stored values that ranking needs."""

    def __init__(
        self,
        sql: sqlite3.Connection,
        stored: Callable[[Collection[int]], dict[int, Stored]],
        keys: Sequence[int],
        filter: Filter,
    ) -> None:
        """Read the memories of `keys`, which pass the filter, and the parts around them."""
        keys = list(dict.fromkeys(keys))
        self._stored = stored(keys)
        self._admitted = dict.fromkeys(self._stored, True)
        parts = [s.memory for s in self._stored.values() if s.memory.parent is not None]
        if parts:
            around = _around(sql, parts, filter)
            self._admitted = around | self._admitted
            self._stored |= stored([key for key in around if key not in self._stored])
        memories = [s.memory for s in self._stored.values() if s.memory.parent is not None]
        self._by_place = {(m.path, m.parent, m.position): m.key for m in memories}
        self._parents = _parents(sql, {m.parent for m in parts if m.parent is not None})
        self.keys = self._with_neighbours(keys)

    def vector_names(self) -> set[bytes]:
        """Returns the names of the vectors that the candidates' cosines need."""
        names = {self._stored[key].memory.vector for key in self.keys}
        return names.union(*[self._stored[key].vectors for key in self.keys])

    def id_of(self, key: int) -> str:
        """Returns the id of a memory."""
        return self._stored[key].memory.id

    def unit(self, key: int, number: int) -> StoredUnit:
        """Returns one unit of a memory, counted from 0."""
        return self._stored[key].units[number]

    def units(self, key: int) -> Sequence[StoredUnit]:
        """Returns the units of a memory."""
        return self._stored[key].units

    def coverage(self, worth: Mapping[str, float]) -> float:
        """Returns the largest share of the terms' worth in one unit of the first candidates."""
        total = sum(worth.values())
        best = 0.0
        for key in self.keys[:_EXAMINED]:
            memory = self._stored[key].memory
            heading = worth.keys() & f"{memory.title} {memory.topic}".split()
            for tokens in self._stored[key].tokens:
                held = heading | (worth.keys() & tokens.split())
                best = max(best, sum([worth[term] for term in held]))
        return best / total if total else 0.0

    def ranked_as(
        self, near: Mapping[bytes, float], encoded: Mapping[bytes, float] = _NONE
    ) -> list[Candidate]:
        """Returns the candidates in their order, with the cosines of their vectors, if any.

        `encoded` has the encoder's cosines.
        """
        return [self._candidate(self._stored[key], near, encoded) for key in self.keys]

    def _with_neighbours(self, keys: Sequence[int]) -> list[int]:
        order = dict.fromkeys(keys)
        if self._by_place:
            for key in keys:
                for step in (-1, 1):
                    beside = self._beside(self._stored[key].memory, step)
                    if beside is not None and self._admitted[beside]:
                        order.setdefault(beside)
        return list(order)

    def _beside(self, memory: _Memory, step: int) -> int | None:
        if memory.parent is None:
            return None
        return self._by_place.get((memory.path, memory.parent, memory.position + step))

    def _candidate(
        self, stored: Stored, near: Mapping[bytes, float], encoded: Mapping[bytes, float]
    ) -> Candidate:
        memory, vectors = stored.memory, stored.vectors
        is_part = memory.parent is not None
        parent, is_chat = self._parents.get((memory.path, memory.parent), ("", False))
        return Candidate(
            key=memory.key,
            units=stored.tokens,
            passages=stored.passages,
            title=memory.title,
            topic=memory.topic,
            created=stored.created,
            importance=memory.importance,
            speakers=stored.speakers,
            unit_cosines=[near.get(vector, 0.0) for vector in vectors] if near else (),
            document_cosine=near.get(memory.vector, 0.0),
            previous=self._passages(self._beside(memory, -1)) if is_part else (),
            following=self._passages(self._beside(memory, 1)) if is_part else (),
            parent=parent,
            shape=Shape.TURN if is_chat else stored.shape,
            encoded_cosines=[encoded.get(vector, 0.0) for vector in vectors] if encoded else (),
        )

    def _passages(self, key: int | None) -> Sequence[str]:
        if key is None:
            return ()
        return self._stored[key].passages or self._stored[key].tokens


def _shape(memory: _Memory, units: Sequence[StoredUnit]) -> Shape:
    first = units[0]
    is_chat = first.tokens.partition(" ")[0] in _CHAT
    if memory.parent is not None:
        return Shape.TURN if first.speakers or is_chat else Shape.DOCUMENT
    if (is_chat and rows.is_excerpt(memory.passages)) or _is_conversation(units):
        return Shape.CONVERSATION
    is_memory = memory.owned or from_sql(memory.path).startswith(".mind/")
    return Shape.NOTE if is_memory and len(units) <= _NOTE_UNITS else Shape.DOCUMENT


def _is_conversation(units: Sequence[StoredUnit]) -> bool:
    """Returns whether most units have one of few speakers."""
    speaking = [unit.speakers.split() for unit in units]
    if not any(speaking):
        return False
    times = Counter(name for names in speaking for name in names)
    people = {name for name, number in times.items() if number >= max(2, len(units) / 4)}
    return sum(not people.isdisjoint(names) for names in speaking) > len(units) / 2


def _around(sql: sqlite3.Connection, parts: Sequence[_Memory], filter: Filter) -> dict[int, bool]:
    """Returns the keys of the parts around some, and whether they pass the filter."""
    places = {
        (part.parent, part.position + step)
        for part in parts
        for step in range(-_REACH, _REACH + 1)
        if step
    }
    where, values = catalog.condition(filter)
    wanted: list[Any] = [value for place in sorted(places, key=str) for value in place]
    selected = sql.execute(
        f"SELECT m.key, ({where}) FROM memories m WHERE m.shadowed = 0 AND"
        f" (m.parent, m.position) IN (VALUES {','.join(['(?, ?)'] * len(places))})",
        (*values, *wanted),
    )
    return {key: bool(admitted) for key, admitted in selected}


def _units(sql: sqlite3.Connection, keys: Sequence[int]) -> dict[int, list[StoredUnit]]:
    units: dict[int, list[StoredUnit]] = {key: [] for key in keys}
    selected = sql.execute(
        "SELECT tokens, speakers, vector, line, start, length, memory FROM units"
        f" WHERE memory IN ({marks(keys)}) ORDER BY key",
        keys,
    )
    for unit in map(partial(tuple.__new__, StoredUnit), selected):
        units[unit.memory].append(unit)
    return units


def _parents(
    sql: sqlite3.Connection, ids: Iterable[str]
) -> dict[tuple[str | bytes, Any], tuple[str, bool]]:
    """Returns the distinct tokens of each parent, and whether it is a chat by its words."""
    wanted = sorted(ids)
    if not wanted:
        return {}
    selected = sql.execute(
        f"SELECT path, id, tokens, is_chat FROM parents WHERE id IN ({marks(wanted)})", wanted
    )
    return {(path, id): (tokens, bool(is_chat)) for path, id, tokens, is_chat in selected}
