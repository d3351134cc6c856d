"""Interruptions and other processes in the way: what is written is approved, waits end."""

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.call.table import all_commands
from mimo.data import append_log, disk, files, locks, sqlite
from mimo.data.sqlite import Database
from mimo.errors import MindError, StorageFailed
from mimo.memory.model import Kind
from mimo.operations import saving
from mimo.project.accesses import Accesses
from tests.kit import do

COMMANDS = all_commands()


def texts(call: Call) -> dict[str, tuple[str, ...]]:
    """Returns the names of the texts that need approval, by file."""
    return {
        path.name: call.mind.store.approvals(path.relative_to(call.mind.project.root).as_posix())
        for folder in ("facts", "decisions", "sources", "values", "private")
        for path in (call.mind.folder / folder).rglob("*.md")
    }


@pytest.mark.attack("killed before the approval")
def test_a_text_is_approved_before_it_appears(
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    guide = call.mind.project.root / "guide.md"
    guide.write_text("# Tea\n\nTea is served at four.\n\n# Milk\n\nMilk goes in first.\n", "utf-8")
    monkeypatch.chdir(call.mind.project.root)
    first = do(call, "add", content="Tea is served at four")
    decision = do(call, "save decision", topic="tea", decision="Use pots", reasoning="They hold")
    flush, tried = disk.flush_folder, 0

    def killed(folder: Path) -> None:
        flush(folder)
        if texts(call) != before:
            raise SystemExit  # as if the process ended right after the file appeared

    for path, arguments in (
        ("add", {"content": "The kettle holds two litres"}),
        ("add", {"content": "The cups are chipped", "private": True}),
        ("save decision", {"topic": "milk", "decision": "Buy oats", "reasoning": "They keep"}),
        ("evolve outcome", {"decision_id": decision.id, "outcome": "SUCCESS"}),
        ("keep", {"id": first.id}),
        ("ingest", {"path": "guide.md"}),
        ("value put", {"namespace": "agent.tea", "key": "pot", "value": 1}),
    ):
        before = texts(call)
        with monkeypatch.context() as patched:
            patched.setattr(disk, "flush_folder", killed)
            with pytest.raises(SystemExit):
                do(call, path, **arguments)
        new = {name: made for name, made in texts(call).items() if before.get(name) != made}
        assert new, path
        assert [call.mind.reopened().trust.trusted(*made) for made in new.values()] == [True], path
        tried += 1
    record_property("tried", tried)


@pytest.mark.attack("lock held for ever")
def test_all_waits_of_a_command_have_one_limit(
    call: Call, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    folder = call.mind.folder / ".local"
    names = ("one.lock", "two.lock", "three.lock", "some.log")
    held = [locks.hold(folder / name, wait=0) for name in names]
    assert None not in held
    started = now[0]
    with disk.shared():
        for name in names[:3]:
            with (
                pytest.raises(StorageFailed, match=f"{name}` is held"),
                locks.lock(folder / name),
            ):
                pass
        with pytest.raises(StorageFailed, match=r"some.log` is held"):
            append_log.append(folder / names[3], b"line\n")
    assert now[0] - started < disk.WAIT_SECONDS + 1
    for holder in held:
        os.close(holder or 0)
    record_property("tried", len(names))


@pytest.mark.attack("lock held for ever")
def test_a_database_that_is_held_is_named(call: Call) -> None:
    schema = "CREATE TABLE t (a INTEGER)"
    first, second = (Database(call.mind.folder / ".local" / "held.db", schema) for _ in range(2))
    with disk.shared(), first.writing():
        disk.current()._left = 0.0
        with (
            pytest.raises(StorageFailed, match=r"held\.db` is held by another process"),
            second.writing(),
        ):
            pass
    first.close()
    second.close()


HOLDING = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    fcntl.lockf(file, fcntl.LOCK_EX, 1, 128)
    print("held", flush=True)
    sys.stdin.read()
"""
"""Is stopped where SQLite sets up the memory that processes share."""


@pytest.mark.attack("lock held for ever")
@pytest.mark.skipif(os.name != "posix", reason="SQLite's locks of POSIX")
def test_a_database_that_is_being_set_up_is_waited_for_once_in_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite.connect(path)) as made:
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("CREATE TABLE t (a INTEGER)")
    shared = path.with_name("a.db-shm")
    shared.write_bytes(b"")
    pipe = subprocess.PIPE
    words = [sys.executable, "-c", HOLDING, str(shared)]
    with subprocess.Popen(words, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        started = time.monotonic()
        with disk.shared():
            for _ in range(3):
                with pytest.raises(sqlite3.OperationalError, match=r"a\.db` is held"):
                    sqlite.connect(path)
            assert time.monotonic() - started < 1.5 * disk.WAIT_SECONDS
            holder.kill()
            holder.wait()
            # A long command, such as the daemon, may try again once its time is given back.
            monkeypatch.setattr(disk.current(), "most", 0.0)
            sqlite.connect(path).close()
            monkeypatch.undo()
            disk.current().count(1.0)  # Once it is free, other waits do not count for it.
            sqlite.connect(path).close()
    with closing(sqlite.connect(path)) as free:
        assert free.execute("SELECT count(*) FROM t").fetchone() == (0,)


@pytest.mark.attack("lock held for ever")
def test_waits_for_databases_that_end_well_count_too(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with (
        closing(sqlite.connect(path)) as holder,
        closing(sqlite.connect(path, wait=9)) as waiting,
        disk.shared(),
    ):
        holder.execute("CREATE TABLE t (a INTEGER)")
        for statement in ("SELECT * FROM t", "BEGIN IMMEDIATE"):
            holder.execute("BEGIN EXCLUSIVE")
            end = threading.Timer(0.3, holder.execute, ["COMMIT"])
            end.start()
            waiting.execute(statement)
            assert disk.current().left < disk.WAIT_SECONDS - 0.2
            end.join()
        waiting.execute("ROLLBACK")


@pytest.mark.attack("lock held for ever")
def test_all_waits_for_databases_share_the_limit_of_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.data.disk.WAIT_SECONDS", 0.5)
    paths = [tmp_path / "a.db", tmp_path / "b.db"]
    with ExitStack() as stack:
        opened = []
        for path in paths:
            holder = stack.enter_context(closing(sqlite.connect(path)))
            holder.execute("CREATE TABLE t (a INTEGER)")
            opened += [stack.enter_context(closing(sqlite.connect(path, wait=9))) for _ in range(2)]
            holder.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        with disk.shared():
            for connection in opened:
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    connection.execute("SELECT * FROM t")
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    sqlite.begin(connection)
        waited = time.monotonic() - started
        assert 0.4 < waited < 1.0
        with disk.shared(), pytest.raises(sqlite3.OperationalError):
            opened[0].execute("SELECT * FROM t")
        assert time.monotonic() - started - waited > 0.4  # The next command may wait again.


@pytest.mark.attack("killed while accesses are summed up")
def test_accesses_are_counted_once_if_killed_while_they_are_summed_up(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, root = Accesses(call.mind.project.root), call.mind.project.root
    monkeypatch.setattr("mimo.project.accesses._LONGEST_LOG", 10)

    def killed(path: Path, data: bytes, *, mode: int) -> None:
        raise SystemExit

    for turn in range(3):
        with monkeypatch.context() as patched:
            patched.setattr(files, "replace", killed)
            counted = Accesses(root)
            with pytest.raises(SystemExit):
                counted.note(["tea", "milk", "sugar"], call.mind.now())
        assert Accesses(root).uses()["tea"].times == turn + 1
    Accesses(root).note(["tea", "milk", "sugar"], call.mind.now())
    assert Accesses(root).uses()["tea"].times == 4
    assert len(list((call.mind.folder / ".local").glob("accesses*"))) == 1


@pytest.mark.attack("unreadable file is written")
def test_a_change_that_could_not_be_read_back_is_not_written(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = saving.store(call, saving.draft(Kind.FACT, "Tea is served at four"))
    path = call.mind.project.root / record.place.path
    before = path.read_bytes()
    monkeypatch.setattr(
        "mimo.memory.codec.splice.splice", lambda *_, **__: b"---\nid: [\n---\nTea\n"
    )
    with pytest.raises(MindError, match="could not be read"):
        saving.edit(call, record, importance=0.9)
    assert path.read_bytes() == before
