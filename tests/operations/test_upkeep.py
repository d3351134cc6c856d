"""Keeping the index in step with the files."""

import gc
import os
import weakref

import pytest

from mimo import disk
from mimo.features.notes.commands import add
from mimo.features.search.commands import search
from mimo.features.upkeep.indexing import index
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.operations import finding, refresh, saving
from mimo.store import projects


def write(mind, name, text):
    path = mind.folder / "facts" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def age(path, seconds=10):
    """Lets the file look as if it had been written some time ago."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - seconds * 10**9 + 1))


def test_a_file_made_changed_or_removed_by_hand_shows_at_the_next_command(mind):
    path = write(mind, "tea.md", "Tea is hot\n")
    assert search(mind, "tea").results[0].content == "Tea is hot"

    write(mind, "tea.md", "Tea is lukewarm by now\n")
    assert search(mind, "tea").results[0].content == "Tea is lukewarm by now"

    path.unlink()
    assert search(mind, "tea").total == 0


def test_a_second_change_within_the_grain_of_the_clock_is_not_missed(mind):
    """Same size, same times, same inode: only that the look was too soon gives it away."""
    path = write(mind, "tea.md", "Tea is hot!\n")
    status = path.stat()
    assert search(mind, "tea").total == 1
    with path.open("r+b") as file:
        file.write(b"Tea is cold\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert search(mind, "tea").results[0].content == "Tea is cold"


def test_an_unchanged_store_is_not_read_again(mind, monkeypatch):
    for number in range(3):
        age(write(mind, f"n{number}.md", f"note {number}\n"))
    refresh.refresh(mind)
    monkeypatch.setattr(disk, "_FINE_GRAIN_NS", 0)

    again = refresh.refresh(mind)

    assert (again.added, again.changed, again.removed) == (0, 0, 0)


def test_a_refresh_counts_files(mind, monkeypatch):
    monkeypatch.setattr(disk, "_FINE_GRAIN_NS", 0)
    index(mind)
    write(mind, "a.md", "alpha\n")
    write(mind, "b.md", "beta\n")
    first = index(mind)
    write(mind, "a.md", "alpha, changed\n")
    (mind.folder / "facts" / "b.md").unlink()
    write(mind, "c.md", "gamma\n")
    second = index(mind)

    assert (first.added, first.memories) == (2, 2)
    assert (second.added, second.changed, second.removed) == (1, 1, 1)


def test_a_rebuilt_index_answers_the_same(mind):
    for text in ("uploads fail above 10 MB", "lunch is at noon", "we chose postgres"):
        add(mind, text)
    before = search(mind, "uploads")

    rebuilt = index(mind, rebuild=True)

    assert rebuilt.memories == 3
    assert search(mind, "uploads") == before


def test_deleting_the_index_loses_nothing(mind):
    import shutil

    add(mind, "uploads fail above 10 MB")
    before = search(mind, "uploads")
    shutil.rmtree(mind.folder / ".index")

    assert search(mind.reopened(), "uploads") == before


def test_a_damaged_index_is_rebuilt(mind):
    add(mind, "uploads fail above 10 MB")
    before = search(mind, "uploads")
    for path in (mind.folder / ".index").iterdir():
        path.write_bytes(b"garbage" * 100)

    after = search(mind.reopened(), "uploads")

    assert after.results == before.results


def test_an_index_damaged_while_open_is_rebuilt(mind):
    add(mind, "uploads fail above 10 MB")
    before = search(mind, "uploads").results
    for path in (mind.folder / ".index").iterdir():
        path.write_bytes(b"garbage" * 1000)

    assert search(mind, "uploads").results == before


def test_an_unreadable_file_is_listed_and_left_alone(mind):
    path = write(mind, "broken.md", "---\ntitle: [never closed\n---\ntext\n")
    before = path.read_bytes()

    index(mind)

    (problem,) = refresh.problems(mind)
    assert problem.path == ".mind/facts/broken.md"
    assert problem.line is not None
    assert path.read_bytes() == before


def test_progress_is_reported_while_files_are_read(mind):
    message = []
    mind.progress = lambda what, done, total: message.append((what, done, total))
    for number in range(3):
        write(mind, f"n{number}.md", f"note {number}\n")

    refresh.refresh(mind)

    assert message[-1] == ("Indexing", 4, 4)


@pytest.mark.req("004-82")
def test_without_an_embedder_words_still_find(mind):
    from mimo.index.embedding import Embedder

    class Broken:
        model = "broken"

        def encode(self, text):
            raise OSError("the model is gone")

        def encode_many(self, texts):
            raise OSError("the model is gone")

    broken: Embedder = Broken()
    mind._parts["embedder"] = broken
    add(mind, "uploads fail above 10 MB")
    mind.index.encoder = lambda: None

    results = search(mind, "uploads of videos by a phone")

    assert results.total == 1
    assert results.notice


def test_a_watched_store_is_scanned_only_after_a_change(mind, monkeypatch):
    path = write(mind, "tea.md", "Tea is hot\n")
    mind.watch()
    assert search(mind, "tea").total == 1
    with monkeypatch.context() as patched:
        patched.setattr(mind.store, "stamps", lambda: pytest.fail("it looked at the files"))

        assert search(mind, "tea").total == 1

    path.write_text("Coffee is bitter\n", encoding="utf-8")
    assert any(search(mind, "coffee").total for _ in range(1000))
    mind.watched.close()


def test_a_memory_that_is_closed_keeps_no_file_open_until_a_collection(project, home):
    """The index is freed by the last reference, with garbage uncollected."""
    gc.disable()
    try:
        mind = Mind(home=home, project=projects.explicit(project, home), environ={})
        saving.store(mind, saving.draft(Kind.FACT, "Tea is drunk at four"))
        assert finding.search(mind, "when is tea", finding.Options(limit=3, threshold=0)).hits
        held: list[weakref.ref[object]] = [weakref.ref(mind), weakref.ref(mind.index)]
        mind.close()
        del mind
        assert [record() for record in held] == [None] * 2
    finally:
        gc.enable()
