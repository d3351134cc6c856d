"""`mind add` and `edit`: failures, and what others write meanwhile."""

import itertools
from pathlib import Path

import pytest

from mimo.errors import Conflict, StorageFailed
from mimo.features.notes.commands import add, edit
from mimo.features.notes.reading import show
from mimo.memory.ids import handle_of
from mimo.operations import saving
from mimo.operations.rows import TrustLabel
from mimo.project.memories import MemoryStore
from tests.kit import do, run


def text_of(call, written) -> str:
    return Path(call.mind.project.root, written.file).read_text(encoding="utf-8")


class TestAdd:
    def test_a_failed_approval_is_reported_and_the_memory_is_stored(self, call, monkeypatch):
        def refuse(digests, **places):
            raise StorageFailed("the disk is full")

        call.mind.trust.forget()
        monkeypatch.setattr(call.mind.trust, "approve", refuse)

        written = add(call, "tea is hot")

        assert "untrusted" in (written.notice or "")
        assert show(call, written.id).trust is TrustLabel.UNTRUSTED


class TestEdit:
    def test_an_edit_compares_the_files_with_the_index_once(self, call, monkeypatch):
        written, walk, count = add(call, "tea is hot"), call.mind.store.walk, itertools.count()
        monkeypatch.setattr(call.mind.store, "walk", lambda: (next(count), walk())[1])

        edit(call, handle_of(written.id), importance=0.9)

        assert next(count) == 1

    def test_a_file_that_changed_meanwhile_is_not_overwritten(self, call):
        written = add(call, "tea is hot")
        (record,) = call.mind.store.read(written.file)
        Path(call.mind.project.root, written.file).write_text("somebody else's", encoding="utf-8")

        with pytest.raises(Conflict):
            saving.edit(call, record, importance=0.9)

        assert text_of(call, written) == "somebody else's"


class TestSeveral:
    @pytest.mark.parametrize(
        "words", [("edit", "{}", "{}", "{}", "--add-tag", "new"), ("tags", "rename", "old", "new")]
    )
    @pytest.mark.parametrize("failure", [KeyboardInterrupt(), StorageFailed("the disk is full")])
    @pytest.mark.parametrize("is_late", [True, False])
    def test_a_change_that_ends_early_leaves_none(self, call, monkeypatch, words, failure, is_late):
        written = [do(call, "add", content=text, tags=("old",)) for text in ("tea", "rum", "ale")]
        texts, ids = [text_of(call, each) for each in written], (each.id for each in written)
        line = [next(ids) if word == "{}" else word for word in words]
        update, count = MemoryStore.update, itertools.count(1)

        def fail_second(store, record, memory):
            is_second = next(count) == 2
            changed = update(store, record, memory) if is_late or not is_second else None
            if is_second:
                raise failure
            return changed

        with monkeypatch.context() as patched:
            patched.setattr(MemoryStore, "update", fail_second)
            ran = run(call, *line, status=None)

        assert [text_of(call, each) for each in written] == texts
        assert "nothing was changed" in ran.err
        assert ran.status == (130 if isinstance(failure, KeyboardInterrupt) else 1)
        assert {show(call, each.id).trust for each in written} == {TrustLabel.TRUSTED}
        assert [row.memories for row in do(call, "tags").tags] == [3]
        assert [each.command for each in do(call, "undo", list=True).changes] == ["add"] * 3
