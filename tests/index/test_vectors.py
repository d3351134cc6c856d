"""Vectors on disk: kept by name, shared by processes, never in the way of a search."""

import fcntl
import os
import random
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mimo import sqlite
from mimo.errors import StorageFailed
from mimo.index import content, schema, vectors
from mimo.index.content import LAYOUT, Content
from mimo.index.index import Index
from mimo.index.matrix import rows_of
from mimo.index.rows import Change
from mimo.index.vectors import Vectors, cosines
from tests.conftest import descriptors
from tests.index.conftest import HashEmbedder, Make

MODEL = "some-model:0123"
DIMS = 32


class Killed(Exception):
    """Ends a write as the end of the process would."""


def name(number: int) -> bytes:
    return number.to_bytes(8, "big") * 2


def vector(number: int) -> bytes:
    """A vector of length about 127 in a direction of its own."""
    gauss = random.Random(number).gauss
    numbers = [gauss(0, 1) for _ in range(DIMS)]
    length = sum(value * value for value in numbers) ** 0.5
    return bytes(round(127 * value / length) & 0xFF for value in numbers)


def some(first: int, last: int) -> dict[bytes, bytes]:
    return {name(number): vector(number) for number in range(first, last)}


class Opened:
    """Opens vectors and can close all of them."""

    def __init__(self) -> None:
        self.made: list[Vectors] = []

    def __call__(self, folder: Path | None, model: str = MODEL) -> Vectors:
        self.made.append(Vectors(folder, model))
        return self.made[-1]

    def close(self) -> None:
        for each in self.made:
            each.close()


@pytest.fixture
def opened() -> Iterator[Opened]:
    made = Opened()
    yield made
    made.close()


def test_vectors_outlive_the_process(tmp_path: Path, opened: Opened) -> None:
    opened(tmp_path / "new" / "folder").put(some(0, 3))
    again = opened(tmp_path / "new" / "folder")

    assert again.get([name(0), name(2), name(9)]) == {name(0): vector(0), name(2): vector(2)}
    assert again.known([name(1), name(9)]) == {name(1)}
    assert again.count() == 3


def test_closed_vectors_are_opened_for_each_operation(tmp_path: Path, opened: Opened) -> None:
    before, used = descriptors(), opened(tmp_path)
    used.put(some(0, 3))
    used.close()

    used.put(some(3, 4))
    assert used.get([name(0), name(3)]) == {name(0): vector(0), name(3): vector(3)}
    assert descriptors() == before


def later(folder: Path) -> dict[Path, bytes]:
    """Makes the vectors those of a later version of mind, and returns the files."""
    with closing(sqlite3.connect(folder / "vectors.db")) as connection:
        connection.execute(f"PRAGMA user_version = {LAYOUT + 1}")
        connection.execute("PRAGMA journal_mode = DELETE")
    return contents(folder)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.iterdir()}


def test_vectors_of_a_later_version_are_left_alone(tmp_path: Path, opened: Opened) -> None:
    opened(tmp_path).put(some(0, 3))
    opened.close()
    before = later(tmp_path)

    own = opened(tmp_path)
    assert own.count() == 0
    own.put(some(5, 9))
    own.prune([name(6)])
    own.note_loss()
    own.close()
    again = opened(tmp_path)

    assert again.get([name(0), name(6)]) == {name(6): vector(6)}
    again.close()
    assert before.items() <= contents(tmp_path).items()


def test_vectors_that_a_later_version_is_writing_are_left_alone(
    tmp_path: Path, opened: Opened
) -> None:
    opened(tmp_path).put(some(0, 3))
    opened.close()
    before = later(tmp_path)
    opened(tmp_path).put(some(5, 6))  # Its own, beside them.
    opened.close()

    with closing(sqlite3.connect(tmp_path / "vectors.db", isolation_level=None)) as writing:
        writing.execute("BEGIN EXCLUSIVE")
        own = opened(tmp_path)
        own.put(some(5, 9))
        own.prune([name(6)])
        own.close()

    assert before.items() <= contents(tmp_path).items()


def test_a_later_version_finds_its_vectors_after_an_earlier_one(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(content, "LAYOUT", LAYOUT + 1)
        opened(tmp_path).put(some(0, 3))
        opened.close()
    opened(tmp_path).put(some(5, 6))
    opened.close()
    with monkeypatch.context() as patch:
        patch.setattr(content, "LAYOUT", LAYOUT + 1)
        assert opened(tmp_path).known([name(0), name(5)]) == {name(0)}

    assert [path.name for path in tmp_path.glob("*.db")] == ["vectors.db"]


def test_an_empty_file_answers_with_nothing(opened: Opened) -> None:
    empty = opened(None)
    empty.put({})

    assert empty.known([]) == set()
    assert empty.get([]) == {}
    assert empty.count() == 0
    empty.prune([])
    assert empty.nearest(vector(1), 3) == []


def test_more_names_than_one_query_takes_are_found(opened: Opened) -> None:
    made = opened(None)
    made.put(some(0, 2 * schema._AT_ONCE + 1))

    assert len(made.get(name(number) for number in range(5000))) == 2 * schema._AT_ONCE + 1


def test_an_empty_vector_is_known_but_never_near(opened: Opened) -> None:
    made = opened(None)
    made.put({name(1): b"", name(2): vector(2)})

    assert made.get([name(1)]) == {name(1): b""}
    assert [results for results, _ in made.nearest(vector(2), 9)] == [name(2)]
    assert made.nearest(b"", 9) == []


def test_another_model_starts_empty_and_the_first_no_longer_writes(
    tmp_path: Path, opened: Opened
) -> None:
    first = opened(tmp_path)
    first.put(some(0, 3))
    second = opened(tmp_path, "other-model:4567")
    assert second.count() == 0

    second.put(some(5, 6))
    first.put(some(7, 8))

    assert first.get([name(5), name(7)]) == {}
    assert first.nearest(vector(5), 1) == []
    assert second.known([name(5), name(7)]) == {name(5)}


def test_the_same_model_finds_its_vectors_after_another_was_tried(
    tmp_path: Path, opened: Opened
) -> None:
    opened(tmp_path, "other-model:4567").put(some(0, 3))
    opened(tmp_path).put(some(3, 5))

    assert opened(tmp_path).count() == 2


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "no database": lambda data: b"not a database, but long enough to be taken for one" * 99,
    "cut short": lambda data: data[: len(data) // 2],
    "zeros in the middle": lambda data: data[:4096] + bytes(len(data) - 8192) + data[-4096:],
    "all but the header lost": lambda data: data[:100] + bytes(len(data) - 100),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_replaced_by_an_empty_one(
    tmp_path: Path, opened: Opened, damage: Callable[[bytes], bytes]
) -> None:
    opened(tmp_path).put(some(0, 2000))
    file = tmp_path / "vectors.db"
    opened.close()
    file.write_bytes(damage(file.read_bytes()))

    made = opened(tmp_path)
    made.get([name(number) for number in range(2000)])
    made.put(some(0, 3000))

    assert made.get([name(1), name(2999)]) == {name(1): vector(1), name(2999): vector(2999)}
    assert made.count() == 3000
    assert opened(tmp_path).count() == 3000


@pytest.mark.parametrize("place", [-7, 20, 2**40, 2**62, 0.5, b"5"])
def test_a_damaged_place_is_repaired(tmp_path: Path, opened: Opened, place: object) -> None:
    made = opened(tmp_path)
    made.put(some(0, 20))
    with closing(sqlite3.connect(tmp_path / "vectors.db")) as sql, sql:
        sql.execute("UPDATE places SET place = ? WHERE place = 5", (place,))

    assert len(made.get(some(0, 20))) == 19
    assert made.get(some(0, 20)) == some(0, 20)


def test_damage_of_an_open_file_is_repaired(tmp_path: Path, opened: Opened) -> None:
    made = opened(tmp_path)
    made.put(some(0, 2000))
    made.close()
    made = opened(tmp_path)
    data = (tmp_path / "vectors.db").read_bytes()
    (tmp_path / "vectors.db").write_bytes(data[:100] + bytes(len(data) - 100))

    assert made.get([name(1)]) == {}
    made.put(some(0, 2))

    assert made.get([name(1)]) == {name(1): vector(1)}
    assert opened(tmp_path).count() == 2


def test_rows_that_are_cut_while_they_are_mapped_are_no_longer_counted(
    tmp_path: Path, opened: Opened
) -> None:
    """A caller that keeps a matrix of the mapped rows would be killed by its next scan."""
    made = opened(tmp_path)
    made.put(some(0, 2000))
    assert made.compared_state().rows == 2000
    assert made.matrix() is not None
    (rows,) = tmp_path.glob("*.rows")
    os.truncate(rows, 4096)

    assert made.compared_state().rows == 0
    assert made.matrix() is None


PLACES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "a folder": Path.mkdir,
    "a fifo": os.mkfifo,
    "a socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "a link": lambda path: path.symlink_to(path.with_suffix(".moved")),
}


@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES.keys())
def test_rows_with_something_else_in_their_place_are_made_again(
    tmp_path: Path, opened: Opened, make: Callable[[Path], object]
) -> None:
    opened(tmp_path).put(some(0, 20))
    opened.close()
    (rows,) = tmp_path.glob("*.rows")
    rows.rename(rows.with_suffix(".moved"))
    make(rows)

    made = opened(tmp_path)
    assert made.get(some(0, 20)) == {}
    made.put(some(0, 20))

    assert opened(tmp_path).get(some(0, 20)) == some(0, 20)


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_folder_in_the_place_of_a_log_costs_the_vectors_only(
    tmp_path: Path, opened: Opened, suffix: str
) -> None:
    opened(tmp_path).put(some(0, 20))
    opened.close()
    (tmp_path / f"vectors.db{suffix}").mkdir()

    made = opened(tmp_path)
    made.put(some(0, 20))

    assert opened(tmp_path).get(some(0, 20)) == some(0, 20)


def test_a_folder_removed_while_open_is_created_again(tmp_path: Path, opened: Opened) -> None:
    folder = tmp_path / "index"
    made = opened(folder)
    made.put(some(0, 2))
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()

    made.put(some(1, 3))

    assert made.known([name(1), name(2)]) == {name(1), name(2)}
    assert opened(folder).known([name(1), name(2)]) == {name(1), name(2)}


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(StorageFailed) as caught:
        Vectors(tmp_path / "file" / "folder", MODEL)

    assert caught.value.hint


def test_a_full_disk_loses_no_stored_vector(tmp_path: Path, opened: Opened) -> None:
    made = opened(tmp_path)
    made.put(some(0, 100))
    pages = made._connection.execute("PRAGMA page_count").fetchone()[0]
    made._connection.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StorageFailed, match="full"):
        made.put(some(100, 9000))

    assert made.count() == 100
    made.put(some(0, 3))


def test_pruning_keeps_the_given_names(opened: Opened) -> None:
    made = opened(None)
    made.put(some(0, 10))

    made.prune([name(3), name(99)])

    assert made.get(some(0, 10)) == some(3, 4)


class AgainstDict(RuleBasedStateMachine):
    """Vectors behave like a dict in which a first value is never replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.vectors = Vectors(Path(self.folder.name), MODEL)
        self.kept: dict[bytes, bytes] = {}

    @property
    def rows(self) -> Path:
        (file,) = Path(self.folder.name).glob("*.rows")
        return file

    numbers = st.sets(st.integers(0, 20), max_size=6)

    @rule(numbers=numbers, salt=st.integers(0, 3))
    def put(self, numbers: set[int], salt: int) -> None:
        given = {name(number): vector(number + 100 * salt) for number in numbers}
        self.vectors.put(given)
        self.kept = given | self.kept

    @rule(numbers=numbers)
    def prune(self, numbers: set[int]) -> None:
        keep = {name(number) for number in numbers}
        self.vectors.prune(keep)
        self.kept = {each: self.kept[each] for each in self.kept.keys() & keep}

    @rule()
    def reopen(self) -> None:
        self.vectors.close()
        self.vectors = Vectors(Path(self.folder.name), MODEL)

    @rule(numbers=numbers)
    def die_between_rows_and_database(self, numbers: set[int]) -> None:
        """The rows are written, and their places are not."""
        with suppress(Killed), mock.patch.object(Content, "store", side_effect=Killed):
            self.vectors.put({name(100 + number): vector(number) for number in numbers})
        self.reopen()

    @precondition(lambda self: any(self.kept.values()))
    @rule(share=st.floats(0, 0.99))
    def lose_the_end(self, share: float) -> None:
        """A file that is cut short is discarded, and the vectors are made again."""
        self.vectors.close()
        length = 16 + len(self.kept) * (20 + DIMS)
        os.truncate(self.rows, int(share * length))
        self.vectors = Vectors(Path(self.folder.name), MODEL)
        assert self.vectors.nearest(vector(1), 1) == []
        assert self.vectors.losses == 1
        self.vectors.put(self.kept)

    @rule(query=st.integers(0, 400), k=st.integers(0, 30))
    def nearest(self, query: int, k: int) -> None:
        results = self.vectors.nearest(vector(query), k)
        near = cosines(vector(query), list(self.kept.values()))
        scored = dict(zip(self.kept, near, strict=True))
        assert results == sorted(scored.items(), key=lambda pair: (-pair[1], pair[0]))[:k]

    @invariant()
    def same(self) -> None:
        assert self.vectors.get(name(number) for number in range(21)) == self.kept
        assert self.vectors.count() == len(self.kept)

    def teardown(self) -> None:
        self.vectors.close()
        self.folder.cleanup()


TestAgainstDict = AgainstDict.TestCase


def test_a_scan_of_an_earlier_state_goes_on_while_vectors_are_added_and_removed(
    tmp_path: Path, opened: Opened
) -> None:
    made, other = opened(tmp_path), opened(tmp_path)
    made.put(some(0, 20))
    matrix = made.matrix()
    assert matrix is not None
    before = matrix.nearest(vector(3), 5)

    other.put(some(20, 4000))
    other.prune([name(5)])

    assert matrix.nearest(vector(3), 5) == before
    assert made.nearest(vector(3), 5)[0][0] == name(5)


def test_a_removed_vector_leaves_one_file_of_rows(tmp_path: Path, opened: Opened) -> None:
    made = opened(tmp_path)
    made.put(some(0, 9))
    (tmp_path / "vectors-0123456789abcdef.rows").write_bytes(b"of a process that ended")

    made.prune([name(5)])

    (file,) = tmp_path.glob("*.rows")
    assert file.stat().st_size == 16 + 20 + DIMS


def test_names_with_the_same_beginning_are_distinguished(opened: Opened) -> None:
    made = opened(None)
    names = [bytes(15) + bytes([number]) for number in range(9)]
    made.put({each: vector(number) for number, each in enumerate(names)})
    matrix = made.matrix()
    assert matrix is not None

    places = matrix.places(rows_of([names[7], names[2], name(1)]))

    assert places.tolist() == [7, 2, -1]


@pytest.mark.parametrize(
    ("column", "value"),
    [("file", "../../secret"), ("rows", "many"), ("rows", 10**9), ("width", -1)],
)
def test_counts_that_mind_never_writes_are_damage(
    tmp_path: Path, opened: Opened, column: str, value: object
) -> None:
    opened(tmp_path).put(some(0, 9))
    opened.close()
    with closing(sqlite3.connect(tmp_path / "vectors.db")) as sql, sql:
        sql.execute(f"UPDATE state SET {column} = ?", (value,))

    made = opened(tmp_path)
    made.put(some(9, 10))
    made.put(some(0, 2))

    assert made.get([name(0), name(5)]) == {name(0): vector(0)}


def test_threads_share_one_file(tmp_path: Path, opened: Opened) -> None:
    made = opened(tmp_path)

    def work(number: int) -> int:
        made.put(some(10 * number, 10 * number + 15))
        return len(made.get(some(10 * number, 10 * number + 15))) + len(made.nearest(vector(1), 1))

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(work, range(20))) == {16}
    assert made.count() == 205


def test_processes_share_one_file_from_the_first_moment(tmp_path: Path, opened: Opened) -> None:
    code = """
import sys
from pathlib import Path
from mimo.index.vectors import Vectors
made = Vectors(Path(sys.argv[1]), "some-model:0123")
for number in range(40):
    made.put({bytes([number, place]) * 8: bytes(32) for place in range(20)})
print(made.count())
made.close()
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]

    assert [each.communicate()[0].strip() for each in running] == ["800"] * 3
    assert opened(tmp_path).count() == 800
    assert [path.name for path in tmp_path.glob("*.db")] == ["vectors.db"]


def test_a_scan_gives_the_same_with_and_without_numpy(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = opened(None)
    made.put(some(0, 300) | {name(300 + number): vector(7) for number in range(5)})
    monkeypatch.setattr(vectors, "numpy_pays", lambda count: False)

    plain = made.nearest(vector(7), 20)
    by_numpy = made.nearest(vector(7), 20)

    assert plain == by_numpy
    assert [results for results, _ in plain[:6]] == [name(7), *(name(300 + n) for n in range(5))]


def test_of_several_processes_one_at_a_time_imports_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported: list[str] = []
    monkeypatch.delitem(sys.modules, "numpy")
    monkeypatch.setattr(vectors, "import_module", imported.append)
    turn = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(turn, fcntl.LOCK_EX)
    assert not vectors.numpy_in_turn(tmp_path)
    os.close(turn)
    assert imported == []

    assert vectors.numpy_in_turn(tmp_path)
    assert vectors.numpy_in_turn(None)
    assert vectors.numpy_in_turn(tmp_path / "missing")
    assert imported == ["numpy"] * 3


def test_a_scan_sees_what_another_process_has_added(tmp_path: Path, opened: Opened) -> None:
    made, other = opened(tmp_path), opened(tmp_path)
    made.put(some(0, 3))
    for _ in range(3):
        made.nearest(vector(9), 1)

    other.put(some(9, 10))

    assert made.nearest(vector(9), 1)[0][0] == name(9)


class TestCosines:
    """The cosines of named vectors: the same in a new process and in one that reads them often."""

    NAMES = (name(1), name(2), name(3), name(99))

    def often(self, vectors: Vectors) -> Vectors:
        for _ in range(5):
            vectors.get([name(1), name(2)])
        return vectors

    def test_reading_often_changes_nothing(self, tmp_path: Path, opened: Opened) -> None:
        opened(tmp_path).put({**some(0, 3), name(3): b""})

        once = opened(tmp_path).cosines(vector(2), self.NAMES)
        often = self.often(opened(tmp_path))

        assert once.keys() == {name(1), name(2), name(3)}
        assert once[name(3)] == 0
        assert often.cosines(vector(2), self.NAMES) == once
        assert often.cosines(vector(2), self.NAMES) == once
        assert often.cosines(vector(2), []) == {}

    def test_new_vectors_are_seen_at_once(self, tmp_path: Path, opened: Opened) -> None:
        vectors = opened(tmp_path)
        vectors.put(some(0, 3))
        self.often(vectors).cosines(vector(2), self.NAMES)

        opened(tmp_path).put(some(99, 100))
        near = vectors.cosines(vector(99), self.NAMES)
        vectors.prune([name(99)])

        assert near[name(99)] == pytest.approx(1, abs=0.02)
        assert vectors.cosines(vector(99), self.NAMES).keys() == {name(99)}

    def test_a_damaged_vector_is_removed(self, tmp_path: Path, opened: Opened) -> None:
        vectors = opened(tmp_path)
        vectors.put(some(0, 3))
        (rows,) = tmp_path.glob("*.rows")
        rows.write_bytes(rows.read_bytes()[:-1] + b"\x55")

        near = self.often(vectors).cosines(vector(2), [name(0), name(2)])

        assert near.keys() == {name(0)}
        assert vectors.losses == 1
        assert vectors.known([name(0), name(2)]) == {name(0)}


class TestAmong:
    """The nearest of some: the same one by one and in the matrix."""

    def expected(self, query: bytes, numbers: range, k: int) -> list[bytes]:
        near = cosines(query, [vector(n) for n in numbers])
        scored = sorted((-number, name(n)) for n, number in zip(numbers, near, strict=True))
        return [results for _, results in scored[:k]]

    def test_only_the_named_vectors_are_compared(self, opened: Opened) -> None:
        vectors = opened(None)
        vectors.put(some(0, 40))
        query, asked = vector(7), range(10, 30)

        once, again = (
            vectors.among(query, [name(n) for n in (*asked, 99, 98)], 5) for _ in range(2)
        )

        assert [results for results, _ in once] == self.expected(query, asked, 5)
        assert once == again
        assert [number for _, number in once] == sorted(
            (number for _, number in once), reverse=True
        )

    @pytest.mark.parametrize("scans", [0, 1])
    def test_unknown_and_empty_vectors_are_not_returned(self, opened: Opened, scans: int) -> None:
        vectors = opened(None)
        vectors.put({name(1): vector(1), name(2): b""})
        for _ in range(scans):
            vectors.nearest(vector(1), 1)

        assert [results for results, _ in vectors.among(vector(1), [name(2), name(1)], 5)] == [
            name(1)
        ]
        assert vectors.among(vector(1), [name(2), name(3)], 5) == []
        assert vectors.among(vector(1), [], 5) == []
        assert vectors.among(b"", [name(1)], 5) == []

    def test_equally_near_vectors_are_in_the_order_of_their_names(self, opened: Opened) -> None:
        vectors = opened(None)
        vectors.put({name(n): vector(0) for n in range(9)})

        for _ in range(2):
            results = vectors.among(vector(0), [name(n) for n in (5, 3, 8, 3)], 2)
            assert [name_ for name_, _ in results] == [name(3), name(5)]

    def test_a_change_is_seen_at_once(self, opened: Opened) -> None:
        vectors = opened(None)
        vectors.put(some(0, 3))
        for _ in range(3):
            vectors.among(vector(1), [name(1)], 1)
        vectors.put(some(3, 5))

        assert vectors.among(vector(4), [name(n) for n in range(5)], 1)[0][0] == name(4)


def test_vectors_of_earlier_texts_do_not_pile_up(
    index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.index.index._MOST_UNUSED", 10)
    for number in range(50):
        index.apply([change_of("note", f"text{number}")], now_ns=number + 1)
    assert 2 <= index.stats().vectors <= 10 + 2 * 2 + 2


@pytest.mark.attack("local state planted by a clone")
def test_the_vectors_of_another_owner_are_not_used(
    folder: Path, embedder: HashEmbedder, change_of: Make
) -> None:
    """The author of a clone may give a text the vector of another one."""
    theirs = Index.open(folder, embedder, "theirs")
    theirs.apply([change_of("note", "a text")], now_ns=1)
    assert theirs.stats().vectors
    theirs.close()
    assert Index.open(folder, embedder, "ours").stats().vectors == 0


def test_an_index_of_a_past_state_leaves_the_vectors_of_the_others(
    folder: Path,
    index: Index,
    embedder: HashEmbedder,
    change_of: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mimo.index.index._MOST_UNUSED", 0)
    index.apply([change_of(f"n{number}", f"text{number}") for number in range(9)], now_ns=1)
    past = Index.open_past(folder, "digest", embedder, "")
    past.apply([change_of("old", "an older text")], now_ns=1)
    past.close()
    assert index.stats().vectors == 10


def test_a_past_state_makes_the_vectors_again_that_were_pruned_since(
    folder: Path,
    index: Index,
    embedder: HashEmbedder,
    change_of: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept, lost = change_of("kept", "a text that stays"), change_of("lost", "another text")
    past = Index.open_past(folder, "digest", embedder, "")
    past.apply([kept, lost], now_ns=1)
    past.close()
    monkeypatch.setattr("mimo.index.index._MOST_UNUSED", -10)
    index.apply([kept], now_ns=1)
    assert index.stats().vectors == 1

    with closing(Index.open_past(folder, "digest", embedder, "")) as past:
        past.begin()

    assert index.stats().vectors == 2


def test_texts_that_are_written_without_vectors_while_all_are_made_get_them_later(
    folder: Path, index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(HashEmbedder):
        def encode_many(self, texts: Sequence[str]) -> list[bytes]:
            raise OSError("no model")

    with closing(Index.open(folder, Failing())) as other:
        other.apply([change_of("first", "a text that stays")], now_ns=1)
        begin = index._tables.writing

        @contextmanager
        def overtaken(*wait: float) -> Iterator[sqlite.Connection]:
            monkeypatch.setattr(index._tables, "writing", begin)
            other.apply([change_of("second", "postgres fails")], now_ns=2)
            with begin(*wait) as sql:
                yield sql

        monkeypatch.setattr(index._tables, "writing", overtaken)
        index.begin()
    assert index.stats().vectors == 1
    index.begin()
    assert index.stats().vectors == 2


@pytest.mark.parametrize("is_known", [True, False])
def test_vectors_that_another_process_prunes_before_their_texts_are_written_are_made_again(
    folder: Path,
    index: Index,
    embedder: HashEmbedder,
    change_of: Make,
    monkeypatch: pytest.MonkeyPatch,
    is_known: bool,
) -> None:
    index.apply([change_of("first", "a text that stays")], now_ns=1)
    change = change_of("second", "postgres fails")
    if is_known:  # The text was removed, and comes back before its vector is pruned.
        index.apply([change], now_ns=2)
        index.apply([Change(path=change.path, stamp=None)], now_ns=3)
    write = index._write

    def overtaken(*args: Any, **kwargs: Any) -> frozenset[str]:
        with closing(Index.open(folder, embedder)) as other:
            other.prune(every=True)
        return write(*args, **kwargs)

    monkeypatch.setattr(index, "_write", overtaken)
    index.apply([change], now_ns=4)

    assert index.stats().vectors == 2


def test_a_file_that_another_process_makes_meanwhile_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, layout = [], content._layout

    def made_after_the_answer(connection: sqlite.Connection) -> int:
        answer = layout(connection)
        asked.append(answer)
        if len(asked) == 2:  # The first question is whether a later version made it.
            with monkeypatch.context() as patched:
                patched.setattr(content, "_layout", layout)
                Vectors(tmp_path, MODEL, "vectors", DIMS).close()
        return answer

    monkeypatch.setattr(content, "_layout", made_after_the_answer)
    with closing(Vectors(tmp_path, MODEL, "vectors", DIMS)) as opened:
        assert opened.count() == 0
    assert asked[:2] == [0, 0]
