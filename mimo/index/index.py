"""The index of one project: a disposable copy of its memories that answers without the files."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from functools import cached_property, wraps
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from mimo.data.cache import Cache, CacheBusy, CacheDamaged
from mimo.disk import WAIT_SECONDS
from mimo.errors import Misread, StorageFailed
from mimo.index import names, rows, schema, selection, tracking
from mimo.index.embedding import FAILURES, Embedder
from mimo.index.rows import Change, Found, IndexStats, Overtaken, Request, none_is
from mimo.index.schema import Approvals
from mimo.index.tracking import ComparedFiles
from mimo.index.vectors import State, Vectors, purge_vectors
from mimo.memory.model import Filter, Memory, Problem, Record
from mimo.sqlite import Connection

if TYPE_CHECKING:
    from mimo.index.documents import Document
    from mimo.index.links import Walks
    from mimo.index.meanings import Meanings
    from mimo.index.postgres.writing import Sources
    from mimo.index.tables import Search
    from mimo.index.writing import Batch
    from mimo.memory.relations import Graph

Answer = TypeVar("Answer")
P = ParamSpec("P")

_MEANINGS_BATCH = 32
"""The number of memories for which the encoder's vectors are made and stored at a time."""

_TEXTS_OF_TURN = 4
"""The number of texts that a server reads between two checks for a call, 0.1 s."""

_MOST_UNUSED = 10_000
"""The number of vectors of earlier texts that are kept beside as many as the index uses.

Past states share them, and a text may come back.
"""

_MOST_REPLACED = 3
"""The number of times that other processes may replace the tables before a query runs."""

_OF_FILES = (sqlite3.Error, OSError)

_KEPT_PAST = 8
"""The number of past states whose tables are kept, the last used ones."""


def _query(
    query: Callable[Concatenate[Connection, P], Answer],
) -> Callable[Concatenate[Index, P], Answer]:
    """Returns a function over the tables as a method of `Index`."""

    @wraps(query)
    def method(index: Index, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return index.ask(query, *args, **kwargs)

    return method


class _Caches:
    """Answers about one file of tables, and what speeds up further ones."""

    def __init__(self, identity: str) -> None:
        """Takes the identity of the file."""
        self.identity = identity
        self.search: Search | None = None
        self.walks: Walks | None = None
        self.answers: dict[object, tuple[object, object]] = {}


class Index:
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
        self.approvals = Approvals()
        """The check whether a text is approved; the caller sets its `checker`."""
        self._tables = Cache.open_or_rebuild(
            tables, schema.SCHEMA, owner=owner, prepare=self.approvals.add_functions
        )
        self._folder, self._owner = folder, owner
        self._is_past = tables != folder
        self._embedder = embedder
        self._vectors = vectors
        self._caches = _Caches("")
        self._embeds = True
        self._vectors_file = vectors.identity if vectors else ""
        self._complete: State | None = None
        """The state of the vectors when none was missing."""
        self._begun, self._compared_file = "", ""
        """The tables with which a comparison of all files began last, and one was complete."""
        self._compared = -1
        """The revision whose stamps were read last."""
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
        self.lacks_vectors = False
        """True if another process is still making some of the vectors."""
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
        self._caches = _Caches("")  # A search refers to this index: a cycle would keep files open.
        self._tables.close()
        if self._vectors:
            self._vectors.close()
        if meanings := vars(self).get("meanings"):
            meanings.close()

    # Comparing with the files.

    def begin(self) -> str:
        """Begins a comparison of all files, and returns the identity of the tables.

        Raises `CacheDamaged` if others took their place.
        """
        self._begun = self._tables.identity
        self._embed_missing()
        return self._begun

    stamps = _query(tracking.stamps)
    paths = _query(tracking.paths_of_files)
    file_count = _query(tracking.count_files)

    def compared(self) -> ComparedFiles | None:
        """Returns the files that were last compared by `note_compared`; None if all must be."""
        self._compared, compared = self.ask(tracking.compared)
        return compared

    @property
    def is_compared(self) -> bool:
        """True if all files have been compared with these tables since they were opened."""
        return self._compared_file == self._tables.identity

    def note_all_compared(self, identity: str) -> None:
        """Notes that all files were compared with the tables that had an identity in `begin`.

        Removes the files of earlier versions of mind if the index is complete for the first time.
        """
        self._compared_file = identity
        if self._is_first and self._folder:
            schema.remove_earlier(self._folder)
        self._is_first = False

    def note_compared(self, alike: Mapping[bytes, int]) -> None:
        """Notes the portions of files that equal the index, with the number of files in each.

        It does nothing if the index has changed since `compared`, or can't be written now.
        """
        with suppress(StorageFailed), self._tables.writing(0.0) as sql:
            tracking.note_compared(sql, alike, self._compared)

    # Writing.

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

        Returns the paths of files that have changed since, which are not written. Vectors are made
        before each transaction. Waits up to `wait` seconds for another process's transaction.
        Raises `CacheBusy` if that takes longer, and `StorageFailed` if the index can't be written;
        earlier batches are kept.
        """
        from mimo.index.writing import prepared

        self._embeds = True
        late: frozenset[str] = frozenset()
        for batch in prepared(changes, self._embed):
            late |= self._write([batch], now_ns, wait, overtaken)
            # Another process may have pruned vectors that no text had yet.
            self._embed(batch[1])
        self.prune()
        return late

    def prune(self, *, every: bool = False) -> None:
        """Removes the vectors of texts that the index no longer has, if they are many.

        The index of a past state leaves them: it shares the vectors of the project's index.
        """
        if self._vectors is None or self._is_past:
            return
        with suppress(CacheBusy, *FAILURES):
            with self._reading() as sql:
                totals = schema.totals(sql)
            most = _MOST_UNUSED + 2 * totals.units
            if not every and self._vectors.count() <= most:
                return
            # Meanwhile, no other process writes texts whose vectors would be removed here.
            with self._tables.writing() as sql:
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
            with suppress(FileNotFoundError):
                rmtree(self._folder / "past")

    def _write(
        self, batches: Iterable[Batch], now_ns: int, wait: float, late: Overtaken
    ) -> frozenset[str]:
        """Writes batches in one transaction, and returns the paths of files that are late."""
        from mimo.index.writing import Writer

        self.approvals.approves = None
        # The first index is waited for longer: without it, there is nothing to read.
        is_empty = self._tables.attempt(self._tables.reading, tracking.is_empty)
        with self._tables.writing(WAIT_SECONDS if is_empty else wait) as sql:
            before = schema.totals(sql)
            writer = Writer(sql, now_ns)
            for changes, documents in batches:
                writer.write(changes, documents, late(changes))
            writer.finish()
            if writer.claims:
                self.approve(writer.claims)
            if not before.memories or not self._embeds:
                self._note_model(sql)
        self._is_first = self._is_first or not before.revision
        return frozenset(writer.late)

    def resolve_ids(self, wait: float = WAIT_SECONDS) -> None:
        """Resolves ids of several memories if approvals have changed. Raises as `apply` does."""
        if self.totals().shadowed and self.kept(names.outdated, self.approvals.checker()):
            self._write((), 0, wait, none_is)

    # Reading.

    get = _query(selection.get)
    named = _query(names.named)
    matching = _query(names.matching)
    handle = _query(names.handle)
    apart = _query(names.apart)
    nearest_ids = _query(names.nearest_ids)
    nearest_topics = _query(names.nearest_topics)
    parts = _query(selection.parts)
    chunks = _query(selection.chunks)
    records = _query(selection.records)
    among = _query(selection.among)
    folded = _query(selection.folded)
    folded_records = _query(selection.folded_records)
    chunk_counts = _query(selection.chunk_counts)
    count = _query(selection.count)
    newer = _query(selection.newer)
    current = _query(selection.current)
    competing = _query(selection.competing)
    dangling = _query(selection.dangling)
    has_below = _query(tracking.has_below)
    totals = _query(schema.totals)
    latest = _query(tracking.latest)
    changes_since = _query(tracking.changes_since)
    fingerprint = _query(tracking.fingerprint)

    def problems(self) -> tuple[Problem, ...]:
        """Returns the files that could not be read when they were indexed, with the reasons."""
        return self.kept(selection.problems)

    def search(
        self,
        text: str,
        *,
        filter: Filter,
        limit: int,
        threshold: float,
        nearest: int = 0,
        now: datetime,
    ) -> Found:
        """Returns the memories that best match `text`, best first, none below `threshold`.

        If none reaches the threshold, returns the best `nearest`.
        """
        request = Request(text, filter, limit, threshold, nearest, now)
        answer = self.ask(self._found, request)
        if self._vectors and self._vectors.identity != self._vectors_file:
            self._embed_missing()  # The search found their file damaged.
            answer = self.ask(self._found, request)
        return answer

    def _found(self, sql: Connection, request: Request) -> Found:
        caches = self._caches_of(sql)
        if caches.search is None:
            from mimo.index.tables import Search

            caches.search = Search(self._vectors, self._embedder, lambda: self.meanings)
        return caches.search(sql, request)

    @cached_property
    def meanings(self) -> Meanings | None:
        """The encoder's vectors; None without an encoder."""
        encoder = self.encoder()
        if encoder is None:
            return None
        from mimo.index.meanings import Meanings

        cache = self._vectors.cache if self._vectors else None
        return Meanings(self._folder, encoder, self._owner, cache)

    def nearest(self, text: str, most: int) -> list[tuple[str, float]]:
        """Returns the approved memories nearest to a text by the encoder, and their cosines.

        There are none without an encoder, or for a text that it can't read.
        """
        return self.ask(lambda sql: self.meanings.nearest(sql, text, most) if self.meanings else [])

    def count_missing_meanings(self) -> int:
        """Returns the number of memories that lack vectors of the encoder."""
        return self.ask(lambda sql: len(self.meanings.missing(sql)) if self.meanings else 0)

    def missing_meanings(self) -> list[bytes]:
        """Returns the names of the encoder's vectors that are not made yet."""
        return self.ask(lambda sql: self.meanings.missing_names(sql) if self.meanings else [])

    def make_meanings(
        self,
        advance: Callable[[int, int], object],
        turn: Callable[[], AbstractContextManager[None]] | None = None,
    ) -> int:
        """Makes the encoder's missing vectors, and returns the number of memories that got some.

        `advance` is called with the number of memories done and of all, and may raise to stop.
        With `turn`, a few texts at a time are read in a context that it returns.
        """
        if self.meanings is None:
            return 0
        with self._reading() as sql:
            keys = self.meanings.missing(sql)
        for start in range(0, len(keys), _MEANINGS_BATCH):
            # A transaction for each batch: a long one would keep the log from being shortened.
            with self._reading() as sql:
                texts = self.meanings.texts(sql, keys[start : start + _MEANINGS_BATCH])
            size = _TEXTS_OF_TURN if turn else len(texts)
            for first in range(0, len(texts), size):
                with turn() if turn else nullcontext():
                    self.meanings.of(texts[first : first + size])
            advance(min(start + _MEANINGS_BATCH, len(keys)), len(keys))
        return len(keys)

    def superseded_by(self, ids: Sequence[str]) -> dict[str, str]:
        """Returns the superseded ones among these ids, each with the newest memory that does so."""
        return {old: new.successor for old, new in self.newer(ids).items() if new.successor}

    def saying(self, memory: Memory) -> tuple[Record, ...]:
        """Returns the current memories with the same statement as a new one, oldest first."""
        from mimo.index import writing

        return self.ask(writing.same, memory)

    def much_like(self, memory: Memory) -> Record | None:
        """Returns the current memory that is a near-duplicate of a new one, if there is one."""
        from mimo.index import writing

        return self.ask(writing.alike, writing.draft_of(memory))

    def citing(self) -> tuple[Record, ...]:
        """Returns the memories that may cite a place in a file, newest first."""
        from mimo.index import derived

        self._derive()
        return self.ask(derived.citing)

    def doubles(self, most: int) -> tuple[tuple[Record, Record], ...]:
        """Returns near-duplicates among the newest `most` memories, each with the nearest."""
        from mimo.index import derived

        self._derive()
        identity, pairs, now = self.ask(lambda sql: (sql.identity, *derived.doubles(sql, most)))
        if now:
            with suppress(StorageFailed), self._tables.writing(0.0) as sql:
                if sql.identity == identity:
                    derived.keep(sql, now)
        return pairs

    def _derive(self) -> None:
        """Stores the facts that a review derives from new texts, if the index can be written."""
        from mimo.index import derived

        is_behind = self.ask(derived.is_behind)
        with suppress(StorageFailed):
            while is_behind:
                with self._tables.writing(0.0) as sql:
                    is_behind = derived.learn(sql)

    def graph(
        self,
        start: Sequence[str],
        *,
        depth: int,
        types: Collection[str],
        most: int | None,
        shared: bool = False,
        now: datetime,
    ) -> Graph:
        """Returns the memories within `depth` links of `start`; recent answers are cached."""
        from mimo.index.links import Walks

        def walk(sql: Connection) -> Graph:
            caches = self._caches_of(sql)
            caches.walks = caches.walks or Walks()
            return caches.walks.graph(
                sql, start, depth=depth, types=types, most=most, shared=shared, now=now
            )

        return self.ask(walk)

    def changed_at(self) -> datetime | None:
        """Returns the time of the last change, UTC; None if the index was never written."""
        query = "SELECT changed_ns FROM totals"
        (changed_ns,) = self.ask(lambda sql: sql.execute(query).fetchone())
        return None if changed_ns is None else schema.to_time(changed_ns // 1000)

    @property
    def file(self) -> str:
        """Another value after a rebuild, for which revisions start again."""
        return self._tables.identity

    def stats(self) -> IndexStats:
        """Returns the size of the index."""
        sums = self.totals()
        return IndexStats(
            memories=sums.visible,
            units=sums.units,
            vectors=self._vectors.count() if self._vectors else 0,
            files=self.ask(tracking.count_files),
            bytes=self._tables.size(),
            format=schema.FORMAT,
        )

    @contextmanager
    def sources(self) -> Iterator[Sources]:
        """Yields the tables and vectors for a push to the shared index, all of one state."""
        from mimo.index.postgres.writing import Sources

        self.ask(schema.totals)  # Fills the tables again if they were damaged.
        self.approvals.approves = None
        vectors: list[tuple[str, Vectors]] = []
        if self._embedder and self._vectors:
            vectors.append((self._embedder.model, self._vectors))
        encoder = self.meanings.encoder.model if self.meanings else None
        if self.meanings and encoder:
            vectors.append((encoder, self.meanings.vectors))
        with self._tables.reading(suspects=(Misread,)) as sql:
            yield Sources(sql, vectors, encoder)

    def ask(
        self,
        query: Callable[Concatenate[Connection, P], Answer],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Returns the result of a query over the tables.

        If they are damaged, they are made again, once. If they then can't be used, or can't be used
        for another reason, they are made in memory.
        """
        is_new = False
        while True:
            try:
                return self._answer(query, *args, **kwargs)
            except StorageFailed as error:
                if isinstance(error, CacheBusy) or not (self.repair and self._folder):
                    raise
                is_damaged, cause = isinstance(error, CacheDamaged), error.__cause__
                if is_new and is_damaged and not isinstance(cause, _OF_FILES):
                    raise (cause or error) from None  # A new file is not damaged again: a bug.
                if is_new or not is_damaged:
                    self.leave_disk(error.message)
                is_new = True

    def _answer(
        self,
        query: Callable[Concatenate[Connection, P], Answer],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Returns the result of a query over the tables, which are filled first if they are new."""
        for _ in range(_MOST_REPLACED):
            with self._reading() as sql:
                # While one thread fills them, others answer from their part, and report that.
                if self.repair is None or sql.identity == self._begun:
                    return query(sql, *args, **kwargs)
            if self._begun != self._tables.identity:
                self.repair()
        raise StorageFailed("the index is replaced again and again", hint="try again")

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

    def kept(self, query: Callable[..., Answer], /, *args: object) -> Answer:
        """Returns the result of a query, which is kept until the index or an argument changes."""

        def answer(sql: Connection) -> Answer:
            caches, state = self._caches_of(sql), (schema.totals(sql).revision, args)
            before, kept = caches.answers.get(query, (None, None))
            if before != state:
                kept = query(sql, *args)
                caches.answers[query] = state, kept
            return cast("Answer", kept)

        return self.ask(answer)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self.approvals.approves = None
        with self._tables.reading() as sql:
            yield sql

    def _caches_of(self, sql: Connection) -> _Caches:
        """Returns the caches of a connection's file; other threads may use another file."""
        caches = self._caches
        if caches.identity != sql.identity:
            caches = self._caches = _Caches(sql.identity)
            if meanings := vars(self).get("meanings"):
                meanings.forget()
        return caches

    # Vectors.

    def _embed(self, documents: Sequence[Document]) -> None:
        """Makes the vectors of documents; if that fails, words find them until it works again."""
        if not (self._embedder and self._vectors):
            return
        from mimo.index.writing import embed

        try:
            embed(documents, self._embedder, self._vectors)
        except FAILURES:
            self._embeds = False

    def _embed_missing(self) -> None:
        """Makes all vectors that are lost, of another model, or could not be made before.

        Does nothing if another process is making them.
        """
        if not (self._embedder and self._vectors):
            return
        self.lacks_vectors, self._vectors_file = False, self._vectors.identity
        # Vectors are lost together; an older copy of their file lacks the newest. But those of a
        # past state are pruned.
        most, state = (-1, self._vectors.state()) if self._is_past else (3, None)
        if state and state == self._complete:
            return
        with self._reading() as sql:
            units = sql.execute("SELECT vector FROM units ORDER BY key DESC LIMIT ?", (most,))
            few = [name for (name,) in units]
            (model,) = sql.execute("SELECT value FROM meta WHERE name = 'model'").fetchone()
            is_ours = model == self._embedder.model
            is_whole = self._vectors.known(few) >= {*few}
            if not few or (is_ours and is_whole):
                self._complete = state
                return
        with self.turn() as ours:
            self.lacks_vectors = not ours
            if ours:
                self._embed_all(self._embedder)

    def _embed_all(self, embedder: Embedder) -> None:
        from mimo.index.documents import document
        from mimo.index.writing import BATCH

        with suppress(*FAILURES):
            embedder.encode("a")
            self._embeds, last = True, 0
            while self._embeds:
                with self._reading() as sql:
                    records = rows.after(sql, last, BATCH)
                if not records:
                    break
                self._embed([document(record) for record in records.values()])
                last = max(records)
            with self._tables.writing() as sql:
                # Meanwhile, another process may have written texts without their vectors.
                names = {name for (name,) in sql.execute("SELECT vector FROM units")}
                if self._vectors:
                    self._embeds = self._embeds and self._vectors.known(names) >= names
                self._note_model(sql)

    def _note_model(self, sql: sqlite3.Connection) -> None:
        """Stores the model of the vectors; None if some units have no vector."""
        model = self._embedder.model if self._embedder and self._embeds else None
        sql.execute("UPDATE meta SET value = ? WHERE name = 'model'", (model,))
