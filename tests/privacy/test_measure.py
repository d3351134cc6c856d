"""Recall and precision on fakes that are independent of the rules."""

import pytest

from bench.privacy import labelled, scores


@pytest.mark.req("002-57")
def test_recall_and_precision_stay_above_the_floor() -> None:
    rows = scores(labelled(seed=4711, each=10))

    assert len(rows) > 60
    assert sum(row.found for row in rows) >= 0.99 * sum(row.fakes for row in rows)
    assert sum(row.wrong for row in rows) <= 0.005 * sum(row.fakes for row in rows)
    assert min(row.recall for row in rows) >= 0.8
