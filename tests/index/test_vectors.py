"""Vectors: SQLite has each, and what a usearch file has or lacks changes no answer."""

import errno
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from inspect import getsource
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest
import usearch.index  # noqa: F401  loaded, so that the first search uses it
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mimo.data import disk
from mimo.data.sqlite import Connection
from mimo.errors import StorageFailed
from mimo.index import vectors as module
from mimo.index.cosine import cosines, first
from mimo.index.index import Index
from mimo.index.vectors import SCHEMA, Vectors, purge_vectors
from tests.index.conftest import HashEmbedder, Make

DIMS = 32
FRESH = 40
"""The number of vectors that need no file, in these tests."""


def name(number: int) -> bytes:
    return number.to_bytes(8, "big") * 2


def vector(number: int) -> bytes:
    """A vector of length about 127 in a direction of its own."""
    gauss = random.Random(number).gauss
    numbers = [gauss(0, 1) for _ in range(DIMS)]
    length = sum(value * value for value in numbers) ** 0.5
    return bytes(round(127 * value / length) & 0xFF for value in numbers)


def some(start: int, end: int) -> dict[bytes, bytes]:
    return {name(number): vector(number) for number in range(start, end)}


def every(vectors: Vectors) -> dict[bytes, bytes]:
    return vectors.get(map(name, range(10_000)))


def nearest_of(stored: dict[bytes, bytes], query: bytes, k: int) -> list[tuple[bytes, float]]:
    full = {name: vector for name, vector in stored.items() if vector}
    return first(dict(zip(full, cosines(query, [*full.values()]), strict=True)), k)


def assert_right(vectors: Vectors, stored: dict[bytes, bytes]) -> None:
    for k, number in ((1, 7), (5, -1), (30, -2)):
        assert vectors.nearest(vector(number), k) == nearest_of(stored, vector(number), k)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("units-*.usearch"))


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FRESH", FRESH)


Opened = Callable[..., Vectors]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    made: list[Vectors] = []

    def open(folder: Path | None = tmp_path, model: str = "m", owner: str = "me") -> Vectors:
        made.append(Vectors(folder, model, owner=owner))
        return made[-1]

    yield open
    for vectors in made:
        vectors.close()


# By name.


def test_a_vector_is_stored_once_and_outlives_the_process(opened: Opened, tmp_path: Path) -> None:
    opened(tmp_path / "new" / "folder").put(some(0, 3) | {name(9): b""})
    again = opened(tmp_path / "new" / "folder")
    again.put({name(1): vector(5)})

    assert again.get(map(name, range(10))) == some(0, 3) | {name(9): b""}
    assert again.known(map(name, range(10))) == {*some(0, 3), name(9)}
    assert again.cosines(vector(1), [name(1), name(9), name(4)]) == {name(1): pytest.approx(1, 0.1)}
    assert again.count() == 4


def test_texts_without_a_vector_are_known(opened: Opened) -> None:
    opened().put({name(1): b""})

    assert opened().known([name(1), name(2)]) == {name(1)}
    assert opened().get([name(1)]) == {name(1): b""}
    assert opened().nearest(vector(1), 3) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE static SET vector = zeroblob(7) WHERE key = 5",
        "UPDATE static SET vector = 7 WHERE key = 5",
        "UPDATE kinds SET file = '../precious'",
        "UPDATE kinds SET held = 'many', newest = 'none'",
    ],
)
def test_rows_that_mind_never_writes_are_damage(
    opened: Opened, tmp_path: Path, damage: str
) -> None:
    opened().put(some(0, 100))
    with closing(sqlite3.connect(SCHEMA.path(tmp_path, "me"))) as sql, sql:
        sql.execute(damage)
    vectors = opened()
    assert vectors.nearest(vector(5), 3) == []
    vectors.put(some(0, 100))
    assert_right(vectors, some(0, 100))


def test_vectors_of_two_sizes_are_refused(opened: Opened) -> None:
    vectors = opened()
    vectors.put(some(0, 2))

    with pytest.raises(ValueError, match="31 bytes"):
        vectors.put({name(5): bytes(DIMS - 1)})
    assert vectors.nearest(bytes(DIMS - 1), 3) == []


def test_other_models_and_owners_see_nothing_of_each_other(opened: Opened, tmp_path: Path) -> None:
    ours = opened()
    ours.put(some(0, 100))
    assert_right(ours, some(0, 100))
    other = opened(model="n")
    ours.put(some(100, 110))  # By a process that still has the model from before.
    other.put(some(0, 2))

    assert ours.nearest(vector(1), 3) == []
    assert_right(other, some(0, 2))
    assert opened(owner="you", model="n").count() == 0


def test_the_kinds_are_apart_in_one_file(opened: Opened, tmp_path: Path) -> None:
    static = opened()
    static.put(some(0, 100))
    with closing(Vectors(tmp_path, "e", "encoder", owner="me")) as encoder:
        encoder.put({name(3): b"\x10" * 48})
        assert encoder.get([name(2), name(3)]) == {name(3): b"\x10" * 48}
        static.prune([name(2)])
        assert encoder.count() == 0
    assert every(static) == some(2, 3)
    assert [path.name for path in tmp_path.glob("*.db")] == [SCHEMA.path(tmp_path, "me").name]


def test_files_of_earlier_versions_are_removed_and_of_later_ones_left(
    opened: Opened, tmp_path: Path
) -> None:
    later = ("vectors-v9-0123456789abcdef.db", "index.db", "notes.rows")
    for file in ("vectors-v1.db", *later):
        (tmp_path / file).touch()
    opened().put({})

    names = {path.name for path in tmp_path.iterdir()}
    assert "vectors-v1.db" not in names
    assert {*later} <= names


# Searching.


@pytest.mark.parametrize("folder", ["disk", None])
def test_search_equals_the_comparison_of_all(
    opened: Opened, tmp_path: Path, folder: str | None
) -> None:
    vectors = opened(tmp_path / folder if folder else None)
    assert vectors.nearest(vector(0), 3) == []
    stored = some(0, 30) | {name(200): b""}
    vectors.put(stored)
    assert_right(vectors, stored)
    for step in range(3):
        added = some(1000 * step, 1000 * step + 70)
        vectors.put(added)
        stored |= added
        assert_right(vectors, stored)
        stored = {name: vector for name, vector in stored.items() if hash(name) % 5}
        vectors.prune(stored)
        assert_right(vectors, stored)
    assert len(files(tmp_path / "disk")) == (1 if folder else 0)


def test_a_file_is_made_when_many_vectors_are_new_or_removed(
    opened: Opened, tmp_path: Path
) -> None:
    vectors, other = opened(), opened()
    vectors.put(some(0, FRESH))
    assert_right(vectors, some(0, FRESH))
    assert files(tmp_path) == []

    vectors.put(some(FRESH, 100))
    assert_right(vectors, some(0, 100))
    made = files(tmp_path)
    assert_right(other, some(0, 100))
    vectors.put(some(100, 120))
    assert_right(other, some(0, 120))
    assert files(tmp_path) == made

    vectors.prune(some(0, 50))
    assert_right(other, some(0, 50))
    assert len(files(tmp_path)) == 1
    assert files(tmp_path) != made


def test_equally_near_vectors_are_in_the_order_of_their_names(opened: Opened) -> None:
    vectors = opened()
    vectors.put({name(number): vector(1) for number in reversed(range(5))})

    assert [near for near, _ in vectors.nearest(vector(1), 3)] == [name(0), name(1), name(2)]


def test_without_usearch_the_rows_are_compared(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = opened()
    vectors.put(some(0, 100))
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    assert_right(vectors, some(0, 100))
    assert files(tmp_path) == []


# Damage.


def damages(data: bytes, draw: random.Random) -> Iterator[bytes | None]:
    yield from (None, b"", data[:-1], data[: len(data) // 2], bytes(len(data)), data + b"x")
    while True:
        changed = bytearray(data)
        length = draw.choice([1, 1, 8, 500])
        start = draw.choice([0, draw.randrange(len(data)), len(data) - length])
        changed[start : start + length] = draw.randbytes(len(changed[start : start + length]))
        yield bytes(changed)


def test_a_damaged_file_is_made_again_and_never_mapped(opened: Opened, tmp_path: Path) -> None:
    """Usearch may end the process if it reads a damaged file."""
    stored, draw = some(0, 100), random.Random(3)
    opened().put(stored)
    assert_right(opened(), stored)
    data = files(tmp_path)[0].read_bytes()
    for damaged, _ in zip(damages(data, draw), range(100), strict=False):
        (path,) = files(tmp_path)
        status = path.stat()
        path.unlink()
        if damaged is not None:
            path.write_bytes(damaged)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        with closing(Vectors(tmp_path, "m", owner="me")) as vectors:
            assert_right(vectors, stored)
        assert files(tmp_path) != [path] or damaged == data


@pytest.mark.parametrize("size", [0, 64, 1000])
def test_a_file_that_is_cut_while_it_is_mapped_ends_no_process(
    opened: Opened, tmp_path: Path, size: int
) -> None:
    vectors = opened()
    vectors.put(some(0, 100))
    assert_right(vectors, some(0, 100))
    os.truncate(files(tmp_path)[0], size)
    assert_right(vectors, some(0, 100))


def test_a_strange_file_is_made_again_and_our_own_copy_is_used(
    opened: Opened, tmp_path: Path
) -> None:
    stranger = opened(tmp_path / "stranger", owner="you")
    stranger.put(some(500, 600))
    assert_right(stranger, some(500, 600))
    opened().put(some(0, 100))
    assert_right(opened(), some(0, 100))
    (ours,) = files(tmp_path)
    copy = ours.read_bytes()

    ours.unlink()
    ours.write_bytes(copy)  # As a restored backup: another inode, other times.
    assert_right(opened(), some(0, 100))
    assert files(tmp_path) == [ours]

    ours.unlink()
    ours.symlink_to(files(tmp_path / "stranger")[0])
    assert_right(opened(), some(0, 100))
    (again,) = files(tmp_path)
    assert again != ours

    again.write_bytes(files(tmp_path / "stranger")[0].read_bytes())
    assert_right(opened(), some(0, 100))
    assert files(tmp_path) != [again]


class AnyChange(RuleBasedStateMachine):
    """After any change to any file, the next answer equals that of a new store with the rows."""

    @initialize()
    def start(self) -> None:
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.handles = [Vectors(self.path, "m", owner="me") for _ in range(2)]
        self.stored: dict[bytes, bytes] = {}
        self.old: dict[str, bytes] = {}

    def teardown(self) -> None:
        for handle in self.handles:
            handle.close()
        self.folder.cleanup()

    @rule(start=st.integers(0, 300), count=st.integers(0, 90), of=st.integers(0, 1))
    def put(self, start: int, count: int, of: int) -> None:
        self.handles[of].put(some(start, start + count))
        self.stored = some(start, start + count) | self.stored

    @rule(share=st.integers(1, 4), of=st.integers(0, 1))
    def prune(self, share: int, of: int) -> None:
        self.stored = dict(list(self.stored.items())[:: share or 1])
        self.handles[of].prune(self.stored)

    @rule(of=st.integers(0, 1))
    def reopen(self, of: int) -> None:
        self.handles[of].close()
        self.handles[of] = Vectors(self.path, "m", owner="me")

    @rule(draw=st.randoms(use_true_random=False), kind=st.integers(0, 20))
    def damage_file(self, draw: random.Random, kind: int) -> None:
        for path in files(self.path):
            if data := path.read_bytes():
                self.old[path.name] = data
                changed = [each for each, _ in zip(damages(data, draw), range(kind + 1))][-1]  # noqa: B905
                path.unlink() if changed is None else path.write_bytes(changed)

    @rule()
    def restore_old_files(self) -> None:
        for name, data in self.old.items():
            (self.path / name).write_bytes(data)

    @rule(kind=st.sampled_from(["removed", "noise", "cut", "empty", "tables"]))
    def damage_database(self, kind: str) -> None:
        path = SCHEMA.path(self.path, "me")
        if kind == "tables":
            with closing(sqlite3.connect(path)) as sql:
                sql.executescript("DROP TABLE IF EXISTS static")
        else:
            for handle in self.handles:
                handle.close()
            if kind == "removed":
                path.unlink()
            else:
                size = path.stat().st_size
                cut = {"noise": random.randbytes(size), "cut": b"SQLite format 3\0", "empty": b""}
                path.write_bytes(cut[kind])
        self.handles[0].get([name(1)])
        self.stored = {}

    @invariant()
    def every_handle_answers_right(self) -> None:
        for handle in self.handles:
            assert every(handle) == self.stored
            assert_right(handle, self.stored)


AnyChange.TestCase.settings = settings(stateful_step_count=12)
test_any_change = AnyChange.TestCase


def test_a_search_makes_lost_vectors_again(folder: Path, change_of: Make) -> None:
    changes = [change_of(f"m{number}", f"w{number} {number} tea") for number in range(30)]
    for damage in (b"", b"noise" * 900, None):
        with closing(Index.open(folder, HashEmbedder())) as index:
            index.apply(changes, now_ns=1)
            query = (index._embedder and index._embedder.encode("w7 tea")) or b""
            expected = index._vectors and index._vectors.nearest(query, 5)
        path = SCHEMA.path(folder, "me")
        path.unlink() if damage is None else path.write_bytes(damage)
        with closing(Index.open(folder, HashEmbedder())) as index:
            index.begin()
            assert index._vectors
            assert index._vectors.nearest(query, 5) == expected


# Disks and processes.


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_refuses_the_file_leaves_the_search_in_memory(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    vectors = opened()
    vectors.put(some(0, 100))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(code, "refused")))
        assert_right(vectors, some(0, 100))
        vectors.put(some(100, 300))
        assert_right(vectors, some(0, 300))
        assert files(tmp_path) == []
    vectors.put(some(300, 400))  # The disk has room again.
    assert_right(vectors, some(0, 400))
    assert len(files(tmp_path)) == 1


def test_a_search_does_not_wait_for_a_writer(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = opened()
    vectors.put(some(0, 100))
    waits: list[float] = []
    writing = vectors.cache.writing

    def noted(wait: float = disk.WAIT_SECONDS) -> AbstractContextManager[Connection]:
        waits.append(wait)
        return writing(wait)

    monkeypatch.setattr(vectors.cache, "writing", noted)
    with closing(sqlite3.connect(SCHEMA.path(tmp_path, "me"), isolation_level=None)) as sql:
        sql.execute("BEGIN IMMEDIATE")
        assert_right(vectors, some(0, 100))
        assert waits
        assert max(waits) < 1
        with pytest.raises(StorageFailed):
            vectors.put(some(100, 101), wait=0)


CODE = f"""
import random, sys
from pathlib import Path
from mimo.index import vectors as module
module._FRESH, DIMS = {FRESH}, {DIMS}
{getsource(name)}{getsource(vector)}{getsource(some)}
vectors, start = module.Vectors(Path(sys.argv[1]), "m", owner="me"), int(sys.argv[2])
"""
WRITING = """
for step in range(start, start + 600, 60):
    vectors.put(some(step, step + 60))
    assert vectors.nearest(vector(step + 5), 1)[0][0] == name(step + 5)
"""
SAVING = """
vectors.put(some(0, 200))
print("ready", flush=True)
while True:
    vectors.prune([]); vectors.put(some(0, 200)); vectors.nearest(vector(1), 1)
"""


def process(code: str, folder: Path, start: int = 0) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", CODE + code, str(folder), str(start)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_two_processes_write_while_threads_read(opened: Opened, tmp_path: Path) -> None:
    vectors, wrong = opened(), list[object]()
    vectors.put(some(0, 100))

    def read(number: int) -> None:
        try:
            for step in range(100):
                sought = (number * 37 + step) % 100
                if vectors.nearest(vector(sought), 1)[0][0] != name(sought):
                    wrong.append(sought)
        except Exception as error:  # noqa: BLE001 - reported by the assertion
            wrong.append(error)

    threads = [Thread(target=read, args=(number,)) for number in range(3)]
    running = [process(WRITING, tmp_path, start) for start in (1_000, 5_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in running:
        each.communicate()
    assert [each.returncode for each in running] == [0, 0]
    assert wrong == []
    assert_right(vectors, some(0, 100) | some(1_000, 1_600) | some(5_000, 5_600))
    assert len(files(tmp_path)) == 1


def test_a_process_that_is_killed_leaves_nothing_wrong(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for delay in (0.0, 0.01, 0.03):
        with process(SAVING, tmp_path) as running:
            assert running.stdout
            assert running.stdout.readline() == "ready\n"
            time.sleep(delay)
            running.kill()
        vectors = opened()
        assert_right(vectors, every(vectors))
    monkeypatch.setattr(module, "_ORPHAN_SECONDS", 0)
    opened().put(some(1_000, 1_200))
    vectors = opened()
    assert_right(vectors, every(vectors))
    assert len(files(tmp_path)) == 1


def test_a_purged_vector_is_in_no_file(opened: Opened, tmp_path: Path) -> None:
    vectors, secret = opened(), vector(7)
    vectors.put(some(0, 100))
    assert_right(vectors, some(0, 100))
    (tmp_path / "units-0000.usearch").write_bytes(secret)  # Of a process that was killed.
    assert any(secret in path.read_bytes() for path in files(tmp_path))
    kept = {key: value for key, value in some(0, 100).items() if key != name(7)}

    purge_vectors(tmp_path, kept, "me")

    assert not any(secret in path.read_bytes() for path in tmp_path.iterdir())
    assert_right(vectors, kept)
    assert not any(secret in path.read_bytes() for path in tmp_path.iterdir())


COLD = """
import sys; from pathlib import Path
from mimo.index.vectors import Vectors
from mimo.index.cosine import first
vectors, one = Vectors(Path(sys.argv[1]), "m"), lambda n: (n.to_bytes(16, "big"))
vectors.put({one(n): bytes([n % 100] * 32) for n in range(1500)})
vectors.cosines(bytes(32), [one(n) for n in range(300)]); vectors.prune([one(n) for n in range(9)])
vectors.nearest(bytes(32), 3)
print(*{"numpy", "usearch"} & {*sys.modules})
"""


def test_a_new_process_writes_and_compares_a_few_without_numpy(tmp_path: Path) -> None:
    words = [sys.executable, "-c", COLD, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)

    assert done.stdout == "\n"


def test_numpy_starts_no_threads(tmp_path: Path) -> None:
    code = (
        "from mimo.index.cosine import cosines; import os\n"
        "cosines(bytes(256), [bytes(256)] * 9000)\n"
        "print(os.environ['OPENBLAS_NUM_THREADS'], len(os.listdir('/proc/self/task')))\n"
    )
    environ = {key: value for key, value in os.environ.items() if "THREADS" not in key}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=environ)

    assert done.stdout == "1 1\n"
