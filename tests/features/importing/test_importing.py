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
from mimo.errors import Conflict, Invalid, NotFound, StorageFailed
from mimo.features import importing
from mimo.features.decisions import Whose
from mimo.features.decisions.loading import checkpoint
from mimo.features.importing import manifest
from mimo.features.importing.commands import Done, Import, mama
from mimo.features.notes.commands import edit
from mimo.features.notes.reading import show
from mimo.features.search.commands import search
from mimo.features.upkeep.checks import doctor
from mimo.memory.model import Kind
from mimo.operations.rows import TrustLabel
from tests import mama_databases
from tests.kit import from_shell
from tests.mama_databases import SEPTEMBER, decision

OLD, NEW = "decision_auth_1757000000000_old1", "decision__1757000060000_new1"
ROWS = {
    "decisions": [
        decision(OLD, topic="auth", decision="Use sessions", superseded_by=NEW, outcome="FAILED",
                 failure_reason="They did not survive the second node"),
        decision(NEW, topic="인증", decision="JWT를 쓴다", supersedes=OLD,
                 created_at=SEPTEMBER + 60_000),
        decision("empty", topic="", decision=""),
    ],
    "decision_edges": [
        {"from_id": NEW, "to_id": OLD, "relationship": "supersedes", "weight": 1.0},
        {"from_id": NEW, "to_id": "gone", "relationship": "refines", "weight": 0.9},
    ],
    "checkpoints": [
        {"timestamp": SEPTEMBER, "summary": "Half of the login", "open_files": '["a.py"]',
         "next_steps": "write tests"}
    ],
    "sessions": [
        {"id": "s1", "project_path": "/home/a", "rolling_summary": "Talked about the login"},
        {"id": "s2", "project_path": "/home/a"},
    ],
    "error_patterns": [{"id": "e1", "error_pattern": "EADDRINUSE", "solution": "kill it"}],
}  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return mama_databases.make(tmp_path / "old" / "mama.db", ROWS, vectors=True)


def written(call: Call) -> dict[str, bytes]:
    """Returns the project's files, except the index and the locks."""
    root = call.mind.project.root
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted((root / ".mind").rglob("*"))
        if path.is_file() and ".index" not in path.parts and path.name != "lock"
    }


def memories(call: Call) -> dict[str, bytes]:
    rules = ".mind/private/.gitignore"
    return {p: data for p, data in written(call).items() if "/.local/" not in p and p != rules}


def run_import(call: Call, source: Path, **options: bool) -> Import:
    return mama(call, db=str(source), **options)


@pytest.mark.attack("approval by an agent")
def test_an_agent_does_not_approve_what_it_imports(call: Call, source: Path) -> None:
    call.mind.trust.follow(False)
    call = from_shell(call, "claude-code")

    result = run_import(call, source)

    assert result.verified
    assert "not approved" in (result.notice or "")
    written_files = memories(call).items()
    texts = [files.digest(data) for name, data in written_files if "/decisions/" in name]
    assert not any(map(call.mind.trust.trusted, texts))

    call = from_shell(call, None)
    run_import(call, source)

    assert texts
    assert all(map(call.mind.trust.trusted, texts))


def counts(result: Import) -> dict[str, tuple[int, int, int, int]]:
    return {
        row.group: (row.total, row.new, row.already_there, row.skipped) for row in result.groups
    }


class TestImporting:
    @pytest.mark.req("004-61")
    @pytest.mark.req("004-65")
    @pytest.mark.req("004-66")
    @pytest.mark.req("004-79")
    def test_every_row_becomes_a_memory_or_is_accounted_for(self, call, source):
        result = run_import(call, source)

        assert result.done is Done.IMPORTED
        assert result.verified
        assert counts(result) == {
            "decisions": (3, 2, 0, 1),
            "checkpoints": (1, 1, 0, 0),
            "sessions": (2, 1, 0, 1),
            "error_patterns": (1, 1, 0, 0),
        }
        assert [(left.table, left.ids) for left in result.skipped] == [
            ("decisions", ("empty",)),
            ("sessions", ("s2",)),
        ]
        assert result.links is not None
        assert result.statements is not None
        assert (result.approved, result.approvals) == (True, sum(row.new for row in result.groups))
        assert (result.statements.found, result.links, result.statements.dangling) == (4, 2, 1)
        assert set(memories(call)) >= {
            f".mind/decisions/{OLD}.md",
            f".mind/decisions/{NEW}.md",
            ".mind/checkpoints/checkpoint_1.md",
            ".mind/private/contexts/s1.md",
            ".mind/insights/e1.md",
        }

    @pytest.mark.req("004-69")
    def test_imported_memories_are_found_trusted_and_linked(self, call, source):
        run_import(call, source)

        old = show(call, OLD)
        (hit, *_) = search(call, "login 인증 JWT를 쓴다").results

        assert (old.type, old.superseded_by, old.trust) == (
            Kind.DECISION, NEW, TrustLabel.TRUSTED,
        )  # fmt: skip
        assert hit.id == NEW
        call.mind.trust.follow(False)
        assert show(call, NEW).trust is TrustLabel.TRUSTED
        assert [row.to for row in show(call, NEW).links] == [OLD, "gone"]
        assert any("`gone`, which is missing" in check.message for check in doctor(call).checks)

    @pytest.mark.req("004-69")
    def test_load_checkpoint_resumes_from_the_imported_one(self, call, source):
        run_import(call, source)

        resumed = checkpoint(call)

        assert (resumed.summary, resumed.next_steps) == ("Half of the login", "write tests")
        assert resumed.open_files == ("a.py",)
        assert resumed.made is Whose.BRANCH

    def test_an_imported_checkpoint_counts_as_made_on_this_machine(self, call, source):
        git = call.mind.project.root / ".git"
        git.mkdir()
        (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        run_import(call, source)

        resumed = checkpoint(call)

        assert resumed.made is Whose.MACHINE
        assert (resumed.notice or "").startswith("made on this machine, ")

    @pytest.mark.req("004-80")
    def test_sessions_are_private(self, call, source):
        run_import(call, source)

        assert show(call, "s1").private
        assert not show(call, OLD).private

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
            assert sql.execute("SELECT count(*) FROM decisions").fetchone() == (3,)
        sql.close()

    @pytest.mark.req("004-63")
    def test_the_copy_is_written_before_anything_else(self, call, source, monkeypatch):
        def refuse(*_: object) -> None:
            raise StorageFailed("no space left on the disk")

        monkeypatch.setattr(type(call.mind.store), "create_all", refuse)
        before = memories(call)

        with pytest.raises(StorageFailed):
            run_import(call, source)

        assert memories(call) == before
        assert list((call.mind.folder / ".local/imports").glob("mama-*.db"))

    def test_backup_and_manifest_are_ignored_by_git_and_private(self, call, source):
        result = run_import(call, source)

        assert result.manifest is not None
        assert (call.mind.folder / ".local" / ".gitignore").read_text() == "*\n"
        assert (call.mind.project.root / result.manifest).stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("rollback", [True, False])
    def test_a_dry_run_writes_nothing(self, call, source, rollback):
        if rollback:
            run_import(call, source)
        before = written(call)

        result = run_import(call, source, dry_run=True, rollback=rollback)

        assert written(call) == before
        if rollback:
            assert (result.done, result.removed) == (Done.ROLLBACK_PLANNED, 5)
        else:
            assert (result.done, result.backup) == (Done.PLANNED, None)
            assert counts(result)["decisions"] == (3, 2, 0, 1)

    def test_a_dry_run_makes_no_index(self, call, source):
        run_import(call, source, dry_run=True)

        assert not (call.mind.folder / ".index").exists()


class TestAgain:
    @pytest.mark.req("004-65")
    def test_a_second_import_changes_nothing(self, call, source):
        run_import(call, source)
        before = memories(call)

        result = run_import(call, source)

        assert memories(call) == before
        assert result.verified
        assert counts(result)["decisions"] == (3, 0, 2, 1)
        assert len(list((call.mind.folder / ".local/imports").glob("*.db"))) == 1

    def test_new_rows_are_added(self, call, source):
        run_import(call, source)
        with sqlite3.connect(source) as sql:
            mama_databases.insert(sql, "decisions", [decision("decision_x", supersedes=NEW)])
        sql.close()

        result = run_import(call, source)

        assert counts(result)["decisions"] == (4, 1, 2, 1)
        assert show(call, NEW).superseded_by == "decision_x"
        assert run_import(call, source, rollback=True).removed == 6

    def test_an_edited_memory_is_not_overwritten(self, call, source):
        run_import(call, source)
        edit(call, OLD, content="Use sessions, on one node")

        result = run_import(call, source)

        assert result.verified
        assert show(call, OLD).content == "Use sessions, on one node"
        assert any("differ from the database" in note for note in result.notes)

    def test_a_moved_memory_is_not_imported_again(self, call, source):
        run_import(call, source)
        moved = call.mind.folder / "decisions" / "auth" / "sessions.md"
        moved.parent.mkdir()
        (call.mind.folder / "decisions" / f"{OLD}.md").rename(moved)

        assert counts(run_import(call, source))["decisions"] == (3, 0, 2, 1)

    def test_an_unreadable_file_of_that_name_is_reported(self, call, source):
        broken = call.mind.folder / "decisions" / f"{OLD}.md"
        broken.parent.mkdir()
        broken.write_bytes(b"---\nid: x\n")

        result = run_import(call, source)

        assert not result.verified
        assert result.exit_status == 1
        assert result.lost == (f"decisions {OLD}",)
        assert broken.read_bytes() == b"---\nid: x\n"

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
    def test_a_rollback_removes_everything_and_can_be_repeated(self, call, source):
        before = memories(call)
        run_import(call, source)
        after = memories(call)

        result = mama(call, rollback=True)

        assert (result.done, result.removed, result.kept) == (Done.ROLLED_BACK, 5, ())
        assert memories(call) == before
        assert search(call, "JWT를 쓴다").total == 0
        assert run_import(call, source).verified
        assert memories(call) == after

    def test_changed_and_earlier_files_stay(self, call, source):
        (call.mind.folder / "insights").mkdir()
        own = call.mind.folder / "insights" / "e1.md"
        own.write_text("mine\n", encoding="utf-8")
        run_import(call, source)
        edit(call, OLD, importance=0.9)

        result = mama(call, rollback=True)

        assert result.kept == (f".mind/decisions/{OLD}.md",)
        assert result.removed == 3
        assert own.read_text() == "mine\n"
        assert show(call, OLD).importance == 0.9

    def test_files_removed_since_are_counted(self, call, source):
        run_import(call, source)
        (call.mind.folder / "decisions" / f"{OLD}.md").unlink()

        result = mama(call, rollback=True)

        assert (result.removed, result.missing) == (4, 1)

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

    def test_a_rollback_works_without_the_source(self, call, source):
        run_import(call, source)
        source.unlink()

        assert run_import(call, source, rollback=True).removed == 5

    def test_a_rollback_without_an_import_is_an_error(self, call, source):
        with pytest.raises(NotFound, match="nothing was imported here"):
            mama(call, rollback=True)
        with pytest.raises(NotFound, match="nothing was imported from"):
            run_import(call, source, rollback=True)

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

    def test_one_of_two_sources_must_be_named(self, call, source, tmp_path):
        other = mama_databases.make(tmp_path / "b.db", decisions=[decision("decision_b")])
        run_import(call, source)
        run_import(call, other)

        with pytest.raises(Invalid, match="2 databases were imported") as error:
            mama(call, rollback=True)

        assert str(other) in error.value.hint
        assert run_import(call, other, rollback=True).removed == 1
        assert show(call, OLD).id == OLD

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
        assert counts(result)["decisions"] == (0, 0, 0, 0)
        assert "checkpoints" not in counts(result)
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

    def test_the_environment_names_the_database(self, call, source):
        call.mind.environ = {"MAMA_DB_PATH": str(source)}

        assert mama(call).source == str(source)

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
