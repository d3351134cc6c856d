"""The indexes of past states, one for each: beside the present one, whose vectors they share."""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mimo.disk import Stamp
from mimo.errors import StorageFailed
from mimo.frozen import frozen
from mimo.index import catalog, database, meaning, rows, schema, words
from mimo.index.database import WRITE_WAIT_SECONDS, Approves, Database, IndexDamaged
from mimo.index.embedding import FAILURES, Embedder
from mimo.index.rows import Change, Found, Newer, Request
from mimo.index.vectors import Vectors
from mimo.memory.model import Filter, Memory, Problem, Record, Sort

if TYPE_CHECKING:
    from mimo.index.documents import Document
    from mimo.index.links import Walks
    from mimo.index.search import Search
    from mimo.index.writing import Batch
    from mimo.memory.relations import Graph


# How much an index holds.


@frozen
class IndexStats:
    """How much the index holds."""

    memories: int
    units: int
    vectors: int
    files: int
    bytes: int
    format: int
    generation: int

    @classmethod
    def of(
        cls, sql: sqlite3.Connection, database: Database, vectors: Vectors | None
    ) -> "IndexStats":
        """Returns the figures of an index as it stands."""
        sums = words.totals(sql)
        (files,) = sql.execute("SELECT count(*) FROM files").fetchone()
        names = {name for (name,) in sql.execute("SELECT vector FROM units")}
        return cls(
            memories=sums.memories - sums.shadowed,
            units=sums.units,
            vectors=len(vectors.known(names)) if vectors else 0,
            files=files,
            bytes=database.size(),
            format=schema.FORMAT,
            generation=database.generation,
        )


# The index of one project: what the files say, ready to be searched.


Answer = TypeVar("Answer")
_CHANGED = "SELECT changed_ns FROM totals"


class Index:
    """A disposable copy of the memories that answers without opening a file."""

    def __init__(
        self, data: Database, folder: Path | None, embedder: Embedder | None, owner: str = ""
    ) -> None:
        """Take the parts; `open` and `in_memory` make them."""
        self._database = data
        self._owner = owner
        self._embedder = embedder
        self._vectors = Vectors.open(folder, embedder.model) if embedder else None
        self._identity = database.identity(data)
        self._search: Search | None = None
        self._walks: Walks | None = None
        self._embeds = True
        self._cleared = False
        self.mend: Callable[[], object] | None = None
        """Refills the index from the files after damage; set by the caller that knows them."""
        self.turn: Callable[[], AbstractContextManager[bool]] = lambda: nullcontext(True)
        """Gives whether long work on this index is ours now; one process at a time has it."""
        self.lacks_vectors = False
        """Whether vectors are missing that another process is making."""
        self.approvals: Callable[[], Approves] = lambda: lambda _: True
        """Returns what says which texts are approved now; all are where nobody sets it."""

    @classmethod
    def open(cls, folder: Path, embedder: Embedder | None, owner: str = "") -> "Index":
        """Returns the index kept in `folder`; an empty one where none is usable.

        One that another owner made is not: it may have come with a clone. Without an embedder it
        finds by words only. Raises `StorageFailed` where the folder can't be written.
        """
        return cls(database.open_newest(folder, owner), folder, embedder, owner)

    @classmethod
    def in_memory(cls, embedder: Embedder | None) -> "Index":
        """Returns an empty index that is kept nowhere."""
        return cls(Database(None), None, embedder)

    def close(self) -> None:
        """Closes its files."""
        self._database.close()
        if self._vectors:
            self._vectors.close()

    def stamps(self) -> dict[str, tuple[Stamp, int]]:
        """Returns each file's stamp, and when it was looked at (ns); keys are paths.

        What follows is answered by the newest generation, empty where the last one was damaged.
        """
        if self._cleared:
            return {}
        if database.identity(self._database) != self._identity and self._database.path:
            self._use(database.open_newest(self._database.path.parent, self._owner))
        try:
            self._embed_what_is_missing()
            with self._reading() as sql:
                return catalog.stamps(sql)
        except IndexDamaged:
            return {}

    def clear(self) -> None:
        """Empties the index in the same transaction as the next `apply`."""
        self._cleared = True

    def keep(self) -> None:
        """Takes `clear` back: what is committed stays."""
        self._cleared = False

    def apply(
        self, changes: Iterable[Change], *, now_ns: int, wait: float = WRITE_WAIT_SECONDS
    ) -> None:
        """Writes changes of files, as they were seen at `now_ns`, in transactions of a batch each.

        Vectors are made before a transaction begins. After `clear` there is one transaction for
        all. Waits up to `wait` seconds for another process's transaction. Raises `IndexBusy` if
        that takes longer, `IndexNotReady` if that process is making the first index, and
        `StorageFailed` if the index can't be written; batches before that are kept.
        """
        from mimo.index.writing import prepared

        self._embeds = True
        if self._cleared:
            self._refill(changes, now_ns, wait)
            return
        for batch in prepared(changes, self._embed):
            self._write([batch], now_ns, wait)

    def _refill(self, changes: Iterable[Change], now_ns: int, wait: float) -> None:
        from mimo.index.writing import prepared

        self._cleared = False
        try:
            if iter(changes) is changes:
                changes = list(changes)
            if self._vectors:
                self._vectors.verify()
            for _ in prepared(changes, self._embed):
                pass  # The vectors are made before the transaction, which then finds them.
            self._write(prepared(changes, self._embed), now_ns, wait, clear=True)
        except BaseException:
            self._cleared = True
            raise
        if self._vectors:
            self._remove_unused_vectors(self._vectors)

    def _write(
        self, batches: "Iterable[Batch]", now_ns: int, wait: float, *, clear: bool = False
    ) -> None:
        """Writes batches in one transaction."""
        from mimo.index.writing import Writer

        self._database.approves = self._approves()
        with self._whole(), self._database.writing(wait) as sql:
            if clear:
                schema.clear(sql)
            was_empty = words.totals(sql).memories == 0
            writer = Writer(sql, now_ns)
            for batch, documents in batches:
                writer.write(batch, documents)
            writer.finish()
            if was_empty or not self._embeds:
                self._note_model(sql)

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

        Where none reaches it, the best `nearest` are answered.
        """
        request = Request(text, filter, limit, threshold, nearest, now)
        if self._search is None:
            from mimo.index.search import Search

            self._search = Search(self._vectors, self._embedder)
        search = self._search
        return self._answer(lambda sql: search(sql, request))

    def get(self, id: str) -> Record | None:
        """Returns the memory of that id."""
        return self._answer(lambda sql: catalog.get(sql, id))

    def named(self, target: str) -> Record | None:
        """Returns the memory that a link leads to: by its id, or else by its title."""
        return self._answer(lambda sql: catalog.named(sql, target))

    def matching(self, abbreviation: str) -> tuple[str, ...]:
        """Returns the ids that begin or end so, sorted; a whole id stands for itself alone."""
        return self._answer(lambda sql: catalog.matching(sql, abbreviation))

    def parts(self, parent: str) -> tuple[Record, ...]:
        """Returns the parts of a longer text, in their order."""
        return self._answer(lambda sql: catalog.parts(sql, parent))

    def parents(self, abbreviation: str) -> tuple[str, ...]:
        """Returns the ids of longer texts that begin or end so; a whole id stands for itself."""
        return self._answer(lambda sql: catalog.parents(sql, abbreviation))

    def nearest_ids(self, wrong: str, n: int = 3) -> tuple[str, ...]:
        """Returns up to `n` ids that look most like `wrong`, the nearest first."""
        return self._answer(lambda sql: catalog.nearest_ids(sql, wrong, n))

    def records(
        self, filter: Filter, *, sort: Sort = Sort.RECENT, limit: int = -1, offset: int = 0
    ) -> tuple[Record, ...]:
        """Returns one page of the memories that pass the filter; a negative limit means all."""
        return self._answer(lambda sql: catalog.records(sql, filter, sort, limit, offset))

    def count(self, filter: Filter) -> int:
        """Returns how many memories pass the filter."""
        return self._answer(lambda sql: catalog.count(sql, filter))

    def superseded_by(self, ids: Sequence[str]) -> dict[str, str]:
        """Returns, for those ids that something supersedes, the newest that does."""
        return {old: new.successor for old, new in self.newer(ids).items() if new.successor}

    def newer(self, ids: Sequence[str]) -> dict[str, Newer]:
        """Returns what claims to supersede each of these ids."""
        return self._answer(lambda sql: catalog.newer_versions(sql, ids))

    def successors(self, id: str) -> tuple[str, ...]:
        """Returns the ids of the memories that supersede this one, newest first."""
        return self.newer((id,))[id].superseded_by

    def current(self, topic: str) -> tuple[Record, ...]:
        """Returns the decisions in force on a topic, newest first."""
        return self._answer(lambda sql: catalog.current(sql, topic))

    def competing(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Returns, for those decisions that compete with others of their topic, the others' ids."""
        return self._answer(lambda sql: catalog.competing(sql, ids))

    def saying(self, memory: Memory) -> tuple[Record, ...]:
        """Returns the memories in force that say the same as a new one, oldest first."""
        from mimo.index import duplicates

        return self._answer(lambda sql: duplicates.same(sql, memory))

    def much_like(self, memory: Memory) -> Record | None:
        """Returns the other memory in force that is most like this one, if any is much like it."""
        from mimo.index import duplicates

        draft = duplicates.draft_of(memory)
        self._embed([draft])
        return self._answer(lambda sql: duplicates.alike(sql, draft, self._vectors))

    def nearest_topics(self, wrong: str, n: int = 3) -> tuple[str, ...]:
        """Returns up to `n` topics that look most like `wrong`."""
        return self._answer(lambda sql: catalog.nearest_topics(sql, wrong, n))

    def graph(
        self,
        start: Sequence[str],
        *,
        depth: int,
        types: Collection[str],
        most: int | None,
        now: datetime,
    ) -> "Graph":
        """Returns the memories within `depth` links of `start`; the same question is kept ready."""
        from mimo.index.links import Walks

        self._walks = walks = self._walks or Walks()
        return self._answer(
            lambda sql: walks.graph(sql, start, depth=depth, types=types, most=most, now=now)
        )

    def newest_linked(self, types: Collection[str], most: int) -> "Graph":
        """Returns up to `most` memories that links connect, and the links between them."""
        from mimo.index import links

        return self._answer(lambda sql: links.newest(sql, types, most))

    def dangling(self) -> tuple[tuple[str, str], ...]:
        """Returns (id, target) of each link that leads to nothing here."""
        return self._answer(catalog.dangling)

    def problems(self) -> tuple[Problem, ...]:
        """Returns what keeps files, or memories in them, from being found."""
        return self._answer(catalog.problems)

    def changed_at(self) -> datetime | None:
        """Returns when the index last changed, UTC; None before the first time."""
        changed_ns = self._answer(lambda sql: sql.execute(_CHANGED).fetchone()[0])
        if changed_ns is None:
            return None
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=changed_ns // 1000)

    def stats(self) -> IndexStats:
        """Returns how much it holds."""
        return self._answer(lambda sql: IndexStats.of(sql, self._database, self._vectors))

    def _answer(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Returns what `question` reads; asks again after damage that could be mended."""
        losses = self._vectors.losses if self._vectors else 0
        try:
            with self._reading() as sql:
                answer = question(sql)
        except IndexDamaged:
            if self.mend is None:
                raise
            self.mend()
        else:
            if self._vectors is None or self._vectors.losses == losses:
                return answer
            self._embed_what_is_missing(after_loss=True)
        try:
            with self._reading() as sql:
                return question(sql)
        except IndexDamaged as error:
            # An index that was just rebuilt is not damaged again: the fault is in the question.
            if isinstance(error.__cause__, sqlite3.Error | OSError | None):
                raise
            raise error.__cause__ from None

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if self._cleared:
            self.apply((), now_ns=0)
        self._database.approves = self._approves()
        with self._whole(), self._database.reading() as sql:
            yield sql

    def _approves(self) -> Approves:
        """Returns what says which texts are approved, as it is when that is first asked.

        It does not refer to this index: a cycle would keep closed files open until a collection.
        """
        approvals, approves = self.approvals, None

        def approved(digest: str) -> bool:
            nonlocal approves
            if approves is None:
                approves = approvals()
            return approves(digest)

        return approved

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Puts an empty database in the place of one that turns out to be damaged."""
        try:
            yield
        except IndexDamaged:
            if self._database.path:
                self._use(database.make_next(self._database.path.parent, self._owner))
            raise

    def _use(self, data: Database) -> None:
        self._database.close()
        self._database = data
        self._walks = None
        self._identity = database.identity(data)

    def _embed(self, documents: "Sequence[Document]") -> None:
        """Makes the vectors of documents; words find them where that fails, till it works again."""
        if not (self._embedder and self._vectors):
            return
        from mimo.index.writing import embed

        try:
            embed(documents, self._embedder, self._vectors)
        except FAILURES:
            self._embeds = False

    def _embed_what_is_missing(self, *, after_loss: bool = False) -> None:
        """Makes all vectors that are lost, of another model, or could not be made before.

        If another process does so already, that is left to it.
        """
        if not (self._embedder and self._vectors):
            return
        self.lacks_vectors = False
        with self._reading() as sql:
            if meaning.is_complete(sql, self._embedder, self._vectors) and not after_loss:
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
                self._embed([document(one) for one in records.values()])
                last = max(records)
            with self._whole(), self._database.writing() as sql:
                self._note_model(sql)

    def _note_model(self, sql: sqlite3.Connection) -> None:
        """Remembers whose vectors all units have; None where some have none."""
        model = self._embedder.model if self._embedder and self._embeds else None
        sql.execute("UPDATE meta SET value = ? WHERE name = 'model'", (model,))

    def _remove_unused_vectors(self, vectors: Vectors) -> None:
        with self._reading() as sql, suppress(*FAILURES):
            used = sql.execute("SELECT vector FROM units UNION SELECT vector FROM memories")
            vectors.prune({name for (name,) in used})


FOLDER = "past"
_KEPT = 8
"""States whose indexes are kept: those that were asked for last."""


def open_past(folder: Path, state: str, embedder: Embedder | None, owner: str) -> Index:
    """Returns the index of a past state, named by what it holds, within a project's index folder.

    A text that any state had keeps its vector, so only what is new to all of them is embedded.
    """
    place = folder / FOLDER / state
    try:
        data = database.open_newest(place, owner)
    except StorageFailed:
        return Index.in_memory(embedder)
    with suppress(OSError):
        os.utime(place)
        _forget_old(folder / FOLDER)
    return Index(data, folder, embedder, owner)


def _forget_old(folder: Path) -> None:
    states = sorted((one for one in folder.iterdir() if one.is_dir()), key=_used, reverse=True)
    for state in states[_KEPT:]:
        for file in state.iterdir():
            file.unlink()
        state.rmdir()


def _used(folder: Path) -> float:
    return folder.stat().st_mtime
