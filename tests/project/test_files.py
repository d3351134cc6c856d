"""Atomic writes: another process sees the old or the new content, never a part of one."""

import errno
import os
import stat
import time
from pathlib import Path

import pytest

from mimo.data import append_log, disk, files
from mimo.errors import Conflict, Invalid, StorageFailed

LEFT = f"{disk.TEMPORARY_PREFIX}9-abc{disk.TEMPORARY_SUFFIX}"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def failing(monkeypatch, function, error):
    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(os, function, fail)


def test_a_new_file_and_its_folders_are_created(tmp_path):
    path = tmp_path / "a" / "b" / "c.md"
    files.write_new(path, b"one")
    assert path.read_bytes() == b"one"
    assert names(path.parent) == ["c.md"]


def test_a_new_file_never_overwrites(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"theirs")
    with pytest.raises(Conflict):
        files.write_new(path, b"ours")
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["a.md"]


def test_a_new_file_never_overwrites_without_hard_links(tmp_path, monkeypatch):
    failing(monkeypatch, "link", OSError(errno.EPERM, "no links"))
    path = tmp_path / "a.md"
    files.write_new(path, b"one")
    with pytest.raises(Conflict):
        files.write_new(path, b"two")
    assert path.read_bytes() == b"one"
    assert names(tmp_path) == ["a.md"]


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"one")
    path.chmod(0o640)
    files.replace(path, b"two", expect=files.digest(b"one"))
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_new_file_has_the_given_permissions(tmp_path):
    files.replace(tmp_path / "a", b"x", mode=0o600)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@pytest.mark.parametrize("change", ["edit", "remove"])
def test_a_file_changed_since_it_was_read_is_not_replaced(tmp_path, change):
    path = tmp_path / "a.md"
    if change == "edit":
        path.write_bytes(b"theirs")
    for action in (
        lambda: files.replace(path, b"ours", expect=files.digest(b"one")),
        lambda: files.remove(path, expect=files.digest(b"one")),
    ):
        with pytest.raises(Conflict) as raised:
            action()
        assert raised.value.hint
    assert names(tmp_path) == (["a.md"] if change == "edit" else [])


def test_a_file_is_removed_only_if_it_is_unchanged(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"one")
    files.remove(path, expect=files.digest(b"one"))
    assert names(tmp_path) == []


def test_a_file_gets_another_name_and_content(tmp_path):
    old, new = tmp_path / "a.md", tmp_path / "folder" / "b.md"
    old.write_bytes(b"one")

    files.move(old, new, b"two", expect=files.digest(b"one"))

    assert names(tmp_path) == ["folder"]
    assert new.read_bytes() == b"two"


@pytest.mark.parametrize("change", ["edit", "take the name"])
def test_a_file_is_moved_only_if_it_is_unchanged_and_the_name_is_free(tmp_path, change):
    old, new = tmp_path / "a.md", tmp_path / "b.md"
    old.write_bytes(b"theirs" if change == "edit" else b"one")
    if change == "take the name":
        new.write_bytes(b"theirs")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    with pytest.raises(Conflict):
        files.move(old, new, b"two", expect=files.digest(b"one"))

    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_that_appears_during_a_move_is_not_replaced(tmp_path, monkeypatch):
    old, new, fsync = tmp_path / "a.md", tmp_path / "b.md", os.fsync
    old.write_bytes(b"one")

    def overtaken(descriptor):
        new.write_bytes(b"theirs")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", overtaken)
    with pytest.raises(Conflict):
        files.move(old, new, b"two", expect=files.digest(b"one"))
    assert (old.read_bytes(), new.read_bytes()) == (b"one", b"theirs")
    assert names(tmp_path) == ["a.md", "b.md"]


def test_a_move_that_is_interrupted_leaves_one_file(tmp_path, monkeypatch):
    old, new = tmp_path / "a.md", tmp_path / "b.md"
    old.write_bytes(b"one")
    monkeypatch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))

    with pytest.raises(KeyboardInterrupt):
        files.move(old, new, b"two", expect=files.digest(b"one"))

    assert names(tmp_path) == ["a.md"]
    assert old.read_bytes() == b"two"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EPERM, "not permitted"),
        (errno.EFBIG, "too large"),
        (errno.EIO, "input/output error"),
    ],
)
def test_a_failing_disk_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, number, words):
    path = tmp_path / "a.md"
    path.write_bytes(b"one")
    failing(monkeypatch, "fsync", OSError(number, os.strerror(number)))
    for action in (
        lambda: files.replace(path, b"two"),
        lambda: files.write_new(tmp_path / "b.md", b"two"),
    ):
        with pytest.raises(StorageFailed) as raised:
            action()
        assert words in raised.value.message.lower()
        assert raised.value.details["errno"] == errno.errorcode[number]
        # The command may have changed other files.
        assert raised.value.hint
        assert "nothing was changed" not in raised.value.hint
    assert path.read_bytes() == b"one"
    assert names(tmp_path) == ["a.md"]


def test_an_interrupt_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "a.md"
    path.write_bytes(b"one")
    failing(monkeypatch, "fsync", KeyboardInterrupt())
    for action in (
        lambda: files.replace(path, b"two"),
        lambda: files.write_new(tmp_path / "b.md", b"two"),
    ):
        with pytest.raises(KeyboardInterrupt):
            action()
    assert path.read_bytes() == b"one"
    assert names(tmp_path) == ["a.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_reported(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageFailed, match="permission denied"):
        files.write_new(tmp_path / "a.md", b"x")
    tmp_path.chmod(0o700)


def test_links_are_neither_read_nor_written(tmp_path):
    target = tmp_path / "target.md"
    target.write_bytes(b"theirs")
    link = tmp_path / "link.md"
    link.symlink_to(target)
    with pytest.raises(OSError, match="symbolic"):
        disk.read(link)
    with pytest.raises(StorageFailed, match="symbolic link"):
        files.replace(link, b"ours")
    with pytest.raises(StorageFailed, match="symbolic link"):
        files.remove(link)
    with pytest.raises(StorageFailed, match="symbolic link"):
        append_log.append(link, b"ours\n")
    with pytest.raises(Conflict):
        files.write_new(link, b"ours")
    assert target.read_bytes() == b"theirs"


def test_only_regular_files_are_read(tmp_path):
    pipe = tmp_path / "pipe.md"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        disk.read(pipe)


def test_a_path_stays_below_its_root(tmp_path):
    assert files.safe_path(tmp_path, "a/b.md") == tmp_path / "a" / "b.md"
    for path in ("../a", "a/../../b", "/etc/passwd", "a//b", "", ".", "a\0b", "a\\..\\b"):
        with pytest.raises(Invalid):
            files.safe_path(tmp_path, path)
    (tmp_path / "out").symlink_to(tmp_path.parent, target_is_directory=True)
    with pytest.raises(StorageFailed, match="symbolic link"):
        files.safe_path(tmp_path, "out/a.md")


def test_few_writes_list_a_large_folder(tmp_path, monkeypatch):
    now = 60 * (int(time.time()) // 60)
    old = tmp_path / ".mind-1-a.tmp"
    old.write_bytes(b"")
    os.utime(old, (now - 7200, now - 7200))
    monkeypatch.setattr(files, "_LARGE_FOLDER", -1)
    monkeypatch.setattr(time, "time", lambda: now + 59.5)
    files.write_new(tmp_path / "a.md", b"a")
    assert old.exists()
    monkeypatch.setattr(time, "time", lambda: now + 60.5)
    files.write_new(tmp_path / "b.md", b"b")
    assert not old.exists()


def test_temporary_files_of_killed_processes_are_removed_after_an_hour(tmp_path):
    left, fresh = tmp_path / LEFT, tmp_path / LEFT.replace("abc", "def")
    left.write_bytes(b"")
    fresh.write_bytes(b"")
    hour_ago = fresh.stat().st_mtime - 3700
    os.utime(left, (hour_ago, hour_ago))
    files.write_new(tmp_path / "a.md", b"x")
    assert names(tmp_path) == [fresh.name, "a.md"]


def test_a_kill_leaves_no_empty_ignore_file_in_a_private_folder(tmp_path, monkeypatch):
    private = tmp_path / ".mind/private"
    private.mkdir(parents=True)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", killed)
        with pytest.raises(KeyboardInterrupt):
            disk.make_folder(private)

    assert not (private / ".gitignore").exists()

    disk.make_folder(private)

    assert (private / ".gitignore").read_text() == "*\n"


@pytest.mark.attack("private text in git")
def test_git_ignores_a_private_folder_whose_ignore_file_has_other_rules(tmp_path):
    rules = tmp_path / ".mind/private/.gitignore"
    rules.parent.mkdir(parents=True)
    rules.touch()
    disk.make_folder(rules.parent)

    assert rules.read_text() == "*\n"

    for text in ("# none", "!*\n", "*\n!shared.md\n"):  # As a clone may bring them.
        rules.write_text(text)
        disk.make_folder(rules.parent)
        assert rules.read_text() == f"{text.rstrip()}\n*\n"
    rules.write_text("!shared.md\n*\n")
    disk.make_folder(rules.parent)

    assert rules.read_text() == "!shared.md\n*\n"
    assert list(rules.parent.iterdir()) == [rules]


def test_watchers_see_only_what_is_written(tmp_path: Path) -> None:
    """Watchers approve texts, so they must not see one that is not written."""
    taken, new, seen = tmp_path / "taken.md", tmp_path / "new.md", list[Path]()
    taken.write_text("earlier")

    with files.watched(seen.extend):
        with pytest.raises(Conflict):
            files.write_new(taken, b"ours")
        assert files.write_all_new({taken: b"ours", new: b"ours"}) == {taken}

    assert seen == [new]
    assert taken.read_text() == "earlier"
