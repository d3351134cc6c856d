"""With many files, digests of their stamps show that none has changed, or where."""

import os
import random
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from mimo import disk
from mimo.index import rows
from mimo.index.index import Index
from mimo.memory.model import Filter
from mimo.mind import Mind
from mimo.operations import refresh
from mimo.store import walk
from mimo.store.watch import Watch

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

    def counted(index: Index, paths: Collection[str] | None = None) -> object:
        calls.append(1)
        return stamps(index, paths)

    monkeypatch.setattr(Index, "stamps", counted)
    monkeypatch.setattr(disk, "_FINE_GRAIN_NS", -(10**18))
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


@pytest.fixture
def small_portions(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> Mind:
    """A memory of 40 files in portions of 4, and no file that may have changed unseen."""
    monkeypatch.setattr(walk, "_PORTION", 4)
    monkeypatch.setattr(disk, "_FINE_GRAIN_NS", -(10**18))
    for number in range(40):
        (mind.folder / "facts" / f"file{number}.md").write_text(f"Fact {number}\n", "utf-8")
    for _ in range(2):
        refresh.refresh(mind)
    return mind


def test_a_change_compares_few_files(small_portions: Mind, monkeypatch) -> None:
    mind, asked = small_portions, list[int]()
    stamps = Index.stamps

    def counted(index: Index, paths: Collection[str] | None = None) -> object:
        asked.append(len(paths or ()))
        return stamps(index, paths)

    def all_files(*_: object) -> None:
        pytest.fail("all files were compared")

    monkeypatch.setattr(Index, "stamps", counted)
    monkeypatch.setattr(refresh, "_all_different", all_files)
    facts = mind.folder / "facts"
    (facts / "file7.md").write_text("Another fact\n", "utf-8")
    assert refresh.refresh(mind).changed == 1
    refresh.refresh(mind)
    (facts / "by_hand.md").write_text("A new fact\n", "utf-8")
    assert refresh.refresh(mind).added == 1
    refresh.refresh(mind)
    (facts / "by_mind.md").write_text("A newer fact\n", "utf-8")
    (facts / "file9.md").unlink()
    refresh.note_change(mind, ".mind/facts/by_mind.md", ".mind/facts/file9.md")
    for _ in range(3):
        assert refresh.refresh(mind) == refresh.Refreshed()
    assert max(asked) < 30


@pytest.mark.parametrize("seed", range(3))
def test_after_any_changes_the_index_has_the_files(small_portions: Mind, seed: int) -> None:
    mind, draw = small_portions, random.Random(seed)
    facts = mind.folder / "facts"
    for step in range(30):
        path = draw.choice(sorted(facts.glob("*.md")))
        kind = draw.randrange(6)
        if kind in (0, 1):
            path = facts / f"new{step}.md" if kind else path
            path.write_text(f"Fact of step {step}\n", "utf-8")
        elif kind == 2:
            path.unlink()
        elif kind == 3:
            path.rename(facts / f"renamed{step}.md")
        elif kind == 4:
            age(path, seconds=step)
        if draw.random() < 0.4:
            refresh.note_change(mind, f".mind/facts/{path.name}")
        if draw.random() < 0.6:
            refresh.refresh(mind)
            indexed = {name: stamp for name, (stamp, _) in mind.index.stamps().items()}
            assert indexed == mind.store.stamps()


def test_a_rebuilt_index_without_files_is_empty(mind: Mind) -> None:
    assert refresh.up_to_date(mind).count(Filter()) > 0
    for path in list(mind.folder.rglob("*.md")):
        path.unlink()

    refresh.rebuild(mind)

    assert mind.index.count(Filter()) == 0


def test_a_rebuilt_index_is_filled(mind: Mind) -> None:
    for _ in range(2):
        refresh.refresh(mind)
    assert refresh.rebuild(mind).added == mind.index.stats().files > COUNT


def test_a_file_that_may_have_changed_unseen_is_compared_again(mind: Mind, monkeypatch) -> None:
    """Two changes within the clock's resolution leave the same stamp."""
    monkeypatch.setattr(disk, "_FINE_GRAIN_NS", 10**19)
    for _ in range(2):
        assert refresh.refresh(mind).changed > COUNT


@pytest.fixture
def watched(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mind]:
    """A memory whose files are watched, and have been compared."""
    monkeypatch.setattr(Watch, "_is_local", True)
    mind.watch()
    for _ in range(2):
        assert mind.watched is not None
        mind.watched.unsettle()
        refresh.refresh(mind)
    yield mind
    mind.close()


def refreshed(mind: Mind) -> refresh.Refreshed:
    """Returns the first refresh that sees a change; its report may take milliseconds."""
    return next(done for _ in range(1000) if (done := refresh.refresh(mind)) != refresh.Refreshed())


@pytest.mark.parametrize("change", ["edited", "added", "removed"])
def test_a_reported_change_is_indexed_without_a_walk(
    watched: Mind, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(watched.store, "walk", lambda: pytest.fail("it looked at all files"))
    path = watched.folder / "facts" / ("new.md" if change == "added" else "note0.md")
    if change == "removed":
        path.unlink()
    else:
        path.write_text("Kettles are descaled with vinegar\n", encoding="utf-8")

    done = refreshed(watched)
    counts = {"added": done.added, "edited": done.changed, "removed": done.removed}
    assert counts == dict.fromkeys(counts, 0) | {change: 1}

    assert watched.index.stamps().keys() == set(walk.walk(watched.project.root).files)
    if change != "removed":
        (record,) = watched.index.ask(rows.select, "WHERE m.id = ?", (path.stem,))
        assert "Kettles" in record.memory.text


@pytest.mark.parametrize("change", ["moved", "removed", "linked"])
def test_a_changed_folder_is_walked(watched: Mind, change: str) -> None:
    folder = watched.folder / "facts"
    if change == "removed":
        shutil.rmtree(folder)
    else:
        folder.rename(watched.folder / "plans")
    if change == "linked":
        folder.symlink_to(watched.folder / "plans")

    refreshed(watched)

    assert watched.index.stamps().keys() == watched.store.stamps().keys()
    assert len(watched.index.stamps()) == (1 if change == "removed" else COUNT + 1)


def test_a_replaced_index_is_filled_from_all_files(watched: Mind) -> None:
    for path in watched.index_folder.glob("index*"):
        path.unlink()
    (watched.folder / "facts" / "new.md").write_text("Tea\n", encoding="utf-8")

    refreshed(watched)

    assert len(watched.index.stamps()) == COUNT + 2


def test_the_stamps_of_changed_paths_are_those_of_a_walk(tmp_path: Path) -> None:
    names = (
        "a.md", "b.txt", ".hidden.md", "facts/c.md", "facts/.d/e.md", "values/f.md", "values.md",
        "private/g.md", "private/values/h.md", "facts/values/i.md", "procedures/j.md", "K.MARKDOWN",
    )  # fmt: skip
    for name in names:
        path = tmp_path / ".mind" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    (tmp_path / ".mind" / "link.md").symlink_to("a.md")
    (tmp_path / ".mind" / "linked").symlink_to("facts")
    paths = [f"{tmp_path}/.mind/{name}" for name in names]

    assert walk.stamps_of(tmp_path, paths) == dict(walk.walk(tmp_path).files.items())
    missing = walk.stamps_of(tmp_path, [f"{tmp_path}/.mind/facts/gone.md"])
    assert missing == {".mind/facts/gone.md": None}
    for other in (".mind/link.md", ".mind/linked/c.md", ".mind/facts", "src/a.md", ".mind"):
        assert walk.stamps_of(tmp_path, [f"{tmp_path}/{other}"]) is None
    assert walk.stamps_of(tmp_path, ["/elsewhere/.mind/a.md"]) is None
