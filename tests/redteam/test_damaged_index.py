"""A damaged index is detected and rebuilt: its answers are those of a fresh one."""

import re
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from itertools import cycle
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest

from mimo.commands import all_commands
from mimo.commands.invoke import Caller, invoke
from mimo.commands.spec import Surface
from mimo.errors import MindError, StorageFailed
from mimo.features.edges import sources
from mimo.features.search.commands import search
from mimo.features.upkeep.checks import doctor
from mimo.features.upkeep.indexing import index
from mimo.index import catalog, database
from mimo.index.database import Database, IndexDamaged
from mimo.index.embedding.encoder import Encoder
from mimo.index.index import Index
from mimo.index.vectors import Vectors
from mimo.memory.model import Filter
from mimo.mind import Mind
from mimo.operations import refresh
from mimo.store import projects
from mimo.store.locks import holding

DAMAGE = "damaged index stops or misleads a search"
OTHERS = "another process's indexing blocks a search"
QUERIES = ("limits of the interface", "who decides about tea", "rare words", "cold beverage")

PERSON = Caller(surface=Surface.CLI)

Record = Callable[[str, object], None]


_vectors: dict[str, bytes] = {}


@pytest.fixture(autouse=True)
def _texts_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage is the subject here; encoding the same texts again would only cost time."""
    encode_many = Encoder.encode_many

    def remembered(self: Encoder, texts: Sequence[str]) -> list[bytes]:
        new = [text for text in dict.fromkeys(texts) if text not in _vectors]
        _vectors.update(zip(new, encode_many(self, new), strict=True))
        return [_vectors[text] for text in texts]

    monkeypatch.setattr(Encoder, "encode_many", remembered)


@pytest.fixture
def filled(mind: Mind) -> Mind:
    """A store of 60 memories whose index is closed."""
    folder = mind.folder / "facts"
    folder.mkdir(exist_ok=True)
    for number in range(60):
        words = ("tea", "limit", "interface", "decision", "word")[number % 5]
        text = f"Memory {number} says the {words} of team {number * 7 % 13} is {number * 31 % 17}\n"
        (folder / f"n{number}.md").write_text(text)
    answers(mind)
    mind.close()
    return mind


def answers(mind: Mind) -> list[object]:
    return [search(mind, query).results for query in QUERIES]


def damaged_at(path: Path, places: int) -> Iterator[None]:
    """Yields after each change of the file: bytes flipped at some place, or two pages swapped."""
    data = path.read_bytes()
    page = 4096
    for number in range(places):
        at = (number * 2_654_435_761) % len(data)
        bad = bytearray(data)
        bad[at : at + 16] = bytes(byte ^ 0xFF for byte in bad[at : at + 16])
        path.write_bytes(bad)
        yield
    pages = len(data) // page
    for number in range(min(places, pages - 1)):
        first, two = number * page, (number + 1) * page
        bad = bytearray(data)
        bad[first : first + page], bad[two : two + page] = (
            data[two : two + page],
            data[first : first + page],
        )
        path.write_bytes(bad)
        yield
    for share in (0, 1, 2, 3):
        path.write_bytes(data[: len(data) * share // 4])
        yield


@pytest.mark.attack(DAMAGE)
@pytest.mark.parametrize("name", ["vectors.db", "vectors-*.rows"])
def test_damaged_vectors_are_made_again(filled: Mind, record_property: Record, name: str) -> None:
    folder = filled.folder / ".index"
    before = answers(filled)
    filled.close()
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    (file,) = folder.glob(name)
    tried = 0
    for _ in damaged_at(file, 12):
        mind = filled.reopened()
        assert answers(mind) == before
        mind.close()
        tried += 1
        shutil.rmtree(folder)
        folder.mkdir(mode=0o700)
        for each, data in whole.items():
            (folder / each).write_bytes(data)
    record_property("tried", tried)


@pytest.mark.attack(DAMAGE)
def test_a_damaged_index_never_fails_a_command(filled: Mind, record_property: Record) -> None:
    folder = filled.folder / ".index"
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    tried = 0
    for query, _ in zip(cycle(QUERIES), damaged_at(folder / "index.db", 10), strict=False):
        mind = filled.reopened()
        search(mind, query)
        assert doctor(mind).checks
        index(mind, rebuild=True)
        assert len(search(mind, "tea").results) > 0
        mind.close()
        tried += 1
        shutil.rmtree(folder)
        folder.mkdir(mode=0o700)
        for name, data in whole.items():
            (folder / name).write_bytes(data)
    record_property("tried", tried)


def overwrite_vectors(folder: Path) -> None:
    """Replaces the vectors of all rows, not their names, by zeros."""
    (file,) = folder.glob("vectors-*.rows")
    data, row = bytearray(file.read_bytes()), 16 + 4 + 256
    for start in range(16, len(data), row):
        data[start + 20 : start + row] = bytes(256)
    file.write_bytes(data)


@pytest.mark.attack(DAMAGE)
def test_an_overwritten_vector_is_noticed_and_healed(filled: Mind) -> None:
    before = answers(filled)
    filled.close()
    overwrite_vectors(filled.folder / ".index")

    assert answers(filled.reopened()) == before


@pytest.mark.attack(DAMAGE)
def test_a_rebuild_replaces_vectors_whose_checksum_fails(filled: Mind) -> None:
    overwrite_vectors(filled.folder / ".index")
    mind = filled.reopened()

    index(mind, rebuild=True)

    (file,) = (mind.folder / ".index").glob("vectors-*.rows")
    data = file.read_bytes()
    assert bytes(256) not in data
    assert (len(data) - 16) // 276 == index(mind).passages


@pytest.mark.attack(DAMAGE)
def test_a_word_table_that_is_gone_is_made_again(filled: Mind) -> None:
    before = answers(filled)
    filled.close()
    with closing(sqlite3.connect(filled.folder / ".index" / "index.db")) as sql, sql:
        sql.execute("DROP TABLE words")

    assert answers(filled.reopened()) == before


@pytest.mark.attack("doctor fails")
def test_a_check_that_fails_is_a_finding(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Mind) -> None:
        raise KeyError("x")

    monkeypatch.setattr(projects, "registered", broken)
    monkeypatch.setattr(sources, "everything", broken)

    report = doctor(mind)

    faults = {check.name for check in report.checks if check.verdict.value == "fault"}
    assert faults == {"projects", "edges"}
    assert {"index", "trust"} <= {check.name for check in report.checks}


class TestAnotherProcess:
    """While another process indexes, commands answer from what is committed."""

    @pytest.mark.attack(OTHERS)
    def test_a_held_write_lock_delays_no_search(self, filled: Mind) -> None:
        before = search(filled, "tea").results
        (filled.folder / "facts" / "new.md").write_text("A tea that is not indexed yet\n")
        writer = Index.open(filled.index_folder, None, filled.index._data._owner)
        with writer._data.newest.writing():
            answer = search(filled, "tea")
            verdicts = {check.verdict.value for check in doctor(filled).checks}

        assert answer.results == before
        assert "1 file is not indexed yet" in str(answer.notice)
        assert "fault" not in verdicts
        assert "not indexed yet" not in str(search(filled, "tea").notice)
        assert any("not indexed yet" in row.content for row in search(filled, "tea").results)

    @pytest.mark.attack(OTHERS)
    def test_many_missing_files_are_left_to_the_process_that_indexes_them(
        self, filled: Mind, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(refresh, "_FEW", 5)
        search(filled, "tea")
        for number in range(9):
            (filled.folder / "facts" / f"late{number}.md").write_text(f"late tea {number}\n")
        with holding(filled.index_folder / "building"):
            answer = search(filled, "late tea")
            index(filled, rebuild=True)
            assert len(search(filled, "tea").results) > 0

        assert "9 files are not indexed yet" in str(answer.notice)
        assert search(filled, "late tea").results[0].content.startswith("late tea")

    @pytest.mark.req("003-41")
    @pytest.mark.attack(OTHERS)
    def test_a_first_index_that_takes_too_long_is_an_error(
        self, filled: Mind, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shutil.rmtree(filled.folder / ".index")
        monkeypatch.setattr(refresh, "_FEW", 5)
        monkeypatch.setattr("mimo.index.database.WRITE_WAIT_SECONDS", 0.0)
        mind = filled.reopened()
        with holding(mind.index_folder / "building"), pytest.raises(MindError) as caught:
            search(mind, "tea")

        assert caught.value.code == "INDEX_NOT_READY"
        assert len(search(mind, "tea").results) > 0

    def test_an_interrupted_first_index_keeps_what_is_done(
        self, filled: Mind, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shutil.rmtree(filled.folder / ".index")
        monkeypatch.setattr("mimo.index.writing.BATCH", 10)
        mind = filled.reopened()

        def interrupted(_: str, done: int, total: int) -> None:
            if done == 35:
                raise KeyboardInterrupt

        mind.progress = interrupted
        with pytest.raises(KeyboardInterrupt):
            refresh.refresh(mind)
        mind.progress = None

        assert len(mind.index.stamps()) == 30
        assert refresh.refresh(mind).added == 61 - 30  # The log of the project is a file, too.


@pytest.mark.attack(DAMAGE)
def test_a_byte_that_changed_in_the_text_of_a_row_is_detected(filled: Mind) -> None:
    before = answers(filled)
    filled.close()
    path = filled.folder / ".index" / "index.db"
    whole, written = path.read_bytes(), b"Memory "
    assert whole.count(written) >= 60
    path.write_bytes(whole.replace(written, b"Nemory "))

    assert answers(filled) == before
    assert (filled.folder / ".index" / "index-1.db").exists()


class TestDamageDuringACommand:
    """After the files were compared, damage meets a query without a refresh before it."""

    def test_a_replaced_index_is_filled_before_it_answers(self, filled: Mind) -> None:
        opened = refresh.up_to_date(filled)
        with suppress(IndexDamaged), opened._data._replacing_damaged(opened._data.newest):
            raise IndexDamaged("found where a failure is no error, such as the removal of vectors")

        assert opened.count(Filter()) == 60

    def test_a_caller_that_has_cancelled_does_not_stop_the_repair_for_another(
        self, filled: Mind
    ) -> None:
        cancelled = Event()
        opened = refresh.up_to_date(filled.heard(None, cancelled.is_set))
        cancelled.set()
        with suppress(IndexDamaged), opened._data._replacing_damaged(opened._data.newest):
            raise IndexDamaged("found by a later call")

        assert opened.count(Filter()) == 60

    def test_another_thread_waits_until_the_index_is_filled(
        self, filled: Mind, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = refresh.up_to_date(filled)
        fill, begun, goes_on = opened.apply, Event(), Event()

        def slowly(*changes: Any, **more: Any) -> Any:
            begun.set()
            goes_on.wait(10)
            return fill(*changes, **more)

        monkeypatch.setattr(opened, "apply", slowly)
        with suppress(IndexDamaged), opened._data._replacing_damaged(opened._data.newest):
            raise IndexDamaged("x")
        with ThreadPoolExecutor(2) as threads:
            counted = [threads.submit(opened.count, Filter()) for _ in range(2)]
            assert begun.wait(10)
            goes_on.set()
            assert [each.result() for each in counted] == [60, 60]

    def test_a_second_report_of_the_same_damage_replaces_nothing(self, filled: Mind) -> None:
        opened = refresh.up_to_date(filled)
        damaged = opened._data.newest
        for _ in range(2):
            with suppress(IndexDamaged), opened._data._replacing_damaged(damaged):
                raise IndexDamaged("x")
            assert opened.count(Filter()) == 60

        assert opened.stats().generation == 1

    @pytest.mark.parametrize("error", [IndexDamaged("a row"), StorageFailed("no descriptor")])
    def test_a_failure_that_only_the_query_meets(
        self, filled: Mind, monkeypatch: pytest.MonkeyPatch, error: StorageFailed
    ) -> None:
        opened = refresh.up_to_date(filled)
        monkeypatch.setattr(database, "make_next", Mock(side_effect=StorageFailed("full")))

        def count(sql: sqlite3.Connection) -> int:
            if sql.execute("PRAGMA database_list").fetchone()[2]:
                raise error
            return catalog.count(sql, Filter())

        assert opened.ask(count) == 60
        assert filled.notice

    def test_damage_while_another_process_fills_the_index(
        self, filled: Mind, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = refresh.up_to_date(filled)
        monkeypatch.setattr(refresh, "_FEW", 10)
        monkeypatch.setattr(database, "make_next", Mock(side_effect=StorageFailed("full")))
        failing = Failing(IndexDamaged("x"))
        failing.first = 1
        monkeypatch.setattr(Database, "reading", failing.wrapped(Database.reading, "path"))
        opened.turn = lambda: nullcontext(False)

        assert opened.count(Filter()) == 60

    @pytest.mark.parametrize("failing", ["make_next", "apply"])
    def test_files_answer_if_the_index_cant_be_replaced(
        self, filled: Mind, monkeypatch: pytest.MonkeyPatch, failing: str
    ) -> None:
        opened = refresh.up_to_date(filled)

        apply = opened.apply

        def fail(*changes: Any, **more: Any) -> Any:
            if opened._data.newest.path:
                raise StorageFailed("read-only file system")
            return apply(*changes, **more)

        target = database if failing == "make_next" else opened
        monkeypatch.setattr(target, failing, fail)

        damage = iter([IndexDamaged("a page differs from its checksum")])

        def count(sql: sqlite3.Connection) -> int:
            for error in damage:
                raise error
            return catalog.count(sql, Filter())

        assert opened.ask(count) == 60
        assert opened.count(Filter()) == filled.index.count(Filter()) == 60
        # Without another file, the old one is tried again, and here it can be read.
        notice = filled.notice or ""
        assert ("read-only file system" in notice) == (failing == "apply")


READING: dict[str, dict[str, object]] = {
    "search": {"query": "limits of the interface"},
    "list": {},
    "show": {"id": "n5"},
    "graph": {},
    "review": {},
    "edges": {"intent": "raise the limit of the interface"},
    "context show": {},
    "memory stats": {},
    "load checkpoint": {},
}


class Failing:
    """Calls of a part of the index on disk, which fail from a certain one on."""

    def __init__(self, error: MindError) -> None:
        self.error, self.calls, self.first = error, 0, sys.maxsize

    def wrapped(self, call: Callable[..., Any], place: str) -> Callable[..., Any]:
        """Returns the same call, which counts; `place` is the attribute that is None in memory."""

        def counted(part: object, *rest: Any, **more: Any) -> Any:
            self.calls += getattr(part, place) is not None
            if self.calls >= self.first and getattr(part, place) is not None:
                raise self.error
            return call(part, *rest, **more)

        return counted


@pytest.mark.attack(DAMAGE)
@pytest.mark.parametrize("path", READING)
@pytest.mark.parametrize("fault", ["vectors fail", "reads fail", "damage"])
def test_a_failure_at_any_moment_of_a_command_changes_no_answer(
    filled: Mind, monkeypatch: pytest.MonkeyPatch, path: str, fault: str
) -> None:
    """Files are read instead. Without vectors, words alone decide the order and near-duplicates."""
    failing = Failing(IndexDamaged("x") if fault == "damage" else StorageFailed("x"))
    wrapped = failing.wrapped
    monkeypatch.setattr(Mind, "encoder", None)  # Its vectors are made little by little.
    if fault == "vectors fail":
        monkeypatch.setattr(Vectors, "_run", wrapped(Vectors._run, "folder"))
    else:
        monkeypatch.setattr(Database, "reading", wrapped(Database.reading, "path"))
    if fault == "damage":
        monkeypatch.setattr(Database, "writing", wrapped(Database.writing, "path"))
    monkeypatch.setattr(database, "make_next", Mock(side_effect=StorageFailed("x")))

    def answer() -> str:
        mind = filled.reopened()
        result = invoke(all_commands().at(path), mind, PERSON, READING[path])
        mind.close()
        return re.sub(r"notice=('[^']*'|\"[^\"]*\"|None)", "", repr(result))

    expected, needed = answer(), failing.calls
    assert needed
    # At most eight of the calls, evenly: a command reads the same again and again.
    for number in range(1, needed + 1, 1 + needed // 8):
        failing.calls, failing.first = 0, number
        given = answer()
        if fault != "vectors fail" or path not in ("search", "review"):
            assert given == expected, number
