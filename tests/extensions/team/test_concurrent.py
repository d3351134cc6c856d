"""A short form of `make concurrent`, with a server over HTTP among the processes."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.concurrent.running import Plan, run

PLAN = Plan(processes=4, operations=40, seed=3, real=0.03, killed=0.03)


@pytest.mark.attack("concurrent processes")
def test_processes_at_work_on_one_project_act_as_one_after_the_other(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    report = run(PLAN, tmp_path, progress=lambda _: None)

    assert list(map(str, report.wrong)) == []
    assert report.problems == []
    done = Counter(row.name for row in report.rows if not row.outcome.error)
    assert {"add", "edit", "rm", "search", "save", "put"} <= done.keys()
    record_property("tried", report.checked)
