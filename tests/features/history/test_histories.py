"""Two random git histories; bench/ has one of each kind, and `make histories` tries a thousand."""

import pytest

from bench.histories.__main__ import run


@pytest.mark.parametrize("seed", [0, 5])
def test_a_random_history_loses_no_text(seed):
    result = run(seed, events=1)
    assert not result.failed, result.reason
    assert result.commands["commit"] > 1
