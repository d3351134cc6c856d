"""`mind add`, `show`, `edit`, `rm` and `list`."""

import itertools
from pathlib import Path

import pytest

from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.features.notes.commands import add, edit
from mimo.features.notes.reading import list_, show
from mimo.memory.ids import handle_of
from mimo.operations import saving
from mimo.operations.rows import TrustLabel


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

    def test_a_tag_is_the_same_in_each_form_of_unicode(self, call):
        composed, decomposed = "gr\u00f6\u00dfe", "Gro\u0308\u00dfe"
        written = add(call, "tea is hot", tags=(decomposed,))

        assert [row.id for row in list_(call, tags=(composed,)).memories] == [written.id]
        assert add(call, "tea is hot", tags=(composed,)).id == written.id
        edit(call, written.id, add_tags=(composed,))
        assert show(call, written.id).tags == (decomposed,)
        edit(call, written.id, remove_tags=(composed,))
        assert show(call, written.id).tags == ()

    @pytest.mark.parametrize(
        ("old", "new", "reason"),
        [
            ("type: fact", "type: banana", "`type` must be one of"),
            ("type: fact", "type: fact\nimportance: 99", "`importance` must be a number"),
            ("tea is hot", "", "content is empty"),
        ],
    )
    def test_a_new_text_of_the_file_is_checked(self, call, old, new, reason):
        written = add(call, "tea is hot")
        text = text_of(call, written)

        with pytest.raises(Invalid, match=reason):
            edit(call, written.id, file_text=text.replace(old, new))

        assert text_of(call, written) == text

    @pytest.mark.parametrize(
        ("old", "new"), [("---\n", "---\ntitle: [open\n"), ("id: fact", "id: other"), ("", "")]
    )
    def test_a_text_with_another_id_is_refused_and_the_file_stays(self, call, old, new):
        written = add(call, "tea is hot")
        text = text_of(call, written)
        changed = text.replace(old, new, 1) if old else "   "

        with pytest.raises(Invalid):
            edit(call, written.id, file_text=changed)

        assert text_of(call, written) == text

    def test_a_file_that_changed_meanwhile_is_not_overwritten(self, call):
        written = add(call, "tea is hot")
        (record,) = call.mind.store.read(written.file)
        Path(call.mind.project.root, written.file).write_text("somebody else's", encoding="utf-8")

        with pytest.raises(Conflict):
            saving.edit(call, record, importance=0.9)

        assert text_of(call, written) == "somebody else's"
