"""The floor of what is found, on fakes that no rule was written on."""

import pytest

from tests.bench.privacy import labelled, scores


@pytest.mark.req("002-57")
def test_nearly_all_is_found_and_nearly_nothing_else() -> None:
    rows = scores(labelled(seed=4711, each=10))

    assert len(rows) > 60
    assert sum(row.found for row in rows) >= 0.99 * sum(row.fakes for row in rows)
    assert sum(row.wrong for row in rows) <= 0.005 * sum(row.fakes for row in rows)
    assert min(row.recall for row in rows) >= 0.8
