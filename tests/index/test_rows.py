"""Damaged rows of vectors are found, also those that no scan comes near; own appends are not."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest

from mimo.disk import Stamp
from mimo.index import content, vectors
from mimo.index.content import Content
from mimo.index.embedding import ENCODED_LENGTH
from mimo.index.index import Index
from mimo.index.matrix import Rows
from mimo.index.table import Units
from mimo.index.vectors import LENGTH, Vectors
from mimo.memory.model import Filter
from tests.index.conftest import HashEmbedder, Make
from tests.index.test_vectors import DIMS, MODEL, Killed, name, some, vector

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SIZE = 20 + DIMS
KINDS = {"vectors": LENGTH, "meanings": ENCODED_LENGTH}


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The rows that were compared with the checksum of them all."""
    spans: list[tuple[int, int]] = []
    checksum = Rows.checksum

    def noted(self: Rows, first: int, end: int, before: int) -> int:
        spans.append((first, end))
        return checksum(self, first, end, before)

    monkeypatch.setattr(Rows, "checksum", noted)
    return spans


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is so small that each process compares it."""
    monkeypatch.setattr(content, "_SMALL", 0)
    monkeypatch.setattr(vectors, "_COMPARING_SECONDS", 60)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Vectors]:
    opened = Vectors(tmp_path / "own", MODEL)
    opened.put(some(0, 20))
    yield opened
    opened.close()


def flip(folder: Path, place: int, at: int, length: int = 1) -> None:
    """Flips bytes of a row, by another program: the file has another time then."""
    (path,) = folder.glob("*.rows")
    with path.open("r+b") as file:
        file.seek(16 + place * SIZE + at)
        data = file.read(length)
        file.seek(-length, os.SEEK_CUR)
        file.write(bytes(byte ^ 0xFF for byte in data))
    os.utime(path, ns=(5, 5))


def scan(vectors: Vectors, number: int = 0) -> list[bytes]:
    """Returns the nearest names, as a process that scans often does."""
    vectors._scans = 1
    return [near for near, _ in vectors.nearest(vector(number), 3)]


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_row_that_is_far_from_every_query_is_removed(
    tmp_path: Path, kind: str, is_open: bool
) -> None:
    for number in (0, 7, 19):
        for at, length in ((0, 1), (15, 1), (17, 1), (20, DIMS)):  # The last one points away.
            folder = tmp_path / f"{number}-{at}"
            opened = Vectors(folder, MODEL, kind, KINDS[kind])
            opened.put(some(0, 20))
            scan(opened)
            if not is_open:
                opened.close()
            flip(folder, number, at, length)
            if not is_open:
                opened = Vectors(folder, MODEL, kind, KINDS[kind])

            scan(opened, 40)

            assert opened.losses == 1, (number, at)
            names = [name(each) for each in range(20)]
            assert opened.known(names) == set(names) - {name(number)}
            opened.put({name(number): vector(number)})
            assert scan(opened, number)[0] == name(number)
            assert opened.losses == 1
            opened.close()


def test_a_damaged_vector_is_made_again_before_the_answer(
    index: Index, folder: Path, change_of: Make
) -> None:
    texts = [f"word{number} other{number % 7}" for number in range(30)]
    index.apply([change_of(f"m{number}", text) for number, text in enumerate(texts)], now_ns=1)

    def answers() -> list[list[str]]:
        every = []
        for text in texts[:10]:
            hits = index.search(text, filter=Filter(), limit=5, threshold=0.0, now=NOW).hits
            every.append([hit.record.memory.id for hit in hits])
        return every

    expected = answers()
    (path,) = folder.glob("vectors-*.rows")
    size = 20 + HashEmbedder.dims
    for place in range(3, 9):
        data = bytearray(path.read_bytes())
        data[16 + place * size + 20 : 16 + (place + 1) * size] = bytes(HashEmbedder.dims)
        path.write_bytes(data)
        os.utime(path, ns=(place, place))
        assert answers() == expected
        (path,) = folder.glob("vectors-*.rows")


def test_a_kept_table_notices_damage(index: Index, made: Vectors, tmp_path: Path) -> None:
    """A table of the encoder's vectors is kept between searches, with their places."""
    with index._reading() as sql:
        units = Units()
        units.table(sql, made)
        flip(tmp_path / "own", 4, 20)
        units.table(sql, made)

    assert made.losses == 1


@pytest.mark.usefixtures("large")
def test_what_mind_appends_is_not_compared(
    made: Vectors, tmp_path: Path, compared: list[tuple[int, int]]
) -> None:
    other = Vectors(tmp_path / "own", MODEL)
    for number in range(20, 40, 2):
        made.put(some(number, number + 1))
        assert scan(other, number)[0] == name(number)
        other.put(some(number + 1, number + 2))
        assert scan(made, number + 1)[0] == name(number + 1)
    made.put({name(99): b""})
    scan(made)
    made.close()
    again = Vectors(tmp_path / "own", MODEL)
    scan(again)
    again.close()
    other.close()

    assert compared == []


def test_a_small_file_is_compared_once_by_each_process(
    made: Vectors, tmp_path: Path, compared: list[tuple[int, int]]
) -> None:
    made.get(some(0, 20))
    assert compared == []
    for _ in range(3):
        scan(made)
        made.put(some(20, 25))
    assert compared == [(0, 20)]

    other = Vectors(tmp_path / "own", MODEL)
    scan(other)
    scan(other)
    other.close()
    assert compared == [(0, 20), (0, 25)]


APPENDING = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from mimo.index.vectors import Vectors
made = Vectors(Path(sys.argv[1]), "some-model:0123")
for number in range(60):
    made.put({bytes([int(sys.argv[2]), number]) * 8: bytes(32)})
made.close()
"""


@pytest.mark.usefixtures("large")
def test_what_other_processes_append_meanwhile_is_not_compared(
    made: Vectors, tmp_path: Path, compared: list[tuple[int, int]]
) -> None:
    command = [sys.executable, "-c", APPENDING, str(tmp_path / "own")]
    running = [subprocess.Popen([*command, str(number)]) for number in (1, 2)]
    while any(each.poll() is None for each in running):
        assert scan(made)[0] == name(0)

    assert [each.returncode for each in running] == [0, 0]
    assert made.count() == 20 + 2 * 60
    scan(made)
    assert compared == []
    assert made.losses == 0


@pytest.mark.usefixtures("large")
class TestKilledWriter:
    def kill(self, made: Vectors) -> None:
        """Rows are written, and the database does not count them."""
        with suppress(Killed), mock.patch.object(Content, "store", side_effect=Killed):
            made.put(some(50, 60))

    def test_the_rows_are_compared_once(
        self, made: Vectors, compared: list[tuple[int, int]]
    ) -> None:
        self.kill(made)
        for _ in range(3):
            assert scan(made)[0] == name(0)
        assert compared == [(0, 20)]

        self.kill(made)
        made.put(some(20, 22))
        for _ in range(3):
            assert scan(made, 21)[0] == name(21)
        assert compared == [(0, 20), (0, 22)]
        assert made.losses == 0

    def test_damage_before_or_after_is_found(self, made: Vectors, tmp_path: Path) -> None:
        flip(tmp_path / "own", 3, 25)
        self.kill(made)
        made.put(some(20, 22))
        scan(made, 40)
        assert made.known([name(3), name(21)]) == {name(21)}

        self.kill(made)
        flip(tmp_path / "own", 5, 25)
        made.put(some(22, 24))
        scan(made, 40)
        assert made.losses == 2
        assert made.count() == 24 - 2


@pytest.mark.usefixtures("large")
def test_damage_is_found_after_a_later_append(made: Vectors, tmp_path: Path) -> None:
    flip(tmp_path / "own", 3, 25)
    made.put(some(20, 30))

    scan(made, 40)

    assert made.losses == 1
    assert made.known([name(3)]) == set()


@pytest.mark.usefixtures("large")
def test_a_copied_folder_is_compared_once(
    made: Vectors, tmp_path: Path, compared: list[tuple[int, int]]
) -> None:
    made.close()
    shutil.copytree(tmp_path / "own", tmp_path / "copy")
    for _ in range(2):
        copy = Vectors(tmp_path / "copy", MODEL)
        assert scan(copy, 5)[0] == name(5)
        copy.close()

    assert compared == [(0, 20)]


@pytest.mark.usefixtures("large")
def test_a_comparison_does_not_wait_for_another_writer(
    made: Vectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_COMPARING_SECONDS", 0)
    os.utime(next((tmp_path / "own").glob("*.rows")), ns=(5, 5))
    other = Vectors(tmp_path / "own", MODEL)
    other._connection.execute("BEGIN IMMEDIATE")

    assert scan(made, 5)[0] == name(5)

    other._connection.rollback()
    other.close()


def test_a_damaged_checksum_of_all_rows_is_made_again(
    made: Vectors, compared: list[tuple[int, int]]
) -> None:
    made._connection.execute("UPDATE state SET checksum = checksum + 1")
    made._connection.commit()

    for _ in range(2):
        assert scan(made, 5)[0] == name(5)
    assert made.losses == 1
    assert made.count() == 20


@pytest.mark.usefixtures("large")
class TestSilentDamage:
    """The disk returns other data than it got: the stamp of the file is that which mind left."""

    @pytest.fixture(autouse=True)
    def _same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Stamp, "of", lambda status: Stamp(status.st_size, 1, 1, 1))

    def test_it_is_found_within_the_period(
        self, made: Vectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flip(tmp_path / "own", 3, 25)
        scan(made, 40)
        assert made.losses == 0

        monkeypatch.setattr(content, "_PERIOD_NS", 0)
        scan(made, 40)
        assert made.losses == 1

    def test_a_very_large_file_is_compared_in_portions(
        self,
        made: Vectors,
        tmp_path: Path,
        compared: list[tuple[int, int]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(content, "_PERIOD_NS", 0)
        monkeypatch.setattr(content, "_PORTION", 8 * SIZE)
        for number in range(2):
            scan(made, 40)
            made.put(some(20 + number, 21 + number))
        assert compared == [(0, 8), (8, 16)]
        scan(made, 40)
        assert compared == [(0, 8), (8, 16), (16, 22)]
        assert made.losses == 0

        flip(tmp_path / "own", 3, 25)
        for _ in range(3):
            assert made.losses == 0
            scan(made, 40)
        assert made.losses == 1
