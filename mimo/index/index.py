"""The index of one project: what the files say, ready to be searched.

It holds nothing that the files don't: whoever opens it compares `stamps` with the files and hands
what differs to `apply`. It may be used by several threads and processes at once; readers never
wait for a writer.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.domain.memory import Memory, Problem, Record
from mimo.domain.query import Filter, Sort
from mimo.domain.stamp import Stamp
from mimo.index import catalog, meaning, opening, rows, schema, topics, words
from mimo.index.change import Change
from mimo.index.database import Database, IndexDamaged
from mimo.index.embedding import FAILURES, Embedder
from mimo.index.figures import IndexStats
from mimo.index.found import Found, Hit, Request
from mimo.index.vectors import Vectors

if TYPE_CHECKING:
    import sqlite3

    from mimo.domain.graph import Graph
    from mimo.index.documents import Document
    from mimo.index.search import Search
    from mimo.index.walks import Walks

__all__ = ["Change", "Found", "Hit", "Index", "IndexDamaged", "IndexStats"]


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
        self._identity = opening.identity(data)
        self._search: Search | None = None
        self._walks: Walks | None = None
        self._embeds = True
        self._cleared = False

    @classmethod
    def open(cls, folder: Path, embedder: Embedder | None, owner: str = "") -> "Index":
        """Returns the index kept in `folder`; an empty one where none is usable.

        One that another owner made is not: it may have come with a clone. Without an embedder it
        finds by words only. Raises `StorageFailed` where the folder can't be written.
        """
        return cls(opening.open_newest(folder, owner), folder, embedder, owner)

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
        if opening.identity(self._database) != self._identity and self._database.path:
            self._use(opening.open_newest(self._database.path.parent, self._owner))
        try:
            self._embed_what_is_missing()
            with self._reading() as sql:
                return catalog.stamps(sql)
        except IndexDamaged:
            return {}

    def clear(self) -> None:
        """Forgets everything, in the same transaction as the next `apply`."""
        self._cleared = True

    def apply(self, changes: Iterable[Change], *, now_ns: int) -> None:
        """Takes in what a look at the files found at `now_ns`, in one transaction.

        `changes` is consumed as it is written. Raises `IndexNotReady` where another process is
        making the first index, `StorageFailed` where it can't be written; nothing has changed then.
        """
        from mimo.index.intake import prepared
        from mimo.index.writing import Writer

        self._embeds = True
        batches = prepared(changes, self._embed)
        first = next(batches, ([], []))
        rebuilt, self._cleared = self._cleared, False
        try:
            with self._whole(), self._database.writing() as sql:
                if rebuilt:
                    schema.clear(sql)
                was_empty = words.totals(sql).memories == 0
                writer = Writer(sql, now_ns)
                for batch, documents in chain([first], batches):
                    writer.write(batch, documents)
                writer.finish()
                if was_empty or not self._embeds:
                    self._note_model(sql)
        except BaseException:
            self._cleared = rebuilt
            raise
        if rebuilt and self._vectors:
            self._remove_unused_vectors(self._vectors)

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
        with self._reading() as sql:
            return self._search(sql, request)

    def get(self, id: str) -> Record | None:
        """Returns the memory of that id."""
        with self._reading() as sql:
            return catalog.get(sql, id)

    def named(self, target: str) -> Record | None:
        """Returns the memory that a link leads to: by its id, or else by its title."""
        with self._reading() as sql:
            return catalog.named(sql, target)

    def matching(self, abbreviation: str) -> tuple[str, ...]:
        """Returns the ids that begin or end so, sorted; a whole id stands for itself alone."""
        with self._reading() as sql:
            return catalog.matching(sql, abbreviation)

    def parts(self, parent: str) -> tuple[Record, ...]:
        """Returns the parts of a longer text, in their order."""
        with self._reading() as sql:
            return catalog.parts(sql, parent)

    def parents(self, abbreviation: str) -> tuple[str, ...]:
        """Returns the ids of longer texts that begin or end so; a whole id stands for itself."""
        with self._reading() as sql:
            return catalog.parents(sql, abbreviation)

    def nearest_ids(self, wrong: str, n: int = 3) -> tuple[str, ...]:
        """Returns up to `n` ids that look most like `wrong`, the nearest first."""
        with self._reading() as sql:
            return catalog.nearest_ids(sql, wrong, n)

    def records(
        self, filter: Filter, *, sort: Sort = Sort.RECENT, limit: int = -1, offset: int = 0
    ) -> tuple[Record, ...]:
        """Returns one page of the memories that pass the filter; a negative limit means all."""
        with self._reading() as sql:
            return catalog.records(sql, filter, sort, limit, offset)

    def count(self, filter: Filter) -> int:
        """Returns how many memories pass the filter."""
        with self._reading() as sql:
            return catalog.count(sql, filter)

    def superseded_by(self, ids: Sequence[str]) -> dict[str, str]:
        """Returns, for those ids that something supersedes, the newest that does."""
        with self._reading() as sql:
            return {old: new[0] for old, new in catalog.newer_versions(sql, ids).items()}

    def successors(self, id: str) -> tuple[str, ...]:
        """Returns the ids of the memories that supersede this one, newest first."""
        with self._reading() as sql:
            return tuple(catalog.newer_versions(sql, (id,)).get(id, ()))

    def current(self, topic: str) -> tuple[Record, ...]:
        """Returns the decisions in force on a topic, newest first."""
        with self._reading() as sql:
            return topics.current(sql, topic)

    def competing(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Returns, for those decisions that compete with others of their topic, the others' ids."""
        with self._reading() as sql:
            return topics.competing(sql, ids)

    def saying(self, memory: Memory) -> tuple[Record, ...]:
        """Returns the memories in force that say the same as a new one, oldest first."""
        from mimo.index import doubles

        with self._reading() as sql:
            return doubles.same(sql, memory)

    def much_like(self, memory: Memory) -> Record | None:
        """Returns the other memory in force that is most like this one, if any is much like it."""
        from mimo.index import doubles

        draft = doubles.draft_of(memory)
        self._embed([draft])
        with self._reading() as sql:
            return doubles.alike(sql, draft, self._vectors)

    def nearest_topics(self, wrong: str, n: int = 3) -> tuple[str, ...]:
        """Returns up to `n` topics that look most like `wrong`."""
        with self._reading() as sql:
            return topics.nearest_topics(sql, wrong, n)

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
        from mimo.index.walks import Walks

        self._walks = walks = self._walks or Walks()
        with self._reading() as sql:
            return walks.graph(sql, start, depth=depth, types=types, most=most, now=now)

    def newest_linked(self, types: Collection[str], most: int) -> "Graph":
        """Returns up to `most` memories that links connect, and the links between them."""
        from mimo.index import links

        with self._reading() as sql:
            return links.newest(sql, types, most)

    def dangling(self) -> tuple[tuple[str, str], ...]:
        """Returns (id, target) of each link that leads to nothing here."""
        with self._reading() as sql:
            return catalog.dangling(sql)

    def problems(self) -> tuple[Problem, ...]:
        """Returns what keeps files, or memories in them, from being found."""
        with self._reading() as sql:
            return catalog.problems(sql)

    def changed_at(self) -> datetime | None:
        """Returns when the index last changed, UTC; None before the first time."""
        with self._reading() as sql:
            (changed_ns,) = sql.execute("SELECT changed_ns FROM totals").fetchone()
        if changed_ns is None:
            return None
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=changed_ns // 1000)

    def stats(self) -> IndexStats:
        """Returns how much it holds."""
        with self._reading() as sql:
            return IndexStats.of(sql, self._database, self._vectors)

    @contextmanager
    def _reading(self) -> Iterator["sqlite3.Connection"]:
        if self._cleared:
            self.apply((), now_ns=0)
        with self._whole(), self._database.reading() as sql:
            yield sql

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Puts an empty database in the place of one that turns out to be damaged."""
        try:
            yield
        except IndexDamaged:
            if self._database.path:
                self._use(opening.make_next(self._database.path.parent, self._owner))
            raise

    def _use(self, data: Database) -> None:
        self._database.close()
        self._database = data
        self._walks = None
        self._identity = opening.identity(data)

    def _embed(self, documents: "Sequence[Document]") -> None:
        """Makes the vectors of documents; words find them where that fails, till it works again."""
        if not (self._embedder and self._vectors):
            return
        from mimo.index.intake import embed

        try:
            embed(documents, self._embedder, self._vectors)
        except FAILURES:
            self._embeds = False

    def _embed_what_is_missing(self) -> None:
        """Makes all vectors where they are lost, of another model, or could not be made before."""
        if not (self._embedder and self._vectors):
            return
        with self._reading() as sql:
            if meaning.is_complete(sql, self._embedder, self._vectors):
                return
        from mimo.index.documents import document
        from mimo.index.intake import BATCH

        with suppress(*FAILURES):
            self._embedder.encode("a")
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

    def _note_model(self, sql: "sqlite3.Connection") -> None:
        """Remembers whose vectors all units have; None where some have none."""
        model = self._embedder.model if self._embedder and self._embeds else None
        sql.execute("UPDATE meta SET value = ? WHERE name = 'model'", (model,))

    def _remove_unused_vectors(self, vectors: Vectors) -> None:
        with self._reading() as sql, suppress(*FAILURES):
            used = sql.execute("SELECT vector FROM units UNION SELECT vector FROM memories")
            vectors.prune({name for (name,) in used})
