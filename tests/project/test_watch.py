"""Watching folders for changes."""

import shutil
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import watchfiles

from mimo.project import watch
from mimo.project.watch import Watch


@pytest.fixture
def folder(tmp_path):
    """The `.mind/` of a project that is itself below folders with the names of mind's own."""
    made = tmp_path / ".local" / ".index" / ".mind"
    (made / "facts").mkdir(parents=True)
    return made


@pytest.fixture
def settled(folder):
    """A watch over the folder that has seen everything so far."""
    watching = Watch([folder])
    assert watching.changed()
    watching.settle()
    yield watching
    watching.close()


def test_nothing_has_changed_at_first(folder, settled):
    assert not settled.changed()

    (folder / "facts" / "tea.md").write_text("hot", encoding="utf-8")

    assert settled.changed()


def test_a_change_is_reported_until_it_is_settled(folder, settled):
    (folder / "facts" / "tea.md").write_text("hot", encoding="utf-8")

    assert settled.changed()
    assert settled.changed()
    settled.settle()
    assert not settled.changed()


def test_changes_in_place_and_in_new_folders_are_reported(folder, settled):
    path = folder / "facts" / "tea.md"
    path.write_text("hot", encoding="utf-8")
    assert settled.changed()
    settled.settle()

    path.write_text("cold", encoding="utf-8")
    assert settled.changed()
    settled.settle()

    (folder / "plans").mkdir()
    assert settled.changed()


def test_changes_below_moved_and_new_folders_are_reported(folder, settled):
    def reported(path, change):
        for _ in range(1000):
            change()  # Again: a new folder is watched some milliseconds after it is reported.
            paths = settled.pending().paths
            if paths is None or str(path) in paths:
                return settled.settle()
        pytest.fail(f"{path} was not reported")

    deep = Path("deep", "deeper", "tea.md")
    before, after = folder / "facts" / deep, folder / "moved" / deep
    reported(folder / "facts" / "deep", lambda: before.parent.mkdir(parents=True, exist_ok=True))
    reported(before, lambda: before.write_text("hot", encoding="utf-8"))
    (folder / "facts").rename(folder / "moved")
    reported(folder / "moved", lambda: None)
    reported(after, lambda: after.write_text("cold", encoding="utf-8"))
    after.unlink()
    reported(after, lambda: None)


def test_a_folder_that_is_removed_and_made_again_is_watched_again(folder, settled):
    shutil.rmtree(folder)
    folder.mkdir()
    assert settled.changed()
    assert settled.pending().paths is None
    settled.settle()
    settled.settle()

    (folder / "tea.md").write_text("hot", encoding="utf-8")
    assert settled.changed()
    assert str(folder / "tea.md") in settled.pending().paths


def test_files_are_compared_if_reports_take_too_long(folder, settled, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(watch, "_REPORT_SECONDS", 0.0)
        assert settled.pending().paths is None
    settled.settle()
    assert settled.pending().paths == ()


def test_a_report_during_a_comparison_is_not_settled_by_it(folder, settled):
    first = settled.pending()
    settled.unsettle()
    settled.settle(first.mark)
    assert settled.pending().paths is None
    settled.settle()
    assert settled.pending().paths == ()


def test_changes_in_minds_own_folders_are_ignored(folder, settled):
    (folder / ".index").mkdir()
    (folder / ".index" / "index.db").write_text("x", encoding="utf-8")

    assert not settled.changed()


def test_a_project_below_folders_with_the_names_of_minds_own_is_reported_to_the_daemon(folder):
    path, stop = folder / "facts" / "tea.md", threading.Event()

    with writing(path, stop):
        assert path in next(watch.changes([folder], stop=stop, recursive=True))


@contextmanager
def writing(path, stop):
    """Writes a file again and again in a thread, which gives up after some seconds."""

    def write():
        for number in range(500):
            path.write_text(f"{number}")
            if stop.wait(0.02):
                return
        stop.set()

    thread = threading.Thread(target=write)
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.mark.parametrize(
    "error", [OSError("OS file watch limit reached"), RuntimeError("too many open files")]
)
def test_files_are_compared_if_they_cannot_be_watched(folder, monkeypatch, caplog, error):
    watches = watchfiles.watch

    def limited(*folders, force_polling, **options):
        if not force_polling:
            raise error
        yield from watches(*folders, force_polling=True, **options)

    monkeypatch.setattr(watchfiles, "watch", limited)
    monkeypatch.setattr(watch, "_POLL_MS", 10)
    monkeypatch.setattr(watch, "_warned", set())
    for _ in range(2):
        path, stop = folder / "facts" / "tea.md", threading.Event()
        with writing(path, stop):
            assert path in next(watch.changes([folder], stop=stop, recursive=True))
    watching = Watch([folder])
    for _ in range(3):
        assert watching.changed()
        watching.settle()
    assert [record.getMessage().partition("); ")[2] for record in caplog.records] == [
        "comparing the files every few seconds",
        "comparing the files with each request",
    ]


def test_a_missing_folder_is_not_compared_instead(tmp_path, caplog):
    with pytest.raises(FileNotFoundError):
        next(watch.changes([tmp_path / "gone"], stop=threading.Event(), recursive=True))
    assert not caplog.records


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
