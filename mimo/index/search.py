"""Search: from a query to the memories that answer it, ranked by words and meaning together.

An index names candidates, as a `Source`; which of them answer, and in which order, is decided here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Protocol

from mimo.data.cache import CacheDamaged
from mimo.errors import Command, Hint
from mimo.frozen import NamedTuple, replace
from mimo.index import rows
from mimo.index.embedding import FAILURES, Embedder
from mimo.index.rows import SURE, Evidence, Found, Hit, Newer, Request
from mimo.index.schema import Totals, to_time
from mimo.index.selection import pruned
from mimo.memory.model import Filter, Kind, Record
from mimo.memory.naming import is_named, key_of
from mimo.ranking import (
    Candidate,
    Cosines,
    Ranked,
    Ranker,
    Shape,
    Statistics,
    understand,
    words_suffice,
)
from mimo.text.clean import compiled
from mimo.text.tokens import tokenize

_FEW = 5
"""If words find no more memories than this, all vectors are compared as well."""

_LITTLE = 0.3
"""So are they if the best unit holds less than this share of the query (in idf)."""

_EXPECTED = (0.02, 0.65)
"""The encoder's cosine is about the first plus the second times the static one."""

_NOTE_UNITS = 5
"""The number of units up to which a memory is a note: 300 words."""

_CHAT = frozenset(tokenize("user human assistant ai"))
"""The tokens with which a turn of a chat with an assistant begins."""


class Compared(Protocol):
    """An encoder's comparison of a query with the memories of an index that pass a filter."""

    @property
    def nearest(self) -> tuple[tuple[int, float], ...]:
        """The keys and cosines of the nearest memories, nearest first."""

    @property
    def missing(self) -> int:
        """The number of memories that have a text without a vector yet."""

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

        At most `selection.DOCUMENTS`, of the best `selection.UNITS` units of memories that pass
        the filter. Equal ones are in the order of `rows.newest_first`. `admitted` memories pass the
        filter, and at most `matches` units hold a term: these numbers only help to be fast.
        """

    def by_vector(self, query: bytes, filter: Filter) -> list[int]:
        """Returns the memories of the nearest `selection.NEAR` units by static vectors."""

    def cosines(self, query: bytes, names: Collection[bytes]) -> Mapping[bytes, float]:
        """Returns the cosine of an encoded query with each of `names` that has a static vector."""

    def compared(
        self, text: str, filter: Filter, by_words: Callable[[], list[Ranked]]
    ) -> Compared | None:
        """Returns the encoder's comparison; None without an encoder, or if it can't read `text`.

        `by_words` returns the memories that words find, best first: their best units may get
        missing vectors.
        """

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
        return Found(hits=(), considered=considered, filter=request.filter)
    sums = source.totals
    spellings = [token for token, _ in query.spellings]
    statistics = Statistics(
        units=sums.units,
        frequencies=source.frequencies({*query.full, *query.content, *spellings}),
        passage_tokens=sums.passage_tokens / max(sums.passages, 1) or 1.0,
        document_tokens=sums.unit_tokens / max(sums.memories, 1) or 1.0,
        memories=considered,
    )
    terms = pruned((*query.content, *spellings), statistics.frequencies, statistics.units)
    matches = sum(statistics.frequencies[term] for term in terms)
    keys = source.by_words(terms, request.filter, admitted=considered, matches=matches)
    ranker = Ranker(query, statistics, SURE)
    candidates = Candidates(source, keys, request.filter)
    listed, around = candidates.listed, candidates.around
    by_words = cache(lambda: [*ranker.rank(listed, around)])
    cosines, notice = Cosines({}), None
    is_literal = request.by_meaning is None and ranker.has_literal(listed)
    if request.by_meaning is False or (is_literal and words_suffice(by_words())):
        ranked = iter(by_words())
    else:
        candidates, cosines, notice = _compared(source, request, candidates, by_words)
        ranked = ranker.rank(candidates.listed, candidates.around, cosines)
    if request.folded:
        ranked = candidates.folded(ranked)
    return Found(
        hits=_hits(source, [*islice(ranked, request.limit)], candidates),
        considered=considered,
        notice=notice,
        filter=request.filter,
        evidence=Evidence(query, statistics, candidates.by_key, cosines),
    )


def pooled(text: str, answers: Sequence[Found]) -> list[tuple[int, Hit]]:
    """Returns the matches of one or several indexes, best first, each with its answer's number.

    They are scored as those of one index would be: by the frequencies of words in all of them, and
    by their distance to the next ones in any.
    """
    parts = [(number, answer.evidence) for number, answer in enumerate(answers) if answer.evidence]
    if len(parts) < 2:
        only = [(number, hit) for number, answer in enumerate(answers) for hit in answer.hits]
        return _named_first(text, only) if len(only) > 1 else only
    several = len(answers)
    hits: dict[int, tuple[int, Hit]] = {}
    around: dict[int, Candidate] = {}
    vectors: dict[bytes, float] = {}
    for number, evidence in parts:
        own = {key * several + number: item for key, item in evidence.candidates.items()}
        for key, item in own.items():
            beside = tuple(near * several + number for near in item.beside)
            around[key] = item._replace(key=key, beside=beside)
        for hit in answers[number].hits:
            if hit.key is not None:
                hits[hit.key * several + number] = number, hit
        vectors |= evidence.cosines.of
    listed = [around.pop(key) for key in hits]
    neighbours = {near for item in listed for near in item.beside}
    guessed = [evidence.cosines.is_guessed for _, evidence in parts]
    statistics = _joined_statistics([item.statistics for _, item in parts])
    ranker = Ranker(parts[0][1].query, statistics, SURE)
    ranked = ranker.rank(
        listed,
        [item for key, item in around.items() if key in neighbours],
        Cosines(vectors, is_guessed=2 * sum(guessed) > len(guessed)),
    )
    matches = ((*hits[match.key], match.score) for match in ranked)
    return _named_first(text, [(n, replace(hit, score=score)) for n, hit, score in matches])


def _joined_statistics(parts: Sequence[Statistics]) -> Statistics:
    units = sum(part.units for part in parts)
    memories = sum(part.memories for part in parts)
    frequencies = Counter[str]()
    for part in parts:
        frequencies.update(part.frequencies)
    return Statistics(
        units=units,
        frequencies=frequencies,
        passage_tokens=sum(part.passage_tokens * part.units for part in parts) / max(units, 1),
        document_tokens=sum(part.document_tokens * part.memories for part in parts)
        / max(memories, 1),
        memories=memories,
    )


def _named_first(text: str, hits: list[tuple[int, Hit]]) -> list[tuple[int, Hit]]:
    """Returns matches with those first of which the query is a name, as sure as the first one.

    Literal matches come next. Those that hold the words as they are written are first of these.
    """
    literal = [match for match in hits if match[1].is_literal]
    if len(literal) > 1:
        asked = _words(text)

        def missing(match: tuple[int, Hit]) -> int:
            memory = match[1].record.memory
            texts = (memory.heading, memory.text, memory.topic or "", *memory.tags)
            return len(asked - _words("\n".join(texts)))

        hits = [*sorted(literal, key=missing), *(m for m in hits if not m[1].is_literal)]
    key = key_of(text)
    named = [match for match in hits if is_named(match[1].record, key)]
    remaining = [match for match in hits if match not in named] if named else hits
    first = (replace(hit, score=hits[0][1].score, is_literal=True) for _, hit in named)
    return [*((n, hit) for (n, _), hit in zip(named, first, strict=True)), *remaining]


def _words(text: str) -> set[str]:
    return set(compiled(r"\w+").findall(text.casefold()))


def _compared(
    source: Source, request: Request, candidates: Candidates, by_words: Callable[[], list[Ranked]]
) -> tuple[Candidates, Cosines, str | None]:
    """Returns the candidates by words and by meaning, their cosines, and what is missing, if any.

    The static model stands in for vectors that the encoder has not made. `by_words` ranks the
    candidates, which only missing vectors need.
    """
    notice: str | None = None
    cosines, memories, is_unread = Cosines({}), source.totals.memories, False
    try:
        if compared := source.compared(request.text, request.filter, by_words):
            candidates = candidates.with_more([key for key, _ in compared.nearest])
            if compared.missing:
                notice = unread(compared.missing, memories)
                is_unread = 2 * compared.missing > memories
            names = candidates.vector_names()
            encoded = compared.cosines(names)
            cosines = Cosines(encoded, is_guessed=2 * len(encoded) < len(names))
            if len(encoded) == len(names) and not is_unread:
                return candidates, cosines, notice
    except FAILURES as error:
        notice = f"searched without the encoder: {_reason(error)}"
    try:
        if source.embedder and (vector := source.embedder.encode(request.text)):
            coverage = max([match.coverage for match in by_words()], default=0.0)
            is_little = len(candidates.listed) <= _FEW or coverage < _LITTLE
            if (cosines.is_guessed or is_unread) and is_little:
                candidates = candidates.with_more(source.by_vector(vector, request.filter))
            static = source.cosines(vector, candidates.vector_names())
            cosines = cosines._replace(of=_joined(static, cosines.of))
    except FAILURES as error:
        if not cosines.of:
            notice = f"searched by words only: {_reason(error)}"
    return candidates, cosines, notice


def unread(missing: int, texts: int) -> str:
    """Returns the notice that some texts have no vector of the encoder, which is estimated."""
    verb = "is" if missing == 1 else "are"
    text = f"{missing:,} of {texts:,} texts {verb} not yet read for their meaning; "
    return Hint(text, "servers do it between calls, ", Command("index"), " at once")


def _joined(static: Mapping[bytes, float], encoded: Mapping[bytes, float]) -> dict[bytes, float]:
    """Returns one cosine by name: the encoder's, and an estimate for those that it has not made.

    The estimate is the expectation from the static cosine, shifted as for the others of this query.
    """
    base, slope = _EXPECTED
    estimates = {name: base + slope * max(0.0, cosine) for name, cosine in static.items()}
    shifts = [cosine - estimates[name] for name, cosine in encoded.items() if name in estimates]
    shift = sum(shifts) / len(shifts) if shifts else 0.0
    return {**{name: estimate + shift for name, estimate in estimates.items()}, **encoded}


def _reason(error: BaseException) -> object:
    """Returns why vectors could not be compared; damage of the index is raised again."""
    if isinstance(error, CacheDamaged):
        raise error
    return getattr(error, "message", None) or error


def _hits(source: Source, ranked: Sequence[Ranked], candidates: Candidates) -> tuple[Hit, ...]:
    """Returns matches with all that is shown of them."""
    newer = source.newer({match.key: candidates[match.key].memory.id for match in ranked})
    records = source.records([match.key for match in ranked])
    decisions = {k: r.memory.id for k, r in records.items() if r.memory.type is Kind.DECISION}
    competing = source.competing(decisions)
    hits = []
    for match in ranked:
        record, stored = records[match.key], candidates[match.key]
        unit, *later = stored.units[match.unit : match.unit + 2]
        text = record.memory.text[unit.start : unit.start + unit.length]
        if later and text.rpartition("\n")[2].startswith("#"):  # What is below the heading answers.
            text = record.memory.text[unit.start : later[0].start + later[0].length]
        hits.append(
            Hit(
                record=record,
                score=match.score,
                passage=text or record.memory.heading,
                line=unit.line,
                newer=newer[match.key],
                competing=competing.get(match.key, ()),
                project=stored.memory.project,
                key=match.key,
                is_literal=match.is_literal,
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
    candidate: Candidate
    """The memory as ranking sees it, without the parts around it."""


def stored_of(memory: CandidateRow, units: Sequence[StoredUnit]) -> Stored:
    """Returns a memory with what follows from its row and its units."""
    tokens, speakers, vectors, *_ = zip(*units, strict=True)
    candidate = Candidate(
        key=memory.key,
        units=tokens,
        heading=f"{memory.title} {memory.topic}".strip(),
        shape=_shape(memory, tokens, speakers),
        vectors=vectors,
        created=to_time(memory.created),
        importance=memory.importance,
        passages=rows.from_passages(memory.passages, tokens),
        speakers=speakers,
    )
    return Stored(memory, units, candidate)


_NOTHING: Mapping[int, Stored] = {}


class Candidates:
    """Memories and their neighbours, with the stored values that ranking needs."""

    def __init__(
        self,
        source: Source,
        keys: Sequence[int],
        filter: Filter,
        memories: Mapping[int, Stored] = _NOTHING,
    ) -> None:
        """Reads the memories of `keys`, which pass the filter, and the parts around them.

        Those in `memories` are not read again.
        """
        self._source, self._filter, self._keys = source, filter, keys
        self._stored = {key: memories[key] for key in keys if key in memories}
        missing = dict.fromkeys(key for key in keys if key not in memories)
        self._stored |= source.stored(missing)
        listed = dict.fromkeys(key for key in keys if key in self._stored)
        around: dict[int, bool] = {}
        if parts := self._parts():
            around = source.around(parts, filter)
            self._stored |= source.stored([key for key in around if key not in self._stored])
            parts = self._parts()
        by_place = {_place_of(part): part.key for part in parts}
        beside = {
            part.key: tuple(
                by_place[place]
                for place in (_place_of(part, -1), _place_of(part, 1))
                if place in by_place
            )
            for part in parts
        }
        for key in [key for key in listed if key in beside]:
            listed |= dict.fromkeys(near for near in beside[key] if around.get(near, True))
        parents = source.parents(parts) if parts else {}
        of = {key: stored.candidate for key, stored in self._stored.items()}
        for key, places in beside.items():
            parent, is_chat = parents.get(key, ("", False))
            shape = Shape.TURN if is_chat else of[key].shape
            of[key] = of[key]._replace(beside=places, parent=parent, shape=shape)
        self.by_key: Mapping[int, Candidate] = of
        self.listed = [of[key] for key in listed]
        """The candidates in their order, and the parts beside them that pass the filter."""
        self.around = [candidate for key, candidate in of.items() if key not in listed]
        """Parts that only count for those beside them."""

    def _parts(self) -> list[CandidateRow]:
        memories = (stored.memory for stored in self._stored.values())
        return [memory for memory in memories if memory.parent is not None]

    def with_more(self, keys: Iterable[int]) -> Candidates:
        """Returns these candidates, and memories that pass the filter after them."""
        all_keys = dict.fromkeys((*self._keys, *keys))
        return (
            self
            if len(all_keys) == len(self._keys)
            else Candidates(self._source, list(all_keys), self._filter, self._stored)
        )

    def folded(self, ranked: Iterable[Ranked]) -> Iterator[Ranked]:
        """Yields matches with the best chunk alone of each ingested file."""
        sources = set[object]()
        for match in ranked:
            memory = self._stored[match.key].memory
            source = memory.key if memory.parent is None else (memory.project, memory.parent)
            if source not in sources:
                sources.add(source)
                yield match

    def vector_names(self) -> set[bytes]:
        """Returns the names of the vectors of the candidates' units."""
        return set().union(*[candidate.vectors for candidate in self.listed])

    def __getitem__(self, key: int) -> Stored:
        """Returns a memory."""
        return self._stored[key]


def _place_of(memory: CandidateRow, step: int = 0) -> tuple[int, str, str | None, int]:
    """Returns the place of a part in its source, or one that is `step` parts away."""
    return memory.project, memory.path, memory.parent, memory.position + step


def _shape(memory: CandidateRow, tokens: Sequence[str], speakers: Sequence[str]) -> Shape:
    is_chat = tokens[0].partition(" ")[0] in _CHAT
    if memory.parent is not None:
        return Shape.TURN if speakers[0] or is_chat else Shape.DOCUMENT
    if (is_chat and rows.is_excerpt(memory.passages)) or _is_conversation(speakers):
        return Shape.CONVERSATION
    is_memory = memory.owned or memory.path.startswith(".mind/")
    return Shape.NOTE if is_memory and len(tokens) <= _NOTE_UNITS else Shape.DOCUMENT


def _is_conversation(speakers: Sequence[str]) -> bool:
    """Returns whether most units have one of few speakers."""
    if not any(speakers):
        return False
    speaking = [names.split() for names in speakers]
    times = Counter(name for names in speaking for name in names)
    people = {name for name, number in times.items() if number >= max(2, len(speakers) / 4)}
    return sum(not people.isdisjoint(names) for names in speaking) > len(speakers) / 2
