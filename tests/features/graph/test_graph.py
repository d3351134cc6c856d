"""The walk along links is shared; `walks.transcript` has what it finds."""

import time

import pytest

from mimo.call import Call
from mimo.operations import finding
from tests.kit import acting_as, fact


def test_every_view_of_a_memory_shares_one_walk(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact(call, "a", "A note")
    later = time.time_ns() + 3_600_000_000_000  # Of fresh files every question is a new one.
    monkeypatch.setattr(time, "time_ns", lambda: later)

    first = finding.linked(call, ["a"], depth=1)

    assert finding.linked(acting_as(call, "claude-code"), ["a"], depth=1) is first
