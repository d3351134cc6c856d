import gc
import sqlite3
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from unittest.mock import Mock

import pytest

from mimo.data.cache import CacheBusy, CacheDamaged
from mimo.errors import Invalid, StorageFailed
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.index.schema import SCHEMA, Approvals, open_cache
from mimo.memory.model import Filter

Make = Callable[..., Change]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.db*"))


def filled(folder: Path, change_of: Make) -> None:
    index = Index.open(folder, None)
    index.apply([change_of(f"m{number}", "word " * 300) for number in range(40)], now_ns=1)
    index._tables.compact()  # So that the log has no copy of what a test damages.
    index.close()
    with closing(sqlite3.connect(SCHEMA.path(folder))) as sql:
        sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # Otherwise the log has all pages.


def test_the_index_is_kept_between_runs(folder: Path, change_of: Make) -> None:
    filled(folder, change_of)
    index = Index.open(folder, None)

    assert len(index.stamps()) == index.count(Filter()) == 40
    assert index.stats().bytes > 0
    index.close()


def test_damaged_index_is_filled_from_the_files_and_asked_again(
    folder: Path, change_of: Make
) -> None:
    filled(folder, change_of)
    index = Index.open(folder, None)
    fills = 0

    def fill() -> None:
        nonlocal fills
        fills += 1
        identity = index.begin()
        index.apply([change_of("a"), change_of("b")], now_ns=1)
        index.note_all_compared(identity)

    index.repair = fill
    index.begin()
    SCHEMA.path(folder).write_bytes(b"garbage" * 1000)
    assert index.count(Filter()) == 2
    assert index.is_compared
    assert fills == 1
    index.close()


def test_query_with_a_mistake_fails_with_its_own_error(folder: Path, change_of: Make) -> None:
    filled(folder, change_of)
    index = Index.open(folder, None)
    index.repair = index.begin
    index.begin()

    def mistaken(sql: sqlite3.Connection) -> None:
        raise KeyError("a mistake")

    with pytest.raises(KeyError):
        index.ask(mistaken)
    assert index.in_memory_because is None
    index.close()


def test_index_that_cannot_be_read_at_all_is_made_in_memory(
    folder: Path, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(folder, change_of)
    index = Index.open(folder, None)

    def fill() -> None:
        identity = index.begin()
        index.apply([change_of("a")], now_ns=1)
        index.note_all_compared(identity)

    index.repair = fill
    index.begin()
    failing = Mock(side_effect=StorageFailed("no disk"))
    monkeypatch.setattr(index._tables, "reading", failing)
    assert index.count(Filter()) == 1
    assert index.in_memory_because == "no disk"
    assert failing.call_count == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt("SIGTERM"), PermissionError(), Invalid("no")])
def test_an_error_of_approvals_is_not_damage(
    folder: Path, index: Index, change_of: Make, error: BaseException
) -> None:
    index.apply([change_of("a")], now_ns=1)
    index.approvals.checker = Mock(side_effect=error)

    with pytest.raises(type(error)) as raised:
        index.count(Filter(approved=True))

    assert raised.value is error
    index.approvals.checker = lambda: lambda _: True
    assert index.count(Filter(approved=True)) == 1
    assert files(folder)[0] == SCHEMA.path(folder).name


@pytest.mark.parametrize("name", ["approved", "claim", "unpacked"])
def test_an_interruption_within_a_function_of_a_query_is_not_damage(
    folder: Path, change_of: Make, name: str
) -> None:
    filled(folder, change_of)
    data = open_cache(folder, "", Approvals())

    def ask(add: str) -> None:
        with data.reading() as sql:
            getattr(sql, add)(name, 1, Mock(side_effect=KeyboardInterrupt))
            sql.execute(f"SELECT {name}(id) FROM memories")

    for add in ("add_function", "create_function"):  # The second: before the function's first line.
        with pytest.raises(KeyboardInterrupt):
            ask(add)
    data.close()


def test_a_damaged_text_that_a_query_reads_is_damage(folder: Path, change_of: Make) -> None:
    filled(folder, change_of)
    data = open_cache(folder, "", Approvals())

    with pytest.raises(CacheDamaged), data.reading() as sql:
        sql.execute("SELECT unpacked(x'ff') FROM memories").fetchall()
    data.close()


def test_a_long_lived_process_notices_that_the_index_was_deleted(
    folder: Path, change_of: Make
) -> None:
    filled(folder, change_of)
    server = Index.open(folder, None)
    assert server.count(Filter()) == 40
    for file in folder.iterdir():
        file.unlink()

    assert server.stamps() == {}
    server.apply([change_of("a")], now_ns=1)
    assert server.count(Filter()) == 1
    server.close()


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(StorageFailed, match="can't write to"):
        Index.open(tmp_path / "file" / ".index", None)


def test_a_path_may_have_odd_characters(tmp_path: Path, change_of: Make) -> None:
    folder = tmp_path / "50% off? #1 & 결정"
    filled(folder, change_of)
    index = Index.open(folder, None)

    assert index.count(Filter()) == 40
    index.close()


def test_a_reader_sees_the_batches_that_are_committed_while_a_write_is_under_way(
    index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.index.writing.BATCH", 1)
    index.apply([change_of("a")], now_ns=1)
    seen: list[int] = []

    def changes() -> Iterator[Change]:
        for name in "bcd":
            yield change_of(name)
            seen.append(index.count(Filter()))

    index.apply(changes(), now_ns=2)

    assert seen == [2, 3, 4]
    assert index.count(Filter()) == 4


def test_a_write_that_fails_keeps_the_batches_before_it(
    index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.index.writing.BATCH", 1)
    index.apply([change_of("a")], now_ns=1)

    def changes() -> Iterator[Change]:
        yield change_of("b")
        yield change_of("c")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.apply(changes(), now_ns=2)

    assert list(index.stamps()) == [f".mind/facts/{name}.md" for name in "abc"]
    index.apply([change_of("d")], now_ns=3)
    assert index.count(Filter()) == 4


@pytest.mark.req("003-39")
def test_a_second_writer_gets_the_reason_for_waiting(
    folder: Path, index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.index.index.WAIT_SECONDS", 0.0)
    other = Index.open(folder, None)
    with index._tables.writing(), pytest.raises(CacheBusy):
        other.apply([change_of("x")], now_ns=2, wait=0)
    index.apply([change_of("a"), change_of("b")], now_ns=1)
    with index._tables.writing(), pytest.raises(CacheBusy):
        other.apply([change_of("x")], now_ns=2, wait=0)

    other.apply([change_of("x")], now_ns=3)
    other.close()

    assert index.count(Filter()) == 3


WRITE = """
import sys
import weakref
from datetime import UTC, datetime
from pathlib import Path
from mimo.index.index import Change, Index
from mimo.data.disk import Stamp
from mimo.memory.model import Kind, Memory, Place, Record

index = Index.open(Path(sys.argv[1]), None)
for number in range(40):
    id = f"{sys.argv[2]}_{number}"
    memory = Memory(id=id, type=Kind.FACT, content=id, created=datetime(2026, 1, 1, tzinfo=UTC))
    record = Record(memory=memory, place=Place(path=id + ".md", line=1, digest=""))
    stamp = Stamp(size=1, mtime_ns=1, ctime_ns=1, inode=1)
    index.apply([Change(path=record.place.path, stamp=stamp, records=(record,))], now_ns=1)
index.close()
"""


def test_processes_that_write_at_once_lose_nothing(folder: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITE, str(folder), name]) for name in "abc"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]

    index = Index.open(folder, None)
    assert index.count(Filter()) == 120
    index.close()


def test_threads_share_an_index(index: Index, change_of: Make) -> None:
    def write(name: str) -> None:
        for number in range(10):
            index.apply([change_of(f"{name}{number}")], now_ns=1)
            counts.append(index.count(Filter()))

    counts: list[int] = []
    threads = [Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(counts) == 30
    assert index.count(Filter()) == 30


class TestInMemory:
    """An index that is kept nowhere serves where no folder can be written."""

    def test_it_answers_as_any_other(self, change_of: Make) -> None:
        index = Index.in_memory(None)
        index.apply([change_of("a", "alpha"), change_of("b", "beta")], now_ns=1)

        assert len(index.stamps()) == 2
        assert index.count(Filter()) == 2
        assert index.stats().bytes == 0
        index.close()

    def test_it_outlasts_close_for_a_call_that_still_uses_it(self, change_of: Make) -> None:
        index = Index.in_memory(None)
        index.apply([change_of("a", "alpha")], now_ns=1)
        index.close()

        assert index.totals().memories == 1

    def test_threads_take_turns(self, change_of: Make) -> None:
        index = Index.in_memory(None)
        threads = [
            Thread(target=index.apply, args=([change_of(name)],), kwargs={"now_ns": 1})
            for name in "abcdef"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert index.count(Filter()) == 6
        index.close()


def test_discarded_index_is_empty_for_all_processes(
    folder: Path, index: Index, change_of: Make
) -> None:
    index.apply([change_of("a"), change_of("b")], now_ns=1)
    other = Index.open(folder, None)
    assert other.count(Filter()) == 2
    identity = other.file
    index.discard()

    assert index.stamps() == {}
    assert other.count(Filter()) == 0
    index.apply([change_of("c")], now_ns=2)
    index.note_all_compared(index.begin())
    assert other.count(Filter()) == index.count(Filter()) == 1
    assert other.file != identity
    other.close()


def test_index_that_was_not_closed_is_freed_with_its_files(tmp_path: Path, change_of: Make) -> None:
    filled(tmp_path, change_of)
    opened = Index.open(tmp_path, None)
    assert opened.count(Filter(approved=True)) == 40
    alive = weakref.ref(opened._tables)

    del opened
    gc.collect()

    assert alive() is None
