"""The encoder's vectors of an index, which are made when there is time, and comparisons by them.

Words and static vectors answer at once; the encoder needs some 17 ms for a short memory. So its
vectors are made by `mind index`, by servers between calls, and a few at a time by searches. A
vector is kept under the hash of its text.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.data.cache import Cache
from mimo.data.sqlite import Connection
from mimo.errors import StorageFailed
from mimo.frozen import NamedTuple
from mimo.index import schema, tracking
from mimo.index.documents import embedded_texts, name_of
from mimo.index.embedding import Embedder, is_elsewhere
from mimo.index.schema import marks, portions
from mimo.index.selection import memories_near
from mimo.index.vectors import State, Vectors, recorded
from mimo.memory.model import Filter

if TYPE_CHECKING:
    from mimo.ranking import Ranked

    Encode = Callable[[Sequence[str]], list[bytes]]

NEAREST = 20
"""The number of memories nearest to a query that are candidates; more found nothing more."""

MOST_CHARACTERS = 4_000
"""The length of the texts whose vectors a search makes itself: 0.3 to 0.5 s.

The amount of text is limited, not the time: equal stores give equal answers on any machine.
"""

_JUST_ADDED = 3
"""The number of newest memories whose beginnings are read first."""

_MOST_READ = 100
"""The number of memories that are read for these texts, at most."""

READABLE = 0.1
"""The ratio of readable to other units up to which the encoder is not asked.

In a store of another language, the few texts that it can read would come first.
"""

_NOTED = 200
"""The number of looked-up units from which it is noted that none lacks a vector."""

_WAIT_SECONDS = 0.2


class Compared(NamedTuple):
    """An encoded query, compared with the memories of a store that pass a filter."""

    query: bytes
    nearest: tuple[tuple[int, float], ...]
    """The keys and cosines of the nearest memories, nearest first."""
    vectors: Vectors
    missing: int = 0
    """The number of memories that have a text without a vector yet."""

    def cosines(self, names: Collection[bytes]) -> Mapping[bytes, float]:
        """Returns the cosine of the query with each of `names` that has a vector."""
        return self.vectors.cosines(self.query, names)


class Meanings:
    """The vectors of one encoder for the texts of an index."""

    def __init__(
        self,
        folder: Path | None,
        encoder: Embedder,
        owner: str = "",
        cache: Cache | None = None,
    ) -> None:
        """Takes the index's folder, None for memory, and its owner; nothing is opened yet.

        `cache` is the opened file of vectors if there is one.
        """
        self._folder, self._owner, self._cache = folder, owner, cache
        self.encoder = encoder
        self._opened: Vectors | None = None
        self.forget()

    @property
    def vectors(self) -> Vectors:
        """The stored vectors. Raises `StorageFailed` if the folder can't be written."""
        if self._opened is None:
            model, owner = self.encoder.model, self._owner
            self._opened = Vectors(self._folder, model, "encoder", owner=owner, cache=self._cache)
        return self._opened

    def forget(self) -> None:
        """Makes the next comparison look up all vectors: another database has the texts."""
        self._checked: tuple[int, State] | None = None
        self._lacking: Mapping[int, int] = {}
        self._looked_up = 0
        """The number of units that were looked up since the last note that none lacks a vector."""

    def close(self) -> None:
        """Closes the file."""
        if self._opened:
            self._opened.close()

    def of(
        self, texts: Sequence[str], limit: int | None = None, encode: Encode | None = None
    ) -> list[bytes]:
        """Returns the vector of each text, empty for one that the encoder can't read.

        Missing vectors are made and stored, at most `limit`; those of later texts are empty.
        """
        names = list(map(name_of, texts))
        stored = self.vectors.get(names)
        pairs = zip(names, texts, strict=True)
        missing = {name: text for name, text in pairs if name not in stored}
        missing = dict(islice(missing.items(), limit))
        if missing:
            vectors = (encode or self.encoder.encode_many)(list(missing.values()))
            new = dict(zip(missing, vectors, strict=True))
            with suppress(StorageFailed):  # Another process may be writing; they are made again.
                self.vectors.put(new, wait=_WAIT_SECONDS)
            stored.update(new)
        return [stored.get(name, b"") for name in names]

    @contextmanager
    def in_threads(self, threads: int) -> Iterator[Encode]:
        """Yields the encoder's `encode_many`, which divides the texts among threads."""
        if threads == 1:
            yield self.encoder.encode_many
            return
        from concurrent.futures import ThreadPoolExecutor

        def encode(texts: Sequence[str]) -> list[bytes]:
            # Texts of all lengths for each thread: they end at about the same time.
            shares = [sorted(texts, key=len)[first::threads] for first in range(threads)]
            vectors = chain(*pool.map(self.encoder.encode_many, shares))
            made = dict(zip(chain(*shares), vectors, strict=True))
            return [made[text] for text in texts]

        with ThreadPoolExecutor(threads) as pool:
            yield encode

    def compared(
        self,
        sql: sqlite3.Connection,
        text: str,
        filter: Filter,
        by_words: Callable[[], list[Ranked]] | None = list,
    ) -> Compared | None:
        """Returns the comparison of a query with the memories that pass a filter.

        Makes some missing vectors first: those of the best units of the memories that `by_words`
        returns, then those of the newest memories; none if it is None. Returns None if there are no
        vectors.
        """
        query = self.encoder.encode(text)
        if not query:
            return None
        lacking, state = self._lacking_vectors(sql)
        if lacking and by_words:
            self._catch_up(sql, lacking, by_words())
            lacking, state = self._lacking_vectors(sql)
        if state.full <= READABLE * state.empty:
            return None
        nearest = memories_near(sql, self.vectors, query, filter, NEAREST, of="memories")
        if not nearest:
            return None
        return Compared(query, tuple(nearest.items()), self.vectors, len(lacking))

    def nearest(self, sql: sqlite3.Connection, text: str, k: int) -> list[tuple[str, float]]:
        """Returns the ids of the approved memories nearest to a text, and their cosines.

        No missing vectors are made: a hook waits. There are none for a text that the encoder can't
        read. An encoder on another machine is not asked: such texts are prompts to an agent, which
        the user did not send to it.
        """
        if is_elsewhere(self.encoder):
            return []
        compared = self.compared(sql, text, Filter(approved=True), None)
        nearest = dict(compared.nearest[:k] if compared else ())
        named = sql.execute(
            f"SELECT key, id FROM memories WHERE key IN ({marks(nearest)})", list(nearest)
        )
        ids = dict(named.fetchall())
        return [(ids[key], cosine) for key, cosine in nearest.items()]

    def missing(self, sql: sqlite3.Connection) -> list[int]:
        """Returns the keys of the memories that lack vectors: own ones first, newest first."""
        return _in_order(sql, self._lacking_vectors(sql)[0])

    def missing_names(self, sql: sqlite3.Connection) -> list[bytes]:
        """Returns the names of the vectors that are not made yet."""
        names: list[bytes] = []
        for keys in portions(self.missing(sql)):
            query = f"SELECT DISTINCT vector FROM units WHERE memory IN ({marks(keys)})"
            names += (name for (name,) in sql.execute(query, keys))
        stored_names = self.vectors.known(names)
        return [name for name in dict.fromkeys(names) if name not in stored_names]

    def texts(self, sql: sqlite3.Connection, keys: Sequence[int]) -> list[str]:
        """Returns the texts of the units of memories that have no vector yet, each once."""
        texts = embedded_texts(sql, keys)
        return self._without_vector(chain.from_iterable(texts[key] for key in keys if key in texts))

    def _without_vector(self, texts: Iterable[tuple[bytes, str]]) -> list[str]:
        named = dict(texts)
        made = self.vectors.known(named)
        return [text for name, text in named.items() if name not in made]

    def _lacking_vectors(self, sql: sqlite3.Connection) -> tuple[Mapping[int, int], State]:
        """Returns the memories that lack vectors, with how many each lacks, and the vectors' state.

        Only memories that changed or lacked vectors since the last time are looked up, also of
        another process if no vector was missing then.
        """
        revision, state = schema.totals(sql).revision, self.vectors.state()
        identity = getattr(sql, "identity", "")
        if self._checked is None and state.complete.startswith(f"{identity} "):
            self._checked = int(state.complete.partition(" ")[2]), state
        changed, previous = None, self._checked
        if previous and previous[1].epoch == state.epoch:
            if (previous[0], previous[1].newest) == (revision, state.newest):
                return self._lacking, state
            changed = tracking.changed_since(sql, previous[0])
        among = None if changed is None else list({*changed, *self._lacking})
        units = _units(sql, among, with_private=not is_elsewhere(self.encoder))
        self._lacking = _lacking(units, self.vectors)
        self._checked = revision, state
        self._looked_up += len(units)
        if not self._lacking and self._looked_up > _NOTED and identity:
            self._looked_up = 0
            self.vectors.note_complete(f"{identity} {revision}")
        return self._lacking, state

    def _catch_up(
        self,
        sql: sqlite3.Connection,
        lacking: Mapping[int, int],
        ranked: Sequence[Ranked],
    ) -> None:
        """Makes some of the missing vectors: of the best units, then of the newest memories.

        The very newest come first: a user who has just added them looks for them.
        """
        best = [(match.key, match.unit) for match in ranked if match.key in lacking][:_MOST_READ]
        newest = _in_order(sql, lacking)[:_MOST_READ]
        best = [*((key, 0) for key in newest[:_JUST_ADDED]), *best]
        units = embedded_texts(sql, [key for key, _ in best])
        texts = self._without_vector([units[key][number] for key, number in best])
        if sum(map(len, texts)) < MOST_CHARACTERS:
            texts = list(dict.fromkeys((*texts, *self.texts(sql, newest))))
        starts = accumulate(map(len, texts), initial=0)
        self.of([text for text, at in zip(texts, starts, strict=False) if at < MOST_CHARACTERS])


def count_missing(sql: Connection, cache: Cache, *, with_private: bool) -> int:
    """Returns the number of memories that lack vectors; no encoder is loaded.

    The encoder is taken to be that of the stored vectors.
    """
    vectors, changed = recorded(cache), None
    file, _, revision = vectors.state().complete.partition(" ")
    if revision and file == sql.identity:
        changed = tracking.changed_since(sql, int(revision))
    among = None if changed is None else [*changed]
    return len(_lacking(_units(sql, among, with_private=with_private), vectors))


def _lacking(units: Sequence[tuple[int, bytes]], vectors: Vectors) -> Mapping[int, int]:
    stored_names = vectors.known(name for _, name in units)
    return Counter(memory for memory, name in units if name not in stored_names)


def _in_order(sql: sqlite3.Connection, lacking: Collection[int]) -> list[int]:
    """Returns the memories that lack vectors, in the order in which they are made."""
    ordered: list[tuple[int, int, int, str, int, str, int]] = []
    for chunk in portions(list(lacking)):
        ordered += sql.execute(
            "SELECT NOT owned, parent IS NOT NULL, -created, coalesce(parent, ''), position, id,"
            " key FROM memories"
            f" WHERE key IN ({marks(chunk)})",
            chunk,
        )
    return [key for *_, key in sorted(ordered)]


def _units(
    sql: sqlite3.Connection, memories: Sequence[int] | None = None, *, with_private: bool
) -> list[tuple[int, bytes]]:
    """Returns the units of memories, default all, by memory and the name of the vector."""
    hidden = f"shadowed = 1{'' if with_private else ' OR private = 1'}"
    if memories is None:  # Reads an index of `units` alone.
        hidden = f"(SELECT key FROM memories WHERE {hidden})"
        query = f"SELECT memory, vector FROM units WHERE memory NOT IN {hidden}"
        return sql.execute(query).fetchall()
    query = (
        "SELECT u.memory, u.vector FROM units u JOIN memories m ON m.key = u.memory"
        f" WHERE NOT ({hidden})"
    )
    units: list[tuple[int, bytes]] = []
    for some in portions(memories):
        units += sql.execute(f"{query} AND u.memory IN ({marks(some)})", some)
    return units
