"""A sample of the random git histories; `make histories` runs a thousand longer ones."""

import pytest

from tests.bench.histories.__main__ import run
from tests.bench.histories.history import SETTINGS


@pytest.mark.parametrize("seed", range(len(SETTINGS)))
def test_a_random_history_loses_no_text(seed):
    result = run(seed, events=1)
    assert not result.failed, result.reason
    assert result.commands["commit"] > 1
