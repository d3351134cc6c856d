"""Checksums of pages: damage of an index is found, and what mind itself writes is not damage."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mimo.disk import Stamp
from mimo.index import pages
from mimo.index.database import Database, IndexDamaged, State
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.memory.model import Filter
from tests.index.conftest import HashEmbedder

Make = Callable[..., Change]
PAGE = 4096


@pytest.fixture
def filled(folder: Path, change_of: Make) -> Path:
    """The database of an index that no process has open."""
    index = Index.open(folder, None)
    index.apply([change_of(f"m{number}", f"word{number} common") for number in range(40)], now_ns=1)
    index.close()
    return folder / "index.db"


def state(path: Path) -> State:
    database = Database(path)
    try:
        return database.state("")
    finally:
        database.close()


def test_what_mind_writes_is_sound(filled: Path, change_of: Make) -> None:
    for number in range(5):
        index = Index.open(filled.parent, None)
        index.apply([change_of(f"n{number}")], now_ns=2)
        assert index.count(Filter()) == 41 + number
        index.close()

    assert state(filled) is State.USABLE
    assert not filled.with_name("index-1.db").exists()


def test_each_page_is_checked(filled: Path) -> None:
    data = filled.read_bytes()
    for at in range(0, len(data), PAGE):
        changed = bytearray(data)
        changed[at + random.Random(at).randrange(PAGE)] ^= 1
        filled.write_bytes(changed)
        assert state(filled) is State.UNUSABLE, at // PAGE

    filled.write_bytes(data)
    assert state(filled) is State.USABLE


def test_a_page_of_an_earlier_version_is_damage(filled: Path, change_of: Make) -> None:
    old = filled.read_bytes()
    index = Index.open(filled.parent, None)
    index.apply([change_of("late")], now_ns=2)
    index.close()
    new = filled.read_bytes()
    stale = [at for at in range(0, len(old), PAGE) if old[at : at + PAGE] != new[at : at + PAGE]]
    assert len(stale) > 5

    for at in stale:
        filled.write_bytes(new[:at] + old[at : at + PAGE] + new[at + PAGE :])
        assert state(filled) is State.UNUSABLE, at // PAGE


@pytest.mark.parametrize("damage", ["removed", "head", "sums", "empty"])
def test_damaged_checksums_are_damage(filled: Path, damage: str) -> None:
    sums = filled.with_name("index.db-sums")
    data = bytearray(sums.read_bytes())
    if damage == "removed":
        sums.unlink()
    elif damage == "head":
        data[20] ^= 1
        sums.write_bytes(data)
    elif damage == "sums":
        data[-64:] = bytes(64)
        sums.write_bytes(data)
    else:
        sums.write_bytes(b"")

    assert state(filled) is State.UNUSABLE


@pytest.mark.parametrize("missing", range(1, 9))
def test_checksums_that_were_cut_anywhere_are_damage(filled: Path, missing: int) -> None:
    sums = filled.with_name("index.db-sums")
    os.truncate(sums, sums.stat().st_size - missing)

    assert state(filled) is State.UNUSABLE


def test_a_system_may_write_in_small_parts(
    folder: Path, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: pwrite(file, bytes(data)[:3], at))
    index = Index.open(folder, HashEmbedder())
    for number in range(9):
        index.apply([change_of(f"m{number}", f"word{number} common")], now_ns=number)
    index.close()

    assert state(folder / "index.db") is State.USABLE
    index = Index.open(folder, HashEmbedder())
    stats = index.stats()
    assert (stats.memories, stats.units, stats.generation) == (9, 9, 0)
    index.close()


def test_a_schema_that_is_not_unicode_is_damage(filled: Path) -> None:
    """SQLite quotes it in its error, which Python can't decode."""
    data, name = filled.read_bytes(), b"CREATE TABLE meta"
    assert data.count(name) == 1
    filled.write_bytes(data.replace(name, b"CREATE \xa0\xa0\xa0\xa0\xa0 meta"))

    assert state(filled) is State.UNUSABLE


@pytest.mark.parametrize("suffix", ["", "-sums", "-wal", "-shm"])
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_something_else_in_the_place_of_a_file_is_damage(
    filled: Path, change_of: Make, suffix: str, make: Callable[[Path], None]
) -> None:
    place = filled.with_name(f"index.db{suffix}")
    place.unlink(missing_ok=True)
    make(place)

    index = Index.open(filled.parent, None)
    index.apply([change_of("a")], now_ns=2)
    assert index.count(Filter()) == 1
    assert index.stats().generation == 1
    index.close()


def test_damage_while_the_index_is_in_use_is_found(filled: Path, change_of: Make) -> None:
    index = Index.open(filled.parent, None)
    assert index.count(Filter()) == 40
    with filled.open("r+b") as file:
        file.seek(5 * PAGE + 100)
        file.write(b"x")

    with pytest.raises(IndexDamaged):
        index.count(Filter())
    assert index.stamps() == {}
    index.apply([change_of("a")], now_ns=2)
    assert index.count(Filter()) == 1
    index.close()


def test_damage_is_found_before_it_is_written_again(filled: Path, change_of: Make) -> None:
    index = Index.open(filled.parent, None)
    index.count(Filter())
    with filled.open("r+b") as file:
        file.seek(5 * PAGE + 100)
        file.write(b"x")

    with pytest.raises(IndexDamaged):
        index.apply([change_of("a")], now_ns=2)
    index.close()


def test_damage_of_the_log_is_found(filled: Path, change_of: Make) -> None:
    writer = Index.open(filled.parent, None)
    writer.apply([change_of("late")], now_ns=2)
    log = filled.with_name("index.db-wal")
    size = log.stat().st_size
    assert size > 2 * PAGE
    with log.open("r+b") as file:
        file.seek(32 + 24 + 200)
        file.write(b"x")

    assert state(filled) is State.UNUSABLE
    writer.close()


KILLED = """
import os, sys
from pathlib import Path
from mimo.disk import Stamp
from mimo.index import pages
from mimo.index.database import Database
database = Database(Path(sys.argv[1]))
if sys.argv[2] in ("before the checksums", "after sqlite copied the log"):
    pages.Pages._fold = lambda *_: os._exit(9)
with database.writing() as sql:
    sql.execute("UPDATE memories SET position = position + 1")
    if sys.argv[2] == "after sqlite copied the log":
        numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)"
        sql.execute(f"CREATE TABLE large AS {numbers} SELECT randomblob(4000) FROM n")
    if sys.argv[2] == "before the commit":
        sql.execute("PRAGMA cache_size = 1")
        sql.execute("UPDATE memories SET position = position + 1")
        os._exit(9)
os._exit(9)
"""


MOMENTS = ("before the commit", "before the checksums", "after sqlite copied the log", "later")


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_writer_leaves_no_damage(filled: Path, change_of: Make, moment: str) -> None:
    command = [sys.executable, "-c", KILLED, str(filled), moment]
    assert subprocess.run(command, check=False).returncode == 9
    assert filled.with_name("index.db-wal").exists()

    index = Index.open(filled.parent, None)
    (sums,) = index.ask(lambda sql: sql.execute("SELECT sum(position) FROM memories").fetchone())
    assert sums == (0 if moment == "before the commit" else 40)
    index.apply([change_of("late")], now_ns=2)
    index.close()
    assert state(filled) is State.USABLE
    assert not filled.with_name("index-1.db").exists()


def test_a_damaged_head_of_a_frame_is_damage(filled: Path) -> None:
    """SQLite would leave out that transaction and the later ones."""
    command = [sys.executable, "-c", KILLED, str(filled), "later"]
    subprocess.run(command, check=False)
    whole = {path: path.read_bytes() for path in filled.parent.glob("index.db*")}
    log = filled.with_name("index.db-wal")
    data = whole[log]
    for at in (8, 24, 32 + 1, 32 + 16, len(data) - PAGE - 24 + 5):
        for path, content in whole.items():
            path.write_bytes(content)
        log.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert state(filled) is State.UNUSABLE, at


def test_pages_that_sqlite_copies_from_the_log_are_sound(filled: Path, change_of: Make) -> None:
    writer, reader = Index.open(filled.parent, None), Index.open(filled.parent, None)
    for number in range(12):
        change = change_of(f"big{number}", f"{number} " + "long text here " * 9000)
        writer.apply([change], now_ns=number)
        assert reader.count(Filter()) == 41 + number
    assert filled.stat().st_size > 500 * PAGE  # The log reached 1,000 pages, and was copied.
    writer.close()
    assert reader.count(Filter()) == 52
    reader.close()

    assert state(filled) is State.USABLE


def test_silent_damage_of_a_large_index_is_found_within_the_period(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silent: the stamp of the file is that which mind left."""
    monkeypatch.setattr(pages, "_SMALL", 0)
    assert state(filled) is State.USABLE
    monkeypatch.setattr(Stamp, "of", lambda status: Stamp(status.st_size, 1, 1, 1))
    assert state(filled) is State.USABLE  # Notes this stamp.
    with filled.open("r+b") as file:
        file.seek(5 * PAGE + 100)
        file.write(b"x")

    assert state(filled) is State.USABLE
    monkeypatch.setattr(pages, "_PERIOD_NS", 0)
    assert state(filled) is State.UNUSABLE


def test_a_very_large_index_is_compared_in_portions(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_SMALL", 0)
    monkeypatch.setattr(Stamp, "of", lambda status: Stamp(status.st_size, 1, 1, 1))
    assert state(filled) is State.USABLE
    monkeypatch.setattr(pages, "_PERIOD_NS", 0)
    monkeypatch.setattr(pages, "_PORTION", 2 * PAGE)
    at = filled.stat().st_size // PAGE - 1
    with filled.open("r+b") as file:
        file.seek(at * PAGE + 100)
        file.write(b"x")

    commands = next(number for number in range(100) if state(filled) is State.UNUSABLE)
    assert commands == at // 2


def test_a_file_stays_open_as_long_as_a_part_needs_it(filled: Path) -> None:
    first, second = pages.Held.of(filled), pages.Held.of(filled)
    assert first.descriptor == second.descriptor
    descriptor = first.descriptor
    del first
    os.fstat(descriptor)
    del second
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_use_that_begins_while_the_last_one_ends_has_an_open_file(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = os.close
    begun: list[pages.Held] = []

    def closing(descriptor: int) -> None:
        if not begun:
            begun.append(pages.Held.of(filled))
        close(descriptor)

    held = pages.Held.of(filled)
    monkeypatch.setattr(os, "close", closing)
    del held
    monkeypatch.undo()
    os.fstat(begun[0].descriptor)


def test_a_use_that_ends_while_another_begins_leaves_the_file_open(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [pages.Held.of(filled)]

    class Collecting(dict[tuple[int, int], list[int]]):
        def get(self, *args: Any) -> Any:
            uses = super().get(*args)
            held.clear()  # A garbage collection may do so after any call.
            return uses

    monkeypatch.setattr(pages.Held, "_all", Collecting(pages.Held._all))
    again = pages.Held.of(filled)
    held.clear()
    os.fstat(again.descriptor)


LOCKED = """
import sys
from pathlib import Path
from mimo.index.index import Index
from mimo.memory.model import Filter
from tests.index.conftest import HashEmbedder
index = Index.open(Path(sys.argv[1]), None)
print(index.count(Filter()))
index.close()
"""


def test_checking_an_open_index_keeps_sqlites_locks(filled: Path, change_of: Make) -> None:
    """If it closed the file, SQLite of another process would take the log for unused."""
    index = Index.open(filled.parent, None)
    index.apply([change_of("a")], now_ns=2)
    assert state(filled) is State.USABLE
    command = [sys.executable, "-c", LOCKED, str(filled.parent)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "41"
    log = filled.with_name("index.db-wal")

    assert log.exists()
    index.apply([change_of("b")], now_ns=3)
    assert index.count(Filter()) == 42
    index.close()
    assert state(filled) is State.USABLE
