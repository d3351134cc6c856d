"""The vectors of texts: SQLite has each of them, and a usearch file the same ones for searching.

The rows in SQLite are the truth. A row has the name of a text, which is its hash, and a key that is
never used again. The usearch file is made from the rows and can be deleted at any time. It has the
vectors up to the key `last` of its record; later vectors are added to an index in memory; keys that
SQLite no longer has are skipped. So a write changes SQLite alone, and imports neither usearch nor
numpy.

usearch doesn't check what it reads: a damaged file can end the process. So only a file is mapped
that this user's mind wrote, by its stamp or else by its keyed digest, and each file has a new name.
Every search compares all vectors, which takes 3 ms for 100,000 of them. From a million vectors (30
ms) on, a graph that skips most of them would be worth its cost.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from _thread import RLock
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from mimo.data import Schema, disk
from mimo.data.cache import Cache
from mimo.data.sqlite import Connection
from mimo.errors import Misread, StorageFailed
from mimo.frozen import NamedTuple
from mimo.index.cosine import BLOCK, LENGTH, clipped, cosines, first, numpy_pays
from mimo.index.embedding import ENCODED_LENGTH
from mimo.index.schema import marks, portions
from mimo.text.clean import compiled

if TYPE_CHECKING:
    from usearch.index import Index

Kind = Literal["static", "encoder"]
"""The vectors of the static model, or those of the encoder."""

_FRESH = 1_000
"""The number of vectors after those of the file, or of removed ones, that it may always have."""

_EXTRA = 8
"""The number of vectors fetched beyond the requested ones: of equal ones, names decide."""

_USEARCH_PAYS = 30_000
"""The number of vectors that are read and compared in about the time of importing usearch."""

_MANY = 10_000
"""The number of names from which it is faster to read all names than to look up each."""

_FULL = "length(vector) > 0"

_WAIT_SECONDS = 0.2
"""The time for which a search waits for a writing process when it records a file."""

_ORPHAN_SECONDS = 3_600
"""The age of a usearch file that no record names, from which no process is still writing it."""

_TABLE = """
CREATE TABLE {} (
    key INTEGER PRIMARY KEY AUTOINCREMENT, name BLOB NOT NULL UNIQUE, vector BLOB NOT NULL
);
"""
SCHEMA = Schema(
    "vectors",
    2,
    f"""
{_TABLE.format("static")} {_TABLE.format("encoder")}
CREATE TABLE kinds (
    kind TEXT PRIMARY KEY, model TEXT NOT NULL, epoch TEXT NOT NULL, width INTEGER NOT NULL,
    full INTEGER NOT NULL, empty INTEGER NOT NULL, newest INTEGER NOT NULL,
    file TEXT NOT NULL, last INTEGER NOT NULL, held INTEGER NOT NULL, stamp TEXT NOT NULL,
    digest BLOB NOT NULL, complete TEXT NOT NULL
) WITHOUT ROWID;
""",
)
"""It hardly ever changes: making all vectors again takes minutes."""

_FILE = r"units-[0-9a-f]{16}\.usearch"
"""The names of usearch files."""


class State(NamedTuple):
    """The counts of the vectors of one kind, and the record of their usearch file."""

    model: str
    epoch: str = ""
    """Another value after each removal of vectors; empty before the first one is stored."""
    width: int = 0
    """The number of bytes of a vector."""
    full: int = 0
    """The number of vectors that are not empty."""
    empty: int = 0
    newest: int = 0
    """The largest key."""
    file: str = ""
    """The name of the usearch file; empty if there is no file."""
    last: int = 0
    """The largest key at the time when the file was made."""
    held: int = 0
    """The number of vectors in the file."""
    stamp: str = ""
    digest: bytes = b""
    complete: str = ""
    """The state of an index in which no text lacked a vector."""

    @property
    def is_far(self) -> bool:
        """True if the file lacks too many vectors, or has too many that were removed."""
        fresh, limit = self.newest - self.last, max(_FRESH, self.held // 8)
        return fresh > limit or self.held + fresh - self.full > limit


class _Fresh(NamedTuple):
    """The vectors after those of the file, which are compared in memory."""

    epoch: str = ""
    after: int = 0
    newest: int = 0
    vectors: Index | None = None


class Vectors:
    """The vectors of one model, which processes and threads can use at the same time."""

    def __init__(
        self,
        folder: Path | None,
        model: str,
        kind: Kind = "static",
        *,
        owner: str = "",
        cache: Cache | None = None,
    ) -> None:
        """Takes the kind and the folder, None for memory. The first use opens the file.

        `cache` is the file if another kind uses it already. Vectors of another model are not read,
        and removed when the first ones are stored. `owner` is the user's secret: files of another
        owner, which may have come with a clone, are not opened.
        """
        self.folder, self.model = folder, model
        self.length = ENCODED_LENGTH if kind == "encoder" else LENGTH
        self._kind: Kind = kind
        self._owner = disk.sha256(owner.encode())
        self._turn = RLock()
        self._searches = 0
        self._file: tuple[str, Index] | None = None
        """The file that is mapped, by its name and stamp."""
        self._fresh = _Fresh()
        self._next_save = 0
        """The key from which a file is tried again that the disk, or a writing process, refused."""
        self.cache = cache or Cache(folder, SCHEMA, owner=owner)
        self._is_used = False
        """True once this process has stored vectors."""

    def close(self) -> None:
        """Closes the files; a thread that still uses them opens them again."""
        with self._turn:
            self._file, self._fresh = None, _Fresh()
            self.cache.close()

    @property
    def identity(self) -> str:
        """Another value after the file was damaged or removed, and with it all vectors."""
        try:
            return self.cache.identity
        except StorageFailed:
            return ""

    # By name: without usearch, and without numpy for a few.

    def state(self) -> State:
        """Returns the counts, which change whenever a vector is added or removed."""
        return self.cache.attempt(self.cache.reading, self._state)

    def count(self) -> int:
        """Returns the number of vectors, with empty ones."""
        state = self.state()
        return state.full + state.empty

    def known(self, names: Iterable[bytes]) -> set[bytes]:
        """Returns those of `names` (hashes of 12 bytes) that have a vector, possibly empty."""
        hashes = set(names)
        if len(hashes) > _MANY:
            return hashes.intersection(name for (name,) in self._select("name", "1"))
        named = self._named("name", "name", hashes)
        return {name for (name,) in named}

    def get(self, names: Iterable[bytes]) -> dict[bytes, bytes]:
        """Returns the vectors of `names`, without names that have none."""
        return dict(self._named("name, vector", "name", names))

    def cosines(self, query: bytes, names: Iterable[bytes]) -> dict[bytes, float]:
        """Returns the cosine of `query` with each of `names` that has a vector, not an empty one.

        This is one read and one product of arrays for all names.
        """
        full = {name: vector for name, vector in self.get(names).items() if vector}
        return dict(zip(full, cosines(query, [*full.values()], self.length), strict=True))

    # Writing: SQLite alone.

    def put(self, vectors: Mapping[bytes, bytes], wait: float = disk.WAIT_SECONDS) -> int:
        """Stores vectors by name, and returns the number of all; a stored one is not replaced.

        Raises `StorageFailed` if another process is writing for more than `wait` seconds, and
        `ValueError` for vectors of several sizes.
        """
        widths = {len(vector) for vector in vectors.values() if vector}
        begin = partial(self.cache.writing, wait)
        state = self.cache.attempt(begin, self._put, vectors, widths)
        if widths - {state.width}:
            raise ValueError(f"vectors of {', '.join(map(str, sorted(widths)))} bytes")
        return state.full + state.empty

    def note_complete(self, of: str) -> None:
        """Notes the state of an index in which no text lacks a vector, unless a process writes."""
        with suppress(StorageFailed), self.cache.writing(0.0) as sql:
            if (state := self._state(sql)).full:
                _record(sql, self._kind, state._replace(complete=of))

    def prune(self, keep: Collection[bytes]) -> None:
        """Removes the vectors of all names but `keep`, those of every kind."""
        self.cache.attempt(self.cache.writing, _prune, frozenset(keep))

    def clear(self) -> None:
        """Removes all vectors of this kind, which nothing needs any more, from the disk."""
        file, kinds = self.state().file, (self._kind,)
        if self.count():
            self.cache.attempt(self.cache.writing, _prune, (), keeps_files=False, kinds=kinds)
            if self.folder and file:
                (self.folder / file).unlink(missing_ok=True)
            with suppress(StorageFailed):  # A process that reads the file keeps it so large.
                self.cache.compact(0.0)

    def _put(
        self, sql: Connection, vectors: Mapping[bytes, bytes], widths: Collection[int]
    ) -> State:
        """Stores vectors of a single width, and returns the new state; else the present one."""
        if not self._is_used:
            self._replace_model(sql)
        self._is_used = True
        state, width = _stored(sql, self._kind) or State(self.model), max(widths, default=0)
        if state.model != self.model:  # Another process uses another model by now.
            return State(self.model, width=width)
        if len({*widths, state.width} - {0}) > 1:
            return state
        insert = f"INSERT OR IGNORE INTO {self._kind} (name, vector) VALUES (?, ?)"
        sql.executemany(insert, sorted(vectors.items()))
        new = state._replace(epoch=state.epoch or _random(), width=state.width or width)
        new = _counted(sql, self._kind, new, after=state.newest)
        _record(sql, self._kind, new)
        return new

    def _replace_model(self, sql: Connection) -> None:
        stored = _stored(sql, self._kind)
        if stored is None or stored.model != self.model:
            sql.execute(f"DELETE FROM {self._kind}")
            _record(sql, self._kind, State(self.model))

    # SQLite.

    def _state(self, sql: Connection) -> State:
        """Returns the state; that of no vectors if they are now those of another model."""
        stored = _stored(sql, self._kind)
        return stored if stored and stored.model == self.model else State(self.model)

    def _named(
        self, columns: str, by: str, values: Iterable[bytes] | Iterable[int]
    ) -> list[tuple[Any, ...]]:
        """Returns columns of the vectors with some names or keys."""
        rows: list[tuple[Any, ...]] = []
        for some in portions(list(values)):
            rows += self._select(columns, f"{by} IN ({marks(some)})", some)
        return rows

    def _select(
        self, columns: str, condition: str, values: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        """Returns columns of the vectors that pass a condition; none of another model's."""
        query = f"SELECT {columns} FROM {self._kind} WHERE {condition}"

        def selected(sql: Connection) -> list[tuple[Any, ...]]:
            return [*chain.from_iterable(self._blocks(sql, query, values))]

        return self.cache.attempt(self.cache.reading, selected)

    def _blocks(
        self, sql: Connection, query: str, values: Sequence[object] = ()
    ) -> Iterator[list[tuple[Any, ...]]]:
        state = _stored(sql, self._kind)
        if state is None or state.model != self.model:
            return
        selected = sql.execute(query, values)
        while rows := selected.fetchmany(BLOCK):
            if "vector FROM" in query:
                vectors = [row[-1] for row in rows]
                if {*map(type, vectors)} - {bytes} or {*map(len, vectors)} - {0, state.width}:
                    raise Misread("a vector of another size")
            yield rows

    def _scan(self, sql: Connection, query: bytes) -> dict[bytes, float]:
        """Returns the cosine of a query with each vector; only a block of them is in memory."""
        near: dict[bytes, float] = {}
        for rows in self._blocks(sql, f"SELECT name, vector FROM {self._kind} WHERE {_FULL}"):
            names, vectors = zip(*rows, strict=True)
            near.update(zip(names, cosines(query, vectors, self.length), strict=True))
        return near

    # Searching.

    def nearest(self, query: bytes, k: int) -> list[tuple[bytes, float]]:
        """Returns the names and cosines of the `k` vectors nearest to `query`, nearest first.

        Equally near ones are in the order of their names.
        """
        with self._turn:
            self._searches += 1
            state = self.state()
            if not state.full or len(query) != state.width:
                return []
            is_first_search = self._searches == 1 and "usearch.index" not in sys.modules
            if (is_first_search and state.full < _USEARCH_PAYS) or not _has_usearch():
                if numpy_pays(state.full):
                    import numpy  # noqa: F401 - for all blocks, of which each has only a few rows
                return first(self.cache.attempt(self.cache.reading, self._scan, query), k)
            indexes = self._indexes(state)
            total, depth = sum(map(len, indexes)), k + _EXTRA
            while True:
                products = dict(_nearest(indexes, query, depth))
                names = dict(self._named("key, name", "key", products))
                if len(names) >= k or depth >= total:  # Keys without a name were removed.
                    break
                depth *= 4
            near = {name: clipped(products[key], self.length) for key, name in names.items()}
            return first(near, k)

    def _indexes(self, state: State) -> list[Index]:
        """Returns the indexes that have all vectors: that of the file, and one of later ones."""
        file = self._mapped(state)
        fresh = self._grown(state, state.last if file else 0)
        is_due = state.is_far or (state.file and not file)
        if is_due and self.folder and state.newest >= self._next_save:
            source = fresh if file is None else self._grown(state, 0)
            try:
                self._save(self.folder, state, source)
            except (OSError, StorageFailed):  # All vectors are compared in memory.
                self._next_save = state.newest + _FRESH
            else:
                state = self.state()
                if saved := self._mapped(state):
                    file, fresh = saved, self._grown(state, state.last)
                else:
                    file, fresh = None, source
        self._fresh = fresh
        return [index for index in (file, fresh.vectors) if index is not None]

    def _grown(self, state: State, after: int) -> _Fresh:
        """Returns the index in memory of the vectors after a key, with those that it lacked."""
        fresh = self._fresh
        if (fresh.epoch, fresh.after) != (state.epoch, after):
            fresh = _Fresh(state.epoch, after, after)
        if fresh.newest >= state.newest:
            return fresh
        rows = self._select("key, vector", f"key > ? AND {_FULL}", (fresh.newest,))
        index = fresh.vectors
        self._fresh = _Fresh()  # If the addition fails, the index may have some of them.
        if rows:
            import numpy as np

            index = self._index(state.width) if index is None else index
            keys = np.fromiter((key for key, _ in rows), np.uint64, len(rows))
            index.add(keys, _array([vector for _, vector in rows]), threads=1)
        newest = max([state.newest, *(key for key, _ in rows)])
        return fresh._replace(newest=newest, vectors=index)

    def _index(self, width: int) -> Index:
        from usearch.index import Index

        # The smallest graph: it is not used, since every search compares all vectors.
        return Index(ndim=width, metric="ip", dtype="i8", connectivity=2, expansion_add=1)

    # The usearch file.

    def _mapped(self, state: State) -> Index | None:
        """Returns the index of the recorded file; None if that isn't ours, whole and readable."""
        if not (self.folder and state.file):
            self._file = None
            return None
        path = self.folder / state.file
        try:
            stamp = _stamp(path)  # Each time: reading a map beyond the end of its file is fatal.
            if self._file and self._file[0] == f"{state.file} {stamp}":
                return self._file[1]
            self._file = None
            if stamp != state.stamp and self._digest(path.read_bytes()) != state.digest:
                return None
            index = self._index(state.width)
            index.view(path)
            is_recorded = (len(index), index.ndim) == (state.held, state.width)
            if not is_recorded or stamp != _stamp(path):
                return None
        except (OSError, RuntimeError, ValueError):
            return None
        self._file = (f"{state.file} {stamp}", index)
        if stamp != state.stamp:  # It was copied, or the folder was moved.
            with suppress(StorageFailed), self.cache.writing(0.0) as sql:
                if (stored := self._state(sql)).file == state.file:
                    _record(sql, self._kind, stored._replace(stamp=stamp))
        return index

    def _save(self, folder: Path, state: State, source: _Fresh) -> None:
        """Writes a file of all vectors, and removes the one before, unless a process was faster."""
        data, new = memoryview(b""), state._replace(file="", held=0, stamp="", digest=b"")
        if source.vectors is not None:  # usearch's own writing does not notice every full disk.
            data = memoryview(source.vectors.save() or b"")
            new = new._replace(file=f"units-{_random()}.usearch", held=len(source.vectors))
        path = folder / new.file
        try:
            if new.file:
                _write_file(path, data)
                new = new._replace(stamp=_stamp(path), digest=self._digest(data))
            begin = partial(self.cache.writing, _WAIT_SECONDS)
            is_recorded = self.cache.attempt(begin, self._record_file, state, new, source.newest)
        except BaseException:
            if new.file:
                path.unlink(missing_ok=True)
            raise
        superfluous = state.file if is_recorded else new.file
        if superfluous:
            (folder / superfluous).unlink(missing_ok=True)  # A process that maps it keeps it.
        _sweep(folder, self.cache, _ORPHAN_SECONDS)

    def _record_file(self, sql: Connection, previous: State, new: State, newest: int) -> bool:
        """Records a file, and returns True unless another process has changed the record."""
        state = self._state(sql)
        if (state.file, state.epoch) != (previous.file, previous.epoch):
            return False
        state = state._replace(file=new.file, last=newest, held=new.held)
        _record(sql, self._kind, state._replace(stamp=new.stamp, digest=new.digest))
        return True

    def _digest(self, data: bytes | memoryview) -> bytes:
        from hashlib import blake2b

        return blake2b(data, digest_size=32, key=self._owner).digest()


def recorded(cache: Cache) -> Vectors:
    """Returns the encoder's vectors of the stored model, which is not loaded."""
    state = cache.attempt(cache.reading, _stored, "encoder") if cache.exists else None
    return Vectors(None, state.model if state else "", "encoder", cache=cache if state else None)


def purge_vectors(folder: Path, keep: Collection[bytes], owner: str = "") -> None:
    """Removes the vectors of all names but `keep` from the disk, those of every kind and model.

    The usearch files are removed, too; the next search makes them again. Raises `StorageFailed`.
    """
    with closing(Cache(folder, SCHEMA, owner=owner)) as cache:
        cache.attempt(cache.writing, _prune, frozenset(keep), keeps_files=False)
        _sweep(folder, cache, after_seconds=0)
        cache.compact()


def _stored(sql: Connection, kind: Kind) -> State | None:
    """Returns the state of a kind, None if nothing of it was ever stored."""
    query = f"SELECT {', '.join(State._fields)} FROM kinds WHERE kind = ?"
    row = sql.execute(query, (kind,)).fetchone()
    if row and [*map(type, row)] != [*map(type, State(""))]:
        raise Misread("counts of other types")
    state = State(*row) if row else None
    if state and state.file and not compiled(_FILE).fullmatch(state.file):
        raise Misread("another name of a file")  # It will be removed.
    return state


def _record(sql: Connection, kind: Kind, state: State) -> None:
    columns, row = ", ".join(State._fields), (kind, *state)
    sql.execute(f"INSERT OR REPLACE INTO kinds (kind, {columns}) VALUES ({marks(row)})", row)


def _counted(sql: Connection, kind: Kind, state: State, after: int) -> State:
    """Returns a state with the counts of the vectors after a key added."""
    counts = f"coalesce(sum({_FULL}), 0), count(*), coalesce(max(key), 0)"
    full, total, newest = sql.execute(
        f"SELECT {counts} FROM {kind} WHERE key > ?", (after,)
    ).fetchone()
    newest = max(state.newest, newest)
    return state._replace(full=state.full + full, empty=state.empty + total - full, newest=newest)


def _prune(
    sql: Connection,
    keep: Collection[bytes],
    keeps_files: bool = True,
    kinds: Sequence[Kind] = get_args(Kind),
) -> None:
    """Removes the vectors of all names but `keep`, those of every kind."""
    for kind in kinds:
        state = _stored(sql, kind)
        if state is None:
            continue
        names = sql.execute(f"SELECT name FROM {kind}").fetchall()
        unused = [row for row in names if row[0] not in keep]
        if unused:
            sql.executemany(f"DELETE FROM {kind} WHERE name = ?", unused)
            state = state._replace(epoch=_random(), full=0, empty=0, complete="")
            state = _counted(sql, kind, state, after=0)
        if not keeps_files:
            state = state._replace(file="", last=0, held=0, stamp="", digest=b"")
        _record(sql, kind, state)


def _sweep(folder: Path, cache: Cache, after_seconds: float) -> None:
    """Removes the usearch files of processes that were killed before they recorded them."""
    names = cache.attempt(
        cache.reading, lambda sql: sql.execute("SELECT file FROM kinds").fetchall()
    )
    recorded = {name for (name,) in names}
    oldest = time.time() - after_seconds
    for path in folder.glob("units-*.usearch"):
        stamp = None if path.name in recorded else disk.stamp(path)
        if stamp and stamp.mtime_ns / 1e9 <= oldest:
            disk.discard(path)


def _has_usearch() -> bool:
    """Returns whether usearch can be imported; some interpreters and processors have no wheel."""
    try:
        import usearch.index  # noqa: F401
    except ImportError:
        return False
    return True


def _nearest(indexes: Iterable[Index], query: bytes, k: int) -> Iterator[tuple[int, float]]:
    """Yields the keys of the `k` vectors nearest to a query, with the products of the vectors."""
    near: list[tuple[float, int]] = []
    for index in indexes:
        matches = index.search(_array([query])[0], min(k, len(index)), exact=True, threads=1)
        near += zip(matches.distances.tolist(), matches.keys.tolist(), strict=True)
    yield from ((key, 1.0 - distance) for distance, key in sorted(near)[:k])


def _array(vectors: Sequence[bytes]) -> Any:
    """Returns vectors as the rows of an array."""
    import numpy as np

    return np.frombuffer(b"".join(vectors), np.int8).reshape(len(vectors), -1)


def _random() -> str:
    return os.urandom(8).hex()


def _stamp(path: Path) -> str:
    """Returns the size, times and inode of a file. Raises `OSError` if it isn't a regular file."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"`{path}` is not a regular file")
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _write_file(path: Path, data: memoryview) -> None:
    """Writes a new file. It is flushed, so that its stamp is that of its content after a crash."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | disk.CLOSE_ON_EXEC
    descriptor = os.open(path, flags, disk.mode_for(path, disk.FILE_MODE))
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Sources(NamedTuple):
    """The parts of an index that are pushed to one that several projects share."""

    sql: Connection
    """In a transaction; the function `approved` checks the user's trust."""
    vectors: Sequence[tuple[str, Vectors]]
    """The static vectors and, if some are made, the encoder's, each with the model."""
    encoder: str | None
    """The encoder's model."""
