"""Memories in commit messages, and the dates of lines in the log."""

from datetime import UTC, datetime

import pytest

from mimo.memory.approval import approval_of_entry
from mimo.memory.model import Kind
from mimo.project import git as history
from mimo.project.memories import MemoryStore
from mimo.project.walk import COMMITS, LOG
from tests.conftest import git
from tests.kit import repository

FIRST, SECOND = 1_700_000_000, 1_750_000_000
"""Times of commits."""


@pytest.fixture
def root(project):
    repository(project)
    git(project, "add", ".")
    git(project, "commit", "-m", "begin\n\ndecided: use queues\n", at=f"{FIRST} +0000")
    return project


def commit(root, message, *, at=SECOND):
    git(root, "commit", "--allow-empty", "-m", message, at=f"{at} +0000")


def records(store, path=COMMITS):
    result = store.read(path)
    assert isinstance(result, tuple)
    return result


def titles(store):
    return [record.memory.title for record in records(store)]


def test_messages_are_read_newest_first_up_to_the_limit(root):
    commit(root, "go on\n\nlearned: queues fill up\nlearned: they are slow")

    assert titles(MemoryStore(root, commits=9)) == [
        "queues fill up", "they are slow", "use queues",
    ]  # fmt: skip
    assert titles(MemoryStore(root, commits=1)) == ["queues fill up", "they are slow"]


def test_a_memory_of_a_message_is_dated_and_signed_and_approved_only_by_itself(root):
    (record,) = records(MemoryStore(root, commits=9))

    assert record.memory.type is Kind.DECISION
    assert record.memory.created == datetime.fromtimestamp(FIRST, UTC)
    assert record.memory.by == "Ann"
    assert record.place.approval == approval_of_entry(COMMITS, record.memory)


@pytest.mark.parametrize("keeps_a_log", [True, False])
def test_every_commit_changes_the_stamp(root, keeps_a_log):
    if not keeps_a_log:
        git(root, "config", "core.logAllRefUpdates", "false")
        for log in sorted((root / ".git" / "logs").rglob("*"), reverse=True):
            log.rmdir() if log.is_dir() else log.unlink()
    store = MemoryStore(root, commits=9)
    before = store.stamps()[COMMITS]
    commit(root, "go on\n\nlearned: queues fill up")

    assert store.stamps()[COMMITS] != before


def test_messages_are_not_read_without_git_or_with_the_setting_off(project, root, tmp_path):
    assert COMMITS not in MemoryStore(root, commits=0).stamps()
    assert COMMITS not in MemoryStore(tmp_path, commits=9).stamps()
    assert history.reflogs(tmp_path) is None


def test_the_log_of_git_is_watched_with_the_memories(root):
    assert MemoryStore(root, commits=9).folders() == (root / ".mind", root / ".git" / "logs")
    assert MemoryStore(root, commits=0).folders() == (root / ".mind",)


def test_a_worktree_and_a_shallow_clone_have_their_messages(root, tmp_path):
    commit(root, "go on\n\nlearned: queues fill up")
    git(root, "worktree", "add", str(tmp_path / "tree"))
    git(root, "clone", "--depth", "1", root.as_uri(), str(tmp_path / "shallow"))

    assert len(titles(MemoryStore(tmp_path / "tree", commits=9))) == 2
    assert COMMITS in MemoryStore(tmp_path / "tree", commits=9).stamps()
    assert titles(MemoryStore(tmp_path / "shallow", commits=9)) == ["queues fill up"]


def test_a_repository_without_a_commit_has_no_message(project):
    repository(project)
    store = MemoryStore(project, commits=9)

    assert COMMITS in store.stamps()
    assert store.read(COMMITS) == ()


@pytest.mark.req("003-11")
def test_lines_of_the_log_without_a_day_are_dated_by_git(root):
    log = root / LOG
    log.write_text("## Gotchas\n- old -> one\n", encoding="utf-8")
    git(root, "add", ".")
    git(root, "commit", "-m", "old", at=f"{FIRST} +0000")
    log.write_text("## Gotchas\n- old -> one\n- new -> two\n", encoding="utf-8")
    git(root, "commit", "-am", "new", at=f"{SECOND} +0000")
    log.write_text("## Gotchas\n- old -> one\n- new -> two\n- here -> three\n", encoding="utf-8")

    days = {r.memory.title: r.memory.created for r in records(MemoryStore(root), LOG)}

    assert days["old"] == datetime.fromtimestamp(FIRST, UTC)
    assert days["new"] == datetime.fromtimestamp(SECOND, UTC)
    assert days["here"].timestamp() == pytest.approx(log.stat().st_mtime)
