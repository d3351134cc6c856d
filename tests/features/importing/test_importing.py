"""`mind import mama`: everything comes, once, and can be taken back."""

import json
import sqlite3
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from mimo.commands.common import TrustLabel
from mimo.errors import Conflict, Invalid, NotFound, StorageFailed
from mimo.features import importing
from mimo.features.decisions.checkpoints import Whose
from mimo.features.decisions.loading import checkpoint
from mimo.features.importing import database
from mimo.features.importing.commands import Done, MamaImport, mama
from mimo.features.notes.commands import edit
from mimo.features.notes.reading import show
from mimo.features.search.commands import search
from mimo.features.upkeep.commands import doctor
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.store import files
from mimo.store.locking import lock
from tests import mama_databases
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


def written(mind: Mind) -> dict[str, bytes]:
    """Returns the project's files but for the index and the locks."""
    root = mind.project.root
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted((root / ".mind").rglob("*"))
        if path.is_file() and ".index" not in path.parts and path.name != "lock"
    }


def memories(mind: Mind) -> dict[str, bytes]:
    rules = ".mind/private/.gitignore"
    return {p: data for p, data in written(mind).items() if "/.local/" not in p and p != rules}


def bring(mind: Mind, source: Path, **options: bool) -> MamaImport:
    return mama(mind, db=str(source), **options)


def counts(result: MamaImport) -> dict[str, tuple[int, int, int, int]]:
    return {
        row.table: (row.found, row.written, row.already_there, row.skipped) for row in result.tables
    }


class TestImporting:
    @pytest.mark.req("004-61")
    @pytest.mark.req("004-65")
    @pytest.mark.req("004-66")
    @pytest.mark.req("004-79")
    def test_every_row_becomes_a_memory_or_is_accounted_for(self, mind, source):
        result = bring(mind, source)

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
        assert (result.links.found, result.links.written, result.links.dangling) == (4, 2, 1)
        assert set(memories(mind)) >= {
            f".mind/decisions/{OLD}.md",
            f".mind/decisions/{NEW}.md",
            ".mind/checkpoints/checkpoint_1.md",
            ".mind/private/contexts/s1.md",
            ".mind/insights/e1.md",
        }

    @pytest.mark.req("004-69")
    def test_what_was_imported_is_found_trusted_and_in_its_chain(self, mind, source):
        bring(mind, source)

        old = show(mind, OLD)
        (hit, *_) = search(mind, "login 인증 JWT를 쓴다").results

        assert (old.type, old.superseded_by, old.trust) == (
            Kind.DECISION, NEW, TrustLabel.TRUSTED,
        )  # fmt: skip
        assert hit.id == NEW
        mind.trust.follow(False)
        assert show(mind, NEW).trust is TrustLabel.TRUSTED
        assert [row.to for row in show(mind, NEW).links] == [OLD, "gone"]
        assert any("`gone`, which is not there" in check.message for check in doctor(mind).checks)

    @pytest.mark.req("004-69")
    def test_work_goes_on_where_it_stopped(self, mind, source):
        bring(mind, source)

        resumed = checkpoint(mind)

        assert (resumed.summary, resumed.next_steps) == ("Half of the login", "write tests")
        assert resumed.open_files == ("a.py",)
        assert resumed.made is Whose.BRANCH

    def test_a_checkpoint_whose_branch_nobody_knows_is_this_machines(self, mind, source):
        git = mind.project.root / ".git"
        git.mkdir()
        (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        bring(mind, source)

        resumed = checkpoint(mind)

        assert resumed.made is Whose.MACHINE
        assert (resumed.notice or "").startswith("made on this machine, ")

    @pytest.mark.req("004-80")
    def test_sessions_are_private(self, mind, source):
        bring(mind, source)

        assert show(mind, "s1").private
        assert not show(mind, OLD).private

    @pytest.mark.req("004-62")
    @pytest.mark.req("004-63")
    def test_the_source_stays_as_it_is_and_a_copy_is_kept(self, mind, source):
        before = {path.name: path.read_bytes() for path in source.parent.iterdir()}

        result = bring(mind, source)

        assert {path.name: path.read_bytes() for path in source.parent.iterdir()} == before
        assert result.backup is not None
        copy = mind.project.root / result.backup
        assert copy.stat().st_mode & 0o777 == 0o600
        with sqlite3.connect(copy) as sql:
            assert sql.execute("SELECT count(*) FROM decisions").fetchone() == (3,)
        sql.close()

    @pytest.mark.req("004-63")
    def test_the_copy_is_there_before_anything_else_is_written(self, mind, source, monkeypatch):
        def refuse(*_: object) -> None:
            raise StorageFailed("no space left on the disk")

        monkeypatch.setattr(type(mind.store), "create_all", refuse)
        before = memories(mind)

        with pytest.raises(StorageFailed):
            bring(mind, source)

        assert memories(mind) == before
        assert list((mind.folder / ".local/imports").glob("mama-*.db"))

    def test_nothing_of_it_can_be_committed(self, mind, source):
        result = bring(mind, source)

        assert result.manifest is not None
        assert (mind.folder / ".local" / ".gitignore").read_text() == "*\n"
        assert (mind.project.root / result.manifest).stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("rollback", [True, False])
    def test_a_dry_run_writes_nothing(self, mind, source, rollback):
        if rollback:
            bring(mind, source)
        before = written(mind)

        result = bring(mind, source, dry_run=True, rollback=rollback)

        assert written(mind) == before
        if rollback:
            assert (result.done, result.removed) == (Done.ROLLBACK_PLANNED, 5)
        else:
            assert (result.done, result.backup) == (Done.PLANNED, None)
            assert counts(result)["decisions"] == (3, 2, 0, 1)

    def test_a_dry_run_does_not_even_make_an_index(self, mind, source):
        bring(mind, source, dry_run=True)

        assert not (mind.folder / ".index").exists()


class TestAgain:
    @pytest.mark.req("004-65")
    def test_a_second_time_changes_nothing(self, mind, source):
        bring(mind, source)
        before = memories(mind)

        result = bring(mind, source)

        assert memories(mind) == before
        assert result.verified
        assert counts(result)["decisions"] == (3, 0, 2, 1)
        assert len(list((mind.folder / ".local/imports").glob("*.db"))) == 1

    def test_what_came_since_is_added(self, mind, source):
        bring(mind, source)
        with sqlite3.connect(source) as sql:
            mama_databases.insert(sql, "decisions", [decision("decision_x", supersedes=NEW)])
        sql.close()

        result = bring(mind, source)

        assert counts(result)["decisions"] == (4, 1, 2, 1)
        assert show(mind, NEW).superseded_by == "decision_x"
        assert bring(mind, source, rollback=True).removed == 6

    def test_what_somebody_changed_is_never_overwritten(self, mind, source):
        bring(mind, source)
        edit(mind, OLD, content="Use sessions, on one node")

        result = bring(mind, source)

        assert result.verified
        assert show(mind, OLD).content == "Use sessions, on one node"
        assert any("say something else" in note for note in result.notes)

    def test_a_memory_of_that_id_elsewhere_counts(self, mind, source):
        bring(mind, source)
        moved = mind.folder / "decisions" / "auth" / "sessions.md"
        moved.parent.mkdir()
        (mind.folder / "decisions" / f"{OLD}.md").rename(moved)

        assert counts(bring(mind, source))["decisions"] == (3, 0, 2, 1)

    def test_a_file_of_that_name_that_can_not_be_read_is_told(self, mind, source):
        broken = mind.folder / "decisions" / f"{OLD}.md"
        broken.parent.mkdir()
        broken.write_bytes(b"---\nid: x\n")

        result = bring(mind, source)

        assert not result.verified
        assert result.exit_status == 1
        assert result.lost == (f"decisions {OLD}",)
        assert broken.read_bytes() == b"---\nid: x\n"

    @pytest.mark.req("004-66")
    @pytest.mark.parametrize("broken_at", [0, 1, 7, 23, 60])
    def test_an_import_that_was_interrupted_is_completed(
        self, mind, tmp_path, monkeypatch, broken_at
    ):
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
            bring(mind, big)
        monkeypatch.setattr(files, "_give_name", really)

        result = bring(mind, big)

        assert result.verified
        (row,) = (row for row in result.tables if row.table == "decisions")
        assert row.written + row.already_there == row.found == 60
        assert len(list((mind.folder / "decisions").iterdir())) == 60
        assert bring(mind, big, rollback=True).removed == 60

    def test_a_full_disk_leaves_whole_files_and_a_list_of_them(self, mind, tmp_path, monkeypatch):
        big = mama_databases.many(tmp_path / "big.db", 30)
        monkeypatch.setattr(importing, "BATCH", 10)
        really, flushed = files._flush_file, list[Path]()

        def full(path: Path) -> None:
            if len(flushed) >= 15:
                raise OSError(28, "No space left on device", str(path))
            flushed.append(path)
            really(path)

        monkeypatch.setattr(files, "_flush_file", full)
        with pytest.raises(StorageFailed, match="no space left") as error:
            bring(mind, big)
        assert "run it again" in error.value.hint
        monkeypatch.setattr(files, "_flush_file", really)

        assert len(list((mind.folder / "decisions").iterdir())) == 10
        assert bring(mind, big, rollback=True).removed == 10
        assert bring(mind, big).verified


@pytest.mark.req("004-64")
class TestRollingBack:
    def test_all_goes_and_can_come_again(self, mind, source):
        before = memories(mind)
        bring(mind, source)
        after = memories(mind)

        result = mama(mind, rollback=True)

        assert (result.done, result.removed, result.kept) == (Done.ROLLED_BACK, 5, ())
        assert memories(mind) == before
        assert search(mind, "JWT를 쓴다").total == 0
        assert bring(mind, source).verified
        assert memories(mind) == after

    def test_what_was_changed_or_was_there_before_stays(self, mind, source):
        (mind.folder / "insights").mkdir()
        own = mind.folder / "insights" / "e1.md"
        own.write_text("mine\n", encoding="utf-8")
        bring(mind, source)
        edit(mind, OLD, importance=0.9)

        result = mama(mind, rollback=True)

        assert result.kept == (f".mind/decisions/{OLD}.md",)
        assert result.removed == 3
        assert own.read_text() == "mine\n"
        assert show(mind, OLD).importance == 0.9

    def test_what_somebody_removed_meanwhile_is_no_obstacle(self, mind, source):
        bring(mind, source)
        (mind.folder / "decisions" / f"{OLD}.md").unlink()

        result = mama(mind, rollback=True)

        assert (result.removed, result.gone) == (4, 1)

    def test_a_change_at_the_last_moment_is_kept(self, mind, source, monkeypatch):
        bring(mind, source)
        path = mind.folder / "decisions" / f"{OLD}.md"
        really = type(mind.store).delete_all

        def late(self, digests):
            path.write_text("changed\n", encoding="utf-8")
            return really(self, digests)

        monkeypatch.setattr(type(mind.store), "delete_all", late)

        assert mama(mind, rollback=True).kept == (f".mind/decisions/{OLD}.md",)
        assert path.read_text() == "changed\n"

    def test_it_works_when_the_source_is_gone(self, mind, source):
        bring(mind, source)
        source.unlink()

        assert bring(mind, source, rollback=True).removed == 5

    def test_where_nothing_was_imported_that_is_said(self, mind, source):
        with pytest.raises(NotFound, match="nothing was imported here"):
            mama(mind, rollback=True)
        with pytest.raises(NotFound, match="nothing was imported from"):
            bring(mind, source, rollback=True)

    def test_of_two_sources_one_is_named(self, mind, source, tmp_path):
        other = mama_databases.make(tmp_path / "b.db", decisions=[decision("decision_b")])
        bring(mind, source)
        bring(mind, other)

        with pytest.raises(Invalid, match="2 databases were imported") as error:
            mama(mind, rollback=True)

        assert str(other) in error.value.hint
        assert bring(mind, other, rollback=True).removed == 1
        assert show(mind, OLD).id == OLD

    @pytest.mark.parametrize(
        "planted",
        ['{"files": {"../../precious.md": "%s"}}', '{"files": {"README.md": "%s"}}', "[]", "{", ""],
    )
    @pytest.mark.attack("path out of the sandbox")
    def test_a_list_that_came_with_a_clone_can_not_reach_outside(self, mind, source, planted):
        result = bring(mind, source)
        assert result.manifest is not None
        path = mind.project.root / result.manifest
        data = json.loads(path.read_bytes())
        if planted.startswith('{"'):
            data |= json.loads(planted % ("0" * 64))
            planted = json.dumps(data)
        path.write_text(planted, encoding="utf-8")

        with pytest.raises(StorageFailed, match="is damaged"):
            mama(mind, rollback=True)


class TestSources:
    @pytest.mark.req("004-66")
    def test_a_database_with_nothing_in_it_is_no_error(self, mind, tmp_path):
        path = mama_databases.make(tmp_path / "m.db", with_checkpoints=False)

        result = bring(mind, path)

        assert result.verified
        assert counts(result)["decisions"] == (0, 0, 0, 0)
        assert "checkpoints" not in counts(result)
        assert result.notes == ("the database has no table checkpoints",)

    def test_a_later_version_comes_as_far_as_it_is_understood(self, mind, tmp_path):
        path = mama_databases.make(
            tmp_path / "m.db",
            version=40,
            decisions=[decision("decision_a", evidence="A benchmark of both")],
            link_audit_log=[{"action": "approved"}],
        )

        result = bring(mind, path)

        assert "A benchmark of both" in show(mind, "decision_a").sections["Reasoning"]
        assert [note.partition(":")[0] for note in result.notes] == [
            "its schema is version 40, newer than 24",
            "table link_audit_log holds no memories",
        ]

    def test_the_database_is_found_where_the_environment_says(self, mind, source):
        mind.environ = {"MAMA_DB_PATH": str(source)}

        assert mama(mind).source == str(source)

    def test_a_row_too_large_for_a_file_is_named(self, mind, tmp_path):
        path = mama_databases.make(
            tmp_path / "m.db", decisions=[decision("decision_a", decision="x" * 1_100_000)]
        )

        result = bring(mind, path)

        (left,) = result.skipped
        assert left.ids == ("decision_a",)
        assert "too large" in left.reason

    def test_two_imports_at_once_wait_for_each_other(self, mind, source, monkeypatch):
        monkeypatch.setattr(database, "lock", partial(lock, wait=0.01))
        with database.hold(mind.project.root), pytest.raises(StorageFailed, match="is held by"):
            bring(mind, source)

    def test_a_store_of_a_later_mind_is_left_alone(self, mind, source):
        (mind.folder / "config.toml").write_text("format = 2\n", encoding="utf-8")

        with pytest.raises(StorageFailed, match="format 2"):
            bring(mind.reopened(), source)


def test_files_in_bulk_leave_what_is_there(tmp_path):
    there = tmp_path / "a.md"
    there.write_bytes(b"old")

    taken = files.write_all_new({there: b"new", tmp_path / "deep" / "b.md": b"new"})

    assert taken == {there}
    assert there.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.md", "b.md", "deep"]


def test_files_in_bulk_are_removed_only_while_they_are_the_same(tmp_path):
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "c").write_bytes(b"changed")
    wanted = {tmp_path / name: files.digest(name.encode()) for name in "abcd"}

    kept = files.remove_all(wanted)

    assert list(kept) == [tmp_path / "c"]
    assert isinstance(kept[tmp_path / "c"], Conflict)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
