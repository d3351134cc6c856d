"""What was said in a session: small, and gone with the sessions."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.errors import StorageFailed
from mimo.features.hooks import storage
from mimo.features.hooks.storage import FOLDER, MOST_MARKS, MOST_SESSIONS, Session


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".mind").mkdir(exist_ok=True)
    return tmp_path


def files(root: Path) -> list[Path]:
    return sorted((root / FOLDER).glob("*.json"))


def test_what_was_remembered_is_known_in_that_session_alone(root: Path) -> None:
    said = Session(shown=("a#1",), warned=("edge_x",), last="Done.", memory="context_x")
    storage.save(root, "s1", said)

    assert storage.load(root, "s1") == said
    assert storage.load(root, "s2") == Session()


def test_no_name_of_a_session_leads_out_of_the_folder(root: Path) -> None:
    storage.save(root, "../../../etc/passwd\0" * 50, Session(last="x"))

    assert [path.parent for path in files(root)] == [root / FOLDER]
    assert files(root)[0].stat().st_mode & 0o077 == 0


def test_it_never_grows_without_end(root: Path) -> None:
    session = Session(last="x" * 100_000)
    for number in range(3):
        session = session.and_shown(f"{number}-{mark}" for mark in range(MOST_MARKS))
    storage.save(root, "s1", session)

    known = storage.load(root, "s1")
    assert (len(known.shown), known.shown[0]) == (MOST_MARKS, "2-0")
    assert len(known.last) == storage.LONGEST_LAST


def test_old_sessions_and_all_but_the_newest_are_forgotten(root: Path) -> None:
    for number in range(MOST_SESSIONS + 5):
        storage.save(root, f"s{number}", Session())
    storage.save(root, "old", Session())
    oldest = next(path for path in files(root) if path.name == storage._path(root, "old").name)
    os.utime(oldest, (0, 0))
    with storage.held(root):
        storage.clean(root)

    assert len(files(root)) == MOST_SESSIONS
    assert oldest not in files(root)


@given(st.binary(max_size=100) | st.just(b"[" * 20_000) | st.just(b'{"shown": [1]}'))
def test_a_file_that_can_t_be_read_is_a_new_session(tmp_path: Path, data: bytes) -> None:
    (tmp_path / ".mind").mkdir(exist_ok=True)
    storage.save(tmp_path, "s1", Session(last="x"))
    storage._path(tmp_path, "s1").write_bytes(data)

    assert storage.load(tmp_path, "s1") == Session()


@pytest.mark.attack("symbolic link")
def test_a_folder_that_is_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / ".mind" / ".local").symlink_to(elsewhere)

    assert storage.load(root, "s1") == Session()
    with pytest.raises(StorageFailed):
        storage.save(root, "s1", Session())
    assert list(elsewhere.iterdir()) == []


def test_the_file_is_one_object_of_texts(root: Path) -> None:
    storage.save(root, "s1", Session(last="x"))
    told = json.loads(files(root)[0].read_text(encoding="utf-8"))
    assert told == {"shown": [], "warned": [], "last": "x", "memory": ""}
