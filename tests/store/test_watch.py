"""Watching folders for changes."""

import os
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from mimo.store import inotify, watch
from mimo.store.inotify import Changes, Lost
from mimo.store.watch import Watch


@pytest.fixture
def folder(tmp_path):
    """The `.mind/` of a project that is itself below folders with the names of mind's own."""
    made = tmp_path / ".local" / ".index" / ".mind"
    (made / "facts").mkdir(parents=True)
    return made


@pytest.fixture(params=[sys.platform, "another system"])
def settled(folder, request, monkeypatch):
    """A watch over the folder that has seen everything so far."""
    monkeypatch.setattr(sys, "platform", request.param)
    watching = Watch([folder])
    assert watching.changed()
    watching.settle()
    yield watching
    watching.close()


def notices(watching):
    """Returns whether a change is reported, which may take milliseconds on a busy machine."""
    return any(watching.changed() for _ in range(1000))


def test_nothing_has_changed_at_first(folder, settled):
    assert not settled.changed()

    (folder / "facts" / "tea.md").write_text("hot", encoding="utf-8")

    assert notices(settled)


def test_a_change_is_reported_until_it_is_settled(folder, settled):
    (folder / "facts" / "tea.md").write_text("hot", encoding="utf-8")

    assert notices(settled)
    assert settled.changed()
    settled.settle()
    assert not settled.changed()


def test_changes_in_place_and_in_new_folders_are_reported(folder, settled):
    path = folder / "facts" / "tea.md"
    path.write_text("hot", encoding="utf-8")
    assert notices(settled)
    settled.settle()

    path.write_text("cold", encoding="utf-8")
    assert notices(settled)
    settled.settle()

    (folder / "plans").mkdir()
    assert notices(settled)


def test_changes_below_moved_and_new_folders_are_reported(folder, settled):
    def reported(path, change, *, again=False):
        change()
        for _ in range(1000):
            paths = settled.pending().paths
            if paths is None or str(path) in paths:
                return settled.settle()
            if again:
                change()
        pytest.fail(f"{path} was not reported")

    # Threads begin to watch a new folder some milliseconds after they report it.
    late = sys.platform != "linux"
    deep = Path("deep", "deeper", "tea.md")
    before, after = folder / "facts" / deep, folder / "moved" / deep
    reported(folder / "facts" / "deep", lambda: before.parent.mkdir(parents=True))
    reported(before, lambda: before.write_text("hot", encoding="utf-8"), again=late)
    reported(folder / "moved", lambda: (folder / "facts").rename(folder / "moved"))
    reported(after, lambda: after.write_text("cold", encoding="utf-8"), again=late)
    reported(after, after.unlink)


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_on_linux_a_change_is_reported_at_once_by_its_path(folder):
    changes = Changes([folder], lambda path: not path.endswith("/.index"))
    away, back = folder.parent / "away", folder / "back"
    (folder / "facts").rename(away)
    (away / "unseen.md").write_text("x")
    (folder / ".index").mkdir()
    assert changes.read() == {f"{folder}/facts"}

    away.rename(back)
    assert changes.read() == {str(back)}
    (back / "tea.md").write_text("hot")
    assert changes.read() == {f"{back}/tea.md"}
    assert changes.read() == set()

    (back / "tea.md").chmod(0o600)
    assert changes.read() == {f"{back}/tea.md"}

    folder.rename(folder.parent / "renamed")
    with pytest.raises(Lost):
        changes.read()
    changes.close()


@pytest.mark.parametrize("system", ["linux", "another system"])
def test_files_are_compared_again_soon_unless_the_reports_are_exact(folder, monkeypatch, system):
    if system not in (sys.platform, "another system"):
        pytest.skip("inotify is Linux's")
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(Watch, "_is_local", True)
    watching = Watch([folder])

    first = watching.pending()
    watching.settle(first.mark)
    assert watching._valid_seconds == (300.0 if system == "linux" else 5.0)

    # The walk of another thread began before these reports.
    watching.unsettle()
    watching._close()
    assert watching.pending().paths is None
    watching.settle(first.mark)
    assert watching._valid_seconds == 5.0
    watching.close()


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_if_the_system_drops_reports_any_file_may_have_changed(folder, monkeypatch):
    watching = Watch([folder])
    watching.changed()
    watching.settle()
    (folder / "facts" / "tea.md").write_text("hot")
    overflow = inotify._EVENT.pack(-1, inotify._OVERFLOW, 0, 0)
    with monkeypatch.context() as patched:
        patched.setattr(os, "read", lambda *_: overflow)
        assert watching.pending().paths is None
    watching.close()


def test_changes_in_minds_own_folders_are_ignored(folder, settled):
    (folder / ".index").mkdir()
    (folder / ".index" / "index.db").write_text("x", encoding="utf-8")

    assert not settled.changed()


def test_a_project_below_folders_with_the_names_of_minds_own_is_reported_to_the_daemon(folder):
    path, stop = folder / "facts" / "tea.md", threading.Event()

    def write():
        for _ in range(500):
            path.write_text("hot")
            if stop.wait(0.02):
                return
        stop.set()

    writing = threading.Thread(target=write)
    writing.start()
    assert path in next(watch.changes([folder], stop=stop, recursive=True))
    stop.set()
    writing.join()


def test_an_empty_set_is_yielded_if_nothing_changes(folder, monkeypatch):
    monkeypatch.setattr(watch, "_LONGEST_SLEEP_MS", 50)
    for folders in ([folder], []):
        stop = threading.Event()
        giving_up = threading.Timer(30, stop.set)
        giving_up.start()
        assert next(watch.changes(folders, stop=stop, recursive=True), None) == frozenset()
        giving_up.cancel()


def test_an_unchanged_answer_expires_after_seconds(settled, monkeypatch):
    settled.settle()
    monkeypatch.setattr(watch, "_TRUSTED_LOCALLY_SECONDS", 0.0)
    monkeypatch.setattr(watch, "_TRUSTED_SECONDS", 0.0)
    settled.settle()

    assert settled.changed()


@pytest.mark.parametrize(
    ("types", "seconds"), [("ext4 btrfs", 300.0), ("ext4 nfs4", 5.0), ("", 5.0)]
)
def test_it_is_valid_for_longer_on_local_file_systems(monkeypatch, tmp_path, types, seconds):
    devices = {"a": 0x101, "b": 0x102}
    mounts = "".join(
        f"2{n} 1 1:{n} / /{n} rw,relatime shared:1 - {kind} /dev/sda rw\n"
        for n, kind in enumerate(types.split(), 1)
    )
    (tmp_path / "mountinfo").write_text(mounts, encoding="utf-8")
    monkeypatch.setattr(watch, "_MOUNTS", str(tmp_path / "mountinfo"))
    monkeypatch.setattr(Path, "stat", lambda path: Status(devices[path.name]))
    watching = Watch([Path(name) for name in devices])

    watching.settle()
    assert watching._valid_seconds == 5.0
    watching.settle()
    assert watching._valid_seconds == seconds


class Status(NamedTuple):
    """The status of a folder on a device."""

    st_dev: int


def test_a_folder_that_cannot_be_watched_counts_as_changed(tmp_path):
    watching = Watch([tmp_path / "missing"])

    assert watching.changed()
    watching.settle()
    assert watching.changed()


def test_unsettle_reports_a_change(settled):
    settled.unsettle()

    assert settled.changed()
