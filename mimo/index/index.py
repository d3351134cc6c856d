"""The index of one project: a disposable copy of its memories that answers without the files."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from datetime import datetime
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, cast

from mimo.data.cache import Cache, CacheBusy, CacheDamaged, Transaction
from mimo.data.disk import WAIT_SECONDS
from mimo.data.sqlite import Connection
from mimo.errors import Misread, StorageFailed
from mimo.index import names, schema, selection, tracking
from mimo.index.embedding import FAILURES, Embedder
from mimo.index.queries import Answer, P, Queries
from mimo.index.rows import Change, Found, IndexStats, Overtaken, Request, none_is
from mimo.index.schema import Approvals, portions
from mimo.index.vectors import Sources, Vectors, purge_vectors
from mimo.memory.model import Problem

if TYPE_CHECKING:
    from mimo.index.links import Walks
    from mimo.index.meanings import Meanings
    from mimo.index.writing import Batch
    from mimo.memory.relations import Graph

_MEANINGS_BATCH = 8
"""The number of memories for which the encoder's vectors are made and stored at a time."""

_TEXTS_OF_TURN = 4
"""The number of texts that a server reads between two checks for a call, 0.1 s."""

_MOST_UNUSED = 10_000
"""The number of vectors of earlier texts that are kept beside as many as the index uses.

Past states share them, and a text may come back.
"""

_MOST_REPLACED = 3
"""The number of times that other processes may replace the tables before a query runs."""

_LARGE = 1_000_000
"""The size from which a first index, and its log, are written again without gaps, in bytes."""

_OF_FILES = (sqlite3.Error, OSError)

_MOST_COUNTS = 10_000
"""The number of terms whose units are counted once for a state."""

_KEPT_PAST = 8
"""The number of past states whose tables are kept, the last used ones."""


class Caches:
    """Answers about one file of tables, and what speeds up further ones."""

    def __init__(self, identity: str) -> None:
        """Takes the identity of the file."""
        self.identity = identity
        self.walks: Walks | None = None
        self.answers: dict[object, tuple[object, object]] = {}
        self.counts: tuple[int, dict[str, int]] = 0, {}
        """A revision, and the numbers of its units with some terms."""


class Reader(Queries):
    """The queries of an index. Each reads one state; those of a `Snapshot` all read the same."""

    is_refreshed = False
    """True for a snapshot of an index that was compared with the files."""

    @property
    def index(self) -> Index:
        """The index that is read, which also writes."""
        raise NotImplementedError

    def reading(self) -> AbstractContextManager[Connection]:
        """Yields the tables in a transaction. Raises `CacheDamaged` and `StorageFailed`."""
        raise NotImplementedError

    def end(self) -> None:
        """Lets the next query read a new state."""

    def note_refreshed(self) -> None:
        """Notes that the index was compared with the files."""

    # Comparing with the files.

    def begin(self) -> str:
        """Begins a comparison of all files, and returns the identity of the tables.

        Raises `CacheDamaged` if others took their place.
        """
        with self.reading() as sql:
            self.index.begun = sql.identity
        return self.index.begun

    @property
    def is_compared(self) -> bool:
        """True if all files have been compared with these tables since they were opened."""
        with self.reading() as sql:
            return self.index.is_compared_with(sql)

    def resolve_ids(self, wait: float = WAIT_SECONDS) -> None:
        """Resolves ids of several memories if approvals have changed.

        Raises errors as `Index.apply` does.
        """
        checker = self.index.approvals.checker
        if self.totals().shadowed and self.cached(names.outdated, checker()):
            self.end()
            self.index.write((), 0, none_is, wait)

    def search(self, request: Request) -> Found:
        """Returns the memories that best match, best first, none below the threshold.

        If none reaches it, returns the nearest ones.
        """
        answer, is_whole = self.ask(self.index.search_tables, request)
        if not is_whole:  # The search found the file of vectors damaged.
            answer, _ = self.ask(self.index.search_tables, request)
        return answer

    def nearest(self, text: str, limit: int) -> list[tuple[str, float]]:
        """Returns the approved memories nearest to a text by the encoder, and their cosines.

        There are none without an encoder, or for a text that it can't read.
        """
        meanings = self.index.meanings
        return self.ask(meanings.nearest, text, limit) if meanings else []

    def count_missing_meanings(self) -> int:
        """Returns the number of memories that lack vectors of the encoder."""
        meanings = self.index.meanings
        return len(self.ask(meanings.missing)) if meanings else 0

    def graph(
        self,
        start: Sequence[str],
        *,
        depth: int,
        types: Collection[str],
        limit: int | None,
        shared: bool = False,
        now: datetime,
    ) -> Graph:
        """Returns the memories within `depth` links of `start`; recent answers are cached."""
        from mimo.index.links import Walks

        def walk(sql: Connection) -> Graph:
            caches = self.index.caches_of(sql)
            caches.walks = caches.walks or Walks()
            return caches.walks.graph(
                sql, start, depth=depth, types=types, limit=limit, shared=shared, now=now
            )

        return self.ask(walk)

    @property
    def file(self) -> str:
        """Another value after a rebuild, for which revisions start again."""
        with self.reading() as sql:
            return sql.identity

    def cached(self, query: Callable[..., Answer], /, *args: object) -> Answer:
        """Returns the result of a query, which is cached until the index or an argument changes."""

        def answer(sql: Connection) -> Answer:
            caches, state = self.index.caches_of(sql), (schema.totals(sql).revision, args)
            cached_state, result = caches.answers.get(query, (None, None))
            if cached_state != state:
                result = query(sql, *args)
                caches.answers[query] = state, result
            return cast("Answer", result)

        return self.ask(answer)

    def problems(self) -> tuple[Problem, ...]:
        """Returns the files that could not be read when they were indexed, with the reasons."""
        return self.cached(selection.problems)

    def ask(
        self,
        query: Callable[Concatenate[Connection, P], Answer],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Returns the result of a query over the tables, which are filled first if they are new.

        If they are damaged, they are made again, once. If they then can't be used, or can't be used
        for another reason, they are made in memory.
        """
        index, is_new, replaced = self.index, False, 0
        while True:
            try:
                with self.reading() as sql:
                    # While one thread fills them, others answer from their part, and report that.
                    if index.repair is None or sql.identity == index.begun:
                        return query(sql, *args, **kwargs)
                self.end()
                replaced += 1
                if replaced > _MOST_REPLACED:
                    index.leave_disk("other processes replace it again and again")
                index.repair()
            except StorageFailed as error:
                self.end()
                if isinstance(error, CacheBusy) or not (index.repair and index.is_on_disk):
                    raise
                is_damaged, cause = isinstance(error, CacheDamaged), error.__cause__
                if is_new and is_damaged and not isinstance(cause, _OF_FILES):
                    raise (cause or error) from None  # A new file is not damaged again: a bug.
                if is_new or not is_damaged:
                    index.leave_disk(error.message)
                is_new = True


class Snapshot(Reader):
    """One state of an index and its vectors, which the first query begins and `end` ends.

    For one call, so for one thread at a time. It holds no lock: other processes write meanwhile,
    and only what they have written since stays in SQLite's log until `end`. An index in memory has
    a state for each query.
    """

    def __init__(self, index: Index, *, reads_only: bool) -> None:
        """Takes the index. The snapshot of a call that `reads_only` is refreshed once."""
        self._index, self._reads_only = index, reads_only
        self._transactions: tuple[Transaction, ...] = ()

    @property
    def index(self) -> Index:
        """The index that is read."""
        return self._index

    def note_refreshed(self) -> None:
        """Notes that the index was compared with the files, which a call that reads does once."""
        self.is_refreshed = self._reads_only

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yields the tables in the transaction of this snapshot."""
        if not self._transactions:
            self._transactions = tuple(map(Transaction, self._index.files()))
        tables, *vectors = self._transactions
        if not (self._reads_only and tables.connection):
            self._index.approvals.approves = None
        with ExitStack() as used, tables.reading() as sql:
            for transaction in vectors:
                used.enter_context(transaction.cache.using(transaction))
            yield sql

    def end(self) -> None:
        """Ends the transactions; the next query begins others."""
        for transaction in self._transactions:
            transaction.end()
        self._transactions = ()


class Index(Reader):
    """The memories of one project, ready to be searched."""

    def __init__(
        self,
        tables: Path | None,
        vectors: Vectors | None,
        embedder: Embedder | None,
        owner: str = "",
        folder: Path | None = None,
    ) -> None:
        """Takes the folders of the tables and of the vectors; `open` and `in_memory` call it."""
        self.approvals = Approvals()  # The caller sets its `checker`.
        self._tables = schema.open_cache(tables, owner, self.approvals)
        self._tables.check_folder()
        self._folder, self._owner = folder, owner
        self._is_past = tables != folder
        self._embedder = embedder
        self._vectors = vectors
        self._caches = Caches("")
        self._vectors_file: str | None = None
        """The identity of the file of vectors when a search began to compare them."""
        self.begun, self._compared_file = "", ""
        """The tables with which a comparison of all files began last, and one was complete."""
        self._is_first = False
        """True if the tables were empty, and their first index is not complete yet."""
        self.repair: Callable[[], object] | None = None
        """Writes all that the tables lack, from the files; set by the caller."""
        self.in_memory_because: str | None = None
        """The reason why an index that was on disk is in memory now."""
        self.turn: Callable[[], AbstractContextManager[bool]] = lambda: nullcontext(True)
        """Claims long work on this index for this process; yields whether the claim succeeded."""
        self.encoder: Callable[[], Embedder | None] = lambda: None
        """Returns the encoder of the second vectors; set by the caller, None for none."""
        self.approve: Callable[[Collection[str]], object] = lambda _: None
        """Approves claims of approved texts, which then hold after changes; set by the caller."""

    @classmethod
    def open(cls, folder: Path, embedder: Embedder | None, owner: str = "") -> Index:
        """Returns the index in `folder`, or an empty one if none there is usable.

        An index or vectors of another owner, as in a clone, are not usable. Without an embedder the
        index finds by words only. Raises `StorageFailed` if the folder can't be written.
        """
        vectors = Vectors(folder, embedder.model, owner=owner) if embedder else None
        return cls(folder, vectors, embedder, owner, folder)

    @classmethod
    def open_past(cls, folder: Path, name: str, embedder: Embedder | None, owner: str) -> Index:
        """Returns the index of a past state, within a project's index folder.

        All states share the vectors in `folder`, so that only new texts are embedded. Those that
        were not used for longest are removed.
        """
        tables = folder / "past" / name
        vectors = Vectors(folder, embedder.model, owner=owner) if embedder else None
        try:
            index = cls(tables, vectors, embedder, owner, folder)
        except StorageFailed:
            return cls.in_memory(embedder)
        from shutil import rmtree  # It loads five others that most commands never need.

        with suppress(OSError):
            os.utime(tables)
            states = sorted(tables.parent.iterdir(), key=lambda state: -state.stat().st_mtime)
            for state in states[_KEPT_PAST:]:
                rmtree(state)
        return index

    @classmethod
    def in_memory(cls, embedder: Embedder | None) -> Index:
        """Returns an empty index that has no files."""
        vectors = Vectors(None, embedder.model) if embedder else None
        return cls(None, vectors, embedder)

    def close(self) -> None:
        """Closes the files."""
        self._tables.close()
        if self._vectors:
            self._vectors.close()
        if meanings := vars(self).get("meanings"):
            meanings.close()

    # Reading.

    @property
    def index(self) -> Index:
        """The index itself."""
        return self

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yields the tables in a transaction of its own. Raises as `Reader.reading`."""
        self.approvals.approves = None
        with self._tables.reading() as sql:
            yield sql

    def snapshot(self, *, reads_only: bool = True) -> Snapshot:
        """Returns a reader whose answers all come from one state; nothing is read yet."""
        return Snapshot(self, reads_only=reads_only)

    @property
    def is_on_disk(self) -> bool:
        """True unless the index is in memory."""
        return self._folder is not None

    def files(self) -> Iterable[Cache]:
        """Returns the tables and, with a model, the vectors."""
        return (self._tables, self._vectors.cache) if self._vectors else (self._tables,)

    def search_tables(self, sql: Connection, request: Request) -> tuple[Found, bool]:
        """Returns the matches, and False if the vectors were damaged or removed meanwhile."""
        from mimo.index.search import search
        from mimo.index.tables import Tables

        # For another file, this forgets what it knows of the encoder's vectors.
        caches, revision = self.caches_of(sql), schema.totals(sql).revision
        counts = caches.counts
        if counts[0] != revision or len(counts[1]) > _MOST_COUNTS:
            counts = caches.counts = revision, {}  # Other threads may replace them.
        source = Tables(
            sql,
            self._vectors,
            self._embedder,
            lambda: self.meanings,
            self.make_static,
            counts[1],
        )
        matches, file = search(source, request), self._vectors_file
        return matches, not (self._vectors and file) or self._vectors.identity == file

    def caches_of(self, sql: Connection) -> Caches:
        """Returns the caches of a connection's file; other threads may use another file."""
        caches = self._caches
        if caches.identity != sql.identity:
            caches = self._caches = Caches(sql.identity)
            if meanings := vars(self).get("meanings"):
                meanings.forget()
        return caches

    def stats(self) -> IndexStats:
        """Returns the size of the index."""
        sums = self.totals()
        return IndexStats(
            memories=sums.visible,
            units=sums.units,
            vectors=self._vectors.count() if self._vectors else 0,
            files=self.file_count(),
            bytes=self._tables.size(),
            format=schema.FORMAT,
        )

    # Comparing with the files.

    def is_compared_with(self, sql: Connection) -> bool:
        """Returns whether all files have been compared with these tables."""
        return self._compared_file == sql.identity

    def note_all_compared(self, identity: str) -> None:
        """Notes that all files were compared with the tables that had an identity in `begin`.

        A first index is made small then, and the files of earlier versions of mind are removed.
        """
        self._compared_file = identity
        if self._is_first and self._folder:
            schema.remove_earlier(self._folder)
            if self._tables.size() > _LARGE:
                with suppress(StorageFailed):  # A process that reads it keeps it so large.
                    self._tables.compact(0.0)
        self._is_first = False

    def note_digest(self, identity: str, digest: bytes, revision: int) -> None:
        """Notes the digest of all files, which the tables of an identity have at a revision.

        It does nothing if they no longer have that revision, or can't be written now.
        """
        with suppress(StorageFailed), self.writing() as sql:
            if sql.identity == identity:
                tracking.note_digest(sql, digest, revision)

    # Writing.

    def writing(self) -> AbstractContextManager[Connection]:
        """Yields the tables in a change, unless another process is writing: `CacheBusy`."""
        return self._tables.writing(0.0)

    def discard(self) -> None:
        """Empties the tables; the next comparison fills them. Raises `StorageFailed`."""
        self._tables.discard()

    def apply(
        self,
        changes: Iterable[Change],
        *,
        now_ns: int,
        wait: float = WAIT_SECONDS,
        overtaken: Overtaken = none_is,
    ) -> frozenset[str]:
        """Writes changes of files that were read at `now_ns`, in one transaction for each batch.

        Returns the paths of files that have changed since, which are not written. Waits up to
        `wait` seconds for another process's transaction. Raises `CacheBusy` if that takes longer,
        and `StorageFailed` if the index can't be written; earlier batches are kept.
        """
        from mimo.index.writing import prepared

        late: frozenset[str] = frozenset()
        for batch in prepared(changes):
            write = partial(self.write, [batch], now_ns, overtaken)
            try:
                late |= write(wait)
            except CacheBusy:
                # The first index is waited for longer: without it, there is nothing to read.
                if self._tables.attempt(self._tables.reading, tracking.count_files):
                    raise
                late |= write(WAIT_SECONDS)
        return late

    def prune(self) -> None:
        """Removes the vectors of texts that the index no longer has.

        The index of a past state leaves them: it shares the vectors of the project's index.
        """
        if self._vectors is None or self._is_past:
            return
        # Meanwhile, no other process writes texts whose vectors would be removed here.
        with suppress(CacheBusy, *FAILURES), self._tables.writing() as sql:
            self._vectors.prune(tracking.vector_names(sql))

    def purge(self) -> None:
        """Removes what is left of removed texts, also in past states. Raises `StorageFailed`."""
        from mimo.index.writing import purge

        with self._tables.writing() as sql:
            purge(sql)
        if self._folder and not self._is_past:
            with self._tables.writing() as sql:
                purge_vectors(self._folder, tracking.vector_names(sql), self._owner)
        self._tables.compact()
        if self._folder:
            from shutil import rmtree

            if (past := self._folder / "past").exists():
                rmtree(past)

    def write(
        self,
        batches: Iterable[Batch],
        now_ns: int,
        late: Overtaken,
        wait: float,
    ) -> frozenset[str]:
        """Writes batches in one transaction, and returns the paths of files that are late."""
        from mimo.index.writing import Writer

        self.approvals.approves = None
        with self._tables.writing(wait) as sql:
            before = schema.totals(sql)
            writer = Writer(sql, now_ns)
            for changes, documents in batches:
                writer.write(changes, documents, late(changes))
            writer.finish()
            if writer.claims:
                self.approve(writer.claims)
            self._is_first = self._is_first or not before.revision
        return frozenset(writer.late)

    @cached_property
    def meanings(self) -> Meanings | None:
        """The encoder's vectors; None without an encoder."""
        encoder = self.encoder()
        if encoder is None:
            return None
        from mimo.index.meanings import Meanings

        cache = self._vectors.cache if self._vectors else None
        return Meanings(self._folder, encoder, self._owner, cache)

    def make_meanings(
        self,
        advance: Callable[[int, int], object],
        turn: Callable[[], AbstractContextManager[None]] | None = None,
        threads: int = 1,
    ) -> int:
        """Makes the encoder's missing vectors, and returns the number of memories that got some.

        Static ones are then removed; without an encoder, they are made. Before each batch, and at
        the end, `advance` is called with the number of memories done and of all, and may raise to
        stop. With `turn`, a few texts at a time are read in a context that it returns. `threads`
        read the texts of a batch, and this one stores their vectors.
        """
        if self.meanings is None:
            with turn() if turn else nullcontext():
                self.ask(self.make_static)
            return 0
        with self.reading() as sql:
            keys = self.meanings.missing(sql)
        batch = _MEANINGS_BATCH * threads
        with self.meanings.in_threads(threads) as encode:
            for start in range(0, len(keys), batch):
                advance(start, len(keys))
                # A transaction for each batch: a long one would keep the log from being shortened.
                with self.reading() as sql:
                    texts = self.meanings.texts(sql, keys[start : start + batch])
                size = _TEXTS_OF_TURN if turn else len(texts) or 1
                for first in range(0, len(texts), size):
                    with turn() if turn else nullcontext():
                        self.meanings.of(texts[first : first + size], encode=encode)
        advance(len(keys), len(keys))
        if keys:
            if self._vectors:
                with suppress(StorageFailed):  # Another process writes; the next ones remove them.
                    self._vectors.clear()
            self._limit_unused(self.meanings.vectors, self.totals().units)
            self.count_missing_meanings()  # Notes that there are all.
        return len(keys)

    @contextmanager
    def sources(self) -> Iterator[Sources]:
        """Yields the tables and vectors for a push to the shared index, all of one state."""
        self.ask(self.make_static)  # It fills the tables again if they were damaged.
        self.approvals.approves = None
        vectors: list[tuple[str, Vectors]] = []
        if self._embedder and self._vectors:
            vectors.append((self._embedder.model, self._vectors))
        encoder = self.meanings.encoder.model if self.meanings else None
        if self.meanings and encoder:
            vectors.append((encoder, self.meanings.vectors))
        with self._tables.reading(suspects=(Misread,)) as sql:
            yield Sources(sql, vectors, encoder)

    def leave_disk(self, reason: str) -> None:
        """Continues in memory, with empty tables."""
        self.in_memory_because = reason
        self.turn = lambda: nullcontext(True)
        self._folder = None
        if self._vectors and self._embedder:
            self._vectors.close()
            self._vectors = Vectors(None, self._embedder.model)
        if meanings := vars(self).pop("meanings", None):
            meanings.close()
        self._tables.close()
        self._tables = schema.open_cache(None, self._owner, self.approvals)

    def make_static(self, sql: sqlite3.Connection, names: Collection[bytes] | None = None) -> None:
        """Makes the static vectors that are missing among `names`, default all.

        If that fails, words find their texts.
        """
        if self._vectors is None or self._embedder is None:
            return
        self._vectors_file = self._vectors.identity
        sums = schema.totals(sql)
        state = f"{getattr(sql, 'identity', '')} {sums.revision}"
        if names == () or (names is None and self._vectors.state().complete == state):
            return
        from mimo.index.documents import embedded_texts

        needed = tracking.vector_names(sql) if names is None else {*names}
        with suppress(*FAILURES):
            missing = needed - self._vectors.known(needed)
            for keys in portions(tracking.memories_of(sql, missing)):
                named = chain.from_iterable(embedded_texts(sql, keys).values())
                texts = {name: text for name, text in named if name in missing}
                vectors = self._embedder.encode_many([*texts.values()])
                self._vectors.put(dict(zip(texts, vectors, strict=True)))
            if names is None:
                self._vectors.note_complete(state)
            if missing:
                self._limit_unused(self._vectors, sums.units)

    def _limit_unused(self, vectors: Vectors, units: int) -> None:
        if vectors.count() > _MOST_UNUSED + 2 * units:
            self.prune()
