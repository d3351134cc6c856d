"""Caches: damage leads to an empty file, and nothing else does; threads and processes share one."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Barrier, Thread
from unittest.mock import patch

import pytest

from mimo.data import Schema, disk
from mimo.data.cache import Cache, CacheBusy, CacheDamaged, Transaction
from mimo.data.sqlite import Connection, files_of
from mimo.errors import Misread, StorageFailed
from tests.redteam.hostile import plant_journal

SCHEMA = Schema("words", 3, "CREATE TABLE words (word TEXT PRIMARY KEY, length INTEGER NOT NULL)")


def opened(folder: Path | None, owner: str = "me", schema: Schema = SCHEMA) -> Cache:
    cache = Cache(folder, schema, owner=owner)
    cache.check_folder()
    with cache.begin(reads=False):
        return cache


def put(cache: Cache, *words: str) -> None:
    rows = [(word, len(word)) for word in words]
    cache.attempt(
        cache.writing, lambda sql: sql.executemany("INSERT INTO words VALUES (?, ?)", rows)
    )


def words_in(sql: Connection) -> list[str]:
    return [word for (word,) in sql.execute("SELECT word FROM words ORDER BY word")]


def words(cache: Cache) -> list[str]:
    return cache.attempt(cache.reading, words_in)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with opened_and_closed(tmp_path) as cache:
        put(cache, "tea", "milk")
        cache.compact()
    return tmp_path


class opened_and_closed:  # noqa: N801 - a context manager
    def __init__(self, folder: Path) -> None:
        self._cache = opened(folder)

    def __enter__(self) -> Cache:
        return self._cache

    def __exit__(self, *_: object) -> None:
        self._cache.close()


def test_cache_keeps_what_was_written(folder: Path) -> None:
    assert words(opened(folder)) == ["milk", "tea"]
    assert [path.name for path in folder.glob("words-v3-*.db")] == [SCHEMA.path(folder, "me").name]


@pytest.mark.parametrize(("written", "stays"), [(100, True), (400_000, False)])
def test_last_process_leaves_a_short_log_and_no_long_one(
    folder: Path, written: int, stays: bool
) -> None:
    with opened_and_closed(folder) as cache:
        put(cache, "tea" * written)
    assert files_of(SCHEMA.path(folder, "me"))[1].exists() is stays
    assert len(words(opened(folder))) == 3


def test_cache_in_memory_has_no_file() -> None:
    cache = opened(None)
    put(cache, "tea")
    cache.close()
    assert words(cache) == ["tea"]
    assert cache.size() == 0


def test_failed_write_changes_nothing(folder: Path) -> None:
    cache = opened(folder)

    def change(sql: Connection) -> None:
        sql.execute("DELETE FROM words")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cache.attempt(cache.writing, change)
    assert words(cache) == ["milk", "tea"]


def test_other_schemas_and_later_files_stay(folder: Path) -> None:
    later, earlier = SCHEMA._replace(number=4), SCHEMA._replace(number=2)
    put(opened(folder, schema=earlier), "of 2")
    assert words(opened(folder)) == ["milk", "tea"]
    put(opened(folder, schema=later), "of 4")
    assert not earlier.path(folder, "me").exists()
    assert words(opened(folder)) == []
    assert words(opened(folder, schema=later)) == ["of 4"]


def test_file_of_another_owner_is_removed_unopened(folder: Path) -> None:
    assert words(opened(folder, owner="you")) == []
    assert [*folder.glob("words*.db")] == [SCHEMA.path(folder, "you")]


@pytest.mark.attack("planted database deletes a file")
@pytest.mark.parametrize("owner", ["me", "you", None])
def test_journal_that_names_a_file_deletes_nothing(
    folder: Path, tmp_path: Path, owner: str | None
) -> None:
    path = folder / "words-v3.db" if owner is None else SCHEMA.path(folder, owner)
    if not path.exists():
        path.write_bytes(SCHEMA.path(folder, "me").read_bytes())
    plant_journal(path, deletes=(precious := tmp_path / "precious"))
    with opened(folder).reading() as sql:
        assert sql.execute("SELECT count(*) FROM words").fetchone() == (2,)
    SCHEMA.path(folder, "me").unlink()

    assert words(opened(folder)) == []

    assert precious.read_text() == "precious"
    names = {
        path.name for path in folder.glob("words*") if path.suffix not in (".db-wal", ".db-shm")
    }
    assert names == {SCHEMA.path(folder, "me").name}


def test_parts_of_an_interrupted_replacement_are_removed(folder: Path) -> None:
    (folder / ".mind-7-abc.tmp").mkdir()
    (folder / ".mind-7-abc.tmp" / "part").touch()
    (folder / ".mind-8-abc.tmp-journal").touch()
    SCHEMA.path(folder, "me").unlink()
    opened(folder).close()
    assert not [*folder.glob(".mind-*")]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def noise(path: Path) -> None:
    path.write_bytes(random.Random(7).randbytes(path.stat().st_size))


def folder_in_place(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").touch()


def link_in_place(path: Path) -> None:
    target = path.rename(path.with_suffix(".moved"))
    path.symlink_to(target)


def other_database(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE words (word)")
    connection.close()


def lost_table(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE words")
    connection.close()


def lost_column(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE words DROP COLUMN length")
    connection.close()


DAMAGES = [cut, empty, noise, folder_in_place, link_in_place, other_database, lost_table]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_open", [False, True])
def test_damaged_file_is_replaced_by_an_empty_one(
    folder: Path, damage: Callable[[Path], None], is_open: bool
) -> None:
    cache = opened(folder)
    identity = cache.identity
    if not is_open:
        cache.close()
        cache = Cache(folder, SCHEMA, owner="me")
    damage(SCHEMA.path(folder, "me"))
    assert words(cache) == []
    assert cache.identity != identity
    put(cache, "coffee")
    assert words(opened(folder)) == ["coffee"]


def test_lost_column_is_noticed_by_the_write_that_needs_it(folder: Path) -> None:
    lost_column(SCHEMA.path(folder, "me"))
    cache = opened(folder)
    put(cache, "coffee")
    assert words(cache) == ["coffee"]


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["noise", "folder", "link"])
def test_damaged_log_never_fails_a_query(folder: Path, suffix: str, kind: str) -> None:
    beside = SCHEMA.path(folder, "me").with_name(SCHEMA.path(folder, "me").name + suffix)
    elsewhere = folder / "elsewhere"
    elsewhere.write_bytes(b"of the user")
    if kind == "folder":
        beside.mkdir()
    elif kind == "link":
        beside.symlink_to(elsewhere)
    else:
        beside.write_bytes(random.Random(7).randbytes(10_000))
    cache = opened(folder)
    assert words(cache) in ([], ["milk", "tea"])
    put(cache, "coffee")
    assert "coffee" in words(cache)
    assert elsewhere.read_bytes() == b"of the user"


def test_removed_file_is_noticed(folder: Path) -> None:
    cache = opened(folder)
    assert words(cache) == ["milk", "tea"]
    for path in files_of(SCHEMA.path(folder, "me")):
        path.unlink(missing_ok=True)
    assert words(cache) == []
    shutil.rmtree(folder)
    assert words(cache) == []


def test_replacement_by_another_process_is_noticed(folder: Path, tmp_path: Path) -> None:
    cache = opened(folder)
    assert words(cache) == ["milk", "tea"]
    other = opened(tmp_path / "other")
    put(other, "coffee")
    other.compact()
    other.close()
    SCHEMA.path(tmp_path / "other", "me").rename(SCHEMA.path(folder, "me"))
    assert words(cache) == ["coffee"]


def test_a_cache_is_compacted_without_waiting_for_a_reader(folder: Path) -> None:
    cache, began = opened(folder), time.monotonic()
    with opened(folder).reading() as sql:
        words_in(sql)
        put(cache, "coffee")
        with pytest.raises(CacheBusy):
            cache.compact(0.0)
    assert time.monotonic() - began < disk.WAIT_SECONDS / 2
    assert words(cache) == ["coffee", "milk", "tea"]


def test_misread_value_counts_as_damage(folder: Path) -> None:
    cache = opened(folder)
    with pytest.raises(CacheDamaged, match="checksum"), cache.reading():
        raise Misread("checksum")
    assert words(cache) == []


BUGS = [KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, OSError]


@pytest.mark.parametrize("kind", [*BUGS, sqlite3.IntegrityError, sqlite3.OperationalError])
@pytest.mark.parametrize("writes", [False, True])
def test_bug_in_a_query_removes_nothing_and_is_raised(
    folder: Path, kind: type[Exception], writes: bool
) -> None:
    cache, runs, bug = opened(folder), 0, kind("a bug")

    def query(_: Connection) -> None:
        nonlocal runs
        runs += 1
        raise bug

    with pytest.raises((kind, StorageFailed), match="a bug") as raised:
        cache.attempt(cache.writing if writes else cache.reading, query)
    assert bug in (raised.value, raised.value.__cause__)
    assert not isinstance(raised.value, CacheDamaged)
    assert runs == 1
    assert words(cache) == ["milk", "tea"]


CODES = ["BUSY", "LOCKED", "FULL", "READONLY", "IOERR", "CANTOPEN", "PERM", "NOMEM"]


@pytest.mark.parametrize("name", CODES)
def test_failure_of_the_system_removes_nothing(folder: Path, name: str) -> None:
    cache, error = opened(folder), sqlite3.OperationalError("no such table: words")
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{name}")

    def query(_: Connection) -> None:
        raise error

    with pytest.raises(StorageFailed) as raised:
        cache.attempt(cache.reading, query)
    assert not isinstance(raised.value, CacheDamaged)
    assert words(cache) == ["milk", "tea"]


def test_mistake_in_sql_removes_nothing(folder: Path) -> None:
    cache = opened(folder)
    for query in ("SELEC 1", "SELECT missing(word) FROM words", "INSERT INTO words SELECT 1, NULL"):
        with pytest.raises(StorageFailed) as raised, cache.reading() as sql:
            sql.execute(query)
        assert not isinstance(raised.value, CacheDamaged)
    assert words(cache) == ["milk", "tea"]


@pytest.mark.parametrize("length", ["'three'", "x'03'", "1.5"])
def test_error_that_a_damaged_row_causes_counts_as_damage(folder: Path, length: str) -> None:
    with closing(sqlite3.connect(SCHEMA.path(folder, "me"))) as connection, connection:
        connection.execute(f"UPDATE words SET length = {length}")
    lengths = []

    def query(sql: Connection) -> int:
        lengths.append(sql.execute("SELECT length FROM words").fetchall())
        return sum(len(range(length)) for (length,) in lengths[-1])

    cache = opened(folder)
    assert cache.attempt(cache.reading, query) == 0
    assert [*map(len, lengths)] == [2, 0]


def test_error_that_a_damaged_table_causes_counts_as_damage(folder: Path) -> None:
    path, orphan = SCHEMA.path(folder, "me"), "x" * 3_000
    put(opened(folder), *(f"{number}{orphan}" for number in range(9)))
    Cache(folder, SCHEMA, owner="me").compact()
    with closing(sqlite3.connect(path)) as connection:  # A page that no table has.
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE type = 'index'")
        connection.commit()
    with pytest.raises(KeyError), opened(folder).reading(suspects=()):
        raise KeyError  # It is of other work.
    with pytest.raises(CacheDamaged), opened(folder).reading():
        raise KeyError
    assert words(opened(folder)) == []


def test_text_that_sqlite_cannot_hold_is_no_damage(folder: Path) -> None:
    cache = opened(folder)
    with pytest.raises(UnicodeEncodeError), cache.reading() as sql:
        sql.execute("SELECT ?", ("\ud800",))
    assert words(cache) == ["milk", "tea"]


def test_error_of_a_function_in_sql_is_no_damage(folder: Path) -> None:
    def failing(_: str) -> bool:
        raise StorageFailed("approvals can't be read")

    cache = Cache(
        folder, SCHEMA, owner="me", prepare=lambda sql: sql.add_function("approved", 1, failing)
    )
    with pytest.raises(StorageFailed, match="approvals"), cache.reading() as sql:
        sql.execute("SELECT approved(word) FROM words").fetchall()
    assert words(cache) == ["milk", "tea"]


def test_query_that_always_fails_ends_with_its_error(folder: Path) -> None:
    cache = opened(folder)
    with pytest.raises(CacheDamaged):
        cache.attempt(cache.reading, lambda sql: sql.execute("SELECT * FROM another").fetchall())


def test_busy_writer_removes_nothing(folder: Path) -> None:
    cache, other = opened(folder), opened(folder)
    with other.writing() as sql:
        sql.execute("INSERT INTO words VALUES ('coffee', 6)")
        with pytest.raises(CacheBusy), cache.writing(0.0):
            pass
        assert words(cache) == ["milk", "tea"]
    assert words(cache) == ["coffee", "milk", "tea"]


def test_full_disk_removes_nothing(folder: Path) -> None:
    cache = opened(folder)

    def fill(sql: Connection) -> None:
        (pages,) = sql.execute("PRAGMA page_count").fetchone()
        sql.execute(f"PRAGMA max_page_count = {pages}")
        sql.executemany("INSERT INTO words VALUES (?, 1)", [(f"{n} " * 500,) for n in range(100)])

    with pytest.raises(StorageFailed, match="full"):
        cache.attempt(cache.writing, fill)
    assert words(opened(folder)) == ["milk", "tea"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_cannot_be_written_removes_nothing(folder: Path) -> None:
    folder.chmod(0o500)
    try:
        with pytest.raises(StorageFailed, match="can't be written"):
            opened(folder)
    finally:
        folder.chmod(0o700)
    assert words(opened(folder)) == ["milk", "tea"]


def test_threads_that_find_damage_at_once_replace_the_file_once(folder: Path) -> None:
    cache = opened(folder)
    noise(SCHEMA.path(folder, "me"))
    start = Barrier(8)
    identities: list[str] = []

    def read() -> None:
        start.wait()
        assert words(cache) == []
        identities.append(cache.identity)

    threads = [Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(identities) == 8
    assert len(set(identities)) == 1


PROGRAM = """
    import sys
    from pathlib import Path
    from mimo.data import Schema
    from mimo.data.cache import Cache

    schema = Schema("words", 3, "CREATE TABLE words (word TEXT PRIMARY KEY, length INTEGER)")
    cache = Cache(Path(sys.argv[1]), schema, owner="me")
    for number in range(30):
        word = f"{sys.argv[2]}-{number}"
        insert = "INSERT INTO words VALUES (?, 1)"
        cache.attempt(cache.writing, lambda sql: sql.execute(insert, (word,)))
    cache.close()
"""


def test_processes_write_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path)]
    started = [subprocess.Popen([*command, name]) for name in ("a", "b", "c")]
    assert [process.wait() for process in started] == [0, 0, 0]
    assert len(words(opened(tmp_path))) == 90


def test_compacted_file_has_no_removed_text(folder: Path) -> None:
    cache = opened(folder)
    cache.attempt(cache.writing, lambda sql: sql.execute("DELETE FROM words WHERE word = 'milk'"))
    cache.compact()
    data = b"".join(
        path.read_bytes() for path in files_of(SCHEMA.path(folder, "me")) if path.exists()
    )
    assert b"milk" not in data
    assert b"tea" in data


def test_private_cache_is_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / disk.STORE / ".index"
    (tmp_path / disk.STORE).mkdir()
    put(opened(folder), "tea")
    for path in files_of(SCHEMA.path(folder, "me")):
        assert not path.exists() or path.stat().st_mode & 0o077 == 0


# One transaction of several reads.


def test_all_reads_of_a_transaction_see_one_state(folder: Path) -> None:
    with opened_and_closed(folder) as cache, opened_and_closed(folder) as writer:
        transaction = Transaction(cache)
        with cache.using(transaction):
            assert words(cache) == ["milk", "tea"]
            put(writer, "rice")
            assert words(cache) == ["milk", "tea"]
            transaction.end()
            assert words(cache) == ["milk", "rice", "tea"]
        transaction.end()


def test_a_change_by_the_same_thread_ends_the_transaction(folder: Path) -> None:
    with opened_and_closed(folder) as cache:
        transaction = Transaction(cache)
        with cache.using(transaction):
            assert words(cache) == ["milk", "tea"]
            put(cache, "rice")
            assert words(cache) == ["milk", "rice", "tea"]
        transaction.end()


def test_another_thread_is_not_in_the_transaction(folder: Path) -> None:
    with opened_and_closed(folder) as cache:
        transaction, seen = Transaction(cache), list[list[str]]()

        def write_and_read() -> None:
            put(cache, "rice")
            seen.append(words(cache))

        with cache.using(transaction):
            assert words(cache) == ["milk", "tea"]
            thread = Thread(target=write_and_read)
            thread.start()
            thread.join()
            assert words(cache) == ["milk", "tea"]
        transaction.end()
    assert seen == [["milk", "rice", "tea"]]


def test_damage_within_a_transaction_leads_to_an_empty_file(folder: Path) -> None:
    with opened_and_closed(folder) as cache:
        transaction = Transaction(cache)
        with transaction.reading() as sql:
            identity = sql.identity
        with pytest.raises(CacheDamaged), transaction.reading():
            raise Misread("a row")
        with transaction.reading() as sql:
            assert sql.identity != identity
            assert words_in(sql) == []
        transaction.end()


def test_a_transaction_in_memory_sees_each_change() -> None:
    cache = opened(None)
    transaction = Transaction(cache)
    with cache.using(transaction):
        assert words(cache) == []
        put(cache, "tea")
        assert words(cache) == ["tea"]


def test_an_open_transaction_does_not_keep_others_from_writing(folder: Path) -> None:
    with opened_and_closed(folder) as cache, opened_and_closed(folder) as writer:
        transaction = Transaction(cache)
        with transaction.reading() as sql:
            assert words_in(sql) == ["milk", "tea"]
        put(writer, "rice")
        with patch.object(disk, "WAIT_SECONDS", 0.1), pytest.raises(CacheBusy):
            writer.compact()
        transaction.end()
        writer.compact()


def test_a_removed_store_does_not_come_back_with_its_index(tmp_path: Path) -> None:
    store = tmp_path / ".mind"
    store.mkdir()
    cache = opened(store / ".index")
    put(cache, "tea")
    shutil.rmtree(store)

    with pytest.raises(StorageFailed):
        put(cache, "milk")
    assert not store.exists()
