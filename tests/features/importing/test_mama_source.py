"""Reading somebody's MAMA database: it stays as it is, whatever state it is in."""

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from mimo.errors import Invalid, NotFound, StorageFailed
from mimo.features.importing import database
from tests import mama_databases
from tests.mama_databases import decision

TABLES = ("decisions", "checkpoints", "sessions", "error_patterns", "decision_edges")


def contents(folder: Path) -> dict[str, bytes]:
    """Returns every file of a folder; what readers share in memory is nobody's data."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.match("*-shm")}


def ids(snapshot: database.Snapshot) -> list[str]:
    return [row["id"] for row in snapshot.tables["decisions"]]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return mama_databases.make(tmp_path / "old" / "mama.db", decisions=[decision("a")])


class TestLocating:
    PLACES = ("named.db", "first.db", "second.db", ".claude/mama-memory.db")

    @pytest.fixture
    def user(self, tmp_path: Path) -> Path:
        home = tmp_path / "user"
        for place in (*self.PLACES, ".spinelift/memories.db"):
            mama_databases.make(home / place)
        return home

    def test_the_order_is_that_of_the_register(self, user):
        environ = {
            "HOME": str(user),
            "MAMA_DB_PATH": "~/first.db",
            "MAMA_DATABASE_PATH": "${HOME}/second.db",
        }

        assert database.locate("~/named.db", environ)[0] == user / "named.db"
        assert database.locate(None, environ)[0] == user / "first.db"
        del environ["MAMA_DB_PATH"]
        assert database.locate(None, environ)[0] == user / "second.db"
        del environ["MAMA_DATABASE_PATH"]
        assert database.locate(None, environ) == (
            user / ".claude/mama-memory.db",
            (user / ".spinelift/memories.db",),
        )
        (user / ".claude/mama-memory.db").unlink()
        assert database.locate(None, environ) == (user / ".spinelift/memories.db", ())

    def test_one_that_is_named_and_not_there_is_no_reason_to_take_another(self, user):
        with pytest.raises(NotFound, match=r"gone\.db` is not there") as error:
            database.locate(None, {"HOME": str(user), "MAMA_DB_PATH": "~/gone.db"})

        assert "$MAMA_DB_PATH" in error.value.hint

    def test_where_none_is_the_places_are_named(self, tmp_path):
        with pytest.raises(NotFound, match="no MAMA database") as error:
            database.locate(None, {"HOME": str(tmp_path)})

        assert "~/.claude/mama-memory.db" in error.value.hint
        assert "--db" in error.value.hint


@pytest.mark.req("004-62")
class TestLeavingNoTrace:
    @pytest.mark.parametrize("wal", [True, False])
    def test_a_database_at_rest_is_untouched_and_nothing_appears_beside_it(self, tmp_path, wal):
        path = mama_databases.make(tmp_path / "old" / "m.db", wal=wal, decisions=[decision("a")])
        before = contents(path.parent)

        assert ids(database.snapshot(path, TABLES)) == ["a"]

        assert contents(path.parent) == before
        assert [found.name for found in path.parent.iterdir()] == ["m.db"]

    def test_what_is_in_the_log_alone_is_read_while_another_program_has_it_open(self, source):
        with sqlite3.connect(source) as other:
            mama_databases.insert(other, "decisions", [decision("b")])
            other.commit()
            before = contents(source.parent)
            assert before["mama.db-wal"]

            assert ids(database.snapshot(source, TABLES)) == ["a", "b"]

            assert contents(source.parent) == before
        other.close()

    def test_what_is_not_committed_is_not_read(self, source):
        with sqlite3.connect(source) as other:
            mama_databases.insert(other, "decisions", [decision("b")])

            assert ids(database.snapshot(source, TABLES)) == ["a"]

            other.rollback()
        other.close()

    def test_the_log_of_a_program_that_was_killed_is_read(self, source, tmp_path):
        left = tmp_path / "left"
        left.mkdir()
        with sqlite3.connect(source) as other:
            mama_databases.insert(other, "decisions", [decision("b")])
            other.commit()
            for name in ("mama.db", "mama.db-wal"):
                shutil.copyfile(source.with_name(name), left / name)
        other.close()
        before = contents(left)

        assert ids(database.snapshot(left / "mama.db", TABLES)) == ["a", "b"]

        assert contents(left) == before
        assert sorted(path.name for path in left.iterdir()) == ["mama.db", "mama.db-wal"]

    def test_a_change_that_was_broken_off_is_taken_back_in_the_copy_alone(self, tmp_path):
        path = mama_databases.make(tmp_path / "old" / "m.db", wal=False, decisions=[decision("a")])
        left = tmp_path / "left"
        left.mkdir()
        with sqlite3.connect(path) as other:
            other.execute("PRAGMA cache_size = 1")
            rows = [decision(f"b{n}", decision="x" * 2000) for n in range(50)]
            mama_databases.insert(other, "decisions", rows)
            for name in ("m.db", "m.db-journal"):
                shutil.copyfile(path.with_name(name), left / name)
            other.rollback()
        other.close()
        before = contents(left)

        assert ids(database.snapshot(left / "m.db", TABLES)) == ["a"]

        assert contents(left) == before

    def test_a_folder_that_takes_no_new_files_is_no_obstacle(self, source, monkeypatch):
        with sqlite3.connect(source) as other:
            mama_databases.insert(other, "decisions", [decision("b")])
            other.commit()
            really = database._backup

            def refusing(path, mode, wait):
                if mode == "mode=ro":
                    really(path.with_name("gone.db"), mode, wait)
                return really(path, mode, wait)

            monkeypatch.setattr(database, "_backup", refusing)

            assert ids(database.snapshot(source, TABLES)) == ["a", "b"]
        other.close()

    def test_the_copy_is_a_database_of_its_own(self, source, tmp_path):
        copy = tmp_path / "copy.db"
        copy.write_bytes(database.snapshot(source, TABLES).data)

        with sqlite3.connect(copy) as sql:
            assert sql.execute("SELECT id FROM decisions").fetchall() == [("a",)]
            assert sql.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        sql.close()

    def test_the_same_database_gives_the_same_copy(self, source):
        assert database.snapshot(source, TABLES) == database.snapshot(source, TABLES)


class TestWhatIsRead:
    def test_the_virtual_table_of_vectors_is_never_touched(self, tmp_path):
        path = mama_databases.make(tmp_path / "m.db", vectors=True, decisions=[decision("a")])
        with sqlite3.connect(path) as sql, pytest.raises(sqlite3.OperationalError, match="vec0"):
            sql.execute("PRAGMA table_info(vss_memories)").fetchall()
        sql.close()

        found = database.snapshot(path, TABLES)

        assert ids(found) == ["a"]
        assert found.others == {}

    def test_a_database_without_checkpoints_is_one(self, tmp_path):
        path = mama_databases.make(
            tmp_path / "m.db", with_checkpoints=False, decisions=[decision("a")]
        )

        assert "checkpoints" not in database.snapshot(path, TABLES).tables

    def test_later_columns_are_read_and_vectors_are_not(self, tmp_path):
        path = mama_databases.make(
            tmp_path / "m.db",
            version=24,
            decisions=[decision("a", evidence="e")],
            error_patterns=[{"id": "1", "error_pattern": "E", "embedding": b"\1\2"}],
            link_audit_log=[{"action": "approved"}],
        )

        found = database.snapshot(path, TABLES)

        assert found.version == 24
        assert found.tables["decisions"][0]["evidence"] == "e"
        assert "embedding" not in found.tables["error_patterns"][0]
        assert found.others == {"link_audit_log": 1}

    def test_text_that_is_no_utf_8_is_read_as_far_as_it_goes(self, tmp_path):
        path = mama_databases.make(tmp_path / "m.db")
        with sqlite3.connect(path) as sql:
            sql.execute(
                "INSERT INTO decisions (id, topic, decision) VALUES"
                " ('a', 't', CAST(x'41ff42' AS TEXT))"
            )
        sql.close()

        assert database.snapshot(path, TABLES).tables["decisions"][0]["decision"] == "A\ufffdB"


class TestRefusals:
    def test_a_locked_database_is_told_in_time(self, tmp_path):
        path = mama_databases.make(tmp_path / "m.db", wal=False)
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")

        with pytest.raises(StorageFailed, match="locked by another program") as error:
            database.snapshot(path, TABLES, wait=0.01)

        assert "MAMA's server" in error.value.hint
        holder.close()

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"", "is empty"),
            (b"hello", "no SQLite database, or an encrypted one"),
            (os.urandom(4096), "no SQLite database, or an encrypted one"),
        ],
        ids=["empty", "text", "encrypted"],
    )
    def test_what_is_no_database_is_told(self, tmp_path, data, message):
        path = tmp_path / "m.db"
        path.write_bytes(data)

        with pytest.raises(Invalid, match=message):
            database.snapshot(path, TABLES)

        assert path.read_bytes() == data

    def test_a_folder_is_no_database(self, tmp_path):
        with pytest.raises(Invalid, match="is no file"):
            database.snapshot(tmp_path, TABLES)

    def test_a_database_of_something_else_is_told(self, tmp_path):
        path = tmp_path / "m.db"
        with sqlite3.connect(path) as sql:
            sql.execute("CREATE TABLE bookmarks (url)")
        sql.close()

        with pytest.raises(Invalid, match="none of MAMA's"):
            database.snapshot(path, TABLES)

    def test_a_damaged_database_is_told_rather_than_half_read(self, tmp_path):
        path = mama_databases.many(tmp_path / "m.db", 200)
        data = bytearray(path.read_bytes())
        data[len(data) // 2 : len(data) // 2 + 8192] = b"\xa5" * 8192
        path.write_bytes(data)

        with pytest.raises(StorageFailed, match=r"damaged|can't be read"):
            database.snapshot(path, TABLES)

    def test_a_database_cut_short_is_told(self, tmp_path):
        path = mama_databases.many(tmp_path / "m.db", 200)
        path.write_bytes(path.read_bytes()[:3000])

        with pytest.raises(StorageFailed, match=r"damaged|can't be read"):
            database.snapshot(path, TABLES)
