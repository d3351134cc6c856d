"""`mind save checkpoint` where the home can not be written."""

from mimo.errors import StorageFailed
from mimo.features.decisions.commands import checkpoint
from mimo.features.decisions.loading import checkpoint as load
from mimo.memory.model import Kind
from mimo.operations import saving
from mimo.project.trust import Trust


def test_a_checkpoint_is_saved_even_if_the_home_is_read_only(call, monkeypatch):
    def full(*_):
        raise StorageFailed("the disk is full")

    monkeypatch.setattr(Trust, "add_checkpoints", full)
    saved = checkpoint(call, "Login works")
    assert "made elsewhere" in (saved.notice or "")
    assert load(call).summary == "Login works"


def test_two_checkpoints_with_one_text_are_two_points_in_time(call):
    draft = saving.draft(Kind.CHECKPOINT, "Login works")
    first, second = (saving.store_once(call, draft) for _ in range(2))
    assert not second.already
    assert first.record.memory.id != second.record.memory.id
