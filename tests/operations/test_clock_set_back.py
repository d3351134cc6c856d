"""The clock was ahead and is set back: later changes are noticed."""

import time
from unittest import mock

from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.operations import refresh, saving
from mimo.store import files


def test_a_duplicate_is_detected_in_a_file_that_was_added_by_hand(mind: Mind) -> None:
    path = mind.folder / "facts" / "earlier.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("---\nid: earlier\ntype: fact\n---\nThe proxy cuts bodies.\n", "utf-8")
    with mock.patch("time.time_ns", return_value=time.time_ns() + 400 * 86_400 * 10**9):
        refresh.refresh(mind)
    path = path.with_name("by_hand.md")
    path.write_text("---\nid: by_hand\ntype: fact\n---\nStaging is reset.\n", "utf-8")
    mind.trust.approve([files.digest(path.read_bytes())])

    stored = saving.store_once(mind, saving.draft(Kind.FACT, "Staging is reset."))
    assert stored.already
