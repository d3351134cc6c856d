"""One random git history of each kind; `make histories` runs a thousand longer ones."""

import pytest

from bench.histories.__main__ import run
from bench.histories.history import SETTINGS
from bench.histories.people import Person


@pytest.mark.parametrize("seed", range(len(SETTINGS)))
def test_a_random_history_loses_no_text(seed):
    result = run(seed, events=1)
    assert not result.failed, result.reason
    assert result.commands["commit"] > 1


def test_a_merge_driver_that_loses_a_side_is_noticed(monkeypatch):
    def install(person, root):
        person.git(root, "config", "merge.mind.driver", "true")

    monkeypatch.setattr(Person, "install", install)
    assert any("lost" in run(seed, events=1).reason for seed in range(1, 9))
