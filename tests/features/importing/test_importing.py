"""`mind import mama` imports every row once, and rolls the import back."""

import errno
import hashlib
import json
import os
import sqlite3
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.data import disk, files
from mimo.data.locks import lock
from mimo.errors import Conflict, NotFound, StorageFailed
from mimo.features import importing
from mimo.features.importing import manifest
from mimo.features.importing.commands import Import, mama
from mimo.features.notes.reading import show
from tests import mama_databases
from tests.mama_databases import decision

OLD, NEW = "decision_auth_1757000000000_old1", "decision__1757000060000_new1"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = [decision(OLD, superseded_by=NEW), decision(NEW, supersedes=OLD)]
    return mama_databases.make(tmp_path / "old" / "mama.db", decisions=rows, vectors=True)


def run_import(call: Call, source: Path, **options: bool) -> Import:
    return mama(call, db=str(source), **options)


class TestImporting:
    @pytest.mark.req("004-62")
    @pytest.mark.req("004-63")
    def test_the_source_is_not_changed_and_a_copy_is_kept(self, call, source):
        before = {path.name: path.read_bytes() for path in source.parent.iterdir()}

        result = run_import(call, source)

        assert {path.name: path.read_bytes() for path in source.parent.iterdir()} == before
        assert result.backup is not None
        copy = call.mind.project.root / result.backup
        assert copy.stat().st_mode & 0o777 == 0o600
        with sqlite3.connect(copy) as sql:
            assert sql.execute("SELECT count(*) FROM decisions").fetchone() == (2,)
        sql.close()

    @pytest.mark.req("004-63")
    def test_the_copy_is_written_before_anything_else(self, call, source, monkeypatch):
        def refuse(*_: object) -> None:
            raise StorageFailed("no space left on the disk")

        monkeypatch.setattr(type(call.mind.store), "create_all", refuse)
        with pytest.raises(StorageFailed):
            run_import(call, source)

        assert not list(call.mind.folder.rglob("decision*.md"))
        assert list((call.mind.folder / ".local/imports").glob("mama-*.db"))


class TestAgain:
    @pytest.mark.req("004-66")
    @pytest.mark.parametrize("broken_at", [0, 1, 7, 23, 60])
    def test_an_interrupted_import_is_completed(self, call, tmp_path, monkeypatch, broken_at):
        """Wherever it stops: a killed process leaves what this leaves."""
        big = mama_databases.many(tmp_path / "big.db", 60)
        monkeypatch.setattr(importing, "BATCH", 8)
        really, given = files._give_name, list[Path]()

        def interrupted(temporary: Path, path: Path) -> None:
            if len(given) == broken_at:
                raise KeyboardInterrupt
            given.append(path)
            really(temporary, path)

        monkeypatch.setattr(files, "_give_name", interrupted)
        with suppress(KeyboardInterrupt):
            run_import(call, big)
        monkeypatch.setattr(files, "_give_name", really)

        result = run_import(call, big)

        assert result.verified
        (row,) = (row for row in result.groups if row.group == "decisions")
        assert row.new + row.already_there == row.total == 60
        assert len(list((call.mind.folder / "decisions").iterdir())) == 60
        assert run_import(call, big, rollback=True).removed == 60

    def test_a_rollback_is_possible_after_a_full_disk(self, call, tmp_path, monkeypatch):
        big = mama_databases.many(tmp_path / "big.db", 30)
        monkeypatch.setattr(importing, "BATCH", 10)
        really, flushed = disk.flush, list[Path]()

        def full(path: Path) -> None:
            if len(flushed) >= 15:
                raise OSError(28, "No space left on device", str(path))
            flushed.append(path)
            really(path)

        monkeypatch.setattr(disk, "flush", full)
        with pytest.raises(StorageFailed, match="no space left") as error:
            run_import(call, big)
        assert "run it again" in error.value.hint
        monkeypatch.setattr(disk, "flush", really)

        assert len(list((call.mind.folder / "decisions").iterdir())) == 10
        assert run_import(call, big, rollback=True).removed == 10
        assert run_import(call, big).verified


@pytest.mark.req("004-64")
class TestRollingBack:
    def test_a_file_changed_during_the_rollback_is_kept(self, call, source, monkeypatch):
        run_import(call, source)
        path = call.mind.folder / "decisions" / f"{OLD}.md"
        really = type(call.mind.store).delete_all

        def late(self, digests):
            path.write_text("changed\n", encoding="utf-8")
            return really(self, digests)

        monkeypatch.setattr(type(call.mind.store), "delete_all", late)

        assert mama(call, rollback=True).kept == (f".mind/decisions/{OLD}.md",)
        assert path.read_text() == "changed\n"

    def test_a_rollback_that_cannot_remove_a_file_fails_and_can_be_repeated(
        self, call, source, monkeypatch
    ):
        run_import(call, source)
        first = call.mind.folder / "decisions" / f"{OLD}.md"
        unlink = Path.unlink

        def fail(path, **rest):
            if path == first:
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
            unlink(path, **rest)

        monkeypatch.setattr(Path, "unlink", fail)
        with pytest.raises(StorageFailed, match="input/output error") as caught:
            mama(call, rollback=True)
        assert "run it again" in (caught.value.hint or "")
        assert [*first.parent.iterdir()] == [first]

        monkeypatch.undo()
        assert mama(call, rollback=True).removed == 1
        assert not first.exists()

    @pytest.mark.attack("local state planted by a clone")
    def test_a_planted_manifest_removes_nothing(self, call, source):
        """The author of a clone knows the files and their digests, and may guess the source."""
        result = run_import(call, source)
        own = call.mind.project.root / result.manifest
        digest = hashlib.sha256(str(source).encode()).hexdigest()
        own.rename(own.with_name(f"mama-{digest[:8]}.json"))

        with pytest.raises(NotFound, match="nothing was imported here") as caught:
            mama(call, rollback=True)
        assert str(source) not in str(caught.value.hint)
        with pytest.raises(NotFound, match="nothing was imported from"):
            run_import(call, source, rollback=True)

    @pytest.mark.parametrize(
        "planted",
        ['{"files": {"../../precious.md": "%s"}}', '{"files": {"README.md": "%s"}}', "[]", "{", ""],
    )
    @pytest.mark.attack("path out of the sandbox")
    def test_a_foreign_manifest_can_not_reach_outside_the_memory(self, call, source, planted):
        result = run_import(call, source)
        assert result.manifest is not None
        path = call.mind.project.root / result.manifest
        data = json.loads(path.read_bytes())
        if planted.startswith('{"'):
            data |= json.loads(planted % ("0" * 64))
            planted = json.dumps(data)
        path.write_text(planted, encoding="utf-8")

        with pytest.raises(StorageFailed, match="is damaged"):
            mama(call, rollback=True)


class TestSources:
    @pytest.mark.req("004-66")
    def test_an_empty_database_is_accepted(self, call, tmp_path):
        path = mama_databases.make(tmp_path / "m.db", with_checkpoints=False)

        result = run_import(call, path)

        assert result.verified
        assert {(row.group, row.total) for row in result.groups} == {
            ("decisions", 0),
            ("sessions", 0),
            ("error_patterns", 0),
        }
        assert result.notes == ("the database has no table checkpoints",)

    def test_a_database_of_a_later_version_is_imported_with_a_note(self, call, tmp_path):
        path = mama_databases.make(
            tmp_path / "m.db",
            version=40,
            decisions=[decision("decision_a", evidence="A benchmark of both")],
            link_audit_log=[{"action": "approved"}],
        )

        result = run_import(call, path)

        assert "A benchmark of both" in show(call, "decision_a").sections["Reasoning"]
        assert [note.partition(":")[0] for note in result.notes] == [
            "its schema is version 40, newer than 24",
            "table link_audit_log holds no memories",
        ]

    def test_a_row_too_large_for_a_file_is_named(self, call, tmp_path):
        path = mama_databases.make(
            tmp_path / "m.db", decisions=[decision("decision_a", decision="x" * 1_100_000)]
        )

        result = run_import(call, path)

        (left,) = result.skipped
        assert left.ids == ("decision_a",)
        assert "too large" in left.reason

    def test_two_imports_at_once_wait_for_each_other(self, call, source, monkeypatch):
        monkeypatch.setattr(manifest, "lock", partial(lock, wait=0.01))
        with (
            manifest.hold(call.mind.project.root),
            pytest.raises(StorageFailed, match="is held by"),
        ):
            run_import(call, source)


def test_writing_files_in_bulk_keeps_existing_ones(tmp_path):
    existing = tmp_path / "a.md"
    existing.write_bytes(b"old")

    taken = files.write_all_new({existing: b"new", tmp_path / "deep" / "b.md": b"new"})

    assert taken == {existing}
    assert existing.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.md", "b.md", "deep"]


def test_removing_files_in_bulk_keeps_changed_ones(tmp_path):
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "c").write_bytes(b"changed")
    wanted = {tmp_path / name: files.digest(name.encode()) for name in "abcd"}

    kept = files.remove_all(wanted)

    assert list(kept) == [tmp_path / "c"]
    assert isinstance(kept[tmp_path / "c"], Conflict)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
