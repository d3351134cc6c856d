"""With many files, digests of their stamps show that none has changed, or where."""

import os
import random
import shutil
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.data import disk
from mimo.index import rows
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.memory.model import Filter
from mimo.operations import refresh
from mimo.project import walk
from mimo.project.watch import Watch
from tests.kit import put

COUNT = 6


@pytest.fixture
def call(call: Call, monkeypatch) -> Call:
    """A memory whose files count as many, and are old, but were written just before the index."""
    monkeypatch.setattr(refresh, "_MANY", COUNT)
    (call.mind.folder / "facts").mkdir(exist_ok=True)
    for number in range(COUNT):
        path = call.mind.folder / "facts" / f"note{number}.md"
        path.write_text(f"Service {number} writes to a queue\n", "utf-8")
        age(path, seconds=60)
    with monkeypatch.context() as now:
        now.setattr(disk, "_FINE_GRAIN_NS", 10**19)
        refresh.refresh(call)
    return call


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


def test_unchanged_files_are_compared_once(call: Call, compared: list[int]) -> None:
    for _ in range(4):
        assert refresh.refresh(call) == refresh.Refreshed()
    assert compared == [1]


def test_changed_files_are_compared_once(call: Call, compared: list[int]) -> None:
    (call.mind.folder / "facts" / "note0.md").write_text("Service 0 writes to a log\n", "utf-8")

    assert refresh.refresh(call).changed == 1
    compared.clear()

    assert refresh.refresh(call) == refresh.Refreshed()
    assert compared == []


@pytest.mark.parametrize("is_first", [True, False])
def test_files_that_another_process_removes_meanwhile_come_back(
    call: Call, compared: list[int], monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    """It saw a folder moved away and back, which changes no stamp."""
    apply = Index.apply

    def raced(index: Index, changes: Iterable[Change], **parts: Any) -> frozenset[str]:
        late = frozenset[str]() if is_first else apply(index, changes, **parts)
        apply(index, [Change(path=".mind/facts/note0.md", stamp=None)], now_ns=parts["now_ns"])
        return apply(index, changes, **parts) if is_first else late

    (call.mind.folder / "late.md").write_text("A late fact\n", "utf-8")
    with monkeypatch.context() as other:
        other.setattr(Index, "apply", raced)
        refresh.refresh(call)

    assert refresh.refresh(call) == refresh.Refreshed(added=1)


@pytest.mark.parametrize("change", ["edited", "added", "removed", "renamed", "replaced"])
def test_each_change_is_noticed(call: Call, compared: list[int], change: str) -> None:
    for _ in range(2):
        refresh.refresh(call)
    first = call.mind.folder / "facts" / "note0.md"
    if change == "edited":
        size = first.stat().st_size
        first.write_text("x" * size, "utf-8")
    elif change == "added":
        (call.mind.folder / "facts" / "late.md").write_text("A late fact\n", "utf-8")
    elif change == "removed":
        first.unlink()
    elif change == "renamed":
        first.rename(first.with_name("other.md"))
    else:
        new = first.with_name("new.tmp")
        new.write_bytes(first.read_bytes())
        new.replace(first)

    done = refresh.refresh(call)

    assert (done.added, done.changed, done.removed) == {
        "edited": (0, 1, 0),
        "added": (1, 0, 0),
        "removed": (0, 0, 1),
        "renamed": (1, 0, 1),
        "replaced": (0, 1, 0),
    }[change]


@pytest.fixture
def many(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """A memory of 40 files, none of which may have changed unseen."""
    monkeypatch.setattr(disk, "_FINE_GRAIN_NS", -(10**18))
    for number in range(40):
        (call.mind.folder / "facts" / f"file{number}.md").write_text(f"Fact {number}\n", "utf-8")
    for _ in range(2):
        refresh.refresh(call)
    return call


@pytest.mark.parametrize("seed", range(3))
def test_after_any_changes_the_index_has_the_files(many: Call, seed: int) -> None:
    call, draw = many, random.Random(seed)
    facts = call.mind.folder / "facts"
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
            refresh.note_change(call, f".mind/facts/{path.name}")
        if draw.random() < 0.6:
            refresh.refresh(call)
            indexed = {name: stamp for name, (stamp, _) in call.mind.index.stamps().items()}
            assert indexed == call.mind.store.stamps()


def test_a_rebuilt_index_without_files_is_empty(call: Call) -> None:
    assert refresh.up_to_date(call).count(Filter()) > 0
    for path in list(call.mind.folder.rglob("*.md")):
        path.unlink()

    refresh.rebuild(call)

    assert call.mind.index.count(Filter()) == 0


def test_a_rebuilt_index_is_filled(call: Call) -> None:
    for _ in range(2):
        refresh.refresh(call)
    assert refresh.rebuild(call).added == call.mind.index.stats().files > COUNT


def test_a_file_that_may_have_changed_unseen_is_compared_again(call: Call, monkeypatch) -> None:
    """Two changes within the clock's resolution leave the same stamp."""
    monkeypatch.setattr(disk, "_FINE_GRAIN_NS", 10**19)
    for _ in range(2):
        assert refresh.refresh(call).changed > COUNT


@pytest.fixture
def watched(call: Call, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """A memory whose files are watched, and have been compared."""
    monkeypatch.setattr(Watch, "_is_local", True)
    call.mind.watch()
    for _ in range(2):
        assert call.mind.watched is not None
        call.mind.watched.unsettle()
        refresh.refresh(call)
    yield call
    call.mind.close()


def refreshed(call: Call) -> refresh.Refreshed:
    """Returns the first refresh that sees a change; its report may take milliseconds."""
    return next(done for _ in range(1000) if (done := refresh.refresh(call)) != refresh.Refreshed())


@pytest.mark.parametrize("change", ["edited", "added", "removed"])
def test_a_reported_change_is_indexed_without_a_walk(
    watched: Call, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(watched.mind.store, "walk", lambda: pytest.fail("it looked at all files"))
    path = watched.mind.folder / "facts" / ("new.md" if change == "added" else "note0.md")
    if change == "removed":
        path.unlink()
    else:
        path.write_text("Kettles are descaled with vinegar\n", encoding="utf-8")

    done = refreshed(watched)
    counts = {"added": done.added, "edited": done.changed, "removed": done.removed}
    assert counts == dict.fromkeys(counts, 0) | {change: 1}

    assert watched.mind.index.stamps().keys() == set(walk.walk(watched.mind.project.root).files)
    if change != "removed":
        (record,) = watched.mind.index.ask(rows.select, "WHERE m.id = ?", (path.stem,))
        assert "Kettles" in record.memory.text


@pytest.mark.parametrize("change", ["moved", "removed", "linked"])
def test_a_changed_folder_is_walked(watched: Call, change: str) -> None:
    folder = watched.mind.folder / "facts"
    if change == "removed":
        shutil.rmtree(folder)
    else:
        folder.rename(watched.mind.folder / "plans")
    if change == "linked":
        folder.symlink_to(watched.mind.folder / "plans")

    refreshed(watched)

    assert watched.mind.index.stamps().keys() == watched.mind.store.stamps().keys()
    assert len(watched.mind.index.stamps()) == (1 if change == "removed" else COUNT + 1)


def test_a_replaced_index_is_filled_from_all_files(watched: Call) -> None:
    for path in watched.mind.index_folder.glob("index*"):
        path.unlink()
    (watched.mind.folder / "facts" / "new.md").write_text("Tea\n", encoding="utf-8")

    refreshed(watched)

    assert len(watched.mind.index.stamps()) == COUNT + 2


def test_the_stamps_of_changed_paths_are_those_of_a_walk(tmp_path: Path) -> None:
    names = (
        "a.md", "b.txt", ".hidden.md", "facts/c.md", "facts/.d/e.md", "values/f.md", "values.md",
        "private/g.md", "private/values/h.md", "facts/values/i.md", "procedures/j.md", "K.MARKDOWN",
    )  # fmt: skip
    for name in names:
        put(tmp_path / ".mind" / name, name)
    (tmp_path / ".mind" / "link.md").symlink_to("a.md")
    (tmp_path / ".mind" / "linked").symlink_to("facts")
    paths = [f"{tmp_path}/.mind/{name}" for name in names]

    assert walk.stamps_of(tmp_path, paths) == dict(walk.walk(tmp_path).files.items())
    missing = walk.stamps_of(tmp_path, [f"{tmp_path}/.mind/facts/gone.md"])
    assert missing == {".mind/facts/gone.md": None}
    for other in (".mind/link.md", ".mind/linked/c.md", ".mind/facts", "src/a.md", ".mind"):
        assert walk.stamps_of(tmp_path, [f"{tmp_path}/{other}"]) is None
    assert walk.stamps_of(tmp_path, ["/elsewhere/.mind/a.md"]) is None
