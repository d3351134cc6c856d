import errno
import gc
import os
import sqlite3
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import Mock

import pytest

from mimo.errors import IndexNotReady, Invalid, StorageFailed
from mimo.index import database, glance, schema
from mimo.index.database import Database, IndexBusy, IndexDamaged
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.memory.model import Filter

Make = Callable[..., Change]

CRASHED_AT = 4096 * 3


def files(folder: Path) -> list[str]:
    every = (path.name for path in folder.glob("index*"))
    return sorted(name for name in every if not name.endswith("-sums"))


def copied(folder: Path) -> None:
    """Copies the index as the next generation."""
    for suffix in ("", "-sums"):
        (folder / f"index-1.db{suffix}").write_bytes((folder / f"index.db{suffix}").read_bytes())


def filled(folder: Path, change_of: Make) -> None:
    index = Index.open(folder, None)
    index.apply([change_of(f"m{number}", "word " * 300) for number in range(40)], now_ns=1)
    index.close()


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:CRASHED_AT])


def of_older_format(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("UPDATE meta SET value = ? WHERE name = 'format'", (schema.FORMAT - 1,))
    connection.commit()
    connection.close()


def without_tables(file: Path) -> None:
    file.unlink()
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE other (x)")
    connection.close()


UNUSABLE: dict[str, Callable[[Path], object]] = {
    "garbage": lambda file: file.write_bytes(b"\x00\xffnot a database" * 1000),
    "empty": lambda file: file.write_bytes(b""),
    "cut short": truncated,
    "older format": of_older_format,
    "another program's": without_tables,
}


@pytest.mark.parametrize("spoil", UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_file_is_replaced_by_an_empty_index(
    folder: Path, change_of: Make, spoil: Callable[[Path], object]
) -> None:
    filled(folder, change_of)
    spoil(folder / "index.db")
    index = Index.open(folder, None)

    assert index.stamps() == {}
    assert index.count(Filter()) == 0
    assert index.stats().generation == 1
    index.apply([change_of("a")], now_ns=1)
    index.close()

    again = Index.open(folder, None)
    assert again.count(Filter()) == 1
    again.close()
    assert files(folder) == ["index-1.db"]


def test_an_index_of_a_newer_format_is_left_alone(folder: Path, change_of: Make) -> None:
    filled(folder, change_of)
    connection = sqlite3.connect(folder / "index.db")
    connection.execute("UPDATE meta SET value = ? WHERE name = 'format'", (schema.FORMAT + 1,))
    connection.commit()
    connection.close()
    for _ in range(2):
        index = Index.open(folder, None)
        assert index.stats().generation == 1
        index.close()

    assert files(folder) == ["index-1.db", "index.db"]


def test_two_threads_can_make_the_same_index(
    folder: Path, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, opened = schema.create, list[Index]()

    def slow(connection: sqlite3.Connection, owner: str = "") -> None:
        create(connection, owner)
        monkeypatch.setattr(schema, "create", create)
        other = Thread(target=lambda: opened.append(Index.open(folder, None)))
        other.start()
        other.join()

    monkeypatch.setattr(schema, "create", slow)
    opened.append(Index.open(folder, None))
    first, second = opened
    first.apply([change_of("tea")], now_ns=1)
    assert second.totals().memories == 1
    assert not [*folder.glob("draft-*")]


def test_drafts_of_killed_processes_are_removed(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    old, new = folder / "draft-1-1-0.db", folder / "draft-1-2-0.db-sums"
    for path in (old, new):
        path.touch()
    os.utime(old, (1, 1))
    Index.open(folder, None).close()
    assert not old.exists()
    assert new.exists()


def test_the_index_is_kept_between_runs(folder: Path, change_of: Make) -> None:
    filled(folder, change_of)
    index = Index.open(folder, None)

    assert len(index.stamps()) == index.count(Filter()) == 40
    assert index.stats().generation == 0
    assert index.stats().bytes > 0
    index.close()


def half_overwritten(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + b"\xff" * (len(content) // 2))


def test_damage_that_shows_only_in_use_is_reported_once(folder: Path, change_of: Make) -> None:
    filled(folder, change_of)
    index = Index.open(folder, None)
    half_overwritten(folder / "index.db")
    with pytest.raises(IndexDamaged):
        index.records(Filter())

    assert index.stamps() == {}
    index.apply([change_of("a")], now_ns=1)
    assert index.count(Filter()) == 1
    index.close()


def test_damage_met_while_reading_stamps_empties_the_index(folder: Path, change_of: Make) -> None:
    filled(folder, change_of)
    index = Index.open(folder, None)
    assert len(index.stamps()) == 40
    for file in folder.glob("index.db-*"):
        file.unlink()
    (folder / "index.db").write_bytes(b"garbage" * 1000)

    assert index.stamps() == {}
    assert index.count(Filter()) == 0
    index.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt("SIGTERM"), PermissionError(), Invalid("no")])
def test_an_error_of_approvals_is_not_damage(
    folder: Path, index: Index, change_of: Make, error: BaseException
) -> None:
    index.apply([change_of("a")], now_ns=1)
    index.approvals = Mock(side_effect=error)

    with pytest.raises(type(error)) as raised:
        index.count(Filter(approved=True))

    assert raised.value is error
    index.approvals = lambda: lambda _: True
    assert index.count(Filter(approved=True)) == 1
    assert files(folder)[0] == "index.db"
    assert index.stats().generation == 0


@pytest.mark.parametrize("name", ["approved", "claim", "unpacked"])
def test_an_interruption_within_a_function_of_a_query_is_not_damage(
    folder: Path, change_of: Make, name: str
) -> None:
    filled(folder, change_of)
    data = database.open_newest(folder)

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
    data = database.open_newest(folder)

    with pytest.raises(IndexDamaged), data.reading() as sql:
        sql.execute("SELECT unpacked(x'ff') FROM memories").fetchall()
    data.close()


def test_a_full_disk_is_a_storage_error_and_changes_nothing(
    folder: Path, index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.apply([change_of("a")], now_ns=1)
    connect = Database._connect

    def limited(self: Database) -> sqlite3.Connection:
        connection = connect(self)
        connection.execute("PRAGMA max_page_count = 60")
        return connection

    monkeypatch.setattr(Database, "_connect", limited)
    full = Index.open(folder, None)
    with pytest.raises(StorageFailed, match="full") as raised:
        full.apply([change_of(f"m{n}", "word " * 5000) for n in range(20)], now_ns=2)

    assert "disk" in raised.value.hint
    assert full.count(Filter()) == index.count(Filter()) == 1
    full.close()


@pytest.mark.parametrize("name", ["index.db", "index.db-sums"])
def test_an_index_is_kept_if_too_many_files_are_open(
    folder: Path, change_of: Make, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    filled(folder, change_of)
    opened = os.open

    def full(path: Any, *args: Any, **named: Any) -> int:
        if os.fspath(path) == str(folder / name):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return opened(path, *args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        with pytest.raises(StorageFailed, match="Too many open files") as raised:
            Index.open(folder, None)
    index = Index.open(folder, None)

    assert not isinstance(raised.value, IndexDamaged)
    assert index.count(Filter()) == 40
    assert database.generations(folder) == [0]
    index.close()


def test_an_old_generation_stays_while_a_process_uses_it(folder: Path, change_of: Make) -> None:
    filled(folder, change_of)
    user = Index.open(folder, None)
    assert user.count(Filter()) == 40
    copied(folder)

    newer = Index.open(folder, None)
    assert files(folder)[:2] == ["index-1.db", "index-1.db-shm"]
    assert (folder / "index.db").exists()
    assert user.count(Filter()) == 40
    newer.close()
    user.close()

    Index.open(folder, None).close()
    assert files(folder) == ["index-1.db"]


def test_a_long_lived_process_moves_on_to_the_newer_generation(
    folder: Path, change_of: Make
) -> None:
    filled(folder, change_of)
    server = Index.open(folder, None)
    copied(folder)

    assert len(server.stamps()) == 40
    assert server.stats().generation == 1
    server.close()


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

    with pytest.raises(StorageFailed, match="can't be written"):
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
class VeryMany(list[Change]):
    """Changes that count as very many, and note the indexes of the tables while they are read."""

    def __init__(self, index: Index, changes: Iterable[Change], *, ends: bool = True) -> None:
        super().__init__(changes)
        self.asked, self.ends, self.seen = index, ends, list[set[str]]()

    def __iter__(self) -> Iterator[Change]:
        for change in super().__iter__():
            yield change
            self.seen.append(indexes(self.asked))
        if not self.ends:
            raise KeyboardInterrupt


def indexes(index: Index) -> set[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'index'"
    return {name for (name,) in index.ask(lambda sql: sql.execute(query).fetchall())}


@pytest.mark.parametrize("ends", [True, False])
def test_very_many_changes_are_written_before_the_indexes_of_the_tables(
    index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    monkeypatch.setattr("mimo.index.index._VERY_MANY", 3)
    every = indexes(index)
    changes = VeryMany(index, map(change_of, "abcd"), ends=ends)
    with nullcontext() if ends else pytest.raises(KeyboardInterrupt):
        index.apply(changes, now_ns=1)
    assert all(names < every for names in changes.seen)
    assert (indexes(index) == every) == ends
    generation = index.stats().generation
    # As a hook reads it meanwhile.
    facts, *others = glance.ask(index, lambda g: (g.facts(5), g.kept(5), g.decisions(5)))
    assert len(facts) == index.count(Filter())
    assert others == [[], []]
    assert index.stats().generation == generation
    index.compared()
    assert indexes(index) == every
    assert index.compared() is None


def test_a_second_writer_gets_the_reason_for_waiting(
    folder: Path, index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.index.database.WRITE_WAIT_SECONDS", 0.0)
    other = Index.open(folder, None)
    with index._data.newest.writing(), pytest.raises(IndexNotReady):
        other.apply([change_of("x")], now_ns=2, wait=0)
    index.apply([change_of("a"), change_of("b")], now_ns=1)
    with index._data.newest.writing(), pytest.raises(IndexBusy):
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
from mimo.disk import Stamp
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
    assert index.stats().generation == 0
    index.close()


def test_an_index_made_by_another_process_meanwhile_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = database.generations
    others: list[Database] = []

    def list_before_another_makes_one(folder: Path, stem: str = "index") -> list[int]:
        numbers = listed(folder, stem)
        monkeypatch.setattr(database, "generations", listed)
        others.append(database.open_newest(folder))
        return numbers

    monkeypatch.setattr(database, "generations", list_before_another_makes_one)

    assert database.open_newest(folder).path == others[0].path == folder / "index.db"


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


class TestClear:
    """A rebuild forgets and fills in one transaction."""

    def test_others_see_the_old_state_until_it_is_filled(
        self, folder: Path, index: Index, change_of: Make
    ) -> None:
        index.apply([change_of("a"), change_of("b")], now_ns=1)
        other = Index.open(folder, None)
        index.clear()

        assert index.stamps() == {}
        assert other.count(Filter()) == 2
        index.apply([change_of("c")], now_ns=2)
        assert other.count(Filter()) == index.count(Filter()) == 1
        assert index.stats().vectors == 1
        other.close()

    def test_a_cleared_index_answers_until_it_is_filled(
        self, index: Index, change_of: Make
    ) -> None:
        index.apply([change_of("a")], now_ns=1)
        index.clear()

        assert index.stamps() == {}
        assert index.count(Filter()) == 1  # Another thread may ask.
        index.apply((), now_ns=2)
        assert index.records(Filter()) == ()
        assert index.stats().units == 0

    def test_the_old_state_is_there_while_the_new_one_is_made(
        self, index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("mimo.index.writing.BATCH", 1)
        index.apply([change_of("a"), change_of("b")], now_ns=1)
        index.clear()
        seen: list[int] = []

        def changes() -> Iterator[Change]:
            yield change_of("c")
            seen.append(index.count(Filter()))
            yield change_of("d")
            seen.append(index.count(Filter()))
            yield change_of("e")

        index.apply(changes(), now_ns=2)

        assert seen == [2, 2]
        assert index.count(Filter()) == 3

    def test_a_failed_rebuild_is_still_pending(self, index: Index, change_of: Make) -> None:
        index.apply([change_of("a"), change_of("b")], now_ns=1)
        index.clear()

        def changes() -> Iterator[Change]:
            yield change_of("c")
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            index.apply(changes(), now_ns=2)

        assert index.stamps() == {}
        index.apply([change_of("c")], now_ns=3)
        assert index.count(Filter()) == 1


def test_a_database_that_was_not_closed_is_freed_with_its_files(
    tmp_path: Path, change_of: Make
) -> None:
    filled(tmp_path, change_of)
    opened = Database(tmp_path / "index.db")
    with opened.reading() as sql:
        assert sql.execute("SELECT count(*) FROM files").fetchone() == (40,)
    alive = weakref.ref(opened)

    del opened
    gc.collect()

    assert alive() is None
