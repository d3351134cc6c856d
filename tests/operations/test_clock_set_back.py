"""The clock was ahead and is set back: later changes are noticed, and later memories are newest."""

import time
from datetime import timedelta
from unittest import mock

from mimo.call import Call
from mimo.features.decisions.commands import checkpoint
from mimo.features.decisions.loading import checkpoint as load
from mimo.memory.model import Kind
from mimo.operations import finding, refresh, saving
from tests.conftest import Clock
from tests.kit import put


def test_a_duplicate_is_detected_in_a_file_that_was_added_by_hand(call: Call) -> None:
    path = put(
        call.mind.folder / "facts" / "earlier.md",
        "---\nid: earlier\ntype: fact\n---\nThe proxy cuts bodies.\n",
    )
    with mock.patch("time.time_ns", return_value=time.time_ns() + 400 * 86_400 * 10**9):
        refresh.refresh(call)
    path = path.with_name("by_hand.md")
    path.write_text("---\nid: by_hand\ntype: fact\n---\nStaging is reset.\n", "utf-8")
    call.mind.trust.approve(call.mind.store.approvals(".mind/facts/by_hand.md"))

    stored = saving.store_once(call, saving.draft(Kind.FACT, "Staging is reset."))
    assert stored.already


def test_a_memory_saved_later_is_newer(call: Call, clock: Clock) -> None:
    checkpoint(call, "Step 1 of the migration")
    clock.forward(hours=-2)
    checkpoint(call, "Step 2 of the migration")
    saving.store(call, saving.draft(Kind.FACT, "Staging is reset"))
    clock.forward(minutes=1)
    saving.store(call, saving.draft(Kind.FACT, "The proxy cuts bodies"))

    assert load(call).summary == "Step 2 of the migration"
    newest = [record.memory.content for record in finding.listing(call).records]
    assert newest == [
        "The proxy cuts bodies", "Staging is reset", "Step 2 of the migration",
        "Step 1 of the migration",
    ]  # fmt: skip


def test_a_date_that_is_years_ahead_does_not_spread(call: Call, clock: Clock) -> None:
    right = clock.now
    clock.forward(days=900)
    saving.store(call, saving.draft(Kind.FACT, "Staging is reset"))
    clock.forward(days=-900)
    later = saving.store(call, saving.draft(Kind.FACT, "The proxy cuts bodies"))
    assert later.memory.created - right < timedelta(seconds=1)
