"""Keeping the index in step with the files."""

import gc
import os
import weakref

import pytest

from mimo.call import Call
from mimo.data import disk
from mimo.features.notes.commands import add
from mimo.features.search.commands import search
from mimo.features.upkeep.indexing import index
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.operations import finding, refresh, saving, searching
from mimo.project import projects
from tests.kit import with_console, write


def age(path, seconds=10):
    """Lets the file look as if it had been written some time ago."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - seconds * 10**9 + 1))


def test_a_second_change_within_the_grain_of_the_clock_is_not_missed(call):
    """Same size, same times, same inode: only that the look was too soon gives it away."""
    path = write(call, "facts/tea.md", "Tea is hot!\n")
    status = path.stat()
    assert search(call, "tea").total == 1
    with path.open("r+b") as file:
        file.write(b"Tea is cold\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert search(call, "tea").results[0].content == "Tea is cold"


def test_an_unchanged_store_is_not_read_again(call, monkeypatch):
    for number in range(3):
        age(write(call, f"n{number}.md", f"note {number}\n"))
    refresh.refresh(call)
    monkeypatch.setattr(disk, "_FINE_GRAIN_NS", 0)

    again = refresh.refresh(call)

    assert (again.added, again.changed, again.removed) == (0, 0, 0)


def test_a_refresh_counts_files(call, monkeypatch):
    monkeypatch.setattr(disk, "_FINE_GRAIN_NS", 0)
    index(call)
    write(call, "facts/a.md", "alpha\n")
    write(call, "facts/b.md", "beta\n")
    first = index(call)
    write(call, "facts/a.md", "alpha, changed\n")
    (call.mind.folder / "facts" / "b.md").unlink()
    write(call, "facts/c.md", "gamma\n")
    second = index(call)

    assert (first.added, first.memories) == (2, 2)
    assert (second.added, second.changed, second.removed) == (1, 1, 1)


def test_progress_is_reported_while_files_are_read(call):
    message = []
    call = with_console(
        call, progress=lambda what, done, total: message.append((what, done, total))
    )
    for number in range(3):
        write(call, f"n{number}.md", f"note {number}\n")

    refresh.refresh(call)

    assert message[-1] == ("Indexing", 4, 4)


@pytest.mark.req("004-82")
def test_without_an_embedder_words_still_find(call):
    from mimo.index.embedding import Embedder

    class Broken:
        model = "broken"

        def encode(self, text):
            raise OSError("the model is gone")

        def encode_many(self, texts):
            raise OSError("the model is gone")

    broken: Embedder = Broken()
    call.mind._parts["embedder"] = broken
    add(call, "uploads fail above 10 MB")
    call.mind.index.encoder = lambda: None

    results = search(call, "uploads of videos by a phone")

    assert results.total == 1
    assert results.notice


def test_a_watched_store_is_scanned_only_after_a_change(call, monkeypatch):
    path = write(call, "facts/tea.md", "Tea is hot\n")
    call.mind.watch()
    assert search(call, "tea").total == 1
    with monkeypatch.context() as patched:
        patched.setattr(call.mind.store, "stamps", lambda: pytest.fail("it looked at the files"))

        assert search(call, "tea").total == 1

    path.write_text("Coffee is bitter\n", encoding="utf-8")
    assert any(search(call, "coffee").total for _ in range(1000))
    call.mind.watched.close()


def test_a_memory_that_is_closed_keeps_no_file_open_until_a_collection(project, home):
    """The index is freed by the last reference, with garbage uncollected."""
    gc.disable()
    try:
        call = Call(Mind(home=home, project=projects.explicit(project, home), environ={}))
        saving.store(call, saving.draft(Kind.FACT, "Tea is drunk at four"))
        assert searching.search(call, "when is tea", finding.Options(limit=3, threshold=0)).hits
        held: list[weakref.ref[object]] = [weakref.ref(call), weakref.ref(call.mind.index)]
        call.mind.close()
        del call
        assert [record() for record in held] == [None] * 2
    finally:
        gc.enable()
