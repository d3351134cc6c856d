"""Search: from a query to the memories that answer it, ranked by words and meaning together.

An index names candidates, as a `Source`; which of them answer, and in which order, is decided here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

from mimo.data.cache import CacheDamaged
from mimo.frozen import NamedTuple
from mimo.index import catalog, rows
from mimo.index.catalog import Totals
from mimo.index.embedding import FAILURES, Embedder
from mimo.index.rows import Found, Hit, Newer, Request
from mimo.memory.model import Filter, Record
from mimo.ranking import Ranked, below_successors, rank, understand, words_suffice
from mimo.ranking.evidence import (
    Candidate,
    Examiner,
    RankingQuery,
    Shape,
    Statistics,
    inverse_frequencies,
)
from mimo.ranking.score import Nearness
from mimo.text.tokens import tokenize

_FEW = 5
"""If words find no more memories than this, all vectors are compared as well."""

_LITTLE = 0.3
"""So are they if the best unit holds less than this share of the query (in idf)."""

_EXAMINED = 10
"""The number of first candidates among which the best unit is looked for."""

_NOTE_UNITS = 5
"""The number of units up to which a memory is a note: 300 words."""

_CHAT = frozenset(tokenize("user human assistant ai"))
"""The tokens with which a turn of a chat with an assistant begins."""

_NONE: Mapping[bytes, float] = {}


class Compared(Protocol):
    """An encoder's comparison of a query with the memories of an index that pass a filter."""

    @property
    def nearest(self) -> tuple[tuple[int, float], ...]:
        """The keys and cosines of the nearest memories, nearest first."""

    def near(self, keys: Collection[int]) -> Nearness:
        """Returns how near memories are, as far as all their units have vectors."""

    def cosines(self, names: Collection[bytes]) -> Mapping[bytes, float]:
        """Returns the cosine of the query with each of `names` that has a vector."""


class Source(Protocol):
    """An index as one search sees it: all answers are of the same state.

    Keys are numbers that the index gives to its memories. A project is one too, 0 if the index has
    only one; ids are unique in it.
    """

    @property
    def embedder(self) -> Embedder | None:
        """The model of the static vectors; None to search by words only."""

    @property
    def totals(self) -> Totals:
        """The sums over the index."""

    def count(self, filter: Filter) -> int:
        """Returns the number of memories that pass the filter."""

    def frequencies(self, terms: Collection[str]) -> Mapping[str, int]:
        """Returns the number of units that hold each term."""

    def by_words(
        self, terms: Sequence[str], filter: Filter, *, admitted: int, matches: int
    ) -> list[int]:
        """Returns the memories with the best units by BM25, best first.

        At most `catalog.DOCUMENTS`, of the best `catalog.UNITS` units of memories that pass the
        filter. Equal ones are in the order of `rows.newest_first`. `admitted` memories pass the
        filter, and at most `matches` units hold a term: these numbers only help to be fast.
        """

    def by_vector(self, query: bytes, filter: Filter) -> list[int]:
        """Returns the memories of the nearest `catalog.NEAR` units by static vectors, in order."""

    def cosines(self, query: bytes, names: Collection[bytes]) -> Mapping[bytes, float]:
        """Returns the cosine of an encoded query with each of `names` that has a static vector."""

    def compared(self, text: str, filter: Filter) -> Compared | None:
        """Returns the encoder's comparison; None without an encoder, or if it can't read `text`."""

    def stored(self, keys: Collection[int]) -> dict[int, Stored]:
        """Returns memories by key with all that ranking needs; none for what can't be read."""

    def around(self, parts: Sequence[CandidateRow], filter: Filter) -> dict[int, bool]:
        """Returns the parts up to two places from some, and whether they pass the filter."""

    def parents(self, parts: Sequence[CandidateRow]) -> Mapping[int, tuple[str, bool]]:
        """Returns, by part, the distinct tokens of its source, and whether that is a chat."""

    def records(self, keys: Collection[int]) -> dict[int, Record]:
        """Returns memories by key."""

    def newer(self, ids: Mapping[int, str]) -> Mapping[int, Newer]:
        """Returns, by key, the memories that claim to supersede each of some."""

    def competing(self, ids: Mapping[int, str]) -> Mapping[int, tuple[str, ...]]:
        """Returns, by key, the other current decisions on the topic of each of some."""


def search(source: Source, request: Request) -> Found:
    """Returns the best memories, best first."""
    query = understand(request.text, request.now)
    considered = source.count(request.filter)
    if not query.full or not considered:
        return Found(hits=(), considered=considered)
    sums, embedder = source.totals, source.embedder
    statistics = _statistics(source, query, considered)
    terms = catalog.pruned(query.content, statistics.frequencies, sums.units)
    matches = sum(statistics.frequencies[term] for term in terms)
    keys = source.by_words(terms, request.filter, admitted=considered, matches=matches)
    gathered = partial(Candidates, source, filter=request.filter)
    candidates, encoded, near = gathered(keys), b"", _NONE
    reason: object = None if embedder else "there is no model"
    lack: str | None = None
    try:
        if embedder and (encoded := embedder.encode(query.text)):
            if _needs_meaning(query, candidates, statistics):
                candidates = gathered([*keys, *source.by_vector(encoded, request.filter)])
            near = source.cosines(encoded, candidates.vector_names())
    except FAILURES as error:
        reason = _reason(error)
    threshold, nearest = request.threshold, request.nearest
    order = partial(rank, Examiner(query, statistics), threshold=threshold, least=nearest)
    ranked = order(candidates.ranked_as(near))
    try:
        if not words_suffice(ranked) and (compared := source.compared(query.text, request.filter)):
            others = [key for key, _ in compared.nearest]
            candidates = gathered([*candidates.keys, *others])
            if encoded:
                near = source.cosines(encoded, candidates.vector_names())
            closest = compared.near(candidates.keys)
            cosines = compared.cosines(candidates.vector_names())
            ranked = order(candidates.ranked_as(near, cosines), near=closest)
    except FAILURES as error:
        lack = f"searched without the encoder: {_reason(error)}"
    related = [match for match in ranked if match.score >= threshold]
    limit = request.limit if related else nearest
    hits = _hits(source, related or ranked[:nearest], candidates, limit)
    if reason is not None:
        lack = f"searched by words only: {reason}"
    return Found(hits=hits, considered=considered, notice=lack)


def _statistics(source: Source, query: RankingQuery, considered: int) -> Statistics:
    sums = source.totals
    return Statistics(
        units=sums.units,
        frequencies=source.frequencies({*query.full, *query.content}),
        unit_tokens=sums.unit_tokens / max(sums.units, 1) or 1.0,
        passage_tokens=sums.passage_tokens / max(sums.passages, 1) or 1.0,
        document_tokens=sums.unit_tokens / max(sums.memories, 1) or 1.0,
        memories=considered,
    )


def _reason(error: BaseException) -> object:
    """Returns why vectors could not be compared; damage of the index is raised again."""
    if isinstance(error, CacheDamaged):
        raise error
    return getattr(error, "message", None) or error


def _needs_meaning(query: RankingQuery, candidates: Candidates, statistics: Statistics) -> bool:
    """Returns whether all static vectors are compared, because words may miss the answer."""
    if len(candidates.keys) <= _FEW:
        return True
    worth = inverse_frequencies(query, statistics)
    return candidates.coverage({term: worth[term] for term in query.content}) < _LITTLE


def _hits(
    source: Source, ranked: Sequence[Ranked], candidates: Candidates, limit: int
) -> tuple[Hit, ...]:
    """Returns the first `limit` matches, superseded ones below their successors."""
    names = {candidates.name_of(match.key): match.key for match in ranked}
    newer = source.newer({key: id for (_, id), key in names.items()})
    successors = {
        key: {names[project, new] for new in newer[key].superseded_by if (project, new) in names}
        for (project, _), key in names.items()
        if newer[key].superseded_by
    }
    best = below_successors(ranked, successors)[:limit]
    records = source.records([match.key for match in best])
    competing = source.competing({key: record.memory.id for key, record in records.items()})
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
                newer=newer[match.key],
                competing=competing.get(match.key, ()),
                project=candidates.name_of(match.key)[0],
            )
        )
    return tuple(hits)


class CandidateRow(NamedTuple):
    """The columns of a memory that ranking needs."""

    key: int
    created: int
    importance: float
    title: str
    topic: str
    passages: str | None
    vector: bytes
    path: str
    parent: str | None
    position: int
    id: str
    owned: bool
    """False for an included file."""
    project: int = 0


class StoredUnit(NamedTuple):
    """A unit of a memory."""

    tokens: str
    speakers: str
    vector: bytes
    line: int
    start: int
    length: int
    memory: int = 0


class Stored(NamedTuple):
    """A memory as it is stored, and what follows from that alone."""

    memory: CandidateRow
    units: Sequence[StoredUnit]
    tokens: Sequence[str]
    """Those of the units."""
    passages: Sequence[str]
    speakers: Sequence[str]
    vectors: Sequence[bytes]
    """The names of the units' vectors."""
    created: datetime
    shape: Shape


def stored_of(memory: CandidateRow, units: Sequence[StoredUnit]) -> Stored:
    """Returns a memory with what follows from its row and its units."""
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

    def __init__(self, source: Source, keys: Sequence[int], filter: Filter) -> None:
        """Reads the memories of `keys`, which pass the filter, and the parts around them."""
        self._stored = source.stored(dict.fromkeys(keys))
        keys = [key for key in dict.fromkeys(keys) if key in self._stored]
        self._admitted = dict.fromkeys(self._stored, True)
        parts = [s.memory for s in self._stored.values() if s.memory.parent is not None]
        if parts:
            around = source.around(parts, filter)
            self._admitted = around | self._admitted
            self._stored |= source.stored([key for key in around if key not in self._stored])
        memories = [s.memory for s in self._stored.values() if s.memory.parent is not None]
        self._by_place = {_place_of(memory): memory.key for memory in memories}
        self._parents = source.parents(memories) if parts else {}
        self.keys = self._with_neighbours(keys)

    def vector_names(self) -> set[bytes]:
        """Returns the names of the vectors that the candidates' cosines need."""
        names = {self._stored[key].memory.vector for key in self.keys}
        return names.union(*[self._stored[key].vectors for key in self.keys])

    def name_of(self, key: int) -> tuple[int, str]:
        """Returns the project and the id of a memory."""
        memory = self._stored[key].memory
        return memory.project, memory.id

    def unit(self, key: int, number: int) -> StoredUnit:
        """Returns one unit of a memory, counted from 0."""
        return self._stored[key].units[number]

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

    def _beside(self, memory: CandidateRow, step: int) -> int | None:
        if memory.parent is None:
            return None
        return self._by_place.get(_place_of(memory, step))

    def _candidate(
        self, stored: Stored, near: Mapping[bytes, float], encoded: Mapping[bytes, float]
    ) -> Candidate:
        memory, vectors = stored.memory, stored.vectors
        is_part = memory.parent is not None
        parent, is_chat = self._parents.get(memory.key, ("", False))
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


def _place_of(memory: CandidateRow, step: int = 0) -> tuple[int, str, str | None, int]:
    """Returns the place of a part in its source, or one that is `step` parts away."""
    return memory.project, memory.path, memory.parent, memory.position + step


def _shape(memory: CandidateRow, units: Sequence[StoredUnit]) -> Shape:
    first = units[0]
    is_chat = first.tokens.partition(" ")[0] in _CHAT
    if memory.parent is not None:
        return Shape.TURN if first.speakers or is_chat else Shape.DOCUMENT
    if (is_chat and rows.is_excerpt(memory.passages)) or _is_conversation(units):
        return Shape.CONVERSATION
    is_memory = memory.owned or memory.path.startswith(".mind/")
    return Shape.NOTE if is_memory and len(units) <= _NOTE_UNITS else Shape.DOCUMENT


def _is_conversation(units: Sequence[StoredUnit]) -> bool:
    """Returns whether most units have one of few speakers."""
    speaking = [unit.speakers.split() for unit in units]
    if not any(speaking):
        return False
    times = Counter(name for names in speaking for name in names)
    people = {name for name, number in times.items() if number >= max(2, len(units) / 4)}
    return sum(not people.isdisjoint(names) for names in speaking) > len(units) / 2
