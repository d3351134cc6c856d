"""Reading a MAMA database does not change it, in any state."""

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from mimo.errors import Invalid, NotFound, StorageFailed
from mimo.features.importing import database
from tests import mama_databases
from tests.mama_databases import decision
from tests.redteam.hostile import plant_journal

TABLES = ("decisions", "checkpoints", "sessions", "error_patterns", "decision_edges")


def contents(folder: Path) -> dict[str, bytes]:
    """Returns every file of a folder, except the memory that readers share."""
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

    def test_places_are_searched_in_the_documented_order(self, user):
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

    def test_a_named_database_that_is_missing_is_not_replaced_by_another(self, user):
        with pytest.raises(NotFound, match=r"gone\.db` does not exist") as error:
            database.locate(None, {"HOME": str(user), "MAMA_DB_PATH": "~/gone.db"})

        assert "$MAMA_DB_PATH" in error.value.hint

    def test_without_a_database_the_error_lists_the_places(self, tmp_path):
        with pytest.raises(NotFound, match="no MAMA database") as error:
            database.locate(None, {"HOME": str(tmp_path)})

        assert "~/.claude/mama-memory.db" in error.value.hint
        assert "mind import mama PATH" in error.value.hint


@pytest.mark.req("004-62")
class TestLeavingNoTrace:
    @pytest.mark.parametrize("wal", [True, False])
    def test_a_closed_database_is_not_changed_and_no_file_appears_beside_it(self, tmp_path, wal):
        path = mama_databases.make(tmp_path / "old" / "m.db", wal=wal, decisions=[decision("a")])
        before = contents(path.parent)

        assert ids(database.snapshot(path, TABLES)) == ["a"]

        assert contents(path.parent) == before
        assert [file.name for file in path.parent.iterdir()] == ["m.db"]

    def test_data_in_the_log_is_read_while_another_program_has_it_open(self, source):
        with sqlite3.connect(source) as other:
            mama_databases.insert(other, "decisions", [decision("b")])
            other.commit()
            before = contents(source.parent)
            assert before["mama.db-wal"]

            assert ids(database.snapshot(source, TABLES)) == ["a", "b"]

            assert contents(source.parent) == before
        other.close()

    def test_uncommitted_data_is_not_read(self, source):
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

    def test_an_interrupted_change_is_rolled_back_only_in_the_copy(self, tmp_path):
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

    @pytest.mark.attack("planted database obeyed")
    def test_journal_that_names_a_file_deletes_nothing(self, tmp_path):
        path = mama_databases.make(tmp_path / "old" / "m.db", wal=False, decisions=[decision("a")])
        plant_journal(path, deletes=(precious := tmp_path / "precious"))

        assert ids(database.snapshot(path, TABLES)) == ["a"]

        assert precious.read_text() == "precious"

    def test_a_database_in_a_read_only_folder_is_read(self, source, monkeypatch):
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

    def test_the_copy_is_a_complete_database(self, source, tmp_path):
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

        snapshot = database.snapshot(path, TABLES)

        assert ids(snapshot) == ["a"]
        assert snapshot.others == {}

    def test_a_database_without_checkpoints_is_accepted(self, tmp_path):
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

        snapshot = database.snapshot(path, TABLES)

        assert snapshot.version == 24
        assert snapshot.tables["decisions"][0]["evidence"] == "e"
        assert "embedding" not in snapshot.tables["error_patterns"][0]
        assert snapshot.others == {"link_audit_log": 1}

    def test_invalid_utf_8_is_replaced(self, tmp_path):
        path = mama_databases.make(tmp_path / "m.db")
        with sqlite3.connect(path) as sql:
            sql.execute(
                "INSERT INTO decisions (id, topic, decision) VALUES"
                " ('a', 't', CAST(x'41ff42' AS TEXT))"
            )
        sql.close()

        assert database.snapshot(path, TABLES).tables["decisions"][0]["decision"] == "A\ufffdB"


class TestRefusals:
    def test_a_locked_database_is_reported_after_the_wait(self, tmp_path):
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
            (b"hello", "not an SQLite database, or it is encrypted"),
            (os.urandom(4096), "not an SQLite database, or it is encrypted"),
        ],
        ids=["empty", "text", "encrypted"],
    )
    def test_other_files_are_refused(self, tmp_path, data, message):
        path = tmp_path / "m.db"
        path.write_bytes(data)

        with pytest.raises(Invalid, match=message):
            database.snapshot(path, TABLES)

        assert path.read_bytes() == data

    def test_a_folder_is_refused(self, tmp_path):
        with pytest.raises(Invalid, match="is not a file"):
            database.snapshot(tmp_path, TABLES)

    def test_a_database_of_another_program_is_refused(self, tmp_path):
        path = tmp_path / "m.db"
        with sqlite3.connect(path) as sql:
            sql.execute("CREATE TABLE bookmarks (url)")
        sql.close()

        with pytest.raises(Invalid, match="not a database of MAMA"):
            database.snapshot(path, TABLES)

    def test_a_damaged_database_is_refused(self, tmp_path):
        path = mama_databases.many(tmp_path / "m.db", 200)
        data = bytearray(path.read_bytes())
        data[len(data) // 2 : len(data) // 2 + 8192] = b"\xa5" * 8192
        path.write_bytes(data)

        with pytest.raises(StorageFailed, match=r"damaged|can't be read"):
            database.snapshot(path, TABLES)

    def test_a_truncated_database_is_refused(self, tmp_path):
        path = mama_databases.many(tmp_path / "m.db", 200)
        path.write_bytes(path.read_bytes()[:3000])

        with pytest.raises(StorageFailed, match=r"damaged|can't be read"):
            database.snapshot(path, TABLES)
