"""With many files, one digest of their stamps shows that none has changed."""

import os

import pytest

from mimo.index.index import Index
from mimo.mind import Mind
from mimo.operations import refresh

COUNT = 6


@pytest.fixture
def mind(mind: Mind, monkeypatch) -> Mind:
    """A memory whose files count as many, and are too old to be read again."""
    monkeypatch.setattr(refresh, "_MANY", COUNT)
    (mind.folder / "facts").mkdir(exist_ok=True)
    for number in range(COUNT):
        path = mind.folder / "facts" / f"note{number}.md"
        path.write_text(f"Service {number} writes to a queue\n", "utf-8")
        age(path, seconds=60)
    refresh.refresh(mind)
    return mind


def age(path, *, seconds):
    """Lets a file look older; its inode change time stays."""
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


@pytest.fixture
def compared(monkeypatch) -> list[int]:
    """The number of refreshes that read the stamp of each file from the index."""
    calls: list[int] = []
    stamps = Index.stamps

    def counted(index: Index) -> object:
        calls.append(1)
        return stamps(index)

    monkeypatch.setattr(Index, "stamps", counted)
    monkeypatch.setattr(refresh, "_is_stale", lambda now, then: then is None or now != then[0])
    return calls


def test_unchanged_files_are_compared_once(mind: Mind, compared: list[int]) -> None:
    for _ in range(4):
        assert refresh.refresh(mind) == refresh.Refreshed()
    assert compared == [1]


@pytest.mark.parametrize("change", ["edited", "added", "removed", "renamed", "replaced"])
def test_each_change_is_noticed(mind: Mind, compared: list[int], change: str) -> None:
    for _ in range(2):
        refresh.refresh(mind)
    first = mind.folder / "facts" / "note0.md"
    if change == "edited":
        size = first.stat().st_size
        first.write_text("x" * size, "utf-8")
    elif change == "added":
        (mind.folder / "facts" / "late.md").write_text("A late fact\n", "utf-8")
    elif change == "removed":
        first.unlink()
    elif change == "renamed":
        first.rename(first.with_name("other.md"))
    else:
        new = first.with_name("new.tmp")
        new.write_bytes(first.read_bytes())
        new.replace(first)

    done = refresh.refresh(mind)

    assert (done.added, done.changed, done.removed) == {
        "edited": (0, 1, 0),
        "added": (1, 0, 0),
        "removed": (0, 0, 1),
        "renamed": (1, 0, 1),
        "replaced": (0, 1, 0),
    }[change]


def test_a_rebuilt_index_is_filled(mind: Mind) -> None:
    for _ in range(2):
        refresh.refresh(mind)
    assert refresh.rebuild(mind).added == mind.index.stats().files > COUNT


def test_a_file_that_may_have_changed_unseen_is_compared_again(mind: Mind, monkeypatch) -> None:
    """Two changes within the clock's resolution leave the same stamp."""
    monkeypatch.setattr(refresh, "_is_stale", lambda now, then: True)
    for _ in range(2):
        assert refresh.refresh(mind).changed > COUNT
