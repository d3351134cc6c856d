"""The index of one project: a disposable copy of its memories that answers without the files."""

from __future__ import annotations

import sqlite3
from _thread import get_ident
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from functools import cache, cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from mimo.disk import Stamp
from mimo.errors import StorageFailed
from mimo.index import catalog, database, names, rows, schema
from mimo.index.catalog import ComparedFiles
from mimo.index.content import State
from mimo.index.database import WRITE_WAIT_SECONDS, Approves, Database, IndexBusy, IndexDamaged
from mimo.index.embedding import FAILURES, Embedder
from mimo.index.rows import Change, Found, IndexStats, Overtaken, Request, none_is
from mimo.index.vectors import Vectors
from mimo.memory.model import Filter, Memory, Problem, Record

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

_VERY_MANY, _TIMES = 20_000, 4
"""Changes of so many files, and of so many times the files in the index, postpone indexes."""

_MOST_UNUSED = 10_000
"""The number of vectors of earlier texts that are kept beside as many as the index uses.

Past states share them, and a text may come back.
"""


def _query(
    query: Callable[Concatenate[sqlite3.Connection, P], Answer],
) -> Callable[Concatenate[Index, P], Answer]:
    """Returns a function over the tables as a method of `Index`."""

    @wraps(query)
    def method(index: Index, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return index.ask(query, *args, **kwargs)

    return method


class Index:
    """The memories of one project, ready to be searched."""

    def __init__(
        self,
        data: Database,
        vectors: Vectors | None,
        embedder: Embedder | None,
        owner: str = "",
        folder: Path | None = None,
    ) -> None:
        """Takes the parts; `open` and `in_memory` make them. `folder` has the vectors."""
        self._data = database.Generations(data, owner)
        self._folder, self._owner = folder, owner
        self._is_past = data.path is not None and data.path.parent != folder
        self._embedder = embedder
        self._vectors = vectors
        self._identity = self._data.identity
        self._search: Search | None = None
        self._walks: Walks | None = None
        self._kept: dict[object, tuple[object, object]] = {}
        self._embeds = True
        self._complete: State | None = None
        """The state of the vectors when none was missing."""
        self._clearing = set[int]()  # The threads whose next `apply` empties the index.
        self._compared_file: object = ...
        """The identity of the database with which all files have been compared."""
        self._compared = -1
        """The revision whose stamps were read last."""
        self.repair: Callable[[], object] | None = None
        """Writes all that the database lacks, from the files; set by the caller."""
        self.in_memory_because: str | None = None
        """The reason why an index that was on disk is in memory now."""
        self.turn: Callable[[], AbstractContextManager[bool]] = lambda: nullcontext(True)
        """Claims long work on this index for this process; yields whether the claim succeeded."""
        self.encoder: Callable[[], Embedder | None] = lambda: None
        """Returns the encoder of the second vectors; set by the caller, None for none."""
        self.lacks_vectors = False
        """True if another process is still making some of the vectors."""
        self.approvals: Callable[[], Approves] = lambda: lambda _: True
        """Returns the function that checks whether a text is approved; the default approves all."""
        self.approve: Callable[[Collection[str]], object] = lambda _: None
        """Approves claims of approved texts, which then hold after changes; set by the caller."""

    @classmethod
    def open(cls, folder: Path, embedder: Embedder | None, owner: str = "") -> Index:
        """Returns the index in `folder`, or an empty one if none there is usable.

        An index or vectors of another owner, as in a clone, are not usable. Without an embedder the
        index finds by words only. Raises `StorageFailed` if the folder can't be written.
        """
        vectors = Vectors(folder, embedder.model, owner=owner) if embedder else None
        return cls(database.open_newest(folder, owner), vectors, embedder, owner, folder)

    @classmethod
    def open_past(cls, folder: Path, name: str, embedder: Embedder | None, owner: str) -> Index:
        """Returns the index of a past state, within a project's index folder.

        All states share the vectors in `folder`, so that only new texts are embedded.
        """
        try:
            data = database.open_past(folder / "past" / name, owner)
        except StorageFailed:
            return cls.in_memory(embedder)
        vectors = Vectors(folder, embedder.model, owner=owner) if embedder else None
        return cls(data, vectors, embedder, owner, folder)

    @classmethod
    def in_memory(cls, embedder: Embedder | None) -> Index:
        """Returns an empty index that has no files."""
        vectors = Vectors(None, embedder.model) if embedder else None
        return cls(Database(None), vectors, embedder)

    def close(self) -> None:
        """Closes the files."""
        self._search = None  # It refers to this index: a cycle would keep the model's files open.
        self._data.newest.close()
        if self._vectors:
            self._vectors.close()
        if meanings := vars(self).get("meanings"):
            meanings.close()

    # Comparing with the files: every refresh begins here. A damaged index has none.

    def stamps(self, paths: Collection[str] | None = None) -> dict[str, tuple[Stamp, int]]:
        """Returns, by path, the stamp of each indexed file and the time (ns) at which it was read.

        With `paths`, only of these files.
        """
        return self._begin(catalog.stamps, paths) or {}

    def paths(self) -> list[str]:
        """Returns the paths of all indexed files."""
        return self._begin(catalog.paths_of_files) or []

    def file_count(self) -> int:
        """Returns the number of indexed files."""
        return self._begin(catalog.count_files) or 0

    def compared(self) -> ComparedFiles | None:
        """Returns the files that were last compared by `note_compared`; None if all must be."""
        noted = self._begin(catalog.compared)
        self._compared, is_postponed, compared = noted or (-1, False, None)
        if is_postponed:  # By a process that ended before it was done, or that is at work.
            with self.turn() as ours:
                if ours:
                    self._data.make_postponed()
        return compared

    def _begin(
        self,
        query: Callable[Concatenate[sqlite3.Connection, P], Answer],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer | None:
        if get_ident() in self._clearing:
            return None
        try:
            self._data.renew()
            self._embed_missing()
            with self._reading() as sql:
                return query(sql, *args, **kwargs)
        except IndexDamaged:
            return None

    @property
    def is_compared(self) -> bool:
        """True if all files have been compared with this database since it was opened."""
        return self._compared_file == self._data.identity

    def note_all_compared(self) -> None:
        """Notes that all files have been compared with this database."""
        self._compared_file = self._data.identity

    def note_compared(self, alike: Mapping[bytes, int]) -> None:
        """Notes the portions of files that equal the index, with the number of files in each.

        It does nothing if the index has changed since `compared`, or can't be written now.
        """
        with suppress(StorageFailed), self._data.newest.writing(0.0) as sql:
            catalog.note_compared(sql, alike, self._compared)

    # Writing.

    def clear(self) -> None:
        """Empties the index, in the next `apply` of this thread; until then it answers others."""
        self._clearing.add(get_ident())

    @property
    def is_cleared(self) -> bool:
        """Returns whether the next `apply` of this thread empties the index."""
        return get_ident() in self._clearing

    def keep(self) -> None:
        """Cancels `clear`."""
        self._clearing.discard(get_ident())

    def apply(
        self,
        changes: Iterable[Change],
        *,
        now_ns: int,
        wait: float = WRITE_WAIT_SECONDS,
        overtaken: Overtaken = none_is,
    ) -> frozenset[str]:
        """Writes changes of files that were read at `now_ns`, in one transaction for each batch.

        Returns the paths of files that have changed since, which are not written. Vectors are made
        before each transaction. After `clear` there is only one transaction. Waits up to `wait`
        seconds for another process's transaction. Raises `IndexBusy` if that takes longer,
        `IndexNotReady` if that process makes the first index, and `StorageFailed` if the index
        can't be written; earlier batches are kept.
        """
        from mimo.index.writing import prepared

        self._embeds = True
        if get_ident() not in self._clearing:
            late: frozenset[str] = frozenset()
            with self._postponing(changes):
                for batch in prepared(changes, self._embed):
                    late |= self._write([batch], now_ns, wait, overtaken, clear=False)
                    # Another process may have pruned vectors that no text had yet.
                    self._embed(batch[1])
            self._prune()
            return late
        self._clearing.discard(get_ident())
        try:
            if iter(changes) is changes:
                changes = list(changes)
            if self._vectors:
                self._vectors.verify()
            for _ in prepared(changes, self._embed):
                pass  # Makes the vectors before the transaction.
            batches = prepared(changes, self._embed)
            late = self._write(batches, now_ns, wait, overtaken, clear=True)
        except BaseException:
            self._clearing.add(get_ident())
            raise
        self._prune(every=True)
        return late

    def _prune(self, *, every: bool = False) -> None:
        """Removes the vectors of texts that the index no longer has, if they are many.

        The index of a past state leaves them: it shares the vectors of the project's index.
        """
        if self._vectors is None or self._is_past:
            return
        with suppress(IndexBusy, *FAILURES):
            with self._reading() as sql:
                totals = catalog.totals(sql)
            most = _MOST_UNUSED + 2 * (totals.units + totals.memories)
            if not every and self._vectors.count() <= most:
                return
            # Meanwhile, no other process writes texts whose vectors would be removed here.
            with self._data.writing() as sql:
                used = sql.execute("SELECT vector FROM units UNION SELECT vector FROM memories")
                names = {name for (name,) in used}
                self._vectors.prune(names)
            if self.meanings:
                self.meanings.prune(names)
            if self._embedder and self._embeds and names - self._vectors.known(names):
                self._embed_all(self._embedder)

    def purge(self) -> None:
        """Removes what is left of removed texts, also in past states. Raises `StorageFailed`."""
        from mimo.index.writing import purge

        with self._data.writing() as sql:
            purge(sql)
        self._prune(every=True)
        self._data.newest.compact()

    def _postponing(self, changes: Iterable[Change]) -> AbstractContextManager[None]:
        """Postpones indexes of the tables if the changes are many times what the tables have."""
        count = len(changes) if isinstance(changes, Sized) else 0
        is_many = count >= _VERY_MANY and count >= _TIMES * self.file_count()
        return self._data.postponing() if is_many else nullcontext()

    def _write(
        self, batches: Iterable[Batch], now_ns: int, wait: float, late: Overtaken, clear: bool
    ) -> frozenset[str]:
        """Writes batches in one transaction, and returns the paths of files that are late."""
        from mimo.index.writing import Writer

        self._data.newest.approves = self._approves()
        with self._data.writing(wait) as sql:
            if clear:
                schema.clear(sql)
            was_empty = catalog.totals(sql).memories == 0
            writer = Writer(sql, now_ns)
            for changes, documents in batches:
                writer.write(changes, documents, late(changes))
            writer.finish()
            if writer.claims:
                self.approve(writer.claims)
            if was_empty or not self._embeds:
                self._note_model(sql)
        return frozenset(writer.late)

    def resolve_ids(self, wait: float = WRITE_WAIT_SECONDS) -> None:
        """Resolves ids of several memories if approvals have changed. Raises as `apply` does."""
        if self.totals().shadowed and self.kept(names.outdated, self.approvals()):
            self._write((), 0, wait, none_is, clear=False)

    # Reading.

    get = _query(catalog.get)
    named = _query(names.named)
    matching = _query(names.matching)
    handle = _query(names.handle)
    apart = _query(names.apart)
    nearest_ids = _query(names.nearest_ids)
    nearest_topics = _query(names.nearest_topics)
    parts = _query(catalog.parts)
    chunks = _query(catalog.chunks)
    records = _query(catalog.records)
    among = _query(catalog.among)
    folded = _query(catalog.folded)
    folded_records = _query(catalog.folded_records)
    chunk_counts = _query(catalog.chunk_counts)
    count = _query(catalog.count)
    newer = _query(catalog.newer)
    current = _query(catalog.current)
    competing = _query(catalog.competing)
    dangling = _query(catalog.dangling)
    has_below = _query(catalog.has_below)
    totals = _query(catalog.totals)
    latest = _query(catalog.latest)
    changes_since = _query(catalog.changes_since)
    fingerprint = _query(catalog.fingerprint)

    def problems(self) -> tuple[Problem, ...]:
        """Returns the files that could not be read when they were indexed, with the reasons."""
        return self.kept(catalog.problems)

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
        return self.ask(self._found, Request(text, filter, limit, threshold, nearest, now))

    def _found(self, sql: sqlite3.Connection, request: Request) -> Found:
        search = self._search  # Another thread may close this index.
        if search is None:
            from mimo.index.tables import Search

            search = self._search = Search(self._vectors, self._embedder, lambda: self.meanings)
        return search(sql, request)

    @cached_property
    def meanings(self) -> Meanings | None:
        """The encoder's vectors; None without an encoder."""
        encoder = self.encoder()
        if encoder is None:
            return None
        from mimo.index.meanings import Meanings

        return Meanings(self._folder, encoder, self._owner)

    def nearest(self, text: str, most: int) -> list[tuple[str, float]]:
        """Returns the approved memories nearest to a text by the encoder, and their cosines.

        There are none without an encoder, or for a text that it can't read.
        """
        return self.ask(lambda sql: self.meanings.nearest(sql, text, most) if self.meanings else [])

    def missing_meanings(self) -> list[bytes]:
        """Returns the names of the encoder's vectors that are not made yet."""
        return self.ask(lambda sql: self.meanings.missing_names(sql) if self.meanings else [])

    def make_meanings(self, advance: Callable[[int, int], object]) -> int:
        """Makes the encoder's missing vectors, and returns the number of memories that got some.

        `advance` is called with the number of memories done and of all, and may raise to stop.
        """
        if self.meanings is None:
            return 0
        with self._reading() as sql:
            keys = self.meanings.missing(sql)
        for start in range(0, len(keys), _MEANINGS_BATCH):
            # A transaction for each batch: a long one would keep the log from being shortened.
            with self._reading() as sql:
                self.meanings.make(sql, keys[start : start + _MEANINGS_BATCH])
            advance(min(start + _MEANINGS_BATCH, len(keys)), len(keys))
        return len(keys)

    @property
    def is_behind(self) -> bool:
        """Returns whether the last search lacked vectors of the encoder that can be kept."""
        meanings: Meanings | None = vars(self).get("meanings")
        return meanings is not None and self._folder is not None and meanings.is_behind

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

        draft = writing.draft_of(memory)
        self._embed([draft])
        return self.ask(lambda sql: writing.alike(sql, draft, self._vectors))

    def citing(self) -> tuple[Record, ...]:
        """Returns the memories that may cite a place in a file, newest first."""
        from mimo.index import derived

        self._derive()
        return self.ask(derived.citing)

    def doubles(self, most: int) -> tuple[tuple[Record, Record], ...]:
        """Returns near-duplicates among the newest `most` memories, each with the nearest."""
        from mimo.index import derived

        self._derive()
        model = self._embedder.model if self._embedder and self._vectors else None
        replaced = self._data.replaced
        pairs, now = self.ask(lambda sql: derived.doubles(sql, self._vectors, model, most))
        if now and self._data.replaced == replaced:
            with suppress(StorageFailed), self._data.writing(0.0) as sql:
                derived.keep(sql, now)
        return pairs

    def _derive(self) -> None:
        """Stores the facts that a review derives from new texts, if the index can be written."""
        from mimo.index import derived

        is_behind = self.ask(derived.is_behind)
        with suppress(StorageFailed):
            while is_behind:
                with self._data.writing(0.0) as sql:
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

        def walk(sql: sqlite3.Connection) -> Graph:
            walks = self._walks = self._walks or Walks()  # Another thread may forget it.
            return walks.graph(
                sql, start, depth=depth, types=types, most=most, shared=shared, now=now
            )

        return self.ask(walk)

    def changed_at(self) -> datetime | None:
        """Returns the time of the last change, UTC; None if the index was never written."""
        query = "SELECT changed_ns FROM totals"
        (changed_ns,) = self.ask(lambda sql: sql.execute(query).fetchone())
        return None if changed_ns is None else rows.to_time(changed_ns // 1000)

    @property
    def file(self) -> str:
        """Another value after a rebuild, for which revisions start again."""
        return str(self._data.identity)

    def stats(self) -> IndexStats:
        """Returns the size of the index."""
        sums = self.totals()
        return IndexStats(
            memories=sums.memories - sums.shadowed,
            units=sums.units,
            vectors=self._vectors.count() if self._vectors else 0,
            files=self.ask(catalog.count_files),
            bytes=self._data.newest.size(),
            format=schema.FORMAT,
            generation=self._data.newest.generation,
        )

    @contextmanager
    def sources(self) -> Iterator[Sources]:
        """Yields the tables and vectors for a push to the shared index, all of one state."""
        from mimo.index.postgres.writing import Sources

        if self.repair:
            self._data.refill(self.repair, self.leave_disk)
        complete = self._data.replaced
        vectors: list[tuple[str, Vectors]] = []
        if self._embedder and self._vectors:
            vectors.append((self._embedder.model, self._vectors))
        encoder = self.meanings.encoder.model if self.meanings else None
        if self.meanings and encoder:
            vectors.append((encoder, self.meanings.vectors))
        failure: Exception | None = None
        with self._reading() as sql:
            try:
                yield Sources(sql, vectors, encoder)
            except (sqlite3.Error, IndexDamaged):
                raise
            except Exception as error:  # noqa: BLE001 - it is of the push, not of this index
                failure = error
        if failure is not None:
            raise failure
        if self._data.replaced != complete:
            raise database.damaged(self._data.newest.path, "it was replaced meanwhile")

    def ask(
        self,
        query: Callable[Concatenate[sqlite3.Connection, P], Answer],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Returns the result of a query over the tables.

        If the database fails, it is filled again, or the index is made in memory, and the query
        runs again. A database that is being filled answers only the thread that fills it.
        """
        for attempt in range(3):
            if self.repair:
                self._data.refill(self.repair, self.leave_disk)
            losses = self._vectors.losses if self._vectors else 0
            replaced = self._data.replaced
            try:
                with self._reading() as sql:
                    answer = query(sql, *args, **kwargs)
                if self._vectors and self._vectors.losses != losses and not attempt:
                    self._embed_missing(after_loss=True)
                elif self._data.replaced == replaced or self._data.is_repairer:
                    return answer
            except StorageFailed as error:
                is_last = attempt == 2 or self._data.newest.path is None
                if isinstance(error, IndexBusy) or self._data.is_repairer or self.repair is None:
                    raise
                cause = error.__cause__ if isinstance(error, IndexDamaged) else None
                if attempt and not isinstance(cause, sqlite3.Error | OSError | None):
                    raise cause from None  # A new index is not damaged again: a bug in the query.
                if is_last:
                    raise
                if attempt:
                    self.leave_disk(error.message)
                self._data.require_refill()
        raise database.damaged(self._data.newest.path, "it is replaced again and again")

    def leave_disk(self, reason: str) -> None:
        """Goes on in memory, with an empty database."""
        self.in_memory_because = reason
        self.turn = lambda: nullcontext(True)
        self._folder, self._search = None, None
        if self._vectors and self._embedder:
            self._vectors.close()
            self._vectors = Vectors(None, self._embedder.model)
        if meanings := vars(self).pop("meanings", None):
            meanings.close()
        self._data.replace(self._data.newest, Database(None))

    def kept(self, query: Callable[..., Answer], /, *args: object) -> Answer:
        """Returns the result of a query, which is kept until the index or an argument changes."""
        state = self._data.identity, self.ask(catalog.totals).revision, args
        before, answer = self._kept.get(query, (None, None))
        if before != state:
            answer = self.ask(query, *args)
            self._kept[query] = state, answer
        return cast("Answer", answer)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        replaced = self._data.replaced
        try:
            with self._data.reading(self._approves()) as sql:
                if self._identity != self._data.identity:
                    self._forget()
                yield sql
        finally:
            if self._data.replaced != replaced:
                self._forget()  # What this thread kept may be of the database before.

    def _forget(self) -> None:
        """Empties the caches, which are of another database."""
        self._identity = self._data.identity
        self._walks = self._search = None  # Threads that have them fill those only.
        if meanings := vars(self).get("meanings"):
            meanings.units.forget()

    def _approves(self) -> Approves:
        """Returns the check of approvals, which reads them when it is first called.

        It does not refer to this index: a reference cycle would keep closed files open.
        """
        checker = cache(self.approvals)

        def approves(digest: str) -> bool:
            return checker()(digest)

        return approves

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

    def _embed_missing(self, *, after_loss: bool = False) -> None:
        """Makes all vectors that are lost, of another model, or could not be made before.

        Does nothing if another process is making them.
        """
        if not (self._embedder and self._vectors):
            return
        self.lacks_vectors = False
        # A few units are enough: vectors are lost together or not at all. But those of a past state
        # are pruned one by one.
        most, state = (-1, self._vectors.state()) if self._is_past else (3, None)
        if state and state == self._complete and not after_loss:
            return
        with self._reading() as sql:
            units = sql.execute("SELECT vector FROM units ORDER BY key LIMIT ?", (most,))
            few = [name for (name,) in units]
            (model,) = sql.execute("SELECT value FROM meta WHERE name = 'model'").fetchone()
            is_ours = model == self._embedder.model
            is_whole = self._vectors.known(few) >= {*few}
            if not after_loss and (not few or (is_ours and is_whole)):
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
            with self._data.writing() as sql:
                # Meanwhile, another process may have written texts without their vectors.
                names = {name for (name,) in sql.execute("SELECT vector FROM units")}
                if self._vectors:
                    self._embeds = self._embeds and self._vectors.known(names) >= names
                self._note_model(sql)

    def _note_model(self, sql: sqlite3.Connection) -> None:
        """Stores the model of the vectors; None if some units have no vector."""
        model = self._embedder.model if self._embedder and self._embeds else None
        sql.execute("UPDATE meta SET value = ? WHERE name = 'model'", (model,))
