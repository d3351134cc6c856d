"""The log and the session files of hooks: small, private, and never a reason to fail."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimo.data.files import SESSIONS, SETTINGS
from mimo.errors import StorageFailed
from mimo.features.hooks import scene
from mimo.features.hooks.events import recognised
from mimo.features.hooks.scene import MAX_MARKS, MAX_SESSIONS, Scene, Session, Work, of_event
from mimo.project.trust import Trust

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".mind").mkdir(exist_ok=True)
    return tmp_path


def started(root: Path) -> Scene:
    """Returns the scene of a session's start."""
    event = recognised({"hook_event_name": "SessionStart"})
    assert event is not None
    return Scene(event, home=root / "home", root=root, now=NOW, environ={})


def files(root: Path) -> list[Path]:
    return sorted((root / SESSIONS).glob("*.json"))


def test_a_saved_session_is_loaded_under_its_own_name_only(root: Path) -> None:
    session = Session(shown=("a#1",), warned=("edge_x",), last="Done.", memory="context_x")
    started(root).save_session("s1", session)

    assert started(root).load_session("s1") == session
    assert started(root).load_session("s2") == Session()


def test_the_name_of_a_session_cannot_leave_the_folder(root: Path) -> None:
    started(root).save_session("../../../etc/passwd\0" * 50, Session(last="x"))

    assert [path.parent for path in files(root)] == [root / SESSIONS]
    assert files(root)[0].stat().st_mode & 0o077 == 0


def test_a_session_keeps_the_newest_marks_only(root: Path) -> None:
    session = Session(last="x" * 100_000)
    for number in range(3):
        session = session.and_shown(f"{number}-{mark}" for mark in range(MAX_MARKS))
    started(root).save_session("s1", session)

    loaded = started(root).load_session("s1")
    assert (len(loaded.shown), loaded.shown[0]) == (MAX_MARKS, "2-0")
    assert len(loaded.last) == 8_000


def test_old_sessions_and_all_but_the_newest_are_removed(root: Path) -> None:
    started(root).save_session("old", Session())
    (oldest,) = files(root)
    for number in range(MAX_SESSIONS + 5):
        started(root).save_session(f"s{number}", Session())
    os.utime(oldest, (0, 0))
    started(root).remove_old_sessions()

    assert len(files(root)) == MAX_SESSIONS
    assert oldest not in files(root)


@pytest.mark.parametrize("began", ["", "x", "2026-11-20T15:30:00"])
def test_a_session_with_work_without_a_time_begins_again(root: Path, began: str) -> None:
    session = Session(shown=("a",), work=Work(prompts=3, edits=2, began=began))
    started(root).save_session("s1", session)
    assert started(root).load_session("s1") == Session()


def test_a_folder_with_too_long_a_name_is_no_project(root: Path, tmp_path: Path) -> None:
    event = recognised({"hook_event_name": "SessionStart", "cwd": f"{root}/{'x' * 300}"})
    assert event is not None
    assert of_event(event, home=tmp_path / "home", now=NOW, environ={}) is None


@pytest.mark.attack("symbolic link")
def test_a_linked_folder_is_not_followed(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / ".mind" / ".local").symlink_to(elsewhere)

    assert started(root).load_session("s1") == Session()
    with pytest.raises(StorageFailed):
        started(root).save_session("s1", Session())
    assert list(elsewhere.iterdir()) == []


def test_the_file_is_one_json_object(root: Path) -> None:
    started(root).save_session("s1", Session(last="x"))
    data = json.loads(files(root)[0].read_text(encoding="utf-8"))
    assert data == {"shown": [], "warned": [], "last": "x", "memory": ""}


def test_each_log_entry_is_one_short_line(tmp_path: Path) -> None:
    scene.log_line(tmp_path, NOW, "failed:\nfor\ta reason " + "x" * 1000)
    scene.log_line(tmp_path, NOW, "again")

    first, second = scene.log_path(tmp_path).read_text(encoding="utf-8").splitlines()
    assert first.startswith("2026-11-20T15:30:00Z failed: for a reason xxx")
    assert len(first) < 450
    assert second == "2026-11-20T15:30:00Z again"


def test_a_large_log_loses_its_oldest_lines(tmp_path: Path) -> None:
    path = scene.log_path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"old line\n" * 40_000)
    scene.log_line(tmp_path, NOW, "new")

    lines = path.read_text(encoding="utf-8").splitlines()
    assert path.stat().st_size <= scene.MAX_LOG_BYTES
    assert (lines[0], lines[-1]) == ("old line", "2026-11-20T15:30:00Z new")


def test_a_failure_to_write_the_log_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file", encoding="utf-8")
    scene.log_line(tmp_path, NOW, "lost")

    assert (tmp_path / "logs").read_text(encoding="utf-8") == "a file"


@pytest.mark.attack("warning turned off by unapproved settings")
@pytest.mark.parametrize(
    ("current", "latest", "warns"),
    [
        ('hook.edges = "off"\n', None, True),
        ('hook.edges = "off"\n', b"format = 1\n", True),
        ('hook.edges = "off"\n', b'hook.edges = "off"\n', False),
        ("format = 1\n", b'[hook]\nedges = "off"\n', False),
        ("hook = [\n", b"format = 1\n", True),
    ],
)
def test_unapproved_settings_neither_end_nor_begin_the_warnings_of_a_hook(
    root: Path, current: str, latest: bytes | None, warns: bool
) -> None:
    trust, path = Trust(root / "home", root), root / SETTINGS
    if latest is not None:
        path.write_bytes(latest)
        trust.approve_file(SETTINGS)
    path.write_text(current, "utf-8")

    latest_text = trust.latest()[SETTINGS] or b""
    assert scene._allowed(root / "home", root, trust, latest_text).edges is warns
